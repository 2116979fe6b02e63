/* priority (A56, A115): an ordered list of children. Serves from the first child that works, or that may soon work.
 *
 * The facts are the config, the last update, and for each child its last report, its failover timer and its retention.
 * priority_reconcile() makes the choice from these facts. It is idempotent, and is the last step of an update, of
 * exit_idle, of a child's report, and of the end of a failover time:
 *
 *   candidates   The priorities that may serve: not made yet, READY, IDLE, or CONNECTING within the failover time. The
 *                policy serves from the first candidate, which it makes if need be. Without a candidate it serves from
 *                the first priority that is CONNECTING, or else from the last.
 *   used         The priorities from this index on are deactivated: each ends when its retention is over, unless the
 *                policy needs it before. A whole range is deactivated at a time, and reactivated from its highest
 *                priority on.
 *
 * A report that makes no child costs O(log n) on average for n priorities: it does not look at the hundreds of
 * priorities above that failed before. Updates walk all priorities.
 *
 * A child that leaves the config ends at once (A115), or with its own retention timer if the environment asks for the
 * older behaviour. An update may give children other priorities, so each deactivated child first gets a retention timer
 * of its own instead of its range.
 *
 * `children` owns the children. The picker that the policy publishes is the chosen child's own, except for a config
 * without priorities. */
#include "lb/policies/priority.h"

#include <stdlib.h>
#include <strings.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "lb/children.h"
#include "lb/connectivity.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/graceful_switch.h"
#include "lb/index_set.h"
#include "lb/registry.h"

enum { NOT_LISTED = UINT32_MAX };

struct priority_child {
    struct tc_named_child base;
    uint32_t at; /* its priority, or NOT_LISTED */
    bool ignore_reresolution;
    bool failed_last;         /* TRANSIENT_FAILURE was seen more recently than READY or IDLE */
    struct tc_timer failover; /* A56: runs while the child is CONNECTING, did not fail last and has time left */
};

/* The priorities [from, to) were deactivated together. */
struct inactive_range {
    uint32_t from, to;
    uint64_t due_ms; /* when the children end, in the loop's time */
};

struct priority {
    struct tc_lb_policy base;
    struct tc_children children;
    /* The last update. */
    struct tc_child_configs *config;  /* a reference; NULL before the first one */
    struct tc_endpoints *endpoints;   /* a reference; NULL: the resolution failed */
    struct tc_status endpoints_error; /* why `endpoints` is NULL; otherwise OK */
    struct tc_rstr *resolution_note;  /* a reference; NULL: none */
    void *attributes;                 /* a reference; NULL: there are none, or they cannot be kept */
    void *(*attributes_ref)(void *attributes);
    void (*attributes_unref)(void *attributes);
    /* By priority. */
    struct priority_child **at; /* NULL: not made */
    struct tc_index_set candidates, connecting;
    struct tc_index_set retained;           /* priorities whose child has a retention timer of its own that runs */
    uint32_t used;                          /* the priorities from this index on are deactivated */
    TC_VEC(struct inactive_range) inactive; /* the highest priorities, which were deactivated last, at the end */
    struct tc_timer inactive_timer;         /* of the first range */
    /* The last published state. */
    enum torc_connectivity published_state;
    struct tc_picker *published;         /* a reference; NULL: nothing published yet, or a picker of the policy's own */
    const struct priority_child *chosen; /* the child that was published last; NULL: none was, or it ended */
    bool busy;                           /* children are being updated or woken: no choice until that is done (A56) */
};

static void priority_reconcile(struct priority *p);

static struct priority *priority_of(const struct tc_children *set)
{
    return TC_CONTAINER_OF(set, struct priority, children);
}

static struct priority_child *priority_child_of(struct tc_named_child *c)
{
    return TC_CONTAINER_OF(c, struct priority_child, base);
}

/* --- children --- */

