/* Backends that send anything, in the clear. */
#include "support/cmocka.h"
#include "support/hostile_world.h"

#include "base/mem.h"

static void floods(void **state)
{
    (void)state;
    hostile_world_play(hostile_flood_rows());
}

static void headers(void **state)
{
    (void)state;
    hostile_world_play(hostile_header_rows());
}

static void messages(void **state)
{
    (void)state;
    hostile_world_play(hostile_message_rows());
}

static void states(void **state)
{
    (void)state;
    hostile_world_play(hostile_state_rows());
}

/* Calls to the good backend, all the while. */
static void others_do_not_notice(void **state)
{
    (void)state;
    hostile_world_others();
}

static int open_world(void **state)
{
    (void)state;
    const struct hostile_rows rows[] = {hostile_flood_rows(), hostile_header_rows(), hostile_message_rows(),
                                        hostile_state_rows()};
    hostile_world_open(rows, TC_ARRAY_LEN(rows), false);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    hostile_world_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floods),
        cmocka_unit_test(headers),
        cmocka_unit_test(messages),
        cmocka_unit_test(states),
        cmocka_unit_test(others_do_not_notice),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
