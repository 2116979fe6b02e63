/* The immutable list of a channel's interceptors (channel/interceptors.h), without a channel: an array for each hook,
 * places for the states, names, structs of other sizes, and refused lists. No hook is called. The list owns copies of
 * structs and names, and calls each `release` when it is freed. */
#include "channel/interceptors.h"

#include <string.h>

#include "base/status.h"
#include "support/cmocka.h"

static int releases;    /* calls of `release` */
static int released[3]; /* the number, from 1, of the call whose `arg` pointed to this element; 0: none */

static int start(torc_rpc *rpc, void *state, void *arg)
{
    (void)rpc, (void)state, (void)arg;
    return 0;
}

static void end(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)rpc, (void)code, (void)state, (void)arg;
}

static void release(void *arg)
{
    *(int *)arg = ++releases;
}

static void test_rows(void **state)
{
    (void)state;
    char name[] = "named";
    struct torc_interceptor a = {TORC_SIZE(torc_interceptor), .state_size = 1,    .name = name,
                                 .on_start = start,           .release = release, .arg = &released[0]};
    const struct torc_interceptor b = {TORC_SIZE(torc_interceptor), .release = release, .arg = &released[1]};
    const struct torc_interceptor c = {TORC_SIZE(torc_interceptor), .state_size = 17,
                                       .on_start = start,           .on_end = end,
                                       .release = release,          .arg = &released[2]};
    const struct torc_interceptor *const list[] = {&a, &b, &c, NULL};
    torc_error *error = NULL;
    struct tc_interceptors *l = tc_interceptors_new(list, &error);
    assert_null(error);
    memset(&a, 0, sizeof(a)); /* the list has copies of the struct and of its name */
    memset(name, 'x', sizeof(name) - 1);
    assert_int_equal(l->n, 3);
    assert_int_equal(l->rows[TC_HOOK_START].n, 2);
    assert_ptr_equal(l->rows[TC_HOOK_START].at[0], &l->list[0]);
    assert_ptr_equal(l->rows[TC_HOOK_START].at[1], &l->list[2]);
    assert_int_equal(l->rows[TC_HOOK_END].n, 1);
    for (int hook = TC_HOOK_ATTEMPT; hook < TC_HOOK_END; hook++)
        assert_int_equal(l->rows[hook].n, 0);
    assert_string_equal(l->list[0].app.name, "named");
    assert_string_equal(l->list[1].app.name, "interceptors[1]");
    assert_int_equal(l->list[0].state_at, 0);
    assert_int_equal(l->list[2].state_at, 16);
    assert_int_equal(l->state_bytes, 48);
    tc_interceptors_free(l);
    /* Each `release` was called once, that of the last interceptor first. */
    assert_int_equal(releases, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(released[i], 3 - i);
    tc_interceptors_free(NULL);
}

/* Structs of other versions of the header: fields beyond the size of a shorter one are not read, and a longer one is
 * refused if an unknown field is set. */
static void test_sizes(void **state)
{
    (void)state;
    struct {
        struct torc_interceptor known;
        uint64_t more;
    } longer = {.known = {.size = sizeof(longer), .on_start = start}, .more = 0};
    struct torc_interceptor shorter = {.size = offsetof(struct torc_interceptor, on_attempt), .on_start = start};
    shorter.on_end = end; /* beyond its size */
    const struct torc_interceptor *const list[] = {&longer.known, &shorter, NULL};
    torc_error *error = NULL;
    struct tc_interceptors *l = tc_interceptors_new(list, &error);
    assert_non_null(l);
    assert_int_equal(l->rows[TC_HOOK_START].n, 2);
    assert_int_equal(l->rows[TC_HOOK_END].n, 0);
    tc_interceptors_free(l);
    longer.more = 1;
    assert_null(tc_interceptors_new(list, &error));
    assert_int_equal(torc_error_code(error), TORC_EUNSUPPORTED);
    torc_error_free(error);
}

/* No `release` is called for a list that is refused. */
static void test_refused(void **state)
{
    (void)state;
    releases = 0;
    const struct torc_interceptor good = {TORC_SIZE(torc_interceptor), .release = release, .arg = &released[0]};
    const struct torc_interceptor bad = {TORC_SIZE(torc_interceptor), .state_size = 1 << 20};
    const struct torc_interceptor *const list[] = {&good, &bad, NULL};
    torc_error *error = NULL;
    assert_null(tc_interceptors_new(list, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    assert_string_equal(torc_error_text(error), "interceptors[1]: state_size: is 1048576, must be 0 or in 1..65536");
    torc_error_free(error);
    assert_int_equal(releases, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
