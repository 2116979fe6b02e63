/* A resolver of the application's own (torc/resolver.h) as a resolver of src/resolver.
 *
 * The serial queue calls the application's start and request_reresolution; app_shutdown calls `stop` from inside. The
 * application reports from any thread through its listener, which is reference-counted. Each report is a task for the
 * loop; on_report drops it if the resolver was stopped meanwhile (owner is NULL then).
 *
 * The channel owns a resolver until app_shutdown, which frees it. A resolver borrows the copy of the application's
 * factory (struct tc_app_resolver_class) from the channel. Functions run on the loop, except those of the listener (any
 * thread), and app_authority and tc_app_resolver_class_init (the thread that makes the channel). */
#include "api/resolver_adapter.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/sized.h"
#include "runtime/runtime.h"

struct app_resolver;

/* The object that the application reports to, from any thread. The application's references and reports on their way
 * keep it after the resolver's stop. */
struct torc_resolver_listener {
    struct tc_ref ref;
    torc_runtime *rt;           /* a reference */
    struct app_resolver *owner; /* loop; NULL after the stop */
};

struct app_resolver {
    struct tc_resolver base;
    const struct torc_resolver_factory *app;
    torc_resolver_listener *listener; /* a reference */
    char *rest;                       /* the target's text behind "scheme:", as it was given; owned */
    void *state;                      /* what `start` returned; the application's */
    bool started;                     /* `start` was called */
    struct tc_task start;             /* calls `start` */
    struct tc_task request;           /* calls request_reresolution */
};

/* A report on its way to the loop; on_report frees it. */
struct report {
    struct tc_task task;
    torc_resolver_listener *listener; /* a reference */
    struct tc_resolver_result result; /* owned, until on_report hands its contents to the channel */
};

static void on_report(struct tc_task *task)
{
    struct report *r = TC_CONTAINER_OF(task, struct report, task);
    struct app_resolver *a = r->listener->owner;
    if (a)
        a->base.env->on_result(a->base.env->arg, &r->result);
    else
        tc_resolver_result_fini(&r->result);
    torc_resolver_listener_unref(r->listener);
    tc_free(r);
}

/* Posts a result to the loop, also from inside a turn: a report must not overtake an earlier one. Takes over the
 * contents of *result, also on failure. Returns 0, an error of tc_runtime_check, or TORC_ECLOSED if the loop has ended.
 */
static int listener_report(torc_resolver_listener *listener, struct tc_resolver_result *result)
{
    int rc = tc_runtime_check(listener->rt);
    if (rc != 0) {
        tc_resolver_result_fini(result);
        return rc;
    }
    struct report *r = TC_NEW(struct report);
    torc_resolver_listener_ref(listener);
    r->listener = listener;
    r->result = *result;
    tc_task_init(&r->task, on_report);
    if (tc_loop_post(tc_runtime_loop(listener->rt), &r->task))
        return 0;
    tc_resolver_result_fini(&r->result);
    torc_resolver_listener_unref(listener);
    tc_free(r);
    return TORC_ECLOSED;
}

static void log_refused(size_t i, const char *field, const char *value)
{
    TC_LOG(TC_LOG_RESOLVER, TORC_LOG_WARN, "torc_resolver_report: endpoints[%zu]: %s: \"" TC_SHOWN "\" is refused", i,
           field, TC_SHOW(value));
}

/* Returns a copy of the endpoint with one reference. Returns NULL, and logs why, if the endpoint has no addresses or
 * too many for memory, an address that is NULL or malformed, or too large a weight. */
