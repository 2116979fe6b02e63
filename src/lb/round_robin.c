#include "lb/round_robin.h"

#include "base/index_set.h"
#include "base/mem.h"
#include "lb/describe.h"
#include "lb/endpoint_map.h"
#include "lb/leaf.h"
#include "lb/note.h"
#include "lb/pick_first.h"
#include "lb/turns.h"

struct child {
    struct tc_endpoint *endpoint;
    struct tc_leaf *leaf; /* its index is the child's; NULL: its turn is yet to come */
    enum torc_connectivity state;
};

/* What the policy and its pickers share: the policy writes it, pickers read it; so a change of one endpoint costs the
 * same whatever the number of the others. Each list of endpoints has its own. */
struct rr_set {
    struct tc_lref ref;
    uint32_t n;
    uint32_t next; /* where the next pick looks for a READY one */
    struct tc_index_set ready;
    struct tc_picker *at[]; /* of children in READY; else NULL */
};

struct rr_picker {
    struct tc_picker base;
    struct rr_set *set;
};

struct round_robin {
    struct tc_lb_policy base;
    struct child **children; /* one for each endpoint, in the order of the list */
    size_t n;
    size_t given;       /* so many of them, the first, have what the last update says; the others are CONNECTING, or as
                           they were before */
    struct rr_set *set; /* of the children; NULL: there are none */
    struct tc_lb_config *leaf_config;
    struct tc_rstr *note;
    struct tc_status last_error;
    bool updating;
    bool ready_changed;           /* who is READY, since the last report of it */
    enum torc_connectivity state; /* as reported; TORC_SHUTDOWN: nothing yet */
    size_t counts[TORC_SHUTDOWN]; /* children by state */
    struct tc_task ready_task;    /* joins changes among READY children */
    struct tc_lb_turn turn;       /* gives the next children their endpoints: a list may have any number */
    struct tc_task free_task;
};

/* The READY ones. */

static struct rr_set *set_new(struct round_robin *rr, uint32_t n)
{
    struct rr_set *set = tc_calloc(1, sizeof(*set) + n * sizeof(set->at[0]));
    tc_lref_init(&set->ref);
    tc_index_set_init(&set->ready, n);
    set->n = n;
    set->next = (uint32_t)tc_rng_below(tc_loop_rng(rr->base.helper->env->loop), n);
    return set;
}

static void set_unref(struct rr_set *set)
{
    if (!set || !tc_lref_dec(&set->ref))
        return;
    tc_index_set_fini(&set->ready);
    tc_free(set);
}

/* Takes over the picker; NULL: the child is not READY. */
static void set_put(struct rr_set *set, uint32_t i, struct tc_picker *picker)
{
    struct tc_picker *old = set->at[i];
    set->at[i] = picker;
    if (picker)
        tc_index_set_add(&set->ready, i);
    else if (old)
        tc_index_set_remove(&set->ready, i);
    tc_picker_unref(old);
}

/* The one whose turn it is; TC_INDEX_NONE: none is READY. */
static uint32_t set_turn(const struct rr_set *set)
{
    uint32_t i = tc_index_set_next(&set->ready, set->next);
    return i == TC_INDEX_NONE ? tc_index_set_next(&set->ready, 0) : i;
}

/* The policy is done with it; pickers that still have it find nothing. */
static void drop_set(struct rr_set *set)
{
    for (uint32_t i = 0; set && (i = tc_index_set_next(&set->ready, i)) != TC_INDEX_NONE;)
        set_put(set, i, NULL);
    set_unref(set);
}

static enum tc_pick_kind rr_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct rr_set *set = ((struct rr_picker *)picker)->set;
    uint32_t i = set_turn(set);
    if (TC_UNLIKELY(i == TC_INDEX_NONE))
        return TC_PICK_QUEUE;
    if (!args->dry)
        set->next = i + 1 == set->n ? 0 : i + 1;
    if (TC_UNLIKELY(args->trace != NULL))
        args->trace->policy = tc_slice_str("round_robin");
    return tc_picker_pick(set->at[i], args, out);
}

