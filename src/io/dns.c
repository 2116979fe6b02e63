/* DNS look-ups by c-ares.
 *
 * A struct tc_dns runs one query at a time:
 *
 *   idle      A few hundred bytes. The channel of c-ares, 80 kB, exists only while a query runs, since there may be
 *             thousands of resolvers.
 *   running   c-ares opens sockets and names the events that it waits for (dns_on_socket_state); the loop watches the
 *             sockets. `retry` is c-ares's own next time limit, `timeout` the limit of the whole query.
 *   done      The outcome is in `addrs` or `error`, and the task reports it: never from inside of c-ares, and never
 *             from inside of tc_dns_resolve, even for literals.
 *
 * Each query makes a channel of its own, and so reads resolv.conf and /etc/hosts as they are. Loop thread only. */
#include "io/dns.h"

#include <ares.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "io/descriptor.h"
#include "io/watch.h"

enum { DEFAULT_TIMEOUT_MS = 120000 };

struct dns_socket {
    struct tc_dns *dns;
    struct tc_watch *watch;
    ares_socket_t fd;
};

struct tc_dns {
    struct tc_loop *loop;
    char *servers; /* NULL: the system's */
    uint64_t timeout_ms;
    bool ready; /* `channel` exists */
    ares_channel channel;
    TC_VEC(struct dns_socket *) sockets;
    struct tc_timer retry;   /* the next time limit of c-ares */
    struct tc_timer timeout; /* of the whole query */
    struct tc_task done;     /* tells the outcome */

    bool running;   /* from tc_dns_resolve until the outcome is reported */
    bool abandoned; /* c-ares is being cancelled: its answer is dropped */
    char *host;
    uint16_t port;
    tc_dns_fn fn;
    void *arg;
    TC_VEC(struct tc_addr) addrs;
    struct tc_status error;
};

/* --- the system calls that c-ares uses --- */

/* Sockets close on exec, and a name server that resets a TCP connection raises no SIGPIPE. c-ares does both itself
 * since 1.34, which has other functions for it. */
#if ARES_VERSION < 0x012200

static ares_socket_t dns_open(int family, int type, int protocol, void *arg TC_UNUSED)
{
    return tc_descriptor_socket(family, type, protocol);
}

static int dns_close(ares_socket_t fd, void *arg TC_UNUSED)
{
    return close(fd);
}

static int dns_connect(ares_socket_t fd, const struct sockaddr *sa, ares_socklen_t len, void *arg TC_UNUSED)
{
    return connect(fd, sa, len);
}

static ares_ssize_t dns_receive(ares_socket_t fd, void *buf, size_t len, int flags, struct sockaddr *from,
                                ares_socklen_t *from_len, void *arg TC_UNUSED)
{
    return recvfrom(fd, buf, len, flags, from, from_len);
}

static ares_ssize_t dns_send(ares_socket_t fd, const struct iovec *iov, int n, void *arg TC_UNUSED)
{
    struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n};
    return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static const struct ares_socket_functions socket_functions = {dns_open, dns_close, dns_connect, dns_receive, dns_send};

static void dns_set_functions(ares_channel channel)
{
    ares_set_socket_functions(channel, &socket_functions, NULL);
}
#else
static void dns_set_functions(ares_channel channel TC_UNUSED) {}
#endif

/* --- events of c-ares --- */

static void dns_schedule_retry(struct tc_dns *dns)
{
    struct timeval tv;
    if (!dns->ready || !ares_timeout(dns->channel, NULL, &tv)) {
        tc_timer_stop(&dns->retry);
        return;
    }
    uint64_t ms = (uint64_t)tv.tv_sec * 1000 + (uint64_t)(tv.tv_usec + 999) / 1000;
    tc_timer_start(&dns->retry, TC_MAX(ms, 1));
}

