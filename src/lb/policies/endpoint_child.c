/* The child is a pick_first without a graceful switch, since its policy never changes: that is one object less for each
 * of 50,000 endpoints. */
#include "lb/policies/endpoint_child.h"

#include "base/mem.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/policies/pick_first.h"

static void endpoint_child_update_state(struct tc_lb_helper *h, enum torc_connectivity state,
                                        const struct tc_status *status, struct tc_picker *picker)
{
    struct tc_endpoint_child *endpoint_child = (struct tc_endpoint_child *)h;
    endpoint_child->on_state(endpoint_child->arg, endpoint_child, state, status, picker);
}

static const struct tc_lb_helper_ops endpoint_child_ops = {.update_state = endpoint_child_update_state};

struct tc_endpoint_child *tc_endpoint_child_new(struct tc_lb_helper *parent, tc_endpoint_child_state_fn on_state,
                                                void *arg)
{
    struct tc_endpoint_child *endpoint_child = TC_NEW(struct tc_endpoint_child);
    tc_lb_helper_init(&endpoint_child->helper, &endpoint_child_ops, parent);
    endpoint_child->on_state = on_state;
    endpoint_child->arg = arg;
    endpoint_child->policy = tc_lb_create(&tc_pick_first_factory, &endpoint_child->helper);
    return endpoint_child;
}

void tc_endpoint_child_update(struct tc_endpoint_child *endpoint_child, struct tc_endpoint *endpoint,
                              struct tc_lb_config *config)
{
    struct tc_endpoint **at = tc_reallocarray(NULL, 1, sizeof(struct tc_endpoint *));
    at[0] = tc_endpoint_ref(endpoint);
    struct tc_endpoints *list = tc_endpoints_take(at, 1);
    struct tc_lb_update update = {.endpoints = list, .config = config};
    struct tc_status status = endpoint_child->policy->ops->update(endpoint_child->policy, &update);
    tc_status_fini(&status);
    tc_endpoints_unref(list);
}

void tc_endpoint_child_exit_idle(struct tc_endpoint_child *endpoint_child)
{
    endpoint_child->policy->ops->exit_idle(endpoint_child->policy);
}

void tc_endpoint_child_reset_backoff(struct tc_endpoint_child *endpoint_child)
{
    endpoint_child->policy->ops->reset_backoff(endpoint_child->policy);
}

void tc_endpoint_child_describe(const struct tc_endpoint_child *endpoint_child, struct tc_describe *d)
{
    if (endpoint_child)
        tc_describe_policy(d, "child", endpoint_child->policy);
}

void tc_endpoint_child_free(struct tc_endpoint_child *endpoint_child)
{
    if (!endpoint_child)
        return;
    endpoint_child->policy->ops->shutdown(endpoint_child->policy);
    tc_free(endpoint_child);
}
