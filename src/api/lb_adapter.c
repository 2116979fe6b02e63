/* An LB policy of the application's own (torc/lb.h) as a policy of src/lb.
 *
 * The application's policy (struct torc_lb_helper) chooses among children: its pick returns a child, whose picker then
 * picks. A child is a built-in policy, or, by a config that names it (torc_lb_child_set_config), another policy of the
 * application's. Everything runs on the loop, except factories and configs (app_parse with torc_lb_check_*,
 * app_free_config, app_equal_config), which are for any thread. The serial queue calls on_child_state (on_tell): no
 * function of a child is up the stack then, and the application may create and destroy children.
 *
 * A picker refers to the policy and may outlive its shutdown: base.helper is NULL then, and picks are queued. The
 * policy owns its children until on_bye, or until the application destroys them. The application's factory is borrowed
 * from the channel's registry (lb_adapter_registry.c), which outlives the policy's on_bye.
 *
 * The application's `create` is called with the first update, not in app_create: the children that it makes need the
 * depth of the policy's config, which comes with the update. */
#include "api/lb_adapter.h"

#include "base/json.h"
#include "base/mem.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/graceful_switch.h"
#include "lb/orca.h"
#include "lb/registry.h"

/* The policy as src/lb sees it, and the application's helper. Its memory stays while pickers and trackers refer to it.
 */
struct torc_lb_helper {
    struct tc_lb_policy base;
    struct tc_lref ref; /* the policy's own (until on_bye), each picker's, each app_tracker's, and on_tell's */
    const struct torc_lb_factory *app;
    void *state;                  /* what `create` returned; the application's */
    struct tc_link children;      /* struct torc_lb_child */
    unsigned depth;               /* of the policy's config; its children's are one deeper */
    bool created;                 /* `create` was called */
    bool published;               /* the application has published a state */
    bool publishing;              /* the application has published since on_child_state was called */
    bool ending;                  /* the application is in on_call_end: what it publishes waits for `later` */
    enum torc_connectivity shown; /* the policy's present state */
    struct tc_status status;      /* of TRANSIENT_FAILURE */
    struct tc_task exit_idle;     /* calls the application's exit_idle */
    struct tc_task later;         /* publishes */
    struct tc_task bye;           /* calls `destroy` */
    struct tc_timer timer;        /* of torc_lb_set_timer */
    struct tc_arena texts;        /* that the accessors of the present pick, or of the present end of an RPC, return */
};

struct child_state {
    enum torc_connectivity state;
    struct tc_status why; /* of TRANSIENT_FAILURE */
};

struct torc_lb_child {
    struct tc_link link;
    struct tc_lb_helper helper; /* of the child policy */
    torc_lb_helper *owner;
    struct tc_graceful_switch *slot; /* NULL after the policy's shutdown */
    struct tc_lb_config *config;     /* NULL: torc_lb_child_set_config is still to come */
    struct tc_picker *picker;        /* of the newest state, told or not */
    enum torc_connectivity state;    /* the last that the application was told; CONNECTING before */
    struct tc_status status;         /* of that state */
    void *arg;
    TC_VEC(struct child_state) untold; /* oldest first */
    struct tc_task tell;
};

/* Lives while the application's `update` runs. */
struct torc_lb_endpoint {
    struct tc_endpoint *endpoint; /* borrowed from the update */
    char **texts;                 /* of its addresses */
};

/* On the stack of app_pick. */
struct torc_lb_pick {
    torc_lb_helper *policy;
    const struct tc_pick_args *args;
    bool watched; /* torc_lb_pick_watch was called, and on_call_end follows */
    void *call_arg;
};

/* On the stack of call_ended. */
struct torc_lb_call_end {
    const struct tc_status *status;    /* NULL: there was no RPC */
    const struct tc_headers *trailers; /* NULL: none */
    struct tc_arena *texts;
};

