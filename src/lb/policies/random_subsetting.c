/* random_subsetting: a wrapper (lb/wrapper.h) that changes the list of endpoints on its way down and nothing else.
 *
 * Rendezvous hashing: an endpoint's hash is XXH64 of its first address ("10.0.0.1:80") with the seed of the policy, and
 * the endpoints with the least hashes are in the subset. So a list of the same endpoints gives the same subset, and one
 * endpoint more or less changes at most one endpoint of the subset. The seed is drawn once for each policy.
 *
 * The policy holds a reference to the last subset, which is the list that the child got last. An update without a list
 * (a failed resolution) goes down as it is. */
#include "lb/policies/random_subsetting.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/vec.h"
#include "lb/child_configs.h"
#include "lb/describe.h"
#include "lb/registry.h"
#include "lb/wrapper.h"

/* --- the subset --- */

struct hashed {
    uint64_t hash;
    size_t at; /* the endpoint's index in the list: endpoints of equal hash keep their order */
};

static int hashed_cmp(const void *pa, const void *pb)
{
    const struct hashed *a = pa, *b = pb;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->at < b->at ? -1 : 1;
}

/* Returns a new list of the endpoints whose hashes are not above *most, in the order of the hashes: if there are more
 * than `size` of them, the first `size`. *most becomes the greatest hash of the list, unless the list is empty. */
static struct tc_endpoints *endpoints_choose(const struct tc_endpoints *all, size_t size, uint64_t seed, uint64_t *most)
{
    struct hashed *hashes = tc_reallocarray(NULL, all->n, sizeof(*hashes));
    struct tc_buf text = {0};
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        tc_buf_clear(&text);
        tc_addr_format(&all->at[i]->addrs[0], &text);
        uint64_t hash = tc_xxh64_seeded(text.data, text.len, seed);
        if (hash <= *most)
            hashes[n++] = (struct hashed){hash, i};
    }
    tc_buf_fini(&text);
    if (n)
        qsort(hashes, n, sizeof(*hashes), hashed_cmp);
    n = TC_MIN(n, size);
    struct tc_endpoint **at = n ? tc_reallocarray(NULL, n, sizeof(struct tc_endpoint *)) : NULL;
    for (size_t i = 0; i < n; i++)
        at[i] = tc_endpoint_ref(all->at[hashes[i].at]);
    *most = n ? hashes[n - 1].hash : *most;
    tc_free(hashes);
    return tc_endpoints_take(at, n);
}

struct tc_endpoints *tc_random_subset(struct tc_endpoints *all, uint32_t size, uint64_t seed)
{
    if (all->n <= size)
        return tc_endpoints_ref(all);
    uint64_t most = UINT64_MAX;
    struct tc_endpoints *out = endpoints_choose(all, size, seed, &most);
    out->n_children = all->n_children;
    out->children = all->n_children ? tc_calloc(all->n_children, sizeof(*out->children)) : NULL;
    for (size_t i = 0; i < all->n_children; i++)
        out->children[i] =
            (struct tc_endpoints_child){tc_rstr_ref(all->children[i].name),
                                        endpoints_choose(all->children[i].list, SIZE_MAX, seed, &(uint64_t){most})};
    return out;
}

/* --- the policy --- */

struct random_subsetting {
    struct tc_lb_wrapper wrapper;
    uint64_t seed;
    struct tc_endpoints *subset; /* of the last update that had a list, a reference; NULL: none had one */
};

static struct tc_picker *subsetting_picker(struct tc_lb_wrapper *w, enum torc_connectivity *state)
{
    (void)state;
    return tc_picker_ref(w->picker);
}

static struct tc_status subsetting_update(struct tc_lb_policy *base, const struct tc_lb_update *update)
{
    struct random_subsetting *r = TC_CONTAINER_OF(base, struct random_subsetting, wrapper.base);
    const struct tc_child_config *config = tc_child_config_of(update->config);
    struct tc_lb_update down = *update;
    down.config = config->config;
    if (update->endpoints) {
        struct tc_endpoints *subset = tc_random_subset(update->endpoints, config->weight, r->seed), *old = r->subset;
        bool same =
            tc_endpoints_eq(subset, old); /* an equal subset stays the same object, which children compare fastest */
        r->subset = same ? old : subset;
        tc_endpoints_unref(same ? subset : old);
        down.endpoints = r->subset;
    }
    tc_lb_wrapper_begin_update(&r->wrapper);
    return tc_lb_wrapper_end_update(&r->wrapper, &down);
}

static void subsetting_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    const struct random_subsetting *r = TC_CONTAINER_OF(base, const struct random_subsetting, wrapper.base);
    tc_describe_number(d, "subset", r->subset ? r->subset->n : 0);
    tc_graceful_switch_describe(r->wrapper.child, d, "child");
}

static void subsetting_shutdown(struct tc_lb_policy *base)
{
    struct random_subsetting *r = TC_CONTAINER_OF(base, struct random_subsetting, wrapper.base);
    if (!base->helper)
        return;
    tc_endpoints_unref(r->subset);
    tc_lb_wrapper_end(&r->wrapper);
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = subsetting_update,
    .exit_idle = tc_lb_wrapper_exit_idle,
    .reset_backoff = tc_lb_wrapper_reset_backoff,
    .shutdown = subsetting_shutdown,
    .describe = subsetting_describe,
};

static const struct tc_lb_wrapper_ops wrapper_ops = {
    .helper = {.update_state = tc_lb_wrapper_on_child_state},
    .picker = subsetting_picker,
};

static struct tc_lb_policy *subsetting_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct random_subsetting *r = TC_NEW(struct random_subsetting);
    tc_lb_wrapper_init(&r->wrapper, &policy_ops, &wrapper_ops, factory, helper);
    r->seed = tc_rng_u64(tc_loop_rng(helper->env->loop));
    return &r->wrapper.base;
}

/* --- config: {"subsetSize": 10, "childPolicy": [...]}; gRPC C-core has "subset_size" --- */

static struct tc_lb_config *subsetting_parse(const struct tc_lb_factory *factory, const json_t *json,
                                             const struct tc_lb_registry *registry, unsigned depth,
                                             struct tc_validation_errors *errors)
{
    uint64_t size = 0;
    size_t before = errors->count;
    const char *key = tc_json_key(json, "subsetSize", "subset_size");
    if (!tc_json_get_u64_in(json, key, 1, UINT32_MAX, &size, errors) && errors->count == before)
        tc_validation_add_member(errors, key, "must be given");
    struct tc_child_config child = {.weight = (uint32_t)size,
                                    .config = tc_lb_parse_child(registry, json, "childPolicy", depth, errors)};
    struct tc_lb_config *config = errors->count == before ? tc_child_configs_new(factory, &child, 1) : NULL;
    tc_lb_config_unref(child.config);
    return config;
}

const struct tc_lb_factory tc_random_subsetting_factory = {
    .name = "random_subsetting",
    .alias = "random_subsetting_experimental",
    .create = subsetting_create,
    .parse_config = subsetting_parse,
    .free_config = tc_child_configs_free,
    .equal_config = tc_child_configs_equal,
};
