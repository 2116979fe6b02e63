/* Control planes that send arbitrary bytes, over plaintext and TLS. RPCs of channels that depend on them fail with
 * UNAVAILABLE or DEADLINE_EXCEEDED and a text; connections end, CONNECTIONS_MAX at most for each play; memory and CPU
 * time stay bounded; calls over the same loop to a backend outside the mesh are not affected.
 *
 * The plays are the rows of support/hostile and the responses below. open_world forks a process whose servers play
 * over plaintext, without the rows for TLS, and another whose servers play everything over TLS. Plays run in batches:
 * up to BATCH channels at a time, each with a play as its control plane, make one RPC each. play_batch frees the
 * channels. The runtime `rt` has a thread of its own, on which on_result runs; the test's thread waits and measures.
 * Meanwhile `load`, with a thread of its own, calls the good backend. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/hostile/rows.h"
#include "support/kits/load.h"

#include "base/buf.h"
#include "base/mem.h"

#define BATCH 16
#define DEADLINE_MS 600
#define GROWN_KB_MAX (32 * 1024)
#define CPU_MS_MAX 2000
#define LONGEST_MS_MAX 3000 /* plus kit_load_report.stalled_ms: the machine may stall */
/* Calls to the good backend were held up if the longest one and the CPU time of the batch both exceed this. A long call
 * alone may be due to a machine that stalls. */
#define HELD_MS_MAX 1000
#define CONNECTIONS_MAX 100

static const char *names[HOSTILE_MAX]; /* of the plays */
static hostile_play_fn *plays[HOSTILE_MAX];
static size_t n_plays, n_clear; /* the first n_clear plays need no TLS */
static struct hostile *over_plaintext, *over_tls;
static struct hostile *servers; /* over_plaintext or over_tls: those played now */
static struct kit_cert root, cert;
static char root_file[] = "/tmp/torc-hostile-root-XXXXXX";
static torc_runtime *rt;
static struct kit_load *load;

/* --- responses that only a control plane can send --- */

/* Sends `times` DiscoveryResponses of these bytes to the first request, fewer if the client closes earlier. Then waits
 * until the client closes. */
static void respond(struct hostile_peer *p, const struct tc_buf *fields, unsigned times)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    for (unsigned i = 0; i < times && id && hostile_flush_much(p); i++)
        fake_h2_message(hostile_frames(p), id, fields->data, fields->len, false);
    hostile_await_close(p);
}

#define LDS_URL "type.googleapis.com/envoy.config.listener.v3.Listener"

static void empty_responses(struct hostile_peer *p)
{
    struct tc_buf b = {0};
    respond(p, &b, 10000);
}

static void responses_of_an_unknown_type(struct hostile_peer *p)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "\x0a\x01"
                          "1\x22\x05"
                          "a.b/C\x2a\x01n");
    respond(p, &b, 600);
    tc_buf_fini(&b);
}

static void responses_of_nothing(struct hostile_peer *p)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "\x0a\x01"
                          "1\x22");
    tc_buf_append_char(&b, (char)strlen(LDS_URL));
    tc_buf_append_str(&b, LDS_URL "\x2a\x01n");
    respond(p, &b, 600);
    tc_buf_fini(&b);
}

static void responses_that_are_noise(struct hostile_peer *p)
{
    struct tc_buf b = {0};
    for (int i = 0; i < 1000; i++)
        tc_buf_append_char(&b, (char)(i * 197 + 13));
    respond(p, &b, 50);
    tc_buf_fini(&b);
}

/* Responds with 60,000 starts of groups (field 1), nested and never ended. */
static void groups_without_end(struct hostile_peer *p)
{
    struct tc_buf b = {0};
    memset(tc_buf_reserve(&b, 60000), 0x0b, 60000);
    b.len = 60000;
    respond(p, &b, 1);
    tc_buf_fini(&b);
}

