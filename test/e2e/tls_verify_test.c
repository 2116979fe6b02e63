/* The application's own check of TLS servers, and credentials that skip Torc's check, on real connections to echo
 * servers (kits/backends.h). The test's CA issues the servers' certificates.
 *
 * The check is on_verify, which answers as its struct hook says: before it returns, on another thread, or not at all
 * (LATER: the test answers). The credentials hold the hook's address until on_release, so a hook lives until then
 * (await_release). The test's thread drives the client's runtime, and so calls on_verify. on_release runs on the thread
 * that drops the last reference to the credentials, so a test joins an answering thread before it reads `released`. */
#include <openssl/x509.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <torc/torc.h>

#include "base/buf.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/cert.h"
#include "tls/identity.h"
#include "tls/tls.h"

static torc_runtime *rt;
static struct kit_cert ca, leaf, stranger;

/* The servers' contexts. The teardown gives these references back. */
static struct tc_tls_context *contexts[8];
static size_t n_contexts;

/* Returns the context of a server that sends this chain and has the key of `cert`; borrowed. */
static struct tc_tls_context *server_context(const char *chain_pem, const struct kit_cert *cert)
{
    struct tc_tls_context *tls = tc_tls_context_new(&(struct tc_tls_opts){.server = true,
                                                                          .verify = TC_TLS_VERIFY_NONE,
                                                                          .certificate_pem = tc_slice_str(chain_pem),
                                                                          .private_key_pem = kit_cert_key(cert)},
                                                    NULL);
    assert_non_null(tls);
    assert_true(n_contexts < sizeof(contexts) / sizeof(contexts[0]));
    contexts[n_contexts++] = tls;
    return tls;
}

/* Makes one server that sends this chain and has the key of `cert`. The caller frees the kit, before `teardown`. */
static struct kit_backends *backends_new(const char *chain_pem, const struct kit_cert *cert)
{
    struct tc_server_opts so;
    tc_server_opts_init(&so);
    so.tls = server_context(chain_pem, cert);
    return kit_backends_new(1, &so);
}

/* A server that sends, after its own certificate, one that is not part of the chain. */
static struct kit_backends *good;

static int setup(void **state)
{
    (void)state;
    /* A connection that no channel holds closes at once and releases its credentials. */
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER,
                                     .idle_connection_ms = -1};
    rt = torc_runtime_new(&o, NULL);
    assert_non_null(rt);
    ca = kit_cert_make(&(struct kit_cert_opts){.common_name = "ca", .ca = true});
    stranger = kit_cert_make(&(struct kit_cert_opts){.common_name = "stranger", .sans = "DNS:x.test", .ca = true});
    leaf = kit_cert_make(&(struct kit_cert_opts){
        .common_name = "b", .sans = "IP:127.0.0.1,DNS:b.test,URI:spiffe://td/b,email:b@b.test", .issuer = &ca});
    char chain[16384];
    snprintf(chain, sizeof(chain), "%s%s", leaf.cert_pem, stranger.cert_pem);
    good = backends_new(chain, &leaf);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    int rc = torc_runtime_free(rt);
    kit_backends_free(good);
    for (size_t i = 0; i < n_contexts; i++)
        tc_tls_context_unref(contexts[i]);
    kit_cert_fini(&leaf);
    kit_cert_fini(&stranger);
    kit_cert_fini(&ca);
    return rc;
}

/* --- a hook --- */

enum how { ACCEPT, REFUSE, REFUSE_WITHOUT_WORDS, ACCEPT_ON_A_THREAD, REFUSE_ON_A_THREAD, LATER };

struct hook {
    enum how how;
    int asked, released;               /* calls of on_verify and of on_release */
    torc_tls_peer *pending;            /* of the last on_verify; freed by the answer */
    pthread_t thread;                  /* with ACCEPT_ON_A_THREAD and REFUSE_ON_A_THREAD: the test joins it */
    void (*look)(torc_tls_peer *peer); /* called before the answer, unless LATER; NULL: none */
};

