/* Peers that a handshake accepts or refuses: names, roots, certificates of clients, the verify callback. Contexts that
 * are refused. Names that a connected peer may be addressed by (peer_is).
 *
 * kits/tls_pair has Torc's client and Torc's server over fakes/pipe, and lists which names each certificate has. Most
 * tests change the options of a side, or the name that the client expects, and assert that both sides are up or that
 * one side refuses the other's certificate: the refusing side gets the reason, the other side an alert.
 * kit_tls_pair_assert_failed compares a part of the error's text. an_event_before_the_refusal_begins_no_handshake has
 * no server.
 *
 * The fixture makes the pair for each test, and frees it with what both sides own. Its teardown fails if OpenSSL's
 * error queue is not empty. bad_material_is_refused_with_its_name needs no pair. Everything runs on the test's thread,
 * on a manual loop. */
#include "tls/tls.h"

#include <openssl/err.h>

#include "base/mem.h"
#include "support/cmocka.h"
#include "support/kits/tls_pair.h"

static void names_are_matched_by_rfc_9525(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "a.wild.test.", &server);
    kit_tls_pair_assert_both_up(f);
}

static void ip_literals_are_matched(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "[::1]", &server);
    kit_tls_pair_assert_both_up(f);
}

static void a_wrong_name_is_refused(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "other.test", &server);
    kit_tls_pair_assert_failed(&f->client,
                               "TLS handshake with \"other.test\" (192.0.2.1:1001) failed: certificate verify failed: "
                               "hostname mismatch: the certificate is not valid for \"other.test\"");
    kit_tls_pair_assert_failed(&f->server, "alert bad certificate");
    assert_true(fake_pipe_closed(f->pipe, 0));
}

static void a_wrong_ip_is_refused(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "127.0.0.2", &server);
    kit_tls_pair_assert_failed(&f->client, "IP address mismatch: the certificate is not valid for \"127.0.0.2\"");
}

static void a_wildcard_is_one_label(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "a.b.wild.test", &server);
    kit_tls_pair_assert_failed(&f->client, "hostname mismatch");
}

static void a_common_name_is_no_name(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.cn_only);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_failed(&f->client, "hostname mismatch");
}

static void an_empty_name_is_refused(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "", &server);
    kit_tls_pair_assert_failed(&f->client, "there is no server name to verify");
}

/* An event of the byte stream comes before the task that refuses. The client still sends nothing to the peer. */
static void an_event_before_the_refusal_begins_no_handshake(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    fake_pipe_put(f->pipe, 1, "x", 1);
    kit_tls_pair_start_client(f, &client, "");
    tc_loop_drain(f->loop);
    kit_tls_pair_assert_failed(&f->client, "there is no server name to verify");
    assert_int_equal(fake_pipe_unread(f->pipe, 1).len, 0);
}

/* Texts that are not the name of a host. For ".test" OpenSSL itself would accept a certificate of any name below
 * "test". */
static const char *const no_hosts[] = {".test",          ".wild.test", "..test", "backend..test", ".",     "..",
                                       "backend.test..", "*",          "*.",     "*.wild.test",   "*.test"};

static void what_is_not_a_host_is_refused(void **state)
{
    for (size_t i = 0; i < TC_ARRAY_LEN(no_hosts); i++) {
        struct kit_tls_pair *f = *state;
        struct tc_tls_opts client = kit_tls_pair_client_opts(),
                           server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
        kit_tls_pair_shake(f, &client, no_hosts[i], &server);
        kit_tls_pair_assert_failed(&f->client, "failed: the name is not one of a host that a certificate could be for");
        assert_int_equal(kit_tls_pair_teardown(state), 0);
        kit_tls_pair_setup(state);
    }
}

/* A81: a call may name another host than the handshake did. */
static void what_is_not_a_host_is_not_the_peer(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_both_up(f);
    struct tc_bytestream *bs = f->client.bs;
    for (size_t i = 0; i < TC_ARRAY_LEN(no_hosts); i++)
        if (bs->ops->peer_is(bs, tc_slice_str(no_hosts[i])))
            fail_msg("the peer is \"%s\"", no_hosts[i]);
    assert_false(bs->ops->peer_is(bs, tc_slice_str("")));
    assert_false(bs->ops->peer_is(bs, tc_slice_of("backend.test\0", 13)));
    assert_true(bs->ops->peer_is(bs, tc_slice_str("backend.test")));
    assert_true(bs->ops->peer_is(bs, tc_slice_str("backend.test.")));
    assert_true(bs->ops->peer_is(bs, tc_slice_str("a.wild.test")));
    assert_true(bs->ops->peer_is(bs, tc_slice_str("[::1]")));
    assert_true(bs->ops->peer_is(bs, tc_slice_str("127.0.0.1")));
}

