#include "lb/weighted_target.h"

#include <uthash.h>

#include "base/json.h"
#include "base/mem.h"
#include "lb/describe.h"
#include "lb/note.h"

struct config {
    struct tc_lb_config base;
    size_t n;
    struct tc_weighted_target targets[];
};

struct weighted_target;

struct child {
    struct tc_lb_helper helper; /* of the child's policy */
    struct weighted_target *owner;
    struct tc_rstr *name;
    uint32_t weight; /* 0: deactivated, kept until the timer fires */
    struct tc_lb_child *policy;
    enum torc_connectivity state;
    struct tc_status status; /* in TRANSIENT_FAILURE */
    struct tc_picker *picker;
    struct tc_timer retention;
    struct tc_task free_task;
    UT_hash_handle hh;
};

struct weighted_target {
    struct tc_lb_policy base;
    struct child *children; /* by name */
    struct tc_rstr *note;
    bool updating;
    enum torc_connectivity state; /* as published; TORC_SHUTDOWN: nothing yet */
    size_t counts[TORC_SHUTDOWN]; /* active children by state; not while `updating` */
    struct tc_task publish_task;  /* joins changes that leave the state */
    uint64_t salt;                /* so that nested policies' choices do not hang together */
    struct tc_task free_task;
};

/* The picker: children in one state, each with its share of the numbers. */

struct wt_picker {
    struct tc_picker base;
    uint64_t salt;
    uint64_t total;
    size_t n;
    struct {
        uint64_t upto; /* the sum of the weights so far */
        struct tc_picker *picker;
    } at[];
};