static void answer(torc_tls_peer *peer, enum how how)
{
    if (how == ACCEPT || how == ACCEPT_ON_A_THREAD)
        torc_tls_peer_accept(peer);
    else
        torc_tls_peer_refuse(peer, how == REFUSE_WITHOUT_WORDS ? NULL : "not the pinned one");
}

static void *answer_on_thread(void *arg)
{
    const struct hook *h = arg;
    if (h->look)
        h->look(h->pending);
    answer(h->pending, h->how);
    return NULL;
}

static void on_verify(torc_tls_peer *peer, void *arg)
{
    struct hook *h = arg;
    h->asked++;
    h->pending = peer;
    if (h->how == LATER)
        return;
    if (h->how == ACCEPT_ON_A_THREAD || h->how == REFUSE_ON_A_THREAD) {
        assert_int_equal(pthread_create(&h->thread, NULL, answer_on_thread, h), 0);
        return;
    }
    if (h->look)
        h->look(peer);
    answer(peer, h->how);
}

static void on_release(void *arg)
{
    ((struct hook *)arg)->released++;
}

/* Returns credentials with these options and the hook, which must live until on_release. The caller unrefs them. */
static torc_credentials *credentials_with(struct hook *h, struct torc_tls_options o)
{
    o.size = sizeof(o);
    o.verify = on_verify;
    o.verify_release = on_release;
    o.verify_arg = h;
    torc_credentials *c = torc_credentials_tls(&o, NULL);
    assert_non_null(c);
    return c;
}

/* connect_timeout_ms 0: the default. */
static torc_channel *channel_new(struct kit_backends *kit, torc_credentials *creds, int64_t connect_timeout_ms)
{
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = creds,
                                     .connect_timeout_ms = connect_timeout_ms};
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), &o, NULL);
    assert_non_null(ch);
    return ch;
}

/* Makes an RPC on a new channel with these credentials, and asserts its code and that its text contains `part`. Gives
 * back the credentials. */
static void expect(struct kit_backends *kit, torc_credentials *creds, int code, const char *part)
{
    torc_channel *ch = channel_new(kit, creds, 0);
    kit_backends_expect(ch, false, 60000, code, part);
    torc_channel_free(ch);
    torc_credentials_unref(creds);
}

/* Drives the client until the hook is released, which must happen once. */
static void await_release(const struct hook *h)
{
    while (h->released == 0)
        assert_true(torc_runtime_poll(rt, 1000) >= 0);
    assert_int_equal(h->released, 1);
}

static void await_question(const struct hook *h)
{
    while (!h->pending)
        assert_true(torc_runtime_poll(rt, 1000) >= 0);
}

/* Returns options with this root, which they borrow, and without a size. */
static struct torc_tls_options trusting(const struct kit_cert *root)
{
    return (struct torc_tls_options){.roots_pem = root->cert_pem};
}

/* --- the peer as a hook sees it --- */

static void check_certificate(const torc_tls_peer *peer, size_t i, const struct kit_cert *cert)
{
    unsigned char *der = NULL;
    int len = i2d_X509(cert->x509, &der);
    const void *got;
    size_t size;
    CHECK(torc_tls_peer_certificate(peer, i, &got, &size) == 0);
    CHECK(size == (size_t)len);
    CHECK(memcmp(got, der, size) == 0);
    OPENSSL_free(der);
}

static void check_name(const torc_tls_peer *peer, size_t i, int32_t kind, const char *text)
{
    int32_t got_kind;
    const char *name;
    size_t size;
    CHECK(torc_tls_peer_name(peer, i, &got_kind, &name, &size) == 0);
    CHECK(got_kind == kind);
    CHECK(strcmp(name, text) == 0);
    CHECK(size == strlen(text));
}

/* Asserts what a hook learns of `good`: names, address, and as the chain the server's certificate and the root, without
 * the stranger's certificate, which the server sent too. */
