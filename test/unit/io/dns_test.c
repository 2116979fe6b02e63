/* Name look-ups (tc_dns, over c-ares) on a real loop against a small name server in this file, over UDP on loopback.
 * a_manual_loop_resolves_literals_only has a manual loop, and no fixture.
 *
 * A fixture owns the loop, the name server, the last result and a tc_dns, which asks this name server alone; some tests
 * free the tc_dns or make another. The loop drives both sides on the test's thread: the name server answers only while
 * a test turns the loop. The names that the server is asked for end with a dot, so that the search list of resolv.conf
 * does not count. */
#include "io/dns.h"

#include <ares.h>
#include <arpa/inet.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "io/watch.h"
#include "support/cmocka.h"
#include "support/footprint.h"

enum { TYPE_A = 1, TYPE_AAAA = 28, NXDOMAIN = 3, SERVFAIL = 2 };

/* Answers by the first label of the name. "v4": two IPv4 addresses; "v6": one IPv6 address; "both": all three; "many":
 * 20 IPv4 addresses; "empty": no address; "nx": NXDOMAIN; "fail": SERVFAIL. Does not answer other names. */
struct name_server {
    int fd;
    uint16_t port;
    struct tc_watch *watch;
    int queries, a_queries, aaaa_queries;
};

static void put16(struct tc_buf *b, unsigned value)
{
    tc_buf_append_char(b, (char)(value >> 8));
    tc_buf_append_char(b, (char)value);
}

static void put_answer(struct tc_buf *b, unsigned type, const void *data, size_t len)
{
    put16(b, 0xc00c); /* the name of the question */
    put16(b, type);
    put16(b, 1);
    put16(b, 0);
    put16(b, 60);
    put16(b, (unsigned)len);
    tc_buf_append(b, data, len);
}

/* Appends the records of `type` that the label has. Returns their number. */
static unsigned put_answers(struct tc_buf *b, struct tc_slice label, unsigned type)
{
    struct in6_addr in6;
    unsigned char in4[4] = {192, 0, 2, 0};
    unsigned n = 0;
    bool both = tc_slice_eq_str(label, "both");
    if (type == TYPE_A && (both || tc_slice_eq_str(label, "v4") || tc_slice_eq_str(label, "many"))) {
        for (n = 0; n < (tc_slice_eq_str(label, "many") ? 20u : 2u); n++) {
            in4[3] = (unsigned char)(n + 1);
            put_answer(b, type, in4, sizeof(in4));
        }
    }
    if (type == TYPE_AAAA && (both || tc_slice_eq_str(label, "v6"))) {
        inet_pton(AF_INET6, "2001:db8::1", &in6);
        put_answer(b, type, &in6, sizeof(in6));
        n = 1;
    }
    return n;
}

static void answer(struct name_server *s, struct tc_slice query, const struct sockaddr_in *from)
{
    /* Header of 12 bytes, then one question: labels, type, class. */
    assert_true(query.len > 17);
    struct tc_slice label = tc_slice_of(query.data + 13, (unsigned char)query.data[12]);
    size_t end = 12;
    while (query.data[end])
        end += (size_t)query.data[end] + 1;
    unsigned type = (unsigned)(unsigned char)query.data[end + 2];
    s->queries++;
    s->a_queries += type == TYPE_A;
    s->aaaa_queries += type == TYPE_AAAA;
    unsigned code = tc_slice_eq_str(label, "nx") ? NXDOMAIN : tc_slice_eq_str(label, "fail") ? SERVFAIL : 0;
    struct tc_buf answers = {0}, reply = {0};
    unsigned n = put_answers(&answers, label, type);
    if (n == 0 && code == 0 && !tc_slice_eq_str(label, "empty") && !tc_slice_eq_str(label, "v4") &&
        !tc_slice_eq_str(label, "v6") && !tc_slice_eq_str(label, "many"))
        return;
    tc_buf_append(&reply, query.data, 2);
    put16(&reply, 0x8180u | code);
    put16(&reply, 1);
    put16(&reply, n);
    put16(&reply, 0);
    put16(&reply, 0);
    tc_buf_append(&reply, query.data + 12, end + 5 - 12);
    tc_buf_append(&reply, answers.data, answers.len);
    sendto(s->fd, reply.data, reply.len, 0, (const struct sockaddr *)from, sizeof(*from));
    tc_buf_fini(&answers);
    tc_buf_fini(&reply);
}