static struct tc_endpoint *endpoint_convert(const struct torc_endpoint *e, size_t i)
{
    struct tc_endpoint *out = NULL;
    size_t done = 0;
    char number[24];
    if (e->weight > UINT32_MAX) {
        snprintf(number, sizeof(number), "%" PRIu64, e->weight);
        log_refused(i, "weight", number);
        return NULL;
    }
    if (!e->addresses || e->n_addresses == 0 || e->n_addresses > SIZE_MAX / sizeof(struct tc_addr)) {
        snprintf(number, sizeof(number), "%" PRIu64, e->addresses ? e->n_addresses : 0);
        log_refused(i, "n_addresses", number);
        return NULL;
    }
    struct tc_addr *addrs = tc_calloc((size_t)e->n_addresses, sizeof(*addrs));
    while (done < e->n_addresses && e->addresses[done] &&
           tc_addr_parse(&addrs[done], tc_slice_str(e->addresses[done])) == 0)
        done++;
    if (done == e->n_addresses) {
        out = tc_endpoint_new(addrs, done);
        out->lb_weight = (uint32_t)e->weight;
        out->weight = out->lb_weight ? out->lb_weight : 1;
        if (e->hash_key && e->hash_key[0])
            out->hash_key = tc_rstr_str(e->hash_key);
    } else {
        log_refused(i, "address", e->addresses[done] ? e->addresses[done] : "");
    }
    for (size_t k = 0; k < done; k++)
        tc_addr_fini(&addrs[k]);
    tc_free(addrs);
    return out;
}

/* Converts element i of an array whose stride is the size of its first element. Returns 0 with a reference in *out;
 * TORC_EINVAL, and logs why; or TORC_EUNSUPPORTED. */
static int endpoint_take(const struct torc_endpoint *first, size_t i, struct tc_endpoint **out)
{
    struct torc_endpoint e;
    const struct torc_endpoint *given = (const void *)((const char *)first + i * (size_t)first->size);
    int rc = given->size == first->size ? tc_sized_take(&e, sizeof(e), given) : TORC_EINVAL;
    if (rc == TORC_EINVAL) {
        char number[24];
        snprintf(number, sizeof(number), "%" PRIu64, given->size);
        log_refused(i, "size", number);
    }
    if (rc == 0 && !(*out = endpoint_convert(&e, i)))
        rc = TORC_EINVAL;
    return rc;
}

int torc_resolver_report(torc_resolver_listener *listener, const struct torc_endpoint *endpoints, size_t n,
                         const char *service_config_json)
{
    if (!listener || (!endpoints && n))
        return TORC_EINVAL;
    struct tc_endpoint **at = n ? tc_calloc(n, sizeof(struct tc_endpoint *)) : NULL;
    for (size_t i = 0; i < n; i++) {
        int rc = endpoint_take(endpoints, i, &at[i]);
        if (rc == 0)
            continue;
        while (i > 0)
            tc_endpoint_unref(at[--i]);
        tc_free(at);
        return rc;
    }
    struct tc_resolver_result result = {
        .endpoints = tc_endpoints_take(at, n),
        .service_config = service_config_json ? tc_rstr_str(service_config_json) : NULL,
    };
    return listener_report(listener, &result);
}

int torc_resolver_report_error(torc_resolver_listener *listener, enum torc_status_code code, const char *message)
{
    if (!listener)
        return TORC_EINVAL;
    bool is_failure = (int)code > TORC_STATUS_OK && (int)code <= TORC_STATUS_UNAUTHENTICATED;
    struct tc_resolver_result result = {
        .status = tc_status_make(is_failure ? (int)code : TORC_STATUS_UNKNOWN, TORC_LAYER_RESOLVER,
                                 "name resolution failed: %s", message ? message : ""),
    };
    return listener_report(listener, &result);
}

void torc_resolver_listener_ref(torc_resolver_listener *listener)
{
    if (listener)
        tc_ref_inc(&listener->ref);
}

void torc_resolver_listener_unref(torc_resolver_listener *listener)
{
    if (!listener || !tc_ref_dec(&listener->ref))
        return;
    tc_runtime_unref(listener->rt);
    tc_free(listener);
}

static void on_start(struct tc_task *task)
{
    struct app_resolver *a = TC_CONTAINER_OF(task, struct app_resolver, start);
    a->started = true;
    a->state = a->app->start(a->rest, a->listener, a->app->arg);
}

