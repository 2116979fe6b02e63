/* round_robin (A61): each RPC goes to the next READY endpoint in the order of the list.
 *
 * Each endpoint has a pick_first (an endpoint child), which is kept connected. The policy is READY if any child is,
 * else CONNECTING if any child connects, else in TRANSIENT_FAILURE.
 *
 * A pick reads the `rr_set` and advances its `next`: the pickers of the READY children by index, the set of these
 * indexes (lb/index_set.h), and `next`. The policy changes the rest in place, so one endpoint's event costs O(log n)
 * and a pick finds the next READY endpoint however many are not. While the policy stays READY, changes of its children
 * are gathered, and one task publishes them.
 *
 * A new list keeps the children of endpoints that it still has. Endpoint children are made and updated in turns
 * (lb/connect_turns.h): those before `given` have the endpoints of the last update. */
#include "lb/policies/round_robin.h"

#include "base/mem.h"
#include "lb/connect_turns.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/endpoint_map.h"
#include "lb/index_set.h"
#include "lb/policies/endpoint_child.h"
#include "lb/policies/pick_first.h"
#include "lb/resolution_note.h"

struct rr_child {
    struct tc_endpoint *endpoint;
    struct tc_endpoint_child *endpoint_child; /* its `index` is the child's place; NULL: not made yet */
    enum torc_connectivity state;
};

/* Shared by the policy and its pickers: the policy writes the pickers and `ready`, a pick advances `next`. A new one is
 * made when the endpoints or their order change; the old set is emptied. */
struct rr_set {
    struct tc_lref ref;
    uint32_t n;
    uint32_t next; /* the next pick takes the first READY child from here on */
    struct tc_index_set ready;
    struct tc_picker *at[]; /* the picker of child i while it is READY, else NULL */
};

struct rr_picker {
    struct tc_picker base;
    struct rr_set *set;
};

struct round_robin {
    struct tc_lb_policy base;
    struct rr_child **children; /* in the order of the list */
    size_t n;
    size_t given;       /* children before this one have their endpoint of the last update */
    struct rr_set *set; /* NULL: there are no children */
    struct tc_lb_config *pick_first_config;
    struct tc_rstr *resolution_note;
    struct tc_status last_error;
    struct tc_picker *waiting; /* of the child that became CONNECTING last; NULL: none did */
    bool updating;
    bool ready_changed;                        /* the set of READY children has changed since the last report */
    enum torc_connectivity state;              /* as reported; TORC_CONNECTIVITY_SHUTDOWN: nothing yet */
    size_t counts[TORC_CONNECTIVITY_SHUTDOWN]; /* children by state */
    struct tc_task ready_task;                 /* reports changes among READY children together */
    struct tc_connect_turn turn;               /* gives the children their endpoints */
};

/* --- the READY children --- */

static struct rr_set *rr_set_new(struct round_robin *rr, uint32_t n)
{
    struct rr_set *set = tc_calloc(1, sizeof(*set) + n * sizeof(set->at[0]));
    tc_lref_init(&set->ref);
    tc_index_set_init(&set->ready, n);
    set->n = n;
    set->next = (uint32_t)tc_rng_below(tc_loop_rng(rr->base.helper->env->loop), n);
    return set;
}

static void rr_set_unref(struct rr_set *set)
{
    if (!set || !tc_lref_dec(&set->ref))
        return;
    tc_index_set_fini(&set->ready);
    tc_free(set);
}

/* Takes ownership of the picker's reference. NULL: the child is not READY. */
static void rr_set_put(struct rr_set *set, uint32_t i, struct tc_picker *picker)
{
    struct tc_picker *old = set->at[i];
    set->at[i] = picker;
    if (picker)
        tc_index_set_add(&set->ready, i);
    else if (old)
        tc_index_set_remove(&set->ready, i);
    tc_picker_unref(old);
}

