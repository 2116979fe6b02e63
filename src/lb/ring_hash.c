#include "lb/ring_hash.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/mailbox.h"
#include "io/worker.h"
#include "lb/describe.h"
#include "lb/note.h"
#include "lb/pick_first.h"
#include "lb/ring_hash_build.h"

/* An update whose ring is being built; until then the endpoints of the last one serve. The worker's until its mail
 * comes. */
struct next {
    struct tc_job job;
    struct tc_mail mail;
    struct tc_mailbox *box;
    struct tc_ring_hash *owner; /* NULL: it is not wanted any more */
    struct tc_rh_set *set;      /* without leaves, without a ring */
    uint32_t *was;              /* of each endpoint its place in the policy's set, TC_RING_ADDED: none */
    struct tc_rh_build *build;
    struct tc_ring *ring; /* NULL: not yet */
};

struct tc_ring_hash {
    struct tc_lb_policy base;
    struct tc_rh_set *set;          /* NULL: no endpoints */
    struct next *next;              /* NULL: nothing is being built */
    struct tc_mailbox *box;         /* where the worker answers; NULL: it was never asked */
    struct tc_endpoints *endpoints; /* of the last update, as are the config and the note; NULL: no endpoints */
    struct tc_rstr *note;
    struct tc_lb_config *config;
    struct tc_lb_config *leaf_config;
    struct tc_status last_error; /* of the endpoint that failed last */
    TC_VEC(uint32_t) wanted;     /* endpoints that picks asked to connect */
    bool busy;                   /* several leaves are being told something: states only add up */
    bool absence_logged;
    struct tc_task want_task;
    struct tc_task free_task;
};

enum { INLINE_ENTRIES = 32768 }; /* of a ring that is built on the loop's own thread: half a millisecond */

/* Connecting. */

static void on_leaf_state(void *arg, struct tc_leaf *leaf, enum torc_connectivity state, const struct tc_status *status,
                          struct tc_picker *picker);

static void connect_endpoint(struct tc_ring_hash *rh, uint32_t i)
{
    struct tc_rh_endpoint *e = &rh->set->at[i];
    if (e->leaf) {
        tc_leaf_exit_idle(e->leaf);
        return;
    }
    /* A61: pick_first connects as soon as it has an address, so it is made only now. */
    e->leaf = tc_leaf_new(rh->base.helper, on_leaf_state, rh);
    e->leaf->index = i;
    tc_leaf_update(e->leaf, e->endpoint, rh->leaf_config);
}

static void publish(struct tc_ring_hash *rh)
{
    static const struct tc_status ok = {0};
    enum torc_connectivity state = tc_rh_set_aggregate(rh->set);
    struct tc_picker *picker = tc_rh_picker_new(rh->set);
    if (state != TORC_TRANSIENT_FAILURE) {
        rh->base.helper->ops->update_state(rh->base.helper, state, &ok, picker);
        return;
    }
    struct tc_status status = tc_lb_status_with_note(
        "ring hash cannot find a connected endpoint; last failure:", tc_status_text(&rh->last_error), rh->set->note);
    rh->base.helper->ops->update_state(rh->base.helper, state, &status, picker);
    tc_status_fini(&status);
}

/* Called when the states are complete after an event; the last thing that the event does. */
static void reconcile(struct tc_ring_hash *rh)
{
    if (rh->busy || !rh->set)
        return;
    enum torc_connectivity state = tc_rh_set_aggregate(rh->set);
    /* A61: no picks may come in these states (a priority policy turns to others), so go on without them. */
    if ((state == TORC_TRANSIENT_FAILURE || state == TORC_CONNECTING) && !rh->set->counts[TORC_CONNECTING] &&
        rh->set->idle_first != TC_RH_NONE) {
        rh->busy = true;
        connect_endpoint(rh, rh->set->idle_first);
        rh->busy = false;
    }
    publish(rh);
}

static void on_leaf_state(void *arg, struct tc_leaf *leaf, enum torc_connectivity state, const struct tc_status *status,
                          struct tc_picker *picker)
{
    struct tc_ring_hash *rh = arg;
    const struct tc_rh_endpoint *e = &rh->set->at[leaf->index];
    if (e->state == TORC_TRANSIENT_FAILURE && state == TORC_CONNECTING) {
        tc_picker_unref(picker); /* failing until connected */
        return;
    }
    if (state == TORC_TRANSIENT_FAILURE)
        tc_status_set(&rh->last_error, tc_status_ref(status));
    tc_rh_set_state(rh->set, leaf->index, state, picker);
    reconcile(rh);
}

