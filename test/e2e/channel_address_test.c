/* Targets other than IP literals, on real sockets: unix sockets, and names that the test's name server resolves.
 *
 * The client's loop runs inside of the test's calls (TORC_RUNTIME_CALLER). Echo servers (kits/backends.h) and the name
 * server have threads of their own. A channel to "shop.test" asks the name server because its target names the name
 * server's address: "dns://127.0.0.1:PORT/shop.test:PORT". struct name_server has what the name server answers, and how
 * often it was asked for A records. struct shop has two servers on one port: the address of a call's peer says which
 * record was used. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

static torc_runtime *rt;

static int setup(void **state)
{
    (void)state;
    rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return torc_runtime_free(rt);
}

/* Makes the server also listen on the address in `arg`, a text. Runs on the servers' thread. */
static void listen_on(struct tc_server *server, void *arg)
{
    struct tc_addr addr;
    struct tc_status error = {0};
    CHECK(tc_addr_parse(&addr, tc_slice_str(arg)) == 0);
    CHECK(tc_server_listen(server, &addr, NULL, &error) == 0);
    tc_addr_fini(&addr);
}

/* Makes a call on a channel to the target. Expects a response of the request's size, and `peer` as the peer. */
static void expect_unix(const char *target, const char *peer)
{
    torc_channel *ch = torc_channel_new(rt, target, NULL, NULL);
    assert_non_null(ch);
    torc_result *r = torc_unary(ch, "a/b", "over a file", 11, NULL);
    assert_string_equal(torc_result_text(r), "");
    assert_int_equal(torc_message_size(torc_result_response(r)), 11);
    assert_string_equal(torc_result_peer(r), peer);
    torc_result_free(r);
    torc_channel_free(ch);
}

static void test_unix_sockets(void **state)
{
    (void)state;
    char dir[] = "/tmp/torc-unix-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char path[64], addr[80], target[80], abstract[80];
    snprintf(path, sizeof(path), "%s/s", dir);
    snprintf(addr, sizeof(addr), "unix:%s", path);
    snprintf(abstract, sizeof(abstract), "unix-abstract:torc-test-%d", (int)getpid());
    struct kit_backends *kit = kit_backends_new(1, NULL);
    kit_backends_do(kit, listen_on, 0, addr);
    kit_backends_do(kit, listen_on, 0, abstract);

    expect_unix(addr, addr);
    snprintf(target, sizeof(target), "unix://%s", path);
    expect_unix(target, addr);
    expect_unix(abstract, abstract);

    /* Nothing listens: the text names the path. */
    snprintf(target, sizeof(target), "unix:%s/none", dir);
    torc_channel *ch = torc_channel_new(rt, target, NULL, NULL);
    torc_result *r = torc_unary(ch, "a/b", "", 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(torc_result_text(r), target));
    torc_result_free(r);
    torc_channel_free(ch);
    kit_backends_free(kit);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

/* A name server on a thread of its own. It has A records for "shop.test" only. Other names, and shop.test while it has
 * no records, are NXDOMAIN. The mutex guards the members below it. */
struct name_server {
    pthread_t thread;
    int fd;
    uint16_t port;
    pthread_mutex_t mutex;
    const char *records[4];
    size_t n_records;
    unsigned a_queries;
    bool stop;
};

static size_t put(unsigned char *out, size_t at, const void *data, size_t len)
{
    memcpy(out + at, data, len);
    return at + len;
}

/* Writes the reply: header, question, and the A records if the query asks for them. Returns the length of the reply.
 * Counts A queries. The caller holds the mutex. */
static size_t make_reply(struct name_server *s, unsigned char *reply, const unsigned char *query, size_t len)
{
    size_t end = 12;
    while (end + 5 <= len && query[end])
        end += query[end] + 1u;
    CHECK(end + 5 <= len);
    bool is_a = query[end + 1] == 0 && query[end + 2] == 1;
    bool known = len > 22 && memcmp(query + 12, "\4shop\4test", 11) == 0 && s->n_records > 0;
    unsigned char n = known && is_a ? (unsigned char)s->n_records : 0;
    s->a_queries += is_a;
    size_t at = put(reply, 0, query, 2);
    at = put(reply, at, (unsigned char[]){0x81, known ? 0x80 : 0x83, 0, 1, 0, n, 0, 0, 0, 0}, 10);
    at = put(reply, at, query + 12, end + 5 - 12);
    for (size_t i = 0; i < n; i++) {
        struct in_addr in;
        inet_pton(AF_INET, s->records[i], &in);
        at = put(reply, at, "\xc0\x0c\0\1\0\1\0\0\0\0\0\4", 12);
        at = put(reply, at, &in, 4);
    }
    return at;
}

static void *serve_names(void *arg)
{
    struct name_server *s = arg;
    for (;;) {
        unsigned char query[512], reply[1024];
        struct sockaddr_in from;
        socklen_t from_len = sizeof(from);
        ssize_t n = recvfrom(s->fd, query, sizeof(query), 0, (struct sockaddr *)&from, &from_len);
        pthread_mutex_lock(&s->mutex);
        bool stop = s->stop;
        size_t len = !stop && n > 16 ? make_reply(s, reply, query, (size_t)n) : 0;
        pthread_mutex_unlock(&s->mutex);
        if (stop)
            return NULL;
        sendto(s->fd, reply, len, 0, (const struct sockaddr *)&from, from_len);
    }
}

static void names_start(struct name_server *s)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    *s = (struct name_server){.mutex = PTHREAD_MUTEX_INITIALIZER};
    s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&in, len), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&in, &len), 0);
    s->port = ntohs(in.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve_names, s), 0);
}