static uint64_t mix(uint64_t x)
{
    /* The finaliser of SplitMix64 (Steele, Lea, Flood). */
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static enum tc_pick_kind wt_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct wt_picker *p = (struct wt_picker *)picker;
    uint64_t key = (uint64_t)(((unsigned __int128)mix(args->random ^ p->salt) * p->total) >> 64);
    size_t lo = 0, hi = p->n - 1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (p->at[mid].upto <= key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return tc_picker_pick(p->at[lo].picker, args, out);
}

static void wt_picker_free(struct tc_picker *picker)
{
    struct wt_picker *p = (struct wt_picker *)picker;
    for (size_t i = 0; i < p->n; i++)
        tc_picker_unref(p->at[i].picker);
    tc_free(p);
}

static const struct tc_picker_ops wt_picker_ops = {wt_pick, wt_picker_free};

static struct tc_picker *picker_of(struct weighted_target *wt, enum torc_connectivity state, size_t n)
{
    struct wt_picker *p = tc_malloc(sizeof(*p) + n * sizeof(p->at[0]));
    p->base.ops = &wt_picker_ops;
    tc_lref_init(&p->base.ref);
    p->salt = wt->salt;
    p->total = 0;
    p->n = 0;
    for (struct child *c = wt->children; c; c = c->hh.next) {
        if (!c->weight || c->state != state)
            continue;
        p->total += c->weight;
        p->at[p->n].upto = p->total;
        p->at[p->n++].picker = tc_picker_ref(c->picker);
    }
    return &p->base;
}

/* States. */

static void report_failure(struct weighted_target *wt, const struct tc_status *status)
{
    wt->base.helper->ops->update_state(wt->base.helper, TORC_TRANSIENT_FAILURE, status, tc_picker_fail(status));
}

/* What the active children's states say together. */
static enum torc_connectivity joined_state(const struct weighted_target *wt)
{
    return wt->counts[TORC_READY]        ? TORC_READY
           : wt->counts[TORC_CONNECTING] ? TORC_CONNECTING
           : wt->counts[TORC_IDLE]       ? TORC_IDLE
                                         : TORC_TRANSIENT_FAILURE;
}

static void publish_failure(struct weighted_target *wt)
{
    const struct tc_status *last = NULL;
    struct tc_status status;
    for (const struct child *c = wt->children; c; c = c->hh.next)
        if (c->weight && c->state == TORC_TRANSIENT_FAILURE)
            last = &c->status;
    if (last) {
        status = tc_status_ref(last);
        wt->base.helper->ops->update_state(wt->base.helper, TORC_TRANSIENT_FAILURE, &status,
                                           picker_of(wt, TORC_TRANSIENT_FAILURE, wt->counts[TORC_TRANSIENT_FAILURE]));
    } else {
        status = tc_lb_status_because("no children in weighted_target policy", wt->note);
        report_failure(wt, &status);
    }
    tc_status_fini(&status);
}

/* The last thing that an event does. */
static void publish(struct weighted_target *wt)
{
    static const struct tc_status ok = {0};
    struct tc_lb_helper *h = wt->base.helper;
    tc_task_cancel(&wt->publish_task);
    wt->state = joined_state(wt);
    if (wt->state == TORC_TRANSIENT_FAILURE)
        publish_failure(wt);
    else if (wt->state == TORC_CONNECTING)
        h->ops->update_state(h, TORC_CONNECTING, &ok, tc_picker_queue());
    else /* IDLE: the children's own pickers, which wake them */
        h->ops->update_state(h, wt->state, &ok, picker_of(wt, wt->state, wt->counts[wt->state]));
}

static void on_publish_task(struct tc_task *task)
{
    publish(TC_CONTAINER_OF(task, struct weighted_target, publish_task));
}

/* After children were told something. */
static void publish_all(struct weighted_target *wt)
{
    if (!wt->base.helper)
        return;
    memset(wt->counts, 0, sizeof(wt->counts));
    for (const struct child *c = wt->children; c; c = c->hh.next)
        if (c->weight)
            wt->counts[c->state]++;
    publish(wt);
}

/* After one active child changed its state, or its picker alone: a new state of all is said at once, what many children
 * say within one is joined, as each picker costs as much as there are children. */
static void reconcile(struct weighted_target *wt, enum torc_connectivity before, enum torc_connectivity now)
{
    if (wt->updating || !wt->base.helper)
        return;
    wt->counts[before]--;
    wt->counts[now]++;
    if (joined_state(wt) != wt->state)
        publish(wt);
    else
        tc_loop_defer(wt->base.helper->env->loop, &wt->publish_task);
}

static void on_child_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                           struct tc_picker *picker)
{
    struct child *c = (struct child *)h;
    enum torc_connectivity before = c->state;
    tc_picker_unref(c->picker);
    c->picker = picker;
    /* A child that failed counts as failed until it is READY again or waits to be asked; its picker is the new one. */
    if (c->state != TORC_TRANSIENT_FAILURE || state != TORC_CONNECTING)
        c->state = state;
    if (state == TORC_TRANSIENT_FAILURE)
        tc_status_set(&c->status, tc_status_ref(status));
    if (c->weight)
        reconcile(c->owner, before, c->state);
}

static struct tc_subchannel *on_create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                                  const struct tc_addr *addr, tc_subchannel_state_fn on_state,
                                                  void *arg)
{
    struct tc_lb_helper *parent = ((struct child *)h)->owner->base.helper;
    return parent->ops->create_subchannel(parent, endpoint, addr, on_state, arg);
}

static void on_request_reresolution(struct tc_lb_helper *h)
{
    struct tc_lb_helper *parent = ((struct child *)h)->owner->base.helper;
    parent->ops->request_reresolution(parent);
}

static const struct tc_lb_helper_ops child_ops = {on_create_subchannel, on_child_state, on_request_reresolution};

/* Children. */

static void on_child_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct child, free_task));
}

static void child_end(struct child *c)
{
    struct weighted_target *wt = c->owner;
    HASH_DEL(wt->children, c);
    tc_timer_stop(&c->retention);
    tc_lb_child_shutdown(c->policy);
    tc_picker_unref(c->picker);
    tc_status_fini(&c->status);
    tc_rstr_unref(c->name);
    tc_loop_defer(wt->base.helper->env->loop, &c->free_task);
}

static void on_retention(struct tc_timer *timer)
{
    child_end(TC_CONTAINER_OF(timer, struct child, retention));
}

