/* Hosts, and how connections begin.
 *
 * An attempt to connect takes a round trip of two equal delays. The state of the host after the first delay decides: if
 * it listens, the server's loop gets its end of the connection then; a refusal comes back after the second delay; a
 * silent host never answers. */
#include "sim/net.h"

#include "base/mem.h"
#include "io/connect.h"
#include "io/listen.h"
#include "sim/net_internal.h"
#include "sim/trace.h"

struct host {
    char *address;
    enum sim_host_mode mode;
    uint64_t attempts;
    unsigned silenced;                 /* connections that became half-open */
    struct tc_listen_socket *listener; /* NULL: nobody listens */
};

struct tc_listen_socket {
    struct tc_loop *loop;
    struct tc_addr addr;
    struct tc_task accept;
    TC_VEC(struct sim_end *) accepted; /* ends that the owner has not got yet */
    tc_accept_fn fn;
    void *arg;
    bool held;
};

struct tc_connect {
    struct tc_loop *loop;
    struct tc_addr addr;
    char *text;
    struct tc_connect_opts opts;
    uint64_t delay_ns;
    struct sim_event step;
    struct tc_timer timer;
    struct tc_task done;
    struct sim_connection *connection; /* NULL: refused, or not there yet */
    bool answered;
    tc_connect_fn fn;
    void *arg;
};

static struct sim_net_options options;
static TC_VEC(struct host) hosts;
static uint64_t last_fault_ns;

/* --- hosts --- */

static struct host *host_find(const char *address)
{
    for (size_t i = 0; i < hosts.len; i++)
        if (strcmp(hosts.data[i].address, address) == 0)
            return &hosts.data[i];
    return NULL;
}

void sim_net_begin(const struct sim_net_options *given)
{
    options = *given;
}

void sim_net_end(void)
{
    if (!tc_list_empty(sim_connections()))
        sim_violation("a connection is left at the end");
    for (size_t i = 0; i < hosts.len; i++)
        tc_free(hosts.data[i].address);
    tc_vec_fini(&hosts);
}

void sim_host_set(const char *address, enum sim_host_mode mode)
{
    struct host *h = host_find(address);
    if (!h) {
        h = tc_vec_push(&hosts);
        h->address = tc_strdup(address);
    }
    h->mode = mode;
}

enum sim_host_mode sim_host_mode(const char *address)
{
    const struct host *h = host_find(address);
    return h ? h->mode : SIM_HOST_REFUSES;
}

uint64_t sim_host_attempts(const char *address)
{
    const struct host *h = host_find(address);
    return h ? h->attempts : 0;
}

unsigned sim_host_silenced(const char *address)
{
    const struct host *h = host_find(address);
    return h ? h->silenced : 0;
}

static bool connection_is_open(const struct sim_connection *c)
{
    return !c->ends[0].failed && !c->ends[0].closed && !c->ends[1].closed && !c->silent;
}

void sim_host_break(const char *address, bool silent)
{
    TC_LIST_FOREACH(it, sim_connections())
    {
        struct sim_connection *c = TC_CONTAINER_OF(it, struct sim_connection, link);
        if (strcmp(c->address, address) != 0 || c->ends[0].failed)
            continue;
        sim_net_note_fault(sim_now_ns());
        if (silent)
            sim_connection_silence(c);
        else
            sim_connection_reset(c);
    }
}

size_t sim_host_connections(const char *address)
{
    size_t n = 0;
    TC_LIST_FOREACH(it, sim_connections())
    {
        const struct sim_connection *c = TC_CONTAINER_OF(it, struct sim_connection, link);
        n += connection_is_open(c) && strcmp(c->address, address) == 0;
    }
    return n;
}

/* --- faults of one connection --- */

void sim_net_note_fault(uint64_t until_ns)
{
    last_fault_ns = TC_MAX(last_fault_ns, until_ns);
}

uint64_t sim_net_last_fault_ns(void)
{
    TC_LIST_FOREACH(it, sim_connections())
    {
        const struct sim_connection *c = TC_CONTAINER_OF(it, struct sim_connection, link);
        if (c->silent && !c->ends[0].closed)
            return UINT64_MAX;
    }
    return last_fault_ns;
}

size_t sim_net_open(void)
{
    size_t n = 0;
    TC_LIST_FOREACH(it, sim_connections())
    n += connection_is_open(TC_CONTAINER_OF(it, struct sim_connection, link));
    return n;
}

