/* Descriptors that the kernel refuses: a loop that cannot be made says why and leaves nothing behind, a watch tries
 * again, and nothing ends the process. eventfd and epoll_ctl below replace libc's, also for libuv: `eventfds` and
 * `adds` tell them when to fail. Each test begins with neither failing (`reset`). The last test refuses nothing: a
 * child makes a loop where there are no files. One thread runs all tests. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/watch.h"
#include "support/cmocka.h"

/* Calls fail from the `at`-th on, with the errno `error`; 0: no call fails. `calls` counts the calls that may fail: of
 * epoll_ctl, additions that the kernel accepts. */
static struct fault {
    unsigned at, calls;
    int error;
} eventfds, adds;

static bool fails(struct fault *f)
{
    f->calls++;
    if (!f->at || f->calls < f->at)
        return false;
    errno = f->error;
    return true;
}

__attribute__((visibility("default"))) int eventfd(unsigned count, int flags)
{
    return fails(&eventfds) ? -1 : (int)syscall(SYS_eventfd2, count, flags);
}

/* Refuses additions alone, and only those that the kernel would have accepted. */
__attribute__((visibility("default"))) int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    int rc = (int)syscall(SYS_epoll_ctl, epfd, op, fd, event);
    if (rc == 0 && op == EPOLL_CTL_ADD && fails(&adds)) {
        int error = errno;
        syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_DEL, fd, event);
        errno = error;
        return -1;
    }
    return rc;
}

static unsigned count_descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int reset(void **state)
{
    (void)state;
    eventfds = adds = (struct fault){0};
    tc_loop_free(tc_loop_new(NULL)); /* libuv takes the descriptors that all its loops share, and keeps them */
    return 0;
}

static void a_loop_without_its_eventfd_leaves_nothing_behind(void **state)
{
    (void)state;
    unsigned before = count_descriptors(), refused = 0;
    for (unsigned at = 1; at < 12; at++) {
        eventfds = (struct fault){.at = at, .error = EMFILE};
        struct tc_loop *loop = tc_loop_new(NULL);
        eventfds.at = 0;
        if (!loop)
            assert_int_equal(errno, EMFILE);
        refused += !loop;
        tc_loop_free(loop);
        assert_int_equal(count_descriptors(), before);
    }
    assert_in_range(refused, 6, 7); /* io/uv_loop.c tries five, then libuv makes one or two */
}

static void a_loop_that_epoll_refuses_says_why(void **state)
{
    (void)state;
    unsigned before = count_descriptors(), refused = 0;
    for (unsigned at = 1; at < 6; at++) {
        adds = (struct fault){.at = at, .error = ENOSPC};
        struct tc_loop *loop = tc_loop_new(NULL);
        if (!loop)
            assert_int_equal(errno, ENOSPC);
        else
            tc_loop_turn(loop, 0);
        refused += !loop;
        tc_loop_free(loop);
        assert_int_equal(count_descriptors(), before);
    }
    assert_in_range(refused, 1, 3);
}

static unsigned heard;

static void on_watch(void *arg, unsigned events, bool error)
{
    char byte;
    assert_false(error);
    assert_int_equal(events, TC_WATCH_READ);
    assert_int_equal(read(*(int *)arg, &byte, 1), 1);
    heard++;
}

static void a_watch_that_epoll_refuses_waits(void **state)
{
    static const int errors[] = {ENOSPC, ENOMEM, EPERM};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(errors); i++) {
        int fds[2];
        assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
        struct tc_loop *loop = tc_loop_new(NULL);
        adds = (struct fault){.at = 1, .error = errors[i]};
        assert_null(tc_watch_new(loop, fds[0], on_watch, &fds[0]));
        assert_int_equal(errno, errors[i]);
        adds.at = 0;
        struct tc_watch *w = tc_watch_new(loop, fds[0], on_watch, &fds[0]);
        assert_non_null(w);
        heard = 0;
        adds = (struct fault){.at = 1, .error = errors[i]};
        tc_watch_set(w, TC_WATCH_READ);
        assert_int_equal(write(fds[1], "x", 1), 1);
        while (adds.calls < 3)
            tc_loop_turn(loop, -1);
        assert_int_equal(heard, 0);
        adds.at = 0;
        while (!heard)
            tc_loop_turn(loop, -1);
        tc_watch_close(w);
        tc_loop_free(loop);
        close(fds[0]);
        close(fds[1]);
    }
}

static void a_loop_needs_no_file_system(void **state)
{
    (void)state;
    char folder[] = "/tmp/torc-chroot-XXXXXX";
    assert_non_null(mkdtemp(folder));
    pid_t child = fork();
    if (child == 0) {
        if ((geteuid() != 0 && unshare(CLONE_NEWUSER) != 0) || chroot(folder) != 0)
            _exit(errno == EPERM || errno == ENOSPC ? 77 : 2);
        _exit(tc_loop_new(NULL) == NULL);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(rmdir(folder), 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip(); /* neither root nor a user namespace: there is no chroot */
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_loop_without_its_eventfd_leaves_nothing_behind, reset),
        cmocka_unit_test_setup(a_loop_that_epoll_refuses_says_why, reset),
        cmocka_unit_test_setup(a_watch_that_epoll_refuses_waits, reset),
        cmocka_unit_test_setup(a_loop_needs_no_file_system, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
