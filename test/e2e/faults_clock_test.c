/* The wall clock jumps forward and back by hours and days. Deadlines, backoff and timers do not follow; tokens and
 * certificates, which expire by date, do. The program defines clock_gettime, time and gettimeofday, also for the
 * libraries that it loads, so that it needs no right to set the machine's clock.
 *
 * All threads of the program see the clock that `jump` moves: the test's thread, and those of the channels' runtime, of
 * the servers and of the load. CLOCK_MONOTONIC stays the machine's; now_ms measures by it. Each test begins with the
 * right time (set_right), and makes and frees its servers and channels. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/cert.h"
#include "support/kits/load.h"
#include "support/kits/mesh.h"
#include "tls/tls.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S };
/* The upper bound of durations, for busy machines. A timer that followed a jump back would take a day or two. */
enum { SLOW_MS = 60000 };

static atomic_long ahead_s; /* how far the program's wall clock is ahead of the machine's */

#define SEEN_BY_LIBRARIES __attribute__((visibility("default")))

SEEN_BY_LIBRARIES int clock_gettime(clockid_t id, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ts);
    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        ts->tv_sec += atomic_load(&ahead_s);
    return rc;
}

SEEN_BY_LIBRARIES time_t time(time_t *t)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (t)
        *t = ts.tv_sec;
    return ts.tv_sec;
}

SEEN_BY_LIBRARIES int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    *tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
    return 0;
}

static void jump(long seconds)
{
    atomic_fetch_add(&ahead_s, seconds);
}

static uint64_t now_ms(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg) / TC_NS_PER_MS;
}

static int set_right(void **state)
{
    (void)state;
    atomic_store(&ahead_s, 0);
    return 0;
}

/* Returns a channel of the default runtime to backend i, which the caller frees. creds: borrowed; NULL: insecure. */
static torc_channel *channel_with(struct kit_backends *kit, size_t i, torc_credentials *creds)
{
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .backoff_initial_ms = 50, .backoff_max_ms = 500};
    if (creds)
        o.credentials = creds;
    char *target = tc_asprintf("ipv4:%s", kit_backends_address(kit, i));
    torc_channel *ch = torc_channel_new(NULL, target, &o, NULL);
    assert_non_null(ch);
    tc_free(target);
    return ch;
}

/* Makes a call. Asserts its status code, and that its status text contains `part`. Returns its duration in ms. */
static uint64_t call(torc_channel *ch, const char *method, int64_t timeout_ms, int code, const char *part)
{
    torc_result *r;
    uint64_t begun = now_ms();
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = timeout_ms};
    r = torc_unary(ch, method, "x", 1, &o);
    if (torc_result_code(r) != code || !strstr(torc_result_text(r), part))
        fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    torc_result_free(r);
    return now_ms() - begun;
}

#define ECHO "/test.Service/Echo"
#define HANG "torc.test.Backend/Hang"

struct ended {
    atomic_int n; /* results that have come; on_result counts on the runtime's thread */
    int code;     /* of the last result; to be read once n counts it */
};

static void on_result(const torc_result *r, void *arg)
{
    struct ended *e = arg;
    e->code = torc_result_code(r);
    atomic_fetch_add(&e->n, 1);
}

/* --- timers that do not follow the jump --- */

/* A deadline runs while the clock jumps, in either direction. Another deadline and a timed wait begin after the
 * jump. */
