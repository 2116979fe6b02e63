/* torc_server: its methods, its addresses, its beginning and its end. torc/server.h has the contract.
 *
 * A server has a shard on each runtime that it uses (shard.c). The shard's `core` (server/server.h) does the work. The
 * first shard is the server's home. A shard ends by torc_server_free or with its runtime, and all end with the home's
 * runtime.
 *
 * torc_server is reference-counted: the application, the shards' loops, posted tasks and calls hold it. Its methods are
 * freed with it. Threads add methods and limits under the lock of the home's runtime. Listening, starting and stopping
 * run on the home's loop.
 *
 *   NEW        Methods and addresses are collected. Sockets listen, and nobody accepts.
 *   STARTED    The methods are in the tables of the cores, which no longer change: lookups need no lock.
 *   STOPPING   The shards drain.
 *   STOPPED    No connection is left, or the home has ended. The shards stay until the server, or their runtime, is
 *              freed.
 *
 * The calls are in call.c, call_wait.c and call_rpc.c. */
#include <errno.h>
#include <stdlib.h>

#include "api/server/load.h"
#include "api/server/server_internal.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/thread.h"
#include "creds/creds.h"

/* A torc_server_stop_async that waits for the end of the stop. */
struct tc_stop_fn {
    struct tc_stop_fn *next;
    void (*fn)(void *arg);
    void *arg;
};

torc_server *tc_api_server_ref(torc_server *s)
{
    tc_ref_inc(&s->ref);
    return s;
}

void tc_api_server_unref(torc_server *s)
{
    if (!tc_ref_dec(&s->ref))
        return;
    struct tc_method *m, *next;
    HASH_ITER(hh, s->methods, m, next)
    {
        HASH_DEL(s->methods, m);
        tc_free(m->path);
        tc_free(m);
    }
    struct tc_method_limits *l, *after;
    HASH_ITER(hh, s->limits, l, after)
    {
        HASH_DEL(s->limits, l);
        tc_pool_unref(l->opts.pool);
        tc_free(l->name);
        tc_free(l);
    }
    tc_server_load_unref(s->load);
    struct tc_server_shard *shards = s->shards;
    size_t n_shards = s->n_shards;
    tc_interceptors_free(s->interceptors);
    tc_free(s);
    tc_server_shards_free(shards, n_shards);
}

/* --- the end --- */

void tc_api_server_stopped(torc_server *s)
{
    tc_runtime_lock(s->rt);
    s->state = TC_SERVER_STOPPED;
    struct tc_stop_fn *fns = s->stop_fns;
    s->stop_fns = NULL;
    tc_wait_wake_all(&s->waits);
    tc_runtime_unlock(s->rt);
    while (fns) {
        struct tc_stop_fn *f = fns;
        fns = f->next;
        if (!tc_loop_forked(tc_runtime_loop(s->rt))) /* not in a child of a fork, nor while the process exits */
            f->fn(f->arg);
        tc_free(f);
    }
}

void tc_api_server_handlers_end(torc_server *s)
{
    if (atomic_fetch_sub(&s->handlers, 1) != 1)
        return;
    for (struct tc_method *m = s->methods; m; m = m->hh.next)
        if (m->handler.release)
            m->handler.release(m->handler.arg);
}

void torc_server_free(torc_server *s)
{
    if (!s)
        return;
    TC_NO_CANCEL;
    int rc = tc_server_shards_check_blocking(s);
    if (rc == TORC_EFORK)
        return;
    if (atomic_exchange(&s->freed, true))
        return;
    if (rc == TORC_EDEADLK)
        tc_server_shards_end_later(s);
    else if (tc_server_shards_end(s) == TORC_EFORK)
        return;
    tc_api_server_unref(s);
}

/* --- the beginning --- */

torc_server *torc_server_new(const struct torc_server_options *given, torc_error **error)
{
    return tc_api_server_new(given, NULL, error);
}

