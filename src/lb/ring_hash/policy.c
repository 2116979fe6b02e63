/* The policy of ring_hash and maglev: a set of endpoints with the look-up over them, and a pick_first child for each
 * endpoint that the policy has begun to connect.
 *
 * - update: endpoints_update.c finds the endpoints of the list in the present set. The new set takes the present ring
 *   if nothing that a ring is made of has changed (pending_ring_at_once), or a ring that the process has already
 *   (ring/cache). Else the ring is built: on the spot if it is small, otherwise on the background thread (`pending`).
 *   While that thread builds, the present set serves; a policy without a set is CONNECTING.
 * - The background thread builds one ring of a policy at a time. Of the updates that come meanwhile, the last one is
 *   next (`newer`). The finished ring is used even then, since updates in quick succession must not keep the policy on
 *   an old set; but not if a later update was put in place on the spot, or had no endpoints.
 * - rh_install puts a new set in place: the children of endpoints that stay, and have an entry, move over; the others
 *   end. Pickers keep the set that they were made of.
 * - A child's state changes the set in place (rh_on_child_state); rh_reconcile then publishes a picker over the same
 *   set. rh_reconcile is idempotent, and the last thing that an event does.
 * - Connecting: nothing is connected until a pick asks for it (tc_rh_set_want), exit_idle comes, or the policy is in
 *   CONNECTING or TRANSIENT_FAILURE without an attempt (A61: picks may not come then, since priority may have turned to
 *   another child).
 *
 * `busy` is set while the policy makes, updates or connects children itself: their reports are stored at once, and one
 * rh_reconcile follows.
 *
 * The policy owns the set (a reference) and ends the set's children. Everything runs on the loop's thread, except
 * pending_build on the background thread, and pending_on_dropped on either thread, from the policy's shutdown on. */
#include "lb/ring_hash/policy.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/background_thread.h"
#include "io/mailbox.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/policies/pick_first.h"
#include "lb/resolution_note.h"
#include "lb/ring_hash/balance.h"
#include "lb/ring_hash/build.h"

/* Entries of the largest ring that is built on the loop's thread, in about half a millisecond; a table that costs no
 * more is built there, too. Counts where the ring_inline_entries of the policy's env are 0. */
enum { INLINE_ENTRIES = 32768 };

/* An update on its way to become the policy's set. While the background thread builds the update's ring, that thread
 * owns the struct; `mail` brings it back. The struct owns what its members point to, except `owner`. */
struct rh_pending {
    struct tc_job job;
    struct tc_mail mail;
    struct tc_mailbox *box;
    struct tc_ring_hash *owner;
    atomic_bool unwanted;      /* written by the loop's thread: the ring need not be built, and is not used */
    struct tc_rh_set *set;     /* without children and ring; NULL once rh_install has taken it */
    uint32_t *was;             /* was[i]: where endpoint i is in the policy's set, or TC_RING_ADDED */
    struct tc_rh_build *build; /* NULL: the set takes the present ring */
    struct tc_ring *ring;      /* NULL until found or built, and once rh_install has taken it */
};

struct tc_ring_hash {
    struct tc_lb_policy base;
    struct tc_rh_set *set;      /* NULL: there are no endpoints, or their ring is being built */
    struct rh_pending *pending; /* with the background thread, unwanted or not; NULL: none is */
    bool newer;                 /* the last update waits for `pending` to come back */
    struct tc_mailbox *box;     /* where the background thread answers; NULL: never asked */
    /* Of the last update that had a list of endpoints: the list, the note, the config. NULL before the first one. */
    struct tc_endpoints *endpoints;
    struct tc_rstr *resolution_note;
    struct tc_lb_config *config;
    struct tc_lb_config *pick_first_config;
    struct tc_status last_error; /* of the endpoint that failed last */
    bool busy;                   /* the policy talks to children itself */
    bool connect_wanted;         /* exit_idle came while a ring was being built */
    bool absence_logged;         /* rh_log_absence has logged: it logs once in the policy's life */
};

/* --- connecting --- */

static void rh_on_child_state(void *arg, struct tc_endpoint_child *child, enum torc_connectivity state,
                              const struct tc_status *status, struct tc_picker *picker);

