/* Network paths with faults, by a tun device in a network namespace.
 *
 * The thread reads packets of the kernel from the tun device, finds their path by address and port, drops or delays
 * them, and writes them back with source and destination swapped. A path owns the packets that it delays. It keeps the
 * order of its packets, also when its delay changes. The lock guards the paths: the wire's thread holds the lock while
 * it handles packets, the test's thread while it changes a path or reads one. net/wire.h explains the addresses. */
#include "support/net/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/random.h"

enum { MTU = 9000, SOURCE = 12, DESTINATION = 16, TCP = 6, UDP = 17 };

struct packet {
    struct tc_link link;
    uint64_t due_ns; /* of the monotonic clock */
    size_t len;
    unsigned char bytes[];
};

struct path {
    char address[32];
    uint16_t port;
    unsigned delay_ms;
    double loss;
    bool cut_to, cut_from;
    uint64_t passed, lost;
    uint64_t last_ns;         /* arrival of the last packet */
    struct tc_link under_way; /* delayed packets, in order of arrival */
};

struct wire {
    pthread_t thread;
    int tun;
    int wake[2]; /* a pipe: closing the write end ends the thread */
    pthread_mutex_t lock;
    struct path paths[WIRE_PATHS]; /* under the lock */
    struct tc_rng rng;             /* the thread's */
};

/* --- namespaces and devices --- */

static int set_flags(int fd, const char *name)
{
    struct ifreq r = {0};
    snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
    if (ioctl(fd, SIOCGIFFLAGS, &r) != 0)
        return -1;
    r.ifr_flags |= IFF_UP | IFF_RUNNING;
    return ioctl(fd, SIOCSIFFLAGS, &r);
}

static int set_address(int fd, const char *name, unsigned long request, const char *address)
{
    struct ifreq r = {0};
    struct sockaddr_in sa = {.sin_family = AF_INET};
    inet_pton(AF_INET, address, &sa.sin_addr);
    snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
    memcpy(&r.ifr_addr, &sa, sizeof(sa));
    return ioctl(fd, request, &r);
}

static int set_mtu(int fd, const char *name, int mtu)
{
    struct ifreq r = {0};
    snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
    r.ifr_mtu = mtu;
    return ioctl(fd, SIOCSIFMTU, &r);
}

