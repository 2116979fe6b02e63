/* The client of hostile servers: the body of e2e/hostile_backend and e2e/hostile_tls.
 *
 * Each row gets a channel to its server and as many RPCs as its flags say; their outcomes must be the row's. The number
 * of connections and, where FOOTPRINT_MEASURED, peak memory and CPU time are compared with limits. Meanwhile 100 calls
 * a second go to the good backend. What goes wrong in rows is collected in `wrong` and fails the test after its last
 * row.
 *
 * The servers play in a process of their own (hostile/server.h). Here the test's thread starts the RPCs of one row at a
 * time, waits for them and measures; on_result runs on the thread of the runtime `rt`. The load starts its calls on a
 * thread of its own. servers_open makes what the variables below hold; servers_close frees it, except a load that
 * others_end has freed. To read first: play, then hostile/rows.h. */
#include "support/hostile/client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/kits/load.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

#define MANY 200
#define RPS 100

#define GROWN_KB_MAX (32 * 1024)
#define CPU_MS_MAX 2000
#define LONGEST_MS_MAX 3000 /* in addition to kit_load_report.stalled_ms, since the machine may stall */
/* A row fails if a call to the good backend took longer than this, and the client spent more CPU time than this: then
 * the client's own work held the call up. */
#define HELD_MS_MAX 1000
#define CONNECTIONS_MAX 50

static struct hostile_row all[HOSTILE_MAX];
static size_t n_all;
static struct hostile *servers;
static torc_runtime *rt;
static torc_channel *good;
static torc_credentials *creds; /* NULL: plaintext */
static struct kit_cert root, cert;
static struct tc_buf wrong;   /* failures of rows, one line each; rows_play empties it */
static struct kit_load *load; /* the calls to `good`; NULL: ended */

static void append(struct hostile_rows rows)
{
    assert_true(n_all + rows.n <= HOSTILE_MAX);
    memcpy(all + n_all, rows.rows, rows.n * sizeof(*rows.rows));
    n_all += rows.n;
}

/* --- calls --- */

/* The RPCs of a row. */
struct batch {
    const struct hostile_row *row;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned done; /* under the lock until all are done, as are `wrong` and `seen` */
    bool wrong;
    char seen[256]; /* the first wrong outcome; while none is wrong, the outcome of the RPC that ended last */
};

/* Returns true if the result is the outcome (struct hostile_row), false if the outcome is NULL. */
static bool matches(const char *outcome, const torc_result *r)
{
    const char *name = torc_status_code_name(torc_result_code(r));
    size_t len = strlen(name);
    if (!outcome || strncmp(outcome, name, len) != 0 || (outcome[len] != '\0' && outcome[len] != ' '))
        return false;
    return outcome[len] == '\0' || strstr(torc_result_text(r), outcome + len + 1);
}

static void on_result(const torc_result *r, void *arg)
{
    struct batch *b = arg;
    pthread_mutex_lock(&b->lock);
    b->done++;
    if (!b->wrong)
        snprintf(b->seen, sizeof(b->seen), "%s %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    if (!matches(b->row->outcome, r) && !matches(b->row->or_else, r))
        b->wrong = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static void on_stream_done(torc_stream *call, const torc_result *r, void *arg)
{
    (void)call;
    on_result(r, arg);
}

static const struct torc_stream_events unread = {TORC_SIZE(torc_stream_events), .on_done = on_stream_done};

/* Makes the RPCs of the row, waits until all have ended, and adds a line to the list of failures if one had another
 * outcome. */
static void run_calls(torc_channel *ch, struct batch *b)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options),
                                  .timeout_ms = b->row->flags & HOSTILE_SHORT ? 300 : 20000};
    size_t len = b->row->flags & HOSTILE_LARGE ? 4000000 : 5;
    unsigned n = b->row->flags & HOSTILE_MANY ? MANY : 1;
    char *request = tc_calloc(1, len);
    torc_stream *stream = NULL;
    if (b->row->flags & HOSTILE_UNREAD)
        assert_non_null(stream = torc_stream_start(ch, "/a.B/C", &o, &unread, b, NULL));
    for (unsigned i = stream ? 1 : 0; i < n; i++)
        assert_int_equal(torc_unary_async(ch, "/a.B/C", request, len, &o, on_result, b, NULL, NULL), 0);
    tc_free(request);
    pthread_mutex_lock(&b->lock);
    while (b->done < n)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
    torc_stream_free(stream);
    if (b->wrong)
        tc_buf_printf(&wrong, "%s: %s, not %s\n", b->row->name, b->seen, b->row->outcome);
}

