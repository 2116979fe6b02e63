/* Messages that a server must not send: beyond its limit, and too long for gRPC's length prefix. */
#include <stdio.h>
#include <sys/mman.h>

#include "support/cmocka.h"
#include "support/kits/server_pipe.h"

static void on_echo(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)arg;
    tc_server_call_reply(call, tc_rstr_slice(request));
}

/* Makes a unary call of the path. Asserts that the first headers of its answer have `part` in them. */
static void expect_answer(struct kit_server_pipe *k, uint32_t id, const char *fields, const char *part)
{
    fake_h2_headers(k->peer, id, fields, false);
    fake_h2_message(k->peer, id, "x", 1, true);
    tc_loop_drain(k->loop);
    const struct fake_h2_frame *frame = fake_h2_expect(k->peer, FAKE_H2_HEADERS, id);
    assert_non_null(frame);
    if (!strstr(frame->headers, part))
        fail_msg("%s has no %s", frame->headers, part);
}

static void on_large(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    (void)request;
    tc_server_call_send_ref(call, arg);
    tc_server_call_send(call, tc_slice_str("behind"));
    tc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

/* A message that is too large to send ends the call, and the client learns why. */
static void large_messages_to_send(void **state)
{
    (void)state;
    /* 5 GiB that are never read, and take no memory. */
    size_t huge = (size_t)5 << 30;
    struct tc_rstr *rows[] = {mmap(NULL, sizeof(struct tc_rstr) + huge, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
                              tc_rstr_str("twelve bytes")};
    static const char *const texts[] = {"message to send larger than max (5368709120 vs. 4294967295)",
                                        "message to send larger than max (12 vs. 10)"};
    assert_ptr_not_equal(rows[0], MAP_FAILED);
    tc_ref_init(&rows[0]->ref);
    rows[0]->len = huge;
    for (size_t i = 0; i < 2; i++) {
        struct kit_server_pipe k;
        struct tc_server_opts opts;
        char answer[256];
        tc_server_opts_init(&opts);
        if (i == 1)
            opts.http2.limits.max_send_message_bytes = 10;
        kit_server_pipe_init(&k, &opts);
        tc_server_add_unary(k.server, "/t.S/Echo", on_echo, NULL);
        tc_server_add_unary(k.server, "/t.S/Large", on_large, rows[i]);
        kit_server_pipe_connect(&k, 0);
        snprintf(answer, sizeof(answer), "grpc-status: 8\ngrpc-message: %s\n", texts[i]);
        expect_answer(&k, 1, KIT_SERVER_PIPE_REQUEST("/t.S/Large"), answer);
        expect_answer(&k, 3, KIT_SERVER_PIPE_REQUEST("/t.S/Echo"), ":status: 200\n");
        kit_server_pipe_fini(&k);
    }
    munmap(rows[0], sizeof(struct tc_rstr) + huge);
    tc_rstr_unref(rows[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_messages_to_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
