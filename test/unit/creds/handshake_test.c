/* tc_creds_handshake_stage: the text for what a handshake of credentials waits for. */
#include "creds/handshake.h"

#include "support/cmocka.h"
#include "support/fakes/pipe.h"

static void on_handshake(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_bytestream **got = arg;
    assert_null(error);
    *got = bs;
}

/* A handshake without TLS waits for the loop alone. */
static void plaintext_names_no_tls(void **state)
{
    (void)state;
    struct tc_loop *loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    struct fake_pipe *pipe = fake_pipe_new(loop);
    struct tc_bytestream *got = NULL;
    struct tc_creds_handshake *h = tc_creds_handshake_none(loop, fake_pipe_end(pipe, 0), on_handshake, &got);
    assert_string_equal(tc_creds_handshake_stage(h), "the next turn of the loop");
    tc_loop_drain(loop);
    assert_ptr_equal(got, fake_pipe_end(pipe, 0));
    got->ops->close(got);
    tc_loop_drain(loop);
    fake_pipe_free(pipe);
    tc_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plaintext_names_no_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
