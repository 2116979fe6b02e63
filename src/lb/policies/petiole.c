/* Petiole policies that keep every endpoint connected (A61): the children, their states and what is published.
 *
 * A pick reads the `tc_petiole_set`: the pickers of the READY children by index, and the set of these indexes
 * (lb/index_set.h). The policy changes both in place, so one endpoint's event costs O(log n), and what the ops add.
 * While the policy stays READY, changes of its children are gathered, and one task publishes them.
 *
 * Endpoint children are made and updated in turns (lb/connect_turns.h): those before `given` have the endpoints of the
 * last update. While they are updated (`updating`) their reports only add up, and petiole_reconcile follows once.
 *
 * The policy owns its children, and each of them its endpoint child. A picker has a reference of its set alone, which
 * is empty once the policy has given the set up: a picker may outlive the policy. Loop thread only. */
#include "lb/policies/petiole.h"

#include "base/mem.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/endpoint_map.h"
#include "lb/policies/pick_first.h"
#include "lb/resolution_note.h"

/* --- the READY children --- */

static struct tc_petiole_set *petiole_set_new(struct tc_petiole *p, uint32_t n)
{
    struct tc_petiole_set *set = tc_calloc(1, sizeof(*set) + n * sizeof(set->at[0]));
    tc_lref_init(&set->ref);
    tc_index_set_init(&set->ready, n);
    set->owner = p;
    set->n = n;
    set->next = (uint32_t)tc_rng_below(tc_loop_rng(p->base.helper->env->loop), n);
    return set;
}

static void petiole_set_unref(struct tc_petiole_set *set)
{
    if (!set || !tc_lref_dec(&set->ref))
        return;
    tc_index_set_fini(&set->ready);
    tc_free(set);
}

/* Takes ownership of the picker's reference. NULL: the child is not READY. */
static void petiole_set_put(struct tc_petiole_set *set, uint32_t i, struct tc_picker *picker)
{
    struct tc_picker *old = set->at[i];
    set->at[i] = picker;
    if (picker)
        tc_index_set_add(&set->ready, i);
    else if (old)
        tc_index_set_remove(&set->ready, i);
    tc_picker_unref(old);
}

/* Gives up the policy's reference. Pickers that still read the set find it empty. */
static void petiole_set_drop(struct tc_petiole_set *set)
{
    if (set)
        set->owner = NULL;
    for (uint32_t i = 0; set && (i = tc_index_set_next(&set->ready, i)) != TC_INDEX_NONE;)
        petiole_set_put(set, i, NULL);
    petiole_set_unref(set);
}

void tc_petiole_picker_free(struct tc_picker *picker)
{
    petiole_set_unref(((struct tc_petiole_picker *)picker)->set);
    tc_free(picker);
}

static struct tc_picker *petiole_picker_new(struct tc_petiole *p)
{
    struct tc_petiole_picker *picker = TC_NEW(struct tc_petiole_picker);
    tc_picker_init(&picker->base, &p->ops->picker);
    picker->set = p->set;
    tc_lref_inc(&p->set->ref);
    return &picker->base;
}

static void petiole_report(struct tc_petiole *p, enum torc_connectivity state, const struct tc_status *status,
                           struct tc_picker *picker)
{
    static const struct tc_status ok = {0};
    p->state = state;
    tc_lb_update_state(p->base.helper, state, status ? status : &ok, picker);
}

/* Takes ownership of the status. */
static void petiole_report_failure(struct tc_petiole *p, struct tc_status status)
{
    petiole_report(p, TORC_CONNECTIVITY_TRANSIENT_FAILURE, &status, tc_picker_fail(&status));
    tc_status_fini(&status);
}

/* Publishes a new picker over the same set: waiting RPCs try again. */
static void petiole_publish_ready(struct tc_petiole *p)
{
    p->ready_changed = false;
    if (p->ops->on_publish)
        p->ops->on_publish(p);
    petiole_report(p, TORC_CONNECTIVITY_READY, NULL, petiole_picker_new(p));
}

static void on_ready_task(struct tc_task *task)
{
    struct tc_petiole *p = TC_CONTAINER_OF(task, struct tc_petiole, ready_task);
    if (p->counts[TORC_CONNECTIVITY_READY] && p->ready_changed)
        petiole_publish_ready(p);
}

/* Publishes the state and picker that follow from the children's states. Idempotent. The parent may shut the policy
 * down from inside: an event calls this last, and looks at nothing but base.helper afterwards. */
