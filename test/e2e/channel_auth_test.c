/* Call credentials on real connections: on each RPC, over TLS only, awaited within the deadline. The retry policy may
 * retry an RPC whose credentials fail.
 *
 * The tests share two echo servers (kits/backends.h), one with TLS by a CA of the test and one without. Each has a
 * thread of its own, and answers with the metadata that it saw. The client's loop runs inside of the test's calls
 * (TORC_RUNTIME_CALLER), so on_ask and on_release run on the test's thread. An answer may come from another thread,
 * which the test joins. struct plugin is the application's side of torc_call_credentials_plugin; it is on the test's
 * stack, and outlives the credentials.
 *
 * test_control_plane tests which credentials reach a control plane (A27, A97). For each channel it makes a client's
 * runtime with a thread, and another TLS server as the control plane. struct ads has a mutex for the control plane's
 * thread. */
#include <jansson.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/cert.h"
#include "support/openssl_1_1.h"
#include "tls/tls.h"

#define HEADERS "torc.test.Backend/Headers"

static torc_runtime *rt;
static struct kit_cert ca, leaf;
static struct tc_tls_context *tls;
static struct kit_backends *secure, *plain;
static torc_credentials *channel_creds;

static int setup(void **state)
{
    (void)state;
    rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    ca = kit_cert_make(&(struct kit_cert_opts){.common_name = "ca", .ca = true});
    leaf = kit_cert_make(&(struct kit_cert_opts){.common_name = "b", .sans = "IP:127.0.0.1", .issuer = &ca});
    tls = tc_tls_context_new(&(struct tc_tls_opts){.server = true,
                                                   .verify = TC_TLS_VERIFY_NONE,
                                                   .certificate_pem = kit_cert_pem(&leaf),
                                                   .private_key_pem = kit_cert_key(&leaf)},
                             NULL);
    struct tc_server_opts so;
    tc_server_opts_init(&so);
    so.tls = tls;
    secure = kit_backends_new(1, &so);
    plain = kit_backends_new(1, NULL);
    struct torc_tls_options t = {TORC_SIZE(torc_tls_options), .roots_pem = ca.cert_pem};
    channel_creds = torc_credentials_tls(&t, NULL);
    return channel_creds ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    torc_credentials_unref(channel_creds);
    int rc = torc_runtime_free(rt);
    kit_backends_free(secure);
    kit_backends_free(plain);
    tc_tls_context_unref(tls);
    kit_cert_fini(&leaf);
    kit_cert_fini(&ca);
    return rc;
}

static torc_channel *open_channel(struct kit_backends *kit, torc_credentials *creds)
{
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    if (creds)
        o.credentials = creds;
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), &o, NULL);
    assert_non_null(ch);
    return ch;
}

/* Makes a call and returns its status code. Stores in `seen` the request's headers as the backend saw them, one a line,
 * and in `message` the text of the status. Both are truncated if long. */
static int call(torc_channel *ch, torc_call_credentials *own, char seen[2048], char message[256])
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .credentials = own, .timeout_ms = 60000};
    torc_result *r = torc_unary(ch, HEADERS, "x", 1, &o);
    snprintf(seen, 2048, "%.*s", (int)torc_message_size(torc_result_response(r)),
             (const char *)torc_message_data(torc_result_response(r)));
    snprintf(message, 256, "%s", torc_result_text(r));
    if (torc_result_code(r))
        print_message("%s: %s\n", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    int code = torc_result_code(r);
    torc_result_free(r);
    return code;
}

/* How the application's credentials answer: at once, from another thread, never, or with an error. */
enum how { AT_ONCE, THREAD, NEVER, REFUSE };

/* The application's credentials, and what they saw. */
struct plugin {
    enum how how;
    int asked, released;        /* requests so far, and calls of on_release */
    char url[128], method[64];  /* of the last request of on_ask */
    torc_auth_request *pending; /* the last request that was left to `thread` or to the test */
    pthread_t thread;           /* completes `pending`; the test joins it */
};

/* Completes the request with the metadata "x-who: number N" and a binary header. */
static void answer(torc_auth_request *request, int n)
{
    char text[32];
    snprintf(text, sizeof(text), "number %d", n);
    torc_metadata *m = torc_metadata_new();
    torc_metadata_add_string(m, "x-who", text);
    torc_metadata_add(m, "x-sign-bin", "\0\1\2", 3);
    torc_auth_request_complete(request, TORC_STATUS_OK, NULL, m);
    torc_metadata_free(m);
}