/* Sets the A records of "shop.test". `a` and `b` are literals. NULL: no record; if `a` is NULL, `b` must be NULL. */
static void names_set(struct name_server *s, const char *a, const char *b)
{
    pthread_mutex_lock(&s->mutex);
    s->records[0] = a;
    s->records[1] = b;
    s->n_records = (a ? 1u : 0u) + (b ? 1u : 0u);
    pthread_mutex_unlock(&s->mutex);
}

static unsigned names_queries(struct name_server *s)
{
    pthread_mutex_lock(&s->mutex);
    unsigned n = s->a_queries;
    pthread_mutex_unlock(&s->mutex);
    return n;
}

/* Ends the thread with a datagram, which makes recvfrom return. */
static void names_stop(struct name_server *s)
{
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_mutex_unlock(&s->mutex);
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(s->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    sendto(s->fd, "", 1, 0, (struct sockaddr *)&in, sizeof(in));
    pthread_join(s->thread, NULL);
    close(s->fd);
}

/* Two servers on the same port of 127.0.0.1 and 127.0.0.2, a name server, and the target and options of channels to
 * "shop.test" with that port. `port` is part of the kit's text of the first server's address. `second` is the address
 * of the second server. */
struct shop {
    struct kit_backends *kit;
    struct name_server names;
    const char *port;
    char second[32], target[80];
    struct torc_channel_options options;
};

static void shop_open(struct shop *s)
{
    s->kit = kit_backends_new(2, NULL);
    s->port = strrchr(kit_backends_address(s->kit, 0), ':') + 1;
    snprintf(s->second, sizeof(s->second), "127.0.0.2:%s", s->port);
    kit_backends_do(s->kit, listen_on, 1, s->second);
    names_start(&s->names);
    snprintf(s->target, sizeof(s->target), "dns://127.0.0.1:%u/shop.test:%s", s->names.port, s->port);
    s->options =
        (struct torc_channel_options){TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                      .backoff_initial_ms = 20, .backoff_max_ms = 40};
}

static void shop_close(struct shop *s)
{
    names_stop(&s->names);
    kit_backends_free(s->kit);
}

/* Makes a call and returns its status code. `wait`: wait-for-ready. Stores the peer's address and the status text, both
 * truncated if long. */
static int call(torc_channel *ch, bool wait, char peer[64], char text[256])
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .wait_for_ready = wait, .timeout_ms = 60000};
    torc_result *r = torc_unary(ch, "a/b", "", 0, &o);
    int code = torc_result_code(r);
    snprintf(peer, 64, "%s", torc_result_peer(r));
    snprintf(text, 256, "%s", torc_result_text(r));
    torc_result_free(r);
    return code;
}

static void test_name_to_all_its_addresses(void **state)
{
    (void)state;
    struct shop s;
    char peer[64], text[256];
    shop_open(&s);
    names_set(&s.names, "127.0.0.1", "127.0.0.2");
    s.options.service_config_json = "{\"loadBalancingConfig\":[{\"round_robin\":{}}]}";
    torc_channel *ch = torc_channel_new(rt, s.target, &s.options, NULL);
    assert_non_null(ch);
    /* Each address is a separate endpoint. */
    bool first = false, second = false;
    for (int i = 0; i < 10000 && !(first && second); i++) {
        assert_int_equal(call(ch, false, peer, text), TORC_STATUS_OK);
        first |= strcmp(peer, kit_backends_address(s.kit, 0)) == 0;
        second |= strcmp(peer, s.second) == 0;
    }
    assert_true(first && second);
    assert_int_equal(names_queries(&s.names), 1);
    torc_channel_free(ch);
    shop_close(&s);
}

static void test_name_that_moves(void **state)
{
    (void)state;
    struct shop s;
    char peer[64], text[256];
    shop_open(&s);
    names_set(&s.names, "127.0.0.1", NULL);
    s.options.dns_min_interval_ms = 50;
    torc_channel *ch = torc_channel_new(rt, s.target, &s.options, NULL);
    assert_int_equal(call(ch, false, peer, text), TORC_STATUS_OK);
    assert_string_equal(peer, kit_backends_address(s.kit, 0));
    /* The name moves to the second server, and the first one ends. The lost connection makes the channel resolve
     * again. */
    names_set(&s.names, "127.0.0.2", NULL);
    kit_backends_stop(s.kit, 0);
    assert_int_equal(call(ch, true, peer, text), TORC_STATUS_OK);
    assert_string_equal(peer, s.second);
    assert_true(names_queries(&s.names) >= 2);
    torc_channel_free(ch);
    shop_close(&s);
}

static void test_name_unknown(void **state)
{
    (void)state;
    struct shop s;
    char peer[64], text[256];
    shop_open(&s);
    torc_channel *ch = torc_channel_new(rt, s.target, &s.options, NULL);
    assert_int_equal(call(ch, false, peer, text), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(text, "name resolution failed for shop.test"));
    /* The channel resolves again, with backoff, until the name exists. */
    while (names_queries(&s.names) < 3)
        torc_runtime_poll(rt, 100);
    names_set(&s.names, "127.0.0.1", NULL);
    assert_int_equal(call(ch, true, peer, text), TORC_STATUS_OK);
    assert_string_equal(peer, kit_backends_address(s.kit, 0));
    torc_channel_free(ch);
    shop_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unix_sockets),
        cmocka_unit_test(test_name_to_all_its_addresses),
        cmocka_unit_test(test_name_that_moves),
        cmocka_unit_test(test_name_unknown),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
