/* A server of the public API among hostile clients: floods, hostile header blocks and messages, connections that break
 * off or break HTTP/2's rules (the rows of support/hostile, except those of TLS, from the client's side), slow and
 * silent clients, TLS that stops half way, garbage, streams that are reset at once, clients that never read.
 *
 * For each test serving_begin forks a server process, whose CPU time and memory are measured; serving_end ends it. The
 * attacks play on threads of the test's process. Meanwhile the test's thread makes one RPC of a good client after the
 * other, on a runtime that this thread drives; each RPC must succeed. During an attack the server grows by at most
 * GROWN_KB, and holds no RPC up for more than HELD_MS. An RPC is held up for its duration, or for the server's CPU time
 * meanwhile if that is less. HELD_MS leaves room for a machine whose caches other processes use: on a quiet machine the
 * answers that never_read asks for cost 30 to 50 ms. test_unfinished_requests attacks nothing and has its own bound of
 * memory, and none of time. Bounds are asserted only where FOOTPRINT_MEASURED. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <torc/torc.h>

#include "base/common.h"
#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/hostile/rows.h"
#include "support/kits/backends.h"

enum { HELD_MS = 250, GROWN_KB = 96 << 10, UNSENT_BYTES = 16 << 20, HANDSHAKE_MS = 1000 };
/* MAX_ATTACKS: entries of attacks.all, each of which is played by one visit or more. */
enum { THREADS = 6, MAX_ATTACKS = 200 };

/* --- the server's process --- */

static struct {
    pid_t pid;
    int until; /* the server ends when this end of the pipe is closed */
    char clear[64], secure[64];
    clockid_t cpu;
} serving;

static void on_echo(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

static void on_cancel(torc_server_call *call, void *arg)
{
    (void)arg;
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

/* Sends as much as the call takes, each time that it takes more. */
static void on_writable(torc_server_call *call, void *arg)
{
    static const char zeros[32768];
    (void)arg;
    while (torc_server_call_send(call, zeros, sizeof(zeros), 0, 0) == 0)
        ;
}

static void on_message(torc_server_call *call, const torc_message *message, void *arg)
{
    (void)message, (void)arg;
    torc_server_call_want(call, 1);
}

/* Reads all messages and answers nothing. */
static void on_hold(torc_server_call *call, void *arg)
{
    static const struct torc_server_call_events events = {TORC_SIZE(torc_server_call_events), .on_message = on_message,
                                                          .on_cancel = on_cancel};
    torc_server_call_set_events(call, &events, arg);
    torc_server_call_want(call, 1);
}

static void on_large(torc_server_call *call, void *arg)
{
    static const struct torc_server_call_events events = {TORC_SIZE(torc_server_call_events),
                                                          .on_writable = on_writable, .on_cancel = on_cancel};
    if (torc_server_call_set_events(call, &events, arg) == 0)
        on_writable(call, arg);
}

/* Returns credentials with a certificate of their own. The caller gives the reference up. */
static torc_credentials *server_credentials(void)
{
    struct kit_cert cert = kit_cert_make(&(struct kit_cert_opts){.common_name = "a.test", .ca = true});
    const struct torc_server_tls_options o = {TORC_SIZE(torc_server_tls_options), .certificate_pem = cert.cert_pem,
                                              .private_key_pem = cert.key_pem};
    torc_credentials *credentials = torc_server_credentials_tls(&o, NULL);
    kit_cert_fini(&cert);
    return credentials;
}

/* Returns a started server, and the addresses of its plaintext and its TLS listener; the caller frees the addresses
 * with torc_free. Exits on failure: called in the child. */
static torc_server *server_open(char **clear, char **secure)
{
    const struct torc_server_options o = {TORC_SIZE(torc_server_options), .unsent_bytes = UNSENT_BYTES,
                                          .handshake_timeout_ms = HANDSHAKE_MS, .max_connection_idle_ms = 2000};
    const struct torc_handler echo = {TORC_SIZE(torc_handler), .unary = on_echo},
                              hold = {TORC_SIZE(torc_handler), .stream = on_hold},
                              large = {TORC_SIZE(torc_handler), .stream = on_large};
    torc_credentials *credentials = server_credentials();
    torc_server *server = torc_server_new(&o, NULL);
    if (torc_server_add_method(server, "a.B/Echo", &echo, NULL) ||
        torc_server_add_method(server, "a.B/C", &hold, NULL) ||
        torc_server_add_method(server, "a.B/Large", &large, NULL) ||
        torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), clear, NULL) ||
        torc_server_listen(server, "127.0.0.1:0", credentials, secure, NULL) || torc_server_start(server, NULL))
        _exit(1);
    torc_credentials_unref(credentials);
    return server;
}