/* A config that is being checked; on the stack, and all borrowed. */
struct torc_lb_check {
    const struct tc_lb_registry *registry;
    const json_t *json;
    unsigned depth; /* of the config; its children's are one deeper */
    struct tc_validation_errors *errors;
};

struct app_config {
    struct tc_lb_config base;
    unsigned depth;
    char *json; /* the config's text, owned */
};

/* In the call's arena. */
struct app_tracker {
    struct tc_call_tracker base;
    torc_lb_helper *policy; /* a reference */
    void *call_arg;
};

struct app_picker {
    struct tc_picker base;
    torc_lb_helper *policy; /* a reference */
};

static void policy_unref(torc_lb_helper *p)
{
    if (!tc_lref_dec(&p->ref))
        return;
    tc_status_fini(&p->status);
    tc_arena_fini(&p->texts);
    tc_free(p);
}

/* Returns true in the child of a callback that forked, and while the process exits: the application is not called. */
static bool policy_is_forked(const torc_lb_helper *p)
{
    return TC_UNLIKELY(tc_loop_forked(p->timer.loop));
}

/* --- picks --- */

/* Calls on_call_end, unless the policy was shut down. NULL status: the pick led to no attempt. */
static void call_ended(torc_lb_helper *p, void *call_arg, const struct tc_status *status,
                       const struct tc_headers *trailers)
{
    if (!p->base.helper || policy_is_forked(p))
        return;
    tc_arena_reset(&p->texts);
    p->ending = true;
    p->app->on_call_end(p->state, call_arg, &(torc_lb_call_end){status, trailers, &p->texts});
    p->ending = false;
}

static void on_tracked_call_done(struct tc_call_tracker *base, const struct tc_status *status,
                                 const struct tc_headers *trailers)
{
    struct app_tracker *t = TC_CONTAINER_OF(base, struct app_tracker, base);
    call_ended(t->policy, t->call_arg, status, trailers);
    policy_unref(t->policy);
}

/* Has on_call_end called at the end of the attempt; now if the pick led to none. */
static void call_watch(torc_lb_helper *p, const torc_lb_pick *pick, enum tc_pick_kind kind, struct tc_pick *out)
{
    struct app_tracker *t = kind == TC_PICK_COMPLETE ? tc_arena_calloc(pick->args->arena, 1, sizeof(*t)) : NULL;
    if (!t) {
        call_ended(p, pick->call_arg, NULL, NULL);
        return;
    }
    *t = (struct app_tracker){.base.on_done = on_tracked_call_done, .policy = p, .call_arg = pick->call_arg};
    tc_lref_inc(&p->ref);
    tc_pick_track(out, &t->base);
}

static enum tc_pick_kind app_pick(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out)
{
    torc_lb_helper *p = TC_CONTAINER_OF(picker, struct app_picker, base)->policy;
    /* Does not ask the application after the shutdown, nor for a text about what a call waits for. */
    if (!p->base.helper || args->waiting || policy_is_forked(p))
        return TC_PICK_QUEUE;
    struct torc_lb_pick pick = {.policy = p, .args = args};
    tc_arena_reset(&p->texts);
    torc_lb_child *child = p->app->pick(p->state, &pick);
    enum tc_pick_kind kind = child ? tc_picker_pick(child->picker, args, out) : TC_PICK_QUEUE;
    if (pick.watched)
        call_watch(p, &pick, kind, out);
    if (child)
        return kind;
    if (p->shown == TORC_CONNECTIVITY_TRANSIENT_FAILURE) {
        out->status = tc_status_ref(&p->status);
        return TC_PICK_FAIL;
    }
    if (p->shown == TORC_CONNECTIVITY_IDLE && !args->dry)
        tc_loop_defer(p->base.helper->env->loop, &p->exit_idle);
    return TC_PICK_QUEUE;
}

static void app_picker_free(struct tc_picker *picker)
{
    struct app_picker *a = TC_CONTAINER_OF(picker, struct app_picker, base);
    policy_unref(a->policy);
    tc_free(a);
}

