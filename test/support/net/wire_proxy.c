/* A TCP proxy on a thread.
 *
 * One poll loop over the listener and pairs of sockets; a pair is a client and its connection to the target. `hold`
 * stops reading. Changes of `hold` are counted (`asked`, `heard`), so that wire_proxy_hold can wait until the thread
 * has seen its change. The thread owns the pairs; wire_proxy_free closes those that are left once the thread has ended.
 */
#include "support/net/wire_proxy.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "base/mem.h"
#include "io/addr.h"

#define MAX_PAIRS 8

struct wire_proxy {
    pthread_t thread;
    int listener;
    int wake[2]; /* a pipe: closing the write end ends the thread */
    struct tc_addr target;
    char *address;
    int pairs[MAX_PAIRS][2]; /* client, target */
    size_t n;                /* pairs */
    atomic_uint_fast64_t received, sent;
    pthread_mutex_t lock;
    struct tc_buf seen[2];  /* under the lock: from the client, from the target */
    unsigned taken;         /* connections; under the lock */
    unsigned asked, heard;  /* changes of `hold`, and how many the thread has seen; under the lock */
    pthread_cond_t changed; /* signalled when `taken` or `heard` changes */
    atomic_bool hold;
    int stirred[2]; /* a pipe: a byte for each change of `hold` */
};

#define MAX_SEEN (8u << 20)

/* Returns a listening socket, and in *address its "127.0.0.1:PORT", which the caller frees with tc_free. */
static int listen_somewhere(char **address)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    *address = tc_asprintf("127.0.0.1:%u", ntohs(sa.sin_port));
    return fd;
}

static void drop_pair(struct wire_proxy *p, size_t i)
{
    close(p->pairs[i][0]);
    close(p->pairs[i][1]);
    p->n--;
    p->pairs[i][0] = p->pairs[p->n][0];
    p->pairs[i][1] = p->pairs[p->n][1];
}