static void chain_only_does_not_look_at_the_name(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    client.verify = TC_TLS_VERIFY_CHAIN;
    kit_tls_pair_shake(f, &client, "other.test", &server);
    kit_tls_pair_assert_both_up(f);
}

static void an_unknown_root_is_refused(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    client.roots_pem = kit_cert_pem(&kit_tls_pair_certs.other_root);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_failed(&f->client,
                               "certificate verify failed: unable to get local issuer certificate: the authority "
                               "\"/CN=root\" is not among the roots");
    kit_tls_pair_assert_failed(&f->server, "alert unknown ca");
}

static void chain_only_still_needs_a_known_root(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    client.roots_pem = kit_cert_pem(&kit_tls_pair_certs.other_root);
    client.verify = TC_TLS_VERIFY_CHAIN;
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_failed(&f->client, "unable to get local issuer certificate");
}

static void without_verification_anything_goes(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.expired);
    client.verify = TC_TLS_VERIFY_NONE;
    kit_tls_pair_shake(f, &client, "", &server);
    kit_tls_pair_assert_both_up(f);
}

static void an_expired_certificate_is_refused(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.expired);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_failed(&f->client, "certificate verify failed: certificate has expired");
}

/* Returns the options of a server that asks for a client's certificate as `verify` says. The options borrow the texts
 * of the certificates. */
static struct tc_tls_opts mutual_server(enum tc_tls_verify verify)
{
    struct tc_tls_opts server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    server.verify = verify;
    server.roots_pem = kit_cert_pem(&kit_tls_pair_certs.root);
    return server;
}

static void a_client_certificate_is_accepted(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(), server = mutual_server(TC_TLS_VERIFY_FULL);
    client.certificate_pem = kit_cert_pem(&kit_tls_pair_certs.client);
    client.private_key_pem = kit_cert_key(&kit_tls_pair_certs.client);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_both_up(f);
    kit_tls_pair_send_and_compare(f, &f->client, &f->server, 1000);
}

static void a_missing_client_certificate_is_refused(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(), server = mutual_server(TC_TLS_VERIFY_FULL);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_failed(&f->server, "peer did not return a certificate");
    /* With TLS 1.3 the client's handshake is over before the server checks the certificate. */
    assert_non_null(f->client.bs);
    assert_int_equal(f->client.read_error, TORC_EPROTO);
    assert_non_null(strstr(tc_status_text(&f->client.bs->error), "alert certificate required"));
}

static void an_optional_client_certificate_may_be_missing(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(), server = mutual_server(TC_TLS_VERIFY_OPTIONAL);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_both_up(f);
}

/* Verify callbacks. `arg` is an int that counts the calls. */

static bool refuse_backend(void *arg, struct x509_st *leaf, const char *name, struct tc_buf *why)
{
    int *calls = arg;
    (*calls)++;
    assert_non_null(leaf);
    tc_buf_printf(why, "%s is not wanted here", name);
    return false;
}

static bool accept_backend(void *arg, struct x509_st *leaf, const char *name, struct tc_buf *why)
{
    int *calls = arg;
    (*calls)++;
    (void)leaf, (void)name, (void)why;
    return true;
}

static void the_verify_callback_can_refuse(void **state)
{
    struct kit_tls_pair *f = *state;
    int calls = 0;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    client.verify = TC_TLS_VERIFY_CHAIN;
    client.verify_fn = refuse_backend;
    client.verify_arg = &calls;
    kit_tls_pair_shake(f, &client, "any.test", &server);
    kit_tls_pair_assert_failed(&f->client, "certificate verify failed: any.test is not wanted here");
    assert_int_equal(calls, 1);
}

static void the_verify_callback_cannot_overrule_the_chain(void **state)
{
    struct kit_tls_pair *f = *state;
    int calls = 0;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    client.roots_pem = kit_cert_pem(&kit_tls_pair_certs.other_root);
    client.verify_fn = accept_backend;
    client.verify_arg = &calls;
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_failed(&f->client, "unable to get local issuer certificate");
    assert_int_equal(calls, 0);
}

/* Contexts. */

