/* At most 4096 TLS peers of one hook wait for the application's verdict. */
#include "support/cmocka.h"

#include "base/mem.h"
#include "creds/tls_peer.h"
#include "io/loop.h"
#include "tls/identity.h"

enum { MAX_PEERS = 4096 };

static torc_tls_peer *asked[MAX_PEERS];
static size_t n_asked;

static void on_verify(torc_tls_peer *peer, void *arg)
{
    (void)arg;
    asked[n_asked++] = peer;
}

static void on_verdict(void *arg, const char *refusal)
{
    (void)refusal;
    (*(int *)arg)++;
}

/* A peer that the application has seen counts until the application answers, also if the connection has ended. */
static void unanswered_peers_are_bounded(void **state)
{
    (void)state;
    int verdicts = 0;
    struct tc_loop *loop = tc_loop_new(NULL);
    struct tc_tls_identity *identity = TC_NEW(struct tc_tls_identity);
    tc_ref_init(&identity->ref);
    struct tc_bytestream bs = {.tls_peer = identity};
    assert_int_equal(tc_addr_from_ip(&bs.peer, tc_slice_str("127.0.0.1"), 1), 0);
    struct tc_tls_hook hook = {.owner = torc_credentials_insecure(), .fn = on_verify};
    struct tc_buf why = {0};
    for (int round = 0; round < 2; round++) {
        n_asked = 0;
        for (int i = 0; i < MAX_PEERS; i++) {
            struct torc_tls_peer *p = tc_tls_peer_ask(loop, &hook, &bs, on_verdict, &verdicts, &why);
            assert_non_null(p);
            if (i == 0) { /* a peer that the application has not seen is freed at once */
                tc_tls_peer_cancel(p);
                p = tc_tls_peer_ask(loop, &hook, &bs, on_verdict, &verdicts, &why);
            }
            tc_loop_turn(loop, 0);
            tc_tls_peer_cancel(p); /* the client has gone */
        }
        assert_int_equal(n_asked, MAX_PEERS);
        assert_null(tc_tls_peer_ask(loop, &hook, &bs, on_verdict, &verdicts, &why));
        assert_string_equal(tc_buf_cstr(&why), "4096 peers wait for its answer already");
        tc_buf_fini(&why);
        for (size_t i = 0; i < MAX_PEERS; i++)
            torc_tls_peer_accept(asked[i]);
    }
    assert_int_equal(verdicts, 0);
    assert_int_equal(atomic_load(&hook.n_peers), 0);
    torc_credentials_unref(hook.owner);
    tc_tls_identity_unref(identity);
    tc_addr_fini(&bs.peer);
    tc_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(unanswered_peers_are_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
