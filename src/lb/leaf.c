#include "lb/leaf.h"

#include "base/mem.h"
#include "lb/describe.h"
#include "lb/pick_first.h"

static struct tc_subchannel *on_create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                                  const struct tc_addr *addr, tc_subchannel_state_fn on_state,
                                                  void *arg)
{
    struct tc_lb_helper *parent = ((struct tc_leaf *)h)->parent;
    return parent->ops->create_subchannel(parent, endpoint, addr, on_state, arg);
}

static void on_update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                            struct tc_picker *picker)
{
    struct tc_leaf *leaf = (struct tc_leaf *)h;
    leaf->on_state(leaf->arg, leaf, state, status, picker);
}

static void on_request_reresolution(struct tc_lb_helper *h)
{
    struct tc_lb_helper *parent = ((struct tc_leaf *)h)->parent;
    parent->ops->request_reresolution(parent);
}

static const struct tc_lb_helper_ops leaf_ops = {on_create_subchannel, on_update_state, on_request_reresolution};

struct tc_leaf *tc_leaf_new(struct tc_lb_helper *parent, tc_leaf_state_fn on_state, void *arg)
{
    struct tc_leaf *leaf = TC_NEW(struct tc_leaf);
    leaf->helper = (struct tc_lb_helper){&leaf_ops, parent->env};
    leaf->parent = parent;
    leaf->on_state = on_state;
    leaf->arg = arg;
    leaf->policy = tc_lb_create(&tc_pick_first_class, &leaf->helper);
    return leaf;
}

void tc_leaf_update(struct tc_leaf *leaf, struct tc_endpoint *endpoint, struct tc_lb_config *config)
{
    struct tc_endpoint **at = tc_reallocarray(NULL, 1, sizeof(struct tc_endpoint *));
    at[0] = tc_endpoint_ref(endpoint);
    struct tc_endpoints *list = tc_endpoints_take(at, 1);
    struct tc_lb_update update = {.endpoints = list, .config = config};
    struct tc_status status = leaf->policy->ops->update(leaf->policy, &update);
    tc_status_fini(&status);
    tc_endpoints_unref(list);
}

void tc_leaf_exit_idle(struct tc_leaf *leaf)
{
    leaf->policy->ops->exit_idle(leaf->policy);
}

void tc_leaf_reset_backoff(struct tc_leaf *leaf)
{
    leaf->policy->ops->reset_backoff(leaf->policy);
}

void tc_leaf_describe(const struct tc_leaf *leaf, struct tc_describe *d)
{
    if (leaf)
        tc_describe_policy(d, "child", leaf->policy);
}

void tc_leaf_free(struct tc_leaf *leaf)
{
    if (!leaf)
        return;
    leaf->policy->ops->shutdown(leaf->policy);
    tc_free(leaf);
}