static void look_at_all(torc_tls_peer *peer)
{
    CHECK(strcmp(torc_tls_peer_server_name(peer), "127.0.0.1") == 0);
    CHECK(strcmp(torc_tls_peer_address(peer), kit_backends_address(good, 0)) == 0);
    check_certificate(peer, 0, &leaf);
    check_certificate(peer, 1, &ca);
    CHECK(torc_tls_peer_certificate(peer, 2, NULL, NULL) == TORC_ENOTFOUND);
    check_name(peer, 0, TORC_TLS_NAME_IP, "127.0.0.1");
    check_name(peer, 1, TORC_TLS_NAME_DNS, "b.test");
    check_name(peer, 2, TORC_TLS_NAME_URI, "spiffe://td/b");
    check_name(peer, 3, TORC_TLS_NAME_EMAIL, "b@b.test");
    CHECK(torc_tls_peer_name(peer, 4, NULL, NULL, NULL) == TORC_ENOTFOUND);
    CHECK(torc_tls_peer_name(peer, 0, NULL, NULL, NULL) == 0);
    CHECK(torc_tls_peer_certificate(peer, SIZE_MAX, NULL, NULL) == TORC_ENOTFOUND);
}

static void it_sees_the_verified_chain(void **state)
{
    (void)state;
    struct hook h = {.how = ACCEPT, .look = look_at_all};
    expect(good, credentials_with(&h, trusting(&ca)), TORC_STATUS_OK, "");
    assert_int_equal(h.asked, 1);
    await_release(&h);
    h = (struct hook){.how = ACCEPT_ON_A_THREAD, .look = look_at_all};
    expect(good, credentials_with(&h, trusting(&ca)), TORC_STATUS_OK, "");
    pthread_join(h.thread, NULL);
    await_release(&h);
    assert_null(torc_tls_peer_server_name(NULL));
    assert_null(torc_tls_peer_address(NULL));
    assert_int_equal(torc_tls_peer_certificate(NULL, 0, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_tls_peer_name(NULL, 0, NULL, NULL, NULL), TORC_EINVAL);
    torc_tls_peer_accept(NULL);
    torc_tls_peer_refuse(NULL, NULL);
}

/* --- verdicts --- */

static void what_it_refuses_gets_nothing(void **state)
{
    (void)state;
    static const enum how hows[] = {REFUSE, REFUSE_ON_A_THREAD, REFUSE_WITHOUT_WORDS};
    uint64_t before = kit_backends_counts(good, 0).requests;
    for (size_t i = 0; i < 3; i++) {
        struct hook h = {.how = hows[i]};
        expect(good, credentials_with(&h, trusting(&ca)), TORC_STATUS_UNAVAILABLE,
               i == 2 ? "the application's check refused the server: no reason was given"
                      : "the application's check refused the server: not the pinned one");
        if (hows[i] == REFUSE_ON_A_THREAD)
            pthread_join(h.thread, NULL);
        assert_int_equal(h.asked, 1);
        await_release(&h);
    }
    assert_int_equal(kit_backends_counts(good, 0).requests, before);
}

static void it_accepts_nothing_that_torc_refuses(void **state)
{
    (void)state;
    struct hook h = {.how = ACCEPT};
    expect(good, credentials_with(&h, trusting(&stranger)), TORC_STATUS_UNAVAILABLE, "certificate verify failed");
    await_release(&h);
    h = (struct hook){.how = ACCEPT};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .authority = "other.test"};
    o.credentials = credentials_with(&h, trusting(&ca));
    torc_channel *ch = torc_channel_new(rt, kit_backends_target(good), &o, NULL);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE, "the certificate is not valid for \"other.test\"");
    torc_channel_free(ch);
    torc_credentials_unref(o.credentials);
    await_release(&h);
    assert_int_equal(h.asked, 0);
}

/* Without an answer the connection attempt times out. An answer after that, when the channel is gone, only frees the
 * peer, and with it the last reference to the credentials. */
