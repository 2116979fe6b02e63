/* TLS by xDS (A29) end to end: mutual TLS, certificates replaced under load, clusters whose TLS must fail, and
 * credentials that ignore a cluster's TLS. Read kits/tls_mesh.h first; xds_tls_names_test.c has SNI, SPIFFE and roots.
 *
 * - Under load: 100 calls a second, one at a time. While files of the certificate providers are replaced, no call may
 *   fail, and the channel stays READY. A witness tells when a server first got the new certificate.
 * - Failing (struct failing): while the TLS of "c" must fail, RPCs to "c" must fail, send no plaintext, and reach no
 *   backend. RPCs to "good" on the same channel must succeed meanwhile.
 *
 * on_client runs on the servers' thread, all else of this file on the test's. The proxy and the channels' runtime have
 * threads of their own. */
#include <openssl/x509.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/kits/tls_mesh.h"
#include "support/net/wire_proxy.h"

#include "base/clock.h"
#include "base/mem.h"

#define EXACT "[{exact: b.mesh.test}]"

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

/* The client certificates that came to a server. `lock` protects the other members. */
struct witness {
    pthread_mutex_t lock;
    struct x509_st *awaited; /* borrowed until it has come; NULL: none */
    uint64_t came_ns;        /* when the awaited certificate first came; 0: not yet */
    uint64_t handshakes;     /* that reached the client's certificate */
};

/* Counts a client and accepts it. `arg` is the witness. On the servers' thread. */
static bool on_client(void *arg, struct x509_st *leaf, const char *name, struct tc_buf *why)
{
    struct witness *x = arg;
    (void)name;
    (void)why;
    pthread_mutex_lock(&x->lock);
    x->handshakes++;
    if (x->awaited && !x->came_ns && X509_cmp(leaf, x->awaited) == 0)
        x->came_ns = now_ns();
    pthread_mutex_unlock(&x->lock);
    return true;
}

/* Has the witness wait for this certificate, which is borrowed until it has come. */
static void await(struct witness *x, struct x509_st *cert)
{
    pthread_mutex_lock(&x->lock);
    x->awaited = cert;
    x->came_ns = 0;
    pthread_mutex_unlock(&x->lock);
}

/* Returns when the awaited certificate first came, 0 if it has not. */
static uint64_t came(struct witness *x)
{
    pthread_mutex_lock(&x->lock);
    uint64_t ns = x->came_ns;
    pthread_mutex_unlock(&x->lock);
    return ns;
}

/* A client sends its certificate only after it has accepted the server's: these are the handshakes that the client
 * accepted. */
static uint64_t handshakes(struct witness *x)
{
    pthread_mutex_lock(&x->lock);
    uint64_t n = x->handshakes;
    pthread_mutex_unlock(&x->lock);
    return n;
}

/* Waits until *next_ns; the channel must stay READY meanwhile. Then makes a call, which must succeed. *next_ns becomes
 * the time of the next call, 10 ms later. The caller sets it to 0 before the first call. */
static void call_at_100_hz(torc_channel *ch, uint64_t *next_ns)
{
    uint64_t now = now_ns();
    enum torc_connectivity state;
    if (*next_ns > now + TC_NS_PER_MS)
        assert_int_equal(
            torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, (int64_t)((*next_ns - now) / TC_NS_PER_MS), &state),
            TORC_ETIMEDOUT);
    *next_ns = TC_MAX(*next_ns, now) + 10 * TC_NS_PER_MS;
    kit_mesh_calls(ch, NULL, 1);
}

/* Replaces the client's certificate and key under load. Returns how many ms after the first file was replaced the new
 * certificate was in use. */
