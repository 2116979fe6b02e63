/* A fake channel for LB policies.
 *
 * A state that the test sets is queued in the subchannel (`pending`) and delivered through the loop's serial queue, as
 * a real channel does. The policy's reports are recorded in struct fake_lb. The fake owns the last picker, which may
 * outlive its policy: fake_lb_free picks with it.
 *
 * A subchannel reports IDLE by itself after it was made, CONNECTING after a request to connect in IDLE, and IDLE after
 * a reset of the backoff in TRANSIENT_FAILURE. Every other state comes from the test, in any order. A policy owns its
 * subchannels: sc_release takes them off the fake's list and drops what is still queued. Side streams have no wire: the
 * fake only lists the watches, and the test calls them. On the test's thread, with the virtual time of a manual
 * loop. */
#include "support/fakes/lb.h"

#include <stdarg.h>

#include "support/cmocka.h"

#include "api/builtin.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "lb/registry.h"

enum { MAX_PENDING = 16 };

struct fake_sc {
    struct tc_subchannel base;
    struct fake_lb *lb;
    enum torc_connectivity state; /* as last set, perhaps not delivered yet */
    char *text;                   /* of the address; owned */
    struct {
        enum torc_connectivity state;
        struct tc_status status;
    } pending[MAX_PENDING]; /* states to report through the serial queue, the next one first; they own `status` */
    size_t n_pending;
    struct tc_task task; /* on_deliver; queued while n_pending is not 0 */
    struct tc_status health;
    tc_subchannel_health_fn on_health; /* NULL: not watched */
    void *health_arg;
};

/* --- subchannels --- */

/* why: makes the status UNAVAILABLE with this text; NULL: the status is OK. */
static void queue_state(struct fake_sc *sc, enum torc_connectivity state, const char *why)
{
    assert_true(sc->n_pending < MAX_PENDING);
    sc->state = state;
    sc->pending[sc->n_pending].state = state;
    sc->pending[sc->n_pending++].status =
        why ? tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "%s", why) : (struct tc_status){0};
    tc_loop_defer(sc->lb->loop, &sc->task);
}

/* Reports one pending state, and queues itself again if there are more. The policy may release the subchannel in
 * on_state. */
static void on_deliver(struct tc_task *task)
{
    struct fake_sc *sc = TC_CONTAINER_OF(task, struct fake_sc, task);
    enum torc_connectivity state = sc->pending[0].state;
    struct tc_status status = sc->pending[0].status;
    memmove(&sc->pending[0], &sc->pending[1], --sc->n_pending * sizeof(sc->pending[0]));
    if (sc->n_pending)
        tc_loop_defer(sc->lb->loop, &sc->task);
    sc->base.on_state(sc->base.arg, state, &status);
    tc_status_fini(&status);
}

static void sc_connect(struct tc_subchannel *base)
{
    struct fake_sc *sc = (struct fake_sc *)base;
    if (sc->state != TORC_CONNECTIVITY_IDLE)
        return;
    tc_buf_printf(&sc->lb->connects, "%s ", sc->text);
    queue_state(sc, TORC_CONNECTIVITY_CONNECTING, NULL);
}

