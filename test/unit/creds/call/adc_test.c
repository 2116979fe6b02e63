/* Application default credentials (creds/call/adc.h): the files, the order in which they are looked for, channel
 * credentials made of them, and a service account's tokens.
 *
 * `folder` is made before the first test and removed after the last one; a test removes the files that it writes. A
 * test that reads the environment begins with clean_environment, which makes `folder` the home. No test uses the
 * network: credentials with a token endpoint are made and freed, and fetch nothing. A service account's tokens are
 * signed on the background thread, and the loop, which the test turns, delivers them. */
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "creds/call/adc.h"
#include "creds/call/service_account.h"
#include "creds/creds.h"
#include "creds/registry.h"
#include "support/cmocka.h"
#include "support/openssl_1_1.h"

static char folder[] = "/tmp/torc-adc-XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void clean_environment(void)
{
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    unsetenv("CLOUDSDK_CONFIG");
    unsetenv("GCE_METADATA_HOST");
    unsetenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH");
    setenv("HOME", folder, 1);
}

/* Returns the path of the new file in `folder` (tc_free). */
static char *write_file(const char *name, const char *text)
{
    char *path = tc_asprintf("%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static void expect_fault(const char *text, const char *part)
{
    char *why = NULL;
    assert_null(tc_adc_parse(tc_slice_str(text), NULL, &why));
    if (!strstr(why, part))
        fail_msg("\"%s\" has no \"%s\"", why, part);
    tc_free(why);
}

#define USER(uri)                                                                                                      \
    "{\"type\":\"authorized_user\",\"client_id\":\"i\",\"client_secret\":\"s\",\"refresh_token\":\"r\"" uri "}"

static void test_files(void **state)
{
    (void)state;
    expect_fault("", "not a JSON object");
    expect_fault("[]", "not a JSON object");
    expect_fault("{}", "type is missing");
    expect_fault("{\"type\":7}", "type");
    expect_fault("{\"type\":\"external_account\"}", "type \"external_account\" is not supported");
    expect_fault("{\"type\":\"authorized_user\"}", "client_id is missing");
    expect_fault("{\"type\":\"service_account\"}", "private_key is missing");
    expect_fault(
        "{\"type\":\"service_account\",\"private_key\":\"hunter2\",\"client_email\":\"a\",\"private_key_id\":\"k\"}",
        "private_key is not an RSA key in PEM");
    /* A refresh token leaves this machine by https alone. */
    expect_fault(USER(",\"token_uri\":\"http://oauth.test/token\""), "neither https nor on this machine");
    expect_fault(USER(",\"token_uri\":\"http://127.0.0.1.evil.test/\""), "neither https nor on this machine");
    expect_fault(USER(",\"token_uri\":\"http://127.0.0.1:80@evil.test/\""), "neither https nor on this machine");
    expect_fault(USER(",\"token_uri\":\"file:///etc/passwd\""), "neither https nor on this machine");
    static const char *const good[] = {USER(""), USER(",\"token_uri\":\"https://oauth.test/token\""),
                                       USER(",\"token_uri\":\"http://127.0.0.1:8080/t\""),
                                       USER(",\"token_uri\":\"http://[::1]/t\"")};
    for (size_t i = 0; i < TC_ARRAY_LEN(good); i++) {
        torc_call_credentials *c = tc_adc_parse(tc_slice_str(good[i]), NULL, NULL);
        assert_non_null(c);
        torc_call_credentials_unref(c);
    }
}

/* Expects credentials from the environment; or, if not `found`, an error with this part. */
static void expect_found(bool found, const char *part)
{
    char *why = NULL;
    torc_call_credentials *c = tc_adc_find(&(struct tc_adc_opts){.roots_file = NULL}, &why);
    assert_int_equal(c != NULL, found);
    if (!found && !strstr(why, part))
        fail_msg("\"%s\" has no \"%s\"", why, part);
    torc_call_credentials_unref(c);
    tc_free(why);
}

static void test_order(void **state)
{
    (void)state;
    clean_environment();
    /* Nothing at all: the metadata server, asked when a token is needed. */
    expect_found(true, NULL);
    /* gcloud's file, in both of its folders. Each file has an unknown type, which the error shows. */
    char *config = tc_asprintf("%s/.config", folder), *gcloud = tc_asprintf("%s/.config/gcloud", folder);
    mkdir(config, 0700);
    mkdir(gcloud, 0700);
    char *home = write_file(".config/gcloud/application_default_credentials.json", "{\"type\":\"home\"}");
    expect_found(false, "type \"home\"");
    char *sdk = write_file("application_default_credentials.json", "{\"type\":\"sdk\"}");
    setenv("CLOUDSDK_CONFIG", folder, 1);
    expect_found(false, "type \"sdk\"");
    /* GOOGLE_APPLICATION_CREDENTIALS wins over gcloud's file; the file that the variable names must exist. */
    char *named = write_file("named.json", "{\"type\":\"named\"}");
    setenv("GOOGLE_APPLICATION_CREDENTIALS", named, 1);
    expect_found(false, "named.json: type \"named\"");
    unlink(named);
    expect_found(false, "named.json: No such file or directory");
    /* A FIFO is not opened, and a file that is too large is not read. */
    assert_int_equal(mkfifo(named, 0600), 0);
    expect_found(false, "named.json: it is a FIFO, not a regular file");
    unlink(named);
    tc_free(write_file("named.json", ""));
    assert_int_equal(truncate(named, 65537), 0);
    expect_found(false, "named.json: larger than 65536 bytes");
    unlink(named);
    /* The option wins over the variable. */
    char *why = NULL;
    assert_null(tc_adc_find(&(struct tc_adc_opts){.credentials_file = sdk}, &why));
    assert_non_null(strstr(why, "type \"sdk\""));
    tc_free(why);
    /* An empty option, or an empty variable, counts as not set. */
    setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nothing/here", 1);
    assert_null(tc_adc_find(&(struct tc_adc_opts){.credentials_file = ""}, &why));
    assert_non_null(strstr(why, "/nothing/here"));
    tc_free(why);
    setenv("GOOGLE_APPLICATION_CREDENTIALS", "", 1);
    expect_found(false, "type \"sdk\"");
    unlink(sdk);
    expect_found(true, NULL);
    unlink(home);
    rmdir(gcloud);
    rmdir(config);
    tc_free(home);
    tc_free(sdk);
    tc_free(named);
    tc_free(config);
    tc_free(gcloud);
}

static void test_channel_credentials(void **state)
{
    (void)state;
    clean_environment();
    torc_credentials *c = torc_credentials_google_default(NULL, NULL), *tls = torc_credentials_tls(NULL, NULL);
    assert_non_null(c);
    assert_string_equal(c->scheme, "https");
    assert_true(tc_rstr_eq(c->key, tls->key));
    assert_non_null(c->call);
    torc_credentials_unref(c);
    torc_credentials_unref(tls);

    char *why = NULL;
    torc_error *error = NULL;
    setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "/nothing/here", 1);
    assert_null(torc_credentials_google_default(NULL, &error));
    assert_string_equal(torc_error_text(error),
                        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: /nothing/here: No such file or directory");
    torc_error_clear(&error);
    assert_null(tc_creds_from_config("google_default", NULL, &why));
    assert_non_null(strstr(why, "/nothing/here"));
    tc_free(why);
    /* Quoted parts of an error are bounded. */
    char path[5000];
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", path, 1);
    assert_null(torc_credentials_google_default(NULL, &error));
    assert_in_range(strlen(torc_error_text(error)), 256, 400);
    torc_error_clear(&error);
    struct torc_google_options unreadable = {TORC_SIZE(torc_google_options), .credentials_file = path};
    assert_null(torc_credentials_google_default(&unreadable, &error));
    assert_in_range(strlen(torc_error_text(error)), 256, 400);
    torc_error_clear(&error);
    struct torc_google_options none = {0};
    assert_null(torc_credentials_google_default(&none, &error));
    assert_non_null(strstr(torc_error_text(error), "TORC_SIZE(torc_google_options)"));
    torc_error_clear(&error);
    clean_environment();
}

struct test_clock {
    struct tc_clock clock;
    int64_t s;
};

static int64_t realtime(void *arg)
{
    return ((struct test_clock *)arg)->s * (int64_t)TC_NS_PER_S;
}

struct asker {
    struct tc_auth_waiter waiter;
    struct tc_auth_metadata *metadata;
    int code;
};

static void on_answer(struct tc_auth_waiter *w, struct tc_auth_metadata *m, const struct tc_status *error)
{
    struct asker *a = TC_CONTAINER_OF(w, struct asker, waiter);
    a->metadata = tc_auth_metadata_ref(m);
    a->code = m ? TORC_STATUS_OK : error->code;
}

/* Returns a reference to the metadata, or NULL after a failure. *waited: whether the request had to wait. */
static struct tc_auth_metadata *ask(torc_call_credentials *c, struct tc_loop *loop, const char *url, bool *waited)
{
    const struct tc_auth_context context = {.service_url = url, .method = "m"};
    struct asker a = {.waiter.fn = on_answer, .code = -1};
    struct tc_status error = {0};
    int rc = c->ops->get(c, loop, &context, &a.waiter, &a.metadata, &error);
    *waited = rc == TORC_EAGAIN;
    assert_true(rc == 0 || rc == TORC_EAGAIN);
    while (*waited && a.code == -1)
        tc_loop_turn(loop, 1000);
    return a.metadata;
}

static void test_service_account(void **state)
{
    (void)state;
    struct test_clock clock = {.clock = {.realtime_ns = realtime, .arg = &clock}, .s = 1700000000};
    struct tc_service_account account = {.email = "me@p.test", .key_id = "k1", .key = EVP_RSA_gen(2048)};
    torc_call_credentials *c = tc_service_account_creds(&account, &clock.clock);
    struct tc_loop *loop = tc_loop_new(NULL);
    EVP_PKEY_free(account.key);
    const char *orders = "https://orders.test/shop.Orders", *users = "https://users.test/shop.Users";
    struct tc_auth_metadata *seen[4] = {NULL};
    bool waited;
    seen[0] = ask(c, loop, orders, &waited);
    assert_true(waited);
    seen[1] = ask(c, loop, users, &waited);
    assert_true(waited);
    assert_non_null(seen[0]);
    assert_non_null(seen[1]);
    assert_ptr_not_equal(seen[0], seen[1]);
    /* One token for each host, valid for an hour. In its last 90 s another is signed, and no RPC waits for it. */
    clock.s += 3600 - 91;
    seen[2] = ask(c, loop, orders, &waited);
    assert_false(waited);
    assert_ptr_equal(seen[0], seen[2]);
    clock.s += 1;
    do {
        tc_auth_metadata_unref(seen[3]);
        seen[3] = ask(c, loop, orders, &waited);
        assert_false(waited);
    } while (seen[3] == seen[0]);
    /* In its last 30 s the token no longer serves. */
    clock.s += 3600 - 30;
    struct tc_auth_metadata *late = ask(c, loop, orders, &waited);
    assert_true(waited);
    assert_ptr_not_equal(late, seen[3]);
    tc_auth_metadata_unref(late);
    /* The clock was set back: the signed token is not valid yet. */
    clock.s -= 86400;
    tc_auth_metadata_unref(ask(c, loop, orders, &waited));
    assert_true(waited);

    struct tc_slice rest = tc_rstr_slice(seen[0]->fields[0].value), part;
    bool more = true;
    assert_true(tc_slice_starts(rest, tc_slice_str("Bearer ")));
    tc_slice_split(&rest, &more, '.', &part);
    tc_slice_split(&rest, &more, '.', &part);
    struct tc_buf payload = {0};
    /* The JWT is in base64url. ASCII without >, ? and ~ gives neither '-' nor '_', so it can be read as base64. */
    assert_int_equal(tc_base64_decode(&payload, part), 0);
    json_t *v = tc_json_parse(tc_buf_slice(&payload), NULL);
    assert_string_equal(json_string_value(json_object_get(v, "aud")), "https://orders.test/");
    assert_string_equal(json_string_value(json_object_get(v, "iss")), "me@p.test");
    assert_int_equal(json_integer_value(json_object_get(v, "iat")), 1700000000);
    assert_int_equal(json_integer_value(json_object_get(v, "exp")), 1700003600);
    json_decref(v);
    tc_buf_fini(&payload);
    for (size_t i = 0; i < TC_ARRAY_LEN(seen); i++)
        tc_auth_metadata_unref(seen[i]);

    /* Many hosts: the oldest are forgotten. */
    for (int i = 0; i < 20; i++) {
        char url[64];
        snprintf(url, sizeof(url), "https://h%d.test/a.B", i);
        clock.s++;
        tc_auth_metadata_unref(ask(c, loop, url, &waited));
        assert_true(waited);
    }
    tc_auth_metadata_unref(ask(c, loop, "https://h19.test/a.C", &waited));
    assert_false(waited);
    tc_auth_metadata_unref(ask(c, loop, "https://h19.test/a/C", &waited)); /* the method "/a/C/m": the same host */
    assert_false(waited);
    tc_auth_metadata_unref(ask(c, loop, "https://h11.test/a.C", &waited));
    assert_true(waited);
    torc_call_credentials_unref(c);
    tc_loop_free(loop);
}

/* In each round three RPCs ask, and the test gives up its reference to the credentials. In rounds 0 and 2 all RPCs get
 * the same token. In round 1 all of them cancel. */
static void test_signing_is_shared(void **state)
{
    (void)state;
    struct tc_service_account account = {.email = "me@p.test", .key_id = "k1", .key = EVP_RSA_gen(4096)};
    const struct tc_auth_context context = {.service_url = "https://orders.test/shop.Orders", .method = "m"};
    struct tc_loop *loop = tc_loop_new(NULL);
    struct tc_status error = {0};
    for (int round = 0; round < 3; round++) {
        torc_call_credentials *c = tc_service_account_creds(&account, &tc_system_clock);
        struct asker a[3] = {{.code = -1}};
        size_t waiting = 0;
        for (size_t i = 0; i < TC_ARRAY_LEN(a); i++) {
            a[i] = (struct asker){.waiter.fn = on_answer, .code = -1};
            waiting += c->ops->get(c, loop, &context, &a[i].waiter, &a[i].metadata, &error) == TORC_EAGAIN;
        }
        assert_true(waiting > 0);
        if (round == 1)
            for (size_t i = 0; i < TC_ARRAY_LEN(a); i++)
                tc_auth_waiter_cancel(&a[i].waiter);
        torc_call_credentials_unref(c); /* the signing has a reference of its own */
        while (round != 1 && (!a[0].metadata || !a[1].metadata || !a[2].metadata))
            tc_loop_turn(loop, 1000);
        assert_true(round == 1 || (a[0].metadata == a[1].metadata && a[1].metadata == a[2].metadata));
        for (size_t i = 0; i < TC_ARRAY_LEN(a); i++)
            tc_auth_metadata_unref(a[i].metadata);
    }
    /* A key that cannot sign: the request that waits gets the error. */
    EVP_PKEY_free(account.key);
    account.key = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    torc_call_credentials *c = tc_service_account_creds(&account, &tc_system_clock);
    struct asker a = {.waiter.fn = on_answer, .code = -1};
    assert_int_equal(c->ops->get(c, loop, &context, &a.waiter, &a.metadata, &error), TORC_EAGAIN);
    while (a.code == -1)
        tc_loop_turn(loop, 1000);
    assert_int_equal(a.code, TORC_STATUS_UNAUTHENTICATED);
    assert_null(a.metadata);
    torc_call_credentials_unref(c);
    tc_loop_free(loop);
    EVP_PKEY_free(account.key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_channel_credentials),
        cmocka_unit_test(test_service_account),
        cmocka_unit_test(test_signing_is_shared),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