/* The child: writes the addresses to `out`, serves until the parent closes its end of the pipe `until`, and exits. */
static void serve(int out, int until)
{
    char *clear = NULL, *secure = NULL, byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    torc_server *server = server_open(&clear, &secure);
    dprintf(out, "%s %s\n", clear, secure);
    while (read(until, &byte, 1) > 0)
        ;
    torc_server_free(server);
    torc_free(clear);
    torc_free(secure);
    _exit(0);
}

static int serving_begin(void **state)
{
    (void)state;
    int out[2], until[2];
    char line[160] = "";
    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(until), 0);
    serving.pid = fork(); /* the threads of earlier tests have ended */
    assert_true(serving.pid >= 0);
    if (serving.pid == 0) {
        close(until[1]);
        serve(out[1], until[0]);
    }
    close(out[1]);
    close(until[0]);
    serving.until = until[1];
    assert_true(read(out[0], line, sizeof(line) - 1) > 0);
    close(out[0]);
    assert_int_equal(sscanf(line, "%63s %63s", serving.clear, serving.secure), 2);
    assert_int_equal(clock_getcpuclockid(serving.pid, &serving.cpu), 0);
    return 0;
}

static int serving_end(void **state)
{
    (void)state;
    int status = -1;
    close(serving.until);
    assert_int_equal(waitpid(serving.pid, &status, 0), serving.pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return 0;
}

/* Returns the kB in the line of the server's /proc/PID/status that begins with `what` ("VmRSS:"); -1: no such line. */
static long serving_kb(const char *what)
{
    char path[64], line[256];
    long kb = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)serving.pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, what, strlen(what)) == 0)
            sscanf(line + strlen(what), "%ld", &kb);
    fclose(f);
    return kb;
}

/* --- the good client --- */

/* Returns the clock's time in ms. */
static double ms_of(clockid_t clock)
{
    struct timespec t;
    assert_int_equal(clock_gettime(clock, &t), 0);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct witness {
    torc_runtime *rt;
    torc_channel *ch;
    unsigned rpcs;
    double longest_ms; /* the most that an RPC was held up: its duration, or the server's CPU time meanwhile if less */
};

static void witness_begin(struct witness *w)
{
    const struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    *w = (struct witness){.rt = kit_backends_runtime(TORC_RUNTIME_CALLER)};
    w->ch = torc_channel_new(w->rt, serving.clear, &o, NULL);
    assert_non_null(w->ch);
}

static void witness_call(struct witness *w)
{
    const struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 20000};
    double wall = ms_of(CLOCK_MONOTONIC), cpu = ms_of(serving.cpu);
    torc_result *r = torc_unary(w->ch, "a.B/Echo", "hello", 5, &o);
    wall = ms_of(CLOCK_MONOTONIC) - wall;
    cpu = ms_of(serving.cpu) - cpu;
    if (torc_result_code(r) != TORC_STATUS_OK)
        fail_msg("%s", torc_result_text(r));
    torc_result_free(r);
    w->rpcs++;
    w->longest_ms = TC_MAX(w->longest_ms, TC_MIN(wall, cpu));
}

static void witness_end(struct witness *w)
{
    torc_channel_free(w->ch);
    assert_int_equal(torc_runtime_free(w->rt), 0);
}

/* --- attacks --- */

struct attack {
    hostile_play_fn *play;
    bool tls;        /* the play speaks TLS */
    bool beneath;    /* the play connects to the TLS port and speaks no TLS */
    unsigned visits; /* how many connections play it */
};

static struct {
    struct attack all[MAX_ATTACKS];
    size_t n;
    atomic_uint next; /* the next visit, counted over all attacks */
    atomic_int over;  /* threads that have no visit left */
} attacks;

static void attack_add(struct attack a)
{
    assert_true(attacks.n < MAX_ATTACKS);
    attacks.all[attacks.n++] = a;
}