static void sc_reset_backoff(struct tc_subchannel *base)
{
    struct fake_sc *sc = (struct fake_sc *)base;
    if (sc->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        queue_state(sc, TORC_CONNECTIVITY_IDLE, NULL);
}

static struct tc_subchannel *sc_inner(struct tc_subchannel *base)
{
    (void)base;
    return NULL;
}

static void sc_release(struct tc_subchannel *base)
{
    struct fake_sc *sc = (struct fake_sc *)base;
    struct fake_lb *f = sc->lb;
    for (size_t i = f->subchannels.len; i-- > 0;) { /* mostly it is one of the last */
        if (f->subchannels.data[i] == sc) {
            tc_vec_remove(&f->subchannels, i);
            break;
        }
    }
    tc_task_cancel(&sc->task);
    for (size_t i = 0; i < sc->n_pending; i++)
        tc_status_fini(&sc->pending[i].status);
    tc_endpoint_unref(sc->base.endpoint);
    tc_addr_fini(&sc->base.addr);
    tc_status_fini(&sc->health);
    tc_free(sc->text);
    tc_free(sc);
}

static void side_watch_end(struct tc_side_watch *w)
{
    tc_list_remove(&w->link);
    w->stream = NULL;
}

static void sc_watch_side(struct tc_subchannel *base, struct tc_side_watch *w)
{
    struct fake_sc *sc = (struct fake_sc *)base;
    w->stream = (struct tc_side_stream *)sc;
    w->end = side_watch_end;
    tc_list_append(&sc->lb->side_watches, &w->link);
}

static const struct tc_status *sc_watch_health(struct tc_subchannel *base, tc_subchannel_health_fn on_health, void *arg)
{
    struct fake_sc *sc = (struct fake_sc *)base;
    sc->on_health = on_health;
    sc->health_arg = arg;
    return &sc->health;
}

static const struct tc_subchannel_ops sc_ops = {.connect = sc_connect,
                                                .reset_backoff = sc_reset_backoff,
                                                .inner = sc_inner,
                                                .release = sc_release,
                                                .watch_health = sc_watch_health,
                                                .watch_side = sc_watch_side};

/* --- the helper --- */

static struct tc_subchannel *on_create(struct tc_lb_helper *h, struct tc_endpoint *endpoint, const struct tc_addr *addr,
                                       tc_subchannel_state_fn on_state, void *arg)
{
    struct fake_lb *f = (struct fake_lb *)h;
    struct fake_sc *sc = TC_NEW(struct fake_sc);
    sc->base = (struct tc_subchannel){&sc_ops, tc_endpoint_ref(endpoint), tc_addr_ref(addr), on_state, arg};
    sc->lb = f;
    sc->health.code = f->health;
    sc->text = tc_addr_text(addr);
    tc_task_init(&sc->task, on_deliver);
    queue_state(sc, TORC_CONNECTIVITY_IDLE, NULL);
    *tc_vec_push(&f->subchannels) = sc;
    return &sc->base;
}

static const char *const state_names[] = {"IDLE", "CONNECTING", "READY", "TF", "SHUTDOWN"};

static void on_update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                            struct tc_picker *picker)
{
    struct fake_lb *f = (struct fake_lb *)h;
    if (state != f->state)
        tc_buf_printf(&f->history, "%s ", state_names[state]);
    f->state = state;
    f->reports++;
    tc_status_set(&f->status, tc_status_ref(status));
    tc_picker_unref(f->picker);
    f->picker = picker;
    assert_true(picker != NULL);
    assert_true((state == TORC_CONNECTIVITY_TRANSIENT_FAILURE) == !tc_status_ok(status));
}

static void on_reresolution(struct tc_lb_helper *h)
{
    ((struct fake_lb *)h)->reresolutions++;
}

static const struct tc_lb_helper_ops helper_ops = {
    .create_subchannel = on_create, .update_state = on_update_state, .request_reresolution = on_reresolution};

struct fake_lb *fake_lb_new(const char *policy)
{
    struct fake_lb *f = TC_NEW(struct fake_lb);
    tc_list_init(&f->side_watches);
    f->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    f->registry = tc_lb_registry_new();
    tc_builtin_add_policies(f->registry);
    tc_connect_turns_init(&f->turns, f->loop);
    f->env = (struct tc_lb_env){
        .loop = f->loop,
        .connect_turns = &f->turns,
        .registry = f->registry,
        .target = tc_slice_str("fake:///target"),
        .ring_size_cap = 4096,
        .priority_failover_ms = 10000,
        .priority_retention_ms = 900000,
        .connection_attempt_delay_ms = 250,
    };
    f->helper = (struct tc_lb_helper){.ops = &helper_ops, .env = &f->env};
    f->state = TORC_CONNECTIVITY_SHUTDOWN;
    tc_arena_init(&f->arena, 0, 0);
    tc_headers_init(&f->headers, &f->arena);
    f->args = (struct tc_pick_args){.path = tc_slice_str("/s/m"), .headers = &f->headers, .arena = &f->arena};
    if (policy)
        f->policy = tc_lb_create(tc_lb_registry_find(f->registry, tc_slice_str(policy)), &f->helper);
    return f;
}