static void rr_picker_free(struct tc_picker *picker)
{
    set_unref(((struct rr_picker *)picker)->set);
    tc_free(picker);
}

static const struct tc_picker_ops rr_picker_ops = {rr_pick, rr_picker_free};

static struct tc_picker *ready_picker(struct round_robin *rr)
{
    struct rr_picker *p = TC_NEW(struct rr_picker);
    p->base.ops = &rr_picker_ops;
    tc_lref_init(&p->base.ref);
    p->set = rr->set;
    tc_lref_inc(&rr->set->ref);
    return &p->base;
}

static void report(struct round_robin *rr, enum torc_connectivity state, const struct tc_status *status,
                   struct tc_picker *picker)
{
    static const struct tc_status ok = {0};
    rr->state = state;
    rr->base.helper->ops->update_state(rr->base.helper, state, status ? status : &ok, picker);
}

static void report_failure(struct round_robin *rr, struct tc_status status)
{
    report(rr, TORC_TRANSIENT_FAILURE, &status, tc_picker_fail(&status));
    tc_status_fini(&status);
}

static void publish_ready(struct round_robin *rr)
{
    rr->ready_changed = false;
    report(rr, TORC_READY, NULL, ready_picker(rr));
}

static void on_ready_task(struct tc_task *task)
{
    struct round_robin *rr = TC_CONTAINER_OF(task, struct round_robin, ready_task);
    if (rr->counts[TORC_READY] && rr->ready_changed)
        publish_ready(rr);
}

/* What the children's states say is published; the last thing that an event does. */
static void reconcile(struct round_robin *rr)
{
    if (rr->updating || !rr->base.helper || rr->n == 0)
        return;
    if (rr->counts[TORC_READY]) {
        if (rr->state != TORC_READY)
            publish_ready(rr);
        else if (rr->ready_changed)
            tc_loop_defer(rr->base.helper->env->loop, &rr->ready_task);
        return;
    }
    if (rr->counts[TORC_CONNECTING] || rr->counts[TORC_IDLE]) {
        if (rr->state != TORC_CONNECTING)
            report(rr, TORC_CONNECTING, NULL, tc_picker_queue());
        return;
    }
    report_failure(rr, tc_lb_status_with_note("connections to all backends failing; last error:",
                                              tc_status_text(&rr->last_error), rr->note));
}

static void on_leaf_state(void *arg, struct tc_leaf *leaf, enum torc_connectivity state, const struct tc_status *status,
                          struct tc_picker *picker)
{
    struct round_robin *rr = arg;
    struct child *c = rr->children[leaf->index];
    rr->ready_changed |= c->state == TORC_READY || state == TORC_READY;
    rr->counts[c->state]--;
    rr->counts[state]++;
    c->state = state;
    set_put(rr->set, leaf->index, state == TORC_READY ? picker : NULL);
    if (state != TORC_READY)
        tc_picker_unref(picker);
    if (state == TORC_TRANSIENT_FAILURE)
        tc_status_set(&rr->last_error, tc_status_ref(status));
    if (state == TORC_IDLE) {
        /* Every endpoint stays connected; this comes back here with CONNECTING. */
        tc_leaf_exit_idle(leaf);
        return;
    }
    reconcile(rr);
}

static void child_free(struct round_robin *rr, struct child *c)
{
    if (!c)
        return;
    rr->counts[c->state]--;
    tc_leaf_free(c->leaf);
    tc_endpoint_unref(c->endpoint);
    tc_free(c);
}

static void drop_children(struct round_robin *rr, struct child **children, size_t n)
{
    for (size_t i = 0; i < n; i++)
        child_free(rr, children[i]);
    tc_free(children);
}

static void forget_children(struct round_robin *rr)
{
    drop_children(rr, rr->children, rr->n);
    rr->children = NULL;
    rr->n = rr->given = 0;
    drop_set(rr->set);
    rr->set = NULL;
    tc_lb_turn_cancel(&rr->turn);
}

