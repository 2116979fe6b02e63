/* Hosts, and how connections begin.
 *
 * An attempt to connect takes a round trip of two equal delays. After the first delay the host decides. If it is up and
 * a server listens, the server's end is queued at its listener then; the client hears of the connection, or of a
 * refusal, after the second delay. A silent host never answers: the attempt waits for its timeout, if it has one, or
 * tc_connect_cancel.
 *
 * An attempt owns the client's end until its tc_connect_fn gets it, and a listener owns the server's ends until its
 * tc_accept_fn gets them; an attempt that is given up and a listener that is closed close their ends. Hosts stay until
 * tc_net_end; a pointer to one is valid until the next host_get. Any thread of the world (testing/threads.h): no lock
 * guards the hosts. */
#include "testing/net.h"

#include "base/mem.h"
#include "io/connect.h"
#include "io/listen.h"
#include "testing/net_internal.h"
#include "testing/observer.h"

struct host {
    char *address;
    enum tc_host_mode mode;
    uint64_t attempts;
    unsigned silenced;                 /* tc_host_add_silenced */
    struct tc_listen_socket *listener; /* borrowed; NULL: nobody listens */
};

struct tc_listen_socket {
    struct tc_loop *loop;
    struct tc_addr addr;
    struct tc_task accept;                 /* hands the first of `accepted` to fn */
    TC_VEC(struct tc_net_side *) accepted; /* ends that the owner has not got yet */
    tc_accept_fn fn;
    void *arg;
    uint64_t user_timeout_ms; /* of connections; 0: the system's default */
    bool held;                /* fn is not called */
};

struct tc_connect {
    struct tc_loop *loop;
    struct tc_addr addr;
    char *text; /* of addr; owned */
    struct tc_connect_opts opts;
    uint64_t delay_ns;                    /* one way */
    struct tc_world_event step;           /* the end of the first delay, then of the second */
    struct tc_timer timer;                /* opts.timeout_ms */
    struct tc_task done;                  /* calls fn with the connection or the refusal */
    struct tc_net_connection *connection; /* NULL: refused, or not there yet */
    bool answered;                        /* the host has decided */
    tc_connect_fn fn;
    void *arg;
};

/* The first port for listeners that ask for port 0. */
enum { FIRST_PORT = 49152 };

static struct tc_net_options options;
static uint16_t next_port;
static TC_VEC(struct host) hosts;

/* Returns the port in network order; 0: the address has none. */
static in_port_t addr_port(const struct tc_addr *addr)
{
    if (tc_addr_family(addr) == AF_INET)
        return addr->sa.in.sin_port;
    return tc_addr_family(addr) == AF_INET6 ? addr->sa.in6.sin6_port : 0;
}

/* --- hosts --- */

/* Returns NULL for an unknown address. */
static struct host *host_find(const char *address)
{
    for (size_t i = 0; i < hosts.len; i++)
        if (strcmp(hosts.data[i].address, address) == 0)
            return &hosts.data[i];
    return NULL;
}

void tc_net_begin(const struct tc_net_options *given)
{
    options = *given;
    next_port = FIRST_PORT;
    tc_net_connection_number_from(0);
}

void tc_net_set_delay(uint64_t us)
{
    options.delay_min_us = options.delay_max_us = us;
}

bool tc_net_end(void)
{
    for (size_t i = 0; i < hosts.len; i++)
        tc_free(hosts.data[i].address);
    tc_vec_fini(&hosts);
    return tc_list_empty(tc_net_connections());
}

/* Returns the host, which is made if it is not known. */
static struct host *host_get(const char *address)
{
    struct host *h = host_find(address);
    if (!h) {
        h = tc_vec_push(&hosts);
        *h = (struct host){.address = tc_strdup(address)};
    }
    return h;
}

void tc_host_set(const char *address, enum tc_host_mode mode)
{
    host_get(address)->mode = mode;
}

enum tc_host_mode tc_host_mode(const char *address)
{
    const struct host *h = host_find(address);
    return h ? h->mode : TC_HOST_REFUSES;
}

uint64_t tc_host_attempts(const char *address)
{
    const struct host *h = host_find(address);
    return h ? h->attempts : 0;
}

void tc_host_add_silenced(const char *address)
{
    struct host *h = host_find(address);
    if (h)
        h->silenced++;
}