void tc_ring_hash_want(struct tc_rh_set *set, uint32_t i)
{
    struct tc_ring_hash *rh = set->owner;
    if (!rh || set->at[i].wanted)
        return;
    set->at[i].wanted = true;
    *tc_vec_push(&rh->wanted) = i;
    tc_loop_defer(rh->base.helper->env->loop, &rh->want_task);
}

static void on_want_task(struct tc_task *task)
{
    struct tc_ring_hash *rh = TC_CONTAINER_OF(task, struct tc_ring_hash, want_task);
    bool any = false;
    rh->busy = true;
    for (size_t k = 0; k < rh->wanted.len; k++) {
        struct tc_rh_endpoint *e = &rh->set->at[rh->wanted.data[k]];
        e->wanted = false;
        if (e->state != TORC_IDLE)
            continue;
        connect_endpoint(rh, rh->wanted.data[k]);
        any = true;
    }
    rh->wanted.len = 0;
    rh->busy = false;
    if (any)
        reconcile(rh);
}

/* Updates. */

/* Detaches the set from the policy; leaves that did not move to another set end. */
static void drop_set(struct tc_ring_hash *rh, struct tc_rh_set *set)
{
    if (!set)
        return;
    set->owner = NULL;
    rh->wanted.len = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        tc_leaf_free(set->at[i].leaf);
        set->at[i].leaf = NULL;
    }
    tc_rh_set_unref(set);
}

static void log_absence(struct tc_ring_hash *rh)
{
    uint32_t absent = tc_ring_absent(rh->set->ring);
    if (absent == 0 || rh->absence_logged)
        return;
    rh->absence_logged = true;
    TC_LOG(TC_LOG_LB, TORC_LOG_WARN,
           "ring_hash of %.*s: %u of %u endpoints have no entry on a ring of %u and get no RPCs; "
           "a larger ring size cap lets them in",
           (int)rh->base.helper->env->target.len, rh->base.helper->env->target.data, absent, rh->set->n,
           tc_ring_size(rh->set->ring));
}

/* The set that was prepared takes the place of the policy's, whose leaves move over. */
static void install(struct tc_ring_hash *rh, struct next *next)
{
    struct tc_rh_set *old = rh->set, *set = next->set;
    next->set = NULL;
    set->owner = rh;
    for (uint32_t i = 0; i < set->n; i++)
        if (next->was[i] != TC_RING_ADDED)
            tc_rh_set_move(set, i, &old->at[next->was[i]]);
    tc_rh_set_take_ring(set, next->ring);
    next->ring = NULL;
    rh->set = set;
    drop_set(rh, old);
    log_absence(rh);
    rh->busy = true;
    for (uint32_t i = 0; i < set->n; i++) {
        if (set->at[i].changed)
            tc_leaf_update(set->at[i].leaf, set->at[i].endpoint, rh->leaf_config);
        set->at[i].changed = false;
    }
    rh->busy = false;
}

/* Any thread. */
static void next_free(struct next *next)
{
    tc_rh_set_unref(next->set);
    tc_free(next->was);
    tc_rh_build_free(next->build);
    tc_ring_unref(next->ring);
    tc_mailbox_unref(next->box);
    tc_free(next);
}

/* What is being built is not wanted any more. */
static void forget_next(struct tc_ring_hash *rh)
{
    if (rh->next)
        rh->next->owner = NULL;
    rh->next = NULL;
}

static void on_built(struct tc_mail *mail)
{
    struct next *next = TC_CONTAINER_OF(mail, struct next, mail);
    struct tc_ring_hash *rh = next->owner;
    if (rh) {
        rh->next = NULL;
        install(rh, next);
        reconcile(rh);
    }
    next_free(next);
}

static void on_build_dropped(struct tc_mail *mail)
{
    next_free(TC_CONTAINER_OF(mail, struct next, mail));
}

static void build(struct tc_job *job)
{
    struct next *next = TC_CONTAINER_OF(job, struct next, job);
    next->ring = tc_rh_build_run(next->build);
    tc_mailbox_send(next->box, &next->mail);
}