/* A56: returns true if the child is READY or IDLE, or tries to connect and its time is not over. */
static bool priority_child_works_or_may(const struct priority_child *c)
{
    return c->base.state == TORC_CONNECTIVITY_READY || c->base.state == TORC_CONNECTIVITY_IDLE ||
           tc_timer_active(&c->failover);
}

static void index_set_put(struct tc_index_set *set, uint32_t i, bool member)
{
    if (member)
        tc_index_set_add(set, i);
    else
        tc_index_set_remove(set, i);
}

/* Files the child in the sets, after its place, its state or one of its timers changed. Does nothing for a child that
 * is not listed. */
static void priority_child_file(struct priority_child *c)
{
    struct priority *p = priority_of(c->base.set);
    if (c->at == NOT_LISTED)
        return;
    index_set_put(&p->candidates, c->at, priority_child_works_or_may(c));
    index_set_put(&p->connecting, c->at, c->base.state == TORC_CONNECTIVITY_CONNECTING);
    index_set_put(&p->retained, c->at, tc_timer_active(&c->base.retention));
}

static void on_priority_state(struct tc_named_child *base, enum torc_connectivity before)
{
    struct priority_child *c = priority_child_of(base);
    if (base->state == TORC_CONNECTIVITY_CONNECTING) {
        if (before != TORC_CONNECTIVITY_CONNECTING && !c->failed_last && !tc_timer_active(&c->failover))
            tc_timer_start(&c->failover, base->helper.env->priority_failover_ms);
    } else {
        c->failed_last = base->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE;
        tc_timer_stop(&c->failover);
    }
    priority_child_file(c);
    priority_reconcile(priority_of(base->set));
}

static void on_failover(struct tc_timer *timer)
{
    struct priority_child *c = TC_CONTAINER_OF(timer, struct priority_child, failover);
    priority_child_file(c);
    priority_reconcile(priority_of(c->base.set));
}

static void on_priority_new(struct tc_named_child *base)
{
    struct priority_child *c = priority_child_of(base);
    const struct tc_lb_env *env = base->helper.env;
    c->at = NOT_LISTED;
    tc_timer_init(&c->failover, env->loop, on_failover);
    tc_timer_start(&c->failover, env->priority_failover_ms);
}

static void on_priority_end(struct tc_named_child *base)
{
    struct priority_child *c = priority_child_of(base);
    struct priority *p = priority_of(base->set);
    tc_timer_stop(&c->failover);
    if (p->chosen == c)
        p->chosen = NULL;
    if (c->at == NOT_LISTED)
        return;
    p->at[c->at] = NULL;
    tc_index_set_add(&p->candidates, c->at);
    tc_index_set_remove(&p->connecting, c->at);
    tc_index_set_remove(&p->retained, c->at);
}

static void on_request_reresolution(struct tc_lb_helper *h)
{
    if (!TC_CONTAINER_OF(h, struct priority_child, base.helper)->ignore_reresolution)
        tc_lb_request_reresolution(h->parent);
}

static const struct tc_children_ops child_ops = {
    .child_size = sizeof(struct priority_child),
    .helper = {.update_state = tc_children_update_state, .request_reresolution = on_request_reresolution},
    .on_new = on_priority_new,
    .on_state = on_priority_state,
    .on_end = on_priority_end,
};

static struct tc_status priority_child_update(struct priority *p, struct priority_child *c,
                                              const struct tc_child_config *config, void *attributes)
{
    struct tc_lb_update update = {
        .endpoints = p->endpoints,
        .endpoints_error = p->endpoints ? NULL : &p->endpoints_error,
        .resolution_note = p->resolution_note,
        .attributes = attributes,
        .attributes_ref = p->attributes_ref,
        .attributes_unref = p->attributes_unref,
    };
    c->ignore_reresolution = config->ignore_reresolution_requests;
    return tc_named_child_update(&c->base, &update, config->config);
}

/* --- retention of children that are not in use --- */

