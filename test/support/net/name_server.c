/* A name server for tests, over UDP and TCP, on a thread.
 *
 * parse() takes the question from a query, answer() writes the answer that the mode asks for. The thread holds the lock
 * while it serves a socket; the test's thread takes the lock to set the mode and to read the count. A new server takes
 * a port that is free for both UDP and TCP, and holds the port until name_server_free. */
#include "support/net/name_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/net/port.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"

enum { HEADER = 12, A = 1, CNAME = 5, NXDOMAIN = 3, REFUSED = 5, TC = 0x0200, MAX_QUESTION = 512 };

struct name_server {
    pthread_t thread;
    int wake[2];  /* a pipe: closing the write end ends the thread */
    int udp, tcp; /* udp -1: the server is stopped */
    int held[2];  /* TCP and UDP: keep the port while the server is stopped */
    uint16_t port;
    char *address;
    pthread_mutex_t lock;
    enum name_mode mode;     /* under the lock, with the members below */
    struct tc_buf addresses; /* of 4 bytes each */
    uint64_t questions;
    struct tc_rng rng;
};

static void put16(struct tc_buf *b, unsigned value)
{
    tc_buf_append_char(b, (char)(value >> 8));
    tc_buf_append_char(b, (char)value);
}

/* Appends a record of class IN with a TTL of 60 s. `name` is in wire format. */
static void put_record(struct tc_buf *b, const void *name, size_t name_len, unsigned type, const void *data, size_t len)
{
    tc_buf_append(b, name, name_len);
    put16(b, type);
    put16(b, 1);
    put16(b, 0);
    put16(b, 60);
    put16(b, (unsigned)len);
    tc_buf_append(b, data, len);
}

#define ASKED "\xc0\x0c", 2 /* a pointer to the question's name, and its length: two arguments of put_record */

/* Appends an A record for each address of 4 bytes. Returns how many. */
static unsigned put_addresses(struct tc_buf *b, const char *addresses, size_t len)
{
    for (size_t i = 0; i < len; i += 4)
        put_record(b, ASKED, A, addresses + i, 4);
    return (unsigned)(len / 4);
}

static void put_header(struct tc_buf *b, unsigned id, unsigned flags, unsigned answers)
{
    put16(b, id);
    put16(b, 0x8180u | flags);
    put16(b, 1);
    put16(b, answers);
    put16(b, 0);
    put16(b, 0);
}

struct question {
    unsigned id, type;
    struct tc_slice text; /* name, type, class; borrowed from the query */
};

/* Takes the question from a query, whose bytes *q borrows. Returns false if the query is too short for a question. */
static bool parse(struct tc_slice query, struct question *q)
{
    const unsigned char *p = (const unsigned char *)query.data;
    size_t end = HEADER;
    while (end < query.len && p[end])
        end += p[end] + 1u;
    if (end + 5 > query.len)
        return false;
    q->id = (unsigned)p[0] << 8 | p[1];
    q->type = (unsigned)p[end + 1] << 8 | p[end + 2];
    q->text = tc_slice_of(query.data + HEADER, end + 5 - HEADER);
    return true;
}

static void put_aliases(struct tc_buf *out, const struct question *q)
{
    char to_other[] = {1, 'x', (char)0xc0, HEADER};
    size_t at = HEADER + q->text.len + 2 + 10; /* offset of "x" in the first record's data */
    const char other[] = {(char)(0xc0 | at >> 8), (char)at};
    put_header(out, q->id, 0, 2);
    tc_buf_append_slice(out, q->text);
    put_record(out, ASKED, CNAME, to_other, sizeof(to_other));
    put_record(out, other, sizeof(other), CNAME, ASKED);
}

/* Appends the answer; appends nothing in NAMES_SILENT. */
static void answer(struct name_server *s, const struct question *q, bool by_tcp, struct tc_buf *out)
{
    struct tc_buf records = {0};
    unsigned n = 0, flags = 0;
    switch (s->mode) {
    case NAMES_SILENT:
        return;
    case NAMES_NOISE:
        put16(out, q->id);
        for (int i = 0; i < 200; i++)
            tc_buf_append_char(out, (char)tc_rng_u64(&s->rng));
        return;
    case NAMES_SHORT:
        put16(out, q->id);
        put16(out, 0x8180);
        return;
    case NAMES_ALIASES:
        put_aliases(out, q);
        return;
    case NAMES_MISSING:
        flags = NXDOMAIN;
        break;
    case NAMES_REFUSED:
        flags = REFUSED;
        break;
    case NAMES_OVERLONG:
        put_record(&records, ASKED, A, "\x7f\0\0\1", 4);
        records.data[records.len - 5] = (char)0xff; /* of the length */
        n = 1;
        break;
    case NAMES_LOOP: {
        size_t at = HEADER + q->text.len;
        const char itself[] = {(char)(0xc0 | at >> 8), (char)at};
        put_record(&records, itself, sizeof(itself), A, "\x7f\0\0\1", 4);
        n = 1;
        break;
    }
    default:
        if ((s->mode == NAMES_TRUNCATED || s->mode == NAMES_CUT) && !by_tcp)
            flags = TC;
        else if (q->type == A)
            n = put_addresses(&records, s->addresses.data, s->addresses.len);
        break;
    }
    put_header(out, q->id, flags, n);
    tc_buf_append_slice(out, q->text);
    tc_buf_append_slice(out, tc_buf_slice(&records));
    tc_buf_fini(&records);
}

static void forge(const struct question *q, struct tc_buf *out)
{
    put_header(out, q->id ^ 1, 0, 1);
    tc_buf_append_slice(out, q->text);
    put_record(out, ASKED, A, "\x7f\0\0\3", 4);
}