static void rh_connect_endpoint(struct tc_ring_hash *rh, uint32_t i)
{
    struct tc_rh_endpoint *e = &rh->set->at[i];
    if (e->child) {
        tc_endpoint_child_exit_idle(e->child);
        return;
    }
    /* A61: pick_first connects as soon as it has an address, so it is made only now. */
    e->child = tc_endpoint_child_new(rh->base.helper, rh_on_child_state, rh);
    e->child->index = i;
    tc_endpoint_child_update(e->child, e->endpoint, rh->pick_first_config);
}

static void rh_publish(struct tc_ring_hash *rh)
{
    static const struct tc_status ok = {0};
    enum torc_connectivity state = tc_rh_set_aggregate(rh->set);
    struct tc_picker *picker = tc_rh_picker_new(rh->set);
    if (state != TORC_CONNECTIVITY_TRANSIENT_FAILURE) {
        tc_lb_update_state(rh->base.helper, state, &ok, picker);
        return;
    }
    struct tc_status status = tc_lb_status_with_resolution_note(
        rh->set->config->table_size ? "maglev cannot find a connected endpoint; last failure:"
                                    : "ring hash cannot find a connected endpoint; last failure:",
        &rh->last_error, rh->set->resolution_note);
    tc_lb_update_state(rh->base.helper, state, &status, picker);
    tc_status_fini(&status);
}

/* A117: connects a random IDLE endpoint, for an attempt that no pick asked for. */
static void rh_connect_any(struct tc_ring_hash *rh)
{
    uint32_t i = tc_rh_set_any_idle(rh->set, tc_loop_rng(rh->base.helper->env->loop));
    if (i == TC_INDEX_NONE)
        return;
    rh->busy = true;
    rh_connect_endpoint(rh, i);
    rh->busy = false;
}

/* Connects an endpoint if picks may not ask for one, and publishes. The last thing that an event does, when all states
 * are stored: the parent may shut the policy down. */
static void rh_reconcile(struct tc_ring_hash *rh)
{
    if (rh->busy || !rh->set)
        return;
    enum torc_connectivity state = tc_rh_set_aggregate(rh->set);
    /* A61: priority may have turned to another child in these states, so picks may not come. */
    if ((state == TORC_CONNECTIVITY_TRANSIENT_FAILURE || state == TORC_CONNECTIVITY_CONNECTING) &&
        !rh->set->counts[TORC_CONNECTIVITY_CONNECTING])
        rh_connect_any(rh);
    rh_publish(rh);
}

static void rh_on_child_state(void *arg, struct tc_endpoint_child *child, enum torc_connectivity state,
                              const struct tc_status *status, struct tc_picker *picker)
{
    struct tc_ring_hash *rh = arg;
    if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        tc_status_set(&rh->last_error, tc_status_ref(status));
    tc_rh_set_state(rh->set, child->index, state, picker);
    rh_reconcile(rh);
}

static void rh_on_want_task(struct tc_task *task)
{
    struct tc_rh_set *set = TC_CONTAINER_OF(task, struct tc_rh_set, want_task);
    struct tc_ring_hash *rh = set->owner; /* not NULL: rh_drop_set cancels the task */
    bool any = set->balance && set->balance->retry;
    if (any)
        set->balance->retry = false;
    rh->busy = true;
    for (size_t k = 0; k < set->wanted.len; k++) {
        struct tc_rh_endpoint *e = &set->at[set->wanted.data[k]];
        e->wanted = false;
        if (e->state != TORC_CONNECTIVITY_IDLE)
            continue;
        rh_connect_endpoint(rh, set->wanted.data[k]);
        any = true;
    }
    set->wanted.len = 0;
    rh->busy = false;
    if (any)
        rh_reconcile(rh);
}

/* --- updates --- */

/* Detaches a set (may be NULL) from the policy, ends the children that did not move to another set, and drops the
 * policy's reference. */
static void rh_drop_set(struct tc_rh_set *set)
{
    if (!set)
        return;
    set->owner = NULL;
    tc_task_cancel(&set->want_task);
    for (uint32_t i = 0; i < set->n; i++) {
        tc_endpoint_child_free(set->at[i].child);
        set->at[i].child = NULL;
    }
    tc_rh_set_unref(set);
}