static void inactive_timer_set(struct priority *p)
{
    uint64_t now_ms = tc_loop_now_ms(p->inactive_timer.loop);
    if (!p->inactive.len)
        tc_timer_stop(&p->inactive_timer);
    else if (!tc_timer_active(&p->inactive_timer) || p->inactive_timer.due_ms != p->inactive.data[0].due_ms)
        tc_timer_start(&p->inactive_timer, p->inactive.data[0].due_ms - TC_MIN(now_ms, p->inactive.data[0].due_ms));
}

/* Ends the children of the first range. The priorities of the range are candidates again: their children are made again
 * if all above fail. */
static void on_inactive_timer(struct tc_timer *timer)
{
    struct priority *p = TC_CONTAINER_OF(timer, struct priority, inactive_timer);
    struct inactive_range over = p->inactive.data[0];
    tc_vec_remove(&p->inactive, 0);
    inactive_timer_set(p);
    for (uint32_t i = over.from; i < over.to; i++)
        if (p->at[i])
            tc_named_child_end(&p->at[i]->base);
}

/* Deactivates the priorities below i, which are not needed while i works. A child with a timer of its own keeps that
 * timer: it is due when the range is, or sooner. */
static void priority_deactivate_below(struct priority *p, uint32_t i)
{
    if (i + 1 >= p->used)
        return;
    uint64_t due_ms = tc_loop_now_ms(p->inactive_timer.loop) + p->base.helper->env->priority_retention_ms;
    *tc_vec_push(&p->inactive) = (struct inactive_range){i + 1, p->used, due_ms};
    p->used = i + 1;
    inactive_timer_set(p);
}

/* Makes the priorities down to i active again. */
static void priority_activate_down_to(struct priority *p, uint32_t i)
{
    for (uint32_t k = 0; (k = tc_index_set_next(&p->retained, k)) <= i; k++) {
        tc_timer_stop(&p->at[k]->base.retention);
        tc_index_set_remove(&p->retained, k);
    }
    p->used = TC_MAX(p->used, i + 1);
    while (p->inactive.len) {
        struct inactive_range *top = &p->inactive.data[p->inactive.len - 1];
        if (top->from > i)
            break;
        top->from = i + 1;
        if (top->from < top->to)
            break;
        p->inactive.len--;
    }
    inactive_timer_set(p);
}

/* Returns when the child ends, in the loop's time; 0: it is active. */
static uint64_t inactive_due_ms(const struct priority *p, const struct priority_child *c)
{
    if (tc_timer_active(&c->base.retention))
        return c->base.retention.due_ms;
    for (size_t r = 0; c->at != NOT_LISTED && r < p->inactive.len; r++)
        if (c->at >= p->inactive.data[r].from && c->at < p->inactive.data[r].to)
            return p->inactive.data[r].due_ms;
    return 0;
}

/* Gives each deactivated child a timer of its own, before an update, which may move children. */
static void inactive_ranges_dissolve(struct priority *p)
{
    uint64_t now_ms = tc_loop_now_ms(p->inactive_timer.loop);
    for (size_t r = 0; r < p->inactive.len; r++)
        for (uint32_t i = p->inactive.data[r].from; i < p->inactive.data[r].to; i++)
            if (p->at[i])
                tc_named_child_retain(&p->at[i]->base,
                                      p->inactive.data[r].due_ms - TC_MIN(now_ms, p->inactive.data[r].due_ms));
    p->inactive.len = 0;
    tc_timer_stop(&p->inactive_timer);
}

/* --- the choice (A56) --- */

static void priority_set_published(struct priority *p, enum torc_connectivity state, struct tc_picker *picker)
{
    struct tc_picker *old = p->published;
    p->published = picker ? tc_picker_ref(picker) : NULL;
    p->published_state = state;
    tc_picker_unref(old);
}