/* Makes a second RPC. It must use the connection of the first RPC, and end as the row's `then` says; without `then` it
 * must succeed with the header "intact: yes". */
static void call_again(torc_channel *ch, size_t i)
{
    const struct hostile_row *row = &all[i];
    torc_result *r;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 20000};
    r = torc_unary(ch, "/a.B/C", "next", 4, &o);
    if (!matches(row->then ? row->then : "OK", r))
        tc_buf_printf(&wrong, "%s: the next RPC: %s %s\n", row->name, torc_status_code_name(torc_result_code(r)),
                      torc_result_text(r));
    size_t len = 0;
    const char *intact = torc_metadata_find(torc_result_headers(r), "intact", &len);
    if (!row->then && (!intact || len != 3 || memcmp(intact, "yes", 3) != 0))
        tc_buf_printf(&wrong, "%s: the next RPC has other headers\n", row->name);
    if (hostile_connections(servers, i) != 1)
        tc_buf_printf(&wrong, "%s: the next RPC has another connection\n", row->name);
    torc_result_free(r);
}

/* Plays row i of `all`. */
static void play(size_t i)
{
    const struct hostile_row *row = &all[i];
    struct batch b = {.row = row, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .connect_timeout_ms = row->flags & HOSTILE_DIALS ? 300 : 20000};
    if (creds)
        o.credentials = creds;
    char *target = tc_asprintf("ipv4:%s", hostile_address(servers, i));
    torc_channel *ch = torc_channel_new(rt, target, &o, NULL);
    assert_non_null(ch);
    struct footprint before = footprint_begin();
    if (row->flags & HOSTILE_SHORT) /* connects first, so that the deadline covers the RPC alone */
        assert_int_equal(torc_channel_connect(ch, 20000), 0);
    uint64_t begin_ns = tc_system_clock.monotonic_ns(tc_system_clock.arg);
    run_calls(ch, &b);
    if (row->flags & HOSTILE_NEXT || row->then)
        call_again(ch, i);
    torc_channel_free(ch);
    bool over = hostile_wait_over(servers, i);
    struct footprint grown = footprint_since(&before);
    uint64_t longest_ms = kit_load_lap(load);
    print_message("%s: %.160s; %ld kB, %llu of %llu ms, %u connections; others: %llu ms\n", row->name, b.seen, grown.kb,
                  (unsigned long long)grown.cpu_ms,
                  (unsigned long long)(tc_system_clock.monotonic_ns(tc_system_clock.arg) - begin_ns) / TC_NS_PER_MS,
                  hostile_connections(servers, i), (unsigned long long)longest_ms);
    if (FOOTPRINT_MEASURED && TC_MIN(longest_ms, grown.cpu_ms) > HELD_MS_MAX)
        tc_buf_printf(&wrong, "%s: a call to another backend took %llu ms\n", row->name,
                      (unsigned long long)longest_ms);
    if (!over)
        tc_buf_printf(&wrong, "%s: the connection is not over\n", row->name);
    tc_free(target);
    if (FOOTPRINT_MEASURED && (grown.kb > GROWN_KB_MAX || grown.cpu_ms > CPU_MS_MAX))
        tc_buf_printf(&wrong, "%s: %ld kB more resident, %llu ms of CPU\n", row->name, grown.kb,
                      (unsigned long long)grown.cpu_ms);
    if (hostile_connections(servers, i) > CONNECTIONS_MAX)
        tc_buf_printf(&wrong, "%s: %u connections\n", row->name, hostile_connections(servers, i));
}

/* --- the world --- */

static void make_credentials(void)
{
    root = kit_cert_make(&(struct kit_cert_opts){.common_name = "root", .ca = true});
    cert = kit_cert_make(&(struct kit_cert_opts){.common_name = "hostile", .sans = "IP:127.0.0.1", .issuer = &root});
    struct torc_tls_options o = {TORC_SIZE(torc_tls_options), .roots_pem = root.cert_pem};
    creds = torc_credentials_tls(&o, NULL);
    assert_non_null(creds);
}