static struct child *child_new(struct weighted_target *wt, struct tc_rstr *name)
{
    struct child *c = TC_NEW(struct child);
    c->helper = (struct tc_lb_helper){&child_ops, wt->base.helper->env};
    c->owner = wt;
    c->name = tc_rstr_ref(name);
    c->state = TORC_CONNECTING;
    c->picker = tc_picker_queue();
    c->policy = tc_lb_child_new(&c->helper);
    tc_timer_init(&c->retention, wt->base.helper->env->loop, on_retention);
    tc_task_init(&c->free_task, on_child_free);
    HASH_ADD_KEYPTR(hh, wt->children, c->name->data, c->name->len, c);
    return c;
}

static struct tc_status update_child(struct weighted_target *wt, const struct tc_weighted_target *target,
                                     const struct tc_lb_update *update)
{
    struct child *c;
    HASH_FIND(hh, wt->children, target->name->data, target->name->len, c);
    if (!c)
        c = child_new(wt, target->name);
    tc_timer_stop(&c->retention);
    c->weight = target->weight;
    struct tc_lb_update sub = *update;
    sub.config = target->config;
    if (update->endpoints)
        sub.endpoints = tc_endpoints_child(update->endpoints, tc_rstr_slice(target->name));
    return tc_lb_child_update(c->policy, &sub);
}

static struct tc_status wt_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct weighted_target *wt = (struct weighted_target *)policy;
    const struct config *config = (const struct config *)update->config;
    struct tc_status result = {0};
    if (!wt->base.helper)
        return result;
    struct tc_rstr *note = tc_rstr_ref(update->resolution_note);
    tc_rstr_unref(wt->note);
    wt->note = note;
    wt->updating = true;
    for (struct child *c = wt->children; c; c = c->hh.next)
        c->weight = 0;
    for (size_t i = 0; i < config->n; i++) {
        struct tc_status status = update_child(wt, &config->targets[i], update);
        if (!tc_status_ok(&status) && tc_status_ok(&result))
            result = tc_status_ref(&status);
        tc_status_fini(&status);
    }
    for (struct child *c = wt->children; c; c = c->hh.next)
        if (!c->weight && !tc_timer_active(&c->retention))
            tc_timer_start(&c->retention, wt->base.helper->env->priority_retention_ms);
    wt->updating = false;
    publish_all(wt);
    return result;
}

static void wt_exit_idle(struct tc_lb_policy *policy)
{
    struct weighted_target *wt = (struct weighted_target *)policy;
    wt->updating = true;
    for (struct child *c = wt->children; c; c = c->hh.next)
        if (c->weight)
            tc_lb_child_exit_idle(c->policy);
    wt->updating = false;
    if (wt->children)
        publish_all(wt);
}

static void wt_reset_backoff(struct tc_lb_policy *policy)
{
    struct weighted_target *wt = (struct weighted_target *)policy;
    for (struct child *c = wt->children; c; c = c->hh.next)
        tc_lb_child_reset_backoff(c->policy);
}

static void wt_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct weighted_target *wt = (const struct weighted_target *)policy;
    tc_describe_open(d, "targets", '[');
    for (const struct child *c = wt->children; c; c = c->hh.next) {
        tc_describe_open(d, NULL, '{');
        tc_describe_text(d, "name", tc_rstr_slice(c->name));
        tc_describe_number(d, "weight", c->weight);
        tc_describe_state(d, "state", c->state);
        if (c->state == TORC_TRANSIENT_FAILURE)
            tc_describe_text(d, "error", tc_slice_str(tc_status_text(&c->status)));
        tc_describe_timer(d, "ends_in_ms", &c->retention);
        tc_describe_child(d, "child", c->policy);
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
}

static void on_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct weighted_target, free_task));
}

static void wt_shutdown(struct tc_lb_policy *policy)
{
    struct weighted_target *wt = (struct weighted_target *)policy;
    if (!wt->base.helper)
        return;
    struct tc_loop *loop = wt->base.helper->env->loop;
    struct child *c, *next;
    HASH_ITER(hh, wt->children, c, next)
    child_end(c);
    tc_task_cancel(&wt->publish_task);
    tc_rstr_unref(wt->note);
    wt->note = NULL;
    wt->base.helper = NULL;
    tc_loop_defer(loop, &wt->free_task);
}

static const struct tc_lb_policy_ops wt_ops = {wt_update, wt_exit_idle, wt_reset_backoff, wt_shutdown, wt_describe};