static void petiole_reconcile(struct tc_petiole *p)
{
    if (p->updating || !p->base.helper || p->n == 0)
        return;
    if (p->counts[TORC_CONNECTIVITY_READY]) {
        if (p->state != TORC_CONNECTIVITY_READY)
            petiole_publish_ready(p);
        else if (p->ready_changed)
            tc_loop_defer(p->base.helper->env->loop, &p->ready_task);
        return;
    }
    if (p->counts[TORC_CONNECTIVITY_CONNECTING] || p->counts[TORC_CONNECTIVITY_IDLE]) {
        if (p->state != TORC_CONNECTIVITY_CONNECTING)
            petiole_report(p, TORC_CONNECTIVITY_CONNECTING, NULL,
                           tc_picker_queue_for(p->waiting ? tc_picker_ref(p->waiting) : NULL));
        return;
    }
    petiole_report_failure(p, tc_lb_status_with_resolution_note("connections to all backends failing; last error:",
                                                                &p->last_error, p->resolution_note));
}

static void on_endpoint_child_state(void *arg, struct tc_endpoint_child *endpoint_child, enum torc_connectivity state,
                                    const struct tc_status *status, struct tc_picker *picker)
{
    struct tc_petiole *p = arg;
    struct tc_petiole_child *c = p->children[endpoint_child->index];
    enum torc_connectivity before = c->state;
    p->ready_changed |= before == TORC_CONNECTIVITY_READY || state == TORC_CONNECTIVITY_READY;
    p->counts[before]--;
    p->counts[state]++;
    c->state = state;
    petiole_set_put(p->set, endpoint_child->index, state == TORC_CONNECTIVITY_READY ? picker : NULL);
    if (state == TORC_CONNECTIVITY_CONNECTING) {
        tc_picker_unref(p->waiting);
        p->waiting = picker;
    } else if (state != TORC_CONNECTIVITY_READY) {
        tc_picker_unref(picker);
    }
    if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        tc_status_set(&p->last_error, tc_status_ref(status));
    if (p->ops->on_state)
        p->ops->on_state(p, c, before);
    if (state == TORC_CONNECTIVITY_IDLE) {
        /* Every endpoint stays connected: tc_endpoint_child_exit_idle comes back here with CONNECTING. */
        tc_endpoint_child_exit_idle(endpoint_child);
        return;
    }
    petiole_reconcile(p);
}

static void petiole_child_free(struct tc_petiole *p, struct tc_petiole_child *c)
{
    if (!c)
        return;
    if (p->ops->on_child_end)
        p->ops->on_child_end(p, c);
    p->counts[c->state]--;
    tc_endpoint_child_free(c->endpoint_child);
    tc_endpoint_unref(c->endpoint);
    tc_free(c);
}

static void petiole_drop_children(struct tc_petiole *p, struct tc_petiole_child **children, size_t n)
{
    for (size_t i = 0; i < n; i++)
        petiole_child_free(p, children[i]);
    tc_free(children);
}

/* Ends all children, and the turn that would make more. */
static void petiole_forget_children(struct tc_petiole *p)
{
    petiole_drop_children(p, p->children, p->n);
    p->children = NULL;
    p->n = p->given = 0;
    petiole_set_drop(p->set);
    p->set = NULL;
    tc_list_remove(&p->turn.link);
}

/* Rebuilds the set after the list of children changed. Keeps the pickers; keeps the position, too, if the READY child
 * whose turn it is stays. On entry the endpoint children's `index` still refers to the old set. */
static void petiole_replace_set(struct tc_petiole *p)
{
    struct tc_petiole_set *old = p->set, *set = petiole_set_new(p, (uint32_t)p->n);
    uint32_t turn = old ? tc_petiole_turn(old) : TC_INDEX_NONE;
    for (uint32_t i = 0; i < p->n; i++) {
        struct tc_endpoint_child *endpoint_child = p->children[i]->endpoint_child;
        if (!endpoint_child)
            continue;
        if (p->children[i]->state == TORC_CONNECTIVITY_READY) {
            petiole_set_put(set, i, tc_picker_ref(old->at[endpoint_child->index]));
            set->next = endpoint_child->index == turn ? i : set->next;
        }
        endpoint_child->index = i;
    }
    p->set = set;
    p->ready_changed = true;
    petiole_set_drop(old);
}

/* Makes a child for each distinct endpoint of the list that has none, and ends the children whose endpoints left.
 * petiole_give_endpoints makes the endpoint children, in turns. */
static void petiole_replace_children(struct tc_petiole *p, const struct tc_endpoints *list)
{
    struct tc_petiole_child **old = p->children,
                            **children = tc_reallocarray(NULL, list->n, sizeof(struct tc_petiole_child *));
    size_t n_old = p->n, n = 0;
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
        struct tc_petiole_child *c;
        if (tc_endpoint_map_find(&before, e, &at)) {
            c = old[at];
            old[at] = NULL;
            moved |= at != n;
            tc_endpoint_ref(e);
            tc_endpoint_unref(c->endpoint);
        } else {
            c = tc_calloc(1, p->ops->child_size);
            moved = true;
            c->state = TORC_CONNECTIVITY_CONNECTING;
            p->counts[c->state]++;
            tc_endpoint_ref(e);
        }
        c->endpoint = e;
        children[n++] = c;
    }
    tc_endpoint_map_fini(&before);
    tc_endpoint_map_fini(&seen);
    p->children = children;
    p->n = n;
    if (moved || n != n_old || !p->set) /* otherwise the set fits, and `next` stays */
        petiole_replace_set(p);
    petiole_drop_children(p, old, n_old);
}

