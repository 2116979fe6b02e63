/* Sockets are made non-blocking and close-on-exec, by flags or, for systems without SOCK_CLOEXEC, by fcntl. */
#include "io/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/common.h"
#include "support/cmocka.h"

static void assert_prepared(int fd)
{
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void test_socket(void **state TC_UNUSED)
{
    int fd = tc_descriptor_socket(AF_UNIX, SOCK_STREAM, 0);
    assert_prepared(fd);
    assert_true(tc_descriptor_accept(fd) < 0); /* it does not listen */
    close(fd);
    assert_true(tc_descriptor_socket(-1, SOCK_STREAM, 0) < 0);
}

/* Systems without SOCK_CLOEXEC prepare each socket by tc_descriptor_prepare. */
static void test_prepare(void **state TC_UNUSED)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(tc_descriptor_prepare(fd));
    assert_prepared(fd);
    close(fd);
    assert_false(tc_descriptor_prepare(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_socket), cmocka_unit_test(test_prepare)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