/* Starts a server for each row of these n tables, a good backend, and 100 calls a second to the good backend. Forks, so
 * the process must not have threads. */
static void servers_open(const struct hostile_rows *rows, size_t n, bool tls)
{
    hostile_play_fn *plays[HOSTILE_MAX];
    for (size_t i = 0; i < n; i++)
        append(rows[i]);
    for (size_t i = 0; i < n_all; i++)
        plays[i] = all[i].play;
    if (tls)
        make_credentials();
    servers = hostile_new(plays, n_all, tls ? &cert : NULL);
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options)};
    o.idle_connection_ms = 100; /* so that a row's connections end soon after its channel */
    rt = torc_runtime_new(&o, NULL);
    char *target = tc_asprintf("ipv4:%s", hostile_backend(servers));
    good = torc_channel_new(rt, target, NULL, NULL);
    tc_free(target);
    assert_int_equal(torc_channel_connect(good, 20000), 0);
    load = kit_load_new(good, RPS, 1);
}

static void servers_close(void)
{
    struct kit_load_report report;
    if (load)
        kit_load_free(load, &report);
    torc_channel_free(good);
    torc_runtime_free(rt);
    torc_credentials_unref(creds);
    hostile_free(servers);
    kit_cert_fini(&cert);
    kit_cert_fini(&root);
}

/* Plays these rows, one after another. Fails the test with a list of everything that went wrong. */
static void rows_play(struct hostile_rows rows)
{
    const char *only = getenv("HOSTILE_ONLY");
    for (size_t i = 0; i < n_all; i++)
        for (size_t j = 0; j < rows.n; j++)
            if (all[i].play == rows.rows[j].play && (!only || strstr(all[i].name, only)))
                play(i);
    bool failed = wrong.len > 0;
    if (failed)
        print_error("%s", tc_buf_cstr(&wrong));
    tc_buf_fini(&wrong);
    if (failed)
        fail();
}

/* Ends the calls to the good backend. Fails the test if one of them failed or, where FOOTPRINT_MEASURED, was too
 * slow. */
static void others_end(void)
{
    struct kit_load_report report;
    kit_load_wait(load, 1);
    kit_load_free(load, &report);
    load = NULL;
    print_message("%llu calls to another backend: %llu failed, the longest took %llu ms\n",
                  (unsigned long long)report.calls, (unsigned long long)report.failed,
                  (unsigned long long)report.longest_ms);
    if (report.failed)
        fail_msg("%s", report.first);
    if (FOOTPRINT_MEASURED)
        assert_in_range(report.longest_ms, 0, LONGEST_MS_MAX + report.stalled_ms);
}

/* --- the tests --- */

static void floods(void **state)
{
    (void)state;
    rows_play(hostile_flood_rows());
}

static void headers(void **state)
{
    (void)state;
    rows_play(hostile_header_rows());
}

static void messages(void **state)
{
    (void)state;
    rows_play(hostile_message_rows());
}

static void states(void **state)
{
    (void)state;
    rows_play(hostile_state_rows());
}

static void records(void **state)
{
    (void)state;
    if (!creds)
        skip(); /* the rows are about TLS */
    rows_play(hostile_tls_rows());
}

static void other_backend_is_not_affected(void **state)
{
    (void)state;
    others_end();
}

static int group_setup(bool tls)
{
    const struct hostile_rows rows[] = {hostile_flood_rows(), hostile_header_rows(), hostile_message_rows(),
                                        hostile_state_rows(), hostile_tls_rows()};
    servers_open(rows, TC_ARRAY_LEN(rows) - !tls, tls);
    return 0;
}

static int plaintext_setup(void **state)
{
    (void)state;
    return group_setup(false);
}

static int tls_setup(void **state)
{
    (void)state;
    return group_setup(true);
}

static int group_teardown(void **state)
{
    (void)state;
    servers_close();
    return 0;
}

int hostile_client_run(bool tls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floods), cmocka_unit_test(headers), cmocka_unit_test(messages),
        cmocka_unit_test(states), cmocka_unit_test(records), cmocka_unit_test(other_backend_is_not_affected),
    };
    return cmocka_run_group_tests(tests, tls ? tls_setup : plaintext_setup, group_teardown);
}
