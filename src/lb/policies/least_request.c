/* least_request: a petiole policy (lb/policies/petiole.h) that counts the RPCs of each endpoint (lb/active_requests.h).
 *
 *   N_CHOICES  Draws `choiceCount` READY endpoints, with repetition, and takes the first one with the fewest RPCs, in
 *              O(choiceCount) (A48).
 *   FULL_SCAN  Takes an endpoint with the fewest RPCs of all READY endpoints, by chance among equal ones. Envoy's.
 *   weighted   Earliest deadline first. The next deadline of a picked endpoint is (RPCs + 1)^activeRequestBias / weight
 *              of virtual time later. Envoy's, when the bias is set; the selection method does not count then.
 *
 * FULL_SCAN and weighted keep a key for each READY endpoint in a tree (lb/min_tree.h): the number of RPCs, or the
 * deadline. With them a pick costs O(log n); with FULL_SCAN the end of an RPC does, too. An endpoint has the same place
 * in `ready` and in the tree.
 *
 * All chance in a pick comes from the RPC's random number, so that a dry pick tells what the pick will be.
 *
 * The base, struct tc_petiole, owns the endpoints (struct lr_child). An RPC holds a reference of its endpoint's count
 * alone, which may outlive the endpoint and the policy. Loop thread only, except the functions of configs: any
 * thread. */
#include "lb/policies/least_request.h"

#include <math.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/vec.h"
#include "lb/active_requests.h"
#include "lb/describe.h"
#include "lb/min_tree.h"
#include "lb/policies/petiole.h"

enum { CHOICES_DEFAULT = 2, CHOICES_MAX = 10 };
#define STEP_MAX 0x1p32 /* the longest step of virtual time: for many RPCs, a large bias or a small weight */
#define NOW_MAX 0x1p40  /* beyond it virtual time begins again at 0: a double must not lose steps of 1 */

enum lr_mode { LR_N_CHOICES, LR_FULL_SCAN, LR_WEIGHTED };

struct lr_config {
    struct tc_lb_config base; /* first */
    enum lr_mode mode;
    unsigned choices; /* 2..CHOICES_MAX, for LR_N_CHOICES */
    double bias;      /* activeRequestBias, for LR_WEIGHTED: finite, not negative */
};

struct least_request {
    struct tc_petiole base;
    struct tc_lb_config *config;     /* of the last update, a reference; NULL before it, and after the shutdown */
    TC_VEC(struct lr_child *) ready; /* the READY endpoints, borrowed, in no order */
    struct tc_min_tree keys;         /* by place; not used by N_CHOICES */
    double now;                      /* virtual time: the last deadline that was picked */
    /* The greatest weight in the last list, at least 1. An endpoint of that weight has a step of 1 while it has no
     * RPCs. */
    uint32_t heaviest;
};

/* One endpoint. `owner` (borrowed) and `active` (a reference) are set when it is READY for the first time. */
struct lr_child {
    struct tc_petiole_child base;
    struct least_request *owner;
    struct tc_active_requests *active;
    uint32_t place; /* in `ready` while it is READY */
};

static struct least_request *lr_of(struct tc_petiole *p)
{
    return TC_CONTAINER_OF(p, struct least_request, base);
}

static struct lr_child *lr_child_of(struct tc_petiole_child *c)
{
    return TC_CONTAINER_OF(c, struct lr_child, base);
}

static const struct lr_config *lr_config(const struct least_request *lr)
{
    return TC_CONTAINER_OF(lr->config, const struct lr_config, base);
}

/* --- the READY endpoints --- */

static double lr_step(const struct least_request *lr, const struct lr_child *c)
{
    double share = (double)TC_MAX(c->base.endpoint->lb_weight, 1u) / lr->heaviest;
    return fmin(pow((double)c->active->n + 1, lr_config(lr)->bias) / share, STEP_MAX);
}

static void on_count(struct tc_active_requests *a)
{
    struct lr_child *c = a->arg;
    tc_min_tree_set(&c->owner->keys, c->place, a->n);
}

/* Gives a READY endpoint the key that the mode asks for. The first deadline is anywhere within a step: clients that
 * start together must not begin with the same endpoints. */
