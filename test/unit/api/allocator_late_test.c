/* torc_set_allocator returns TORC_ESTATE after Torc has allocated, and the functions of the refused allocator are never
 * called. */
#include <stdlib.h>

#include <torc/torc.h>

#include "support/cmocka.h"

static unsigned used; /* calls of the refused functions */

static void *refused_malloc(size_t size)
{
    used++;
    return malloc(size);
}

static void *refused_calloc(size_t n, size_t size)
{
    used++;
    return calloc(n, size);
}

static void *refused_realloc(void *ptr, size_t size)
{
    used++;
    return realloc(ptr, size);
}

static void refused_free(void *ptr)
{
    used++;
    free(ptr);
}

static void it_is_too_late(void **state)
{
    (void)state;
    torc_metadata *m = torc_metadata_new();
    const struct torc_allocator a = {.size = sizeof(a),
                                     .malloc = refused_malloc,
                                     .calloc = refused_calloc,
                                     .realloc = refused_realloc,
                                     .free = refused_free};
    assert_int_equal(torc_set_allocator(&a), TORC_ESTATE);
    torc_metadata_free(m);
    assert_int_equal(torc_set_allocator(&a), TORC_ESTATE);
    m = torc_metadata_new();
    assert_int_equal(torc_metadata_add_string(m, "name", "value"), 0);
    torc_metadata_free(m);
    assert_int_equal(used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_too_late)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