/* Logs which priority serves from now on. Says why, if the child that served before is still listed. */
static void priority_log_choice(const struct priority *p, const struct priority_child *c)
{
    const struct tc_lb_helper *h = p->base.helper;
    const struct priority_child *old = p->chosen && p->chosen->at != NOT_LISTED ? p->chosen : NULL;
    const char *name = c->base.name->data;
    unsigned i = c->at + 1, n = (unsigned)p->config->n;
    if (!old)
        TC_LOG(TC_LOG_LB, TORC_LOG_INFO, "%.*s: priority %u of %u chosen, %s", TC_LB_LOG_NAME(h), i, n, name);
    else if (c->at < old->at)
        TC_LOG(TC_LOG_LB, TORC_LOG_INFO, "%.*s: priority %u of %u chosen, %s: it is %s", TC_LB_LOG_NAME(h), i, n, name,
               tc_connectivity_name(c->base.state));
    else if (old->base.state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        TC_LOG(TC_LOG_LB, TORC_LOG_INFO, "%.*s: priority %u of %u chosen, %s: %s failed: %s", TC_LB_LOG_NAME(h), i, n,
               name, old->base.name->data, tc_status_text(&old->base.status));
    else
        TC_LOG(TC_LOG_LB, TORC_LOG_INFO, "%.*s: priority %u of %u chosen, %s: %s takes too long to connect",
               TC_LB_LOG_NAME(h), i, n, name, old->base.name->data);
}

static void priority_publish_child(struct priority *p, struct priority_child *c)
{
    if (p->published == c->base.picker && p->published_state == c->base.state)
        return;
    if (p->chosen != c)
        priority_log_choice(p, c);
    p->chosen = c;
    priority_set_published(p, c->base.state, c->base.picker);
    struct tc_status status = {0};
    if (c->base.state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        status = tc_status_ref(&c->base.status);
    tc_lb_update_state(p->base.helper, c->base.state, &status, tc_picker_ref(c->base.picker));
    tc_status_fini(&status);
}

/* A config without priorities fails RPCs (A56). */
static void priority_publish_empty(struct priority *p)
{
    priority_set_published(p, TORC_CONNECTIVITY_TRANSIENT_FAILURE, NULL);
    struct tc_status status =
        tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "priority policy has empty priority list");
    tc_lb_update_state(p->base.helper, TORC_CONNECTIVITY_TRANSIENT_FAILURE, &status, tc_picker_fail(&status));
    tc_status_fini(&status);
}

/* Gives the child the priority i, and files it there. */
static void priority_child_place(struct priority *p, struct priority_child *c, uint32_t i)
{
    p->at[i] = c;
    c->at = i;
    priority_child_file(c);
}

/* Makes the priorities down to i active. Returns the child at priority i, after making it if need be: a new child may
 * have failed already. */
static struct priority_child *priority_activate(struct priority *p, uint32_t i)
{
    const struct tc_child_config *config = &p->config->at[i];
    priority_activate_down_to(p, i);
    if (p->at[i])
        return p->at[i];
    priority_child_place(p, priority_child_of(tc_children_list(&p->children, config->name)), i);
    p->busy = true; /* its first report may come from inside the update: it is read right after */
    struct tc_status status = priority_child_update(p, p->at[i], config, p->attributes);
    tc_status_fini(&status);
    p->busy = false;
    return p->at[i];
}

/* A56's algorithm: returns the child to serve from. The config must have priorities. Each round either returns, or
 * makes a child that fails at once and so is no longer a candidate. */
static struct priority_child *priority_choose(struct priority *p)
{
    uint32_t i, last = (uint32_t)p->config->n - 1;
    while ((i = tc_index_set_next(&p->candidates, 0)) != TC_INDEX_NONE) {
        struct priority_child *c = priority_activate(p, i);
        if (c->base.state == TORC_CONNECTIVITY_READY || c->base.state == TORC_CONNECTIVITY_IDLE)
            priority_deactivate_below(p, i);
        if (priority_child_works_or_may(c))
            return c;
    }
    priority_activate_down_to(p, last);
    i = tc_index_set_next(&p->connecting, 0);
    return p->at[i == TC_INDEX_NONE ? last : i];
}

static void priority_reconcile(struct priority *p)
{
    if (p->busy || !p->base.helper || !p->config)
        return;
    if (p->config->n == 0)
        priority_publish_empty(p);
    else
        priority_publish_child(p, priority_choose(p));
}

/* --- updates --- */

/* gRPC's switch back to the behaviour before A115. */
static bool cache_removed_children(void)
{
    const char *v = getenv("GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE");
    return v && strcasecmp(v, "true") == 0;
}

static void priority_drop_attributes(struct priority *p)
{
    if (p->attributes && p->attributes_unref)
        p->attributes_unref(p->attributes);
    p->attributes = NULL;
}

static void priority_keep_attributes(struct priority *p, const struct tc_lb_update *update)
{
    bool keep = update->attributes && update->attributes_ref && update->attributes_unref;
    void *attributes = keep ? update->attributes_ref(update->attributes) : NULL;
    priority_drop_attributes(p);
    p->attributes = attributes;
    p->attributes_ref = update->attributes_ref;
    p->attributes_unref = update->attributes_unref;
}

static void priority_keep_update(struct priority *p, const struct tc_lb_update *update)
{
    struct tc_lb_config *config = tc_lb_config_ref(update->config);
    struct tc_endpoints *endpoints = tc_endpoints_ref(update->endpoints);
    struct tc_rstr *resolution_note = tc_rstr_ref(update->resolution_note);
    if (p->config)
        tc_lb_config_unref(&p->config->base);
    tc_endpoints_unref(p->endpoints);
    tc_rstr_unref(p->resolution_note);
    tc_status_fini(&p->endpoints_error);
    p->config = TC_CONTAINER_OF(config, struct tc_child_configs, base);
    p->endpoints = endpoints;
    p->resolution_note = resolution_note;
    priority_keep_attributes(p, update);
    if (update->endpoints_error)
        p->endpoints_error = tc_status_ref(update->endpoints_error);
}

static void priority_index_free(struct priority *p)
{
    tc_free(p->at);
    tc_index_set_fini(&p->candidates);
    tc_index_set_fini(&p->connecting);
    tc_index_set_fini(&p->retained);
}

/* Gives the children that are there already the places that the new config has for them. */
static void priority_place_children(struct priority *p)
{
    uint32_t n = (uint32_t)p->config->n;
    for (struct tc_named_child *c = p->children.first; c; c = c->hh.next)
        priority_child_of(c)->at = NOT_LISTED;
    priority_index_free(p);
    p->at = tc_calloc(n, sizeof(struct priority_child *));
    tc_index_set_init(&p->candidates, n);
    tc_index_set_init(&p->connecting, n);
    tc_index_set_init(&p->retained, n);
    p->used = n;
    tc_children_begin_update(&p->children);
    for (uint32_t i = 0; i < n; i++) {
        struct tc_rstr *name = p->config->at[i].name;
        tc_index_set_add(&p->candidates, i);
        if (tc_children_find(&p->children, tc_rstr_slice(name)))
            priority_child_place(p, priority_child_of(tc_children_list(&p->children, name)), i);
    }
}

/* The children that exist and are in the config get the update at once, in use or not, so that no child has outdated
 * endpoints when it is needed. Then children that left the config end or begin their retention, and a priority is
 * chosen again. Returns the first refusal of those children; that of a child which the choice makes is dropped. */
static struct tc_status pr_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    struct priority *p = TC_CONTAINER_OF(policy, struct priority, base);
    struct tc_status result = {0};
    if (!p->base.helper)
        return result;
    p->busy = true;
    inactive_ranges_dissolve(p);
    priority_keep_update(p, update);
    priority_place_children(p);
    for (size_t i = 0; i < p->config->n; i++) {
        if (!p->at[i])
            continue;
        struct tc_status status = priority_child_update(p, p->at[i], &p->config->at[i], update->attributes);
        if (!tc_status_ok(&status) && tc_status_ok(&result))
            result = tc_status_ref(&status);
        tc_status_fini(&status);
    }
    tc_children_sweep(&p->children, cache_removed_children() ? p->base.helper->env->priority_retention_ms : 0);
    p->busy = false;
    priority_reconcile(p);
    return result;
}

