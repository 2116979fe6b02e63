/* Clients that leave a header block unfinished while calls of the connection end. They pause before the CONTINUATION of
 * a request's headers or trailers, while deadlines of calls pass. About half of the connections read no answers before
 * they have sent everything, so that the server cannot send the end of a call. About half, drawn independently, send so
 * much at once that a turn of the server may end inside a block.
 *
 * Six clients, three of them over TLS, each on its own thread, make one connection after another. A header block of a
 * request has the request's mark 1 to 60 times. The server checks that all marks in the metadata of a call are alike,
 * and answers with the mark; the client checks that a mark in an answer is that of its own request (an answer that is
 * only an end has none). Runs for TORC_SOAK_SECONDS (3 by default), and up to a minute more until it has seen enough.
 *
 * The plaintext and the TLS server each have a loop's thread. They share the counters and `what` with the clients. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "support/cmocka.h"
#include "support/hostile/server.h"
#include "support/kits/backends.h"
#include "support/soak.h"
#include "tls/tls.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"

enum { CLIENTS = 6, CALLS = 24, ANSWER = 200000 };

/* --- the server --- */

/* served: calls of the server. answered: header blocks with a mark that clients received. late: calls of the server
 * that their deadline ended. foreign: complaints. */
static atomic_uint served, answered, late, foreign;
static char what[200]; /* the first complaint */

/* Called on any thread. Only the first complaint writes `what`. */
static void complain(const char *text, const char *value, size_t len)
{
    if (atomic_fetch_add(&foreign, 1) == 0)
        snprintf(what, sizeof(what), "%s: %.*s", text, (int)TC_MIN(len, (size_t)100), value);
}

/* A call at the server; in the call's arena. */
struct served_call {
    struct tc_server_call *call;
    char mark[32]; /* of the request's first field "mark"; "CLIENT.CALL", where CALL is random */
};

/* Complains about each field of the request's metadata whose value is not the call's mark. */
static void check(const struct served_call *c)
{
    const struct tc_headers *h = tc_server_call_metadata(c->call);
    for (size_t i = 0; i < h->len; i++) {
        const struct tc_header *f = &h->data[i];
        if (f->name.data[0] != ':' && !tc_slice_eq_str(f->value, c->mark))
            complain("a request's field", f->value.data, f->value.len);
    }
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct served_call *c = arg;
    tc_rstr_unref(message);
    check(c);
    tc_server_call_read(c->call);
}

static void on_half_close(void *arg)
{
    struct served_call *c = arg;
    struct tc_headers trailers;
    check(c);
    tc_headers_init(&trailers, tc_server_call_arena(c->call));
    tc_headers_add(&trailers, tc_slice_str("mark"), tc_slice_str(c->mark));
    tc_server_call_finish(c->call, TORC_STATUS_OK, NULL, &trailers);
}

static void on_end(void *arg, const struct tc_status *why)
{
    check(arg);
    atomic_fetch_add(&late, why->code == TORC_STATUS_DEADLINE_EXCEEDED);
}

static const struct tc_server_call_events call_events = {
    .on_message = on_message, .on_half_close = on_half_close, .on_end = on_end};

static void on_call(void *arg, struct tc_server_call *call)
{
    (void)arg;
    static const char zeros[ANSWER];
    struct served_call *c = tc_arena_calloc(tc_server_call_arena(call), 1, sizeof(*c));
    const struct tc_header *mark = tc_headers_find(tc_server_call_metadata(call), tc_slice_str("mark"));
    struct tc_headers headers;
    atomic_fetch_add(&served, 1);
    c->call = call;
    if (mark)
        snprintf(c->mark, sizeof(c->mark), "%.*s", (int)mark->value.len, mark->value.data);
    check(c);
    tc_server_call_set_events(call, &call_events, c);
    tc_headers_init(&headers, tc_server_call_arena(call));
    tc_headers_add(&headers, tc_slice_str("mark"), tc_slice_str(c->mark));
    tc_server_call_send_headers(call, &headers, TC_H2_IDENTITY);
    tc_server_call_send(call, tc_slice_of(zeros, sizeof(zeros)));
    tc_server_call_read(call);
}

static void add_method(struct tc_server *server, void *arg)
{
    (void)arg;
    tc_server_add_method(server, "/a.B/C", on_call, NULL);
}

/* --- the clients --- */

