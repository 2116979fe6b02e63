/* xds_wrr_locality (A52): weighted_target over the localities of a priority.
 *
 * The localities and their weights come from the endpoint lists, so each update with a list makes a config for the
 * weighted_target. If the new config is equal to the last one, the last one is used again. An update without endpoints
 * keeps the last config, if there is one. A locality without endpoints is left out. The child reports straight to the
 * parent. */
#include "xds/lb/policies.h"

#include "base/json.h"
#include "base/mem.h"
#include "lb/child_configs.h"
#include "lb/describe.h"
#include "lb/graceful_switch.h"
#include "lb/policies/weighted_target.h"
#include "lb/registry.h"

struct wrr_locality {
    struct tc_lb_policy base;
    struct tc_graceful_switch *child;
    struct tc_lb_config *targets; /* weighted_target's last config; NULL: none yet */
};

static struct tc_lb_config *wrr_parse_config(const struct tc_lb_factory *factory, const json_t *json,
                                             const struct tc_lb_registry *registry, unsigned depth,
                                             struct tc_validation_errors *errors)
{
    struct tc_lb_config *child = tc_lb_parse_child(registry, json, "childPolicy", depth, errors);
    struct tc_lb_config *config = child ? tc_child_config_single(factory, NULL, child) : NULL;
    tc_lb_config_unref(child);
    return config;
}

/* Makes one target for each locality that has endpoints; none if `endpoints` is NULL. All endpoints of a locality carry
 * the locality's weight. Returns a config with one reference, which holds references of `child`. */
static struct tc_lb_config *wrr_make_targets(const struct tc_endpoints *endpoints, struct tc_lb_config *child)
{
    TC_VEC(struct tc_child_config) targets = {0};
    for (size_t i = 0; endpoints && i < endpoints->n_children; i++) {
        const struct tc_endpoints *list = endpoints->children[i].list;
        if (list->n == 0)
            continue;
        uint32_t weight = TC_MAX(list->at[0]->locality_weight, 1u);
        *tc_vec_push(&targets) =
            (struct tc_child_config){.name = endpoints->children[i].name, .weight = weight, .config = child};
    }
    struct tc_lb_config *config = tc_child_configs_new(&tc_weighted_target_factory, targets.data, targets.len);
    tc_vec_fini(&targets);
    return config;
}

static struct tc_status wrr_update(struct tc_lb_policy *base, const struct tc_lb_update *u)
{
    struct wrr_locality *p = TC_CONTAINER_OF(base, struct wrr_locality, base);
    if (u->endpoints || !p->targets) {
        struct tc_lb_config *targets = wrr_make_targets(u->endpoints, tc_child_config_of(u->config)->config);
        if (tc_lb_config_eq(targets, p->targets)) {
            tc_lb_config_unref(targets);
        } else {
            tc_lb_config_unref(p->targets);
            p->targets = targets;
        }
    }
    struct tc_lb_update down = *u;
    down.config = p->targets;
    return tc_graceful_switch_update(p->child, &down);
}

static void wrr_exit_idle(struct tc_lb_policy *base)
{
    tc_graceful_switch_exit_idle(TC_CONTAINER_OF(base, struct wrr_locality, base)->child);
}

static void wrr_reset_backoff(struct tc_lb_policy *base)
{
    tc_graceful_switch_reset_backoff(TC_CONTAINER_OF(base, struct wrr_locality, base)->child);
}

static void wrr_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    tc_graceful_switch_describe(TC_CONTAINER_OF(base, struct wrr_locality, base)->child, d, "child");
}

static void wrr_shutdown(struct tc_lb_policy *base)
{
    struct wrr_locality *p = TC_CONTAINER_OF(base, struct wrr_locality, base);
    if (!base->helper)
        return;
    tc_graceful_switch_shutdown(p->child);
    p->child = NULL;
    tc_lb_config_unref(p->targets);
    p->targets = NULL;
    tc_lb_policy_end(&p->base);
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = wrr_update,
    .exit_idle = wrr_exit_idle,
    .reset_backoff = wrr_reset_backoff,
    .shutdown = wrr_shutdown,
    .describe = wrr_describe,
};

static struct tc_lb_policy *wrr_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct wrr_locality *p = TC_NEW(struct wrr_locality);
    p->base = (struct tc_lb_policy){.ops = &policy_ops, .factory = factory, .helper = helper};
    p->child = tc_graceful_switch_new(helper);
    return &p->base;
}

const struct tc_lb_factory tc_wrr_locality_factory = {
    .name = "xds_wrr_locality_experimental",
    .alias = "xds_wrr_locality",
    .create = wrr_create,
    .parse_config = wrr_parse_config,
    .free_config = tc_child_configs_free,
    .equal_config = tc_child_configs_equal,
};