void fake_lb_free(struct fake_lb *f)
{
    unsigned reports = f->reports;
    if (f->policy) {
        f->policy->ops->shutdown(f->policy);
        f->policy->ops->shutdown(f->policy);
    }
    assert_int_equal(f->subchannels.len, 0);
    assert_true(tc_list_empty(&f->side_watches));
    if (f->picker && f->args.headers) {
        /* A picker may outlive its policy. */
        tc_status_fini(&f->pick.status);
        f->pick = (struct tc_pick){0};
        f->args.has_hash = true;
        assert_int_not_equal(tc_picker_pick(f->picker, &f->args, &f->pick), TC_PICK_COMPLETE);
    }
    tc_loop_drain(f->loop);
    assert_int_equal(f->reports, reports);
    assert_int_equal(tc_loop_timeout_ms(f->loop), -1);
    tc_picker_unref(f->picker);
    tc_status_fini(&f->status);
    tc_status_fini(&f->pick.status);
    tc_loop_free(f->loop);
    tc_lb_registry_free(f->registry);
    tc_vec_fini(&f->subchannels);
    tc_buf_fini(&f->history);
    tc_buf_fini(&f->connects);
    tc_arena_fini(&f->arena);
    tc_free(f);
}

/* --- endpoints and configs --- */

/* Returns an endpoint with one reference (fake_lb_endpoints has the syntax). */
static struct tc_endpoint *parse_endpoint(struct tc_slice text)
{
    struct tc_slice head = text;
    struct tc_addr addrs[128];
    size_t n = 0, end = 0;
    while (end < text.len && !strchr("*#@!", text.data[end]))
        end++;
    head.len = end;
    bool more = true;
    struct tc_slice part;
    while (tc_slice_split(&head, &more, ',', &part)) {
        assert_true(n < TC_ARRAY_LEN(addrs));
        assert_int_equal(tc_addr_parse(&addrs[n++], part), 0);
    }
    struct tc_endpoint *e = tc_endpoint_new(addrs, n);
    for (size_t i = 0; i < n; i++)
        tc_addr_fini(&addrs[i]);
    while (end < text.len) {
        char kind = text.data[end++];
        size_t start = end;
        while (end < text.len && !strchr("*#@!", text.data[end]))
            end++;
        struct tc_slice value = tc_slice_of(text.data + start, end - start);
        if (kind == '*') {
            assert_int_equal(tc_parse_u64(value, UINT64_MAX, &e->weight), 0);
            e->lb_weight = (uint32_t)TC_MIN(e->weight, (uint64_t)UINT32_MAX);
        } else if (kind == '#')
            e->hash_key = tc_rstr_new(value.data, value.len);
        else if (kind == '!')
            e->health = tc_slice_eq_str(value, "DRAINING")  ? TC_HEALTH_DRAINING
                        : tc_slice_eq_str(value, "HEALTHY") ? TC_HEALTH_HEALTHY
                                                            : TC_HEALTH_UNKNOWN;
        else
            e->locality = tc_locality_new(tc_slice_str("r"), value, tc_slice_str("s"));
    }
    return e;
}

struct tc_endpoints *fake_lb_endpoints(const char *text)
{
    TC_VEC(struct tc_endpoint *) list = {0};
    struct tc_slice rest = tc_slice_str(text), part;
    bool more = true;
    while (tc_slice_split(&rest, &more, ' ', &part))
        if (part.len)
            *tc_vec_push(&list) = parse_endpoint(part);
    return tc_endpoints_take(list.data, list.len);
}