static uint64_t replace_certificates(void)
{
    struct kit_tls_mesh w;
    struct witness witness = {.lock = PTHREAD_MUTEX_INITIALIZER};
    kit_tls_mesh_init(&w, 1, "2s");
    kit_tls_mesh_secure(&w, 0, &w.server, on_client, &witness);
    struct wire_proxy *proxy = wire_proxy_new(kit_mesh_address(w.k, 0));
    char *context = kit_tls_mesh_context("mesh", EXACT, "");
    kit_tls_mesh_put_cluster(&w, "c", wire_proxy_address(proxy), context);
    kit_tls_mesh_put_cluster(&w, "good", wire_proxy_address(proxy), context);
    kit_tls_mesh_open(&w);

    uint64_t next_ns = 0, calls = 0;
    await(&witness, w.client.x509);
    for (; calls < 20; calls++)
        call_at_100_hz(w.ch, &next_ns);
    assert_true(came(&witness) != 0);
    assert_int_equal(kit_mesh_connections(w.k, 0), 1);

    struct kit_cert renewed = kit_cert_make(&(struct kit_cert_opts){.common_name = "client 2", .issuer = &w.root});
    await(&witness, renewed.x509);
    uint64_t replaced_ns = now_ns();
    /* One file after the other, as rotations do. Until the second is written, certificate and key do not match. */
    kit_tls_mesh_write(&w, "cert.pem", renewed.cert_pem);
    for (size_t i = 0; i < 10; i++, calls++)
        call_at_100_hz(w.ch, &next_ns);
    kit_tls_mesh_write(&w, "key.pem", renewed.key_pem);
    while (!came(&witness) && now_ns() < replaced_ns + 60 * TC_NS_PER_S) {
        call_at_100_hz(w.ch, &next_ns);
        calls++;
    }
    assert_true(came(&witness) != 0);
    uint64_t took_ms = (came(&witness) - replaced_ns) / TC_NS_PER_MS;
    print_message("the new certificate was in use %llu ms after the first file was replaced\n",
                  (unsigned long long)took_ms);
    /* The connection with the old certificate ends. */
    for (uint64_t end = now_ns() + 60 * TC_NS_PER_S; kit_mesh_open_connections(w.k, 0) != 1 && now_ns() < end; calls++)
        call_at_100_hz(w.ch, &next_ns);
    assert_int_equal(kit_mesh_open_connections(w.k, 0), 1);
    for (size_t i = 0; i < 20; i++, calls++)
        call_at_100_hz(w.ch, &next_ns);
    assert_int_equal(kit_mesh_take(w.k, 0), calls);
    assert_int_equal(kit_mesh_connections(w.k, 0), 2);
    kit_tls_mesh_expect_nothing_clear(proxy);
    tc_free(context);
    kit_cert_fini(&renewed);
    kit_tls_mesh_fini(&w);
    wire_proxy_free(proxy);
    return took_ms;
}

/* Asserts that replaced files are in use within the refresh interval in at least one of three runs: a stall of the
 * machine does not repeat, a real delay does. */
static void assert_within(uint64_t interval_ms, uint64_t (*replace)(void))
{
    for (int i = 0; replace() > interval_ms; i++)
        if (i == 2)
            fail_msg("files take more than %d ms each time", (int)interval_ms);
}

static void certificates_are_replaced_under_load(void **state)
{
    (void)state;
    assert_within(2000, replace_certificates);
}

/* Puts backend i behind TLS, where it accepts client certificates of either authority. The witness must live as long as
 * the mesh. */
static void secure_for_both(struct kit_tls_mesh *w, size_t i, const struct kit_cert *cert, struct witness *witness)
{
    char *roots = tc_asprintf("%s%s", w->root.cert_pem, w->other_root.cert_pem);
    struct tc_tls_opts opts = {
        .server = true,
        .verify = TC_TLS_VERIFY_FULL,
        .roots_pem = tc_slice_str(roots),
        .certificate_pem = kit_cert_pem(cert),
        .private_key_pem = kit_cert_key(cert),
        .verify_fn = on_client,
        .verify_arg = witness,
    };
    kit_mesh_secure(w->k, i, &opts);
    tc_free(roots);
}

/* Calls until the witness has seen n handshakes: at most 60 s, else the test fails. Returns the number of calls. */
static uint64_t call_until_handshakes(struct kit_tls_mesh *w, uint64_t *next_ns, struct witness *x, uint64_t n)
{
    uint64_t calls = 0;
    for (uint64_t end = now_ns() + 60 * TC_NS_PER_S; handshakes(x) < n && now_ns() < end; calls++)
        call_at_100_hz(w->ch, next_ns);
    assert_true(handshakes(x) >= n);
    return calls;
}