static const struct tc_picker_ops app_picker_ops = {.pick = app_pick, .free = app_picker_free};

/* Publishes a new picker with the present state: calls that wait are picked for again. Not after the shutdown. */
static void policy_publish(torc_lb_helper *p)
{
    struct app_picker *a = TC_NEW(struct app_picker);
    tc_picker_init(&a->base, &app_picker_ops);
    tc_lref_inc(&p->ref);
    a->policy = p;
    p->published = true;
    tc_lb_update_state(p->base.helper, p->shown, &p->status, &a->base);
}

void torc_lb_update_state(torc_lb_helper *p, enum torc_connectivity state, const char *message)
{
    if (!p->base.helper)
        return;
    if ((unsigned)state >= TORC_CONNECTIVITY_SHUTDOWN) /* or an unknown number: a policy must publish neither */
        state = TORC_CONNECTIVITY_TRANSIENT_FAILURE;
    p->shown = state;
    if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        tc_status_set(&p->status, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "LB policy %s: %s",
                                                 p->app->name, message ? message : "no connected endpoint"));
    else
        tc_status_set(&p->status, (struct tc_status){0});
    p->publishing = true;
    if (p->ending)
        tc_loop_defer(p->base.helper->env->loop, &p->later);
    else
        policy_publish(p);
}

void torc_lb_update_state_of_children(torc_lb_helper *p, const char *message)
{
    size_t n[TORC_CONNECTIVITY_SHUTDOWN] = {0};
    TC_LIST_FOREACH(it, &p->children)
    n[TC_CONTAINER_OF(it, struct torc_lb_child, link)->state]++;
    torc_lb_update_state(p,
                         n[TORC_CONNECTIVITY_READY]        ? TORC_CONNECTIVITY_READY
                         : n[TORC_CONNECTIVITY_CONNECTING] ? TORC_CONNECTIVITY_CONNECTING
                         : n[TORC_CONNECTIVITY_IDLE]       ? TORC_CONNECTIVITY_IDLE
                                                           : TORC_CONNECTIVITY_TRANSIENT_FAILURE,
                         message);
}

static void on_later(struct tc_task *task)
{
    policy_publish(TC_CONTAINER_OF(task, torc_lb_helper, later));
}

int64_t torc_lb_now_ms(const torc_lb_helper *p)
{
    return (int64_t)tc_loop_now_ms(p->timer.loop);
}

void torc_lb_set_timer(torc_lb_helper *p, int64_t delay_ms)
{
    if (p->base.helper && delay_ms >= 0)
        tc_timer_start(&p->timer, (uint64_t)delay_ms);
    else
        tc_timer_stop(&p->timer);
}

static void on_timer(struct tc_timer *timer)
{
    torc_lb_helper *p = TC_CONTAINER_OF(timer, torc_lb_helper, timer);
    if (p->app->on_timer)
        p->app->on_timer(p->state);
}

void torc_lb_request_reresolution(torc_lb_helper *p)
{
    if (p->base.helper)
        tc_lb_request_reresolution(p->base.helper);
}

const char *torc_lb_pick_method(const torc_lb_pick *pick)
{
    return tc_arena_dup(&pick->policy->texts, pick->args->path);
}

/* Returns the values of a header, joined by ',', in the arena; NULL: there is no such header. */
static const char *header_joined(const struct tc_headers *headers, const char *name, struct tc_arena *arena)
{
    struct tc_buf scratch = {0};
    struct tc_slice value;
    const char *out = NULL;
    if (tc_headers_joined(headers, tc_slice_str(name), &scratch, &value))
        out = tc_arena_dup(arena, value);
    tc_buf_fini(&scratch);
    return out;
}

const char *torc_lb_pick_header(torc_lb_pick *pick, const char *name)
{
    return header_joined(pick->args->headers, name, &pick->policy->texts);
}