/* Returns the child that the next pick takes, or TC_INDEX_NONE if none is READY. */
static uint32_t rr_set_turn(const struct rr_set *set)
{
    uint32_t i = tc_index_set_next(&set->ready, set->next);
    return i == TC_INDEX_NONE ? tc_index_set_next(&set->ready, 0) : i;
}

/* Gives up the policy's reference. Pickers that still read the set find it empty. */
static void rr_set_drop(struct rr_set *set)
{
    for (uint32_t i = 0; set && (i = tc_index_set_next(&set->ready, i)) != TC_INDEX_NONE;)
        rr_set_put(set, i, NULL);
    rr_set_unref(set);
}

static enum tc_pick_kind rr_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct rr_set *set = ((struct rr_picker *)picker)->set;
    uint32_t i = rr_set_turn(set);
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
    rr_set_unref(((struct rr_picker *)picker)->set);
    tc_free(picker);
}

static const struct tc_picker_ops rr_picker_ops = {rr_pick, rr_picker_free};

static struct tc_picker *rr_picker_new(struct round_robin *rr)
{
    struct rr_picker *p = TC_NEW(struct rr_picker);
    tc_picker_init(&p->base, &rr_picker_ops);
    p->set = rr->set;
    tc_lref_inc(&rr->set->ref);
    return &p->base;
}

static void rr_report(struct round_robin *rr, enum torc_connectivity state, const struct tc_status *status,
                      struct tc_picker *picker)
{
    static const struct tc_status ok = {0};
    rr->state = state;
    tc_lb_update_state(rr->base.helper, state, status ? status : &ok, picker);
}

/* Takes ownership of the status. */
static void rr_report_failure(struct round_robin *rr, struct tc_status status)
{
    rr_report(rr, TORC_CONNECTIVITY_TRANSIENT_FAILURE, &status, tc_picker_fail(&status));
    tc_status_fini(&status);
}

/* Publishes a new picker over the same set: waiting RPCs try again. */
static void rr_publish_ready(struct round_robin *rr)
{
    rr->ready_changed = false;
    rr_report(rr, TORC_CONNECTIVITY_READY, NULL, rr_picker_new(rr));
}

static void on_ready_task(struct tc_task *task)
{
    struct round_robin *rr = TC_CONTAINER_OF(task, struct round_robin, ready_task);
    if (rr->counts[TORC_CONNECTIVITY_READY] && rr->ready_changed)
        rr_publish_ready(rr);
}

/* Publishes the state and picker that follow from the children's states. Idempotent; must be the last thing that an
 * event does, since the parent may shut the policy down. */
static void rr_reconcile(struct round_robin *rr)
{
    if (rr->updating || !rr->base.helper || rr->n == 0)
        return;
    if (rr->counts[TORC_CONNECTIVITY_READY]) {
        if (rr->state != TORC_CONNECTIVITY_READY)
            rr_publish_ready(rr);
        else if (rr->ready_changed)
            tc_loop_defer(rr->base.helper->env->loop, &rr->ready_task);
        return;
    }
    if (rr->counts[TORC_CONNECTIVITY_CONNECTING] || rr->counts[TORC_CONNECTIVITY_IDLE]) {
        if (rr->state != TORC_CONNECTIVITY_CONNECTING)
            rr_report(rr, TORC_CONNECTIVITY_CONNECTING, NULL,
                      tc_picker_queue_for(rr->waiting ? tc_picker_ref(rr->waiting) : NULL));
        return;
    }
    rr_report_failure(rr, tc_lb_status_with_resolution_note("connections to all backends failing; last error:",
                                                            &rr->last_error, rr->resolution_note));
}