static void lr_enter(struct least_request *lr, struct lr_child *c)
{
    bool scan = lr_config(lr)->mode == LR_FULL_SCAN;
    c->active->arg = c;
    c->active->on_change = scan ? on_count : NULL;
    if (scan)
        on_count(c->active);
    else if (lr_config(lr)->mode == LR_WEIGHTED)
        tc_min_tree_set(&lr->keys, c->place,
                        lr->now + lr_step(lr, c) * tc_rng_double(tc_loop_rng(lr->base.base.helper->env->loop)));
}

static void lr_leave(struct least_request *lr, struct lr_child *c)
{
    struct lr_child *last = lr->ready.data[--lr->ready.len];
    lr->ready.data[c->place] = last;
    if (lr_config(lr)->mode != LR_N_CHOICES) {
        tc_min_tree_set(&lr->keys, c->place, tc_min_tree_get(&lr->keys, last->place));
        tc_min_tree_set(&lr->keys, last->place, INFINITY);
    }
    last->place = c->place;
    c->active->on_change = NULL;
}

static void on_state(struct tc_petiole *p, struct tc_petiole_child *base, enum torc_connectivity before)
{
    struct least_request *lr = lr_of(p);
    struct lr_child *c = lr_child_of(base);
    bool was = before == TORC_CONNECTIVITY_READY, is = base->state == TORC_CONNECTIVITY_READY;
    if (is && !was) {
        c->owner = lr;
        if (!c->active)
            c->active = tc_active_requests_new(NULL);
        c->place = (uint32_t)lr->ready.len;
        *tc_vec_push(&lr->ready) = c;
        lr_enter(lr, c);
    } else if (was && !is) {
        lr_leave(lr, c);
    }
}

static void on_child_end(struct tc_petiole *p, struct tc_petiole_child *base)
{
    if (base->state == TORC_CONNECTIVITY_READY)
        lr_leave(lr_of(p), lr_child_of(base));
    tc_active_requests_unref(lr_child_of(base)->active);
}

/* --- picks --- */

/* Returns the endpoint to pick. `ready` must not be empty. */
static struct lr_child *lr_choose(const struct least_request *lr, uint64_t random)
{
    struct tc_rng rng;
    tc_rng_init_seed(&rng, random);
    if (lr_config(lr)->mode != LR_N_CHOICES)
        return lr->ready.data[tc_min_tree_draw(&lr->keys, &rng)];
    struct lr_child *least = NULL;
    for (unsigned i = 0; i < lr_config(lr)->choices; i++) {
        struct lr_child *c = lr->ready.data[tc_rng_below(&rng, lr->ready.len)];
        if (!least || c->active->n < least->active->n)
            least = c;
    }
    return least;
}

/* Gives the endpoint that is picked, whose deadline is the earliest, its next deadline. */
static void lr_put_back(struct least_request *lr, struct lr_child *c)
{
    lr->now = tc_min_tree_get(&lr->keys, c->place);
    if (lr->now > NOW_MAX) { /* at most once in NOW_MAX / STEP_MAX = 256 picks */
        for (uint32_t i = 0; i < lr->ready.len; i++)
            tc_min_tree_set(&lr->keys, i, tc_min_tree_get(&lr->keys, i) - lr->now);
        lr->now = 0;
    }
    tc_min_tree_set(&lr->keys, c->place, lr->now + lr_step(lr, c));
}

static enum tc_pick_kind lr_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct tc_petiole_set *set = ((struct tc_petiole_picker *)picker)->set;
    struct least_request *lr = set->owner ? lr_of(set->owner) : NULL;
    if (TC_UNLIKELY(!lr || lr->ready.len == 0))
        return TC_PICK_QUEUE;
    struct lr_child *c = lr_choose(lr, args->random);
    enum tc_pick_kind kind = tc_petiole_pick_child(set, c->base.endpoint_child->index, "least_request", args, out);
    if (kind == TC_PICK_COMPLETE && !args->dry) {
        if (lr_config(lr)->mode == LR_WEIGHTED)
            lr_put_back(lr, c);
        tc_active_requests_track(c->active, args, out);
    }
    return kind;
}

static const struct tc_petiole_ops petiole_ops = {
    .picker = {lr_pick, tc_petiole_picker_free},
    .child_size = sizeof(struct lr_child),
    .on_state = on_state,
    .on_child_end = on_child_end,
};

/* --- the policy --- */

static uint32_t lr_heaviest(const struct tc_endpoints *list)
{
    uint32_t heaviest = 1;
    for (size_t i = 0; i < list->n; i++)
        heaviest = TC_MAX(heaviest, list->at[i]->lb_weight);
    return heaviest;
}