static void *answer_later(void *arg)
{
    struct plugin *p = arg;
    answer(p->pending, p->asked);
    return NULL;
}

static void on_ask(torc_auth_request *request, void *arg)
{
    struct plugin *p = arg;
    p->asked++;
    snprintf(p->url, sizeof(p->url), "%s", torc_auth_request_service_url(request));
    snprintf(p->method, sizeof(p->method), "%s", torc_auth_request_method(request));
    if (p->how == AT_ONCE) {
        answer(request, p->asked);
    } else if (p->how == REFUSE) {
        torc_auth_request_complete(request, TORC_STATUS_NOT_FOUND, "no such user", NULL);
    } else {
        p->pending = request;
        if (p->how == THREAD)
            assert_int_equal(pthread_create(&p->thread, NULL, answer_later, p), 0);
    }
}

static void on_release(void *arg)
{
    ((struct plugin *)arg)->released++;
}

/* Runs the loop until the credentials are released. A channel holds its credentials until a turn of the loop ends the
 * channel. */
static void await_release(const struct plugin *p)
{
    while (p->released == 0)
        assert_true(torc_runtime_poll(rt, 1000) >= 0);
}

static void on_done(torc_stream *waiting, const torc_result *result, void *arg)
{
    (void)waiting;
    *(int *)arg = torc_result_code(result);
}

static void test_plugin(void **state)
{
    (void)state;
    struct plugin p = {.how = AT_ONCE};
    char seen[2048], message[256];
    assert_null(torc_call_credentials_plugin(NULL, on_ask, NULL, NULL, NULL));
    torc_call_credentials *cc = torc_call_credentials_plugin("mine", on_ask, on_release, &p, NULL);
    torc_credentials *both = torc_credentials_composite(channel_creds, cc, NULL);
    torc_channel *ch = open_channel(secure, both);
    assert_int_equal(call(ch, NULL, seen, message), TORC_STATUS_OK);
    assert_non_null(strstr(seen, "x-who: number 1\nx-sign-bin: AAEC\n"));
    char url[128];
    snprintf(url, sizeof(url), "https://%s/torc.test.Backend", kit_backends_address(secure, 0));
    assert_string_equal(p.url, url);
    assert_string_equal(p.method, "Headers");
    p.how = THREAD;
    assert_int_equal(call(ch, NULL, seen, message), TORC_STATUS_OK);
    pthread_join(p.thread, NULL);
    assert_non_null(strstr(seen, "x-who: number 2\n"));
    /* A54: call credentials may not fail with NOT_FOUND: the status becomes INTERNAL. */
    p.how = REFUSE;
    assert_int_equal(call(ch, NULL, seen, message), TORC_STATUS_INTERNAL);
    assert_non_null(strstr(message, "Illegal status code from call credentials; original status: NOT_FOUND:"));
    assert_non_null(strstr(message, "no such user"));

    /* Nobody answers: the status says that the RPC waited for the credentials. A late answer is ignored. */
    p.how = NEVER;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 1000};
    torc_result *r = torc_unary(ch, HEADERS, "", 0, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(torc_result_text(r), "the call credentials (mine)"));
    assert_int_equal(torc_result_attempts(r), 0);
    torc_result_free(r);
    answer(p.pending, 0);

    /* The channel is freed while an RPC waits; the answer comes afterwards. */
    o.timeout_ms = 0;
    struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_done = on_done};
    int done = -1, asked = p.asked;
    torc_stream *waiting = torc_stream_start(ch, HEADERS, &o, &events, &done, NULL);
    assert_non_null(waiting);
    while (p.asked == asked)
        torc_runtime_poll(rt, 1000);
    torc_channel_free(ch);
    while (done < 0)
        torc_runtime_poll(rt, 1000);
    assert_int_equal(done, TORC_STATUS_CANCELLED);
    torc_stream_free(waiting);
    assert_string_equal(torc_auth_request_service_url(p.pending), url); /* still valid after the RPC */
    assert_string_equal(torc_auth_request_method(p.pending), "Headers");
    answer(p.pending, 0);
    assert_null(torc_auth_request_service_url(NULL));
    assert_null(torc_auth_request_method(NULL));
    torc_auth_request_complete(NULL, TORC_STATUS_OK, NULL, NULL);
    torc_credentials_unref(both);
    assert_int_equal(p.released, 0);
    torc_call_credentials_unref(cc);
    await_release(&p);
}