static void no_answer_is_a_refusal(void **state)
{
    (void)state;
    struct hook h = {.how = LATER};
    torc_credentials *creds = credentials_with(&h, trusting(&ca));
    torc_channel *ch = channel_new(good, creds, 300);
    uint64_t before = kit_backends_counts(good, 0).requests;
    kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE,
                        "timed out after 300 ms, waiting for the application's check of the peer (torc_tls_verify_fn)");
    assert_int_equal(h.asked, 1);
    assert_string_equal(torc_tls_peer_server_name(h.pending), "127.0.0.1");
    torc_channel_free(ch);
    torc_credentials_unref(creds);
    while (torc_runtime_poll(rt, 0) > 0) {
    }
    assert_int_equal(h.released, 0); /* the application still holds the peer */
    torc_tls_peer_accept(h.pending);
    await_release(&h);
    assert_int_equal(kit_backends_counts(good, 0).requests, before);
}

/* An RPC whose deadline passes before the verdict says what it waited for. */
static void a_deadline_meanwhile(void **state)
{
    (void)state;
    struct hook h = {.how = LATER};
    torc_credentials *creds = credentials_with(&h, trusting(&ca));
    torc_channel *ch = channel_new(good, creds, 0);
    kit_backends_expect(ch, false, 300, TORC_STATUS_DEADLINE_EXCEEDED,
                        "waits for the application's check of the peer (torc_tls_verify_fn)");
    torc_tls_peer_accept(h.pending);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "");
    torc_channel_free(ch);
    torc_credentials_unref(creds);
    await_release(&h);
}

/* The channel or the runtime is freed before the hook's verdict, or before the verdict is delivered. */
static void the_end_meanwhile(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct hook h = {.how = LATER};
        torc_runtime *mine = kit_backends_runtime(TORC_RUNTIME_CALLER), *other = rt;
        rt = mine;
        torc_credentials *creds = credentials_with(&h, trusting(&ca));
        torc_channel *ch = channel_new(good, creds, 0);
        torc_credentials_unref(creds);
        torc_channel_state(ch, true);
        await_question(&h);
        if (how == 0) {
            torc_channel_free(ch);
            torc_tls_peer_accept(h.pending);
            await_release(&h);
        }
        if (how == 2)
            torc_tls_peer_accept(h.pending); /* posted, not delivered */
        assert_int_equal(torc_runtime_free(mine), 0);
        if (how != 0)
            torc_channel_free(ch);
        if (how == 1)
            torc_tls_peer_accept(h.pending);
        assert_int_equal(h.released, 1);
        rt = other;
    }
}

static void connections_are_not_shared_across_hooks(void **state)
{
    (void)state;
    struct hook a = {.how = ACCEPT}, b = {.how = REFUSE};
    struct torc_tls_options plain = {TORC_SIZE(torc_tls_options), .roots_pem = ca.cert_pem};
    torc_credentials *creds[] = {credentials_with(&a, trusting(&ca)), credentials_with(&b, trusting(&ca)),
                                 torc_credentials_tls(&plain, NULL)};
    torc_channel *without = channel_new(good, creds[2], 0), *first = channel_new(good, creds[0], 0),
                 *second = channel_new(good, creds[0], 0), *refused = channel_new(good, creds[1], 0);
    kit_backends_expect(without, false, 60000, TORC_STATUS_OK, "");
    kit_backends_expect(first, false, 60000, TORC_STATUS_OK, "");
    kit_backends_expect(second, false, 60000, TORC_STATUS_OK, "");
    assert_int_equal(a.asked, 1); /* `first` and `second` share a connection */
    kit_backends_expect(refused, false, 60000, TORC_STATUS_UNAVAILABLE, "not the pinned one");
    torc_channel_free(without);
    torc_channel_free(first);
    torc_channel_free(second);
    torc_channel_free(refused);
    for (int i = 0; i < 3; i++)
        torc_credentials_unref(creds[i]);
    await_release(&a);
    await_release(&b);
}

/* --- skipped checks --- */

