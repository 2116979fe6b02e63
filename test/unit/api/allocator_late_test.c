/* torc_set_allocator after Torc has allocated: refused, and nothing changes. */
#include <stdlib.h>

#include <torc/torc.h>

#include "support/cmocka.h"

static void it_is_too_late(void **state)
{
    (void)state;
    torc_metadata *m = torc_metadata_new();
    const struct torc_allocator a = {
        .size = sizeof(a), .malloc = malloc, .calloc = calloc, .realloc = realloc, .free = free};
    assert_int_equal(torc_set_allocator(&a), TORC_ESTATE);
    torc_metadata_free(m);
    assert_int_equal(torc_set_allocator(&a), TORC_ESTATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_too_late)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