/* An attacker's thread: plays visits until none is left. */
static void *visit_next(void *arg)
{
    (void)arg;
    for (;;) {
        unsigned visit = atomic_fetch_add(&attacks.next, 1);
        size_t i = 0;
        while (i < attacks.n && visit >= attacks.all[i].visits)
            visit -= attacks.all[i++].visits;
        if (i == attacks.n)
            break;
        const struct attack *a = &attacks.all[i];
        hostile_visit(a->tls || a->beneath ? serving.secure : serving.clear, a->tls, a->play, NULL);
    }
    atomic_fetch_add(&attacks.over, 1);
    return NULL;
}

/* Plays all attacks on n_threads threads, at most 64, while the good client makes RPCs. Then forgets the attacks. */
static void attacks_play(unsigned n_threads)
{
    pthread_t threads[64];
    struct witness w;
    assert_true(n_threads <= TC_ARRAY_LEN(threads));
    witness_begin(&w);
    for (int i = 0; i < 100; i++)
        witness_call(&w);
    w.longest_ms = 0;
    long before_kb = serving_kb("VmRSS:");
    attacks.next = 0;
    attacks.over = 0;
    for (unsigned i = 0; i < n_threads; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, visit_next, NULL), 0);
    while ((unsigned)atomic_load(&attacks.over) < n_threads)
        witness_call(&w);
    for (unsigned i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    long most_kb = serving_kb("VmHWM:");
    print_message("%u RPCs, the longest held up for %.1f ms; at most %ld kB more\n", w.rpcs, w.longest_ms,
                  most_kb - before_kb);
    if (FOOTPRINT_MEASURED) {
        assert_true(w.longest_ms <= HELD_MS);
        assert_true(most_kb - before_kb <= GROWN_KB);
    }
    witness_end(&w);
    attacks.n = 0;
}

/* --- rows of support/hostile --- */

static void add_rows(struct hostile_rows rows, bool tls)
{
    for (size_t i = 0; i < rows.n; i++)
        attack_add((struct attack){rows.rows[i].play, .tls = tls, .visits = 1});
}

static void test_floods(void **state)
{
    (void)state;
    add_rows(hostile_flood_rows(), false);
    add_rows(hostile_flood_rows(), true);
    attacks_play(THREADS);
}

static void test_header_blocks(void **state)
{
    (void)state;
    add_rows(hostile_header_rows(), false);
    add_rows(hostile_header_rows(), true);
    attacks_play(THREADS);
}

static void test_messages(void **state)
{
    (void)state;
    add_rows(hostile_message_rows(), false);
    add_rows(hostile_state_rows(), false);
    attacks_play(THREADS);
}

/* --- plays of clients --- */

static void stall(int ms)
{
    poll(NULL, 0, ms);
}

/* Slowloris: a request that comes byte by byte and is never complete. */
static void byte_by_byte(struct hostile_peer *p)
{
    fake_h2_start(hostile_frames(p));
    fake_h2_headers(hostile_frames(p), 1, HOSTILE_REQUEST("/a.B/C"), false);
    struct tc_buf *out = fake_h2_take(hostile_frames(p));
    for (size_t i = 0; i + 1 < out->len && hostile_put_raw(p, out->data + i, 1); i++)
        stall(2);
    tc_buf_clear(out);
    hostile_await_close(p);
}

static void silent(struct hostile_peer *p)
{
    hostile_await_close(p);
}

static void silent_after_settings(struct hostile_peer *p)
{
    fake_h2_start(hostile_frames(p));
    hostile_await_close(p);
}

/* The first 120 bytes of a ClientHello of 517. */
static void half_a_hello(struct hostile_peer *p)
{
    static const char hello[120] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    hostile_put_raw(p, hello, sizeof(hello));
    hostile_await_close(p);
}