static void dns_on_retry(struct tc_timer *timer)
{
    struct tc_dns *dns = TC_CONTAINER_OF(timer, struct tc_dns, retry);
    ares_process_fd(dns->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    dns_schedule_retry(dns);
}

static void dns_on_socket(void *arg, unsigned events, bool error)
{
    struct dns_socket *s = arg;
    struct tc_dns *dns = s->dns;
    ares_socket_t fd = s->fd;
    bool read = error || (events & TC_WATCH_READ), write = error || (events & TC_WATCH_WRITE);
    /* c-ares may close the socket in here: *s is not touched after it. */
    ares_process_fd(dns->channel, read ? fd : ARES_SOCKET_BAD, write ? fd : ARES_SOCKET_BAD);
    dns_schedule_retry(dns);
}

static void dns_drop_socket(struct tc_dns *dns, size_t i)
{
    tc_watch_close(dns->sockets.data[i]->watch);
    tc_free(dns->sockets.data[i]);
    tc_vec_remove(&dns->sockets, i);
}

/* Called by c-ares with the events that it waits for on a socket. If it waits for neither, it closes the socket. */
static void dns_on_socket_state(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct tc_dns *dns = arg;
    size_t i = 0;
    while (i < dns->sockets.len && dns->sockets.data[i]->fd != fd)
        i++;
    if (!readable && !writable) {
        if (i < dns->sockets.len)
            dns_drop_socket(dns, i);
        return;
    }
    if (i == dns->sockets.len) {
        struct dns_socket *s = TC_NEW(struct dns_socket);
        s->dns = dns;
        s->fd = fd;
        s->watch = tc_watch_new(dns->loop, fd, dns_on_socket, s);
        if (!s->watch) {
            tc_free(s); /* the socket is not watched: the query goes on, or ends, at a time limit */
            return;
        }
        *tc_vec_push(&dns->sockets) = s;
    }
    tc_watch_set(dns->sockets.data[i]->watch, (readable ? TC_WATCH_READ : 0u) | (writable ? TC_WATCH_WRITE : 0u));
}

/* --- channels --- */

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void ares_init_once(void)
{
    ares_library_init(ARES_LIB_INIT_ALL);
}

static void dns_destroy_channel(struct tc_dns *dns)
{
    if (!dns->ready)
        return;
    ares_destroy(dns->channel);
    dns->ready = false;
    tc_timer_stop(&dns->retry);
}

/* Makes the channel. Returns ARES_SUCCESS or an error of c-ares. Sets *bad_servers, which is false on entry, if the
 * given servers caused the error. */
static int dns_make_channel(struct tc_dns *dns, bool *bad_servers)
{
    struct ares_options options = {.sock_state_cb = dns_on_socket_state, .sock_state_cb_data = dns};
    pthread_once(&library_once, ares_init_once);
    int rc = ares_init_options(&dns->channel, &options, ARES_OPT_SOCK_STATE_CB);
    if (rc != ARES_SUCCESS)
        return rc;
    dns->ready = true;
    dns_set_functions(dns->channel);
    if (dns->servers)
        rc = ares_set_servers_ports_csv(dns->channel, dns->servers);
    *bad_servers = rc != ARES_SUCCESS;
    if (*bad_servers)
        dns_destroy_channel(dns);
    return rc;
}

/* --- outcomes --- */

static void dns_fail(struct tc_dns *dns, const char *reason)
{
    tc_status_set(&dns->error,
                  tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_RESOLVER, "DNS resolution failed for %s:%u: %s",
                                 dns->host, (unsigned)dns->port, reason));
    tc_loop_defer(dns->loop, &dns->done);
}

static void dns_fail_to_begin(struct tc_dns *dns, int rc, bool bad_servers)
{
    char *reason = bad_servers
                       ? tc_asprintf("\"" TC_SHOWN "\" is not a list of DNS servers, IP addresses with or without "
                                     "ports: %s",
                                     TC_SHOW(dns->servers), ares_strerror(rc))
                       : tc_strdup(ares_strerror(rc));
    dns_fail(dns, reason);
    tc_free(reason);
}

/* Returns to idle. Must not be called from inside of c-ares. */
static void dns_reset(struct tc_dns *dns)
{
    dns_destroy_channel(dns);
    tc_timer_stop(&dns->timeout);
    tc_task_cancel(&dns->done);
    for (size_t i = 0; i < dns->addrs.len; i++)
        tc_addr_fini(&dns->addrs.data[i]);
    tc_vec_fini(&dns->addrs);
    tc_status_fini(&dns->error);
    dns->error = (struct tc_status){0};
    tc_free(dns->host);
    dns->host = NULL;
    dns->running = false;
}

static void dns_on_done(struct tc_task *task)
{
    struct tc_dns *dns = TC_CONTAINER_OF(task, struct tc_dns, done);
    /* The callee may start the next look-up, or free *dns: the outcome is moved out first. */
    tc_dns_fn fn = dns->fn;
    void *arg = dns->arg;
    struct tc_addr *addrs = dns->addrs.data;
    size_t n = dns->addrs.len;
    struct tc_status error = dns->error;
    dns->addrs.data = NULL;
    dns->addrs.len = dns->addrs.cap = 0;
    dns->error = (struct tc_status){0};
    dns_reset(dns);
    fn(arg, n > 0 ? addrs : NULL, n, n > 0 ? NULL : &error);
    for (size_t i = 0; i < n; i++)
        tc_addr_fini(&addrs[i]);
    tc_free(addrs);
    tc_status_fini(&error);
}