static void skip_name(void **state)
{
    (void)state;
    struct kit_cert named =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "n", .sans = "URI:spiffe://td/other", .issuer = &ca});
    struct kit_backends *kit = backends_new(named.cert_pem, &named);
    struct hook h = {.how = ACCEPT};
    expect(kit, credentials_with(&h, trusting(&ca)), TORC_STATUS_UNAVAILABLE, "is not valid for");
    assert_int_equal(h.asked, 0);
    await_release(&h);
    struct torc_tls_options o = trusting(&ca);
    o.skip_name = TORC_ON;
    h = (struct hook){.how = ACCEPT};
    expect(kit, credentials_with(&h, o), TORC_STATUS_OK, "");
    assert_int_equal(h.asked, 1);
    o.roots_pem = stranger.cert_pem; /* skip_name skips no check of the chain */
    struct hook never = {.how = ACCEPT};
    expect(kit, credentials_with(&never, o), TORC_STATUS_UNAVAILABLE, "certificate verify failed");
    assert_int_equal(never.asked, 0);
    await_release(&never);
    kit_backends_free(kit);
    kit_cert_fini(&named);
    await_release(&h);
}

static int warnings;

static void on_line(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)arg;
    if (level == TORC_LOG_WARN && strcmp(module, "tls") == 0 && strstr(message, "skip_verify"))
        warnings++;
}

/* Asserts that the certificates are those that `good` sent, in their order. */
static void look_at_what_was_sent(torc_tls_peer *peer)
{
    check_certificate(peer, 0, &leaf);
    check_certificate(peer, 1, &stranger);
    CHECK(torc_tls_peer_certificate(peer, 2, NULL, NULL) == TORC_ENOTFOUND);
}

static void skip_verify(void **state)
{
    (void)state;
    torc_log_set_sink(on_line, NULL);
    assert_int_equal(torc_log_set_levels("tls=warn"), 0);
    struct torc_tls_options o = {TORC_SIZE(torc_tls_options)};
    expect(good, torc_credentials_tls(&o, NULL), TORC_STATUS_UNAVAILABLE, "certificate verify failed");
    assert_int_equal(warnings, 0);
    o.skip_verify = TORC_OFF;
    expect(good, torc_credentials_tls(&o, NULL), TORC_STATUS_UNAVAILABLE, "certificate verify failed");
    assert_int_equal(warnings, 0);
    /* On a runtime that keeps idle connections, credentials that verify do not get the unverified connection. */
    torc_runtime *keeping = kit_backends_runtime(TORC_RUNTIME_CALLER), *other = rt;
    rt = keeping;
    o.skip_verify = TORC_ON;
    expect(good, torc_credentials_tls(&o, NULL), TORC_STATUS_OK, "");
    assert_int_equal(warnings, 1);
    o.skip_verify = 0;
    expect(good, torc_credentials_tls(&o, NULL), TORC_STATUS_UNAVAILABLE, "certificate verify failed");
    assert_int_equal(torc_runtime_free(keeping), 0);
    rt = other;
    /* The hook alone decides. */
    o.skip_verify = TORC_ON;
    struct hook h = {.how = REFUSE};
    expect(good, credentials_with(&h, o), TORC_STATUS_UNAVAILABLE, "not the pinned one");
    await_release(&h);
    struct hook sent = {.how = ACCEPT, .look = look_at_what_was_sent};
    expect(good, credentials_with(&sent, o), TORC_STATUS_OK, "");
    assert_int_equal(sent.asked, 1);
    assert_int_equal(warnings, 1);
    assert_int_equal(torc_log_set_levels("none"), 0);
    torc_log_set_sink(NULL, NULL);
    await_release(&sent);
}

