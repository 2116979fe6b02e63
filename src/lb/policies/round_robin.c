/* round_robin (A61): each RPC goes to the next READY endpoint in the order of the list. lb/policies/petiole.h keeps the
 * endpoints and their states. */
#include "lb/policies/round_robin.h"

#include "base/mem.h"
#include "lb/policies/petiole.h"

static enum tc_pick_kind rr_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct tc_petiole_set *set = ((struct tc_petiole_picker *)picker)->set;
    uint32_t i = tc_petiole_take_turn(set, args);
    return TC_UNLIKELY(i == TC_INDEX_NONE) ? TC_PICK_QUEUE : tc_petiole_pick_child(set, i, "round_robin", args, out);
}

static const struct tc_petiole_ops rr_petiole_ops = {
    .picker = {rr_pick, tc_petiole_picker_free},
    .child_size = sizeof(struct tc_petiole_child),
};

static const struct tc_lb_policy_ops rr_ops = {tc_petiole_update, tc_petiole_exit_idle, tc_petiole_reset_backoff,
                                               tc_petiole_shutdown, tc_petiole_describe};

static struct tc_lb_policy *rr_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct tc_petiole *p = TC_NEW(struct tc_petiole);
    tc_petiole_init(p, &rr_ops, &rr_petiole_ops, factory, helper);
    return &p->base;
}

/* --- config: no settings --- */

struct tc_lb_config *tc_round_robin_config_new(void)
{
    struct tc_lb_config *c = TC_NEW(struct tc_lb_config);
    tc_lb_config_init(c, &tc_round_robin_factory);
    return c;
}

static struct tc_lb_config *rr_parse(const struct tc_lb_factory *factory, const json_t *json,
                                     const struct tc_lb_registry *registry, unsigned depth,
                                     struct tc_validation_errors *errors)
{
    (void)factory, (void)json, (void)registry, (void)depth, (void)errors;
    return tc_round_robin_config_new();
}

static bool rr_equal_config(const struct tc_lb_config *a, const struct tc_lb_config *b)
{
    (void)a, (void)b;
    return true;
}

const struct tc_lb_factory tc_round_robin_factory = {
    .name = "round_robin",
    .alias = "round_robin_experimental",
    .create = rr_create,
    .parse_config = rr_parse,
    .equal_config = rr_equal_config,
};