static void on_endpoint_child_state(void *arg, struct tc_endpoint_child *endpoint_child, enum torc_connectivity state,
                                    const struct tc_status *status, struct tc_picker *picker)
{
    struct round_robin *rr = arg;
    struct rr_child *c = rr->children[endpoint_child->index];
    rr->ready_changed |= c->state == TORC_CONNECTIVITY_READY || state == TORC_CONNECTIVITY_READY;
    rr->counts[c->state]--;
    rr->counts[state]++;
    c->state = state;
    rr_set_put(rr->set, endpoint_child->index, state == TORC_CONNECTIVITY_READY ? picker : NULL);
    if (state == TORC_CONNECTIVITY_CONNECTING) {
        tc_picker_unref(rr->waiting);
        rr->waiting = picker;
    } else if (state != TORC_CONNECTIVITY_READY) {
        tc_picker_unref(picker);
    }
    if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        tc_status_set(&rr->last_error, tc_status_ref(status));
    if (state == TORC_CONNECTIVITY_IDLE) {
        /* Every endpoint stays connected. This call comes back here with CONNECTING. */
        tc_endpoint_child_exit_idle(endpoint_child);
        return;
    }
    rr_reconcile(rr);
}

static void rr_child_free(struct round_robin *rr, struct rr_child *c)
{
    if (!c)
        return;
    rr->counts[c->state]--;
    tc_endpoint_child_free(c->endpoint_child);
    tc_endpoint_unref(c->endpoint);
    tc_free(c);
}

static void rr_drop_children(struct round_robin *rr, struct rr_child **children, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rr_child_free(rr, children[i]);
    tc_free(children);
}

/* Ends all children, and the turn that would make more. */
static void rr_forget_children(struct round_robin *rr)
{
    rr_drop_children(rr, rr->children, rr->n);
    rr->children = NULL;
    rr->n = rr->given = 0;
    rr_set_drop(rr->set);
    rr->set = NULL;
    tc_list_remove(&rr->turn.link);
}

/* Rebuilds the set after the list of children changed, and keeps the pickers, and the position if the child that is
 * next stays. On entry the endpoint children's `index` still refers to the old set. */
static void rr_replace_set(struct round_robin *rr)
{
    struct rr_set *old = rr->set, *set = rr_set_new(rr, (uint32_t)rr->n);
    uint32_t turn = old ? rr_set_turn(old) : TC_INDEX_NONE;
    for (uint32_t i = 0; i < rr->n; i++) {
        struct tc_endpoint_child *endpoint_child = rr->children[i]->endpoint_child;
        if (!endpoint_child)
            continue;
        if (rr->children[i]->state == TORC_CONNECTIVITY_READY) {
            rr_set_put(set, i, tc_picker_ref(old->at[endpoint_child->index]));
            set->next = endpoint_child->index == turn ? i : set->next;
        }
        endpoint_child->index = i;
    }
    rr->set = set;
    rr->ready_changed = true;
    rr_set_drop(old);
}

/* Makes an rr_child for each distinct endpoint of the list; its endpoint child is made in a turn. Endpoints that had a
 * child keep it. */