/* A set for the children as they are now, with the pickers and the turn of the set before: a child's index is still
 * that of the latter, and those that go are in neither. */
static void replace_set(struct round_robin *rr)
{
    struct rr_set *old = rr->set, *set = set_new(rr, (uint32_t)rr->n);
    uint32_t turn = old ? set_turn(old) : TC_INDEX_NONE;
    for (uint32_t i = 0; i < rr->n; i++) {
        struct tc_leaf *leaf = rr->children[i]->leaf;
        if (!leaf)
            continue;
        if (rr->children[i]->state == TORC_READY) {
            set_put(set, i, tc_picker_ref(old->at[leaf->index]));
            set->next = leaf->index == turn ? i : set->next;
        }
        leaf->index = i;
    }
    rr->set = set;
    rr->ready_changed = true;
    drop_set(old);
}

/* The list without duplicates, with the children that endpoints had before. */
static void replace_children(struct round_robin *rr, const struct tc_endpoints *list)
{
    struct child **old = rr->children, **children = tc_reallocarray(NULL, list->n, sizeof(struct child *));
    size_t n_old = rr->n, n = 0;
    bool moved = false;
    struct tc_endpoint_map before, seen;
    tc_endpoint_map_init(&before, n_old);
    tc_endpoint_map_init(&seen, list->n);
    for (size_t i = 0; i < n_old; i++)
        tc_endpoint_map_add(&before, old[i]->endpoint, (uint32_t)i);
    for (size_t i = 0; i < list->n; i++) {
        struct tc_endpoint *e = list->at[i];
        uint32_t at;
        if (tc_endpoint_map_add(&seen, e, (uint32_t)n) != n)
            continue;
        struct child *c;
        if (tc_endpoint_map_find(&before, e, &at)) {
            c = old[at];
            old[at] = NULL;
            moved |= at != n;
            tc_endpoint_ref(e);
            tc_endpoint_unref(c->endpoint);
        } else {
            c = TC_NEW(struct child);
            moved = true;
            c->state = TORC_CONNECTING;
            rr->counts[c->state]++;
            tc_endpoint_ref(e);
        }
        c->endpoint = e;
        children[n++] = c;
    }
    tc_endpoint_map_fini(&before);
    tc_endpoint_map_fini(&seen);
    rr->children = children;
    rr->n = n;
    if (moved || n != n_old || !rr->set) /* otherwise the turn goes on */
        replace_set(rr);
    drop_children(rr, old, n_old);
}

/* The endpoints of the next children, which connects new ones: a part each. */
static bool give_endpoints(struct tc_lb_turn *turn, uint32_t *left)
{
    struct round_robin *rr = TC_CONTAINER_OF(turn, struct round_robin, turn);
    rr->updating = true;
    for (; rr->given < rr->n; rr->given++) {
        struct child *c = rr->children[rr->given];
        if (!c->leaf) {
            if (*left == 0)
                break;
            --*left;
            c->leaf = tc_leaf_new(rr->base.helper, on_leaf_state, rr);
            c->leaf->index = (uint32_t)rr->given;
        }
        tc_leaf_update(c->leaf, c->endpoint, rr->leaf_config);
    }
    rr->updating = false;
    bool more = rr->given < rr->n;
    reconcile(rr);
    return more && rr->base.helper;
}

static struct tc_status refuse_empty(struct round_robin *rr)
{
    struct tc_status status = tc_lb_status_because("empty address list", rr->note);
    forget_children(rr);
    report(rr, TORC_TRANSIENT_FAILURE, &status, tc_picker_fail(&status));
    return status;
}

