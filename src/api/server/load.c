/* Values of load (torc/orca.h) of an RPC or of a server, and reports of them (OrcaLoadReport).
 *
 * Values are in a list: there are few (MAX_VALUES at most), and reports walk over all of them. The values of an RPC are
 * in an arena of its call. The values of a server (struct tc_server_load) are reference-counted and under a mutex. The
 * mutex is taken with the runtime's lock held, when a call is finished; no other lock is taken while the mutex is held.
 */
#include "api/server/load.h"

#include <math.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "proto/wire.h"

#define TRAILER "endpoint-load-metrics-bin"

enum { MAX_VALUES = 256, MAX_NAME = 256 /* bytes */ };

struct tc_load_value {
    struct tc_load_value *next;
    double value;
    int metric;
    char name[];
};

/* --- values --- */

/* By enum torc_orca_metric, whose numbers are those of the report's fields. `share`: 0 to 1; `of_rpc`: not for a
 * server. */
static const struct {
    bool known, named, share, of_rpc;
} metrics[] = {
    [TORC_ORCA_CPU] = {.known = true},
    [TORC_ORCA_MEMORY] = {.known = true, .share = true},
    [TORC_ORCA_REQUEST_COST] = {.known = true, .named = true, .of_rpc = true},
    [TORC_ORCA_UTILIZATION] = {.known = true, .named = true, .share = true},
    [TORC_ORCA_RPS] = {.known = true},
    [TORC_ORCA_EPS] = {.known = true},
    [TORC_ORCA_NAMED] = {.known = true, .named = true},
    [TORC_ORCA_APPLICATION] = {.known = true},
};

bool tc_load_metric_is_good(int metric, const char *name, bool of_server)
{
    if (metric < 0 || (size_t)metric >= TC_ARRAY_LEN(metrics) || !metrics[metric].known ||
        (of_server && metrics[metric].of_rpc))
        return false;
    return metrics[metric].named ? name && strlen(name) <= MAX_NAME && tc_utf8_valid(tc_slice_str(name)) : !name;
}

static bool value_is_good(int metric, double value)
{
    return isfinite(value) && value >= 0 && (!metrics[metric].share || value <= 1);
}

/* Returns the link that points to the value; if there is no such value, the last link, which is NULL. `name` is "" for
 * a metric without names. */
static struct tc_load_value **value_place(struct tc_load *load, int metric, const char *name)
{
    struct tc_load_value **at = &load->first;
    while (*at && ((*at)->metric != metric || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    return at;
}

int tc_load_set(struct tc_load *load, struct tc_arena *arena, int metric, const char *name, double value)
{
    if (!value_is_good(metric, value))
        return TORC_EINVAL;
    name = name ? name : "";
    struct tc_load_value **at = value_place(load, metric, name), *v = *at;
    if (!v) {
        size_t size = sizeof(*v) + strlen(name) + 1;
        if (load->n >= MAX_VALUES)
            return TORC_ELIMIT;
        *at = v = arena ? tc_arena_alloc(arena, size) : tc_malloc(size);
        *v = (struct tc_load_value){.metric = metric};
        memcpy(v->name, name, strlen(name) + 1);
        load->n++;
    }
    v->value = value;
    return 0;
}

/* --- reports --- */

static void double_append(struct tc_buf *out, unsigned number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    tc_wire_append_varint(out, number << 3 | TC_WIRE_64BIT);
    for (unsigned shift = 0; shift < 64; shift += 8)
        tc_buf_append_char(out, (char)(bits >> shift));
}

static void value_append(struct tc_buf *out, const struct tc_load_value *v)
{
    struct tc_buf entry = {0};
    if (!metrics[v->metric].named) {
        double_append(out, (unsigned)v->metric, v->value);
        return;
    }
    tc_wire_append(&entry, 1, tc_slice_str(v->name));
    double_append(&entry, 2, v->value);
    tc_wire_append(out, (unsigned)v->metric, tc_buf_slice(&entry));
    tc_buf_fini(&entry);
}

void tc_server_load_append(struct tc_buf *out, struct tc_server_load *server, const struct tc_load *of_rpc)
{
    struct tc_load own = of_rpc ? *of_rpc : (struct tc_load){0};
    pthread_mutex_lock(&server->mutex);
    for (const struct tc_load_value *v = server->load.first; v; v = v->next)
        if (!*value_place(&own, v->metric, v->name))
            value_append(out, v);
    pthread_mutex_unlock(&server->mutex);
}

void tc_load_add_trailer(const struct tc_load *load, struct tc_server_load *server, struct tc_arena *arena,
                         struct tc_headers *trailers)
{
    struct tc_buf report = {0};
    if (!load->n || tc_headers_find(trailers, tc_slice_str(TRAILER)))
        return;
    for (const struct tc_load_value *v = load->first; v; v = v->next)
        value_append(&report, v);
    if (server)
        tc_server_load_append(&report, server, load);
    tc_headers_add(trailers, tc_slice_str(TRAILER), tc_arena_copy(arena, tc_buf_slice(&report)));
    tc_buf_fini(&report);
}

/* --- of a server --- */

struct tc_server_load *tc_server_load_new(void)
{
    struct tc_server_load *s = TC_NEW(struct tc_server_load);
    tc_ref_init(&s->ref);
    pthread_mutex_init(&s->mutex, NULL);
    return s;
}

void tc_server_load_unref(struct tc_server_load *s)
{
    if (!s || !tc_ref_dec(&s->ref))
        return;
    for (struct tc_load_value *v = s->load.first, *next; v; v = next) {
        next = v->next;
        tc_free(v);
    }
    pthread_mutex_destroy(&s->mutex);
    tc_free(s);
}

int tc_server_load_set(struct tc_server_load *s, int metric, const char *name, double value)
{
    pthread_mutex_lock(&s->mutex);
    int rc = tc_load_set(&s->load, NULL, metric, name, value);
    pthread_mutex_unlock(&s->mutex);
    return rc;
}

bool tc_server_load_clear(struct tc_server_load *s, int metric, const char *name)
{
    pthread_mutex_lock(&s->mutex);
    struct tc_load_value **at = value_place(&s->load, metric, name ? name : ""), *v = *at;
    bool found = v != NULL;
    if (found) {
        *at = v->next;
        s->load.n--;
    }
    pthread_mutex_unlock(&s->mutex);
    tc_free(v);
    return found;
}
