/* Channel credentials: by type and JSON config, as in a bootstrap (A65); from files; for xDS. Their keys, which decide
 * whether connections are shared.
 *
 * Tests make credentials and look at their members; no handshake runs. Credentials of torc_credentials_tls_files have
 * read their files when they are made. TLS credentials of a config have not: their files may come later. A test removes
 * the files that it writes. One thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "creds/registry.h"
#include "creds/tls.h"
#include "creds/xds.h"
#include "support/cmocka.h"
#include "support/kits/cert.h"

/* Returns the path of a new file in /tmp (tc_free), which the caller unlinks. */
static char *write_file(const char *content)
{
    char *path = tc_strdup("/tmp/torc-creds-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
    return path;
}

/* Expects that no credentials are made, for a reason that has both the type and this part. */
static void expect_refused(const char *type, const char *config, const char *text)
{
    char *why = NULL;
    assert_null(tc_creds_from_config(type, config, &why));
    assert_non_null(strstr(why, type));
    assert_non_null(strstr(why, text));
    tc_free(why);
}

static void test_types(void **state)
{
    (void)state;
    assert_true(tc_creds_type_supported("insecure"));
    assert_true(tc_creds_type_supported("tls"));
    assert_true(tc_creds_type_supported("google_default"));
    assert_false(tc_creds_type_supported("magic"));
    torc_credentials *a = tc_creds_from_config("insecure", NULL, NULL), *b = torc_credentials_insecure();
    assert_string_equal(a->scheme, "http");
    assert_true(tc_rstr_eq(a->key, b->key));
    torc_credentials_unref(a);
    torc_credentials_unref(b);
    torc_credentials_unref(NULL);
    expect_refused("magic", "{}", "unknown type");
    expect_refused("insecure", "[]", "must be an object");
    expect_refused("tls", "{", "line 1");
}

static void test_tls_config(void **state)
{
    (void)state;
    torc_credentials *system = tc_creds_from_config("tls", "{}", NULL);
    assert_non_null(system);
    assert_string_equal(system->scheme, "https");
    torc_credentials_unref(system);
    expect_refused("tls", "{\"certificate_file\":\"/nothing\"}", "both be set");
    expect_refused("tls", "{\"refresh_interval\":\"0s\"}", "refresh_interval: \"0s\" is not a duration above zero");
    expect_refused("tls", "{\"ca_certificate_file\":7}", "ca_certificate_file");
    expect_refused("tls", "{\"refresh_interval\":\"soon\"}", "refresh_interval");

    struct kit_cert ca = kit_cert_make(&(struct kit_cert_opts){.common_name = "ca", .ca = true});
    struct kit_cert client = kit_cert_make(&(struct kit_cert_opts){.common_name = "c", .sans = "DNS:c", .issuer = &ca});
    char *ca_file = write_file(ca.cert_pem), *cert = write_file(client.cert_pem), *key = write_file(client.key_pem);
    char *config = tc_asprintf("{\"ca_certificate_file\":\"%s\",\"certificate_file\":\"%s\","
                               "\"private_key_file\":\"%s\",\"refresh_interval\":\"1s\"}",
                               ca_file, cert, key);
    torc_credentials *a = tc_creds_from_config("tls", config, NULL), *b = tc_creds_from_config("tls", config, NULL);
    assert_non_null(a);
    assert_true(tc_rstr_eq(a->key, b->key));
    torc_credentials_unref(a);
    torc_credentials_unref(b);

    /* Files may come later: handshakes read them. */
    torc_credentials *later = tc_creds_from_config("tls", "{\"ca_certificate_file\":\"/nothing\"}", NULL);
    assert_non_null(later);
    assert_int_equal(later->refresh_ns, TC_CERT_REFRESH_DEFAULT_NS);
    torc_credentials_unref(later);
    unlink(ca_file);
    unlink(cert);
    unlink(key);
    tc_free(ca_file);
    tc_free(cert);
    tc_free(key);
    tc_free(config);
    kit_cert_fini(&ca);
    kit_cert_fini(&client);
}

static void expect_files_refused(const struct torc_tls_files *files, const char *text)
{
    torc_error *error = NULL;
    assert_null(torc_credentials_tls_files(files, &error));
    assert_non_null(strstr(torc_error_text(error), text));
    torc_error_clear(&error);
}

static void test_tls_files(void **state)
{
    (void)state;
    struct kit_cert ca = kit_cert_make(&(struct kit_cert_opts){.common_name = "ca", .ca = true});
    struct torc_tls_files o;
    char *ca_file = write_file(ca.cert_pem), *key = write_file(ca.key_pem);
    expect_files_refused(NULL, "files: it is NULL");
    memset(&o, 0, sizeof(o));
    expect_files_refused(&o, "files: size is 0: initialise the struct with TORC_SIZE(torc_tls_files)");
    o = (struct torc_tls_files){TORC_SIZE(torc_tls_files)};
    o.ca_certificate_file = "/nothing";
    expect_files_refused(&o, "ca_certificate_file \"/nothing\": No such file");
    o.ca_certificate_file = key;
    expect_files_refused(&o, "root certificates: no PEM certificate found");
    o.ca_certificate_file = ca_file;
    o.certificate_file = ca_file;
    expect_files_refused(&o, "must both be set");
    o.private_key_file = ca_file;
    expect_files_refused(&o, "private key: ");
    o.private_key_file = key;
    o.refresh_interval_ms = 1000;
    torc_credentials *c = torc_credentials_tls_files(&o, NULL);
    assert_non_null(c);
    assert_string_equal(c->scheme, "https");
    assert_int_equal(c->refresh_ns, 1000000000);
    torc_credentials_unref(c);
    unlink(ca_file);
    unlink(key);
    tc_free(ca_file);
    tc_free(key);
    kit_cert_fini(&ca);
}

static void test_xds(void **state)
{
    (void)state;
    torc_credentials *insecure = torc_credentials_insecure(), *xds = torc_credentials_xds(insecure, NULL);
    assert_non_null(xds);
    assert_ptr_equal(tc_credentials_xds_fallback(xds), insecure);
    assert_null(tc_credentials_xds_fallback(insecure));
    assert_string_equal(xds->scheme, "http");
    assert_string_equal(xds->key->data, "xds:insecure");
    assert_null(torc_credentials_xds(xds, NULL));
    assert_null(torc_credentials_xds(NULL, NULL));
    torc_credentials_unref(insecure);
    torc_credentials_unref(xds);
}

static void test_keys_of_texts(void **state)
{
    (void)state;
    struct kit_cert ca = kit_cert_make(&(struct kit_cert_opts){.common_name = "ca", .ca = true});
    struct torc_tls_options o = {TORC_SIZE(torc_tls_options)};
    torc_credentials *system = torc_credentials_tls(&o, NULL);
    o.roots_pem = ca.cert_pem;
    torc_credentials *a = torc_credentials_tls(&o, NULL), *b = torc_credentials_tls(&o, NULL);
    assert_true(tc_rstr_eq(a->key, b->key));
    assert_false(tc_rstr_eq(a->key, system->key));
    torc_credentials_unref(a);
    torc_credentials_unref(b);
    torc_credentials_unref(system);
    kit_cert_fini(&ca);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types), cmocka_unit_test(test_tls_config),    cmocka_unit_test(test_tls_files),
        cmocka_unit_test(test_xds),   cmocka_unit_test(test_keys_of_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
