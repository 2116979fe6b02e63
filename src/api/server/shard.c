/* Shards: the parts of a server, one on each of its runtimes (fewer, if max_connections is below their number).
 *
 * The first shard is the server's home. The home's loop accepts, starts and stops, and the lock of the home's runtime
 * guards what threads share of the server. The other shards get their work as tasks posted to their loops. A loop runs
 * these tasks in the order of their posts, for a server that is started, stopped and freed:
 *
 *   make -> start -> connections -> drain -> end
 *
 * Listening sockets may come at any time after make, and so may the end. A task that runs after the end finds no core.
 *
 * A connection goes to the shard with the least load. If that is not the home, the home detaches the socket and posts
 * its descriptor (on_route). With TORC_LISTEN_REUSE_PORT each shard has a listening socket for each IP address, and
 * serves the connections that this socket accepts; the home still routes its own.
 *
 * A shard ends with the server or with its runtime, whichever ends first. The end of the home ends all shards. A shard
 * holds a reference to the server and counts in `handlers` until shard_gone releases both, also if the shard could not
 * be made. If the home cannot be made, torc_server_new fails. */
#include "api/server/server_internal.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/reuse_port.h"
#include "io/socket.h"

enum { MIN_CONNECTIONS = 64, MAX_CONNECTIONS = 65536, MAX_SHARDS = 256 };

static bool is_home(const struct tc_server_shard *shard)
{
    return shard == shard->server->shards;
}

/* Runs the task on the shard's loop. Takes a reference to the server, which the task must release. Returns false,
 * without the reference, if the loop has ended.
 *
 * Only a task for the home, which was made before torc_server_new returns, may run in the turn that the caller is
 * inside of. On another shard such a task would run before tasks that were posted earlier, and find a shard that is not
 * made: an end would find nothing to end, a start nothing to start. */
static bool shard_run(struct tc_server_shard *shard, struct tc_task *task)
{
    tc_api_server_ref(shard->server);
    if (is_home(shard) ? tc_runtime_run(shard->rt, task) : tc_loop_post(tc_runtime_loop(shard->rt), task))
        return true;
    tc_api_server_unref(shard->server);
    return false;
}

/* --- connections --- */

/* A descriptor on its way to another loop: a connection or a listening socket. */
struct handover {
    struct tc_task task; /* has a reference to the server */
    struct tc_server_shard *shard;
    torc_credentials *credentials; /* a reference */
    int fd;                        /* owned until the task runs, which uses or closes it */
};

/* Posts fn with the descriptor to the shard's loop; fn ends with handover_free. Returns false if the loop has ended:
 * the caller keeps the descriptor. */
static bool hand_over(struct tc_server_shard *shard, int fd, torc_credentials *credentials,
                      void (*fn)(struct tc_task *task))
{
    struct handover *h = TC_NEW(struct handover);
    *h = (struct handover){.shard = shard, .credentials = torc_credentials_ref(credentials), .fd = fd};
    tc_task_init(&h->task, fn);
    if (shard_run(shard, &h->task))
        return true;
    torc_credentials_unref(h->credentials);
    tc_free(h);
    return false;
}

static void handover_free(struct handover *h)
{
    torc_server *s = h->shard->server;
    torc_credentials_unref(h->credentials);
    tc_free(h);
    tc_api_server_unref(s);
}

/* Serves a connection that the caller has counted in `load`. If that fails, closes it and takes it off `load`. */
static void connection_take(struct tc_server_shard *shard, int fd, torc_credentials *credentials)
{
    struct tc_bytestream *bs = shard->core ? tc_socket_new(tc_runtime_loop(shard->rt), fd) : NULL;
    if (bs) {
        tc_server_accept_with(shard->core, bs, credentials);
        return;
    }
    close(fd);
    atomic_fetch_sub(&shard->load, 1);
}

static void on_connection(struct tc_task *task)
{
    struct handover *h = TC_CONTAINER_OF(task, struct handover, task);
    connection_take(h->shard, h->fd, h->credentials);
    handover_free(h);
}

/* Returns the shard with the least load among the open shards that have room, or among all open shards if none has
 * room. Counts the home, on whose loop this runs, as open. */
static struct tc_server_shard *shard_choose(const torc_server *s)
{
    struct tc_server_shard *best = s->shards;
    size_t least = atomic_load(&best->load);
    bool room = !best->max || least < best->max;
    for (size_t i = 1; i < s->n_shards; i++) {
        struct tc_server_shard *shard = &s->shards[i];
        size_t load = atomic_load(&shard->load);
        bool has_room = !shard->max || load < shard->max;
        if (atomic_load(&shard->closed) || has_room < room || (has_room == room && load >= least))
            continue;
        best = shard;
        least = load;
        room = has_room;
    }
    return best;
}