unsigned tc_host_silenced(const char *address)
{
    const struct host *h = host_find(address);
    return h ? h->silenced : 0;
}

bool tc_net_connection_is_open(const struct tc_net_connection *c)
{
    return tc_net_connection_is_held(c) && !c->silent;
}

bool tc_net_connection_is_held(const struct tc_net_connection *c)
{
    return !c->ends[0].failed && !c->ends[0].closed && !c->ends[1].failed && !c->ends[1].closed;
}

size_t tc_host_break(const char *address, bool silent)
{
    size_t n = 0;
    TC_LIST_FOREACH(it, tc_net_connections())
    {
        struct tc_net_connection *c = TC_CONTAINER_OF(it, struct tc_net_connection, link);
        if (strcmp(c->address, address) != 0 || (c->ends[0].failed && c->ends[1].failed))
            continue;
        n += tc_net_connection_is_held(c);
        tc_world_note_fault(tc_world_now_ns());
        if (silent)
            tc_net_connection_silence(c);
        else
            tc_net_connection_reset(c);
    }
    return n;
}

size_t tc_host_stall(const char *address, uint64_t until_ns)
{
    size_t n = 0;
    TC_LIST_FOREACH(it, tc_net_connections())
    {
        struct tc_net_connection *c = TC_CONTAINER_OF(it, struct tc_net_connection, link);
        if (!tc_net_connection_is_held(c) || strcmp(c->address, address) != 0)
            continue;
        c->stalled_until_ns = TC_MAX(c->stalled_until_ns, until_ns);
        n++;
    }
    return n;
}

size_t tc_host_connections(const char *address)
{
    size_t n = 0;
    TC_LIST_FOREACH(it, tc_net_connections())
    {
        const struct tc_net_connection *c = TC_CONTAINER_OF(it, struct tc_net_connection, link);
        n += tc_net_connection_is_open(c) && strcmp(c->address, address) == 0;
    }
    return n;
}

/* --- connecting --- */

/* Does not close the connection. */
static void connect_free(struct tc_connect *c)
{
    tc_world_event_stop(&c->step);
    tc_timer_stop(&c->timer);
    tc_task_cancel(&c->done);
    tc_addr_fini(&c->addr);
    tc_free(c->text);
    tc_free(c);
}

/* Frees the attempt and calls fn with an error. */
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
        tc_world_note(TC_WORLD_CONNECTS_REFUSED);
        tc_world_note_connect(c->loop, c->text, true);
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

/* Returns TCP_USER_TIMEOUT in ns, or for 0 Linux's default, a quarter of an hour. */
static uint64_t user_timeout_ns(uint64_t ms)
{
    const uint64_t linux_default_ms = 900000;
    return (ms ? ms : linux_default_ms) * TC_NS_PER_MS;
}

/* Makes the connection of an attempt, with the options of the network, and queues the server's end at the listener. The
 * attempt owns the client's end. */
static struct tc_net_connection *connect_open(struct tc_connect *c, struct tc_listen_socket *l)
{
    struct tc_net_connection *connection = tc_net_connection_new(c->loop, l->loop, &c->addr);
    connection->delay_ns = c->delay_ns;
    connection->buffer_bytes = options.buffer_bytes;
    connection->ends[0].user_timeout_ns = user_timeout_ns(c->opts.user_timeout_ms);
    connection->ends[1].user_timeout_ns = user_timeout_ns(l->user_timeout_ms);
    if (tc_world_happens(TC_CHANCE_NET, options.cut_per_mille))
        connection->cut_after = (size_t)tc_world_below(TC_CHANCE_NET, 5000);
    *tc_vec_push(&l->accepted) = &connection->ends[1];
    tc_loop_defer(l->loop, &l->accept);
    return connection;
}

/* Returns the listener of a wildcard address that takes connections to `addr`, or NULL. The wildcard of IPv6 takes
 * connections to IPv4 addresses, too. */