torc_server *tc_api_server_new(const struct torc_server_options *given, void (*adjust)(struct tc_server_opts *opts),
                               torc_error **error)
{
    TC_NO_CANCEL;
    struct torc_server_options options;
    if (tc_error_pending(error) || !tc_options_complete(TC_OPTIONS_SERVER, &options, given, error))
        return NULL;
    torc_runtime *rt = tc_runtime_or_default(options.runtime, "options: runtime", error);
    if (!rt)
        return NULL;
    torc_server *s = TC_NEW(torc_server);
    tc_ref_init(&s->ref);
    atomic_init(&s->freed, false);
    atomic_init(&s->handlers, 1);
    s->rt = rt;
    s->opts = options;
    s->adjust = adjust;
    tc_list_init(&s->waits);
    tc_task_init(&s->stopped_task, tc_server_shards_on_stopped);
    int rc = tc_server_shards_make(s, rt, error);
    if (rc != 0) {
        if (rc != TORC_EFORK)
            tc_api_server_unref(s);
        return NULL;
    }
    const struct torc_interceptor *const *list = options.interceptors;
    if (!list || !list[0] || (s->interceptors = tc_interceptors_new(list, error)))
        return s;
    torc_server_free(s);
    return NULL;
}

/* Returns 0 if the server can be used and no error is pending; else stores an error, unless one is pending, and returns
 * its code. */
static int server_check(const torc_server *s, torc_error **error)
{
    if (tc_error_pending(error))
        return torc_error_code(*error);
    int rc = s ? tc_runtime_check(s->rt) : TORC_EINVAL;
    if (rc == TORC_EINVAL)
        tc_error_set(error, rc, TORC_LAYER_API, "server: it is NULL");
    else if (rc != 0)
        tc_error_set_code(error, rc, "server");
    return rc;
}

/* Returns a copy of the method with a leading slash, or of "*", for tc_free; NULL if the method is malformed. */
static char *method_path(const char *method)
{
    if (strcmp(method, "*") == 0)
        return tc_strdup(method);
    if (*method == '/')
        method++;
    const char *slash = strrchr(method, '/');
    if (!slash || slash == method || !slash[1])
        return NULL;
    for (const char *at = method; *at; at++)
        if (*at <= ' ' || *at > '~')
            return NULL;
    size_t len = strlen(method);
    char *path = tc_malloc(len + 2);
    path[0] = '/';
    memcpy(path + 1, method, len + 1);
    return path;
}

/* Copies a handler of the application, and checks the copy. `any`: it is for the method "*". Returns false with an
 * error. */
static bool handler_read(struct torc_handler *to, const struct torc_handler *given, bool any, torc_error **error)
{
    if (!given)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "handler: it is NULL");
    if (!tc_sized_read(to, sizeof(*to), given, "handler", "torc_handler", error))
        return false;
    if (!to->unary == !to->stream)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "handler: exactly one of unary and stream must be set");
    if (any && !to->stream)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "handler: stream must be set for the method \"*\"");
    return true;
}

/* Adds all of the methods and returns 0, or adds none and returns TORC_ECLOSED, TORC_ESTATE, or TORC_EEXIST with the
 * path, borrowed from `specs`, in *taken. With the lock held. */
static int methods_add(torc_server *s, const struct tc_method_spec *specs, size_t n, const char **taken)
{
    struct tc_method *other;
    if (s->ended || s->state != TC_SERVER_NEW)
        return s->ended ? TORC_ECLOSED : TORC_ESTATE;
    for (size_t i = 0; i < n; i++) {
        *taken = specs[i].path;
        HASH_FIND_STR(s->methods, *taken, other);
        if (other)
            return TORC_EEXIST;
    }
    for (size_t i = 0; i < n; i++) {
        struct tc_method *m = TC_NEW(struct tc_method);
        *m = (struct tc_method){.server = s, .handler = specs[i].handler, .path = tc_strdup(specs[i].path)};
        m->max_request = specs[i].max_request;
        m->stopping = specs[i].stopping;
        HASH_ADD_KEYPTR(hh, s->methods, m->path, strlen(m->path), m);
    }
    return 0;
}

