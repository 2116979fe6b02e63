/* Wrapped subchannels in two layers over fakes/lb: the wrapper of the lower policy, which is the outermost subchannel,
 * has the upper policy's wrapper inside, and that has the fake's subchannel. Each policy finds its own wrapper from the
 * outermost subchannel. After the upper policy's shutdown the search for the upper wrapper finds none, and the lower
 * wrapper can still be released. One thread. */
#include "lb/wrapped_subchannel.h"

#include "support/cmocka.h"

#include "support/fakes/lb.h"

#include "base/mem.h"

#define A "1.1.1.1:1"

static void end(struct tc_subchannel *sc)
{
    tc_wrapped_subchannel_end(tc_wrapped_subchannel_of(sc));
}

static const struct tc_subchannel_ops ops = {
    .connect = tc_wrapped_subchannel_connect,
    .reset_backoff = tc_wrapped_subchannel_reset_backoff,
    .inner = tc_wrapped_subchannel_inner,
    .release = end,
};

static void pass_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    struct tc_wrapped_subchannel *w = arg;
    w->base.on_state(w->base.arg, state, status);
}

static void keep_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    (void)status;
    *(enum torc_connectivity *)arg = state;
}

/* Stands for a policy that wraps the subchannels that `up` creates. Its child creates subchannels by `helper`. */
struct layer {
    struct tc_lb_helper helper;
    struct tc_lb_helper *up;
    struct tc_wrapped_subchannels set;
};

/* Returns a wrapper, which the caller ends with tc_subchannel_release. */
static struct tc_subchannel *layer_create(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                          const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg)
{
    struct layer *l = TC_CONTAINER_OF(h, struct layer, helper);
    struct tc_wrapped_subchannel *w = TC_NEW(struct tc_wrapped_subchannel);
    tc_wrapped_subchannel_init(w, &l->set, l->up, endpoint, addr, on_state, arg);
    return &w->base;
}

static const struct tc_lb_helper_ops layer_ops = {.create_subchannel = layer_create};

static void layer_init(struct layer *l, struct tc_lb_helper *up)
{
    l->helper = (struct tc_lb_helper){.ops = &layer_ops, .env = up->env, .parent = up};
    l->up = up;
    tc_wrapped_subchannels_init(&l->set, &ops, pass_state);
}

static void two_layers(void **state)
{
    struct fake_lb *f = fake_lb_new(NULL);
    struct layer upper, lower;
    enum torc_connectivity seen = TORC_CONNECTIVITY_SHUTDOWN;
    (void)state;
    layer_init(&upper, &f->helper);
    layer_init(&lower, &upper.helper);
    struct tc_endpoints *list = fake_lb_endpoints(A);
    struct tc_subchannel *sc = layer_create(&lower.helper, list->at[0], &list->at[0]->addrs[0], keep_state, &seen);
    tc_subchannel_connect(sc);
    tc_loop_advance(f->loop, 0);
    assert_connects(f, A " ");
    fake_lb_set(f, A, TORC_CONNECTIVITY_CONNECTING);
    assert_int_equal(seen, TORC_CONNECTIVITY_CONNECTING);

    assert_ptr_equal(&tc_wrapped_subchannels_find(&lower.set, &ops, sc)->base, sc);
    struct tc_wrapped_subchannel *outer = tc_wrapped_subchannels_find(&upper.set, &ops, sc);
    assert_ptr_equal(&outer->base, tc_wrapped_subchannel_inner(sc));
    assert_ptr_equal(tc_subchannel_innermost(sc), outer->inner);
    tc_lref_inc(&outer->ref); /* as an RPC does */

    assert_ptr_equal(tc_wrapped_subchannels_pop(&upper.set), outer); /* the upper policy shuts down */
    assert_null(tc_wrapped_subchannels_pop(&upper.set));
    assert_null(tc_wrapped_subchannels_find(&upper.set, &ops, sc));
    assert_null(outer->set);

    tc_subchannel_release(sc);
    assert_null(tc_wrapped_subchannels_pop(&lower.set));
    assert_int_equal(fake_lb_count(f, A), 0);
    assert_null(outer->inner);
    tc_wrapped_subchannel_unref(outer);
    tc_endpoints_unref(list);
    fake_lb_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