/* Calls until backend i has had n connections: at most 60 s, else the test fails. Returns the number of calls. */
static uint64_t call_until_connections(struct kit_tls_mesh *w, uint64_t *next_ns, size_t i, uint64_t n)
{
    uint64_t calls = 0;
    for (uint64_t end = now_ns() + 60 * TC_NS_PER_S; kit_mesh_connections(w->k, i) < n && now_ns() < end; calls++)
        call_at_100_hz(w->ch, next_ns);
    assert_true(kit_mesh_connections(w->k, i) >= n);
    return calls;
}

/* Moves a mesh to another authority at 100 calls a second: first the roots and the client's certificate, then the
 * server's. Returns how many ms after the first write the client's new certificate was in use. */
static uint64_t replace_authority(void)
{
    struct kit_tls_mesh w;
    struct witness witness = {.lock = PTHREAD_MUTEX_INITIALIZER}, moved = {.lock = PTHREAD_MUTEX_INITIALIZER};
    kit_tls_mesh_init(&w, 2, "1s");
    struct kit_cert client = kit_cert_make(&(struct kit_cert_opts){.common_name = "client 2", .issuer = &w.other_root});
    struct kit_cert server =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "b", .sans = "DNS:b.mesh.test", .issuer = &w.other_root});
    secure_for_both(&w, 0, &w.server, &witness);
    secure_for_both(&w, 1, &server, &moved);
    char *context = kit_tls_mesh_context("mesh", EXACT, "");
    kit_tls_mesh_put_cluster(&w, "c", kit_mesh_address(w.k, 0), context);
    kit_tls_mesh_put_cluster(&w, "good", kit_mesh_address(w.k, 0), context);
    kit_tls_mesh_open(&w);
    uint64_t next_ns = 0, calls = 0;
    for (; calls < 20; calls++)
        call_at_100_hz(w.ch, &next_ns);

    /* Both roots, and the client's new certificate, at once. */
    await(&witness, client.x509);
    char *both = tc_asprintf("%s%s", w.root.cert_pem, w.other_root.cert_pem);
    uint64_t replaced_ns = now_ns();
    kit_tls_mesh_write(&w, "root.pem", both);
    kit_tls_mesh_write(&w, "cert.pem", client.cert_pem);
    kit_tls_mesh_write(&w, "key.pem", client.key_pem);
    for (; !came(&witness) && now_ns() < replaced_ns + 60 * TC_NS_PER_S; calls++)
        call_at_100_hz(w.ch, &next_ns);
    assert_true(came(&witness) != 0);
    uint64_t took_ms = (came(&witness) - replaced_ns) / TC_NS_PER_MS;

    /* A server with a certificate of the new authority. */
    kit_tls_mesh_put_cluster(&w, "c", kit_mesh_address(w.k, 1), context);
    calls += call_until_handshakes(&w, &next_ns, &moved, 1);
    /* The old authority is no longer trusted: RPCs move to another connection, verified with the new root alone. */
    kit_tls_mesh_write(&w, "root.pem", w.other_root.cert_pem);
    calls += call_until_handshakes(&w, &next_ns, &moved, 2);
    /* Only the old authority is trusted, which did not issue the server's certificate: new connections fail, and the
     * open one serves. */
    uint64_t before = kit_mesh_connections(w.k, 1);
    kit_tls_mesh_write(&w, "root.pem", w.root.cert_pem);
    calls += call_until_connections(&w, &next_ns, 1, before + 1);
    for (size_t i = 0; i < 20; i++, calls++)
        call_at_100_hz(w.ch, &next_ns);
    print_message("%llu calls, none of which failed\n", (unsigned long long)calls);
    assert_int_equal(kit_mesh_take(w.k, 0) + kit_mesh_take(w.k, 1), calls);
    tc_free(context);
    tc_free(both);
    kit_cert_fini(&client);
    kit_cert_fini(&server);
    kit_tls_mesh_fini(&w);
    return took_ms;
}