/* Opens the device and brings it up. Returns its descriptor, which the caller closes, or -1 with errno. */
static int open_tun(void)
{
    struct ifreq r = {.ifr_name = "wire0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && s >= 0 && ioctl(fd, TUNSETIFF, &r) == 0 &&
              set_address(s, r.ifr_name, SIOCSIFADDR, "10.9.0.1") == 0 &&
              set_address(s, r.ifr_name, SIOCSIFNETMASK, "255.255.255.0") == 0 && set_mtu(s, r.ifr_name, MTU) == 0 &&
              set_flags(s, r.ifr_name) == 0;
    int err = errno;
    if (s >= 0)
        close(s);
    if (!ok && fd >= 0)
        close(fd);
    errno = err;
    return ok ? fd : -1;
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Makes the process root in its user namespace: user_namespaces(7). */
static bool map_user(unsigned uid, unsigned gid)
{
    char users[64], groups[64];
    snprintf(users, sizeof(users), "0 %u 1", uid);
    snprintf(groups, sizeof(groups), "0 %u 1", gid);
    return write_text("/proc/self/uid_map", users) && write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/gid_map", groups);
}

const char *wire_enter(void)
{
    static char why[256];
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        snprintf(why, sizeof(why), "no namespaces of one's own (unshare): %s", strerror(errno));
        return why;
    }
    prctl(PR_SET_DUMPABLE, 1); /* needed to write to /proc/self, and by the leak sanitizer, which traces the process */
    const char *what = NULL;   /* what failed */
    int s = -1, tun = -1;
    if (!map_user(uid, gid))
        what = "map of the user";
    else if ((s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0)
        what = "socket";
    else if (set_flags(s, "lo") != 0)
        what = "loopback device";
    else if ((tun = open_tun()) < 0)
        what = "tun device";
    if (what)
        snprintf(why, sizeof(why), "no %s in a namespace of one's own: %s", what, strerror(errno));
    if (tun >= 0)
        close(tun);
    if (s >= 0)
        close(s);
    return what ? why : NULL;
}

/* --- packets --- */

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

static unsigned get16(const unsigned char *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* Returns the path of an IPv4 packet of TCP or UDP, and in *to whether the packet goes to the listener. The packet's
 * destination is the path's address, and one of its two ports is the path's: each end sends from 10.9.0.1 to that
 * address. Returns NULL for any other packet, which is dropped. */
static struct path *path_of(struct wire *w, const unsigned char *p, size_t n, bool *to)
{
    size_t header = n >= 20 && p[0] >> 4 == 4 ? (size_t)(p[0] & 15) * 4 : 0;
    unsigned i = header ? p[DESTINATION + 3] - 2u : WIRE_PATHS;
    if (i >= WIRE_PATHS || n < header + 4 || (p[9] != TCP && p[9] != UDP))
        return NULL;
    struct path *path = &w->paths[i];
    *to = get16(p + header + 2) == path->port;
    return *to || get16(p + header) == path->port ? path : NULL;
}

/* Swaps source and destination and hands the packet to the kernel. Checksums stay right, since they are sums. */
static void give_back(struct wire *w, unsigned char *p, size_t n)
{
    unsigned char source[4];
    memcpy(source, p + SOURCE, 4);
    memcpy(p + SOURCE, p + DESTINATION, 4);
    memcpy(p + DESTINATION, source, 4);
    if (write(w->tun, p, n) < 0 && errno != EAGAIN && errno != ENOBUFS)
        fprintf(stderr, "wire: write: %s\n", strerror(errno));
}

/* Drops, delays or hands back a packet that came from the kernel. Called with the lock held, as `deliver` is. */
static void take(struct wire *w, unsigned char *p, size_t n)
{
    bool to;
    struct path *path = path_of(w, p, n, &to);
    if (!path)
        return;
    path->last_ns = now_ns();
    if ((to ? path->cut_to : path->cut_from) || tc_rng_double(&w->rng) < path->loss) {
        path->lost++;
        return;
    }
    path->passed++;
    if (path->delay_ms == 0 && tc_list_empty(&path->under_way)) {
        give_back(w, p, n);
        return;
    }
    struct packet *packet = tc_malloc(sizeof(*packet) + n);
    packet->due_ns = now_ns() + path->delay_ms * TC_NS_PER_MS;
    packet->len = n;
    memcpy(packet->bytes, p, n);
    tc_list_append(&path->under_way, &packet->link);
}

/* Returns the oldest delayed packet, which the path still owns; NULL: none. */
static struct packet *first_of(struct path *path)
{
    return tc_list_empty(&path->under_way) ? NULL : TC_CONTAINER_OF(path->under_way.next, struct packet, link);
}

/* Hands back the packets that are due. Returns the time (ns of the monotonic clock) at which the next packet is due, or
 * UINT64_MAX if none is left. */
static uint64_t deliver(struct wire *w)
{
    uint64_t next = UINT64_MAX, now = now_ns();
    for (size_t i = 0; i < WIRE_PATHS; i++) {
        struct packet *p;
        while ((p = first_of(&w->paths[i])) && p->due_ns <= now) {
            tc_list_remove(&p->link);
            give_back(w, p->bytes, p->len);
            tc_free(p);
        }
        if (p)
            next = TC_MIN(next, p->due_ns);
    }
    return next;
}

static void *run(void *arg)
{
    struct wire *w = arg;
    unsigned char bytes[MTU];
    struct pollfd fds[2] = {{w->wake[0], POLLIN, 0}, {w->tun, POLLIN, 0}};
    for (;;) {
        pthread_mutex_lock(&w->lock);
        uint64_t next = deliver(w), now = now_ns();
        pthread_mutex_unlock(&w->lock);
        uint64_t wait = next > now ? next - now : 0;
        struct timespec ts = {(time_t)(wait / TC_NS_PER_S), (long)(wait % TC_NS_PER_S)};
        if (ppoll(fds, 2, next == UINT64_MAX ? NULL : &ts, NULL) < 0)
            continue;
        if (fds[0].revents)
            return NULL;
        for (unsigned i = 0; i < 64; i++) {
            ssize_t n = read(w->tun, bytes, sizeof(bytes));
            if (n <= 0)
                break;
            pthread_mutex_lock(&w->lock);
            take(w, bytes, (size_t)n);
            pthread_mutex_unlock(&w->lock);
        }
    }
}

/* --- settings by the tests --- */

struct wire *wire_new(uint64_t seed)
{
    struct wire *w = TC_NEW(struct wire);
    tc_rng_init_seed(&w->rng, seed);
    for (size_t i = 0; i < WIRE_PATHS; i++)
        tc_list_init(&w->paths[i].under_way);
    w->tun = open_tun();
    assert_true(w->tun >= 0);
    assert_int_equal(pipe(w->wake), 0);
    assert_int_equal(pthread_mutex_init(&w->lock, NULL), 0);
    assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
    return w;
}

void wire_free(struct wire *w)
{
    close(w->wake[1]);
    pthread_join(w->thread, NULL);
    close(w->wake[0]);
    close(w->tun);
    for (size_t i = 0; i < WIRE_PATHS; i++)
        for (struct packet *p; (p = first_of(&w->paths[i]));) {
            tc_list_remove(&p->link);
            tc_free(p);
        }
    pthread_mutex_destroy(&w->lock);
    tc_free(w);
}

const char *wire_path(struct wire *w, unsigned i, uint16_t port)
{
    struct path *path = &w->paths[i];
    pthread_mutex_lock(&w->lock);
    path->port = port;
    path->delay_ms = 0;
    path->loss = 0;
    path->cut_to = path->cut_from = false;
    path->passed = path->lost = 0;
    snprintf(path->address, sizeof(path->address), "10.9.0.%u:%u", 2 + i, port);
    pthread_mutex_unlock(&w->lock);
    return path->address;
}

void wire_delay(struct wire *w, unsigned i, unsigned ms)
{
    pthread_mutex_lock(&w->lock);
    w->paths[i].delay_ms = ms;
    pthread_mutex_unlock(&w->lock);
}

void wire_loss(struct wire *w, unsigned i, double share)
{
    pthread_mutex_lock(&w->lock);
    w->paths[i].loss = share;
    pthread_mutex_unlock(&w->lock);
}

void wire_cut(struct wire *w, unsigned i, bool to, bool from)
{
    pthread_mutex_lock(&w->lock);
    w->paths[i].cut_to = to;
    w->paths[i].cut_from = from;
    pthread_mutex_unlock(&w->lock);
}

/* Returns for how long no packet of the path has come; 0 while a packet is delayed. */
static uint64_t quiet_ns(struct wire *w, const struct path *path)
{
    pthread_mutex_lock(&w->lock);
    uint64_t quiet = tc_list_empty(&path->under_way) ? now_ns() - path->last_ns : 0;
    pthread_mutex_unlock(&w->lock);
    return quiet;
}

void wire_wait_quiet(struct wire *w, unsigned i, unsigned ms)
{
    while (quiet_ns(w, &w->paths[i]) < ms * TC_NS_PER_MS)
        poll(NULL, 0, 10);
}

static uint64_t count(struct wire *w, const uint64_t *n)
{
    pthread_mutex_lock(&w->lock);
    uint64_t value = *n;
    pthread_mutex_unlock(&w->lock);
    return value;
}

uint64_t wire_passed(struct wire *w, unsigned i)
{
    return count(w, &w->paths[i].passed);
}

uint64_t wire_lost(struct wire *w, unsigned i)
{
    return count(w, &w->paths[i].lost);
}