static void pr_exit_idle(struct tc_lb_policy *policy)
{
    struct priority *p = TC_CONTAINER_OF(policy, struct priority, base);
    p->busy = true;
    for (struct tc_named_child *c = p->children.first; c; c = c->hh.next)
        if (c->state == TORC_CONNECTIVITY_IDLE && !tc_timer_active(&c->retention) && priority_child_of(c)->at < p->used)
            tc_graceful_switch_exit_idle(c->policy);
    p->busy = false;
    priority_reconcile(p);
}

static void pr_reset_backoff(struct tc_lb_policy *policy)
{
    tc_children_reset_backoff(&TC_CONTAINER_OF(policy, struct priority, base)->children);
}

static void describe_priority_child(const struct priority *p, const struct priority_child *c, struct tc_describe *d)
{
    uint64_t due_ms = inactive_due_ms(p, c), now_ms = tc_loop_now_ms(p->inactive_timer.loop);
    tc_describe_open(d, NULL, '{');
    tc_describe_text(d, "name", tc_rstr_slice(c->base.name));
    tc_describe_state(d, "state", c->base.state);
    tc_describe_flag(d, "serves", c->base.picker == p->published);
    if (c->base.state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        tc_describe_text(d, "error", tc_slice_str(tc_status_text(&c->base.status)));
    tc_describe_flag(d, "failed_last", c->failed_last);
    tc_describe_timer(d, "failover_ms", &c->failover);
    if (due_ms)
        tc_describe_number(d, "ends_in_ms", due_ms - TC_MIN(now_ms, due_ms));
    tc_graceful_switch_describe(c->base.policy, d, "child");
    tc_describe_close(d, '}');
}

static void pr_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const struct priority *p = TC_CONTAINER_OF(policy, const struct priority, base);
    tc_describe_open(d, "priorities", '[');
    for (size_t i = 0; p->config && i < p->config->n; i++) {
        if (p->at[i]) {
            describe_priority_child(p, p->at[i], d);
            continue;
        }
        tc_describe_open(d, NULL, '{'); /* not made, or ended with its retention */
        tc_describe_text(d, "name", tc_rstr_slice(p->config->at[i].name));
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
    tc_describe_open(d, "removed", '[');
    for (struct tc_named_child *c = p->children.first; c; c = c->hh.next)
        if (priority_child_of(c)->at == NOT_LISTED)
            describe_priority_child(p, priority_child_of(c), d);
    tc_describe_close(d, ']');
}

static void pr_shutdown(struct tc_lb_policy *policy)
{
    struct priority *p = TC_CONTAINER_OF(policy, struct priority, base);
    if (!p->base.helper)
        return;
    tc_children_end(&p->children);
    tc_timer_stop(&p->inactive_timer);
    tc_vec_fini(&p->inactive);
    priority_index_free(p);
    if (p->config)
        tc_lb_config_unref(&p->config->base);
    tc_endpoints_unref(p->endpoints);
    tc_rstr_unref(p->resolution_note);
    tc_status_fini(&p->endpoints_error);
    priority_drop_attributes(p);
    tc_picker_unref(p->published);
    p->published = NULL;
    p->config = NULL;
    p->endpoints = NULL;
    p->resolution_note = NULL;
    tc_lb_policy_end(&p->base);
}

static const struct tc_lb_policy_ops pr_ops = {pr_update, pr_exit_idle, pr_reset_backoff, pr_shutdown, pr_describe};

static struct tc_lb_policy *pr_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct priority *p = TC_NEW(struct priority);
    p->base = (struct tc_lb_policy){.ops = &pr_ops, .factory = factory, .helper = helper};
    tc_children_init(&p->children, &child_ops, &p->base);
    tc_timer_init(&p->inactive_timer, helper->env->loop, on_inactive_timer);
    return &p->base;
}