/* Announces 8 MiB and sends 48 KiB, less than the first window allows. */
static void response_that_does_not_end(struct hostile_peer *p)
{
    static const char zeros[16384];
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    fake_h2_data(hostile_frames(p), id, "\0\0\x80\0\0", 5, false);
    for (int i = 0; i < 3 && id && hostile_flush_much(p); i++)
        fake_h2_data(hostile_frames(p), id, zeros, sizeof(zeros), false);
    hostile_await_close(p);
}

/* Announces 65 MiB, 1 MiB beyond the limit, and sends nothing of it. */
static void response_beyond_the_limit(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    fake_h2_data(hostile_frames(p), id, "\0\4\x10\0\0", 5, false);
    hostile_await_close(p);
}

/* --- the world --- */

static void add(const char *name, hostile_play_fn *play)
{
    assert_true(n_plays < HOSTILE_MAX);
    names[n_plays] = name;
    plays[n_plays++] = play;
}

static void add_rows(struct hostile_rows rows)
{
    for (size_t i = 0; i < rows.n; i++)
        add(rows.rows[i].name, rows.rows[i].play);
}

static void make_certificates(void)
{
    root = kit_cert_make(&(struct kit_cert_opts){.common_name = "root", .ca = true});
    cert = kit_cert_make(&(struct kit_cert_opts){.common_name = "hostile", .sans = "IP:127.0.0.1", .issuer = &root});
    int fd = mkstemp(root_file);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, root.cert_pem, strlen(root.cert_pem)), strlen(root.cert_pem));
    assert_int_equal(close(fd), 0);
}

static int open_world(void **state)
{
    (void)state;
    make_certificates();
    add_rows(hostile_flood_rows());
    add_rows(hostile_header_rows());
    add_rows(hostile_message_rows());
    add_rows(hostile_state_rows());
    add("empty responses", empty_responses);
    add("responses of an unknown type", responses_of_an_unknown_type);
    add("responses of nothing", responses_of_nothing);
    add("responses that are noise", responses_that_are_noise);
    add("groups without end", groups_without_end);
    add("a response beyond the limit", response_beyond_the_limit);
    add("a response that does not end", response_that_does_not_end);
    over_plaintext = hostile_new(plays, n_plays, NULL);
    n_clear = n_plays;
    add_rows(hostile_tls_rows());
    over_tls = hostile_new(plays, n_plays, &cert);
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .idle_connection_ms = 100};
    rt = torc_runtime_new(&o, NULL);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    torc_runtime_free(rt);
    hostile_free(over_plaintext);
    hostile_free(over_tls);
    unlink(root_file);
    kit_cert_fini(&cert);
    kit_cert_fini(&root);
    return 0;
}

/* --- calls --- */

/* The outcome of a batch. */
struct outcome {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned done;       /* RPCs that have ended; under the lock, as is `wrong` until all have ended */
    struct tc_buf wrong; /* failures, one line each */
};

struct ask {
    struct outcome *o;
    size_t play;
};

/* Counts the RPC. Appends a line to `wrong` unless the RPC failed with UNAVAILABLE or DEADLINE_EXCEEDED and a text. */
static void on_result(const torc_result *r, void *arg)
{
    struct ask *ask = arg;
    struct outcome *o = ask->o;
    pthread_mutex_lock(&o->lock);
    o->done++;
    print_message("%s: %s %.250s\n", names[ask->play], torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    if ((torc_result_code(r) != TORC_STATUS_UNAVAILABLE && torc_result_code(r) != TORC_STATUS_DEADLINE_EXCEEDED) ||
        !*torc_result_text(r))
        tc_buf_printf(&o->wrong, "%s: %s %s\n", names[ask->play], torc_status_code_name(torc_result_code(r)),
                      torc_result_text(r));
    pthread_cond_signal(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

/* Returns a channel whose control plane is this play of `servers`. The caller frees the channel. */
static torc_channel *ask_by(size_t play)
{
    char *creds = servers == over_plaintext
                      ? tc_strdup("\"type\": \"insecure\"")
                      : tc_asprintf("\"type\": \"tls\", \"config\": {\"ca_certificate_file\": \"%s\"}", root_file);
    char *bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{%s}]}], "
                                  "\"node\": {\"id\": \"n\"}}",
                                  hostile_address(servers, play), creds);
    tc_free(creds);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = bootstrap};
    torc_channel *ch = torc_channel_new(rt, "xds:///svc", &o, NULL);
    assert_non_null(ch);
    tc_free(bootstrap);
    return ch;
}

