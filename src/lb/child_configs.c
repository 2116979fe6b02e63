/* Head and children are one allocation. Configs with the same children in another order are not equal: the order ranks
 * priorities. */
#include "lb/child_configs.h"

#include "base/mem.h"

struct tc_lb_config *tc_child_configs_new(const struct tc_lb_factory *factory, const struct tc_child_config *children,
                                          size_t n)
{
    struct tc_child_configs *c = tc_calloc(1, sizeof(*c) + n * sizeof(c->at[0]));
    tc_lb_config_init(&c->base, factory);
    c->n = n;
    for (size_t i = 0; i < n; i++) {
        c->at[i] = children[i];
        tc_rstr_ref(children[i].name);
        tc_lb_config_ref(children[i].config);
    }
    return &c->base;
}

static void child_config_fini(struct tc_child_config *c)
{
    tc_rstr_unref(c->name);
    tc_lb_config_unref(c->config);
}

void tc_child_config_list_free(struct tc_child_config *children, size_t n)
{
    for (size_t i = 0; i < n; i++)
        child_config_fini(&children[i]);
    tc_free(children);
}

void tc_child_configs_free(struct tc_lb_config *config)
{
    struct tc_child_configs *c = TC_CONTAINER_OF(config, struct tc_child_configs, base);
    for (size_t i = 0; i < c->n; i++)
        child_config_fini(&c->at[i]);
    tc_free(c);
}

bool tc_child_configs_equal(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct tc_child_configs *a = tc_child_configs(pa), *b = tc_child_configs(pb);
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        const struct tc_child_config *x = &a->at[i], *y = &b->at[i];
        if (x->weight != y->weight || x->ignore_reresolution_requests != y->ignore_reresolution_requests ||
            !tc_rstr_eq(x->name, y->name) || !tc_lb_config_eq(x->config, y->config))
            return false;
    }
    return true;
}
