/* TLS as a byte stream: handshakes that succeed, fail or are cancelled, data both ways, back-pressure, ends and errors.
 *
 * kits/tls_pair has Torc's client on end 0 of a pipe (fakes/pipe) and Torc's server on end 1. A test that starts the
 * client without the server plays the server itself: end 1 is silent, ends, or sends bytes that are not TLS. Some tests
 * break end 0 (fake_pipe_fail), or put bytes into the pipe beside a server that is up. A handshake that fails is told
 * once, with a reason, and closes the byte stream below.
 *
 * The fixture makes the pair for each test, and frees it with what both sides own. Everything runs on the test's
 * thread, on a manual loop whose time stands still unless a test advances it. */
#include "tls/tls.h"

#include "base/mem.h"
#include "support/cmocka.h"
#include "support/kits/tls_pair.h"

static void a_good_handshake_gives_a_secure_stream(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_both_up(f);
    assert_true(f->client.bs->secure);
    assert_string_equal(f->client.bs->alpn, "h2");
    assert_string_equal(f->server.bs->alpn, "h2");
    assert_true(tc_addr_eq(&f->client.bs->peer, &fake_pipe_end(f->pipe, 0)->peer));
    kit_tls_pair_send_and_compare(f, &f->client, &f->server, 1);
    kit_tls_pair_send_and_compare(f, &f->server, &f->client, 300000);
    /* The wire does not carry the plaintext. */
    tc_buf_append_str(&f->client.to_send, "plaintext");
    kit_tls_pair_side_send(&f->client);
    assert_int_equal(tc_slice_find(fake_pipe_unread(f->pipe, 1), tc_slice_str("plaintext")), -1);
}

static void one_byte_at_a_time(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    fake_pipe_set_read_chunk(f->pipe, 1);
    fake_pipe_set_write_chunk(f->pipe, 7);
    fake_pipe_set_capacity(f->pipe, 11);
    kit_tls_pair_shake(f, &client, "127.0.0.1", &server);
    kit_tls_pair_assert_both_up(f);
    kit_tls_pair_send_and_compare(f, &f->client, &f->server, 70000);
    kit_tls_pair_send_and_compare(f, &f->server, &f->client, 20000);
}

static void a_blocked_writer_is_told_when_it_can_go_on(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_both_up(f);
    f->server.bs->ops->set_reading(f->server.bs, false);
    fake_pipe_set_capacity(f->pipe, 30000);
    char *zeros = tc_calloc(1, 500000);
    tc_buf_append(&f->client.to_send, zeros, 500000);
    kit_tls_pair_side_send(&f->client);
    tc_loop_drain(f->loop);
    assert_true(f->client.to_send.len > 400000);
    assert_int_equal(f->server.received.len, 0);
    f->server.bs->ops->set_reading(f->server.bs, true);
    tc_loop_drain(f->loop);
    assert_int_equal(f->client.to_send.len, 0);
    assert_int_equal(f->server.received.len, 500000);
    tc_free(zeros);
}

static void a_silent_peer_times_out(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    kit_tls_pair_start_client(f, &client, "backend.test");
    tc_loop_advance(f->loop, 4999);
    assert_false(f->client.called);
    tc_loop_advance(f->loop, 1);
    kit_tls_pair_assert_failed(&f->client, "timed out after 5000 ms");
    assert_true(fake_pipe_closed(f->pipe, 0));
}

static void a_peer_that_goes_away_fails_the_handshake(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    kit_tls_pair_start_client(f, &client, "backend.test");
    tc_loop_drain(f->loop);
    fake_pipe_finish(f->pipe, 1);
    tc_loop_drain(f->loop);
    kit_tls_pair_assert_failed(&f->client, "the peer closed the connection");
}

static void an_error_below_fails_the_handshake(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    kit_tls_pair_start_client(f, &client, "backend.test");
    tc_loop_drain(f->loop);
    fake_pipe_fail(f->pipe, 0, TORC_EIO, "the wire broke", false);
    tc_loop_drain(f->loop);
    kit_tls_pair_assert_failed(&f->client, "the wire broke");
}

static void a_peer_without_tls_is_named(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    kit_tls_pair_start_client(f, &client, "backend.test");
    const char answer[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    fake_pipe_put(f->pipe, 1, answer, sizeof(answer) - 1);
    tc_loop_drain(f->loop);
    kit_tls_pair_assert_failed(&f->client, "failed: ");
    assert_non_null(strstr(tc_status_text(&f->client.error),
                           "what came is not TLS: the peer may speak plaintext (wrong version number)"));
}

static void cancel_closes_without_callback(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts();
    kit_tls_pair_start_client(f, &client, "backend.test");
    tc_loop_drain(f->loop);
    tc_tls_handshake_cancel(f->client.handshake);
    f->client.handshake = NULL;
    assert_true(fake_pipe_closed(f->pipe, 0));
    tc_loop_advance(f->loop, 10000);
    assert_false(f->client.called);
}

static void close_sends_close_notify(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_both_up(f);
    size_t before = fake_pipe_unread(f->pipe, 1).len;
    f->client.bs->ops->close(f->client.bs);
    f->client.bs = NULL;
    assert_true(fake_pipe_unread(f->pipe, 1).len > before);
    tc_loop_drain(f->loop);
    assert_true(f->server.ended);
    struct iovec iov = {(void *)(uintptr_t) "x", 1};
    assert_int_equal(f->server.bs->ops->writev(f->server.bs, &iov, 1), TORC_ECLOSED);
}

static void an_error_below_comes_out_of_read_and_write(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_both_up(f);
    fake_pipe_fail(f->pipe, 0, TORC_EIO, "the wire broke", false);
    tc_loop_drain(f->loop);
    assert_int_equal(f->client.read_error, TORC_EIO);
    assert_string_equal(tc_status_text(&f->client.bs->error), "the wire broke");
    struct iovec iov = {(void *)(uintptr_t) "x", 1};
    assert_int_equal(f->client.bs->ops->writev(f->client.bs, &iov, 1), TORC_EIO);
}

static void a_tampered_record_is_an_error(void **state)
{
    struct kit_tls_pair *f = *state;
    struct tc_tls_opts client = kit_tls_pair_client_opts(),
                       server = kit_tls_pair_server_opts(&kit_tls_pair_certs.server);
    kit_tls_pair_shake(f, &client, "backend.test", &server);
    kit_tls_pair_assert_both_up(f);
    const char forged[] = "\x17\x03\x03\x00\x14"
                          "01234567890123456789";
    fake_pipe_put(f->pipe, 1, forged, 25);
    tc_loop_drain(f->loop);
    assert_int_equal(f->client.read_error, TORC_EPROTO);
    assert_non_null(strstr(tc_status_text(&f->client.bs->error), "bad record mac"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, kit_tls_pair_setup, kit_tls_pair_teardown)

int main(void)
{
    kit_tls_pair_certs_make();
    const struct CMUnitTest tests[] = {
        T(a_good_handshake_gives_a_secure_stream),
        T(one_byte_at_a_time),
        T(a_blocked_writer_is_told_when_it_can_go_on),
        T(a_silent_peer_times_out),
        T(a_peer_that_goes_away_fails_the_handshake),
        T(an_error_below_fails_the_handshake),
        T(a_peer_without_tls_is_named),
        T(cancel_closes_without_callback),
        T(close_sends_close_notify),
        T(an_error_below_comes_out_of_read_and_write),
        T(a_tampered_record_is_an_error),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kit_tls_pair_certs_free();
    return failed;
}