struct client {
    const char *address; /* borrowed from the kit */
    bool tls;
    unsigned number;
    uint64_t end_ns; /* when TORC_SOAK_SECONDS are over, by the monotonic clock */
    pthread_t thread;
    struct tc_rng rng;
    unsigned long marks[CALLS]; /* CALL of each mark; the index is the stream's id / 2 */
    bool open[CALLS];           /* requests whose end was not sent */
    uint32_t begun;             /* calls begun on this connection */
    unsigned settings;          /* SETTINGS received; fake_h2_start has acknowledged the first */
};

static void stall(struct client *c, unsigned most_ms)
{
    struct timespec t = {.tv_nsec = (long)tc_rng_below(&c->rng, 1000u * most_ms) * 1000};
    ppoll(NULL, 0, &t, NULL);
}

/* Acknowledges SETTINGS and PING. Checks the first mark of each header block. arg: the struct client. */
static void on_frame(void *arg, struct hostile_peer *p, const struct fake_h2_frame *f)
{
    struct client *c = arg;
    uint32_t i = f->stream / 2;
    if (f->type == FAKE_H2_SETTINGS && !(f->flags & FAKE_H2_ACK) && c->settings++ > 0)
        fake_h2_frame(hostile_frames(p), FAKE_H2_SETTINGS, FAKE_H2_ACK, 0, NULL, 0);
    if (f->type == FAKE_H2_PING && !(f->flags & FAKE_H2_ACK))
        fake_h2_ping(hostile_frames(p), f->payload, true);
    if (f->type != FAKE_H2_HEADERS || !f->headers || i >= CALLS)
        return;
    char expected[64];
    snprintf(expected, sizeof(expected), "mark: %u.%lu\n", c->number, c->marks[i]);
    const char *mark = strstr(f->headers, "mark: ");
    if (mark && strncmp(mark, expected, strlen(expected)) != 0)
        complain("an answer's field", mark, strlen(mark));
    atomic_fetch_add(&answered, mark != NULL);
}

static void take_answers(struct client *c, struct hostile_peer *p)
{
    const struct fake_h2_frame *f;
    while ((f = hostile_next(p, false)))
        on_frame(c, p, f);
}

/* Adds a block of `fields` and 1 to 60 marks, as HEADERS and CONTINUATION. With `stalls`, half of the blocks have a
 * pause of up to 5 ms between the two frames, in which calls may end. */
static void put_block(struct client *c, struct hostile_peer *p, uint32_t i, const char *fields, bool end, bool stalls)
{
    struct tc_buf block = {0}, text = {0};
    tc_buf_append_str(&text, fields);
    for (uint64_t n = tc_rng_below(&c->rng, 60) + 1; n > 0; n--)
        tc_buf_printf(&text, "mark: %u.%lu\n", c->number, c->marks[i]);
    fake_h2_hpack(&block, tc_buf_cstr(&text));
    size_t first = tc_rng_below(&c->rng, block.len);
    fake_h2_frame(hostile_frames(p), FAKE_H2_HEADERS, end ? FAKE_H2_END_STREAM : 0, 2 * i + 1, block.data, first);
    if (stalls && tc_rng_below(&c->rng, 2)) {
        hostile_flush(p);
        stall(c, 5);
    }
    fake_h2_frame(hostile_frames(p), FAKE_H2_CONTINUATION, FAKE_H2_END_HEADERS, 2 * i + 1, block.data + first,
                  block.len - first);
    tc_buf_fini(&block);
    tc_buf_fini(&text);
}

/* Begins the connection's next call. Three of four have a deadline of at most 10 ms, the others of 10 s. */
static void begin(struct client *c, struct hostile_peer *p)
{
    char fields[200];
    uint32_t i = c->begun++;
    bool soon = tc_rng_below(&c->rng, 4) != 0;
    c->marks[i] = (unsigned long)(tc_rng_u64(&c->rng) >> 20);
    c->open[i] = true;
    snprintf(fields, sizeof(fields),
             ":method: POST\n:scheme: http\n:path: /a.B/C\n:authority: a\ncontent-type: application/grpc\n"
             "te: trailers\ngrpc-timeout: %um\n",
             soon ? (unsigned)tc_rng_below(&c->rng, 10) + 1 : 10000u);
    put_block(c, p, i, fields, false, true);
}

/* Adds the trailers of two of three open requests. */
static void end_some(struct client *c, struct hostile_peer *p, bool stalls)
{
    for (uint32_t i = 0; i < c->begun; i++) {
        if (!c->open[i] || tc_rng_below(&c->rng, 3) == 0)
            continue;
        c->open[i] = false;
        put_block(c, p, i, "", true, stalls);
    }
}