static void app_start(struct tc_resolver *r)
{
    tc_loop_defer(r->env->loop, &TC_CONTAINER_OF(r, struct app_resolver, base)->start);
}

static void on_request(struct tc_task *task)
{
    struct app_resolver *a = TC_CONTAINER_OF(task, struct app_resolver, request);
    a->app->request_reresolution(a->state);
}

/* Defers the call: the LB policy that asks is up the stack, and the application may destroy that policy. */
static void app_request(struct tc_resolver *r)
{
    struct app_resolver *a = TC_CONTAINER_OF(r, struct app_resolver, base);
    if (a->started && a->app->request_reresolution)
        tc_loop_defer(r->env->loop, &a->request);
}

static void app_reset_backoff(struct tc_resolver *r)
{
    app_request(r);
}

/* Calls `stop` from inside, if `start` was called. */
static void app_shutdown(struct tc_resolver *r)
{
    struct app_resolver *a = TC_CONTAINER_OF(r, struct app_resolver, base);
    tc_task_cancel(&a->start);
    tc_task_cancel(&a->request);
    a->listener->owner = NULL;
    if (a->started && a->app->stop && !tc_loop_forked(r->env->loop))
        a->app->stop(a->state);
    torc_resolver_listener_unref(a->listener);
    tc_free(a->rest);
    tc_free(a);
}

static const struct tc_resolver_ops app_ops = {
    .start = app_start,
    .request_reresolution = app_request,
    .reset_backoff = app_reset_backoff,
    .shutdown = app_shutdown,
};

static struct tc_resolver *app_create(const struct tc_resolver_class *cls, const struct tc_target *target,
                                      const struct tc_resolver_env *env)
{
    struct app_resolver *a = TC_NEW(struct app_resolver);
    a->base.ops = &app_ops;
    a->base.env = env;
    a->app = cls->arg;
    a->rest = tc_strdup(target->text + target->rest_at);
    a->listener = TC_NEW(torc_resolver_listener);
    tc_ref_init(&a->listener->ref);
    a->listener->rt = tc_runtime_ref(env->runtime);
    a->listener->owner = a;
    tc_task_init(&a->start, on_start);
    tc_task_init(&a->request, on_request);
    return &a->base;
}

/* Appends what follows the last slash of the path; the whole path if it has no slash or nothing follows the last. */
static bool app_authority(const struct tc_resolver_class *cls TC_UNUSED, const struct tc_target *target,
                          struct tc_buf *out, char **why TC_UNUSED)
{
    const char *slash = strrchr(target->path, '/');
    tc_buf_append_str(out, slash && slash[1] ? slash + 1 : target->path);
    return true;
}

/* Returns true for a scheme of RFC 3986 in lower case: tc_target_parse makes a target's scheme lower case. */
static bool scheme_is_valid(const char *scheme)
{
    static const char chars[] = "+-.0123456789abcdefghijklmnopqrstuvwxyz";
    return scheme[0] >= 'a' && scheme[0] <= 'z' && scheme[strspn(scheme, chars)] == '\0';
}

bool tc_app_resolver_class_init(struct tc_app_resolver_class *c, const struct torc_resolver_factory *app, size_t i,
                                torc_error **error)
{
    char title[sizeof("resolvers[18446744073709551615]")];
    snprintf(title, sizeof(title), "resolvers[%zu]", i);
    if (!tc_sized_read(&c->app, sizeof(c->app), app, title, "torc_resolver_factory", error))
        return false;
    if (!c->app.scheme || !c->app.start)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: %s: it is NULL", title,
                            c->app.scheme ? "start" : "scheme");
    if (!scheme_is_valid(c->app.scheme))
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                            "%s: scheme: \"" TC_SHOWN
                            "\" must be a lower-case letter, then letters, digits, +, - and .",
                            title, TC_SHOW(c->app.scheme));
    c->base = (struct tc_resolver_class){
        .scheme = c->app.scheme,
        .authority = app_authority,
        .create = app_create,
        .arg = &c->app,
    };
    return true;
}