static void on_query(void *arg, unsigned events, bool error)
{
    (void)events;
    (void)error;
    struct name_server *s = arg;
    char buf[512];
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from);
    ssize_t n = recvfrom(s->fd, buf, sizeof(buf), 0, (struct sockaddr *)&from, &from_len);
    if (n > 0)
        answer(s, tc_slice_of(buf, (size_t)n), &from);
}

/* The result that on_result was given. `clear` frees the texts and the status. */
struct result {
    bool called;
    char *texts[64]; /* `n` of them */
    size_t n;
    struct tc_status error;
    struct tc_dns *free_inside; /* on_result frees it; NULL: none */
};

struct fixture {
    struct tc_loop *loop;
    struct name_server server;
    struct tc_dns *dns;
    struct result result;
};

static void on_result(void *arg, const struct tc_addr *addrs, size_t n, const struct tc_status *error)
{
    struct result *r = arg;
    assert_false(r->called);
    r->called = true;
    assert_true((n > 0) == (error == NULL));
    assert_true(n <= TC_ARRAY_LEN(r->texts));
    for (size_t i = 0; i < n; i++)
        r->texts[i] = tc_addr_text(&addrs[i]);
    r->n = n;
    if (error)
        r->error = tc_status_ref(error);
    if (r->free_inside)
        tc_dns_free(r->free_inside);
    r->free_inside = NULL;
}

static void clear(struct result *r)
{
    for (size_t i = 0; i < r->n; i++)
        tc_free(r->texts[i]);
    tc_status_fini(&r->error);
    *r = (struct result){0};
}

static struct tc_dns *make_dns(struct fixture *f, uint64_t timeout_ms)
{
    char servers[32];
    snprintf(servers, sizeof(servers), "127.0.0.1:%u", (unsigned)f->server.port);
    return tc_dns_new(f->loop, &(struct tc_dns_opts){.servers = servers, .timeout_ms = timeout_ms});
}

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    f->loop = tc_loop_new(NULL);
    f->server.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(f->server.fd, (struct sockaddr *)&in, len) != 0 ||
        getsockname(f->server.fd, (struct sockaddr *)&in, &len) != 0)
        return -1;
    f->server.port = ntohs(in.sin_port);
    f->server.watch = tc_watch_new(f->loop, f->server.fd, on_query, &f->server);
    tc_watch_set(f->server.watch, TC_WATCH_READ);
    f->dns = make_dns(f, 5000);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    clear(&f->result);
    tc_dns_free(f->dns);
    tc_watch_close(f->server.watch);
    close(f->server.fd);
    tc_loop_free(f->loop);
    tc_free(f);
    return 0;
}

/* Looks the host up with port 443, and turns the loop until the result is in f->result. */
static void look_up(struct fixture *f, const char *host)
{
    clear(&f->result);
    assert_int_equal(tc_dns_resolve(f->dns, host, 443, on_result, &f->result), 0);
    assert_false(f->result.called); /* never from inside */
    while (!f->result.called)
        tc_loop_turn(f->loop, -1);
}

static bool has(const struct result *r, const char *text)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->texts[i], text) == 0)
            return true;
    return false;
}

static void both_families_are_asked_and_joined(void **state)
{
    struct fixture *f = *state;
    look_up(f, "both.test.");
    assert_int_equal(f->result.n, 3);
    assert_true(has(&f->result, "192.0.2.1:443"));
    assert_true(has(&f->result, "192.0.2.2:443"));
    assert_true(has(&f->result, "[2001:db8::1]:443"));
    assert_int_equal(f->server.a_queries, 1);
    assert_int_equal(f->server.aaaa_queries, 1);
}

static void one_family_is_enough(void **state)
{
    struct fixture *f = *state;
    look_up(f, "v4.test.");
    assert_int_equal(f->result.n, 2);
    look_up(f, "v6.test.");
    assert_int_equal(f->result.n, 1);
    assert_string_equal(f->result.texts[0], "[2001:db8::1]:443");
    look_up(f, "many.test.");
    assert_int_equal(f->result.n, 20);
}