static struct sim_connection *net_choose(uint64_t which)
{
    size_t open = sim_net_open(), at = open > 0 ? (size_t)(which % open) : 0;
    TC_LIST_FOREACH(it, sim_connections())
    {
        struct sim_connection *c = TC_CONTAINER_OF(it, struct sim_connection, link);
        if (connection_is_open(c) && at-- == 0)
            return c;
    }
    return NULL;
}

bool sim_net_reset_one(uint64_t which)
{
    struct sim_connection *c = net_choose(which);
    if (!c)
        return false;
    sim_story("connection %llu to %s is reset", (unsigned long long)c->id, c->address);
    sim_net_note_fault(sim_now_ns());
    sim_connection_reset(c);
    return true;
}

bool sim_net_stall_one(uint64_t which, uint64_t us)
{
    struct sim_connection *c = net_choose(which);
    if (!c)
        return false;
    sim_story("connection %llu to %s stands still for %llu ms", (unsigned long long)c->id, c->address,
              (unsigned long long)(us / 1000));
    c->stalled_until_ns = sim_now_ns() + us * 1000;
    sim_net_note_fault(c->stalled_until_ns);
    return true;
}

bool sim_net_cut_one(uint64_t which, size_t after_bytes)
{
    struct sim_connection *c = net_choose(which);
    if (!c)
        return false;
    c->cut_after = after_bytes;
    return true;
}

bool sim_net_silence_one(uint64_t which)
{
    struct sim_connection *c = net_choose(which);
    if (!c)
        return false;
    sim_story("connection %llu to %s is half-open from now on", (unsigned long long)c->id, c->address);
    host_find(c->address)->silenced++;
    sim_net_note_fault(sim_now_ns());
    sim_connection_silence(c);
    return true;
}

/* --- connecting --- */

static void connect_free(struct tc_connect *c)
{
    sim_event_stop(&c->step);
    tc_timer_stop(&c->timer);
    tc_task_cancel(&c->done);
    tc_addr_fini(&c->addr);
    tc_free(c->text);
    tc_free(c);
}

static void connect_fail(struct tc_connect *c, const char *reason)
{
    tc_connect_fn fn = c->fn;
    void *arg = c->arg;
    struct tc_status error =
        tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "failed to connect to %s%s: %s",
                       c->opts.proxy ? "the proxy " : "", c->text, reason);
    connect_free(c);
    fn(arg, NULL, &error);
    tc_status_fini(&error);
}

static void connect_on_done(struct tc_task *task)
{
    struct tc_connect *c = TC_CONTAINER_OF(task, struct tc_connect, done);
    if (!c->connection) {
        sim_count(SIM_COUNT_CONNECTS_REFUSED);
        connect_fail(c, "Connection refused");
        return;
    }
    struct tc_bytestream *bs = &c->connection->ends[0].bs;
    tc_connect_fn fn = c->fn;
    void *arg = c->arg;
    connect_free(c);
    fn(arg, bs, NULL);
}

static void connect_on_timeout(struct tc_timer *timer)
{
    struct tc_connect *c = TC_CONTAINER_OF(timer, struct tc_connect, timer);
    char *reason = tc_asprintf("timed out after %llu ms", (unsigned long long)c->opts.timeout_ms);
    if (c->connection)
        c->connection->ends[0].bs.ops->close(&c->connection->ends[0].bs);
    connect_fail(c, reason);
    tc_free(reason);
}

static struct sim_connection *connect_open(struct tc_connect *c, struct tc_listen_socket *l)
{
    struct sim_connection *connection = sim_connection_new(c->loop, l->loop, &c->addr);
    const uint64_t linux_default_ms = 900000;
    connection->delay_ns = c->delay_ns;
    connection->buffer_bytes = options.buffer_bytes;
    connection->user_timeout_ns = (c->opts.user_timeout_ms ? c->opts.user_timeout_ms : linux_default_ms) * TC_NS_PER_MS;
    if (sim_happens(SIM_CHANCE_NET, options.cut_per_mille))
        connection->cut_after = (size_t)sim_below(SIM_CHANCE_NET, 5000);
    *tc_vec_push(&l->accepted) = &connection->ends[1];
    tc_loop_defer(l->loop, &l->accept);
    return connection;
}