/* Plays n plays (BATCH at most) from `first` on, at the same time. Fails the test with a list of what went wrong. */
static void play_batch(size_t first, size_t n)
{
    struct outcome out = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct ask asks[BATCH];
    torc_channel *channels[BATCH];
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = DEADLINE_MS};
    struct footprint before = footprint_begin();
    for (size_t i = 0; i < n; i++) {
        asks[i] = (struct ask){&out, first + i};
        channels[i] = ask_by(first + i);
        assert_int_equal(torc_unary_async(channels[i], "/a.B/C", "", 0, &o, on_result, &asks[i], NULL, NULL), 0);
    }
    pthread_mutex_lock(&out.lock);
    while (out.done < n)
        pthread_cond_wait(&out.changed, &out.lock);
    pthread_mutex_unlock(&out.lock);
    for (size_t i = 0; i < n; i++)
        torc_channel_free(channels[i]);
    for (size_t i = 0; i < n; i++) {
        if (!hostile_wait_over(servers, first + i))
            tc_buf_printf(&out.wrong, "%s: the connection is not over\n", names[first + i]);
        if (hostile_connections(servers, first + i) > CONNECTIONS_MAX)
            tc_buf_printf(&out.wrong, "%s: %u connections\n", names[first + i],
                          hostile_connections(servers, first + i));
    }
    struct footprint grown = footprint_since(&before);
    uint64_t longest_ms = kit_load_lap(load);
    print_message("%zu control planes: %ld kB, %llu ms of CPU; others: %llu ms\n", n, grown.kb,
                  (unsigned long long)grown.cpu_ms, (unsigned long long)longest_ms);
    if (FOOTPRINT_MEASURED && TC_MIN(longest_ms, grown.cpu_ms) > HELD_MS_MAX)
        tc_buf_printf(&out.wrong, "%s and those after it: a call to others took %llu ms\n", names[first],
                      (unsigned long long)longest_ms);
    if (FOOTPRINT_MEASURED && (grown.kb > GROWN_KB_MAX || grown.cpu_ms > CPU_MS_MAX))
        tc_buf_printf(&out.wrong, "%s and those after it: %ld kB, %llu ms of CPU\n", names[first], grown.kb,
                      (unsigned long long)grown.cpu_ms);
    if (out.wrong.len)
        fail_msg("%s", tc_buf_cstr(&out.wrong));
}

/* Plays the first n plays of `of`, while 100 calls a second go to its good backend. */
static void play_all(struct hostile *of, size_t n)
{
    struct kit_load_report report;
    servers = of;
    char *target = tc_asprintf("ipv4:%s", hostile_backend(servers));
    torc_channel *good = torc_channel_new(rt, target, NULL, NULL);
    tc_free(target);
    assert_int_equal(torc_channel_connect(good, 60000), 0);
    load = kit_load_new(good, 100, 1);
    for (size_t i = 0; i < n; i += BATCH)
        play_batch(i, TC_MIN((size_t)BATCH, n - i));
    kit_load_free(load, &report);
    torc_channel_free(good);
    print_message("%llu calls to a backend: %llu failed, the longest took %llu ms\n", (unsigned long long)report.calls,
                  (unsigned long long)report.failed, (unsigned long long)report.longest_ms);
    if (report.failed)
        fail_msg("%s", report.first);
    if (FOOTPRINT_MEASURED)
        assert_in_range(report.longest_ms, 0, LONGEST_MS_MAX + report.stalled_ms);
}

static void test_over_plaintext(void **state)
{
    (void)state;
    play_all(over_plaintext, n_clear);
}

static void test_over_tls(void **state)
{
    (void)state;
    play_all(over_tls, n_plays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_over_plaintext), cmocka_unit_test(test_over_tls)};
    return cmocka_run_group_tests(tests, open_world, close_world);
}