static void serve_udp(struct name_server *s)
{
    char bytes[MAX_QUESTION];
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    struct question q;
    struct tc_buf out = {0}, forged = {0};
    ssize_t n = recvfrom(s->udp, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &len);
    if (n <= 0 || !parse(tc_slice_of(bytes, (size_t)n), &q))
        return;
    s->questions++;
    if (s->mode == NAMES_FORGED)
        forge(&q, &forged);
    answer(s, &q, false, &out);
    if (forged.len)
        sendto(s->udp, forged.data, forged.len, 0, (struct sockaddr *)&from, len);
    if (out.len)
        sendto(s->udp, out.data, out.len, 0, (struct sockaddr *)&from, len);
    tc_buf_fini(&out);
    tc_buf_fini(&forged);
}

/* Answers one question (none in NAMES_CUT) and closes the connection. Gives up when the client sends nothing for
 * 5 s. */
static void serve_tcp(struct name_server *s)
{
    char bytes[2 + MAX_QUESTION];
    struct question q;
    struct tc_buf out = {0};
    int fd = accept(s->tcp, NULL, NULL);
    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 5}, sizeof(struct timeval));
    for (size_t have = 0; s->mode != NAMES_CUT && have < sizeof(bytes);) {
        ssize_t n = recv(fd, bytes + have, sizeof(bytes) - have, 0);
        if (n <= 0)
            break;
        have += (size_t)n;
        size_t want = have < 2 ? sizeof(bytes) : 2 + ((size_t)(unsigned char)bytes[0] << 8 | (unsigned char)bytes[1]);
        if (have < want)
            continue;
        if (parse(tc_slice_of(bytes + 2, want - 2), &q)) {
            s->questions++;
            put16(&out, 0);
            answer(s, &q, true, &out);
            out.data[0] = (char)((out.len - 2) >> 8);
            out.data[1] = (char)(out.len - 2);
        }
        break;
    }
    for (size_t at = 0; at < out.len;) {
        ssize_t n = send(fd, out.data + at, out.len - at, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    tc_buf_fini(&out);
    close(fd);
}

static void *run(void *arg)
{
    struct name_server *s = arg;
    for (;;) {
        struct pollfd fds[3] = {{s->wake[0], POLLIN, 0}, {s->udp, POLLIN, 0}, {s->tcp, POLLIN, 0}};
        if (poll(fds, 3, -1) < 0)
            continue;
        if (fds[0].revents)
            return NULL;
        pthread_mutex_lock(&s->lock);
        if (fds[1].revents)
            serve_udp(s);
        if (fds[2].revents)
            serve_tcp(s);
        pthread_mutex_unlock(&s->lock);
    }
}

/* Returns a socket bound to the server's port, or -1. */
static int bound_socket(const struct name_server *s, int type)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(s->port)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), 0);
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Holds a port for TCP and UDP. The UDP socket is connected to a port where nobody is, so that it gets no queries.
 * Returns false if the port of the TCP socket is not free for UDP. */
static bool hold_port(struct name_server *s)
{
    const struct sockaddr_in nobody = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(1)};
    s->held[0] = port_hold(&s->port);
    s->held[1] = bound_socket(s, SOCK_DGRAM);
    if (s->held[1] < 0) {
        close(s->held[0]);
        return false;
    }
    assert_int_equal(connect(s->held[1], (const struct sockaddr *)&nobody, sizeof(nobody)), 0);
    return true;
}

void name_server_start(struct name_server *s)
{
    s->tcp = bound_socket(s, SOCK_STREAM);
    s->udp = bound_socket(s, SOCK_DGRAM);
    assert_true(s->tcp >= 0 && s->udp >= 0);
    assert_int_equal(listen(s->tcp, 16), 0);
    assert_int_equal(pipe(s->wake), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
}

void name_server_stop(struct name_server *s)
{
    close(s->wake[1]);
    pthread_join(s->thread, NULL);
    close(s->wake[0]);
    close(s->udp);
    close(s->tcp);
    s->udp = -1;
}

struct name_server *name_server_new(void)
{
    struct name_server *s = TC_NEW(struct name_server);
    s->mode = NAMES_SILENT;
    tc_rng_init_seed(&s->rng, 7);
    assert_int_equal(pthread_mutex_init(&s->lock, NULL), 0);
    while (!hold_port(s))
        continue;
    name_server_start(s);
    s->address = tc_asprintf("127.0.0.1:%u", s->port);
    return s;
}

void name_server_free(struct name_server *s)
{
    if (s->udp >= 0)
        name_server_stop(s);
    close(s->held[0]);
    close(s->held[1]);
    pthread_mutex_destroy(&s->lock);
    tc_buf_fini(&s->addresses);
    tc_free(s->address);
    tc_free(s);
}

const char *name_server_address(const struct name_server *s)
{
    return s->address;
}

void name_server_set(struct name_server *s, enum name_mode mode, const char *addresses)
{
    struct tc_slice rest = tc_slice_str(addresses ? addresses : ""), part;
    bool more = addresses != NULL;
    pthread_mutex_lock(&s->lock);
    s->mode = mode;
    if (addresses)
        tc_buf_clear(&s->addresses);
    while (tc_slice_split(&rest, &more, ',', &part)) {
        struct in_addr in;
        char *text = tc_slice_dup(part);
        assert_int_equal(inet_pton(AF_INET, text, &in), 1);
        tc_buf_append(&s->addresses, &in, sizeof(in));
        tc_free(text);
    }
    pthread_mutex_unlock(&s->lock);
}

uint64_t name_server_questions(struct name_server *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t n = s->questions;
    pthread_mutex_unlock(&s->lock);
    return n;
}