/* --- config --- */

/* Parses one entry of "priorities" and its child into `out`, which was zero and which the caller frees in any case.
 * Adds errors if something is wrong. `seen`, the set of the names before this one, finds duplicates among ten thousand
 * names without comparing each with each. */
static void parse_priority_child(const json_t *children, const json_t *name, json_t *seen, size_t i,
                                 const struct tc_lb_registry *registry, unsigned depth, struct tc_child_config *out,
                                 struct tc_validation_errors *errors)
{
    size_t before = errors->count;
    tc_validation_push(errors, ".priorities[%zu]", i);
    if (!json_is_string(name))
        tc_validation_add(errors, "must be a string");
    else if (json_object_get(seen, json_string_value(name)))
        tc_validation_add(errors, "names a child twice");
    else
        json_object_set_new(seen, json_string_value(name), json_true());
    const json_t *child = json_is_string(name) ? json_object_get(children, json_string_value(name)) : NULL;
    if (errors->count == before && !json_is_object(child))
        tc_validation_add(errors, "no child of that name");
    tc_validation_pop(errors);
    if (errors->count != before)
        return;
    tc_validation_push_key(errors, ".children", json_string_value(name));
    tc_json_get_bool(child, "ignoreReresolutionRequests", &out->ignore_reresolution_requests, errors);
    tc_json_get_bool(child, "ignore_reresolution_requests", &out->ignore_reresolution_requests, errors);
    tc_validation_push(errors, ".config");
    out->config = tc_lb_parse_list(registry, json_object_get(child, "config"), depth + 1, errors);
    tc_validation_pop(errors);
    tc_validation_pop(errors);
    out->name = tc_rstr_str(json_string_value(name));
}