static void deadlines(void **state)
{
    static const long jumps[] = {DAY_S, -2 * DAY_S, DAY_S};
    struct kit_backends *kit = kit_backends_new(1, NULL);
    torc_channel *ch = channel_with(kit, 0, NULL);
    enum torc_connectivity now;
    (void)state;
    call(ch, ECHO, 60000, TORC_STATUS_OK, "");
    for (size_t i = 0; i < TC_ARRAY_LEN(jumps); i++) {
        struct ended e = {0};
        struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 1000};
        uint64_t begun = now_ms();
        assert_int_equal(torc_unary_async(ch, HANG, "x", 1, &o, on_result, &e, NULL, NULL), 0);
        jump(jumps[i]);
        assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, 100, &now), TORC_ETIMEDOUT);
        assert_in_range(now_ms() - begun, 100, SLOW_MS);
        uint64_t took = call(ch, HANG, 1000, TORC_STATUS_DEADLINE_EXCEEDED, "waiting for the response");
        assert_in_range(took, 1000, SLOW_MS);
        while (!atomic_load(&e.n)) /* the first HANG has the same timeout, and began before the second: it ends soon */
            call(ch, ECHO, 60000, TORC_STATUS_OK, "");
        assert_int_equal(e.code, TORC_STATUS_DEADLINE_EXCEEDED);
        assert_in_range(now_ms() - begun, 1000, SLOW_MS);
    }
    torc_channel_free(ch);
    kit_backends_free(kit);
}

/* A connection in backoff is tried again when the backoff ends, although the clock has jumped. */
static void backoff(void **state)
{
    static const long jumps[] = {-DAY_S, 2 * DAY_S, -DAY_S};
    struct kit_backends *kit = kit_backends_new(1, NULL);
    torc_channel *ch = channel_with(kit, 0, NULL);
    enum torc_connectivity now;
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(jumps); i++) {
        torc_result *r;
        kit_backends_stop(kit, 0);
        /* The channel notices a moment later that its connection is lost. In the first round it has none. */
        assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, -1, &now), 0);
        call(ch, ECHO, 60000, TORC_STATUS_UNAVAILABLE, "failed to connect");
        jump(jumps[i]);
        kit_backends_restart(kit, 0);
        uint64_t begun = now_ms();
        struct torc_call_options o = {TORC_SIZE(torc_call_options), .wait_for_ready = TORC_ON, .timeout_ms = 60000};
        r = torc_unary(ch, ECHO, "x", 1, &o);
        if (torc_result_code(r) != TORC_STATUS_OK)
            fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
        assert_in_range(now_ms() - begun, 0, SLOW_MS);
        torc_result_free(r);
    }
    torc_channel_free(ch);
    kit_backends_free(kit);
}

/* While the clock jumps under a mesh, no RPC fails, and no connection to a backend is made again. Updates still arrive:
 * RPCs reach the backend that only the update names. */
static void a_mesh_under_load(void **state)
{
    struct kit_mesh *k = kit_mesh_new(2);
    struct kit_load_report report;
    (void)state;
    kit_mesh_put_listener(k, "svc", "c", NULL);
    kit_mesh_put_cluster(k, "c", "lb_policy: ROUND_ROBIN");
    kit_mesh_put_endpoints(k, "c", "0/a: 0", NULL);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    kit_mesh_calls(ch, NULL, 4);
    struct kit_load *load = kit_load_new(ch, 200, 1);
    for (unsigned i = 1; i <= 6; i++) {
        kit_load_wait(load, 40 * i);
        jump(i % 2 ? DAY_S : -2 * DAY_S);
    }
    assert_int_equal(kit_mesh_handled(k, 1), 0);
    kit_mesh_put_endpoints(k, "c", "0/a: 1", NULL);
    kit_mesh_wait_backend(k, ch, NULL, 1);
    kit_load_free(load, &report);
    if (report.failed)
        fail_msg("%llu of %llu: %s", (unsigned long long)report.failed, (unsigned long long)report.calls, report.first);
    assert_in_range(kit_mesh_connections(k, 0), 1, 1);
    assert_in_range(kit_mesh_connections(k, 1), 1, 1);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

/* --- dates that follow the jump --- */

/* Writes a JWT that expires at `expires_s` (since 1970) into the file. Returns the JWT, which the caller frees with
 * tc_free. */
static char *write_token(const char *path, int64_t expires_s)
{
    struct tc_buf token = {0};
    char *claims = tc_asprintf("{\"exp\":%lld}", (long long)expires_s);
    tc_base64_encode(&token, "{}", 2, false);
    tc_buf_append_char(&token, '.');
    tc_base64_encode(&token, claims, strlen(claims), false);
    tc_buf_append_str(&token, ".c2ln");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(tc_buf_cstr(&token), f);
    assert_int_equal(fclose(f), 0);
    tc_free(claims);
    return tc_buf_take(&token);
}

/* Makes an RPC with the credentials `own` and asserts that the backend sees this token. */
static void expect_token(torc_channel *ch, torc_call_credentials *own, const char *token)
{
    torc_result *r;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 60000, .credentials = own,
                                  .wait_for_ready = TORC_ON};
    r = torc_unary(ch, "torc.test.Backend/Headers", "x", 1, &o);
    if (torc_result_code(r) != TORC_STATUS_OK)
        fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    struct tc_slice seen =
        tc_slice_of(torc_message_data(torc_result_response(r)), torc_message_size(torc_result_response(r)));
    if (tc_slice_find(seen, tc_slice_str(token)) < 0)
        fail_msg("no %s in %.*s", token, (int)seen.len, seen.data);
    torc_result_free(r);
}