static struct tc_listen_socket *listener_of_any(const struct tc_addr *addr)
{
    for (size_t i = 0; i < hosts.len; i++) {
        struct tc_listen_socket *l = hosts.data[i].listener;
        int family = l ? tc_addr_family(&l->addr) : AF_UNSPEC;
        bool is_any = (family == AF_INET && l->addr.sa.in.sin_addr.s_addr == htonl(INADDR_ANY) &&
                       tc_addr_family(addr) == AF_INET) ||
                      (family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&l->addr.sa.in6.sin6_addr));
        if (is_any && addr_port(addr) != 0 && addr_port(addr) == addr_port(&l->addr))
            return l;
    }
    return NULL;
}

static void connect_on_step(struct tc_world_event *event)
{
    struct tc_connect *c = TC_CONTAINER_OF(event, struct tc_connect, step);
    if (c->answered) {
        tc_timer_stop(&c->timer);
        tc_loop_defer(c->loop, &c->done);
        return;
    }
    const struct host *h = host_find(c->text);
    if (h && h->mode == TC_HOST_SILENT) {
        tc_world_note(TC_WORLD_CONNECTS_SILENT);
        return;
    }
    c->answered = true;
    struct tc_listen_socket *l = h && h->listener ? h->listener : listener_of_any(&c->addr);
    if (l && (!h || h->mode == TC_HOST_UP))
        c->connection = connect_open(c, l);
    tc_world_detail("connect to %s: %s", c->text, c->connection ? "accepted" : "refused");
    tc_world_event_at(&c->step, tc_world_now_ns() + c->delay_ns);
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
        1000 * (options.delay_min_us + tc_world_below(TC_CHANCE_NET, options.delay_max_us - options.delay_min_us + 1));
    tc_timer_init(&c->timer, loop, connect_on_timeout);
    tc_task_init(&c->done, connect_on_done);
    tc_world_event_init(&c->step, connect_on_step);
    tc_world_event_at(&c->step, tc_world_now_ns() + c->delay_ns);
    if (c->opts.timeout_ms > 0)
        tc_timer_start(&c->timer, c->opts.timeout_ms);
    struct host *h = host_find(c->text);
    if (h)
        h->attempts++;
    tc_world_note(TC_WORLD_CONNECTS);
    tc_world_note_connect(loop, c->text, false);
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
    if (l->accepted.len == 0 || l->held)
        return;
    struct tc_net_side *end = l->accepted.data[0];
    tc_vec_remove(&l->accepted, 0);
    if (l->accepted.len > 0)
        tc_loop_defer(l->loop, &l->accept);
    l->fn(l->arg, &end->bs); /* may close the listener */
}

static bool is_listened_on(const struct tc_addr *addr)
{
    char *text = tc_addr_text(addr);
    const struct host *h = host_find(text);
    tc_free(text);
    return h && h->listener;
}

/* Returns the address with a port of the world's choice instead of port 0; the caller owns it. The port is free, unless
 * listeners have all ports of the address from FIRST_PORT on. */
static struct tc_addr listen_addr(const struct tc_addr *addr)
{
    struct tc_addr own = tc_addr_ref(addr);
    bool is_ip = tc_addr_family(addr) == AF_INET || tc_addr_family(addr) == AF_INET6;
    if (!is_ip || addr_port(addr) != 0)
        return own;
    in_port_t *port = tc_addr_family(addr) == AF_INET ? &own.sa.in.sin_port : &own.sa.in6.sin6_port;
    for (int tries = FIRST_PORT; tries <= UINT16_MAX && (*port == 0 || is_listened_on(&own)); tries++) {
        *port = htons(next_port);
        next_port = next_port < UINT16_MAX ? (uint16_t)(next_port + 1) : (uint16_t)FIRST_PORT;
    }
    return own;
}

struct tc_listen_socket *tc_listen_socket_new(struct tc_loop *loop, const struct tc_addr *addr, tc_accept_fn fn,
                                              void *arg, struct tc_status *error)
{
    struct tc_addr own = listen_addr(addr);
    char *text = tc_addr_text(&own);
    struct host *h = host_get(text);
    struct tc_listen_socket *l = NULL;
    if (h->listener) {
        tc_status_set(error, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT,
                                            "failed to listen on %s: Address already in use", text));
        tc_addr_fini(&own);
    } else {
        l = TC_NEW(struct tc_listen_socket);
        l->loop = loop;
        l->addr = own;
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

void tc_listen_socket_set_user_timeout(struct tc_listen_socket *l, uint64_t ms)
{
    l->user_timeout_ms = ms;
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