int tc_api_server_add(torc_server *s, const struct tc_method_spec *specs, size_t n, struct tc_server_load *load,
                      torc_error **error)
{
    const char *taken = NULL;
    int rc = server_check(s, error);
    if (rc != 0)
        return rc;
    tc_runtime_lock(s->rt);
    bool reports = load && s->load;
    rc = methods_add(s, specs, reports ? 0 : n, &taken);
    rc = rc == 0 && reports ? TORC_EEXIST : rc;
    if (rc == 0 && load) {
        tc_ref_inc(&load->ref);
        s->load = load;
    }
    tc_runtime_unlock(s->rt);
    if (rc == TORC_EEXIST && !taken)
        tc_error_set(error, rc, TORC_LAYER_API, "server: it has reports of its load already");
    else if (rc == TORC_EEXIST)
        tc_error_set(error, rc, TORC_LAYER_API, "method: " TC_SHOWN " has a handler already", TC_SHOW(taken));
    else if (rc == TORC_ESTATE)
        tc_error_set(error, rc, TORC_LAYER_API, "server: it was started or stopped: methods are added before that");
    else if (rc != 0)
        tc_error_set_code(error, rc, "server");
    return rc;
}

int torc_server_add_method(torc_server *s, const char *method, const struct torc_handler *given, torc_error **error)
{
    torc_error *own = NULL;
    torc_error **why = error ? error : &own;
    struct torc_handler handler;
    int rc = server_check(s, why);
    if (rc != 0) {
        torc_error_free(own);
        return rc;
    }
    char *path = method ? method_path(method) : NULL;
    if (!method)
        tc_error_set(why, TORC_EINVAL, TORC_LAYER_API, "method: it is NULL");
    else if (!path)
        tc_error_set(why, TORC_EINVAL, TORC_LAYER_API,
                     "method: \"" TC_SHOWN "\" must be \"/package.Service/Method\" or \"*\"", TC_SHOW(method));
    if (!path || !handler_read(&handler, given, strcmp(path, "*") == 0, why)) {
        rc = torc_error_code(*why);
        torc_error_free(own);
        tc_free(path);
        return rc;
    }
    TC_NO_CANCEL;
    rc = tc_api_server_add(s, &(struct tc_method_spec){.path = path, .handler = handler}, 1, NULL, error);
    tc_free(path);
    return rc;
}

int64_t torc_server_count(const torc_server *s, int counter)
{
    unsigned long long n = 0;
    if (!s || counter < 0 || counter >= TC_SERVER_COUNTERS)
        return TORC_EINVAL;
    for (size_t i = 0; i < s->n_shards; i++)
        n += atomic_load_explicit(&s->shards[i].tally.n[counter], memory_order_relaxed);
    return (int64_t)n;
}

/* --- limits of methods --- */

/* Returns a copy of the name, a method or a service, with a leading slash; or of "*"; for tc_free. Returns NULL if the
 * name is malformed. */
static char *limits_name(const char *name)
{
    if (strchr(name, '/'))
        return strchr(name + 1, '/') ? method_path(name) : NULL;
    char *with_method = tc_asprintf("%s/x", name), *path = strcmp(name, "*") == 0 ? tc_strdup(name) : NULL;
    if (!path && (path = method_path(with_method)))
        path[strlen(path) - 2] = '\0';
    tc_free(with_method);
    return path;
}

/* Takes over the limits. Returns 0, or frees them, stores an error and returns its code. */
static int server_add_limits(torc_server *s, struct tc_method_limits *l, torc_error **error)
{
    struct tc_method_limits *other;
    tc_runtime_lock(s->rt);
    HASH_FIND_STR(s->limits, l->name, other);
    int rc = s->ended ? TORC_ECLOSED : s->state != TC_SERVER_NEW ? TORC_ESTATE : other ? TORC_EEXIST : 0;
    if (rc == 0)
        HASH_ADD_KEYPTR(hh, s->limits, l->name, strlen(l->name), l);
    tc_runtime_unlock(s->rt);
    if (rc == 0)
        return 0;
    if (rc == TORC_EEXIST)
        tc_error_set(error, rc, TORC_LAYER_API, "name: " TC_SHOWN " has limits already", TC_SHOW(l->name));
    else if (rc == TORC_ESTATE)
        tc_error_set(error, rc, TORC_LAYER_API, "server: it was started or stopped: limits are set before that");
    else
        tc_error_set_code(error, rc, "server");
    tc_pool_unref(l->opts.pool);
    tc_free(l->name);
    tc_free(l);
    return rc;
}