static void build_elsewhere(struct tc_ring_hash *rh, struct next *next)
{
    static const struct tc_status ok = {0};
    if (!rh->box)
        rh->box = tc_mailbox_new(rh->base.helper->env->loop);
    next->box = tc_mailbox_ref(rh->box);
    next->mail = (struct tc_mail){.run = on_built, .drop = on_build_dropped};
    next->job.run = build;
    next->owner = rh;
    rh->next = next;
    tc_worker_do(&next->job);
    if (!rh->set)
        rh->base.helper->ops->update_state(rh->base.helper, TORC_CONNECTING, &ok, tc_picker_queue());
}

/* The ring of what was prepared, if it is there or soon made. */
static struct tc_ring *ring_at_once(struct tc_ring_hash *rh, struct next *next,
                                    const struct tc_ring_hash_config *config)
{
    const struct tc_lb_env *env = rh->base.helper->env;
    if (rh->set && rh->set->min_ring_size == config->min_ring_size && rh->set->max_ring_size == config->max_ring_size &&
        tc_rh_set_same_keys(rh->set, next->set))
        return tc_ring_ref(rh->set->ring);
    next->build = tc_rh_build_new(next->set, rh->set, next->was, config, env->ring_size_cap);
    struct tc_ring *ring = tc_rh_build_find(next->build);
    if (!ring &&
        !tc_rh_build_exceeds(next->build, env->ring_inline_entries ? env->ring_inline_entries : INLINE_ENTRIES))
        ring = tc_rh_build_run(next->build);
    return ring;
}

/* False: another thread builds the ring first. */
static bool replace_set(struct tc_ring_hash *rh, const struct tc_lb_update *update)
{
    const struct tc_ring_hash_config *config = (const struct tc_ring_hash_config *)update->config;
    struct next *next = TC_NEW(struct next);
    forget_next(rh);
    next->set = tc_rh_set_new(update->endpoints->n);
    next->set->header = tc_rstr_ref(config->request_hash_header);
    next->set->note = tc_rstr_ref(update->resolution_note);
    next->was = tc_reallocarray(NULL, update->endpoints->n, sizeof(*next->was));
    tc_rh_set_merge(next->set, rh->set, update->endpoints, next->was);
    next->ring = ring_at_once(rh, next, config);
    next->set->min_ring_size = config->min_ring_size;
    next->set->max_ring_size = config->max_ring_size;
    if (!next->ring) {
        build_elsewhere(rh, next);
        return false;
    }
    install(rh, next);
    next_free(next);
    return true;
}

static void remember(struct tc_ring_hash *rh, const struct tc_lb_update *update)
{
    struct tc_lb_config *config = tc_lb_config_ref(update->config);
    struct tc_endpoints *endpoints = tc_endpoints_ref(update->endpoints);
    struct tc_rstr *note = tc_rstr_ref(update->resolution_note);
    tc_lb_config_unref(rh->config);
    tc_endpoints_unref(rh->endpoints);
    tc_rstr_unref(rh->note);
    rh->config = config;
    rh->endpoints = endpoints;
    rh->note = note;
}

static void report_failure(struct tc_ring_hash *rh, const struct tc_status *status)
{
    rh->base.helper->ops->update_state(rh->base.helper, TORC_TRANSIENT_FAILURE, status, tc_picker_fail(status));
}

static struct tc_status refuse_empty(struct tc_ring_hash *rh, const struct tc_lb_update *update)
{
    struct tc_status status = tc_lb_status_because("empty address list", update->resolution_note);
    struct tc_rh_set *old = rh->set;
    forget_next(rh);
    rh->set = NULL;
    drop_set(rh, old);
    remember(rh, update);
    report_failure(rh, &status);
    return status;
}

static struct tc_status rh_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct tc_ring_hash *rh = (struct tc_ring_hash *)policy;
    struct tc_status ok = {0};
    if (!rh->base.helper)
        return ok;
    if (!update->endpoints) {
        if (!rh->set && !rh->next)
            report_failure(rh, update->endpoints_error);
        return ok;
    }
    if (update->endpoints->n == 0)
        return refuse_empty(rh, update);
    if ((rh->set || rh->next) && tc_endpoints_eq(rh->endpoints, update->endpoints) &&
        tc_lb_config_eq(rh->config, update->config) && tc_rstr_eq(rh->note, update->resolution_note))
        return ok;
    bool replaced = replace_set(rh, update);
    remember(rh, update);
    if (replaced)
        reconcile(rh);
    return ok;
}