/* Sends 50,000 bytes on each open stream and then the ends of some requests, all at once. */
static void burst(struct client *c, struct hostile_peer *p)
{
    static const char zeros[50000];
    for (uint32_t i = 0; i < c->begun; i++)
        if (c->open[i])
            fake_h2_message(hostile_frames(p), 2 * i + 1, zeros, sizeof(zeros), false);
    end_some(c, p, false);
    hostile_flush(p);
}

/* Plays one connection of CALLS calls, or fewer if the server closes it. */
static void play(struct hostile_peer *p)
{
    struct client *c = hostile_arg(p);
    c->begun = c->settings = 0;
    bool deaf = tc_rng_below(&c->rng, 2), bursts = tc_rng_below(&c->rng, 2);
    hostile_keep(p);
    if (deaf) {
        hostile_shrink(p);
        hostile_deafen(p);
    }
    fake_h2_start(hostile_frames(p));
    fake_h2_setting(hostile_frames(p), 4, 1 << 20);
    fake_h2_window(hostile_frames(p), 0, INT32_MAX - 65535);
    while (c->begun < CALLS && hostile_flush(p)) {
        begin(c, p);
        if (!deaf)
            take_answers(c, p);
        if (!bursts)
            end_some(c, p, true);
    }
    if (bursts)
        burst(c, p);
    end_some(c, p, true);
    if (hostile_flush(p) && tc_rng_below(&c->rng, 4))
        hostile_settle_with(p, on_frame, c);
    take_answers(c, p);
}

/* Returns true once enough calls, deadlines and answers have occurred. A slow machine needs longer than 3 s. */
static bool seen_enough(void)
{
    return atomic_load(&served) >= 150 && atomic_load(&late) >= 60 && atomic_load(&answered) >= 60;
}

static bool visits_go_on(const struct client *c)
{
    uint64_t now = tc_system_clock.monotonic_ns(NULL);
    return !atomic_load(&foreign) && (now < c->end_ns || (!seen_enough() && now < c->end_ns + 60 * TC_NS_PER_S));
}

/* A client's thread. arg: the struct client. */
static void *visit_again(void *arg)
{
    struct client *c = arg;
    for (unsigned n = 0; visits_go_on(c); n++) {
        tc_rng_init_seed(&c->rng, 100000 * c->number + n);
        if (!hostile_visit(c->address, c->tls, play, c))
            complain("no connection", "", 0);
    }
    return NULL;
}

/* Returns a server's context with a certificate of its own. The caller gives the reference up with
 * tc_tls_context_unref. */
static struct tc_tls_context *make_tls(void)
{
    struct tc_status error;
    struct kit_cert cert = kit_cert_make(&(struct kit_cert_opts){.common_name = "a.test", .ca = true});
    struct tc_tls_context *ctx = tc_tls_context_new(&(struct tc_tls_opts){.server = true,
                                                                          .verify = TC_TLS_VERIFY_NONE,
                                                                          .certificate_pem = kit_cert_pem(&cert),
                                                                          .private_key_pem = kit_cert_key(&cert)},
                                                    &error);
    assert_non_null(ctx);
    kit_cert_fini(&cert);
    return ctx;
}

static void no_header_goes_astray(void **state)
{
    (void)state;
    unsigned seconds = soak_seconds(3);
    signal(SIGPIPE, SIG_IGN);
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    struct kit_backends *clear = kit_backends_new(1, &opts);
    opts.tls = make_tls();
    struct kit_backends *secure = kit_backends_new(1, &opts);
    static struct client clients[CLIENTS];
    kit_backends_do(clear, add_method, 0, NULL);
    kit_backends_do(secure, add_method, 0, NULL);
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.address = kit_backends_address(i % 2 ? secure : clear, 0),
                                     .tls = i % 2,
                                     .number = i,
                                     .end_ns = tc_system_clock.monotonic_ns(NULL) + seconds * TC_NS_PER_S};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, visit_again, &clients[i]), 0);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    kit_backends_free(clear);
    kit_backends_free(secure);
    tc_tls_context_unref(opts.tls);
    print_message("%u calls, %u after their deadline, %u header blocks of answers\n", served, late, answered);
    if (foreign)
        fail_msg("%u fields of others; the first: %s", foreign, what);
    assert_true(seen_enough());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_header_goes_astray)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