uint64_t torc_lb_pick_random(const torc_lb_pick *pick)
{
    return pick->args->random;
}

int torc_lb_pick_explains(const torc_lb_pick *pick)
{
    return pick->args->dry;
}

void torc_lb_pick_watch(torc_lb_pick *pick, void *call_arg)
{
    pick->watched = !pick->args->dry && pick->policy->app->on_call_end;
    pick->call_arg = call_arg;
}

int torc_lb_call_end_code(const torc_lb_call_end *end)
{
    return end->status ? (int)end->status->code : -1;
}

const char *torc_lb_call_end_trailer(torc_lb_call_end *end, const char *name)
{
    return end->trailers ? header_joined(end->trailers, name, end->texts) : NULL;
}

int torc_lb_call_end_load(const torc_lb_call_end *end, int metric, const char *name, double *value)
{
    struct tc_slice report = tc_orca_of_trailers(end->trailers), wanted = tc_slice_str(name ? name : "");
    struct tc_orca_value v;
    double last = 0;
    bool found = false;
    while (tc_orca_next(&report, &v))
        if (v.field == (uint64_t)metric && tc_slice_eq(v.name, wanted)) {
            found = true;
            last = v.value;
        }
    if (!found || report.len) /* bytes that are left: the report is malformed, and none of its values count */
        return 0;
    *value = last;
    return 1;
}

/* --- children --- */

static struct tc_lb_policy *app_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper);

static torc_lb_child *child_of(struct tc_lb_helper *h)
{
    return TC_CONTAINER_OF(h, struct torc_lb_child, helper);
}

/* Takes over the picker at once; on_tell tells the application of the state. */
static void child_update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                               struct tc_picker *picker)
{
    torc_lb_child *c = child_of(h);
    bool failed = state == TORC_CONNECTIVITY_TRANSIENT_FAILURE;
    tc_picker_unref(c->picker);
    c->picker = picker;
    *tc_vec_push(&c->untold) = (struct child_state){state, failed ? tc_status_ref(status) : (struct tc_status){0}};
    tc_loop_defer(h->env->loop, &c->tell);
}

static const struct tc_lb_helper_ops child_helper_ops = {.update_state = child_update_state};

/* Tells the application of one state of a child. The application may destroy the child, with this task, from inside. */
static void on_tell(struct tc_task *task)
{
    torc_lb_child *c = TC_CONTAINER_OF(task, struct torc_lb_child, tell);
    torc_lb_helper *p = c->owner;
    c->state = c->untold.data[0].state;
    tc_status_set(&c->status, c->untold.data[0].why);
    tc_vec_remove(&c->untold, 0);
    if (c->untold.len)
        tc_loop_defer(c->helper.env->loop, &c->tell);
    p->publishing = false;
    tc_lref_inc(&p->ref);
    if (p->app->on_child_state)
        p->app->on_child_state(p->state, c, c->arg, c->state);
    /* The application published nothing, but the child's picker is new: has waiting calls picked for again. */
    if (p->published && !p->publishing && p->base.helper)
        policy_publish(p);
    policy_unref(p);
}

torc_lb_child *torc_lb_child_create(torc_lb_helper *p, const char *policy, void *arg)
{
    if (!p->base.helper)
        return NULL;
    struct tc_lb_config *config = policy ? tc_lb_default_config(p->base.helper->env->registry, policy) : NULL;
    if (policy && !config)
        return NULL;
    if (config && config->factory->create == app_create) { /* two policies that create each other would never end */
        tc_lb_config_unref(config);
        return NULL;
    }
    torc_lb_child *c = TC_NEW(struct torc_lb_child);
    tc_lb_helper_init(&c->helper, &child_helper_ops, p->base.helper);
    c->owner = p;
    c->config = config;
    c->state = TORC_CONNECTIVITY_CONNECTING;
    c->picker = tc_picker_queue();
    c->arg = arg;
    tc_task_init(&c->tell, on_tell);
    tc_list_append(&p->children, &c->link);
    c->slot = tc_graceful_switch_new(&c->helper);
    return c;
}