static struct tc_status lr_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct least_request *lr = TC_CONTAINER_OF(policy, struct least_request, base.base);
    struct tc_lb_config *old = lr->config;
    uint32_t heaviest = update->endpoints ? lr_heaviest(update->endpoints) : lr->heaviest;
    bool same = old && tc_lb_config_eq(old, update->config) && heaviest == lr->heaviest;
    lr->config = tc_lb_config_ref(update->config);
    lr->heaviest = heaviest;
    tc_lb_config_unref(old);
    if (!same) {
        tc_min_tree_fini(&lr->keys);
        lr->now = 0;
        for (uint32_t i = 0; i < lr->ready.len; i++)
            lr_enter(lr, lr->ready.data[i]);
    }
    return tc_petiole_update(policy, update);
}

static void lr_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct least_request *lr = TC_CONTAINER_OF(policy, const struct least_request, base.base);
    tc_petiole_describe(policy, d);
    tc_describe_open(d, "active_requests", '['); /* in the order of the endpoints above */
    for (size_t i = 0; i < lr->base.n; i++) {
        const struct tc_active_requests *active = lr_child_of(lr->base.children[i])->active;
        tc_describe_number(d, NULL, active ? active->n : 0);
    }
    tc_describe_close(d, ']');
}

static void lr_shutdown(struct tc_lb_policy *policy)
{
    struct least_request *lr = TC_CONTAINER_OF(policy, struct least_request, base.base);
    if (!policy->helper)
        return;
    tc_petiole_shutdown(policy);
    tc_vec_fini(&lr->ready);
    tc_min_tree_fini(&lr->keys);
    tc_lb_config_unref(lr->config);
    lr->config = NULL;
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = lr_update,
    .exit_idle = tc_petiole_exit_idle,
    .reset_backoff = tc_petiole_reset_backoff,
    .shutdown = lr_shutdown,
    .describe = lr_describe,
};

static struct tc_lb_policy *lr_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct least_request *lr = TC_NEW(struct least_request);
    tc_petiole_init(&lr->base, &policy_ops, &petiole_ops, factory, helper);
    lr->heaviest = 1;
    return &lr->base.base;
}

/* --- config: {"choiceCount": 2} (A48), and Envoy's {"selectionMethod": "FULL_SCAN", "activeRequestBias": 1.0} --- */

static struct tc_lb_config *lr_parse(const struct tc_lb_factory *factory, const json_t *json,
                                     const struct tc_lb_registry *registry, unsigned depth,
                                     struct tc_validation_errors *errors)
{
    (void)registry, (void)depth;
    struct lr_config c = {.choices = CHOICES_DEFAULT, .bias = 1};
    size_t before = errors->count;
    uint64_t choices = CHOICES_DEFAULT;
    const char *method = "N_CHOICES";
    const json_t *bias = json_object_get(json, "activeRequestBias");
    tc_json_get_u64_in(json, "choiceCount", 2, UINT32_MAX, &choices, errors);
    c.choices = (unsigned)TC_MIN(choices, (uint64_t)CHOICES_MAX);
    tc_json_get_str(json, "selectionMethod", &method, errors);
    if (strcmp(method, "FULL_SCAN") == 0)
        c.mode = LR_FULL_SCAN;
    else if (strcmp(method, "N_CHOICES") != 0)
        tc_validation_add_at(errors, ".selectionMethod", "must be N_CHOICES or FULL_SCAN");
    if (bias && !json_is_null(bias)) {
        c.mode = LR_WEIGHTED;
        c.bias = json_number_value(bias);
        if (!json_is_number(bias) || !isfinite(c.bias) || c.bias < 0)
            tc_validation_add_at(errors, ".activeRequestBias", "must be a number that is not negative");
    }
    if (errors->count != before)
        return NULL;
    struct lr_config *config = TC_NEW(struct lr_config);
    *config = c;
    tc_lb_config_init(&config->base, factory);
    return &config->base;
}

static bool lr_equal_config(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct lr_config *a = (const struct lr_config *)pa, *b = (const struct lr_config *)pb;
    return a->mode == b->mode && a->choices == b->choices && memcmp(&a->bias, &b->bias, sizeof(a->bias)) == 0;
}

const struct tc_lb_factory tc_least_request_factory = {
    .name = "least_request",
    .alias = "least_request_experimental",
    .create = lr_create,
    .parse_config = lr_parse,
    .equal_config = lr_equal_config,
};