static void refused(struct torc_tls_options o, const char *text)
{
    torc_error *error = NULL;
    o.size = sizeof(o);
    assert_null(torc_credentials_tls(&o, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    assert_non_null(strstr(torc_error_text(error), text));
    torc_error_clear(&error);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    struct hook h = {.how = ACCEPT};
    refused((struct torc_tls_options){.skip_verify = TORC_ON, .roots_pem = ca.cert_pem},
            "roots_pem: must be NULL with skip_verify");
    refused((struct torc_tls_options){.skip_name = TORC_ON}, "skip_name: needs verify");
    refused((struct torc_tls_options){.skip_verify = 2}, "skip_verify: is 2");
    refused((struct torc_tls_options){.roots_pem = "no PEM", .verify_release = on_release, .verify_arg = &h}, "");
    assert_int_equal(h.released, 0);
    /* The bytes after an older program's struct are not read. */
    struct torc_tls_options older = {.size = offsetof(struct torc_tls_options, verify), .skip_verify = TORC_ON};
    expect(good, torc_credentials_tls(&older, NULL), TORC_STATUS_UNAVAILABLE, "certificate verify failed");
}

/* --- credentials from files --- */

/* Replaces the file by one that has this root alone. A reader sees the old content or the new one. */
static void write_roots(const char *path, const struct kit_cert *root)
{
    char fresh[80];
    snprintf(fresh, sizeof(fresh), "%s.fresh", path);
    FILE *f = fopen(fresh, "w");
    assert_non_null(f);
    assert_true(fputs(root->cert_pem, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(fresh, path), 0);
}

/* Returns credentials with these files and the hook, which must live until on_release. The caller unrefs them. */
static torc_credentials *files_with(struct hook *h, struct torc_tls_files o)
{
    o.size = sizeof(o);
    o.verify = on_verify;
    o.verify_release = on_release;
    o.verify_arg = h;
    torc_credentials *c = torc_credentials_tls_files(&o, NULL);
    assert_non_null(c);
    return c;
}

/* Makes an RPC to `good` as expect() does. The credentials stay the caller's. */
static void expect_of(torc_credentials *creds, int code, const char *part)
{
    expect(good, torc_credentials_ref(creds), code, part);
}

static void files_ask_it_about_each_connection(void **state)
{
    (void)state;
    char path[] = "/tmp/torc-verify-XXXXXX";
    close(mkstemp(path));
    write_roots(path, &ca);
    const struct torc_tls_files o = {.ca_certificate_file = path};
    struct hook h = {.how = ACCEPT, .look = look_at_all};
    torc_credentials *creds = files_with(&h, o);
    expect_of(creds, TORC_STATUS_OK, "");
    assert_int_equal(h.asked, 1);
    write_roots(path, &stranger); /* Torc's check comes first, with what the file has now */
    expect_of(creds, TORC_STATUS_UNAVAILABLE, "certificate verify failed");
    assert_int_equal(h.asked, 1);
    write_roots(path, &ca);
    h.how = REFUSE;
    expect_of(creds, TORC_STATUS_UNAVAILABLE, "not the pinned one");
    assert_int_equal(h.asked, 2);
    torc_credentials_unref(creds);
    await_release(&h);
    unlink(path);
}

static void connections_of_files_are_not_shared_across_hooks(void **state)
{
    (void)state;
    char path[] = "/tmp/torc-verify-XXXXXX";
    close(mkstemp(path));
    write_roots(path, &ca);
    struct hook a = {.how = ACCEPT}, b = {.how = REFUSE};
    struct torc_tls_files o = {TORC_SIZE(torc_tls_files), .ca_certificate_file = path};
    torc_credentials *creds[] = {torc_credentials_tls_files(&o, NULL), files_with(&a, o), files_with(&b, o)};
    torc_channel *channels[3];
    for (int i = 0; i < 3; i++) {
        channels[i] = channel_new(good, creds[i], 0);
        kit_backends_expect(channels[i], false, 60000, i == 2 ? TORC_STATUS_UNAVAILABLE : TORC_STATUS_OK,
                            i == 2 ? "not the pinned one" : "");
    }
    assert_int_equal(a.asked, 1);
    for (int i = 0; i < 3; i++) {
        torc_channel_free(channels[i]);
        torc_credentials_unref(creds[i]);
    }
    await_release(&a);
    await_release(&b);
    unlink(path);
}

static void files_refused(struct torc_tls_files o, const char *text)
{
    torc_error *error = NULL;
    o.size = sizeof(o);
    assert_null(torc_credentials_tls_files(&o, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    assert_non_null(strstr(torc_error_text(error), text));
    torc_error_clear(&error);
}

static void files_skip_what_they_are_told_to(void **state)
{
    (void)state;
    char path[] = "/tmp/torc-verify-XXXXXX";
    close(mkstemp(path));
    write_roots(path, &ca);
    struct kit_cert named =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "n", .sans = "URI:spiffe://td/other", .issuer = &ca});
    struct kit_backends *kit = backends_new(named.cert_pem, &named);
    struct hook name = {.how = ACCEPT}, nothing = {.how = ACCEPT, .look = look_at_what_was_sent},
                never = {.how = ACCEPT};
    struct torc_tls_files o = {TORC_SIZE(torc_tls_files), .ca_certificate_file = path};
    expect(kit, torc_credentials_tls_files(&o, NULL), TORC_STATUS_UNAVAILABLE, "is not valid for");
    o.skip_name = TORC_ON;
    expect(kit, files_with(&name, o), TORC_STATUS_OK, "");
    assert_int_equal(name.asked, 1);
    expect(good, files_with(&nothing, (struct torc_tls_files){.skip_verify = TORC_ON}), TORC_STATUS_OK, "");
    assert_int_equal(nothing.asked, 1);
    struct torc_tls_files plain = {TORC_SIZE(torc_tls_files), .skip_verify = TORC_ON};
    expect(good, torc_credentials_tls_files(&plain, NULL), TORC_STATUS_OK, "");

    files_refused((struct torc_tls_files){.skip_verify = TORC_ON, .ca_certificate_file = path},
                  "files: ca_certificate_file: must be NULL with skip_verify");
    files_refused((struct torc_tls_files){.skip_name = TORC_ON}, "files: skip_name: needs verify");
    files_refused(
        (struct torc_tls_files){
            .ca_certificate_file = "/nothing", .verify = on_verify, .verify_release = on_release, .verify_arg = &never},
        "No such file");
    assert_int_equal(never.released, 0);
    /* The bytes after an older program's struct are not read. */
    struct torc_tls_files older = {.size = offsetof(struct torc_tls_files, verify), .skip_verify = TORC_ON};
    expect(good, torc_credentials_tls_files(&older, NULL), TORC_STATUS_UNAVAILABLE, "certificate verify failed");
    kit_backends_free(kit);
    kit_cert_fini(&named);
    await_release(&name);
    await_release(&nothing);
    unlink(path);
}

/* --- a limit --- */

static void names_of_a_certificate_are_bounded(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct tc_buf sans = {0};
        tc_buf_append_str(&sans, "IP:127.0.0.1");
        for (int i = 1; i < TC_TLS_MAX_NAMES + more; i++)
            tc_buf_printf(&sans, ",DNS:n%d.test", i);
        struct kit_cert many =
            kit_cert_make(&(struct kit_cert_opts){.common_name = "m", .sans = tc_buf_cstr(&sans), .issuer = &ca});
        struct kit_backends *kit = backends_new(many.cert_pem, &many);
        struct hook h = {.how = ACCEPT};
        expect(kit, credentials_with(&h, trusting(&ca)), more ? TORC_STATUS_UNAVAILABLE : TORC_STATUS_OK,
               more ? "the certificate has more than 4096 names" : "");
        assert_int_equal(h.asked, !more);
        kit_backends_free(kit);
        kit_cert_fini(&many);
        tc_buf_fini(&sans);
        await_release(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_sees_the_verified_chain),
        cmocka_unit_test(what_it_refuses_gets_nothing),
        cmocka_unit_test(it_accepts_nothing_that_torc_refuses),
        cmocka_unit_test(no_answer_is_a_refusal),
        cmocka_unit_test(a_deadline_meanwhile),
        cmocka_unit_test(the_end_meanwhile),
        cmocka_unit_test(skip_name),
        cmocka_unit_test(skip_verify),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(files_ask_it_about_each_connection),
        cmocka_unit_test(connections_of_files_are_not_shared_across_hooks),
        cmocka_unit_test(files_skip_what_they_are_told_to),
        cmocka_unit_test(names_of_a_certificate_are_bounded),
        cmocka_unit_test(connections_are_not_shared_across_hooks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
