#include "mesh/wrr_locality.h"

#include "base/json.h"
#include "base/mem.h"
#include "lb/describe.h"
#include "lb/weighted_target.h"

struct config {
    struct tc_lb_config base;
    struct tc_lb_config *child;
};

struct policy {
    struct tc_lb_policy base;
    struct tc_lb_child *child;
    struct tc_lb_config *targets; /* weighted_target's, as last given */
    struct tc_task free_task;
};

struct tc_lb_config *tc_wrr_locality_config_new(struct tc_lb_config *child)
{
    struct config *c = TC_NEW(struct config);
    c->base.cls = &tc_wrr_locality_class;
    tc_ref_init(&c->base.ref);
    c->child = tc_lb_config_ref(child);
    return &c->base;
}

static void free_config(struct tc_lb_config *base)
{
    struct config *c = TC_CONTAINER_OF(base, struct config, base);
    tc_lb_config_unref(c->child);
    tc_free(c);
}

static bool equal_config(const struct tc_lb_config *a, const struct tc_lb_config *b)
{
    return tc_lb_config_eq(((const struct config *)a)->child, ((const struct config *)b)->child);
}

static struct tc_lb_config *parse_config(const struct tc_lb_class *cls, const json_t *json,
                                         const struct tc_lb_registry *registry, unsigned depth,
                                         struct tc_faults *faults)
{
    (void)cls;
    const json_t *list = NULL;
    size_t before = faults->count;
    if (!tc_json_get_arr(json, "childPolicy", &list, faults)) {
        if (faults->count == before)
            tc_faults_add_at(faults, ".childPolicy", "field not present");
        return NULL;
    }
    tc_faults_push(faults, ".childPolicy");
    struct tc_lb_config *child = tc_lb_parse_list(registry, list, depth + 1, faults);
    tc_faults_pop(faults);
    struct tc_lb_config *config = child ? tc_wrr_locality_config_new(child) : NULL;
    tc_lb_config_unref(child);
    return config;
}

/* One target for each locality that has endpoints. */
static struct tc_lb_config *make_targets(const struct tc_endpoints *endpoints, struct tc_lb_config *child)
{
    TC_VEC(struct tc_weighted_target) targets = {0};
    for (size_t i = 0; endpoints && i < endpoints->n_children; i++) {
        const struct tc_endpoints *list = endpoints->children[i].list;
        if (list->n == 0)
            continue;
        uint32_t weight = TC_MAX(list->at[0]->locality_weight, 1u);
        *tc_vec_push(&targets) = (struct tc_weighted_target){endpoints->children[i].name, weight, child};
    }
    struct tc_lb_config *config = tc_weighted_target_config_new(targets.data, targets.len);
    tc_vec_fini(&targets);
    return config;
}

static struct tc_status update(struct tc_lb_policy *base, const struct tc_lb_update *u)
{
    struct policy *p = TC_CONTAINER_OF(base, struct policy, base);
    const struct config *config = TC_CONTAINER_OF(u->config, struct config, base);
    if (u->endpoints || !p->targets) {
        struct tc_lb_config *targets = make_targets(u->endpoints, config->child);
        if (tc_lb_config_eq(targets, p->targets)) {
            tc_lb_config_unref(targets);
        } else {
            tc_lb_config_unref(p->targets);
            p->targets = targets;
        }
    }
    struct tc_lb_update down = *u;
    down.config = p->targets;
    if (!p->child)
        p->child = tc_lb_child_new(base->helper);
    return tc_lb_child_update(p->child, &down);
}

static void exit_idle(struct tc_lb_policy *base)
{
    struct policy *p = TC_CONTAINER_OF(base, struct policy, base);
    if (p->child)
        tc_lb_child_exit_idle(p->child);
}

static void reset_backoff(struct tc_lb_policy *base)
{
    struct policy *p = TC_CONTAINER_OF(base, struct policy, base);
    if (p->child)
        tc_lb_child_reset_backoff(p->child);
}

static void describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    tc_describe_child(d, "child", TC_CONTAINER_OF(base, struct policy, base)->child);
}

static void on_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct policy, free_task));
}

static void wrr_shutdown(struct tc_lb_policy *base)
{
    struct policy *p = TC_CONTAINER_OF(base, struct policy, base);
    if (!base->helper)
        return;
    struct tc_loop *loop = base->helper->env->loop;
    if (p->child)
        tc_lb_child_shutdown(p->child);
    p->child = NULL;
    tc_lb_config_unref(p->targets);
    p->targets = NULL;
    base->helper = NULL;
    tc_loop_defer(loop, &p->free_task);
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = update,
    .exit_idle = exit_idle,
    .reset_backoff = reset_backoff,
    .shutdown = wrr_shutdown,
    .describe = describe,
};

static struct tc_lb_policy *create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    struct policy *p = TC_NEW(struct policy);
    p->base = (struct tc_lb_policy){&policy_ops, cls, helper};
    tc_task_init(&p->free_task, on_free);
    return &p->base;
}

const struct tc_lb_class tc_wrr_locality_class = {
    .name = "xds_wrr_locality_experimental",
    .alias = "xds_wrr_locality",
    .create = create,
    .parse_config = parse_config,
    .free_config = free_config,
    .equal_config = equal_config,
};