static void rr_replace_children(struct round_robin *rr, const struct tc_endpoints *list)
{
    struct rr_child **old = rr->children, **children = tc_reallocarray(NULL, list->n, sizeof(struct rr_child *));
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
        struct rr_child *c;
        if (tc_endpoint_map_find(&before, e, &at)) {
            c = old[at];
            old[at] = NULL;
            moved |= at != n;
            tc_endpoint_ref(e);
            tc_endpoint_unref(c->endpoint);
        } else {
            c = TC_NEW(struct rr_child);
            moved = true;
            c->state = TORC_CONNECTIVITY_CONNECTING;
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
    if (moved || n != n_old || !rr->set) /* otherwise the set fits, and `next` stays */
        rr_replace_set(rr);
    rr_drop_children(rr, old, n_old);
}

/* Gives the next children their endpoints; a new child then connects. Only a new child is a part of the turn. */
static bool rr_give_endpoints(struct tc_connect_turn *turn, uint32_t *left)
{
    struct round_robin *rr = TC_CONTAINER_OF(turn, struct round_robin, turn);
    rr->updating = true;
    for (; rr->given < rr->n; rr->given++) {
        struct rr_child *c = rr->children[rr->given];
        if (!c->endpoint_child) {
            if (*left == 0)
                break;
            --*left;
            c->endpoint_child = tc_endpoint_child_new(rr->base.helper, on_endpoint_child_state, rr);
            c->endpoint_child->index = (uint32_t)rr->given;
        }
        tc_endpoint_child_update(c->endpoint_child, c->endpoint, rr->pick_first_config);
    }
    rr->updating = false;
    bool more = rr->given < rr->n;
    rr_reconcile(rr);
    return more && rr->base.helper;
}

/* An empty list fails RPCs at once (A61) and makes the resolver try again. */
static struct tc_status rr_refuse_empty(struct round_robin *rr)
{
    struct tc_status status = tc_lb_status_because("empty address list", rr->resolution_note);
    rr_forget_children(rr);
    rr_report(rr, TORC_CONNECTIVITY_TRANSIENT_FAILURE, &status, tc_picker_fail(&status));
    return status;
}

static struct tc_status rr_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct round_robin *rr = (struct round_robin *)policy;
    struct tc_status ok = {0};
    if (!rr->base.helper)
        return ok;
    struct tc_rstr *resolution_note = tc_rstr_ref(update->resolution_note);
    tc_rstr_unref(rr->resolution_note);
    rr->resolution_note = resolution_note;
    if (!update->endpoints) { /* a failed resolution: endpoints that are known stay in use */
        if (rr->n == 0)
            rr_report(rr, TORC_CONNECTIVITY_TRANSIENT_FAILURE, update->endpoints_error,
                      tc_picker_fail(update->endpoints_error));
        return ok;
    }
    if (update->endpoints->n == 0)
        return rr_refuse_empty(rr);
    rr->updating = true;
    rr_replace_children(rr, update->endpoints);
    rr->given = 0;
    rr->updating = false;
    tc_connect_turn_request(rr->base.helper->env->connect_turns, &rr->turn);
    return ok;
}

static void rr_exit_idle(struct tc_lb_policy *policy)
{
    (void)policy; /* it is never IDLE */
}

static void rr_reset_backoff(struct tc_lb_policy *policy)
{
    struct round_robin *rr = (struct round_robin *)policy;
    for (size_t i = 0; i < rr->n; i++)
        if (rr->children[i]->endpoint_child)
            tc_endpoint_child_reset_backoff(rr->children[i]->endpoint_child);
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
        tc_endpoint_child_describe(rr->children[i]->endpoint_child, d);
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
}

static void rr_shutdown(struct tc_lb_policy *policy)
{
    struct round_robin *rr = (struct round_robin *)policy;
    if (!rr->base.helper)
        return;
    rr_forget_children(rr);
    tc_task_cancel(&rr->ready_task);
    tc_lb_config_unref(rr->pick_first_config);
    rr->pick_first_config = NULL;
    tc_rstr_clear(&rr->resolution_note);
    tc_status_fini(&rr->last_error);
    tc_picker_unref(rr->waiting);
    rr->waiting = NULL;
    tc_lb_policy_end(&rr->base);
}

static const struct tc_lb_policy_ops rr_ops = {rr_update, rr_exit_idle, rr_reset_backoff, rr_shutdown, rr_describe};

static struct tc_lb_policy *rr_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct round_robin *rr = TC_NEW(struct round_robin);
    rr->base = (struct tc_lb_policy){.ops = &rr_ops, .factory = factory, .helper = helper};
    rr->state = TORC_CONNECTIVITY_SHUTDOWN;
    rr->pick_first_config = tc_pick_first_config_new_petiole();
    tc_task_init(&rr->ready_task, on_ready_task);
    tc_connect_turn_init(&rr->turn, rr_give_endpoints);
    return &rr->base;
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
