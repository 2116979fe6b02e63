#include "lb/round_robin.h"

#include "base/mem.h"
#include "lb/describe.h"
#include "lb/endpoint_map.h"
#include "lb/leaf.h"
#include "lb/note.h"
#include "lb/pick_first.h"

struct child {
    struct tc_endpoint *endpoint;
    struct tc_leaf *leaf;
    enum torc_connectivity state;
    struct tc_picker *picker; /* in READY; else NULL */
};

struct rr_picker {
    struct tc_picker base;
    size_t next;
    size_t n;
    struct tc_picker *ready[];
};

struct round_robin {
    struct tc_lb_policy base;
    struct child **children; /* one for each endpoint, in the order of the list */
    size_t n;
    struct tc_lb_config *leaf_config;
    struct tc_rstr *note;
    struct tc_status last_error;
    bool updating;
    enum torc_connectivity state; /* as reported; TORC_SHUTDOWN: nothing yet */
    size_t counts[TORC_SHUTDOWN]; /* children by state */
    struct rr_picker *published;  /* a reference; NULL: not READY */
    struct tc_task ready_task;    /* joins changes among READY children */
    struct tc_task free_task;
};

static enum tc_pick_kind rr_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct rr_picker *rr = (struct rr_picker *)picker;
    size_t i = rr->next;
    if (!args->dry)
        rr->next = i + 1 == rr->n ? 0 : i + 1;
    if (TC_UNLIKELY(args->trace != NULL))
        args->trace->policy = tc_slice_str("round_robin");
    return tc_picker_pick(rr->ready[i], args, out);
}

static void rr_picker_free(struct tc_picker *picker)
{
    struct rr_picker *rr = (struct rr_picker *)picker;
    for (size_t i = 0; i < rr->n; i++)
        tc_picker_unref(rr->ready[i]);
    tc_free(rr);
}

static const struct tc_picker_ops rr_picker_ops = {rr_pick, rr_picker_free};

static struct rr_picker *ready_picker(struct round_robin *rr)
{
    size_t n = rr->counts[TORC_READY];
    struct rr_picker *p = tc_malloc(sizeof(*p) + n * sizeof(struct tc_picker *));
    p->base.ops = &rr_picker_ops;
    tc_lref_init(&p->base.ref);
    p->n = 0;
    for (size_t i = 0; i < rr->n; i++)
        if (rr->children[i]->state == TORC_READY)
            p->ready[p->n++] = tc_picker_ref(rr->children[i]->picker);
    p->next = (size_t)tc_rng_below(tc_loop_rng(rr->base.helper->env->loop), p->n);
    return p;
}

/* True when the published picker has these very children's pickers: then it stays, and the turn with it. */
static bool ready_unchanged(const struct round_robin *rr)
{
    size_t k = 0;
    if (!rr->published || rr->published->n != rr->counts[TORC_READY])
        return false;
    for (size_t i = 0; i < rr->n; i++)
        if (rr->children[i]->state == TORC_READY && rr->published->ready[k++] != rr->children[i]->picker)
            return false;
    return true;
}

static void unpublish(struct round_robin *rr)
{
    if (rr->published)
        tc_picker_unref(&rr->published->base);
    rr->published = NULL;
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
    if (ready_unchanged(rr))
        return;
    unpublish(rr);
    rr->published = ready_picker(rr);
    report(rr, TORC_READY, NULL, tc_picker_ref(&rr->published->base));
}

static void on_ready_task(struct tc_task *task)
{
    struct round_robin *rr = TC_CONTAINER_OF(task, struct round_robin, ready_task);
    if (rr->counts[TORC_READY])
        publish_ready(rr);
}

/* What the children's states say is published; the last thing that an event does. */
static void reconcile(struct round_robin *rr)
{
    if (rr->updating || !rr->base.helper || rr->n == 0)
        return;
    if (rr->counts[TORC_READY]) {
        if (rr->state == TORC_READY)
            tc_loop_defer(rr->base.helper->env->loop, &rr->ready_task);
        else
            publish_ready(rr);
        return;
    }
    unpublish(rr);
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
    tc_picker_unref(c->picker);
    c->picker = NULL;
    rr->counts[c->state]--;
    rr->counts[state]++;
    c->state = state;
    if (state == TORC_READY)
        c->picker = picker;
    else
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
    tc_picker_unref(c->picker);
    tc_endpoint_unref(c->endpoint);
    tc_free(c);
}

static void drop_children(struct round_robin *rr, struct child **children, size_t n)
{
    for (size_t i = 0; i < n; i++)
        child_free(rr, children[i]);
    tc_free(children);
}

/* The list without duplicates, with the children that endpoints had before. */
static void replace_children(struct round_robin *rr, const struct tc_endpoints *list)
{
    struct child **old = rr->children, **children = tc_reallocarray(NULL, list->n, sizeof(struct child *));
    size_t n_old = rr->n, n = 0;
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
            tc_endpoint_ref(e);
            tc_endpoint_unref(c->endpoint);
        } else {
            c = TC_NEW(struct child);
            c->state = TORC_CONNECTING;
            rr->counts[c->state]++;
            c->leaf = tc_leaf_new(rr->base.helper, on_leaf_state, rr);
            tc_endpoint_ref(e);
        }
        c->endpoint = e;
        c->leaf->index = (uint32_t)n;
        children[n++] = c;
    }
    tc_endpoint_map_fini(&before);
    tc_endpoint_map_fini(&seen);
    rr->children = children;
    rr->n = n;
    drop_children(rr, old, n_old);
}

static struct tc_status refuse_empty(struct round_robin *rr)
{
    struct tc_status status = tc_lb_status_because("empty address list", rr->note);
    drop_children(rr, rr->children, rr->n);
    rr->children = NULL;
    rr->n = 0;
    unpublish(rr);
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
    for (size_t i = 0; i < rr->n; i++)
        tc_leaf_update(rr->children[i]->leaf, rr->children[i]->endpoint, rr->leaf_config);
    rr->updating = false;
    reconcile(rr);
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
    drop_children(rr, rr->children, rr->n);
    rr->children = NULL;
    rr->n = 0;
    unpublish(rr);
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