static void *fail_later(void *arg)
{
    torc_auth_request_complete(((struct plugin *)arg)->pending, TORC_STATUS_NOT_FOUND, "no such user yet", NULL);
    return NULL;
}

/* Fails the first request at once and the second one from another thread. Answers later requests. */
static void on_ask_until_third(torc_auth_request *request, void *arg)
{
    struct plugin *p = arg;
    if (++p->asked == 1) {
        torc_auth_request_complete(request, TORC_STATUS_UNAVAILABLE, "no token yet", NULL);
    } else if (p->asked == 2) {
        p->pending = request;
        assert_int_equal(pthread_create(&p->thread, NULL, fail_later, p), 0);
    } else {
        answer(request, p->asked);
    }
}

/* When credentials fail, the retry policy sees the rewritten code (A54): INTERNAL for NOT_FOUND. */
static void test_retried(void **state)
{
    (void)state;
    static const struct {
        const char *codes;
        int code, asked;
    } rows[] = {{"\"UNAVAILABLE\",\"INTERNAL\"", TORC_STATUS_OK, 3},
                {"\"UNAVAILABLE\",\"NOT_FOUND\"", TORC_STATUS_INTERNAL, 2},
                {"\"INTERNAL\"", TORC_STATUS_UNAVAILABLE, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct plugin p = {.how = AT_ONCE};
        char seen[2048], message[256], config[512];
        snprintf(config, sizeof(config),
                 "{\"methodConfig\":[{\"name\":[{}],\"retryPolicy\":{\"maxAttempts\":3,\"initialBackoff\":"
                 "\"0.001s\",\"maxBackoff\":\"0.001s\",\"backoffMultiplier\":1,\"retryableStatusCodes\":[%s]}}]}",
                 rows[i].codes);
        torc_call_credentials *cc = torc_call_credentials_plugin("mine", on_ask_until_third, on_release, &p, NULL);
        torc_credentials *both = torc_credentials_composite(channel_creds, cc, NULL);
        struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = both,
                                         .service_config_json = config};
        torc_channel *ch = torc_channel_new(rt, kit_backends_target(secure), &o, NULL);
        assert_non_null(ch);
        assert_int_equal(call(ch, NULL, seen, message), rows[i].code);
        assert_int_equal(p.asked, rows[i].asked);
        if (rows[i].code == TORC_STATUS_OK)
            assert_non_null(strstr(seen, "grpc-previous-rpc-attempts: 2\n"));
        if (p.asked > 1)
            pthread_join(p.thread, NULL);
        torc_channel_free(ch);
        torc_credentials_unref(both);
        torc_call_credentials_unref(cc);
        await_release(&p);
    }
}

static void test_own_and_both(void **state)
{
    (void)state;
    struct plugin a = {.how = THREAD}, b = {.how = AT_ONCE};
    char seen[2048], message[256];
    torc_call_credentials *ca_creds = torc_call_credentials_plugin("a", on_ask, on_release, &a, NULL);
    torc_call_credentials *cb = torc_call_credentials_plugin("b", on_ask, on_release, &b, NULL);
    torc_channel *ch = open_channel(secure, channel_creds);
    assert_int_equal(call(ch, ca_creds, seen, message), TORC_STATUS_OK);
    pthread_join(a.thread, NULL);
    assert_non_null(strstr(seen, "x-who: number 1\n"));
    assert_int_equal(call(ch, NULL, seen, message), TORC_STATUS_OK);
    assert_null(strstr(seen, "x-who"));
    torc_channel_free(ch);

    /* The channel's credentials, then the call's, each asked once. */
    torc_credentials *with_a = torc_credentials_composite(channel_creds, ca_creds, NULL);
    ch = open_channel(secure, with_a);
    b.asked = 6;
    assert_int_equal(call(ch, cb, seen, message), TORC_STATUS_OK);
    pthread_join(a.thread, NULL);
    const char *first = strstr(seen, "x-who: number 2\n"), *second = strstr(seen, "x-who: number 7\n");
    assert_true(first && second && first < second);
    assert_int_equal(a.asked, 2);
    torc_channel_free(ch);
    torc_credentials_unref(with_a);
    torc_call_credentials_unref(ca_creds);
    torc_call_credentials_unref(cb);
    await_release(&a);
    await_release(&b);
}