/* tc_server_opts.route of the home. */
static bool on_route(void *owner, struct tc_bytestream *bs, torc_credentials *credentials)
{
    struct tc_server_shard *home = owner, *shard = shard_choose(home->server);
    if (shard == home)
        return false;
    int fd = tc_socket_detach(bs);
    for (; shard != home; shard = shard_choose(home->server)) {
        atomic_fetch_add(&shard->load, 1);
        if (hand_over(shard, fd, credentials, on_connection))
            return true;
        atomic_fetch_sub(&shard->load, 1);
        atomic_store(&shard->closed, true);
    }
    atomic_fetch_add(&home->load, 1);
    connection_take(home, fd, credentials);
    return true;
}

/* --- sockets that share a port --- */

static void on_listening(struct tc_task *task)
{
    struct handover *h = TC_CONTAINER_OF(task, struct handover, task);
    struct tc_status error = {0};
    if (!h->shard->core || tc_server_listen_with(h->shard->core, NULL, h->fd, h->credentials, NULL, &error) != 0) {
        if (h->shard->core)
            TC_LOG(TC_LOG_SERVER, TORC_LOG_WARN, "%s", tc_status_text(&error));
        close(h->fd); /* otherwise connections would wait where nobody accepts */
    }
    tc_status_fini(&error);
    handover_free(h);
}

int tc_server_shards_listen(torc_server *s, const struct tc_addr *addr, torc_credentials *credentials,
                            struct tc_addr *bound, struct tc_status *error)
{
    int *fds = tc_calloc(s->n_shards, sizeof(*fds));
    size_t n = 0;
    bool ok = true;
    for (; n < s->n_shards && ok; n++) {
        struct tc_addr again = {0};
        /* A socket of an ended shard would get connections from the system, and closing it would reset them. */
        bool ended = n && tc_runtime_check(s->shards[n].rt) != 0;
        fds[n] = ended ? -1 : tc_reuse_port_listen(n ? bound : addr, n ? &again : bound, error);
        ok = ended || fds[n] >= 0;
        tc_addr_fini(&again);
    }
    ok = ok && tc_server_listen_with(s->shards->core, NULL, fds[0], credentials, NULL, error) == 0;
    for (size_t i = ok; i < n; i++)
        if (fds[i] >= 0 && (!ok || !hand_over(&s->shards[i], fds[i], credentials, on_listening)))
            close(fds[i]);
    if (!ok && fds[0] >= 0)
        tc_addr_fini(bound);
    tc_free(fds);
    return ok ? 0 : TORC_EIO;
}

/* --- making --- */

/* Returns three quarters of RLIMIT_NOFILE, but at least MIN_CONNECTIONS and at most MAX_CONNECTIONS. */
static size_t connections_by_descriptors(void)
{
    struct rlimit files;
    size_t max =
        getrlimit(RLIMIT_NOFILE, &files) == 0 ? (size_t)TC_MIN(files.rlim_cur, (rlim_t)MAX_CONNECTIONS * 2) : 0;
    return TC_MAX(TC_MIN(max / 4 * 3, (size_t)MAX_CONNECTIONS), (size_t)MIN_CONNECTIONS);
}

/* Converts an option's INT64_MAX (no limit) to the core's 0. */
static uint64_t limit_or_none(int64_t value)
{
    return value == INT64_MAX ? 0 : (uint64_t)value;
}