static struct tc_status rr_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct round_robin *rr = (struct round_robin *)policy;
    struct tc_status ok = {0};
    if (!rr->base.helper)
        return ok;
    struct tc_rstr *note = tc_rstr_ref(update->resolution_note);
    tc_rstr_unref(rr->note);
    rr->note = note;
    if (!update->endpoints) {
        if (rr->n == 0)
            report(rr, TORC_TRANSIENT_FAILURE, update->endpoints_error, tc_picker_fail(update->endpoints_error));
        return ok;
    }
    if (update->endpoints->n == 0)
        return refuse_empty(rr);
    rr->updating = true;
    replace_children(rr, update->endpoints);
    rr->given = 0;
    rr->updating = false;
    tc_lb_turn_want(rr->base.helper->env->turns, &rr->turn);
    return ok;
}

static void rr_exit_idle(struct tc_lb_policy *policy)
{
    (void)policy; /* never idle */
}

static void rr_reset_backoff(struct tc_lb_policy *policy)
{
    struct round_robin *rr = (struct round_robin *)policy;
    for (size_t i = 0; i < rr->n; i++)
        if (rr->children[i]->leaf)
            tc_leaf_reset_backoff(rr->children[i]->leaf);
}

static void rr_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct round_robin *rr = (const struct round_robin *)policy;
    tc_describe_state(d, "state", rr->state);
    tc_describe_open(d, "endpoints", '[');
    for (size_t i = 0; i < rr->n; i++) {
        tc_describe_open(d, NULL, '{');
        tc_describe_endpoint(d, "endpoint", rr->children[i]->endpoint);
        tc_describe_state(d, "state", rr->children[i]->state);
        tc_leaf_describe(rr->children[i]->leaf, d);
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
}

static void on_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct round_robin, free_task));
}

static void rr_shutdown(struct tc_lb_policy *policy)
{
    struct round_robin *rr = (struct round_robin *)policy;
    if (!rr->base.helper)
        return;
    struct tc_loop *loop = rr->base.helper->env->loop;
    forget_children(rr);
    tc_task_cancel(&rr->ready_task);
    tc_lb_config_unref(rr->leaf_config);
    rr->leaf_config = NULL;
    tc_rstr_unref(rr->note);
    rr->note = NULL;
    tc_status_fini(&rr->last_error);
    rr->base.helper = NULL;
    tc_loop_defer(loop, &rr->free_task);
}

static const struct tc_lb_policy_ops rr_ops = {rr_update, rr_exit_idle, rr_reset_backoff, rr_shutdown, rr_describe};

static struct tc_lb_policy *rr_create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    struct round_robin *rr = TC_NEW(struct round_robin);
    rr->base = (struct tc_lb_policy){&rr_ops, cls, helper};
    rr->state = TORC_SHUTDOWN;
    rr->leaf_config = tc_pick_first_config_new_petiole();
    tc_task_init(&rr->ready_task, on_ready_task);
    tc_lb_turn_init(&rr->turn, give_endpoints);
    tc_task_init(&rr->free_task, on_free);
    return &rr->base;
}

/* Config: no settings. */

struct tc_lb_config *tc_round_robin_config_new(void)
{
    struct tc_lb_config *c = TC_NEW(struct tc_lb_config);
    c->cls = &tc_round_robin_class;
    tc_ref_init(&c->ref);
    return c;
}

static struct tc_lb_config *rr_parse(const struct tc_lb_class *cls, const json_t *json,
                                     const struct tc_lb_registry *registry, unsigned depth, struct tc_faults *faults)
{
    (void)cls, (void)json, (void)registry, (void)depth, (void)faults;
    return tc_round_robin_config_new();
}

static void rr_free_config(struct tc_lb_config *config)
{
    tc_free(config);
}

static bool rr_equal_config(const struct tc_lb_config *a, const struct tc_lb_config *b)
{
    (void)a, (void)b;
    return true;
}

const struct tc_lb_class tc_round_robin_class = {
    .name = "round_robin",
    .alias = "round_robin_experimental",
    .create = rr_create,
    .parse_config = rr_parse,
    .free_config = rr_free_config,
    .equal_config = rr_equal_config,
};