/* {"children": {NAME: {"config": [...], "ignoreReresolutionRequests": B}}, "priorities": [NAME]} */
static struct tc_lb_config *pr_parse(const struct tc_lb_factory *factory, const json_t *json,
                                     const struct tc_lb_registry *registry, unsigned depth,
                                     struct tc_validation_errors *errors)
{
    (void)factory;
    size_t before = errors->count;
    const json_t *children = NULL, *names = NULL;
    if (!tc_json_get_obj(json, "children", &children, errors) && errors->count == before)
        tc_validation_add_at(errors, ".children", "must be given");
    if (!tc_json_get_arr(json, "priorities", &names, errors) && errors->count == before)
        tc_validation_add_at(errors, ".priorities", "must be given");
    if (errors->count != before)
        return NULL;
    size_t n = json_array_size(names);
    if (n > json_object_size(children)) {
        tc_validation_add_at(errors, ".priorities", "more names than children");
        return NULL;
    }
    struct tc_child_config *list = tc_calloc(n + 1, sizeof(*list));
    json_t *seen = json_object();
    for (size_t i = 0; i < n; i++)
        parse_priority_child(children, json_array_get(names, i), seen, i, registry, depth, &list[i], errors);
    json_decref(seen);
    struct tc_lb_config *config = errors->count == before ? tc_child_configs_new(&tc_priority_factory, list, n) : NULL;
    tc_child_config_list_free(list, n);
    return config;
}

const struct tc_lb_factory tc_priority_factory = {
    .name = "priority",
    .alias = "priority_experimental",
    .create = pr_create,
    .parse_config = pr_parse,
    .free_config = tc_child_configs_free,
    .equal_config = tc_child_configs_equal,
};