static void test_never_over_plaintext(void **state)
{
    (void)state;
    struct plugin p = {.how = AT_ONCE};
    char seen[2048], message[256];
    torc_call_credentials *cc = torc_call_credentials_plugin("mine", on_ask, on_release, &p, NULL);
    torc_credentials *insecure = torc_credentials_insecure(), *both = torc_credentials_composite(insecure, cc, NULL);
    torc_channel *ch = open_channel(plain, both), *bare = open_channel(plain, NULL);
    assert_int_equal(call(ch, NULL, seen, message), TORC_STATUS_UNAUTHENTICATED);
    assert_non_null(strstr(message, "no transport security"));
    assert_non_null(strstr(message, kit_backends_address(plain, 0)));
    assert_int_equal(call(bare, cc, seen, message), TORC_STATUS_UNAUTHENTICATED);
    /* Credentials are not asked, and nothing reaches the backend; calls without credentials succeed. */
    assert_int_equal(p.asked, 0);
    assert_int_equal(kit_backends_counts(plain, 0).requests, 0);
    assert_int_equal(call(bare, NULL, seen, message), TORC_STATUS_OK);
    torc_channel_free(ch);
    torc_channel_free(bare);
    torc_credentials_unref(both);
    torc_credentials_unref(insecure);
    torc_call_credentials_unref(cc);
    await_release(&p);
}

static void write_token(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_jwt_file(void **state)
{
    (void)state;
    char path[] = "/tmp/torc-jwt-XXXXXX", seen[2048], message[256];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    torc_call_credentials *missing = torc_call_credentials_jwt_token_file("/nothing/here", NULL);
    torc_call_credentials *empty = torc_call_credentials_jwt_token_file(path, NULL);
    torc_channel *ch = open_channel(secure, channel_creds);
    assert_int_equal(call(ch, missing, seen, message), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(message, "/nothing/here cannot be read: No such file"));
    assert_int_equal(call(ch, empty, seen, message), TORC_STATUS_UNAUTHENTICATED);
    assert_non_null(strstr(message, "three parts"));
    /* The token's payload is {"exp":9999999999}. */
    write_token(path, "e30.eyJleHAiOjk5OTk5OTk5OTl9.c2ln\n");
    torc_call_credentials *good = torc_call_credentials_jwt_token_file(path, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(call(ch, good, seen, message), TORC_STATUS_OK);
        assert_non_null(strstr(seen, "authorization: Bearer e30.eyJleHAiOjk5OTk5OTk5OTl9.c2ln\n"));
    }
    unlink(path);
    torc_channel_free(ch);
    torc_call_credentials_unref(missing);
    torc_call_credentials_unref(empty);
    torc_call_credentials_unref(good);
}

/* A control plane that keeps the header fields of the last call, without pseudo-headers, and fails each call. */
struct ads {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    char seen[2048];
    int calls;
};

static void on_ads(void *arg, struct tc_server_call *server_call)
{
    struct ads *a = arg;
    const struct tc_headers *h = tc_server_call_metadata(server_call);
    pthread_mutex_lock(&a->mutex);
    a->seen[0] = '\0';
    for (size_t i = 0; i < h->len; i++)
        if (h->data[i].name.data[0] != ':')
            snprintf(a->seen + strlen(a->seen), sizeof(a->seen) - strlen(a->seen), "%.*s: %.*s\n",
                     (int)h->data[i].name.len, h->data[i].name.data, (int)h->data[i].value.len, h->data[i].value.data);
    a->calls++;
    pthread_cond_signal(&a->cond);
    pthread_mutex_unlock(&a->mutex);
    tc_server_call_finish(server_call, TORC_STATUS_UNAVAILABLE, "enough seen", NULL);
}

static void serve_ads(struct tc_server *server, void *arg)
{
    tc_server_add_method(server, "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
                         on_ads, arg);
}

/* Opens a channel with the credentials (NULL: insecure). The channel's bootstrap names one TLS server. Stores in *a
 * what this server saw. entry: further JSON members of the server in the bootstrap, with a leading comma, or "". */
static void ask_control_plane(struct ads *a, torc_credentials *creds, const char *entry)
{
    char bootstrap[1024];
    struct tc_server_opts so;
    tc_server_opts_init(&so);
    so.tls = tls;
    struct kit_backends *server = kit_backends_new(1, &so);
    a->calls = 0;
    kit_backends_do(server, serve_ads, 0, a);
    snprintf(bootstrap, sizeof(bootstrap), "{\"xds_servers\":[{\"server_uri\":\"ipv4:%s\"%s}],\"node\":{\"id\":\"n\"}}",
             kit_backends_address(server, 0), entry);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    if (creds)
        o.credentials = creds;
    o.xds_bootstrap_json = bootstrap;
    torc_runtime *own = torc_runtime_new(NULL, NULL);
    torc_channel *ch = torc_channel_new(own, "xds:///orders", &o, NULL);
    assert_non_null(ch);
    torc_channel_state(ch, true);
    pthread_mutex_lock(&a->mutex);
    while (a->calls == 0)
        pthread_cond_wait(&a->cond, &a->mutex);
    pthread_mutex_unlock(&a->mutex);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(own), 0);
    kit_backends_free(server); /* the server's thread has ended: *a needs no lock */
}