static void opts_fill(struct tc_server_opts *to, struct tc_server_shard *shard)
{
    const struct torc_server_options *o = &shard->server->opts;
    tc_server_opts_init(to);
    to->http2.limits.max_receive_message_bytes = (size_t)TC_MIN((uint64_t)o->max_receive_message_bytes, SIZE_MAX);
    to->http2.limits.max_send_message_bytes = (size_t)TC_MIN((uint64_t)o->max_send_message_bytes, SIZE_MAX);
    to->http2.limits.max_header_list_bytes = (size_t)TC_MIN((uint64_t)o->max_header_list_bytes, SIZE_MAX);
    to->http2.limits.max_concurrent_streams = (uint32_t)o->max_concurrent_streams;
    to->http2.limits.max_cancels = (uint32_t)o->max_cancels;
    to->http2.keepalive = (struct tc_h2_keepalive){
        .time_ms = limit_or_none(o->keepalive_time_ms),
        .timeout_ms = (uint64_t)o->keepalive_timeout_ms,
        .without_calls = o->pings_without_calls,
        .min_interval_ms = (uint64_t)o->min_ping_interval_ms,
        .max_age_ms = limit_or_none(o->max_connection_age_ms),
        .max_age_grace_ms = limit_or_none(o->max_connection_age_grace_ms),
    };
    to->status_at_end = true;
    to->handshake_timeout_ms = (uint64_t)o->handshake_timeout_ms;
    to->idle_timeout_ms = limit_or_none(o->max_connection_idle_ms);
    to->max_connections = shard->max;
    to->max_handlers = (size_t)o->max_concurrent_streams;
    to->max_queued_bytes = (size_t)TC_MIN(limit_or_none(o->unsent_bytes), SIZE_MAX);
    to->max_unread_bytes = (size_t)TC_MIN(limit_or_none(o->unread_bytes), SIZE_MAX);
    to->share = &shard->server->share;
    to->owner = shard;
    to->load = &shard->load;
    to->tally = &shard->tally;
    to->route = is_home(shard) && shard->server->n_shards > 1 ? on_route : NULL;
    if (shard->server->adjust)
        shard->server->adjust(to);
}

static void shard_drained(struct tc_server_shard *shard);

/* Called when a shard has ended or could not be made: on the shard's loop, or, if that had ended, in torc_server_new.
 * Counts the shard as drained, or, for the home, sets TC_SERVER_STOPPED. Releases the shard's count in `handlers` and
 * its reference to the server, and wakes the threads that wait for `gone`. */
static void shard_gone(struct tc_server_shard *shard)
{
    torc_server *s = shard->server;
    atomic_store(&shard->closed, true);
    if (is_home(shard))
        tc_api_server_stopped(s);
    else
        shard_drained(shard);
    tc_api_server_handlers_end(s);
    tc_runtime_lock(shard->rt);
    shard->gone = true;
    tc_wait_wake_all(&shard->waits);
    tc_runtime_unlock(shard->rt);
    tc_api_server_unref(s);
}

/* Ends the shard, its connections and its calls, which hear `why` (borrowed). Does nothing if the shard has ended or
 * was not made. On the shard's loop. */
static void shard_end(struct tc_server_shard *shard, const struct tc_status *why)
{
    struct tc_server *core = shard->core;
    torc_server *s = shard->server;
    if (!core)
        return;
    tc_list_remove(&shard->member.link);
    tc_runtime_lock(shard->rt);
    shard->ended = true;
    if (is_home(shard))
        s->ended = true;
    tc_runtime_unlock(shard->rt);
    shard->core = NULL;
    atomic_store(&shard->closed, true);
    tc_server_end(core, why);
    tc_server_free(core);
    if (is_home(shard))
        tc_server_shards_end_later(s);
    shard_gone(shard);
}

static void on_runtime_shutdown(struct tc_runtime_member *member, const struct tc_status *status)
{
    shard_end(TC_CONTAINER_OF(member, struct tc_server_shard, member), status);
}

/* Returns false if the runtime has ended. On the shard's loop. */
static bool shard_make(struct tc_server_shard *shard)
{
    struct tc_server_opts opts;
    if (tc_runtime_stopped(shard->rt))
        return false;
    opts_fill(&opts, shard);
    shard->core = tc_server_new(tc_runtime_loop(shard->rt), &opts);
    tc_server_hold(shard->core, true);
    tc_runtime_join(shard->rt, &shard->member);
    return true;
}

static void on_make_home(void *arg)
{
    struct tc_server_shard *home = arg;
    if (shard_make(home))
        tc_api_server_ref(home->server);
}

/* The task's reference to the server becomes the shard's. */
static void on_make(struct tc_task *task)
{
    struct tc_server_shard *shard = TC_CONTAINER_OF(task, struct tc_server_shard, make);
    if (!shard_make(shard))
        shard_gone(shard);
}

static void on_start(struct tc_task *task);
static void on_end_task(struct tc_task *task);

static void shard_init(torc_server *s, size_t i, torc_runtime *rt, size_t max_connections)
{
    struct tc_server_shard *shard = &s->shards[i];
    shard->server = s;
    shard->rt = tc_runtime_ref(rt);
    shard->max = max_connections / s->n_shards + (i < max_connections % s->n_shards);
    atomic_init(&shard->load, 0);
    atomic_init(&shard->closed, false);
    atomic_init(&shard->end_asked, false);
    tc_list_init(&shard->member.link);
    tc_list_init(&shard->waits);
    shard->member.on_shutdown = on_runtime_shutdown;
    tc_task_init(&shard->make, on_make);
    tc_task_init(&shard->start, on_start);
    tc_task_init(&shard->end, on_end_task);
}