int torc_server_limit(torc_server *s, const char *name, const struct torc_method_options *given, torc_error **error)
{
    TC_NO_CANCEL;
    torc_error *own = NULL;
    torc_error **why = error ? error : &own;
    struct torc_method_options options;
    int rc = server_check(s, why);
    char *path = rc == 0 && name ? limits_name(name) : NULL;
    if (rc == 0 && !path)
        tc_error_set(why, TORC_EINVAL, TORC_LAYER_API,
                     "name: must be \"package.Service/Method\", \"package.Service\" or \"*\"");
    if (rc == 0 && path && !given)
        tc_error_set(why, TORC_EINVAL, TORC_LAYER_API, "options: they are NULL");
    bool good = rc == 0 && !*why && tc_options_complete(TC_OPTIONS_METHOD, &options, given, why);
    if (good && tc_pool_is_of_parent(options.pool))
        good = tc_error_set_code(why, TORC_EFORK, "options: pool");
    if (good) {
        struct tc_method_limits *l = TC_NEW(struct tc_method_limits);
        l->opts = options;
        l->name = path;
        tc_pool_ref(options.pool);
        return server_add_limits(s, l, error);
    }
    rc = torc_error_code(*why);
    torc_error_free(own);
    tc_free(path);
    return rc;
}

/* Returns the limits of a method, borrowed from the server: its own, else its service's, else those of "*"; NULL: none.
 */
static const struct tc_method_limits *limits_of(const torc_server *s, const char *path)
{
    struct tc_method_limits *l;
    HASH_FIND_STR(s->limits, path, l);
    size_t service = (size_t)(strrchr(path, '/') ? strrchr(path, '/') - path : 0);
    if (!l && service)
        HASH_FIND(hh, s->limits, path, service, l);
    if (!l)
        HASH_FIND_STR(s->limits, "*", l);
    return l;
}

/* --- listening --- */

/* A call of torc_server_listen, on the stack of its thread. */
struct listening {
    torc_server *s;
    struct tc_addr addr; /* for tc_addr_fini */
    int fd;              /* -1: `addr` counts */
    torc_credentials *credentials;
    char *bound;            /* for tc_free; NULL unless rc is 0 */
    struct tc_status error; /* for tc_status_fini: why rc is TORC_EIO */
    int rc;
};

/* On the home's loop. */
static void on_listen(void *arg)
{
    struct listening *l = arg;
    struct tc_addr bound;
    struct tc_server *core = l->s->shards->core;
    if (!core) {
        l->rc = TORC_ECLOSED;
        return;
    }
    if (l->s->state >= TC_SERVER_STOPPING) { /* without the lock: only the home's loop writes `state` */
        l->rc = TORC_ESTATE;
        return;
    }
    bool shares_port = l->s->opts.listen_mode == TORC_LISTEN_REUSE_PORT && l->fd < 0;
    if (shares_port && tc_addr_family(&l->addr) != AF_UNIX)
        l->rc = tc_server_shards_listen(l->s, &l->addr, l->credentials, &bound, &l->error);
    else
        l->rc = tc_server_listen_with(core, l->fd < 0 ? &l->addr : NULL, l->fd, l->credentials, &bound, &l->error);
    if (l->rc != 0)
        return;
    l->bound = tc_addr_text(&bound);
    tc_addr_fini(&bound);
}

/* Stores l->addr or l->fd. Returns false if the address is malformed. */
static bool address_parse(struct listening *l, const char *text)
{
    struct tc_slice s = tc_slice_str(text), rest;
    uint64_t fd;
    l->fd = -1;
    if (tc_slice_starts(s, tc_slice_str("fd:"))) {
        rest = tc_slice_of(s.data + 3, s.len - 3);
        if (tc_parse_u64(rest, INT32_MAX, &fd) != 0)
            return false;
        l->fd = (int)fd;
        return true;
    }
    if (tc_slice_starts(s, tc_slice_str("unix-abstract:")))
        return s.len > 14 && tc_addr_from_unix(&l->addr, tc_slice_of(s.data + 14, s.len - 14), true) == 0;
    return tc_addr_parse(&l->addr, s) == 0;
}

/* Checks the arguments of torc_server_listen, and stores the address in *l. Returns false with an error. */
static bool listen_accepts(struct listening *l, const char *address, const torc_credentials *credentials,
                           torc_error **error)
{
    if (!credentials)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "credentials: they are NULL");
    if (credentials != torc_credentials_insecure() && !credentials->for_servers)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "credentials: these are not for servers");
    if (!address)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "address: it is NULL");
    if (!address_parse(l, address))
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                            "address: \"" TC_SHOWN
                            "\" is not an address such as 127.0.0.1:0, [::]:80, unix:/path or fd:3",
                            TC_SHOW(address));
    return true;
}