static void literals_and_hosts_need_no_query(void **state)
{
    struct fixture *f = *state;
    look_up(f, "127.0.0.1");
    assert_int_equal(f->result.n, 1);
    assert_string_equal(f->result.texts[0], "127.0.0.1:443");
    look_up(f, "::1");
    assert_string_equal(f->result.texts[0], "[::1]:443");
    look_up(f, "localhost");
    assert_true(f->result.n >= 1);
    assert_true(has(&f->result, "127.0.0.1:443") || has(&f->result, "[::1]:443"));
    assert_int_equal(f->server.queries, 0);
}

static void a_missing_name_says_so(void **state)
{
    struct fixture *f = *state;
    look_up(f, "nx.test.");
    assert_int_equal(f->result.n, 0);
    assert_int_equal(f->result.error.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(tc_status_text(&f->result.error),
                        "DNS resolution failed for nx.test.:443: Domain name not found");
}

static void a_name_without_addresses_says_so(void **state)
{
    struct fixture *f = *state;
    look_up(f, "empty.test.");
    assert_int_equal(f->result.n, 0);
    assert_non_null(strstr(tc_status_text(&f->result.error), "DNS server returned answer with no data"));
}

static void a_failing_server_says_so(void **state)
{
    struct fixture *f = *state;
    look_up(f, "fail.test.");
    assert_int_equal(f->result.n, 0);
    assert_non_null(strstr(tc_status_text(&f->result.error), "DNS resolution failed for fail.test.:443: "));
    look_up(f, "v4.test."); /* and the next look-up works */
    assert_int_equal(f->result.n, 2);
}

static void a_silent_server_times_out(void **state)
{
    struct fixture *f = *state;
    tc_dns_free(f->dns);
    f->dns = make_dns(f, 60);
    uint64_t start_ms = tc_loop_now_ms(f->loop);
    look_up(f, "silent.test.");
    assert_true(tc_loop_now_ms(f->loop) - start_ms >= 60);
    assert_string_equal(tc_status_text(&f->result.error),
                        "DNS resolution failed for silent.test.:443: no answer within 60 ms");
    assert_true(f->server.queries >= 2);
    do /* the next look-up works; it is repeated because on a busy machine it may exceed 60 ms as well */
        look_up(f, "both.test.");
    while (f->result.n == 0);
    assert_int_equal(f->result.n, 3);
}

static void only_one_look_up_at_a_time(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(tc_dns_resolve(f->dns, "both.test.", 443, on_result, &f->result), 0);
    assert_int_equal(tc_dns_resolve(f->dns, "v4.test.", 443, on_result, &f->result), TORC_ESTATE);
    while (!f->result.called)
        tc_loop_turn(f->loop, -1);
    assert_int_equal(f->result.n, 3);
}

static void cancel_means_no_callback(void **state)
{
    struct fixture *f = *state;
    const char *hosts[] = {"silent.test.", "127.0.0.1", "localhost", "both.test."};
    for (size_t i = 0; i < TC_ARRAY_LEN(hosts); i++) {
        assert_int_equal(tc_dns_resolve(f->dns, hosts[i], 443, on_result, &f->result), 0);
        if (i == 0)
            while (f->server.queries < 2)
                tc_loop_turn(f->loop, -1);
        tc_dns_cancel(f->dns);
        tc_dns_cancel(f->dns);
        for (int turn = 0; turn < 5; turn++)
            tc_loop_turn(f->loop, 1);
        assert_false(f->result.called);
    }
    look_up(f, "v4.test.");
    assert_int_equal(f->result.n, 2);
}

static void free_ends_a_running_look_up(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(tc_dns_resolve(f->dns, "silent.test.", 443, on_result, &f->result), 0);
    while (f->server.queries < 2)
        tc_loop_turn(f->loop, -1);
    tc_dns_free(f->dns);
    f->dns = NULL;
    tc_loop_turn(f->loop, 1);
    assert_false(f->result.called);
}

static void it_can_be_freed_in_its_callback(void **state)
{
    struct fixture *f = *state;
    f->result.free_inside = f->dns;
    assert_int_equal(tc_dns_resolve(f->dns, "both.test.", 443, on_result, &f->result), 0);
    while (!f->result.called)
        tc_loop_turn(f->loop, -1);
    f->dns = NULL;
    assert_int_equal(f->result.n, 3);
}

static void bad_servers_are_an_error_not_a_crash(void **state)
{
    struct fixture *f = *state;
    tc_dns_free(f->dns);
    f->dns = tc_dns_new(f->loop, &(struct tc_dns_opts){.servers = "not a server"});
    look_up(f, "both.test.");
    assert_int_equal(f->result.n, 0);
    assert_int_equal(f->result.error.code, TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(tc_status_text(&f->result.error), "\"not a server\" is not a list of DNS servers"));
}

static void an_unspeakable_name_is_an_error(void **state)
{
    struct fixture *f = *state;
    char name[400];
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    look_up(f, name);
    assert_int_equal(f->result.n, 0);
    look_up(f, "");
    assert_int_equal(f->result.error.code, TORC_STATUS_UNAVAILABLE);
}

static void a_manual_loop_resolves_literals_only(void **state)
{
    (void)state;
    struct tc_loop *loop = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    struct tc_dns *dns = tc_dns_new(loop, NULL);
    struct result r = {0};
    assert_int_equal(tc_dns_resolve(dns, "192.0.2.9", 80, on_result, &r), 0);
    assert_false(r.called);
    tc_loop_drain(loop);
    assert_string_equal(r.texts[0], "192.0.2.9:80");
    clear(&r);
    assert_int_equal(tc_dns_resolve(dns, "both.test.", 80, on_result, &r), 0);
    tc_loop_drain(loop);
    assert_int_equal(r.error.code, TORC_STATUS_UNAVAILABLE);
    clear(&r);
    tc_dns_free(dns);
    tc_loop_free(loop);
}

/* The memory that c-ares holds, counted by the functions below, which main gives to c-ares. */
static size_t held;

static void *counted_realloc(void *block, size_t size)
{
    held -= block ? malloc_usable_size(block) : 0;
    void *out = realloc(block, size);
    held += out ? malloc_usable_size(out) : 0;
    return out;
}

static void *counted_malloc(size_t size)
{
    return counted_realloc(NULL, size);
}

static void counted_free(void *block)
{
    held -= block ? malloc_usable_size(block) : 0;
    free(block);
}

/* Between look-ups c-ares holds neither memory nor a descriptor for a tc_dns: a mesh has a tc_dns for each of its
 * LOGICAL_DNS clusters. */
static void little_is_held_between_look_ups(void **state)
{
    struct fixture *f = *state;
    size_t before = held, most = 0, open = footprint_descriptors();
    for (int i = 0; i < 3; i++) {
        clear(&f->result);
        assert_int_equal(tc_dns_resolve(f->dns, "both.test.", 443, on_result, &f->result), 0);
        most = held > most ? held : most;
        while (!f->result.called)
            tc_loop_turn(f->loop, -1);
        assert_int_equal(f->result.n, 3);
        assert_int_equal(held, before);
        assert_int_equal(footprint_descriptors(), open);
    }
    printf("%zu bytes of c-ares during a look-up, %zu after it\n", most - before, held - before);
    assert_true(most > before);
    look_up(f, "nx.test.");
    assert_int_equal(held, before);
    assert_int_equal(tc_dns_resolve(f->dns, "silent.test.", 443, on_result, &f->result), 0);
    tc_dns_cancel(f->dns);
    assert_int_equal(held, before);
    assert_int_equal(footprint_descriptors(), open);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    ares_library_init_mem(ARES_LIB_INIT_ALL, counted_malloc, counted_free, counted_realloc);
    const struct CMUnitTest tests[] = {
        T(both_families_are_asked_and_joined),
        T(one_family_is_enough),
        T(literals_and_hosts_need_no_query),
        T(a_missing_name_says_so),
        T(a_name_without_addresses_says_so),
        T(a_failing_server_says_so),
        T(a_silent_server_times_out),
        T(only_one_look_up_at_a_time),
        T(cancel_means_no_callback),
        T(free_ends_a_running_look_up),
        T(it_can_be_freed_in_its_callback),
        T(bad_servers_are_an_error_not_a_crash),
        T(little_is_held_between_look_ups),
        T(an_unspeakable_name_is_an_error),
        cmocka_unit_test(a_manual_loop_resolves_literals_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