static void rh_exit_idle(struct tc_lb_policy *policy)
{
    /* Nobody's hash says which: one idle endpoint, from a random place on (A117), unless one is there already. */
    struct tc_ring_hash *rh = (struct tc_ring_hash *)policy;
    if (!rh->base.helper || !rh->set || tc_rh_set_aggregate(rh->set) != TORC_IDLE)
        return;
    uint32_t i = (uint32_t)tc_rng_below(tc_loop_rng(rh->base.helper->env->loop), rh->set->n);
    while (rh->set->at[i].state != TORC_IDLE)
        i = i + 1 == rh->set->n ? 0 : i + 1;
    rh->busy = true;
    connect_endpoint(rh, i);
    rh->busy = false;
    reconcile(rh);
}

static void rh_reset_backoff(struct tc_lb_policy *policy)
{
    struct tc_ring_hash *rh = (struct tc_ring_hash *)policy;
    for (uint32_t i = 0; rh->set && i < rh->set->n; i++)
        if (rh->set->at[i].leaf)
            tc_leaf_reset_backoff(rh->set->at[i].leaf);
}

static void rh_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct tc_ring_hash *rh = (const struct tc_ring_hash *)policy;
    const struct tc_rh_set *set = rh->set;
    tc_describe_flag(d, "building_ring", rh->next != NULL);
    if (!set)
        return;
    tc_describe_state(d, "state", tc_rh_set_aggregate(set));
    tc_describe_number(d, "ring_size", tc_ring_size(set->ring));
    tc_describe_open(d, "endpoints", '[');
    for (uint32_t i = 0; i < set->n; i++) {
        tc_describe_open(d, NULL, '{');
        tc_describe_endpoint(d, "endpoint", set->at[i].endpoint);
        tc_describe_number(d, "weight", set->at[i].weight);
        tc_describe_state(d, "state", (enum torc_connectivity)set->at[i].state);
        tc_describe_flag(d, "wanted", set->at[i].wanted);
        tc_leaf_describe(set->at[i].leaf, d);
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
    /* In this order they would be tried without a pick (A61). */
    tc_describe_open(d, "idle", '[');
    for (uint32_t i = set->idle_first; i != TC_RH_NONE; i = set->at[i].idle_next)
        tc_describe_number(d, NULL, i);
    tc_describe_close(d, ']');
}

static void on_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct tc_ring_hash, free_task));
}

static void rh_shutdown(struct tc_lb_policy *policy)
{
    struct tc_ring_hash *rh = (struct tc_ring_hash *)policy;
    if (!rh->base.helper)
        return;
    struct tc_loop *loop = rh->base.helper->env->loop;
    struct tc_rh_set *set = rh->set;
    rh->set = NULL;
    forget_next(rh);
    if (rh->box)
        tc_mailbox_close(rh->box);
    tc_mailbox_unref(rh->box);
    drop_set(rh, set);
    tc_endpoints_unref(rh->endpoints);
    tc_rstr_unref(rh->note);
    tc_lb_config_unref(rh->config);
    tc_lb_config_unref(rh->leaf_config);
    rh->endpoints = NULL;
    rh->config = rh->leaf_config = NULL;
    tc_status_fini(&rh->last_error);
    tc_vec_fini(&rh->wanted);
    tc_task_cancel(&rh->want_task);
    rh->base.helper = NULL;
    tc_loop_defer(loop, &rh->free_task);
}

static const struct tc_lb_policy_ops rh_ops = {rh_update, rh_exit_idle, rh_reset_backoff, rh_shutdown, rh_describe};

static struct tc_lb_policy *rh_create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    struct tc_ring_hash *rh = TC_NEW(struct tc_ring_hash);
    rh->base = (struct tc_lb_policy){&rh_ops, cls, helper};
    rh->leaf_config = tc_pick_first_config_new_petiole();
    tc_task_init(&rh->want_task, on_want_task);
    tc_task_init(&rh->free_task, on_free);
    return &rh->base;
}

const struct tc_lb_class tc_ring_hash_class = {
    .name = "ring_hash",
    .alias = "ring_hash_experimental",
    .create = rh_create,
    .parse_config = tc_ring_hash_config_parse,
    .free_config = tc_ring_hash_config_free,
    .equal_config = tc_ring_hash_config_equal,
};
