/* Certificate files that come late or change: by a write, a rename or a link; certificate before key; to rubbish; to a
 * FIFO. Files that are too large, or read again unchanged. SPIFFE bundle maps instead of roots. tc_cert_files_key is
 * equal for equal paths and interval. The epoch of a tc_tls_source changes with the content.
 *
 * setup makes the certificates and names the files in a folder of the test, but writes none. The refresh interval of
 * `files` is an hour, except in the_refresh_interval_counts: only changes and failures make a file be read again. Files
 * that failed are not read for 100 ms of real time: a test that mends them waits (WAIT), and a test that needs the
 * reason of another failure begins with new `files` (files_renew). One thread. */
#include "creds/cert_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "creds/tls_source.h"
#include "support/cmocka.h"
#include "support/kits/cert.h"

struct fixture {
    char folder[64];
    char *ca, *cert, *key, *map;
    struct kit_cert root, other, a, b; /* root and other: CAs; a and b: issued by root */
    struct tc_cert_files *files;
};

static void write_file(const char *path, const char *content)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(content, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Replaces f->files by an object that has read no file yet. */
static void files_renew(struct fixture *f)
{
    tc_cert_files_unref(f->files);
    f->files = tc_cert_files_new(&(struct tc_cert_paths){.ca_certificate_file = f->ca,
                                                         .certificate_file = f->cert,
                                                         .private_key_file = f->key,
                                                         .refresh_interval_ns = 3600 * TC_NS_PER_S});
}

/* Replaces f->files by an object that has read no file yet, of roots and a bundle map alone. */
static void files_renew_with_map(struct fixture *f)
{
    tc_cert_files_unref(f->files);
    f->files = tc_cert_files_new(&(struct tc_cert_paths){.ca_certificate_file = f->ca,
                                                         .spiffe_trust_bundle_map_file = f->map,
                                                         .refresh_interval_ns = 3600 * TC_NS_PER_S});
}

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    snprintf(f->folder, sizeof(f->folder), "/tmp/torc-certs-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->ca = tc_asprintf("%s/ca.pem", f->folder);
    f->cert = tc_asprintf("%s/cert.pem", f->folder);
    f->key = tc_asprintf("%s/key.pem", f->folder);
    f->map = tc_asprintf("%s/map.json", f->folder);
    f->root = kit_cert_make(&(struct kit_cert_opts){.common_name = "root", .ca = true});
    f->other = kit_cert_make(&(struct kit_cert_opts){.common_name = "other", .ca = true});
    f->a = kit_cert_make(&(struct kit_cert_opts){.common_name = "a", .issuer = &f->root});
    f->b = kit_cert_make(&(struct kit_cert_opts){.common_name = "b", .issuer = &f->root});
    files_renew(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char *paths[] = {f->ca, f->cert, f->key, f->map};
    tc_cert_files_unref(f->files);
    for (size_t i = 0; i < TC_ARRAY_LEN(paths); i++) {
        unlink(paths[i]);
        tc_free(paths[i]);
    }
    rmdir(f->folder);
    kit_cert_fini(&f->root);
    kit_cert_fini(&f->other);
    kit_cert_fini(&f->a);
    kit_cert_fini(&f->b);
    tc_free(f);
    return 0;
}

static bool have_roots(struct fixture *f, const char *pem)
{
    struct tc_cert_roots *roots = tc_cert_files_roots(f->files, NULL);
    bool same = roots && tc_slice_eq_str(tc_rstr_slice(roots->text), pem);
    tc_cert_roots_unref(roots);
    return same;
}

static bool have_identity(struct fixture *f, const struct kit_cert *cert)
{
    struct tc_cert_identity *identity = tc_cert_files_identity(f->files, NULL);
    bool same = identity && tc_slice_eq_str(tc_rstr_slice(identity->certificate), cert->cert_pem) &&
                tc_slice_eq_str(tc_rstr_slice(identity->private_key), cert->key_pem);
    tc_cert_identity_unref(identity);
    return same;
}

/* Expects that there are no good roots yet, for a reason with this part. */
static void no_roots(struct fixture *f, const char *text)
{
    char *why = NULL;
    assert_null(tc_cert_files_roots(f->files, &why));
    if (!strstr(why, text))
        fail_msg("%s", why);
    tc_free(why);
}

/* Expects that there are no good certificate and key yet, for a reason with this part. */
static void no_identity(struct fixture *f, const char *text)
{
    char *why = NULL;
    assert_null(tc_cert_files_identity(f->files, &why));
    if (!strstr(why, text))
        fail_msg("%s", why);
    tc_free(why);
}

/* Files that failed are not read again at once. Evaluates the condition until it is true, for at most 10 s. */
#define WAIT(f, condition)                                                                                             \
    do {                                                                                                               \
        uint64_t end_ = tc_system_clock.monotonic_ns(NULL) + 10 * TC_NS_PER_S;                                         \
        while (!(condition) && tc_system_clock.monotonic_ns(NULL) < end_)                                              \
            continue;                                                                                                  \
        assert_true(condition);                                                                                        \
    } while (0)

static void files_that_come_later(void **state)
{
    struct fixture *f = *state;
    assert_true(tc_cert_files_have_roots(f->files) && tc_cert_files_have_identity(f->files));
    no_roots(f, "ca_certificate_file \"/tmp/torc-certs-");
    no_roots(f, "ca.pem\": No such file or directory");
    no_identity(f, "certificate_file \"/tmp/torc-certs-");
    write_file(f->ca, f->root.cert_pem);
    WAIT(f, have_roots(f, f->root.cert_pem));
    write_file(f->cert, f->a.cert_pem);
    files_renew(f);
    no_identity(f, "key.pem\": No such file or directory");
    write_file(f->key, f->b.key_pem);
    files_renew(f);
    no_identity(f, "private key: key values mismatch");
    write_file(f->key, f->a.key_pem);
    WAIT(f, have_identity(f, &f->a));
}

static void a_change_is_seen_at_once(void **state)
{
    struct fixture *f = *state;
    write_file(f->ca, f->root.cert_pem);
    assert_true(have_roots(f, f->root.cert_pem));
    struct tc_cert_roots *first = tc_cert_files_roots(f->files, NULL), *again = tc_cert_files_roots(f->files, NULL);
    assert_ptr_equal(first, again);
    tc_cert_roots_unref(again);
    /* By write. */
    char *both = tc_asprintf("%s%s", f->root.cert_pem, f->other.cert_pem);
    write_file(f->ca, both);
    assert_true(have_roots(f, both));
    tc_free(both);
    /* By rename. */
    write_file(f->map, f->other.cert_pem);
    assert_int_equal(rename(f->map, f->ca), 0);
    assert_true(have_roots(f, f->other.cert_pem));
    /* The file is replaced by a link, which then points elsewhere. */
    write_file(f->cert, f->root.cert_pem);
    write_file(f->key, f->other.cert_pem);
    unlink(f->ca);
    assert_int_equal(symlink(f->cert, f->ca), 0);
    assert_true(have_roots(f, f->root.cert_pem));
    assert_int_equal(symlink(f->key, f->map), 0);
    assert_int_equal(rename(f->map, f->ca), 0);
    assert_true(have_roots(f, f->other.cert_pem));
    /* Content that is still referenced does not change. */
    assert_true(tc_slice_eq_str(tc_rstr_slice(first->text), f->root.cert_pem));
    tc_cert_roots_unref(first);
}

static void certificate_and_key_change_together(void **state)
{
    struct fixture *f = *state;
    write_file(f->cert, f->a.cert_pem);
    write_file(f->key, f->a.key_pem);
    assert_true(have_identity(f, &f->a));
    write_file(f->cert, f->b.cert_pem);
    assert_true(have_identity(f, &f->a));
    assert_true(have_identity(f, &f->a));
    write_file(f->key, f->b.key_pem);
    WAIT(f, have_identity(f, &f->b));
    /* The roots do not depend on certificate and key. */
    no_roots(f, "No such file");
}

static void rubbish_changes_nothing(void **state)
{
    struct fixture *f = *state;
    /* NULL: the files of roots and certificate are gone. */
    static const char *const rubbish[] = {"", "rubbish",
                                          "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", NULL};
    for (size_t i = 0; i < TC_ARRAY_LEN(rubbish); i++) {
        files_renew(f); /* no read has failed, so the next change is read at once */
        write_file(f->ca, f->root.cert_pem);
        write_file(f->cert, f->a.cert_pem);
        write_file(f->key, f->a.key_pem);
        assert_true(have_roots(f, f->root.cert_pem));
        assert_true(have_identity(f, &f->a));
        if (rubbish[i]) {
            write_file(f->ca, rubbish[i]);
            write_file(f->cert, rubbish[i]);
            write_file(f->key, rubbish[i]);
        } else {
            unlink(f->ca);
            unlink(f->cert);
        }
        assert_true(have_roots(f, f->root.cert_pem));
        assert_true(have_identity(f, &f->a));
    }
    write_file(f->ca, f->other.cert_pem);
    WAIT(f, have_roots(f, f->other.cert_pem));
}

static void a_map_takes_the_place_of_roots(void **state)
{
    struct fixture *f = *state;
    files_renew_with_map(f);
    write_file(f->ca, f->root.cert_pem);
    assert_false(tc_cert_files_have_identity(f->files));
    no_identity(f, "no certificate_file is configured");
    no_roots(f, "spiffe_trust_bundle_map_file \"/tmp/torc-certs-");
    write_file(f->map, "{\"trust_domains\":{\"A\":7}}");
    files_renew_with_map(f);
    no_roots(f, "field trust_domains[\"A\"]: the trust domain has characters other than");
    static const char empty[] = "{\"trust_domains\":{}}", other[] = "{\"trust_domains\":{\"a\":{\"keys\":[]}}}";
    write_file(f->map, empty);
    WAIT(f, have_roots(f, empty));
    struct tc_cert_roots *roots = tc_cert_files_roots(f->files, NULL);
    assert_non_null(roots->spiffe);
    tc_cert_roots_unref(roots);
    write_file(f->map, "{}");
    assert_true(have_roots(f, empty));
    write_file(f->map, other);
    WAIT(f, have_roots(f, other));
}

/* With a refresh interval of a millisecond, files that come later are read, and content that does not change stays the
 * same object while several intervals pass. */
static void the_refresh_interval_counts(void **state)
{
    struct fixture *f = *state;
    tc_cert_files_unref(f->files);
    f->files =
        tc_cert_files_new(&(struct tc_cert_paths){.ca_certificate_file = f->ca, .refresh_interval_ns = TC_NS_PER_MS});
    assert_int_equal(tc_cert_files_refresh_ns(f->files), TC_NS_PER_MS);
    no_roots(f, "No such file");
    write_file(f->ca, f->root.cert_pem);
    WAIT(f, have_roots(f, f->root.cert_pem));
    struct tc_cert_roots *roots = tc_cert_files_roots(f->files, NULL);
    for (uint64_t end = tc_system_clock.monotonic_ns(NULL) + 5 * TC_NS_PER_MS;
         tc_system_clock.monotonic_ns(NULL) < end;) {
        struct tc_cert_roots *now = tc_cert_files_roots(f->files, NULL);
        assert_ptr_equal(now, roots);
        tc_cert_roots_unref(now);
    }
    tc_cert_roots_unref(roots);
}

static void keys_tell_files_apart(void **state)
{
    struct fixture *f = *state;
    struct tc_cert_paths paths = {.ca_certificate_file = f->ca, .refresh_interval_ns = TC_NS_PER_S};
    struct tc_cert_files *a = tc_cert_files_new(&paths), *b = tc_cert_files_new(&paths);
    assert_true(tc_rstr_eq(tc_cert_files_key(a), tc_cert_files_key(b)));
    tc_cert_files_unref(b);
    paths.refresh_interval_ns++;
    b = tc_cert_files_new(&paths);
    assert_false(tc_rstr_eq(tc_cert_files_key(a), tc_cert_files_key(b)));
    tc_cert_files_unref(b);
    b = tc_cert_files_new(
        &(struct tc_cert_paths){.spiffe_trust_bundle_map_file = f->ca, .refresh_interval_ns = TC_NS_PER_S});
    assert_false(tc_rstr_eq(tc_cert_files_key(a), tc_cert_files_key(b)));
    tc_cert_files_unref(b);
    tc_cert_files_unref(a);
}

static uint64_t epoch_of(struct tc_tls_source *s)
{
    uint64_t epoch = 0;
    struct tc_tls_context *context = tc_tls_source_context(s, &epoch, NULL);
    assert_non_null(context);
    tc_tls_context_unref(context);
    return epoch;
}

/* Sources that read different content never have the same epoch, also if one of them read before a change and the other
 * began after it. Sources that read the same content of the same struct tc_cert_files have the same epoch. */
static void epochs_are_those_of_the_content(void **state)
{
    struct fixture *f = *state;
    struct tc_cert_files *again = tc_cert_files_new(&(struct tc_cert_paths){.ca_certificate_file = f->ca,
                                                                            .certificate_file = f->cert,
                                                                            .private_key_file = f->key,
                                                                            .refresh_interval_ns = 3600 * TC_NS_PER_S});
    struct tc_tls_source before, after, beside;
    write_file(f->ca, f->root.cert_pem);
    write_file(f->cert, f->a.cert_pem);
    write_file(f->key, f->a.key_pem);
    tc_tls_source_init(&before, &(struct tc_tls_source_opts){.roots = f->files, .identity = f->files});
    uint64_t first = epoch_of(&before);
    assert_int_equal(epoch_of(&before), first);
    write_file(f->cert, f->b.cert_pem);
    write_file(f->key, f->b.key_pem);
    tc_tls_source_init(&after, &(struct tc_tls_source_opts){.roots = again, .identity = again});
    assert_int_not_equal(epoch_of(&after), first);
    tc_tls_source_init(&beside, &(struct tc_tls_source_opts){.roots = f->files, .identity = f->files});
    uint64_t second = epoch_of(&beside);
    assert_int_not_equal(second, first);
    assert_int_equal(epoch_of(&before), second);
    write_file(f->ca, f->other.cert_pem);
    assert_int_not_equal(epoch_of(&before), second);
    tc_tls_source_fini(&before);
    tc_tls_source_fini(&after);
    tc_tls_source_fini(&beside);
    tc_cert_files_unref(again);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void files_are_bounded(void **state)
{
    struct fixture *f = *state;
    char *why = NULL;
    write_file(f->ca, "");
    assert_int_equal(truncate(f->ca, (16 << 20) + 1), 0);
    assert_null(tc_cert_files_roots(f->files, &why));
    assert_non_null(strstr(why, "larger than 16777216 bytes"));
    tc_free(why);
}

/* A FIFO is refused as the file of roots. Where a FIFO replaces a good key, the last good content stays. No thread
 * waits for a writer. */
static void a_fifo_is_no_file(void **state)
{
    struct fixture *f = *state;
    char *why = NULL, *expected = tc_asprintf("ca_certificate_file \"%s\": it is a FIFO, not a regular file", f->ca);
    assert_int_equal(mkfifo(f->ca, 0600), 0);
    alarm(120);
    assert_null(tc_cert_files_roots(f->files, &why));
    assert_string_equal(why, expected);
    tc_free(why);
    tc_free(expected);
    write_file(f->cert, f->a.cert_pem);
    write_file(f->key, f->a.key_pem);
    assert_true(have_identity(f, &f->a));
    unlink(f->key);
    assert_int_equal(mkfifo(f->key, 0600), 0);
    assert_true(have_identity(f, &f->a));
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_that_come_later),   TEST(a_change_is_seen_at_once),        TEST(certificate_and_key_change_together),
        TEST(rubbish_changes_nothing), TEST(a_map_takes_the_place_of_roots),  TEST(the_refresh_interval_counts),
        TEST(keys_tell_files_apart),   TEST(epochs_are_those_of_the_content), TEST(files_are_bounded),
        TEST(a_fifo_is_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
