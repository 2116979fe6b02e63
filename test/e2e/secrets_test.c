/* Tokens do not outlive their use in Torc's memory. Three tests make RPCs over TLS, some retried or hedged, with
 * tokens of an application, of a file and of a metadata server. Meanwhile each block that Torc's code frees or
 * reallocates on a thread of the client is searched for the token. other_metadata_is_found shows that the search finds
 * what is left.
 *
 * The linker puts __wrap_free and __wrap_realloc in the place of free and realloc, in Torc and in the test. Libraries
 * such as OpenSSL call the functions of libc: their blocks are not searched. Nor are blocks that the servers' threads
 * free, since servers receive tokens. All tests share the servers: a TLS backend (kits/backends.h) and a metadata
 * server, each with a thread. Each call of use() has a client's runtime of its own, which the test's thread drives.
 * Torc fetches the tokens of the file and of the metadata server on threads of its own, which count as the client's. */
#include <dirent.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/cert.h"
#include "support/net/http_server.h"
#include "tls/tls.h"

#include "base/mem.h"
#include "base/parse.h"
#include "base/poison.h"

/* Most of its bytes have HPACK Huffman codes of more than 8 bits, so that the token is sent literally. */
#define TOKEN "~^|{}~^|{}~^|{}~a-token"
/* The characters of a JWT: base64url. */
#define SIGNATURE "c2lnbmF0dXJlLXRoYXQtaXMtc2VjcmV0"
#define RETRIES                                                                                                        \
    "{\"methodConfig\":[{\"name\":[{}],\"retryPolicy\":{\"maxAttempts\":4,\"initialBackoff\":\"0.001s\","              \
    "\"maxBackoff\":\"0.002s\",\"backoffMultiplier\":2,\"retryableStatusCodes\":[\"UNAVAILABLE\"]}}]}"
#define HEDGES                                                                                                         \
    "{\"methodConfig\":[{\"name\":[{}],\"hedgingPolicy\":{\"maxAttempts\":3,\"hedgingDelay\":\"0s\","                  \
    "\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}}]}"

void __real_free(void *ptr);
void *__real_realloc(void *ptr, size_t size);
void __wrap_free(void *ptr);
void *__wrap_realloc(void *ptr, size_t size);

static _Atomic(const char *) needle; /* NULL: no search */
static atomic_size_t given, found;   /* blocks that were searched, and those of them with the needle */
static pid_t servers[64];            /* the servers' threads */
static size_t n_servers;

static bool is_server(void)
{
    pid_t me = gettid();
    for (size_t i = 0; i < n_servers; i++)
        if (servers[i] == me)
            return true;
    return false;
}

/* Searches a block that is about to be freed or reallocated. NULL is allowed. */
static void look(void *ptr)
{
    const char *text = needle;
    if (!ptr || !text || is_server())
        return;
    given++;
    tc_unpoison(ptr, malloc_usable_size(ptr)); /* memory kept by a pool is poisoned, and must be searched as well */
    found += memmem(ptr, malloc_usable_size(ptr), text, strlen(text)) != NULL;
}

void __wrap_free(void *ptr)
{
    look(ptr);
    __real_free(ptr);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    look(ptr); /* realloc may move it */
    return __real_realloc(ptr, size);
}

static struct kit_cert ca, leaf;
static struct tc_tls_context *tls;
static struct kit_backends *kit;
static struct http_server *metadata;

static struct http_server_reply on_token(const char *head, void *arg)
{
    (void)head;
    (void)arg;
    return (struct http_server_reply){
        .what = HTTP_SERVER_ANSWER,
        .text = tc_strdup("HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nConnection: close\r\n\r\n{\"access_token\": "
                          "\"" TOKEN "\", \"expires_in\": 60}"),
    };
}

static int setup(void **state)
{
    (void)state;
    struct tc_server_opts so;
    setenv("GOOGLE_APPLICATION_CREDENTIALS", "", 1);
    setenv("CLOUDSDK_CONFIG", "/nonexistent", 1);
    ca = kit_cert_make(&(struct kit_cert_opts){.common_name = "ca", .ca = true});
    leaf = kit_cert_make(&(struct kit_cert_opts){.common_name = "b", .sans = "IP:127.0.0.1", .issuer = &ca});
    tls = tc_tls_context_new(&(struct tc_tls_opts){.server = true,
                                                   .verify = TC_TLS_VERIFY_NONE,
                                                   .certificate_pem = kit_cert_pem(&leaf),
                                                   .private_key_pem = kit_cert_key(&leaf)},
                             NULL);
    tc_server_opts_init(&so);
    so.tls = tls;
    kit = kit_backends_new(1, &so);
    metadata = http_server_new(on_token, NULL);
    DIR *d = opendir("/proc/self/task");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) && n_servers < TC_ARRAY_LEN(servers);) {
        uint64_t tid;
        if (tc_parse_u64(tc_slice_str(e->d_name), INT32_MAX, &tid) == 0 && tid != (uint64_t)gettid())
            servers[n_servers++] = (pid_t)tid;
    }
    closedir(d);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_backends_free(kit);
    http_server_free(metadata);
    tc_tls_context_unref(tls);
    kit_cert_fini(&leaf);
    kit_cert_fini(&ca);
    return 0;
}