static void rh_log_absence(struct tc_ring_hash *rh)
{
    uint32_t absent = tc_ring_absent(rh->set->ring);
    if (absent == 0 || rh->absence_logged)
        return;
    rh->absence_logged = true;
    struct tc_slice target = rh->base.helper->env->target;
    if (rh->set->config->table_size)
        TC_LOG(TC_LOG_LB, TORC_LOG_WARN,
               "maglev of %.*s: %u of %u endpoints have no slot in a table of %u and get no RPCs; "
               "a larger table_size lets them in",
               (int)target.len, target.data, absent, rh->set->n, tc_ring_size(rh->set->ring));
    else
        TC_LOG(TC_LOG_LB, TORC_LOG_WARN,
               "ring_hash of %.*s: %u of %u endpoints have no entry on a ring of %u and get no RPCs; "
               "a larger ring size cap lets them in",
               (int)target.len, target.data, absent, rh->set->n, tc_ring_size(rh->set->ring));
}

/* Replaces the present set, if there is one, by the pending set with the pending ring. Children of endpoints that stay
 * move over; children of endpoints that left, or lost their entries, end with the old set. Publishes nothing. */
static void rh_install(struct tc_ring_hash *rh, struct rh_pending *pending)
{
    struct tc_rh_set *old = rh->set, *set = pending->set;
    pending->set = NULL;
    set->owner = rh;
    tc_rh_set_take_ring(set, pending->ring);
    pending->ring = NULL;
    for (uint32_t i = 0; i < set->n; i++)
        if (pending->was[i] != TC_RING_ADDED && tc_ring_count_of(set->ring, i) > 0)
            tc_rh_set_move(set, i, &old->at[pending->was[i]]);
    tc_rh_balance_start(set, old, pending->was);
    rh->set = set;
    rh_drop_set(old);
    rh_log_absence(rh);
    rh->busy = true;
    for (uint32_t i = 0; i < set->n; i++) {
        if (set->at[i].changed)
            tc_endpoint_child_update(set->at[i].child, set->at[i].endpoint, rh->pick_first_config);
        set->at[i].changed = false;
    }
    rh->busy = false;
    if (rh->connect_wanted && tc_rh_set_aggregate(set) == TORC_CONNECTIVITY_IDLE)
        rh_connect_any(rh);
    rh->connect_wanted = false;
}

/* Any thread. */
static void pending_free(struct rh_pending *pending)
{
    tc_rh_set_unref(pending->set);
    tc_free(pending->was);
    tc_rh_build_free(pending->build);
    tc_ring_unref(pending->ring);
    tc_mailbox_unref(pending->box);
    tc_free(pending);
}

/* Marks that neither the ring that is being built nor the one that would follow is wanted any longer. */
static void rh_forget_pending(struct tc_ring_hash *rh)
{
    if (rh->pending)
        atomic_store(&rh->pending->unwanted, true);
    rh->newer = false;
}

static bool rh_is_building(const struct tc_ring_hash *rh)
{
    return rh->newer || (rh->pending && !atomic_load(&rh->pending->unwanted));
}

static bool rh_replace_set(struct tc_ring_hash *rh, const struct tc_lb_update *update);

static void pending_on_built(struct tc_mail *mail)
{
    struct rh_pending *pending = TC_CONTAINER_OF(mail, struct rh_pending, mail);
    struct tc_ring_hash *rh = pending->owner; /* still alive: the policy's shutdown closes the mailbox */
    rh->pending = NULL;
    if (!atomic_load(&pending->unwanted))
        rh_install(rh, pending);
    pending_free(pending);
    if (rh->newer)
        rh_replace_set(rh, &(struct tc_lb_update){.endpoints = rh->endpoints,
                                                  .config = rh->config,
                                                  .resolution_note = rh->resolution_note});
    rh_reconcile(rh);
}

static void pending_on_dropped(struct tc_mail *mail)
{
    pending_free(TC_CONTAINER_OF(mail, struct rh_pending, mail));
}

static void pending_build(struct tc_job *job)
{
    struct rh_pending *pending = TC_CONTAINER_OF(job, struct rh_pending, job);
    if (!atomic_load(&pending->unwanted))
        pending->ring = tc_rh_build_run(pending->build);
    tc_mailbox_send(pending->box, &pending->mail);
}

static void rh_build_in_background(struct tc_ring_hash *rh, struct rh_pending *pending)
{
    if (!rh->box)
        rh->box = tc_mailbox_new(rh->base.helper->env->loop);
    pending->box = tc_mailbox_ref(rh->box);
    pending->mail = (struct tc_mail){.run = pending_on_built, .drop = pending_on_dropped};
    pending->job.run = pending_build;
    pending->owner = rh;
    rh->pending = pending;
    tc_background_run(&pending->job);
}