/* Parses the list in the member `field` of check->json; `field` NULL: check->json is the list. Returns the child's
 * config with one reference, or NULL after it has added an error. */
static struct tc_lb_config *child_config_parse(const torc_lb_check *check, const char *field)
{
    if (!field)
        return tc_lb_parse_list(check->registry, check->json, check->depth + 1, check->errors);
    if (json_is_object(check->json))
        return tc_lb_parse_child(check->registry, check->json, field, check->depth, check->errors);
    tc_validation_add(check->errors, "must be an object");
    return NULL;
}

int torc_lb_child_set_config(torc_lb_child *c, const char *config_json, const char *field, torc_error **error)
{
    if (tc_error_pending(error))
        return TORC_EINVAL;
    if (!c->slot) {
        tc_error_set(error, TORC_ESTATE, TORC_LAYER_API, "the policy is being destroyed");
        return TORC_ESTATE;
    }
    char *why = NULL;
    struct tc_validation_errors errors = {0};
    json_t *json = tc_json_parse(tc_slice_str(config_json), &why);
    torc_lb_check check = {c->helper.env->registry, json, c->owner->depth, &errors};
    struct tc_lb_config *config = json ? child_config_parse(&check, field) : NULL;
    if (config) {
        tc_lb_config_unref(c->config);
        c->config = config;
    } else {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "config of a child: %s",
                     why ? why : tc_validation_text(&errors));
    }
    tc_validation_fini(&errors);
    json_decref(json);
    tc_free(why);
    return config ? 0 : TORC_EINVAL;
}

void torc_lb_check_refuse(torc_lb_check *check, const char *field, const char *text)
{
    char *path = field ? tc_asprintf(".%s", field) : NULL;
    tc_validation_add_at(check->errors, path ? path : "", "%s", text);
    tc_free(path);
}

void torc_lb_check_child(torc_lb_check *check, const char *field)
{
    tc_lb_config_unref(child_config_parse(check, field));
}

void torc_lb_child_set_endpoints(torc_lb_child *c, const torc_lb_endpoint *const *endpoints, size_t n)
{
    if (!c->slot || !c->config)
        return;
    struct tc_endpoint **at = n ? tc_calloc(n, sizeof(struct tc_endpoint *)) : NULL;
    for (size_t i = 0; i < n; i++)
        at[i] = tc_endpoint_ref(endpoints[i]->endpoint);
    struct tc_endpoints *list = tc_endpoints_take(at, n);
    struct tc_status status =
        tc_graceful_switch_update(c->slot, &(struct tc_lb_update){.endpoints = list, .config = c->config});
    tc_status_fini(&status);
    tc_endpoints_unref(list);
}

enum torc_connectivity torc_lb_child_state(const torc_lb_child *c)
{
    return c->state;
}

const char *torc_lb_child_text(const torc_lb_child *c)
{
    return tc_status_text(&c->status);
}

void torc_lb_child_connect(torc_lb_child *c)
{
    if (c->slot)
        tc_graceful_switch_exit_idle(c->slot);
}

void torc_lb_child_destroy(torc_lb_child *c)
{
    if (!c)
        return;
    if (c->slot)
        tc_graceful_switch_shutdown(c->slot);
    tc_task_cancel(&c->tell);
    tc_list_remove(&c->link);
    tc_picker_unref(c->picker);
    tc_status_fini(&c->status);
    tc_lb_config_unref(c->config);
    for (size_t i = 0; i < c->untold.len; i++)
        tc_status_fini(&c->untold.data[i].why);
    tc_vec_fini(&c->untold);
    tc_free(c);
}

size_t torc_lb_endpoint_address_count(const torc_lb_endpoint *e)
{
    return e->endpoint->n_addrs;
}