static struct tc_lb_policy *wt_create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    struct weighted_target *wt = TC_NEW(struct weighted_target);
    wt->base = (struct tc_lb_policy){&wt_ops, cls, helper};
    wt->salt = tc_rng_u64(tc_loop_rng(helper->env->loop));
    wt->state = TORC_SHUTDOWN;
    tc_task_init(&wt->publish_task, on_publish_task);
    tc_task_init(&wt->free_task, on_free);
    return &wt->base;
}

/* Config. */

struct tc_lb_config *tc_weighted_target_config_new(const struct tc_weighted_target *targets, size_t n)
{
    struct config *c = tc_calloc(1, sizeof(*c) + n * sizeof(struct tc_weighted_target));
    c->base.cls = &tc_weighted_target_class;
    tc_ref_init(&c->base.ref);
    c->n = n;
    for (size_t i = 0; i < n; i++) {
        c->targets[i].name = tc_rstr_ref(targets[i].name);
        c->targets[i].weight = TC_MAX(targets[i].weight, 1);
        c->targets[i].config = tc_lb_config_ref(targets[i].config);
    }
    return &c->base;
}

static void wt_free_config(struct tc_lb_config *config)
{
    struct config *c = (struct config *)config;
    for (size_t i = 0; i < c->n; i++) {
        tc_rstr_unref(c->targets[i].name);
        tc_lb_config_unref(c->targets[i].config);
    }
    tc_free(c);
}

static bool wt_equal_config(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct config *a = (const struct config *)pa, *b = (const struct config *)pb;
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->targets[i].weight != b->targets[i].weight || !tc_rstr_eq(a->targets[i].name, b->targets[i].name) ||
            !tc_lb_config_eq(a->targets[i].config, b->targets[i].config))
            return false;
    return true;
}

/* {"targets": {NAME: {"weight": N, "childPolicy": [...]}}} */
static struct tc_lb_config *wt_parse(const struct tc_lb_class *cls, const json_t *json,
                                     const struct tc_lb_registry *registry, unsigned depth, struct tc_faults *faults)
{
    (void)cls;
    size_t before = faults->count, n = 0;
    const json_t *targets = NULL;
    if (!tc_json_get_obj(json, "targets", &targets, faults)) {
        if (faults->count == before)
            tc_faults_add_at(faults, ".targets", "must be given");
        return NULL;
    }
    struct tc_weighted_target *list = tc_calloc(json_object_size(targets) + 1, sizeof(*list));
    for (void *it = json_object_iter((json_t *)targets); it; it = json_object_iter_next((json_t *)targets, it)) {
        const json_t *target = json_object_iter_value(it);
        uint64_t weight = 0;
        tc_faults_push(faults, ".targets[\"%s\"]", json_object_iter_key(it));
        if (json_is_object(target)) {
            if (tc_json_get_u64(target, "weight", UINT32_MAX, &weight, faults) && weight == 0)
                tc_faults_add_at(faults, ".weight", "must be greater than 0");
            else if (weight == 0)
                tc_faults_add_at(faults, ".weight", "must be given");
            tc_faults_push(faults, ".childPolicy");
            list[n].config = tc_lb_parse_list(registry, json_object_get(target, "childPolicy"), depth + 1, faults);
            tc_faults_pop(faults);
        } else {
            tc_faults_add(faults, "must be an object");
        }
        tc_faults_pop(faults);
        list[n].weight = (uint32_t)weight;
        list[n++].name = tc_rstr_str(json_object_iter_key(it));
    }
    struct tc_lb_config *config = faults->count == before ? tc_weighted_target_config_new(list, n) : NULL;
    for (size_t i = 0; i < n; i++) {
        tc_rstr_unref(list[i].name);
        tc_lb_config_unref(list[i].config);
    }
    tc_free(list);
    return config;
}

const struct tc_lb_class tc_weighted_target_class = {
    .name = "weighted_target",
    .alias = "weighted_target_experimental",
    .create = wt_create,
    .parse_config = wt_parse,
    .free_config = wt_free_config,
    .equal_config = wt_equal_config,
};