/* Returns a reference to the ring of the pending set: the present ring, a ring that the process has, or a new ring if
 * it is small. NULL: the background thread must build the ring, from pending->build. */
static struct tc_ring *pending_ring_at_once(struct tc_ring_hash *rh, struct rh_pending *pending)
{
    const struct tc_lb_env *env = rh->base.helper->env;
    if (rh->set && tc_rh_config_same_ring(rh->set->config, pending->set->config) &&
        tc_rh_set_same_keys(rh->set, pending->set))
        return tc_ring_ref(rh->set->ring);
    pending->build = tc_rh_build_new(pending->set, rh->set, pending->was, env->ring_size_cap);
    struct tc_ring *ring = tc_rh_build_find(pending->build);
    if (!ring &&
        !tc_rh_build_exceeds(pending->build, env->ring_inline_entries ? env->ring_inline_entries : INLINE_ENTRIES))
        ring = tc_rh_build_run(pending->build);
    return ring;
}

/* Makes a set of the update's endpoints, of which there is at least one, and puts it in place. Returns false if the set
 * must wait: the background thread builds its ring now (`pending`), or is still busy with the ring of an earlier
 * update. In the second case sets `newer`, and pending_on_built calls this function again. */
static bool rh_replace_set(struct tc_ring_hash *rh, const struct tc_lb_update *update)
{
    struct tc_ring_hash_config *config = (struct tc_ring_hash_config *)update->config;
    struct rh_pending *pending = TC_NEW(struct rh_pending);
    pending->set = tc_rh_set_new(update->endpoints->n, config);
    pending->set->loop = rh->base.helper->env->loop;
    tc_task_init(&pending->set->want_task, rh_on_want_task);
    pending->set->resolution_note = tc_rstr_ref(update->resolution_note);
    pending->was = tc_reallocarray(NULL, update->endpoints->n, sizeof(*pending->was));
    tc_rh_set_merge(pending->set, rh->set, update->endpoints, pending->was);
    pending->ring = pending_ring_at_once(rh, pending);
    rh->newer = !pending->ring && rh->pending;
    if (!pending->ring && !rh->pending) {
        rh_build_in_background(rh, pending);
        return false;
    }
    if (!rh->newer) {
        rh_forget_pending(rh);
        rh_install(rh, pending);
    }
    pending_free(pending);
    return !rh->newer;
}

static void rh_remember(struct tc_ring_hash *rh, const struct tc_lb_update *update)
{
    struct tc_lb_config *config = tc_lb_config_ref(update->config);
    struct tc_endpoints *endpoints = tc_endpoints_ref(update->endpoints);
    struct tc_rstr *resolution_note = tc_rstr_ref(update->resolution_note);
    tc_lb_config_unref(rh->config);
    tc_endpoints_unref(rh->endpoints);
    tc_rstr_unref(rh->resolution_note);
    rh->config = config;
    rh->endpoints = endpoints;
    rh->resolution_note = resolution_note;
}

static void rh_report_failure(struct tc_ring_hash *rh, const struct tc_status *status)
{
    tc_lb_update_state(rh->base.helper, TORC_CONNECTIVITY_TRANSIENT_FAILURE, status, tc_picker_fail(status));
}

static struct tc_status rh_refuse_empty(struct tc_ring_hash *rh, const struct tc_lb_update *update)
{
    struct tc_status status = tc_lb_status_because("empty address list", update->resolution_note);
    struct tc_rh_set *old = rh->set;
    rh_forget_pending(rh);
    rh->set = NULL;
    rh_drop_set(old);
    rh_remember(rh, update);
    rh_report_failure(rh, &status);
    return status;
}

static struct tc_status rh_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct tc_ring_hash *rh = (struct tc_ring_hash *)policy;
    struct tc_status ok = {0};
    if (!rh->base.helper)
        return ok;
    if (!update->endpoints) {
        if (!rh->set && !rh_is_building(rh))
            rh_report_failure(rh, update->endpoints_error);
        return ok;
    }
    if (update->endpoints->n == 0)
        return rh_refuse_empty(rh, update);
    if ((rh->set || rh_is_building(rh)) && tc_endpoints_eq(rh->endpoints, update->endpoints) &&
        tc_lb_config_eq(rh->config, update->config) && tc_rstr_eq(rh->resolution_note, update->resolution_note))
        return ok;
    bool replaced = rh_replace_set(rh, update);
    rh_remember(rh, update);
    if (replaced)
        rh_reconcile(rh);
    else if (!rh->set)
        tc_lb_update_state(rh->base.helper, TORC_CONNECTIVITY_CONNECTING, &ok, tc_picker_queue());
    return ok;
}