const char *torc_lb_endpoint_address(const torc_lb_endpoint *e, size_t i)
{
    return i < e->endpoint->n_addrs ? e->texts[i] : NULL;
}

uint64_t torc_lb_endpoint_weight(const torc_lb_endpoint *e)
{
    return e->endpoint->weight ? e->endpoint->weight : 1;
}

const char *torc_lb_endpoint_hash_key(const torc_lb_endpoint *e)
{
    return tc_rstr_cstr(e->endpoint->hash_key);
}

/* --- the policy --- */

/* Calls the application's `update`. Its torc_lb_endpoint objects live until `update` returns. */
static void endpoints_hand_over(torc_lb_helper *p, const struct tc_endpoints *list, const char *json)
{
    struct tc_arena arena;
    tc_arena_init(&arena, 0, 0);
    const torc_lb_endpoint **all = tc_arena_calloc(&arena, list->n + 1, sizeof(*all));
    for (size_t i = 0; i < list->n; i++) {
        torc_lb_endpoint *e = tc_arena_alloc(&arena, sizeof(*e));
        e->endpoint = list->at[i];
        e->texts = tc_arena_calloc(&arena, e->endpoint->n_addrs, sizeof(char *));
        for (size_t k = 0; k < e->endpoint->n_addrs; k++) {
            char *text = tc_addr_text(&e->endpoint->addrs[k]);
            e->texts[k] = tc_arena_dup(&arena, tc_slice_str(text));
            tc_free(text);
        }
        all[i] = e;
    }
    if (!policy_is_forked(p)) /* `create` may have forked */
        p->app->update(p->state, all, list->n, json);
    tc_arena_fini(&arena);
}

static struct tc_status app_update(struct tc_lb_policy *policy, const struct tc_lb_update *update)
{
    torc_lb_helper *p = TC_CONTAINER_OF(policy, torc_lb_helper, base);
    const struct app_config *config = TC_CONTAINER_OF(update->config, struct app_config, base);
    p->depth = config->depth;
    if (!p->created && !policy_is_forked(p))
        p->state = p->app->create(p, p->app->arg);
    p->created = true;
    if (update->endpoints) {
        endpoints_hand_over(p, update->endpoints, config->json);
    } else if (!p->published) { /* shows why resolution failed, until the application publishes a state */
        p->shown = TORC_CONNECTIVITY_TRANSIENT_FAILURE;
        tc_status_set(&p->status, tc_status_ref(update->endpoints_error));
        policy_publish(p);
        p->published = false;
    }
    return (struct tc_status){0};
}

static void app_exit_idle(struct tc_lb_policy *policy)
{
    torc_lb_helper *p = TC_CONTAINER_OF(policy, torc_lb_helper, base);
    if (p->created && p->app->exit_idle && !policy_is_forked(p))
        p->app->exit_idle(p->state);
}

static void on_exit_idle(struct tc_task *task)
{
    app_exit_idle(&TC_CONTAINER_OF(task, torc_lb_helper, exit_idle)->base);
}

static void app_reset_backoff(struct tc_lb_policy *policy)
{
    torc_lb_helper *p = TC_CONTAINER_OF(policy, torc_lb_helper, base);
    TC_LIST_FOREACH(it, &p->children)
    tc_graceful_switch_reset_backoff(TC_CONTAINER_OF(it, struct torc_lb_child, link)->slot);
}

static void on_bye(struct tc_task *task)
{
    torc_lb_helper *p = TC_CONTAINER_OF(task, torc_lb_helper, bye);
    if (p->created && p->app->destroy)
        p->app->destroy(p->state);
    while (!tc_list_empty(&p->children))
        torc_lb_child_destroy(TC_CONTAINER_OF(p->children.next, struct torc_lb_child, link));
    policy_unref(p);
}