static void connect_on_step(struct sim_event *event)
{
    struct tc_connect *c = TC_CONTAINER_OF(event, struct tc_connect, step);
    if (c->answered) {
        tc_timer_stop(&c->timer);
        tc_loop_defer(c->loop, &c->done);
        return;
    }
    struct host *h = host_find(c->text);
    if (h && h->mode == SIM_HOST_SILENT) {
        sim_count(SIM_COUNT_CONNECTS_SILENT);
        return;
    }
    c->answered = true;
    if (h && h->listener && h->mode == SIM_HOST_UP)
        c->connection = connect_open(c, h->listener);
    sim_detail("connect to %s: %s", c->text, c->connection ? "accepted" : "refused");
    sim_event_at(&c->step, sim_now_ns() + c->delay_ns);
}

struct tc_connect *tc_connect_start(struct tc_loop *loop, const struct tc_addr *addr,
                                    const struct tc_connect_opts *opts, tc_connect_fn fn, void *arg)
{
    struct tc_connect *c = TC_NEW(struct tc_connect);
    c->loop = loop;
    c->addr = tc_addr_ref(addr);
    c->text = tc_addr_text(addr);
    if (opts)
        c->opts = *opts;
    c->fn = fn;
    c->arg = arg;
    c->delay_ns =
        1000 * (options.delay_min_us + sim_below(SIM_CHANCE_NET, options.delay_max_us - options.delay_min_us + 1));
    tc_timer_init(&c->timer, loop, connect_on_timeout);
    tc_task_init(&c->done, connect_on_done);
    sim_event_init(&c->step, connect_on_step);
    sim_event_at(&c->step, sim_now_ns() + c->delay_ns);
    if (c->opts.timeout_ms > 0)
        tc_timer_start(&c->timer, c->opts.timeout_ms);
    struct host *h = host_find(c->text);
    if (h)
        h->attempts++;
    sim_count(SIM_COUNT_CONNECTS);
    return c;
}

void tc_connect_cancel(struct tc_connect *c)
{
    if (c->connection)
        c->connection->ends[0].bs.ops->close(&c->connection->ends[0].bs);
    connect_free(c);
}

/* --- listening --- */

static void listen_on_accept(struct tc_task *task)
{
    struct tc_listen_socket *l = TC_CONTAINER_OF(task, struct tc_listen_socket, accept);
    while (l->accepted.len > 0 && !l->held) {
        struct sim_end *end = l->accepted.data[0];
        tc_vec_remove(&l->accepted, 0);
        l->fn(l->arg, &end->bs);
    }
}

struct tc_listen_socket *tc_listen_socket_new(struct tc_loop *loop, const struct tc_addr *addr, tc_accept_fn fn,
                                              void *arg, struct tc_status *error)
{
    char *text = tc_addr_text(addr);
    struct host *h = host_find(text);
    struct tc_listen_socket *l = NULL;
    if (!h || h->listener) {
        tc_status_set(error,
                      tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT, "failed to listen on %s", text));
    } else {
        l = TC_NEW(struct tc_listen_socket);
        l->loop = loop;
        l->addr = tc_addr_ref(addr);
        l->fn = fn;
        l->arg = arg;
        tc_task_init(&l->accept, listen_on_accept);
        h->listener = l;
    }
    tc_free(text);
    return l;
}

struct tc_listen_socket *tc_listen_socket_adopt(struct tc_loop *loop TC_UNUSED, int fd, tc_accept_fn fn TC_UNUSED,
                                                void *arg TC_UNUSED, struct tc_status *error)
{
    tc_status_set(error, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT,
                                        "failed to listen on fd:%d: this world has no descriptors", fd));
    return NULL;
}

void tc_listen_socket_hold(struct tc_listen_socket *l, bool hold)
{
    l->held = hold;
    tc_loop_defer(l->loop, &l->accept);
}

const struct tc_addr *tc_listen_socket_addr(const struct tc_listen_socket *l)
{
    return &l->addr;
}

void tc_listen_socket_close(struct tc_listen_socket *l)
{
    for (size_t i = 0; i < hosts.len; i++)
        if (hosts.data[i].listener == l)
            hosts.data[i].listener = NULL;
    for (size_t i = 0; i < l->accepted.len; i++)
        l->accepted.data[i]->bs.ops->close(&l->accepted.data[i]->bs);
    tc_task_cancel(&l->accept);
    tc_vec_fini(&l->accepted);
    tc_addr_fini(&l->addr);
    tc_free(l);
}