struct tc_endpoints *fake_lb_endpoint_tree(const char *name, ...)
{
    TC_VEC(struct tc_endpoints_child) children = {0};
    va_list ap;
    va_start(ap, name);
    for (; name; name = va_arg(ap, const char *)) {
        const char *text = va_arg(ap, const char *);
        *tc_vec_push(&children) = (struct tc_endpoints_child){tc_rstr_str(name), fake_lb_endpoints(text)};
    }
    va_end(ap);
    return tc_endpoints_take_children(children.data, children.len);
}

struct tc_lb_config *fake_lb_config(struct fake_lb *f, const char *policy, const char *json, char **why)
{
    char *text = tc_asprintf("[{\"unknown_policy\": {}}, {\"%s\": %s}]", policy, json);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    char *bad = NULL;
    json_t *list = tc_json_parse(tc_slice_str(text), &bad);
    assert_true(list != NULL);
    struct tc_validation_errors errors = {0};
    struct tc_lb_config *config = tc_lb_parse_list(f->registry, list, 0, &errors);
    assert_true((config == NULL) == tc_validation_any(&errors));
    if (why)
        *why = config ? NULL : tc_strdup(tc_validation_text(&errors));
    tc_validation_fini(&errors);
    json_decref(list);
    tc_free(text);
    return config;
}

/* Borrows the update, which must have a config. Returns whether the policy accepted it. */
static bool update(struct fake_lb *f, const struct tc_lb_update *u)
{
    assert_true(u->config != NULL);
    struct tc_status status = f->policy->ops->update(f->policy, u);
    bool accepted = tc_status_ok(&status);
    tc_status_fini(&status);
    tc_loop_drain(f->loop);
    return accepted;
}

bool fake_lb_update(struct fake_lb *f, struct tc_endpoints *endpoints, struct tc_lb_config *config, const char *note)
{
    struct tc_rstr *text = note ? tc_rstr_str(note) : NULL;
    bool accepted =
        update(f, &(struct tc_lb_update){.endpoints = endpoints, .config = config, .resolution_note = text});
    tc_rstr_unref(text);
    tc_endpoints_unref(endpoints);
    tc_lb_config_unref(config);
    return accepted;
}

bool fake_lb_update_error(struct fake_lb *f, const struct tc_status *error, struct tc_lb_config *config)
{
    bool accepted = update(f, &(struct tc_lb_update){.endpoints_error = error, .config = config});
    tc_lb_config_unref(config);
    return accepted;
}

/* --- driving --- */

static void set_all(struct fake_lb *f, const char *addr, enum torc_connectivity state, const char *why)
{
    unsigned n = 0;
    for (size_t i = 0; i < f->subchannels.len; i++) {
        if (strcmp(f->subchannels.data[i]->text, addr) == 0) {
            queue_state(f->subchannels.data[i], state, why);
            n++;
        }
    }
    if (!n)
        fail_msg("no subchannel of %s", addr);
    tc_loop_drain(f->loop);
}

void fake_lb_set(struct fake_lb *f, const char *addr, enum torc_connectivity state)
{
    set_all(f, addr, state, state == TORC_CONNECTIVITY_TRANSIENT_FAILURE ? "refused" : NULL);
}

void fake_lb_set_failed(struct fake_lb *f, const char *addr, const char *why)
{
    set_all(f, addr, TORC_CONNECTIVITY_TRANSIENT_FAILURE, why);
}

bool fake_lb_health_watched(const struct fake_lb *f, const char *addr)
{
    for (size_t i = 0; i < f->subchannels.len; i++)
        if (strcmp(f->subchannels.data[i]->text, addr) == 0)
            return f->subchannels.data[i]->on_health != NULL;
    return false;
}

unsigned fake_lb_count(const struct fake_lb *f, const char *addr)
{
    unsigned n = 0;
    for (size_t i = 0; i < f->subchannels.len; i++)
        n += !addr || strcmp(f->subchannels.data[i]->text, addr) == 0;
    return n;
}

enum torc_connectivity fake_lb_state(const struct fake_lb *f, const char *addr)
{
    for (size_t i = 0; i < f->subchannels.len; i++)
        if (strcmp(f->subchannels.data[i]->text, addr) == 0)
            return f->subchannels.data[i]->state;
    return TORC_CONNECTIVITY_SHUTDOWN;
}