/* Asserts that the context is refused with an error that contains `text`, and that OpenSSL's error queue is empty. */
static void assert_refused(const struct tc_tls_opts *opts, const char *text)
{
    struct tc_status error = {0};
    assert_null(tc_tls_context_new(opts, &error));
    assert_int_equal(error.code, TORC_STATUS_INVALID_ARGUMENT);
    if (!strstr(tc_status_text(&error), text))
        fail_msg("\"%s\" is not in \"%s\"", text, tc_status_text(&error));
    tc_status_fini(&error);
    assert_int_equal(ERR_peek_error(), 0);
}

static void bad_material_is_refused_with_its_name(void **state)
{
    (void)state;
    struct tc_tls_opts opts = kit_tls_pair_client_opts();
    opts.roots_pem = tc_slice_str("no certificate");
    assert_refused(&opts, "root certificates: no PEM certificate found");
    opts.roots_pem = tc_slice_str("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert_refused(&opts, "root certificates: ");
    opts = kit_tls_pair_client_opts();
    opts.certificate_pem = kit_cert_pem(&kit_tls_pair_certs.client);
    assert_refused(&opts, "certificate and private key must be given together");
    opts.private_key_pem = kit_cert_key(&kit_tls_pair_certs.server);
    assert_refused(&opts, "private key: key values mismatch");
    opts.private_key_pem = tc_slice_str("");
    assert_refused(&opts, "private key: ");
    opts.certificate_pem = tc_slice_str("");
    assert_refused(&opts, "certificate chain: no PEM certificate found");
    opts = (struct tc_tls_opts){.server = true};
    assert_refused(&opts, "a server needs a certificate");
}

/* Names that a connected peer may be addressed by. */

static void other_names_of_a_certificate(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_both_up(f);
    static const struct {
        const char *name;
        bool valid;
    } cases[] = {{"backend.test", true},   {"backend.test.", true}, {"b.wild.test", true},
                 {"b.c.wild.test", false}, {"other.test", false},   {"127.0.0.1", true},
                 {"127.0.0.2", false},     {"::1", true},           {"", false}};
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++)
        assert_int_equal(f->client.bs->ops->peer_is(f->client.bs, tc_slice_str(cases[i].name)), cases[i].valid);
}

static void any_name_where_none_was_looked_at(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    client.verify = TC_TLS_VERIFY_CHAIN;
    kit_tls_pair_shake(f, &client, "other.test", &server);
    assert_true(f->client.bs->ops->peer_is(f->client.bs, tc_slice_str("any.test")));
}

/* one_name: peer_is accepts the handshake's name only, although the certificate has more. */
static void one_name_alone(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    client.one_name = true;
    kit_tls_pair_shake(f, &client, "backend.test.", &server);
    kit_tls_pair_assert_both_up(f);
    struct tc_bytestream *bs = f->client.bs;
    assert_true(bs->ops->peer_is(bs, tc_slice_str("backend.test")));
    assert_true(bs->ops->peer_is(bs, tc_slice_str("Backend.test.")));
    assert_false(bs->ops->peer_is(bs, tc_slice_str("a.wild.test"))); /* in the certificate */
    assert_false(bs->ops->peer_is(bs, tc_slice_str("127.0.0.1")));
    assert_false(bs->ops->peer_is(bs, tc_slice_str("")));
}

#define T(f) cmocka_unit_test_setup_teardown(f, kit_tls_pair_setup, kit_tls_pair_teardown)

int main(void)
{
    kit_tls_pair_certs_make();
    const struct CMUnitTest tests[] = {
        T(names_are_matched_by_rfc_9525),
        T(ip_literals_are_matched),
        T(a_wrong_name_is_refused),
        T(one_name_alone),
        T(a_wrong_ip_is_refused),
        T(a_wildcard_is_one_label),
        T(a_common_name_is_no_name),
        T(an_empty_name_is_refused),
        T(an_event_before_the_refusal_begins_no_handshake),
        T(what_is_not_a_host_is_refused),
        T(what_is_not_a_host_is_not_the_peer),
        T(chain_only_does_not_look_at_the_name),
        T(an_unknown_root_is_refused),
        T(chain_only_still_needs_a_known_root),
        T(without_verification_anything_goes),
        T(an_expired_certificate_is_refused),
        T(a_client_certificate_is_accepted),
        T(a_missing_client_certificate_is_refused),
        T(an_optional_client_certificate_may_be_missing),
        T(the_verify_callback_can_refuse),
        T(other_names_of_a_certificate),
        T(any_name_where_none_was_looked_at),
        T(the_verify_callback_cannot_overrule_the_chain),
        cmocka_unit_test(bad_material_is_refused_with_its_name),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kit_tls_pair_certs_free();
    return failed;
}