static void take_connection(struct wire_proxy *p)
{
    int client = accept(p->listener, NULL, NULL);
    if (client < 0)
        return;
    int target = p->n < MAX_PAIRS ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (target < 0 || connect(target, &p->target.sa.any, p->target.len) != 0) {
        if (target >= 0)
            close(target);
        close(client);
        return;
    }
    p->pairs[p->n][0] = client;
    p->pairs[p->n][1] = target;
    p->n++;
    pthread_mutex_lock(&p->lock);
    p->taken++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static void keep(struct wire_proxy *p, bool sent, const char *bytes, size_t n)
{
    struct tc_buf *b = &p->seen[sent ? 0 : 1];
    pthread_mutex_lock(&p->lock);
    tc_buf_append(b, bytes, TC_MIN(n, MAX_SEEN - b->len));
    pthread_mutex_unlock(&p->lock);
}

bool wire_proxy_saw(struct wire_proxy *p, const char *text)
{
    pthread_mutex_lock(&p->lock);
    bool found = tc_slice_find(tc_buf_slice(&p->seen[0]), tc_slice_str(text)) >= 0 ||
                 tc_slice_find(tc_buf_slice(&p->seen[1]), tc_slice_str(text)) >= 0;
    pthread_mutex_unlock(&p->lock);
    return found;
}

void wire_proxy_forget(struct wire_proxy *p)
{
    pthread_mutex_lock(&p->lock);
    tc_buf_clear(&p->seen[0]);
    tc_buf_clear(&p->seen[1]);
    pthread_mutex_unlock(&p->lock);
}

static bool forward(struct wire_proxy *p, int from, int to, bool sent)
{
    char bytes[65536];
    ssize_t n = read(from, bytes, sizeof(bytes));
    if (n <= 0)
        return false;
    atomic_fetch_add(sent ? &p->sent : &p->received, (uint64_t)n);
    keep(p, sent, bytes, (size_t)n);
    for (ssize_t at = 0, k; at < n; at += k) {
        k = send(to, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);
        if (k <= 0)
            return false;
    }
    return true;
}

static void say_heard(struct wire_proxy *p, unsigned changes)
{
    pthread_mutex_lock(&p->lock);
    if (p->heard != changes) {
        p->heard = changes;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
}

static void *run(void *arg)
{
    struct wire_proxy *p = arg;
    unsigned changes = 0;
    for (;;) {
        struct pollfd fds[3 + 2 * MAX_PAIRS] = {
            {p->wake[0], POLLIN, 0}, {p->listener, POLLIN, 0}, {p->stirred[0], POLLIN, 0}};
        struct pollfd *pairs = fds + 3;
        size_t n = atomic_load(&p->hold) ? 0 : p->n;
        say_heard(p, changes);
        for (size_t i = 0; i < 2 * n; i++)
            pairs[i] = (struct pollfd){p->pairs[i / 2][i % 2], POLLIN, 0};
        if (poll(fds, (nfds_t)(3 + 2 * n), -1) < 0)
            continue;
        if (fds[0].revents)
            return NULL;
        char byte;
        if (fds[2].revents && read(p->stirred[0], &byte, 1) < 0)
            return NULL;
        changes += fds[2].revents != 0;
        for (size_t i = n; i-- > 0;) {
            bool ok = !pairs[2 * i].revents || forward(p, p->pairs[i][0], p->pairs[i][1], true);
            ok = ok && (!pairs[2 * i + 1].revents || forward(p, p->pairs[i][1], p->pairs[i][0], false));
            if (!ok)
                drop_pair(p, i);
        }
        if (fds[1].revents)
            take_connection(p);
    }
}

struct wire_proxy *wire_proxy_new(const char *target)
{
    struct wire_proxy *p = TC_NEW(struct wire_proxy);
    assert_int_equal(tc_addr_parse(&p->target, tc_slice_str(target)), 0);
    p->listener = listen_somewhere(&p->address);
    assert_int_equal(pthread_mutex_init(&p->lock, NULL), 0);
    assert_int_equal(pipe(p->wake), 0);
    assert_int_equal(pipe(p->stirred), 0);
    pthread_cond_init(&p->changed, NULL);
    assert_int_equal(pthread_create(&p->thread, NULL, run, p), 0);
    return p;
}

void wire_proxy_free(struct wire_proxy *p)
{
    close(p->wake[1]);
    pthread_join(p->thread, NULL);
    while (p->n)
        drop_pair(p, 0);
    close(p->wake[0]);
    close(p->stirred[0]);
    close(p->stirred[1]);
    pthread_cond_destroy(&p->changed);
    close(p->listener);
    tc_addr_fini(&p->target);
    pthread_mutex_destroy(&p->lock);
    tc_buf_fini(&p->seen[0]);
    tc_buf_fini(&p->seen[1]);
    tc_free(p->address);
    tc_free(p);
}

void wire_proxy_hold(struct wire_proxy *p, bool hold)
{
    atomic_store(&p->hold, hold);
    assert_int_equal(write(p->stirred[1], "", 1), 1);
    pthread_mutex_lock(&p->lock);
    unsigned asked = ++p->asked;
    while (p->heard < asked)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

unsigned wire_proxy_connections(struct wire_proxy *p)
{
    pthread_mutex_lock(&p->lock);
    unsigned n = p->taken;
    pthread_mutex_unlock(&p->lock);
    return n;
}

void wire_proxy_wait_connections(struct wire_proxy *p, unsigned n)
{
    pthread_mutex_lock(&p->lock);
    while (p->taken < n)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

const char *wire_proxy_address(const struct wire_proxy *p)
{
    return p->address;
}

uint64_t wire_proxy_take_received(struct wire_proxy *p)
{
    return atomic_exchange(&p->received, 0);
}

uint64_t wire_proxy_take_sent(struct wire_proxy *p)
{
    return atomic_exchange(&p->sent, 0);
}
