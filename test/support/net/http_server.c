/* An HTTP/1 server for tests, on a thread.
 *
 * One poll loop over the listener and the links (one for each client). A link reads a request's head and calls the
 * test's function, which chooses: answer, tunnel, hang or close, after a delay. poll waits at most until the next
 * delay ends. drop() closes a link that is over, and moves the last link of the array to its place. Links belong to the
 * thread, and to http_server_free once the thread has ended. */
#include "support/net/http_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"

enum state { HEAD, DELAY, HANG, TUNNEL };

struct link {
    enum state state;
    int client, target;             /* target -1: none */
    uint64_t due_ns;                /* of DELAY */
    struct tc_buf head;             /* read so far */
    struct http_server_reply reply; /* of the test's function, from DELAY on; its text is owned */
};

struct http_server {
    pthread_t thread;
    http_server_fn fn;
    void *arg;
    int listener;
    int wake[2]; /* a pipe: closing the write end ends the thread */
    char *address;
    TC_VEC(struct link) links;
    TC_VEC(struct pollfd) fds;
};

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

static void drop(struct http_server *s, size_t i)
{
    struct link *l = &s->links.data[i];
    close(l->client);
    if (l->target >= 0)
        close(l->target);
    tc_buf_fini(&l->head);
    tc_free(l->reply.text);
    *l = s->links.data[--s->links.len];
}

static bool send_all(int fd, const char *data, size_t n)
{
    for (ssize_t k; n > 0; data += k, n -= (size_t)k) {
        k = send(fd, data, n, MSG_NOSIGNAL);
        if (k <= 0)
            return false;
    }
    return true;
}

static bool forward(int from, int to)
{
    char bytes[65536];
    ssize_t n = read(from, bytes, sizeof(bytes));
    return n > 0 && send_all(to, bytes, (size_t)n);
}

/* Connects to the port of "CONNECT host:PORT HTTP/1.1". Returns false if it cannot connect. */
static bool connect_target(struct link *l)
{
    const char *line = tc_buf_cstr(&l->head), *colon = strchr(line, '\r');
    while (colon > line && colon[-1] != ':')
        colon--;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(colon, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    l->target = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return l->target >= 0 && connect(l->target, (struct sockaddr *)&at, sizeof(at)) == 0;
}

/* Does what the reply says, once the delay is over. Returns false when the link is over. */
static bool carry_out(struct link *l)
{
    struct http_server_reply *r = &l->reply;
    if (r->what == HTTP_SERVER_HANG) {
        l->state = HANG;
        return true;
    }
    if (r->what == HTTP_SERVER_CLOSE || (r->what == HTTP_SERVER_TUNNEL && !connect_target(l)) ||
        !send_all(l->client, r->text, strlen(r->text)))
        return false;
    l->state = TUNNEL;
    return r->what == HTTP_SERVER_TUNNEL;
}

/* Reads more of the head, and asks the test's function once the head is complete. Returns false if the client has
 * closed. */
static bool read_head(struct http_server *s, struct link *l)
{
    char bytes[4096];
    ssize_t n = read(l->client, bytes, sizeof(bytes));
    if (n <= 0)
        return false;
    tc_buf_append(&l->head, bytes, (size_t)n);
    if (tc_slice_find(tc_buf_slice(&l->head), tc_slice_str("\r\n\r\n")) < 0)
        return true;
    l->reply = s->fn(tc_buf_cstr(&l->head), s->arg);
    l->due_ns = now_ns() + l->reply.delay_ms * TC_NS_PER_MS;
    l->state = DELAY;
    return true;
}

/* Does what is due on a link. `client` and `target` say which of the two sockets is readable. Returns false when the
 * link is over. */
static bool serve_link(struct http_server *s, struct link *l, bool client, bool target)
{
    char byte;
    switch (l->state) {
    case HEAD:
        return !client || read_head(s, l);
    case DELAY:
        return now_ns() < l->due_ns || carry_out(l);
    case HANG:
        return !client || read(l->client, &byte, 1) > 0;
    default:
        return (!client || forward(l->client, l->target)) && (!target || forward(l->target, l->client));
    }
}

/* Returns the milliseconds until the next delay ends, or -1 if no link is in DELAY. */
static int next_due(const struct http_server *s)
{
    uint64_t now = now_ns(), least = UINT64_MAX;
    for (size_t i = 0; i < s->links.len; i++)
        if (s->links.data[i].state == DELAY)
            least = TC_MIN(least, s->links.data[i].due_ns > now ? s->links.data[i].due_ns - now : 0);
    return least == UINT64_MAX ? -1 : (int)((least + TC_NS_PER_MS - 1) / TC_NS_PER_MS);
}

static void watch_all(struct http_server *s)
{
    s->fds.len = 0;
    *tc_vec_push(&s->fds) = (struct pollfd){s->wake[0], POLLIN, 0};
    *tc_vec_push(&s->fds) = (struct pollfd){s->listener, POLLIN, 0};
    for (size_t i = 0; i < s->links.len; i++) {
        const struct link *l = &s->links.data[i];
        *tc_vec_push(&s->fds) = (struct pollfd){l->state == DELAY ? -1 : l->client, POLLIN, 0};
        *tc_vec_push(&s->fds) = (struct pollfd){l->state == TUNNEL ? l->target : -1, POLLIN, 0};
    }
}

static void *run(void *arg)
{
    struct http_server *s = arg;
    for (;;) {
        watch_all(s);
        if (poll(s->fds.data, (nfds_t)s->fds.len, next_due(s)) < 0)
            continue;
        if (s->fds.data[0].revents)
            return NULL;
        for (size_t i = s->links.len; i-- > 0;)
            if (!serve_link(s, &s->links.data[i], s->fds.data[2 + 2 * i].revents, s->fds.data[3 + 2 * i].revents))
                drop(s, i);
        int client = s->fds.data[1].revents ? accept(s->listener, NULL, NULL) : -1;
        if (client >= 0)
            *tc_vec_push(&s->links) = (struct link){.client = client, .target = -1};
    }
}

struct http_server *http_server_new(http_server_fn fn, void *arg)
{
    struct http_server *s = TC_NEW(struct http_server);
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    s->fn = fn;
    s->arg = arg;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->listener >= 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(s->listener, 64), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&sa, &len), 0);
    s->address = tc_asprintf("127.0.0.1:%u", ntohs(sa.sin_port));
    assert_int_equal(pipe(s->wake), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
    return s;
}

void http_server_free(struct http_server *s)
{
    close(s->wake[1]);
    pthread_join(s->thread, NULL);
    while (s->links.len)
        drop(s, 0);
    close(s->wake[0]);
    close(s->listener);
    tc_vec_fini(&s->links);
    tc_vec_fini(&s->fds);
    tc_free(s->address);
    tc_free(s);
}

const char *http_server_address(const struct http_server *s)
{
    return s->address;
}
