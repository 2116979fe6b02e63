/* Configs of LB policies: references and equality. A config is immutable; its factory compares and frees configs.
 * Equality lets a policy keep the objects that it built from an equal config.
 *
 * tc_lb_policy_end frees a policy by a task, since functions of the policy may still be on the stack. */
#include "lb/policy.h"

#include "base/mem.h"

struct tc_lb_config *tc_lb_config_ref(struct tc_lb_config *c)
{
    if (c)
        tc_ref_inc(&c->ref);
    return c;
}

void tc_lb_config_unref(struct tc_lb_config *c)
{
    if (!c || !tc_ref_dec(&c->ref))
        return;
    if (c->factory->free_config)
        c->factory->free_config(c);
    else
        tc_free(c);
}

bool tc_lb_config_eq(const struct tc_lb_config *a, const struct tc_lb_config *b)
{
    if (a == b)
        return true;
    return a && b && a->factory == b->factory && a->factory->equal_config && a->factory->equal_config(a, b);
}

static void on_policy_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct tc_lb_policy, free_task));
}

void tc_lb_policy_end(struct tc_lb_policy *p)
{
    struct tc_loop *loop = p->helper->env->loop;
    p->helper = NULL;
    tc_task_init(&p->free_task, on_policy_free);
    tc_loop_defer(loop, &p->free_task);
}
