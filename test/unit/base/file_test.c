/* Reading files whole, up to a limit. What is not a regular file is refused at once, without waiting. */
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "support/cmocka.h"

static char folder[64];

/* Returns the path of a name in `folder`, for tc_free. */
static char *path_of(const char *name)
{
    return tc_asprintf("%s/%s", folder, name);
}

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/torc-file-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    static const char *const names[] = {"regular", "link", "fifo", "socket", "loop"};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++) {
        char *path = path_of(names[i]);
        unlink(path);
        tc_free(path);
    }
    return rmdir(folder);
}

/* Makes the file "regular" of `len` bytes: "abc...z", again and again. Returns its path, for tc_free. */
static char *make_regular(size_t len)
{
    char *path = path_of("regular");
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    for (size_t i = 0; i < len; i++)
        fputc('a' + (int)(i % 26), f);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* Asserts that a read of at most `max` bytes fails with the errno `number` and the reason `text`. */
static void expect_refused(const char *path, size_t max, int number, const char *text)
{
    struct tc_buf out = {0};
    const char *why;
    char scratch[128];
    assert_int_equal(tc_file_read(path, max, &out, &why, scratch), number);
    assert_string_equal(why, text);
    tc_buf_fini(&out);
}

static void test_regular_files(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 100000};
    const char *why;
    char scratch[128], *link = path_of("link");
    for (size_t i = 0; i < TC_ARRAY_LEN(sizes); i++) {
        char *path = make_regular(sizes[i]);
        struct tc_buf out = {0};
        tc_buf_append_str(&out, "before");
        assert_int_equal(tc_file_read(path, sizes[i], &out, &why, scratch), 0);
        assert_null(why);
        assert_int_equal(out.len, 6 + sizes[i]);
        assert_memory_equal(out.data, "before", 6);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(out.data[6 + k], 'a' + (int)(k % 26));
        tc_buf_fini(&out);
        if (sizes[i]) {
            char *text = tc_asprintf("larger than %zu bytes", sizes[i] - 1);
            expect_refused(path, sizes[i] - 1, EFBIG, text);
            tc_free(text);
        }
        tc_free(path);
    }
    char *path = make_regular(3);
    struct tc_buf out = {0};
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(tc_file_read(link, 3, &out, &why, scratch), 0);
    assert_string_equal(tc_buf_cstr(&out), "abc");
    tc_buf_clear(&out);
    /* A regular file whose size is not known beforehand. */
    assert_int_equal(tc_file_read("/proc/self/status", 65536, &out, &why, scratch), 0);
    assert_non_null(strstr(tc_buf_cstr(&out), "VmSize"));
    expect_refused("/proc/self/status", 100, EFBIG, "larger than 100 bytes");
    tc_buf_fini(&out);
    tc_free(path);
    tc_free(link);
}

static void test_other_kinds(void **state)
{
    (void)state;
    char *fifo = path_of("fifo"), *sock = path_of("socket"), *absent = path_of("absent"), *loop = path_of("loop");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", sock);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(symlink(loop, loop), 0);
    alarm(120); /* no process writes: an open that waits would never return */
    expect_refused(fifo, 100, EINVAL, "it is a FIFO, not a regular file");
    expect_refused(sock, 100, EINVAL, "it is a socket, not a regular file");
    expect_refused("/dev/zero", 100, EINVAL, "it is a device, not a regular file");
    expect_refused(folder, 100, EINVAL, "it is a directory, not a regular file");
    expect_refused(absent, 100, ENOENT, "No such file or directory");
    expect_refused(loop, 100, ELOOP, "Too many levels of symbolic links");
    alarm(0);
    close(fd);
    tc_free(fifo);
    tc_free(sock);
    tc_free(absent);
    tc_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regular_files),
        cmocka_unit_test(test_other_kinds),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