static void an_authority_is_replaced_under_load(void **state)
{
    (void)state;
    assert_within(1000, replace_authority);
}

/* A cluster "good" on backend 1, and a cluster "c", which is expected to fail, on backend 0 behind a proxy. Made by
 * setup_failing, freed by teardown_failing. */
struct failing {
    struct kit_tls_mesh w;
    struct wire_proxy *proxy;
};

static int setup_failing(void **state)
{
    struct failing *f = TC_NEW(struct failing);
    kit_tls_mesh_init(&f->w, 2, "1s");
    kit_tls_mesh_secure(&f->w, 0, &f->w.server, NULL, NULL);
    kit_tls_mesh_secure(&f->w, 1, &f->w.server, NULL, NULL);
    f->proxy = wire_proxy_new(kit_mesh_address(f->w.k, 0));
    char *context = kit_tls_mesh_context("mesh", EXACT, "");
    kit_tls_mesh_put_cluster(&f->w, "good", kit_mesh_address(f->w.k, 1), context);
    tc_free(context);
    *state = f;
    return 0;
}

static int teardown_failing(void **state)
{
    struct failing *f = *state;
    kit_tls_mesh_fini(&f->w);
    wire_proxy_free(f->proxy);
    tc_free(f);
    return 0;
}

/* Puts "c" with these fields of its UpstreamTlsContext. Opens the channel if it is not open yet. Asserts that RPCs to
 * "c" fail with the reason and do not reach the backend, that RPCs to "good" succeed, and that no plaintext was sent to
 * "c". */
static void expect_failure(struct failing *f, const char *tls, const char *reason)
{
    kit_tls_mesh_put_cluster(&f->w, "c", wire_proxy_address(f->proxy), tls);
    if (!f->w.ch)
        kit_tls_mesh_open(&f->w);
    kit_mesh_calls(f->w.ch, "to: good", 1);
    kit_mesh_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, reason);
    kit_mesh_calls(f->w.ch, "to: good", 20);
    assert_int_equal(kit_mesh_take(f->w.k, 0), 0);
    kit_tls_mesh_expect_nothing_clear(f->proxy);
}

/* expect_failure with a context of these roots and names (kit_tls_mesh_context). */
static void expect_context_failure(struct failing *f, const char *roots, const char *sans, const char *reason)
{
    char *context = kit_tls_mesh_context(roots, sans, "");
    expect_failure(f, context, reason);
    tc_free(context);
}

/* expect_context_failure, and asserts that the reason comes from a TLS handshake: a ClientHello was sent. */
static void expect_refusal(struct failing *f, const char *roots, const char *sans, const char *reason)
{
    expect_context_failure(f, roots, sans, reason);
    assert_true(wire_proxy_saw(f->proxy, KIT_TLS_MESH_HELLO));
}

static void a_wrong_name_fails(void **state)
{
    expect_refusal(*state, "mesh", "[{exact: other.mesh.test}, {suffix: .example}]",
                   "certificate verify failed: none of the certificate's subject alternative names "
                   "(\"b.mesh.test\", \"spiffe://mesh.test/b\") is one that the cluster asks for");
}

static void an_expired_certificate_fails(void **state)
{
    struct failing *f = *state;
    struct kit_cert expired = kit_cert_make(&(struct kit_cert_opts){.common_name = "b",
                                                                    .sans = "DNS:b.mesh.test",
                                                                    .issuer = &f->w.root,
                                                                    .valid_from_s = -7200,
                                                                    .valid_to_s = -3600});
    kit_tls_mesh_secure(&f->w, 0, &expired, NULL, NULL);
    expect_refusal(f, "mesh", EXACT, "certificate verify failed: certificate has expired");
    kit_cert_fini(&expired);
}

static void an_unknown_authority_fails(void **state)
{
    expect_refusal(
        *state, "other", EXACT,
        "certificate verify failed: self-signed certificate in certificate chain: the authority \"/CN=root\" "
        "is not among the roots");
}

