/* A dialer that hands out one descriptor: who owns and closes the descriptor when the channel ends during a dial, and
 * when the channel ends later. The test's thread turns a real loop. */
#include "io/dialer.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/cmocka.h"

struct outcome {
    struct tc_bytestream *bs; /* to be closed; NULL: the dial failed */
    char error[256];
    unsigned calls;
};

static void on_dialed(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct outcome *o = arg;
    o->calls++;
    o->bs = bs;
    if (!bs)
        snprintf(o->error, sizeof(o->error), "%s", tc_status_text(error));
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* With `ends` the channel ends after the dial began and before the dial's task runs: the dial fails, and the dialer
 * closes the descriptor. Otherwise the dial succeeds, and its byte stream owns and closes the descriptor. */
static void a_dial_fails_once_the_channel_has_ended(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        struct tc_loop *loop = tc_loop_new(NULL);
        struct outcome o = {0};
        struct tc_addr addr;
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        assert_int_equal(tc_addr_from_ip(&addr, tc_slice_str("10.0.0.1"), 80), 0);
        struct tc_dialer *d = tc_dialer_of_fd(fds[0]);
        tc_dialer_accept(d);
        assert_non_null(tc_dialer_start(d, loop, &addr, 0, on_dialed, &o));
        if (ends)
            tc_dialer_end(d, loop);
        tc_loop_turn(loop, 0);
        assert_int_equal(o.calls, 1);
        if (ends) {
            assert_null(o.bs);
            assert_non_null(strstr(o.error, "the channel has ended"));
        } else {
            assert_non_null(o.bs);
            o.bs->ops->close(o.bs);
            tc_dialer_end(d, loop);
        }
        tc_loop_turn(loop, 0);
        assert_false(is_open(fds[0]));
        tc_dialer_unref(d);
        tc_addr_fini(&addr);
        close(fds[1]);
        tc_loop_free(loop);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dial_fails_once_the_channel_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