int torc_server_listen(torc_server *s, const char *address, torc_credentials *credentials, char **bound,
                       torc_error **error)
{
    TC_NO_CANCEL;
    int rc = server_check(s, error);
    struct listening l = {.s = s, .credentials = credentials};
    if (rc != 0)
        return rc;
    if (!listen_accepts(&l, address, credentials, error))
        return TORC_EINVAL;
    rc = tc_runtime_do(s->rt, on_listen, &l);
    rc = rc ? rc : l.rc;
    if (rc == TORC_EIO)
        tc_error_set(error, rc, TORC_LAYER_CONNECT, "%s", tc_status_text(&l.error));
    else if (rc == TORC_ESTATE)
        tc_error_set(error, rc, TORC_LAYER_API, "server: it is being stopped");
    else if (rc != 0)
        tc_error_set_code(error, rc, "server");
    if (bound && rc == 0)
        *bound = l.bound;
    else
        tc_free(l.bound);
    tc_addr_fini(&l.addr);
    tc_status_fini(&l.error);
    return rc;
}

/* --- starting and stopping --- */

/* A request of a thread to the home's loop: a start or a stop. */
struct asking {
    torc_server *s;
    int64_t grace_ms; /* of a stop, as for torc_server_stop */
    char *unused;     /* of a start: the name of limits that no method has; freed by the asker */
    int rc;           /* of a start */
};

/* Registers the handler of "*" also for each method that has limits of its own and no handler, and, under the path
 * "/service/", for the methods without a handler of each service that has limits. With the lock held. */
static void server_spread(torc_server *s)
{
    struct tc_method *all, *m;
    HASH_FIND_STR(s->methods, "*", all);
    for (struct tc_method_limits *l = s->limits; all && l; l = l->hh.next) {
        char *path = tc_asprintf("%s%s", l->name, strchr(l->name + 1, '/') ? "" : "/");
        HASH_FIND_STR(s->methods, path, m);
        if (m || *l->name != '/') {
            tc_free(path);
            continue;
        }
        m = TC_NEW(struct tc_method);
        *m = (struct tc_method){.server = s, .handler = all->handler, .path = path, .spread = true};
        m->handler.release = NULL; /* called for "*" */
        HASH_ADD_KEYPTR(hh, s->methods, m->path, strlen(m->path), m);
    }
}

/* Returns true for "*", and if a method or the handler of "*" may have the limits of that name. With the lock held. */
static bool limits_are_used(const torc_server *s, const char *name)
{
    size_t len = strlen(name);
    if (strcmp(name, "*") == 0)
        return true;
    for (const struct tc_method *m = s->methods; m; m = m->hh.next)
        if (strcmp(m->path, "*") == 0 || strcmp(m->path, name) == 0 ||
            (strncmp(m->path, name, len) == 0 && strrchr(m->path, '/') == m->path + len))
            return true;
    return false;
}

/* Returns 0, or TORC_ENOTFOUND with a name in *unused, for tc_free, if there are limits of a method or service that the
 * server does not have: a slip in the name would leave the method without limits. With the lock held. */
static int limits_check(const torc_server *s, char **unused)
{
    for (const struct tc_method_limits *l = s->limits; l; l = l->hh.next)
        if (!limits_are_used(s, l->name)) {
            *unused = tc_strdup(l->name);
            return TORC_ENOTFOUND;
        }
    return 0;
}

/* On the home's loop. */
static void on_start(void *arg)
{
    struct asking *a = arg;
    torc_server *s = a->s;
    tc_runtime_lock(s->rt);
    a->rc = s->ended ? TORC_ECLOSED : s->state != TC_SERVER_NEW ? TORC_ESTATE : limits_check(s, &a->unused);
    if (a->rc == 0) {
        s->state = TC_SERVER_STARTED;
        server_spread(s);
    }
    tc_runtime_unlock(s->rt);
    if (a->rc != 0)
        return;
    for (struct tc_method *m = s->methods; m; m = m->hh.next) {
        m->limits = limits_of(s, m->path);
        m->pool = m->limits && !m->max_request ? m->limits->opts.pool : NULL; /* Torc's own handlers never wait */
    }
    tc_server_shards_start(s);
}