static void a_missing_provider_fails(void **state)
{
    struct failing *f = *state;
    expect_context_failure(f, "nope", EXACT, "unrecognized certificate provider instance name \"nope\"");
    expect_context_failure(f, "strange", EXACT,
                           "certificate provider instance \"strange\" has the plugin \"stranger\", which is not "
                           "supported");
    assert_int_equal(wire_proxy_take_sent(f->proxy), 0);
}

/* Providers in the bootstrap that have no certificates of the kind needed, or do not have them yet. */
static void a_provider_without_certificates_fails(void **state)
{
    struct failing *f = *state;
    expect_failure(
        f,
        "common_tls_context: {tls_certificate_provider_instance: {instance_name: roots}, validation_context: "
        "{ca_certificate_provider_instance: {instance_name: roots}}}",
        "certificate provider instance \"roots\" has no certificate_file");
    assert_int_equal(wire_proxy_take_sent(f->proxy), 0);
    expect_context_failure(f, "late", EXACT, "late.pem\": No such file or directory");
    kit_tls_mesh_write(&f->w, "late.pem", "no certificate");
    kit_mesh_wait_failure(f->w.ch, TORC_STATUS_UNAVAILABLE, "late.pem\": root certificates: no PEM certificate found");
    assert_int_equal(wire_proxy_take_sent(f->proxy), 0);
    /* An RPC that waits for ready succeeds once the certificates are there. */
    kit_tls_mesh_write(&f->w, "late.pem", f->w.root.cert_pem);
    kit_mesh_wait_backend(f->w.k, f->w.ch, "to: good", 1);
    torc_result *r = kit_mesh_call(f->w.ch, NULL, true, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    kit_tls_mesh_expect_nothing_clear(f->proxy);
}

static void a_server_without_tls_fails(void **state)
{
    struct failing *f = *state;
    kit_mesh_secure(f->w.k, 0, NULL);
    expect_context_failure(f, "mesh", EXACT, "TLS handshake with");
    assert_int_equal(kit_mesh_take(f->w.k, 0), 0);
}

/* A29: with credentials other than xds the cluster's TLS context is ignored; xds credentials use their fallback for a
 * cluster without a context. */
static void other_credentials_ignore_the_context(void **state)
{
    (void)state;
    struct kit_tls_mesh w;
    kit_tls_mesh_init(&w, 1, "1s");
    struct wire_proxy *proxy = wire_proxy_new(kit_mesh_address(w.k, 0));
    char *context = kit_tls_mesh_context("mesh", EXACT, "");
    kit_tls_mesh_put_cluster(&w, "c", wire_proxy_address(proxy), context);
    kit_tls_mesh_put_cluster(&w, "good", wire_proxy_address(proxy), context);
    kit_tls_mesh_put_listener(&w);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = w.bootstrap};
    torc_channel *insecure = kit_mesh_channel(w.k, "svc", &o);
    kit_mesh_calls(insecure, NULL, 5);
    assert_true(wire_proxy_saw(proxy, "PRI * HTTP/2.0"));
    torc_channel_free(insecure);
    kit_tls_mesh_put_cluster(&w, "c", wire_proxy_address(proxy), NULL);
    w.ch = kit_tls_mesh_channel(&w, "svc");
    kit_mesh_calls(w.ch, NULL, 5);
    tc_free(context);
    kit_tls_mesh_fini(&w);
    wire_proxy_free(proxy);
}

#define FAILING(test) cmocka_unit_test_setup_teardown(test, setup_failing, teardown_failing)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificates_are_replaced_under_load),
        cmocka_unit_test(an_authority_is_replaced_under_load),
        FAILING(a_wrong_name_fails),
        FAILING(an_expired_certificate_fails),
        FAILING(an_unknown_authority_fails),
        FAILING(a_missing_provider_fails),
        FAILING(a_provider_without_certificates_fails),
        FAILING(a_server_without_tls_fails),
        cmocka_unit_test(other_credentials_ignore_the_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