/* Makes an RPC and asserts its status code. `own`: the RPC's credentials, borrowed, or NULL. */
static void call(torc_channel *ch, const char *method, const char *request, torc_call_credentials *own, int code)
{
    torc_result *r;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .credentials = own, .timeout_ms = 60000};
    r = torc_unary(ch, method, request, strlen(request), &o);
    if (torc_result_code(r) != code)
        fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    torc_result_free(r);
}

/* Makes a runtime and RPCs, and frees the runtime and both credentials, of which `own` may be NULL. Asserts that no
 * block that was freed or reallocated meanwhile had the secret in it. `config`: the service config, or NULL. */
static void use(const char *secret, torc_credentials *channel_creds, torc_call_credentials *own, const char *config)
{
    needle = secret;
    given = found = 0;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = channel_creds,
                                     .service_config_json = config};
    torc_runtime *rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), &o, NULL);
    assert_non_null(ch);
    for (int i = 0; i < 5; i++)
        call(ch, "a.B/C", "x", own, TORC_STATUS_OK);
    call(ch, "torc.test.Backend/Fail", "14", own, TORC_STATUS_UNAVAILABLE);
    torc_channel_free(ch);
    torc_runtime_free(rt);
    torc_credentials_unref(channel_creds);
    torc_call_credentials_unref(own);
    needle = NULL;
    assert_true(given > 0);
    if (found)
        fail_msg("%zu of %zu blocks had the secret in them", (size_t)found, (size_t)given);
}

/* Returns TLS credentials that trust the backend's certificate; the caller gives them back. */
static torc_credentials *channel_creds(void)
{
    struct torc_tls_options t = {TORC_SIZE(torc_tls_options), .roots_pem = ca.cert_pem};
    torc_credentials *c = torc_credentials_tls(&t, NULL);
    assert_non_null(c);
    return c;
}

static const char *const configs[] = {NULL, RETRIES, HEDGES};

/* Gives the token at once; if `arg` is not NULL, also as binary metadata. */
static void on_ask(torc_auth_request *request, void *arg)
{
    torc_metadata *m = torc_metadata_new();
    torc_metadata_add_string(m, "authorization", TOKEN);
    if (arg)
        torc_metadata_add(m, "x-more-bin", TOKEN, strlen(TOKEN));
    torc_auth_request_complete(request, TORC_STATUS_OK, NULL, m);
    torc_metadata_free(m);
}

static void an_applications_tokens(void **state)
{
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(configs); i++)
        use(TOKEN, channel_creds(), torc_call_credentials_plugin("mine", on_ask, NULL, NULL, NULL), configs[i]);
    /* x-more-bin is in base64 on the wire: this text must not outlive its use either. */
    struct tc_buf encoded = {0};
    tc_base64_encode(&encoded, TOKEN, strlen(TOKEN), false);
    use(tc_buf_cstr(&encoded), channel_creds(), torc_call_credentials_plugin("mine", on_ask, NULL, &encoded, NULL),
        NULL);
    tc_buf_fini(&encoded);
}

/* Shows that the search works: metadata that an application sets itself is not protected. */
static void other_metadata_is_found(void **state)
{
    (void)state;
    needle = TOKEN;
    found = 0;
    torc_metadata *m = torc_metadata_new();
    torc_metadata_add_string(m, "x-other", TOKEN);
    torc_metadata_free(m);
    needle = NULL;
    assert_int_equal(found, 1);
}

static void tokens_of_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/torc-secret-XXXXXX";
    /* {"exp":9999999999} */
    static const char token[] = "e30.eyJleHAiOjk5OTk5OTk5OTl9." SIGNATURE;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, token, strlen(token)), strlen(token));
    close(fd);
    for (size_t i = 0; i < TC_ARRAY_LEN(configs); i++)
        use(SIGNATURE, channel_creds(), torc_call_credentials_jwt_token_file(path, NULL), configs[i]);
    unlink(path);
}

static void access_tokens(void **state)
{
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(configs); i++) {
        torc_error *error = NULL;
        struct torc_google_options o = {TORC_SIZE(torc_google_options), .roots_pem = ca.cert_pem,
                                        .metadata_host = http_server_address(metadata)};
        torc_credentials *c = torc_credentials_google_default(&o, &error);
        if (!c)
            fail_msg("%s", torc_error_text(error));
        use(TOKEN, c, NULL, configs[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_metadata_is_found),
        cmocka_unit_test(an_applications_tokens),
        cmocka_unit_test(tokens_of_a_file),
        cmocka_unit_test(access_tokens),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
