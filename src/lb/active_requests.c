/* Each attempt is counted in its endpoint's count and in the total of that count. A tracker in the call's arena takes
 * the attempt off again. */
#include "lb/active_requests.h"

#include "base/mem.h"

/* In the arena of the call. Has a reference to `counted` until on_done. */
struct active_tracker {
    struct tc_call_tracker base;
    struct tc_active_requests *counted;
};

struct tc_active_requests *tc_active_requests_new(struct tc_active_requests *total)
{
    struct tc_active_requests *a = TC_NEW(struct tc_active_requests);
    tc_lref_init(&a->ref);
    a->total = tc_active_requests_ref(total);
    return a;
}

struct tc_active_requests *tc_active_requests_ref(struct tc_active_requests *a)
{
    if (a)
        tc_lref_inc(&a->ref);
    return a;
}

void tc_active_requests_unref(struct tc_active_requests *a)
{
    if (!a || !tc_lref_dec(&a->ref))
        return;
    tc_active_requests_unref(a->total);
    tc_free(a);
}

static void active_add(struct tc_active_requests *a, uint32_t change)
{
    for (; a; a = a->total) {
        a->n += change;
        if (a->on_change)
            a->on_change(a);
    }
}

static void on_counted_call_done(struct tc_call_tracker *base, const struct tc_status *status,
                                 const struct tc_headers *trailers)
{
    (void)status, (void)trailers;
    struct tc_active_requests *counted = TC_CONTAINER_OF(base, struct active_tracker, base)->counted;
    active_add(counted, UINT32_MAX); /* -1, modulo 2^32 */
    tc_active_requests_unref(counted);
}

void tc_active_requests_track(struct tc_active_requests *a, const struct tc_pick_args *args, struct tc_pick *pick)
{
    struct active_tracker *t = args->dry ? NULL : tc_arena_calloc(args->arena, 1, sizeof(*t));
    if (!t)
        return;
    t->base.on_done = on_counted_call_done;
    t->counted = tc_active_requests_ref(a);
    active_add(a, 1);
    tc_pick_track(pick, &t->base);
}