/* Returns the oldest subchannel of the address whose endpoint's locality has the zone; NULL if there is none. */
static struct fake_sc *find_in(const struct fake_lb *f, const char *addr, const char *zone)
{
    for (size_t i = 0; i < f->subchannels.len; i++) {
        struct fake_sc *sc = f->subchannels.data[i];
        if (strcmp(sc->text, addr) == 0 && strcmp(sc->base.endpoint->locality->zone->data, zone) == 0)
            return sc;
    }
    return NULL;
}

enum torc_connectivity fake_lb_state_in(const struct fake_lb *f, const char *addr, const char *zone)
{
    const struct fake_sc *sc = find_in(f, addr, zone);
    return sc ? sc->state : TORC_CONNECTIVITY_SHUTDOWN;
}

void fake_lb_queue_at(struct fake_lb *f, size_t i, enum torc_connectivity state)
{
    assert_true(i < f->subchannels.len);
    queue_state(f->subchannels.data[i], state, state == TORC_CONNECTIVITY_TRANSIENT_FAILURE ? "refused" : NULL);
}

void fake_lb_set_at(struct fake_lb *f, size_t i, enum torc_connectivity state)
{
    fake_lb_queue_at(f, i, state);
    tc_loop_drain(f->loop);
}

void fake_lb_set_in(struct fake_lb *f, const char *addr, const char *zone, enum torc_connectivity state)
{
    struct fake_sc *sc = find_in(f, addr, zone);
    assert_non_null(sc);
    queue_state(sc, state, state == TORC_CONNECTIVITY_TRANSIENT_FAILURE ? "refused" : NULL);
    tc_loop_drain(f->loop);
}

/* Returns the fake's subchannel behind the policies' wrappers. */
static const struct fake_sc *own(struct tc_subchannel *sc)
{
    return (const struct fake_sc *)tc_subchannel_innermost(sc);
}

void fake_lb_set_health(struct fake_lb *f, const char *addr, int code, const char *text)
{
    for (size_t i = 0; i < f->subchannels.len; i++) {
        struct fake_sc *sc = f->subchannels.data[i];
        if (strcmp(sc->text, addr) != 0)
            continue;
        tc_status_set(&sc->health, tc_status_make(code, TORC_LAYER_LB, "%s", text));
        if (sc->on_health)
            sc->on_health(sc->health_arg, &sc->health);
    }
    tc_loop_drain(f->loop);
}

struct tc_side_watch *fake_lb_side_watch(const struct fake_lb *f, const char *addr)
{
    for (struct tc_link *it = f->side_watches.next; it != &f->side_watches; it = it->next)
        if (strcmp(((const struct fake_sc *)tc_side_watch_of(it)->stream)->text, addr) == 0)
            return tc_side_watch_of(it);
    return NULL;
}

const char *fake_lb_pick(struct fake_lb *f)
{
    tc_status_fini(&f->pick.status);
    f->pick = (struct tc_pick){0};
    f->kind = tc_picker_pick(f->picker, &f->args, &f->pick);
    /* The subchannel is valid in this loop turn only. */
    const char *text = f->kind == TC_PICK_COMPLETE
                           ? tc_arena_dup(&f->arena, tc_slice_str(own(f->pick.subchannel)->text))
                       : f->kind == TC_PICK_QUEUE ? "QUEUE"
                       : f->kind == TC_PICK_FAIL  ? "FAIL"
                                                  : "DROP";
    tc_loop_drain(f->loop);
    return text;
}

const char *fake_lb_pick_hash(struct fake_lb *f, uint64_t hash)
{
    f->args.has_hash = true;
    f->args.hash = hash;
    return fake_lb_pick(f);
}

const char *fake_lb_pick_error(const struct fake_lb *f)
{
    return tc_status_text(&f->pick.status);
}

const char *fake_lb_take_connects(struct fake_lb *f)
{
    const char *text = tc_arena_dup(&f->arena, tc_buf_slice(&f->connects));
    tc_buf_clear(&f->connects);
    return text;
}
