/* Files that change by a write, by a rename, or because a link that leads to them is replaced (io/file_watch.h). Other
 * files of the folder are written as well. A folder that is watched itself, and one that does not exist.
 *
 * A fixture owns a real loop and a folder under /tmp with the file a.yaml. The test's thread changes files, and turns
 * the loop, which calls on_change. A test waits for a call up to fifty seconds, since a busy machine may be slow. The
 * look once a second is tested in file_poll_test.c. */
#include "io/file_watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "support/cmocka.h"

struct fixture {
    struct tc_loop *loop;
    char folder[64];
    int calls;
};

static void on_change(void *arg)
{
    ((struct fixture *)arg)->calls++;
}

/* Returns the path of a file in the folder, for tc_free. */
static char *path_of(const struct fixture *f, const char *name)
{
    return tc_asprintf("%s/%s", f->folder, name);
}

static void write_file(const struct fixture *f, const char *name, const char *text)
{
    char *path = path_of(f, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    tc_free(path);
}

static void remove_file(const struct fixture *f, const char *name)
{
    char *path = path_of(f, name);
    unlink(path);
    tc_free(path);
}

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    snprintf(f->folder, sizeof(f->folder), "/tmp/torc-watch-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->loop = tc_loop_new(NULL);
    write_file(f, "a.yaml", "1");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"a.yaml", "b.yaml", "busy.log", "new", "..data", "..data_tmp", "linked.yaml"};
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++)
        remove_file(f, names[i]);
    rmdir(f->folder);
    tc_loop_free(f->loop);
    tc_free(f);
    return 0;
}

/* Turns the loop until on_change was called at least `calls` times in all; fails after fifty seconds. */
static void turn_until(struct fixture *f, int calls)
{
    uint64_t end = tc_loop_clock_ns(f->loop) + 50 * TC_NS_PER_S;
    while (f->calls < calls && tc_loop_clock_ns(f->loop) < end)
        tc_loop_turn(f->loop, 100);
    assert_true(f->calls >= calls);
}

static void test_write_and_rename(void **state)
{
    struct fixture *f = *state;
    char *path = path_of(f, "a.yaml"), *new = path_of(f, "new");
    const char *const paths[] = {path};
    struct tc_file_watch *w = tc_file_watch_new(f->loop, paths, 1, 1, on_change, f);
    assert_non_null(w);
    write_file(f, "a.yaml", "2");
    turn_until(f, 1);
    int before = f->calls;
    write_file(f, "new", "3");
    assert_int_equal(rename(new, path), 0);
    turn_until(f, before + 1);
    tc_file_watch_free(w);
    tc_free(path);
    tc_free(new);
}

static void link_to(const struct fixture *f, const char *name, const char *target)
{
    char *path = path_of(f, name);
    assert_int_equal(symlink(target, path), 0);
    tc_free(path);
}

/* As in a volume of Kubernetes, the file is a link through the link "..data", which is replaced. */
static void test_link_of_a_volume(void **state)
{
    struct fixture *f = *state;
    write_file(f, "b.yaml", "2");
    link_to(f, "..data", "a.yaml");
    link_to(f, "linked.yaml", "..data");
    link_to(f, "..data_tmp", "b.yaml");
    char *path = path_of(f, "linked.yaml"), *data = path_of(f, "..data"), *new = path_of(f, "..data_tmp");
    const char *const paths[] = {path};
    struct tc_file_watch *w = tc_file_watch_new(f->loop, paths, 1, 1, on_change, f);
    assert_non_null(w);
    assert_int_equal(rename(new, data), 0);
    turn_until(f, 1);
    tc_file_watch_free(w);
    tc_free(path);
    tc_free(data);
    tc_free(new);
}

/* Another file that is written all the time does not count, and does not put off the report of the watched file. */
static void test_busy_neighbour(void **state)
{
    struct fixture *f = *state;
    char *path = path_of(f, "a.yaml");
    const char *const paths[] = {path};
    struct tc_file_watch *w = tc_file_watch_new(f->loop, paths, 1, 5, on_change, f);
    assert_non_null(w);
    for (int i = 0; i < 50; i++) {
        write_file(f, "busy.log", "x");
        tc_loop_turn(f->loop, 0);
    }
    assert_int_equal(f->calls, 0);
    write_file(f, "a.yaml", "2");
    uint64_t end = tc_loop_clock_ns(f->loop) + 50 * TC_NS_PER_S;
    while (f->calls == 0 && tc_loop_clock_ns(f->loop) < end) {
        write_file(f, "busy.log", "x");
        tc_loop_turn(f->loop, 0);
    }
    assert_true(f->calls > 0);
    tc_file_watch_free(w);
    tc_free(path);
}

/* A file of a watched folder is written without pause: on_change is called all the same. */
static void test_busy_file(void **state)
{
    struct fixture *f = *state;
    const char *const paths[] = {f->folder};
    struct tc_file_watch *w = tc_file_watch_new(f->loop, paths, 1, 5, on_change, f);
    assert_non_null(w);
    uint64_t end = tc_loop_clock_ns(f->loop) + 50 * TC_NS_PER_S;
    while (f->calls < 3 && tc_loop_clock_ns(f->loop) < end) {
        write_file(f, "b.yaml", "x");
        tc_loop_turn(f->loop, 0);
    }
    assert_true(f->calls >= 3);
    tc_file_watch_free(w);
}

static void test_missing_folder(void **state)
{
    struct fixture *f = *state;
    const char *const paths[] = {"/nowhere-at-all/a.yaml"};
    assert_null(tc_file_watch_new(f->loop, paths, 1, 1, on_change, f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write_and_rename, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_of_a_volume, setup, teardown),
        cmocka_unit_test_setup_teardown(test_busy_neighbour, setup, teardown),
        cmocka_unit_test_setup_teardown(test_busy_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_folder, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
