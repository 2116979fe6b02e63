/* Responses of token endpoints: tokens and errors. Also transfers that fail, and endpoints that hang.
 *
 * expect_token and expect_failure pass a response to tc_oauth_token, without a network. test_fetch_faults calls
 * tc_http_fetch on the test's thread; nothing listens on the port that it asks. test_endpoint_that_hangs has whole
 * credentials, in real time, and an endpoint on the loopback interface: a fetch runs on a thread of its own, and the
 * loop, which the test turns, reports the fetch's failure to the RPC (on_answer). */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "creds/call/call.h"
#include "creds/call/http.h"
#include "creds/call/oauth.h"
#include "support/cmocka.h"

#define NOW (INT64_C(1700000000) * (int64_t)TC_NS_PER_S)

static void expect_token(const char *body, const char *value, double lifetime_s)
{
    struct tc_token t = {0};
    tc_oauth_token("http://m/", 200, tc_slice_str(body), NOW, &t);
    assert_non_null(t.metadata);
    assert_string_equal(t.metadata->fields[0].name->data, "authorization");
    assert_string_equal(t.metadata->fields[0].value->data, value);
    assert_int_equal(t.expires_ns, NOW + (int64_t)(lifetime_s * 1e9));
    tc_auth_metadata_unref(t.metadata);
}

static void expect_failure(int status, const char *body, int code, const char *text)
{
    struct tc_token t = {0};
    tc_oauth_token("http://m/", status, tc_slice_str(body), NOW, &t);
    assert_null(t.metadata);
    assert_int_equal(t.error.code, code);
    assert_string_equal(tc_status_text(&t.error), text);
    tc_status_fini(&t.error);
}

static void test_tokens(void **state)
{
    (void)state;
    expect_token("{\"access_token\":\"ya29.a\",\"expires_in\":3599,\"token_type\":\"Bearer\"}", "Bearer ya29.a", 3599);
    expect_token("{\"access_token\":\"t\",\"expires_in\":0.5}", "Bearer t", 0.5);
    expect_token("{\"access_token\":\"t\",\"expires_in\":1e200,\"token_type\":\"bearer\"}", "Bearer t", 86400e3);
    expect_token("{\"access_token\":\"t\",\"expires_in\":60,\"token_type\":\"DPoP\",\"scope\":\"x\"}", "DPoP t", 60);
    /* An expired token is left to tc_token_refuse_expired. */
    expect_token("{\"access_token\":\"t\",\"expires_in\":0}", "Bearer t", 0);
    expect_token("{\"access_token\":\"t\",\"expires_in\":-1e200}", "Bearer t", -86400e3);
}