/* tc_connect_turn.run: gives the next children their endpoints. A new child then connects; only new children count
 * against *left. */
static bool petiole_give_endpoints(struct tc_connect_turn *turn, uint32_t *left)
{
    struct tc_petiole *p = TC_CONTAINER_OF(turn, struct tc_petiole, turn);
    p->updating = true;
    for (; p->given < p->n; p->given++) {
        struct tc_petiole_child *c = p->children[p->given];
        if (!c->endpoint_child) {
            if (*left == 0)
                break;
            --*left;
            c->endpoint_child = tc_endpoint_child_new(p->base.helper, on_endpoint_child_state, p);
            c->endpoint_child->index = (uint32_t)p->given;
        }
        tc_endpoint_child_update(c->endpoint_child, c->endpoint, p->pick_first_config);
    }
    p->updating = false;
    bool more = p->given < p->n;
    petiole_reconcile(p);
    return more && p->base.helper;
}

/* An empty list fails RPCs at once (A61). Returns a failure, so that the resolver tries again. */
static struct tc_status petiole_refuse_empty(struct tc_petiole *p)
{
    struct tc_status status = tc_lb_status_because("empty address list", p->resolution_note);
    petiole_forget_children(p);
    petiole_report(p, TORC_CONNECTIVITY_TRANSIENT_FAILURE, &status, tc_picker_fail(&status));
    return status;
}

struct tc_status tc_petiole_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct tc_petiole *p = (struct tc_petiole *)policy;
    struct tc_status ok = {0};
    if (!p->base.helper)
        return ok;
    struct tc_rstr *resolution_note = tc_rstr_ref(update->resolution_note);
    tc_rstr_unref(p->resolution_note);
    p->resolution_note = resolution_note;
    if (!update->endpoints) { /* a failed resolution: endpoints that are known stay in use */
        if (p->n == 0)
            petiole_report(p, TORC_CONNECTIVITY_TRANSIENT_FAILURE, update->endpoints_error,
                           tc_picker_fail(update->endpoints_error));
        return ok;
    }
    if (update->endpoints->n == 0)
        return petiole_refuse_empty(p);
    p->updating = true;
    petiole_replace_children(p, update->endpoints);
    p->given = 0;
    p->updating = false;
    tc_connect_turn_request(p->base.helper->env->connect_turns, &p->turn);
    return ok;
}

void tc_petiole_exit_idle(struct tc_lb_policy *policy)
{
    (void)policy; /* the policy is never IDLE */
}

void tc_petiole_reset_backoff(struct tc_lb_policy *policy)
{
    struct tc_petiole *p = (struct tc_petiole *)policy;
    for (size_t i = 0; i < p->n; i++)
        if (p->children[i]->endpoint_child)
            tc_endpoint_child_reset_backoff(p->children[i]->endpoint_child);
}

void tc_petiole_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct tc_petiole *p = (const struct tc_petiole *)policy;
    tc_describe_state(d, "state", p->state);
    tc_describe_open(d, "endpoints", '[');
    for (size_t i = 0; i < p->n; i++) {
        tc_describe_open(d, NULL, '{');
        tc_describe_endpoint(d, "endpoint", p->children[i]->endpoint);
        tc_describe_state(d, "state", p->children[i]->state);
        tc_endpoint_child_describe(p->children[i]->endpoint_child, d);
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
}

void tc_petiole_shutdown(struct tc_lb_policy *policy)
{
    struct tc_petiole *p = (struct tc_petiole *)policy;
    if (!p->base.helper)
        return;
    petiole_forget_children(p);
    tc_task_cancel(&p->ready_task);
    tc_lb_config_unref(p->pick_first_config);
    p->pick_first_config = NULL;
    tc_rstr_clear(&p->resolution_note);
    tc_status_fini(&p->last_error);
    tc_picker_unref(p->waiting);
    p->waiting = NULL;
    tc_lb_policy_end(&p->base);
}

void tc_petiole_init(struct tc_petiole *p, const struct tc_lb_policy_ops *policy_ops, const struct tc_petiole_ops *ops,
                     const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    p->base = (struct tc_lb_policy){.ops = policy_ops, .factory = factory, .helper = helper};
    p->ops = ops;
    p->state = TORC_CONNECTIVITY_SHUTDOWN;
    p->pick_first_config = tc_pick_first_config_new_petiole();
    tc_task_init(&p->ready_task, on_ready_task);
    tc_connect_turn_init(&p->turn, petiole_give_endpoints);
}