/* Writes a service account's key file with a new key. */
static void write_service_account(const char *path)
{
    EVP_PKEY *key = EVP_RSA_gen(2048);
    BIO *bio = BIO_new(BIO_s_mem());
    char *pem;
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
    size_t len = (size_t)BIO_get_mem_data(bio, &pem);
    json_t *account = json_pack("{s:s, s:s, s:s, s:s%}", "type", "service_account", "client_email", "me@p.test",
                                "private_key_id", "k", "private_key", pem, len);
    assert_int_equal(json_dump_file(account, path, 0), 0);
    json_decref(account);
    BIO_free(bio);
    EVP_PKEY_free(key);
}

static void test_control_plane(void **state)
{
    TC_CASE(BS02);
    (void)state;
    struct ads a = {.calls = 0};
    pthread_mutex_init(&a.mutex, NULL);
    pthread_cond_init(&a.cond, NULL);
    /* A27: a server without channel_creds gets the channel's credentials without their call credentials. */
    struct plugin p = {.how = AT_ONCE};
    torc_call_credentials *cc = torc_call_credentials_plugin("mine", on_ask, on_release, &p, NULL);
    torc_credentials *both = torc_credentials_composite(channel_creds, cc, NULL);
    ask_control_plane(&a, both, "");
    assert_non_null(strstr(a.seen, "user-agent"));
    assert_null(strstr(a.seen, "x-who"));
    assert_int_equal(p.asked, 0);

    /* A97: call credentials of the bootstrap. */
    char path[] = "/tmp/torc-jwt-XXXXXX", ca_path[] = "/tmp/torc-ca-XXXXXX", entry[512];
    close(mkstemp(path));
    close(mkstemp(ca_path));
    write_token(path, "e30.eyJleHAiOjk5OTk5OTk5OTl9.c2ln");
    write_token(ca_path, ca.cert_pem);
    snprintf(entry, sizeof(entry),
             ",\"channel_creds\":[{\"type\":\"tls\",\"config\":{\"ca_certificate_file\":\"%s\"}}],"
             "\"call_creds\":[{\"type\":\"jwt_token_file\",\"config\":{\"jwt_token_file\":\"%s\"}}]",
             ca_path, path);
    ask_control_plane(&a, NULL, entry);
    assert_non_null(strstr(a.seen, "authorization: Bearer e30.eyJleHAiOjk5OTk5OTk5OTl9.c2ln\n"));

    /* A27: google_default in the bootstrap, with a service account. */
    write_service_account(path);
    setenv("GOOGLE_APPLICATION_CREDENTIALS", path, 1);
    setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", ca_path, 1);
    ask_control_plane(&a, NULL, ",\"channel_creds\":[{\"type\":\"google_default\"}]");
    assert_non_null(strstr(a.seen, "authorization: Bearer eyJ"));
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    unsetenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH");
    unlink(path);
    unlink(ca_path);
    torc_credentials_unref(both);
    torc_call_credentials_unref(cc);
    pthread_mutex_destroy(&a.mutex);
    pthread_cond_destroy(&a.cond);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plugin),       cmocka_unit_test(test_retried),
        cmocka_unit_test(test_own_and_both), cmocka_unit_test(test_never_over_plaintext),
        cmocka_unit_test(test_jwt_file),     cmocka_unit_test(test_control_plane),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