static void test_failures(void **state)
{
    (void)state;
    const char *const text = "no token from http://m/: ";
    const struct {
        const char *body, *why;
    } bad[] = {
        {"", "its answer is not a JSON object"},
        {"[]", "its answer is not a JSON object"},
        {"<html>", "its answer is not a JSON object"},
        {"{}", "its answer has no string access_token"},
        {"{\"access_token\":7,\"expires_in\":7}", "its answer has no string access_token"},
        {"{\"access_token\":\"t\"}", "its answer has no number expires_in"},
        {"{\"access_token\":\"t\",\"expires_in\":\"60\"}", "its answer has no number expires_in"},
        {"{\"access_token\":\"\",\"expires_in\":60}", "its token cannot be sent in a header"},
        {"{\"access_token\":\"a\\r\\nx: y\",\"expires_in\":60}", "its token cannot be sent in a header"},
        {"{\"access_token\":\"t\",\"expires_in\":60,\"token_type\":\"a\\nb\"}", "its token cannot be sent in a header"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        char *wanted = tc_asprintf("%s%s", text, bad[i].why);
        expect_failure(200, bad[i].body, TORC_STATUS_UNAUTHENTICATED, wanted);
        tc_free(wanted);
    }
    /* A83: a status that http-grpc-status-mapping maps to UNAVAILABLE, and any other status. */
    static const int unavailable[] = {429, 502, 503, 504}, refused[] = {204, 302, 400, 401, 403, 404, 500};
    for (size_t i = 0; i < TC_ARRAY_LEN(unavailable); i++) {
        char *wanted = tc_asprintf("%sHTTP status %d", text, unavailable[i]);
        expect_failure(unavailable[i], "", TORC_STATUS_UNAVAILABLE, wanted);
        tc_free(wanted);
    }
    for (size_t i = 0; i < TC_ARRAY_LEN(refused); i++) {
        char *wanted = tc_asprintf("%sHTTP status %d", text, refused[i]);
        expect_failure(refused[i], "{\"error\":7}", TORC_STATUS_UNAUTHENTICATED, wanted);
        tc_free(wanted);
    }
    expect_failure(400, "{\"error\":\"invalid_grant\"}", TORC_STATUS_UNAUTHENTICATED,
                   "no token from http://m/: HTTP status 400 (invalid_grant)");
    expect_failure(400, "{\"error\":\"a\\nb\"}", TORC_STATUS_UNAUTHENTICATED,
                   "no token from http://m/: HTTP status 400");
}

static void test_fetch_faults(void **state)
{
    (void)state;
    struct tc_http_stop stop;
    struct tc_buf body = {0};
    char *why = NULL;
    int status = 0;
    tc_http_stop_init(&stop);
    struct tc_http_request r = {.url = "file:///etc/passwd", .timeout_ms = 5000, .direct = true};
    assert_int_equal(tc_http_fetch(&r, &stop, &status, &body, &why), TORC_EIO);
    assert_non_null(strstr(why, "Protocol \"file\""));
    tc_free(why);
    r.url = "http://127.0.0.1:1/";
    assert_int_equal(tc_http_fetch(&r, &stop, &status, &body, &why), TORC_EIO);
    assert_non_null(strstr(why, "127.0.0.1 port 1"));
    tc_free(why);
    tc_http_stop_now(&stop);
    assert_int_equal(tc_http_fetch(&r, &stop, &status, &body, &why), TORC_EIO);
    tc_free(why);
    assert_int_equal(body.len, 0);
    assert_int_equal(status, 0);
    tc_http_stop_fini(&stop);
    tc_buf_fini(&body);
}

struct asker {
    struct tc_auth_waiter waiter;
    bool answered;
};

static void on_answer(struct tc_auth_waiter *w, struct tc_auth_metadata *m, const struct tc_status *error)
{
    struct asker *a = TC_CONTAINER_OF(w, struct asker, waiter);
    a->answered = true;
    assert_null(m);
    assert_int_equal(error->code, TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(tc_status_text(error), "no token from http://127.0.0.1:"));
    assert_non_null(strstr(tc_status_text(error), "timed out after"));
}

/* A server that takes the connection and the request and never answers: a socket that only listens is enough. */
static void test_endpoint_that_hangs(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    char *host = tc_asprintf("127.0.0.1:%d", ntohs(at.sin_port));
    const struct tc_auth_context context = {.service_url = "https://a/b", .method = "m"};
    struct tc_loop *loop = tc_loop_new(NULL);
    torc_call_credentials *c = tc_metadata_server_creds(host, 50);
    struct asker a = {.waiter.fn = on_answer};
    struct tc_auth_metadata *m = NULL;
    struct tc_status error = {0};
    int rc;
    assert_int_equal(c->ops->get(c, loop, &context, &a.waiter, &m, &error), TORC_EAGAIN);
    while (!a.answered)
        tc_loop_turn(loop, 1000);
    /* In the backoff get fails at once. If this thread was held up, the backoff may be over: another fetch fails. */
    while ((rc = c->ops->get(c, loop, &context, &a.waiter, &m, &error)) == TORC_EAGAIN)
        for (a.answered = false; !a.answered;)
            tc_loop_turn(loop, 1000);
    assert_int_equal(rc, TORC_EIO);
    assert_int_equal(error.code, TORC_STATUS_UNAVAILABLE);
    tc_status_fini(&error);
    torc_call_credentials_unref(c);
    /* Freeing the credentials while the endpoint hangs does not wait for the fetch's time limit. */
    c = tc_metadata_server_creds(host, TC_TOKEN_FETCH_MS);
    uint64_t begin = tc_system_clock.monotonic_ns(NULL);
    assert_int_equal(c->ops->get(c, loop, &context, &a.waiter, &m, &error), TORC_EAGAIN);
    tc_auth_waiter_cancel(&a.waiter);
    torc_call_credentials_unref(c);
    assert_true(tc_system_clock.monotonic_ns(NULL) - begin < TC_TOKEN_FETCH_MS * TC_NS_PER_MS / 2);
    tc_loop_free(loop);
    tc_free(host);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_fetch_faults),
        cmocka_unit_test(test_endpoint_that_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