/* Checks the `n` runtimes of options.runtimes. Returns 0, or the code of an error that it stores. */
static int runtimes_check(const torc_runtime *first, torc_runtime *const *more, size_t n, torc_error **error)
{
    char title[sizeof("options: runtimes[255]")];
    for (size_t i = 0; i < n; i++) {
        int rc = tc_runtime_check(more[i]);
        const char *why = tc_runtime_caller_drives(more[i]) ? "it has no thread" : NULL;
        for (size_t k = 0; k < i && !why; k++)
            why = more[k] == more[i] ? "it is in the list twice" : NULL;
        if (!why && more[i] == first)
            why = "it is the server's first runtime";
        snprintf(title, sizeof(title), "options: runtimes[%u]", (unsigned)i);
        if (rc == 0 && !why)
            continue;
        if (rc != 0)
            tc_error_set_code(error, rc, title);
        else
            tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: %s", title, why);
        return rc ? rc : TORC_EINVAL;
    }
    return 0;
}

int tc_server_shards_make(torc_server *s, torc_runtime *first, torc_error **error)
{
    const struct torc_server_options *o = &s->opts;
    size_t more = 0,
           max = o->max_connections ? (size_t)limit_or_none(o->max_connections) : connections_by_descriptors();
    while (o->runtimes && more < MAX_SHARDS && o->runtimes[more])
        more++;
    if (more == MAX_SHARDS) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "options: runtimes: are more than %d", MAX_SHARDS - 1);
        return TORC_EINVAL;
    }
    int rc = runtimes_check(first, o->runtimes, more, error);
    if (rc != 0)
        return rc;
    s->n_shards = max ? TC_MIN(more + 1, max) : more + 1;
    s->share.n = s->n_shards;
    s->shards = tc_calloc(s->n_shards, sizeof(*s->shards));
    for (size_t i = 0; i < s->n_shards; i++)
        shard_init(s, i, i ? o->runtimes[i - 1] : first, max);
    rc = tc_runtime_do(first, on_make_home, s->shards);
    if (rc == 0 && !s->shards->core)
        rc = TORC_ECLOSED;
    if (rc != 0) {
        tc_error_set_code(error, rc, "options: runtime");
        return rc;
    }
    for (size_t i = 1; i < s->n_shards; i++) {
        atomic_fetch_add(&s->handlers, 1);
        if (shard_run(&s->shards[i], &s->shards[i].make))
            continue;
        tc_api_server_ref(s);
        shard_gone(&s->shards[i]);
    }
    return 0;
}

void tc_server_shards_free(struct tc_server_shard *shards, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tc_runtime_unref(shards[i].rt);
    tc_free(shards);
}

int tc_server_shards_check_blocking(const torc_server *s)
{
    int rc = tc_runtime_check(s->rt);
    for (size_t i = 0; i < s->n_shards && rc != TORC_EFORK; i++)
        if (tc_loop_in_turn(tc_runtime_loop(s->shards[i].rt))) /* checked even if tc_runtime_check says TORC_ECLOSED */
            return TORC_EDEADLK;
    return rc;
}

/* --- starting --- */

/* Registers a method and its limits in a shard's core. */
static void method_add(struct tc_server *core, struct tc_method *m)
{
    if (strcmp(m->path, "*") == 0)
        tc_server_set_default(core, tc_api_call_on_stream, m);
    else if (m->handler.unary && !m->server->interceptors)
        tc_server_add_unary(core, m->path, tc_api_call_on_unary, m);
    else
        tc_server_add_method(core, m->path, tc_api_call_on_stream, m);
    static const struct torc_method_options none;
    const struct torc_method_options *o = m->limits ? &m->limits->opts : &none;
    uint64_t max_request = o->max_receive_message_bytes ? (uint64_t)o->max_receive_message_bytes : m->max_request;
    tc_server_limit(core, m->path,
                    &(struct tc_server_limits){
                        .max_receive_message_bytes = (size_t)TC_MIN(max_request, (uint64_t)SIZE_MAX),
                        .max_calls = (uint64_t)o->max_calls,
                        .max_timeout_ms = (uint64_t)o->max_timeout_ms,
                        .shared_calls = &m->calls,
                    });
}

static void shard_start(struct tc_server_shard *shard)
{
    if (!shard->core)
        return;
    for (struct tc_method *m = shard->server->methods; m; m = m->hh.next)
        method_add(shard->core, m);
    tc_server_hold(shard->core, false);
}

