/* Files that are looked at once a second: real files, and a manual loop whose clock the test moves. */
#include "io/file_poll.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "support/cmocka.h"

struct fixture {
    struct tc_loop *loop;
    char folder[64], file[96], other[96];
    int calls;
};

static void on_change(void *arg)
{
    ((struct fixture *)arg)->calls++;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    snprintf(f->folder, sizeof(f->folder), "/tmp/torc-poll-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->file, sizeof(f->file), "%s/a.yaml", f->folder);
    snprintf(f->other, sizeof(f->other), "%s/b.yaml", f->folder);
    f->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    write_file(f->file, "1");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    unlink(f->file);
    unlink(f->other);
    rmdir(f->folder);
    tc_loop_free(f->loop);
    tc_free(f);
    return 0;
}

/* Returns how often on_change was called in the next second. */
static int a_second_later(struct fixture *f)
{
    int before = f->calls;
    tc_loop_advance(f->loop, TC_FILE_POLL_MS);
    return f->calls - before;
}

static void test_file(void **state)
{
    struct fixture *f = *state;
    const char *const paths[] = {f->file};
    struct tc_file_poll *p = tc_file_poll_new(f->loop, paths, 1, on_change, f);
    assert_int_equal(a_second_later(f), 0);
    write_file(f->file, "another size");
    assert_int_equal(a_second_later(f), 1);
    write_file(f->other, "a neighbour");
    assert_int_equal(a_second_later(f), 0);
    assert_int_equal(rename(f->other, f->file), 0);
    assert_int_equal(a_second_later(f), 1);
    unlink(f->file);
    assert_int_equal(a_second_later(f), 1);
    assert_int_equal(a_second_later(f), 0);
    tc_file_poll_free(p);
}

static void test_folder(void **state)
{
    struct fixture *f = *state;
    const char *const paths[] = {f->folder};
    struct tc_file_poll *p = tc_file_poll_new(f->loop, paths, 1, on_change, f);
    assert_int_equal(a_second_later(f), 0);
    write_file(f->other, "new");
    assert_int_equal(a_second_later(f), 1);
    write_file(f->file, "another size");
    assert_int_equal(a_second_later(f), 1);
    assert_int_equal(rename(f->file, f->other), 0);
    assert_int_equal(a_second_later(f), 1);
    assert_int_equal(a_second_later(f), 0);
    tc_file_poll_free(p);
}

static void test_missing_folder(void **state)
{
    struct fixture *f = *state;
    const char *const paths[] = {"/nowhere-at-all/a.yaml"};
    assert_null(tc_file_poll_new(f->loop, paths, 1, on_change, f));
    tc_file_poll_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_folder, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
