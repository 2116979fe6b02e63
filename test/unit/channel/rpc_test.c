/* The outcome of an RPC as its hooks see it (torc/interceptor.h), with an RPC of no channel: the test begins the walk
 * past on_status, which the interceptor delays, and ends the RPC. The test's thread drives the runtime. */
#include "channel/rpc.h"

#include <string.h>

#include "support/cmocka.h"

enum { SEEN_WIRE, SEEN_STATUS, SEEN_END, SEEN };

static struct tc_headers fields; /* the response's headers, and its trailers */
static int shown[SEEN];          /* calls of the hook that saw the whole outcome */
static int hidden[SEEN];         /* calls of the hook that saw nothing of the outcome */
static torc_pending *pending;

static void see(torc_rpc *rpc, int hook)
{
    const torc_metadata *headers = torc_rpc_headers(rpc), *trailers = torc_rpc_trailers(rpc);
    const char *text = torc_rpc_text(rpc);
    int layer = torc_rpc_layer(rpc);
    shown[hook] += headers && trailers && strcmp(text, "no") == 0 && layer == TORC_LAYER_PEER;
    hidden[hook] += !headers && !trailers && strcmp(text, "") == 0 && layer == TORC_LAYER_NONE;
}

static void on_wire(torc_rpc *rpc, const torc_wire *wire, void *state, void *arg)
{
    (void)wire, (void)state, (void)arg;
    see(rpc, SEEN_WIRE);
}

static int on_status(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)code, (void)state, (void)arg;
    see(rpc, SEEN_STATUS);
    pending = torc_rpc_suspend(rpc);
    return TORC_PENDING;
}

static void on_end(torc_rpc *rpc, int code, void *state, void *arg)
{
    (void)code, (void)state, (void)arg;
    see(rpc, SEEN_END);
}

static const struct tc_headers *response_fields(const torc_rpc *rpc)
{
    (void)rpc;
    return &fields;
}

/* on_wire runs while on_status is delayed, and once more before on_end: the outcome is not for on_wire. */
static void the_outcome_is_for_on_status_and_on_end(void **state)
{
    (void)state;
    static const struct torc_interceptor it = {TORC_SIZE(torc_interceptor), .on_status = on_status, .on_wire = on_wire,
                                               .on_end = on_end};
    static const struct tc_rpc_side side = {.headers = response_fields, .trailers = response_fields};
    const struct torc_interceptor *const names[] = {&it, NULL};
    struct tc_interceptors *list = tc_interceptors_new(names, NULL);
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_runtime *rt = torc_runtime_new(&o, NULL);
    struct tc_arena arena;
    struct tc_headers metadata;
    struct tc_status status = tc_status_make(TORC_STATUS_ABORTED, TORC_LAYER_PEER, "no");
    tc_arena_init(&arena, 0, 0);
    tc_headers_init(&metadata, &arena);
    tc_headers_init(&fields, &arena);
    tc_headers_add_copy(&fields, tc_slice_str("a"), tc_slice_str("b"));
    torc_rpc *rpc = tc_rpc_new(list, rt, &side, NULL, &arena, &metadata, &status);
    rpc->started = rpc->passed = 1;

    assert_int_equal(tc_walk_begin(&rpc->main, rpc, TC_HOOK_STATUS, true), TC_WALK_WAITS);
    (void)tc_rpc_sight(rpc, TC_HOOK_WIRE);
    torc_runtime_poll(rt, 0);
    assert_int_equal(hidden[SEEN_WIRE], 1);
    tc_rpc_stop(rpc, true);
    torc_rpc_resume(pending, 0, NULL);
    (void)tc_rpc_sight(rpc, TC_HOOK_WIRE);
    tc_rpc_end(rpc);
    assert_int_equal(hidden[SEEN_WIRE], 2);
    assert_int_equal(shown[SEEN_STATUS], 1);
    assert_int_equal(shown[SEEN_END], 1);

    tc_status_fini(&status);
    tc_arena_fini(&arena);
    torc_runtime_free(rt);
    tc_interceptors_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_outcome_is_for_on_status_and_on_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