static void on_start(struct tc_task *task)
{
    struct tc_server_shard *shard = TC_CONTAINER_OF(task, struct tc_server_shard, start);
    torc_server *s = shard->server;
    shard_start(shard);
    tc_api_server_unref(s);
}

void tc_server_shards_start(torc_server *s)
{
    for (size_t i = 1; i < s->n_shards; i++)
        shard_run(&s->shards[i], &s->shards[i].start);
    shard_start(s->shards);
}

/* --- draining --- */

void tc_server_shards_on_stopped(struct tc_task *task)
{
    torc_server *s = TC_CONTAINER_OF(task, torc_server, stopped_task);
    tc_api_server_stopped(s);
    tc_api_server_unref(s);
}

/* The shard has no connections left, or is gone. The last shard to drain reports that the server has stopped. */
static void shard_drained(struct tc_server_shard *shard)
{
    torc_server *s = shard->server;
    tc_runtime_lock(s->rt);
    bool last = !shard->drained;
    shard->drained = true;
    for (size_t i = 0; i < s->n_shards; i++)
        last = last && s->shards[i].drained;
    tc_runtime_unlock(s->rt);
    if (!last)
        return;
    if (is_home(shard))
        tc_api_server_stopped(s);
    else
        shard_run(s->shards, &s->stopped_task);
}

static void on_drained(void *arg)
{
    shard_drained(arg);
}

static void shard_drain(struct tc_server_shard *shard, int64_t grace_ms)
{
    if (!shard->core)
        return;
    tc_server_drain(shard->core, grace_ms > 0 ? (uint64_t)grace_ms : 0, on_drained, shard);
    if (grace_ms == 0)
        tc_server_close_connections(shard->core);
}

struct draining {
    struct tc_task task;
    struct tc_server_shard *shard;
    int64_t grace_ms;
};

static void on_drain(struct tc_task *task)
{
    struct draining *d = TC_CONTAINER_OF(task, struct draining, task);
    torc_server *s = d->shard->server;
    shard_drain(d->shard, d->grace_ms);
    tc_free(d);
    tc_api_server_unref(s);
}

void tc_server_shards_drain(torc_server *s, int64_t grace_ms)
{
    for (size_t i = 1; i < s->n_shards; i++) {
        struct draining *d = TC_NEW(struct draining);
        d->shard = &s->shards[i];
        d->grace_ms = grace_ms;
        tc_task_init(&d->task, on_drain);
        if (!shard_run(d->shard, &d->task))
            tc_free(d); /* the shard has ended */
    }
    shard_drain(s->shards, grace_ms);
}

/* --- the end --- */

static void on_end(void *arg)
{
    struct tc_status why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_API, "the server was freed");
    shard_end(arg, &why);
    tc_status_fini(&why);
}

static void on_end_task(struct tc_task *task)
{
    struct tc_server_shard *shard = TC_CONTAINER_OF(task, struct tc_server_shard, end);
    torc_server *s = shard->server;
    on_end(shard);
    tc_api_server_unref(s);
}

void tc_server_shards_end_later(torc_server *s)
{
    for (size_t i = 0; i < s->n_shards; i++)
        if (!atomic_load(&s->shards[i].closed) && !atomic_exchange(&s->shards[i].end_asked, true))
            shard_run(&s->shards[i], &s->shards[i].end);
}

static void on_stop_listening(void *arg)
{
    struct tc_server_shard *home = arg;
    if (home->core)
        tc_server_stop_listening(home->core);
}

int tc_server_shards_end(torc_server *s)
{
    int rc = s->n_shards > 1 ? tc_runtime_do(s->rt, on_stop_listening, s->shards) : 0;
    for (size_t i = s->n_shards; i-- > 0 && rc != TORC_EFORK;)
        rc = tc_runtime_do(s->shards[i].rt, on_end, &s->shards[i]);
    if (rc == TORC_EFORK)
        return rc;
    /* tc_runtime_do fails on a runtime that another thread is freeing. That runtime's shutdown ends the shard: wait for
     * it. If the process exits first, the wait returns TORC_EFORK. */
    rc = 0;
    for (size_t i = 0; i < s->n_shards; i++) {
        struct tc_timed_wait w;
        tc_timed_wait_begin(&w, s->shards[i].rt, &s->shards[i].waits, -1);
        while (rc == 0 && !s->shards[i].gone)
            rc = tc_timed_wait_once(&w);
        tc_timed_wait_end(&w);
    }
    return rc;
}
