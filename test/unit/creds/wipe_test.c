/* Secrets are overwritten before their memory is freed. The linker replaces free and realloc (--wrap) by functions that
 * search each block for the secret before it is given back.
 *
 * After test_the_test, each test calls `begin` with a secret, has the library use the secret, and calls `end`, which
 * expects that blocks were searched, and that none had the secret. The linker replaces the calls of this program and of
 * the library in it. main gives jansson the replaced free, so that the members of parsed JSON are searched when they
 * are freed. Blocks that OpenSSL frees are not searched.
 *
 * In test_service_account the library's background thread signs, and the blocks that it frees are searched too. All
 * else runs on the test's thread. */
#include <jansson.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "creds/call/adc.h"
#include "creds/call/jwt_file.h"
#include "creds/call/oauth.h"
#include "creds/call/service_account.h"
#include "creds/cert_files.h"
#include "support/cmocka.h"
#include "support/kits/cert.h"
#include "support/openssl_1_1.h"

void __real_free(void *ptr);
void *__real_realloc(void *ptr, size_t size);
void __wrap_free(void *ptr);
void *__wrap_realloc(void *ptr, size_t size);

static char needle[64];            /* the secret, or a part of it */
static atomic_bool looking;        /* between `begin` and `end` */
static atomic_size_t given, found; /* blocks given back since `begin`; those of them that had the needle */

static void look(void *ptr)
{
    if (!ptr || !looking)
        return;
    given++;
    found += memmem(ptr, malloc_usable_size(ptr), needle, strlen(needle)) != NULL;
}

void __wrap_free(void *ptr)
{
    look(ptr);
    __real_free(ptr);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    look(ptr); /* realloc may move the block */
    return __real_realloc(ptr, size);
}

static void begin(const char *secret)
{
    snprintf(needle, sizeof(needle), "%s", secret);
    given = found = 0;
    looking = true;
}

static void end(void)
{
    looking = false;
    assert_true(given > 0);
    assert_int_equal(found, 0);
}

/* The search finds a secret that was freed as it was, and does not find a secret that tc_free_secret overwrote. */
static void test_the_test(void **state)
{
    (void)state;
    char *text = tc_strdup("some secret in it");
    begin("secret");
    tc_free(text);
    assert_int_equal(found, 1);
    text = tc_strdup("some secret in it");
    tc_free_secret(text);
    assert_int_equal(found, 1);
    looking = false;
}

/* Returns the path of the new file (tc_free), for drop_file. */
static char *write_file(const char *name, const char *content)
{
    char *path = tc_asprintf("/tmp/torc-wipe-%d-%s", (int)getpid(), name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(content, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return path;
}

static void drop_file(char *path)
{
    unlink(path);
    tc_free(path);
}

static void test_private_key_files(void **state)
{
    (void)state;
    struct kit_cert root = kit_cert_make(&(struct kit_cert_opts){.common_name = "root", .ca = true});
    struct kit_cert one = kit_cert_make(&(struct kit_cert_opts){.common_name = "one", .issuer = &root});
    char *cert = write_file("cert", one.cert_pem), *key = write_file("key", one.key_pem), part[33];
    snprintf(part, sizeof(part), "%.32s", strchr(one.key_pem, '\n') + 1);
    begin(part);
    struct tc_cert_files *files = tc_cert_files_new(
        &(struct tc_cert_paths){.certificate_file = cert, .private_key_file = key, .refresh_interval_ns = TC_NS_PER_S});
    struct tc_cert_identity *identity = tc_cert_files_identity(files, NULL);
    assert_non_null(identity);
    tc_cert_identity_unref(identity);
    tc_cert_files_unref(files);
    end();
    drop_file(cert);
    drop_file(key);
    kit_cert_fini(&one);
    kit_cert_fini(&root);
}

static void test_jwt_file(void **state)
{
    (void)state;
    struct tc_token token = {0};
    /* The payload is {"exp":4102444800}. */
    char text[] = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9.a-signature-that-is-secret";
    begin("a-signature-that-is-secret");
    tc_jwt_file_token("file", tc_slice_str(text), &token);
    assert_non_null(token.metadata);
    tc_auth_metadata_unref(token.metadata);
    end();
}

static void test_access_token(void **state)
{
    (void)state;
    struct tc_token token = {0};
    begin("ya29.secret");
    tc_oauth_token("m", 200, tc_slice_str("{\"access_token\":\"ya29.secret\",\"expires_in\":60}"), 1, &token);
    assert_non_null(token.metadata);
    tc_auth_metadata_unref(token.metadata);
    end();
}

/* The file's last member is long: its text overwrites the secret in the buffer in which jansson gathers each text. That
 * buffer is jansson's, and Torc cannot wipe it. */
static void test_refresh_token(void **state)
{
    (void)state;
    char *path = write_file("user.json", "{\"type\":\"authorized_user\",\"client_id\":\"c\",\"client_secret\":\"s\","
                                         "\"refresh_token\":\"1//a-refresh-token\","
                                         "\"universe_domain\":\"the-domain-of-the-universe.test\"}");
    begin("a-refresh-token");
    torc_call_credentials *c = tc_adc_find(&(struct tc_adc_opts){.credentials_file = path}, NULL);
    assert_non_null(c);
    torc_call_credentials_unref(c);
    end();
    drop_file(path);
}

struct asker {
    struct tc_auth_waiter waiter;
    struct tc_auth_metadata *metadata;
};

static void on_answer(struct tc_auth_waiter *w, struct tc_auth_metadata *m, const struct tc_status *error)
{
    (void)error;
    assert_non_null(m);
    TC_CONTAINER_OF(w, struct asker, waiter)->metadata = tc_auth_metadata_ref(m);
}

static int64_t noon(void *arg)
{
    (void)arg;
    return INT64_C(1700000000) * (int64_t)TC_NS_PER_S;
}

/* Gets a signed token from new credentials, and frees both. Stores the end of the token's signature. */
static void use_account(EVP_PKEY *key, char signature[41])
{
    const struct tc_clock clock = {.realtime_ns = noon};
    const struct tc_service_account account = {.email = "e", .key_id = "k", .key = key};
    const struct tc_auth_context context = {.service_url = "https://host/service", .method = "m"};
    struct asker a = {.waiter.fn = on_answer};
    struct tc_status error = {0};
    struct tc_loop *loop = tc_loop_new(NULL);
    torc_call_credentials *c = tc_service_account_creds(&account, &clock);
    assert_int_equal(c->ops->get(c, loop, &context, &a.waiter, &a.metadata, &error), TORC_EAGAIN);
    while (!a.metadata)
        tc_loop_turn(loop, 1000);
    const struct tc_rstr *value = a.metadata->fields[0].value;
    snprintf(signature, 41, "%s", value->data + value->len - 40);
    tc_auth_metadata_unref(a.metadata);
    torc_call_credentials_unref(c);
    tc_loop_free(loop);
}

/* Equal claims have equal signatures: so the second signature is known in advance. */
static void test_service_account(void **state)
{
    (void)state;
    EVP_PKEY *key = EVP_RSA_gen(2048);
    char signature[41], again[41];
    use_account(key, signature);
    begin(signature);
    use_account(key, again);
    end();
    assert_string_equal(signature, again);
    EVP_PKEY_free(key);
}

int main(void)
{
    json_set_alloc_funcs(malloc, free);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_test),      cmocka_unit_test(test_private_key_files),
        cmocka_unit_test(test_jwt_file),      cmocka_unit_test(test_access_token),
        cmocka_unit_test(test_refresh_token), cmocka_unit_test(test_service_account),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