static void garbage(struct hostile_peer *p)
{
    static const char get[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for (int i = 0; i < 1000 && hostile_put_raw(p, get, sizeof(get) - 1); i++)
        ;
}

/* Up to 10,000 streams, each reset at once, until the server closes. */
static void open_and_reset(struct hostile_peer *p)
{
    fake_h2_start(hostile_frames(p));
    for (uint32_t id = 1; id < 20000 && hostile_flush_much(p); id += 2) {
        fake_h2_headers(hostile_frames(p), id, HOSTILE_REQUEST("/a.B/C"), false);
        fake_h2_rst(hostile_frames(p), id, 8);
    }
    hostile_flush(p);
    hostile_await_close(p);
}

/* As many RPCs as the server allows at a time, 100, which it answers without end. Nothing is read. */
static void never_read(struct hostile_peer *p)
{
    hostile_shrink(p);
    hostile_deafen(p);
    fake_h2_start(hostile_frames(p));
    fake_h2_setting(hostile_frames(p), 4, INT32_MAX);
    fake_h2_window(hostile_frames(p), 0, INT32_MAX - 65535);
    for (uint32_t id = 1; id < 200; id += 2)
        fake_h2_headers(hostile_frames(p), id, HOSTILE_REQUEST("/a.B/Large"), true);
    hostile_flush(p);
    stall(500);
}

/* 100 RPCs whose requests come in part: a prefix that announces a byte less than 4 MiB, and one byte. */
static void parts_of_messages(struct hostile_peer *p)
{
    fake_h2_start(hostile_frames(p));
    for (uint32_t id = 1; id < 200; id += 2) {
        fake_h2_headers(hostile_frames(p), id, HOSTILE_REQUEST("/a.B/C"), false);
        fake_h2_data(hostile_frames(p), id, "\0\0\x3f\xff\xffx", 6, false);
    }
    hostile_flush(p);
    stall(200);
}

static void test_slow_and_silent(void **state)
{
    (void)state;
    attack_add((struct attack){byte_by_byte, .visits = 12});
    attack_add((struct attack){silent, .visits = 16});
    attack_add((struct attack){silent, .beneath = true, .visits = 12});
    attack_add((struct attack){silent_after_settings, .visits = 12});
    attack_add((struct attack){half_a_hello, .beneath = true, .visits = 12});
    attacks_play(64);
}

static void test_resets_and_garbage(void **state)
{
    (void)state;
    attack_add((struct attack){open_and_reset, .visits = 20});
    attack_add((struct attack){open_and_reset, .tls = true, .visits = 10});
    attack_add((struct attack){garbage, .visits = 50});
    attack_add((struct attack){garbage, .beneath = true, .visits = 50});
    attacks_play(THREADS);
}

static void test_never_read(void **state)
{
    (void)state;
    attack_add((struct attack){never_read, .visits = 24});
    attack_add((struct attack){parts_of_messages, .visits = 24});
    attacks_play(12);
}

/* A client makes as many requests as a connection may have by default. Each has nearly the largest size, and none is
 * half-closed. The server holds them, and grows by at most 512 MiB, 28 % more than their bytes. */
static void test_unfinished_requests(void **state)
{
    (void)state;
    enum { STREAMS = 100, BYTES = (4 << 20) - 64, MOST_S = 60 };
    static const char zeros[BYTES];
    const struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    long before_kb = serving_kb("VmRSS:"), held_kb = STREAMS * (long)(BYTES / 1024), grown_kb = 0;
    double since_ms = ms_of(CLOCK_MONOTONIC);
    torc_runtime *rt = torc_runtime_new(NULL, NULL);
    torc_channel *ch = torc_channel_new(rt, serving.clear, &o, NULL);
    torc_stream *streams[STREAMS];
    struct witness w;
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = torc_stream_open(ch, "a.B/Echo", NULL, NULL);
        assert_int_equal(torc_stream_send(streams[i], zeros, BYTES, 0, -1), 0);
    }
    witness_begin(&w);
    while (grown_kb < held_kb && ms_of(CLOCK_MONOTONIC) - since_ms < MOST_S * 1e3) {
        witness_call(&w);
        grown_kb = serving_kb("VmHWM:") - before_kb;
    }
    print_message("%u RPCs, the longest held up for %.1f ms; at most %ld kB more\n", w.rpcs, w.longest_ms, grown_kb);
    if (FOOTPRINT_MEASURED)
        assert_in_range(grown_kb, held_kb, 512 << 10);
    witness_end(&w);
    for (int i = 0; i < STREAMS; i++)
        torc_stream_free(streams[i]);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, serving_begin, serving_end)
    const struct CMUnitTest tests[] = {
        T(test_slow_and_silent), T(test_resets_and_garbage), T(test_never_read),         T(test_floods),
        T(test_header_blocks),   T(test_messages),           T(test_unfinished_requests)};
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