static void dates(void **state)
{
    char path[] = "/tmp/torc-clock-XXXXXX";
    struct tc_server_opts so;
    struct kit_cert ca = kit_cert_make(
        &(struct kit_cert_opts){.common_name = "ca", .ca = true, .valid_from_s = -HOUR_S, .valid_to_s = 30 * DAY_S});
    struct kit_cert leaf = kit_cert_make(&(struct kit_cert_opts){
        .common_name = "b", .sans = "IP:127.0.0.1", .issuer = &ca, .valid_from_s = -HOUR_S, .valid_to_s = DAY_S});
    (void)state;
    close(mkstemp(path));
    char *first = write_token(path, time(NULL) + HOUR_S), *second;
    tc_server_opts_init(&so);
    so.tls = tc_tls_context_new(&(struct tc_tls_opts){.server = true,
                                                      .verify = TC_TLS_VERIFY_NONE,
                                                      .certificate_pem = kit_cert_pem(&leaf),
                                                      .private_key_pem = kit_cert_key(&leaf)},
                                NULL);
    assert_non_null(so.tls);
    struct kit_backends *kit = kit_backends_new(2, &so);
    struct torc_tls_options t = {TORC_SIZE(torc_tls_options), .roots_pem = ca.cert_pem};
    torc_credentials *creds = torc_credentials_tls(&t, NULL);
    torc_call_credentials *token = torc_call_credentials_jwt_token_file(path, NULL);
    torc_channel *old = channel_with(kit, 0, creds), *fresh = channel_with(kit, 1, creds);
    /* The token read first is used until it expires by the wall clock; then the file is read again. */
    expect_token(old, token, first);
    second = write_token(path, time(NULL) + 10 * HOUR_S);
    jump(-2 * HOUR_S);
    expect_token(old, token, first);
    jump(4 * HOUR_S);
    expect_token(old, token, second);
    jump(-2 * HOUR_S);
    expect_token(old, token, second);

    jump(2 * DAY_S); /* the certificate has expired: new connections fail, open ones continue */
    call(fresh, ECHO, 60000, TORC_STATUS_UNAVAILABLE, "certificate has expired");
    call(old, ECHO, 60000, TORC_STATUS_OK, "");
    jump(-2 * DAY_S - 2 * HOUR_S); /* the certificate is not valid yet */
    kit_mesh_wait_failure(fresh, TORC_STATUS_UNAVAILABLE, "certificate is not yet valid");
    jump(2 * HOUR_S);
    expect_token(fresh, token, second);
    torc_channel_free(old);
    torc_channel_free(fresh);
    torc_call_credentials_unref(token);
    torc_credentials_unref(creds);
    kit_backends_free(kit);
    tc_tls_context_unref(so.tls);
    kit_cert_fini(&ca);
    kit_cert_fini(&leaf);
    tc_free(first);
    tc_free(second);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(deadlines, set_right),
        cmocka_unit_test_setup(backoff, set_right),
        cmocka_unit_test_setup(a_mesh_under_load, set_right),
        cmocka_unit_test_setup(dates, set_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