static void dns_take_addresses(struct tc_dns *dns, const struct ares_addrinfo *result)
{
    for (const struct ares_addrinfo_node *node = result->nodes; node; node = node->ai_next) {
        struct tc_addr a;
        if (tc_addr_from_sockaddr(&a, node->ai_addr, (socklen_t)node->ai_addrlen) != 0)
            continue;
        if (tc_addr_family(&a) == AF_INET)
            a.sa.in.sin_port = htons(dns->port);
        else
            a.sa.in6.sin6_port = htons(dns->port);
        *tc_vec_push(&dns->addrs) = a;
    }
}

static void dns_on_answer(void *arg, int status, int timeouts TC_UNUSED, struct ares_addrinfo *result)
{
    struct tc_dns *dns = arg;
    if (!dns->abandoned) {
        tc_timer_stop(&dns->timeout);
        if (status == ARES_SUCCESS)
            dns_take_addresses(dns, result);
        if (dns->addrs.len > 0)
            tc_loop_defer(dns->loop, &dns->done);
        else
            dns_fail(dns, ares_strerror(status == ARES_SUCCESS ? ARES_ENODATA : status));
    }
    if (result)
        ares_freeaddrinfo(result);
}

/* Cancels the query of c-ares, without outcome. */
static void dns_abandon(struct tc_dns *dns)
{
    dns->abandoned = true;
    if (dns->ready)
        ares_cancel(dns->channel);
    dns->abandoned = false;
    tc_timer_stop(&dns->retry);
}

static void dns_on_timeout(struct tc_timer *timer)
{
    struct tc_dns *dns = TC_CONTAINER_OF(timer, struct tc_dns, timeout);
    dns_abandon(dns);
    char *reason = tc_asprintf("no answer within %llu ms", (unsigned long long)dns->timeout_ms);
    dns_fail(dns, reason);
    tc_free(reason);
}

struct tc_dns *tc_dns_new(struct tc_loop *loop, const struct tc_dns_opts *opts)
{
    struct tc_dns *dns = TC_NEW(struct tc_dns);
    dns->loop = loop;
    dns->servers = opts && opts->servers ? tc_strdup(opts->servers) : NULL;
    dns->timeout_ms = opts && opts->timeout_ms ? opts->timeout_ms : DEFAULT_TIMEOUT_MS;
    tc_timer_init(&dns->retry, loop, dns_on_retry);
    tc_timer_init(&dns->timeout, loop, dns_on_timeout);
    tc_task_init(&dns->done, dns_on_done);
    return dns;
}

int tc_dns_resolve(struct tc_dns *dns, const char *host, uint16_t port, tc_dns_fn fn, void *arg)
{
    if (dns->running)
        return TORC_ESTATE;
    dns->running = true;
    dns->host = tc_strdup(host);
    dns->port = port;
    dns->fn = fn;
    dns->arg = arg;
    struct tc_addr literal;
    if (tc_addr_from_ip(&literal, tc_slice_str(host), port) == 0) {
        *tc_vec_push(&dns->addrs) = literal;
        tc_loop_defer(dns->loop, &dns->done);
        return 0;
    }
    if (host[0] == 0) { /* c-ares would ask for the root */
        dns_fail(dns, "the name is empty");
        return 0;
    }
    if (!tc_loop_uv(dns->loop)) {
        dns_fail(dns, "a manual loop has no network");
        return 0;
    }
    bool bad_servers = false;
    int rc = dns_make_channel(dns, &bad_servers);
    if (rc != ARES_SUCCESS) {
        dns_fail_to_begin(dns, rc, bad_servers);
        return 0;
    }
    tc_timer_start(&dns->timeout, dns->timeout_ms);
    const struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    ares_getaddrinfo(dns->channel, host, NULL, &hints, dns_on_answer, dns); /* may answer at once, from /etc/hosts */
    dns_schedule_retry(dns);
    return 0;
}

void tc_dns_cancel(struct tc_dns *dns)
{
    if (!dns->running)
        return;
    dns_abandon(dns);
    dns_reset(dns);
}

void tc_dns_free(struct tc_dns *dns)
{
    if (!dns)
        return;
    tc_dns_cancel(dns);
    while (dns->sockets.len > 0)
        dns_drop_socket(dns, dns->sockets.len - 1);
    tc_vec_fini(&dns->sockets);
    tc_free(dns->servers);
    tc_free(dns);
}