int torc_server_start(torc_server *s, torc_error **error)
{
    TC_NO_CANCEL;
    int rc = server_check(s, error);
    struct asking a = {.s = s};
    if (rc != 0)
        return rc;
    rc = tc_runtime_do(s->rt, on_start, &a);
    rc = rc ? rc : a.rc;
    if (rc == TORC_ESTATE)
        tc_error_set(error, rc, TORC_LAYER_API, "server: it was started or stopped before");
    else if (rc == TORC_ENOTFOUND)
        tc_error_set(error, rc, TORC_LAYER_API, "limits: " TC_SHOWN " is neither a method nor a service of the server",
                     TC_SHOW(a.unused));
    else if (rc != 0)
        tc_error_set_code(error, rc, "server");
    tc_free(a.unused);
    return rc;
}

/* On the home's loop. */
static void on_stop(void *arg)
{
    struct asking *a = arg;
    torc_server *s = a->s;
    tc_runtime_lock(s->rt);
    bool over = s->ended || s->state == TC_SERVER_STOPPED;
    bool begins = !over && s->state != TC_SERVER_STOPPING;
    if (!over)
        s->state = TC_SERVER_STOPPING;
    tc_runtime_unlock(s->rt);
    if (over)
        return;
    for (struct tc_method *m = s->methods; m && begins; m = m->hh.next)
        if (m->stopping)
            m->stopping(m->handler.arg);
    tc_server_shards_drain(s, a->grace_ms);
}

int torc_server_stop(torc_server *s, int64_t grace_ms)
{
    TC_NO_CANCEL;
    int rc = s && grace_ms >= -1 ? tc_server_shards_check_blocking(s) : TORC_EINVAL;
    struct asking a = {.s = s, .grace_ms = grace_ms};
    if (rc == 0 && grace_ms < 0 && tc_api_call_handled_here(s))
        rc = TORC_EDEADLK;
    if (rc != 0)
        return rc;
    tc_api_server_ref(s);
    rc = tc_runtime_do(s->rt, on_stop, &a);
    if (rc == 0) {
        struct tc_timed_wait w;
        tc_timed_wait_begin(&w, s->rt, &s->waits, -1);
        while (rc == 0 && s->state != TC_SERVER_STOPPED)
            rc = tc_timed_wait_once(&w);
        tc_timed_wait_end(&w);
    }
    tc_api_server_unref(s);
    return rc;
}

/* A torc_server_stop_async on its way to the home's loop, with a reference to the server. */
struct stopping {
    struct tc_task task;
    struct asking ask;
    struct tc_stop_fn *fn; /* owned, until it is in torc_server.stop_fns */
};

/* On the home's loop. */
static void on_stop_task(struct tc_task *task)
{
    struct stopping *t = TC_CONTAINER_OF(task, struct stopping, task);
    torc_server *s = t->ask.s;
    tc_runtime_lock(s->rt);
    bool over = s->ended || s->state == TC_SERVER_STOPPED;
    t->fn->next = s->stop_fns;
    s->stop_fns = t->fn;
    tc_runtime_unlock(s->rt);
    if (over)
        tc_api_server_stopped(s);
    else
        on_stop(&t->ask);
    tc_free(t);
    tc_api_server_unref(s);
}

int torc_server_stop_async(torc_server *s, int64_t grace_ms, void (*fn)(void *arg), void *arg)
{
    TC_NO_CANCEL;
    int rc = s && fn && grace_ms >= -1 ? tc_runtime_check(s->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    struct stopping *t = TC_NEW(struct stopping);
    t->ask = (struct asking){.s = s, .grace_ms = grace_ms};
    t->fn = TC_NEW(struct tc_stop_fn);
    *t->fn = (struct tc_stop_fn){.fn = fn, .arg = arg};
    tc_task_init(&t->task, on_stop_task);
    tc_api_server_ref(s);
    if (tc_runtime_run(s->rt, &t->task))
        return 0;
    tc_free(t->fn);
    tc_free(t);
    tc_api_server_unref(s);
    return TORC_ECLOSED;
}