static void app_shutdown(struct tc_lb_policy *policy)
{
    torc_lb_helper *p = TC_CONTAINER_OF(policy, torc_lb_helper, base);
    if (!p->base.helper)
        return;
    struct tc_loop *loop = p->base.helper->env->loop;
    tc_task_cancel(&p->exit_idle);
    tc_task_cancel(&p->later);
    tc_timer_stop(&p->timer);
    /* The children report nothing from now on. The serial queue calls `destroy`, since the application may be up the
     * stack. */
    TC_LIST_FOREACH(it, &p->children)
    {
        torc_lb_child *c = TC_CONTAINER_OF(it, struct torc_lb_child, link);
        tc_task_cancel(&c->tell);
        tc_graceful_switch_shutdown(c->slot);
        c->slot = NULL;
    }
    p->base.helper = NULL;
    tc_loop_defer(loop, &p->bye);
}

static void app_describe(const struct tc_lb_policy *policy, struct tc_describe *d)
{
    const torc_lb_helper *p = TC_CONTAINER_OF(policy, torc_lb_helper, base);
    tc_describe_state(d, "state", p->shown);
    tc_describe_open(d, "children", '[');
    TC_LIST_FOREACH(it, &p->children)
    {
        tc_describe_open(d, NULL, '{');
        tc_graceful_switch_describe(TC_CONTAINER_OF(it, struct torc_lb_child, link)->slot, d, "child");
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
}

static const struct tc_lb_policy_ops app_ops = {
    .update = app_update,
    .exit_idle = app_exit_idle,
    .reset_backoff = app_reset_backoff,
    .shutdown = app_shutdown,
    .describe = app_describe,
};

static struct tc_lb_policy *app_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    torc_lb_helper *p = TC_NEW(torc_lb_helper);
    p->base.ops = &app_ops;
    p->base.factory = factory;
    p->base.helper = helper;
    tc_lref_init(&p->ref);
    p->app = factory->arg;
    p->shown = TORC_CONNECTIVITY_CONNECTING;
    tc_list_init(&p->children);
    tc_task_init(&p->exit_idle, on_exit_idle);
    tc_task_init(&p->later, on_later);
    tc_task_init(&p->bye, on_bye);
    tc_timer_init(&p->timer, helper->env->loop, on_timer);
    tc_arena_init(&p->texts, 0, 0);
    return &p->base;
}

static struct tc_lb_config *app_parse(const struct tc_lb_factory *factory, const json_t *json,
                                      const struct tc_lb_registry *registry, unsigned depth,
                                      struct tc_validation_errors *errors)
{
    if (!json_is_object(json)) {
        tc_validation_add(errors, "must be an object");
        return NULL;
    }
    const struct tc_app_lb_factory *f = TC_CONTAINER_OF(factory, struct tc_app_lb_factory, base);
    char *text = tc_json_text(json, false);
    size_t before = errors->count;
    if (f->app.check_config && !tc_loop_forked(f->loop))
        f->app.check_config(&(torc_lb_check){registry, json, depth, errors}, text, f->app.arg);
    if (errors->count != before) {
        tc_free(text);
        return NULL;
    }
    struct app_config *c = TC_NEW(struct app_config);
    c->base.factory = factory;
    tc_ref_init(&c->base.ref);
    c->depth = depth;
    c->json = text;
    return &c->base;
}

static void app_free_config(struct tc_lb_config *config)
{
    struct app_config *c = TC_CONTAINER_OF(config, struct app_config, base);
    tc_free(c->json);
    tc_free(c);
}

static bool app_equal_config(const struct tc_lb_config *a, const struct tc_lb_config *b)
{
    return strcmp(TC_CONTAINER_OF(a, struct app_config, base)->json,
                  TC_CONTAINER_OF(b, struct app_config, base)->json) == 0;
}

void tc_app_lb_factory_init(struct tc_app_lb_factory *factory)
{
    factory->base = (struct tc_lb_factory){
        .name = factory->app.name,
        .create = app_create,
        .parse_config = app_parse,
        .free_config = app_free_config,
        .equal_config = app_equal_config,
        .arg = &factory->app,
    };
}