static void rh_exit_idle(struct tc_lb_policy *policy)
{
    struct tc_ring_hash *rh = (struct tc_ring_hash *)policy;
    if (!rh->base.helper)
        return;
    rh->connect_wanted = rh_is_building(rh);
    if (!rh->set || tc_rh_set_aggregate(rh->set) != TORC_CONNECTIVITY_IDLE)
        return;
    rh_connect_any(rh);
    rh_reconcile(rh);
}

static void rh_reset_backoff(struct tc_lb_policy *policy)
{
    struct tc_ring_hash *rh = (struct tc_ring_hash *)policy;
    for (uint32_t i = 0; rh->set && i < rh->set->n; i++)
        if (rh->set->at[i].child)
            tc_endpoint_child_reset_backoff(rh->set->at[i].child);
}

static void rh_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct tc_ring_hash *rh = (const struct tc_ring_hash *)policy;
    const struct tc_rh_set *set = rh->set;
    tc_describe_flag(d, "building_ring", rh_is_building(rh));
    if (!set)
        return;
    tc_describe_state(d, "state", tc_rh_set_aggregate(set));
    tc_describe_number(d, set->config->table_size ? "table_size" : "ring_size", tc_ring_size(set->ring));
    if (set->balance)
        tc_describe_number(d, "active", set->balance->total->n);
    tc_describe_open(d, "endpoints", '[');
    for (uint32_t i = 0; i < set->n; i++) {
        tc_describe_open(d, NULL, '{');
        tc_describe_endpoint(d, "endpoint", set->at[i].endpoint);
        tc_describe_number(d, "weight", set->at[i].weight);
        tc_describe_state(d, "state", (enum torc_connectivity)set->at[i].state);
        tc_describe_flag(d, "wanted", set->at[i].wanted);
        if (set->balance)
            tc_describe_number(d, "active", set->balance->active[i]->n);
        tc_endpoint_child_describe(set->at[i].child, d);
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
}

static void rh_shutdown(struct tc_lb_policy *policy)
{
    struct tc_ring_hash *rh = (struct tc_ring_hash *)policy;
    if (!rh->base.helper)
        return;
    struct tc_rh_set *set = rh->set;
    rh->set = NULL;
    rh_forget_pending(rh);
    if (rh->box)
        tc_mailbox_close(rh->box);
    tc_mailbox_unref(rh->box);
    rh_drop_set(set);
    tc_endpoints_unref(rh->endpoints);
    tc_rstr_unref(rh->resolution_note);
    tc_lb_config_unref(rh->config);
    tc_lb_config_unref(rh->pick_first_config);
    rh->endpoints = NULL;
    rh->config = rh->pick_first_config = NULL;
    tc_status_fini(&rh->last_error);
    tc_lb_policy_end(&rh->base);
}

static const struct tc_lb_policy_ops rh_ops = {rh_update, rh_exit_idle, rh_reset_backoff, rh_shutdown, rh_describe};

static struct tc_lb_policy *rh_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct tc_ring_hash *rh = TC_NEW(struct tc_ring_hash);
    rh->base = (struct tc_lb_policy){.ops = &rh_ops, .factory = factory, .helper = helper};
    rh->pick_first_config = tc_pick_first_config_new_petiole();
    return &rh->base;
}

const struct tc_lb_factory tc_ring_hash_factory = {
    .name = "ring_hash",
    .alias = "ring_hash_experimental",
    .create = rh_create,
    .parse_config = tc_rh_config_parse,
    .free_config = tc_rh_config_free,
    .equal_config = tc_rh_config_equal,
};

const struct tc_lb_factory tc_maglev_factory = {
    .name = "maglev",
    .alias = "maglev_experimental",
    .create = rh_create,
    .parse_config = tc_maglev_config_parse,
    .free_config = tc_rh_config_free,
    .equal_config = tc_rh_config_equal,
};

struct tc_lb_config *tc_ring_hash_config_new(uint64_t min_ring_size, uint64_t max_ring_size,
                                             struct tc_slice request_hash_header)
{
    struct tc_ring_hash_config *c = tc_rh_config_new(&tc_ring_hash_factory, request_hash_header);
    c->min_ring_size = min_ring_size;
    c->max_ring_size = max_ring_size;
    return &c->base;
}
