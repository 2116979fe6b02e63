/* Servers that leave header blocks unfinished while calls end. A server stalls inside a block, or stops reading so that
 * the client cannot send RST_STREAM, or sends so much at once that a turn of the client may end inside a block.
 *
 * 20 calls at a time run to each of five servers, over plaintext and TLS; many end early, by deadlines or cancelled.
 * Asserts that each header that a call gets comes from the call's own server and request, and that calls end with OK,
 * by their deadline or cancelled. Runs for TORC_SOAK_SECONDS (4 by default), and up to a minute more until it has seen
 * enough.
 *
 * The servers play in two processes of their own, each connection on a thread. In the test's process the loop's thread
 * starts the calls, counts their results and frees them, and the test's thread cancels some calls. A slot's lock keeps
 * the slot's call alive for torc_stream_cancel. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/hostile/server.h"
#include "support/soak.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"

enum { CLEAR = 3, SECURE = 2, SERVERS = CLEAR + SECURE, SLOTS = 20, PENDING = 64, LARGE = 200000, LONG_MS = 2000 };

/* --- the servers --- */

struct request {
    uint32_t stream;
    unsigned long mark;
};

/* A connection, as its server plays it. */
struct session {
    struct hostile_peer *p; /* borrowed */
    struct tc_rng rng;
    bool secure;                     /* over TLS */
    unsigned settings;               /* SETTINGS received; fake_h2_start has acknowledged the first */
    struct request pending[PENDING]; /* the first n: requests that are not answered */
    size_t n;
};

static bool one_in(struct session *s, unsigned n)
{
    return tc_rng_below(&s->rng, n) == 0;
}

static void stall(struct session *s, unsigned most_ms)
{
    uint64_t us = tc_rng_below(&s->rng, 1000u * most_ms);
    struct timespec t = {.tv_nsec = (long)us * 1000};
    ppoll(NULL, 0, &t, NULL);
}

static void on_frame(struct session *s, const struct fake_h2_frame *f)
{
    if (f->type == FAKE_H2_HEADERS && f->headers && s->n < PENDING) {
        const char *mark = strstr(f->headers, "mark: ");
        s->pending[s->n++] = (struct request){f->stream, mark ? strtoul(mark + 6, NULL, 10) : 0};
    }
    for (size_t i = 0; f->type == FAKE_H2_RST_STREAM && i < s->n; i++)
        if (s->pending[i].stream == f->stream)
            s->pending[i] = s->pending[--s->n];
    if (f->type == FAKE_H2_PING && !(f->flags & FAKE_H2_ACK))
        fake_h2_ping(hostile_frames(s->p), f->payload, true);
    if (f->type == FAKE_H2_SETTINGS && !(f->flags & FAKE_H2_ACK) && s->settings++ > 0)
        fake_h2_frame(hostile_frames(s->p), FAKE_H2_SETTINGS, FAKE_H2_ACK, 0, NULL, 0);
}

/* Adds a block of `fields`, the server's name, two marks and up to 39 fillings, in one to four frames of random size.
 * With `stalls`, half of the frames other than the last are sent at once and followed by a pause of up to 4 ms. */
static void put_block(struct session *s, const struct request *r, const char *fields, bool end, bool stalls)
{
    struct tc_buf block = {0}, text = {0};
    size_t more = tc_rng_below(&s->rng, 40);
    tc_buf_append_str(&text, fields);
    tc_buf_printf(&text, "server: %s%zu\nmark: %lu\n", s->secure ? "s" : "c", hostile_number(s->p), r->mark);
    for (size_t i = 0; i < more; i++)
        tc_buf_printf(&text, "filling: %0200lu\n", r->mark);
    tc_buf_printf(&text, "mark: %lu\n", r->mark);
    fake_h2_hpack(&block, tc_buf_cstr(&text));
    size_t at = 0, frames = 1 + tc_rng_below(&s->rng, 4);
    for (size_t i = 0; i < frames; i++) {
        bool last = i + 1 == frames;
        size_t n = last ? block.len - at : tc_rng_below(&s->rng, block.len - at);
        unsigned flags = (last ? FAKE_H2_END_HEADERS : 0u) | (i == 0 && end ? FAKE_H2_END_STREAM : 0u);
        fake_h2_frame(hostile_frames(s->p), i ? FAKE_H2_CONTINUATION : FAKE_H2_HEADERS, (uint8_t)flags, r->stream,
                      block.data + at, n);
        at += n;
        if (!last && stalls && one_in(s, 2)) {
            hostile_flush(s->p);
            stall(s, 4);
        }
    }
    tc_buf_fini(&block);
    tc_buf_fini(&text);
}

/* Adds a response: headers, a message of len bytes (60,000 at most) and trailers. */
static void answer(struct session *s, const struct request *r, size_t len, bool stalls)
{
    static const char zeros[60000];
    put_block(s, r, ":status: 200\ncontent-type: application/grpc\n", false, stalls);
    fake_h2_message(hostile_frames(s->p), r->stream, zeros, len, false);
    put_block(s, r, "grpc-status: 0\n", true, stalls);
}

/* Answers all pending requests at once. Eight answers are about as much as the client reads in a turn (512 KiB). */
static void burst(struct session *s)
{
    while (s->n)
        answer(s, &s->pending[--s->n], 60000, false);
    hostile_flush(s->p);
}

/* Takes the requests that have come, until PENDING are pending; waits a little if none is. */
static void take_requests(struct session *s)
{
    const struct fake_h2_frame *f;
    while (s->n < PENDING && (f = hostile_next(s->p, false)))
        on_frame(s, f);
    hostile_flush(s->p);
    if (!s->n)
        stall(s, 2);
}

static void play(struct hostile_peer *p, bool secure)
{
    struct session s = {.p = p, .secure = secure};
    static atomic_uint count;
    tc_rng_init_seed(&s.rng, 1000 * hostile_number(p) + atomic_fetch_add(&count, 1));
    hostile_keep(p);
    hostile_shrink(p);
    fake_h2_start(hostile_frames(p));
    fake_h2_setting(hostile_frames(p), 4, 1 << 20); /* SETTINGS_INITIAL_WINDOW_SIZE: large requests come at once */
    fake_h2_window(hostile_frames(p), 0, INT32_MAX - 65535);
    while (hostile_flush(p)) {
        take_requests(&s);
        uint64_t what = tc_rng_below(&s.rng, 10);
        if (what < 2 && s.n < 12) /* reads nothing while calls end */
            stall(&s, 6);
        else if (s.n >= 8)
            burst(&s);
        else if (s.n)
            answer(&s, &s.pending[--s.n], tc_rng_below(&s.rng, 100), what < 5);
    }
}

static void play_clear(struct hostile_peer *p)
{
    play(p, false);
}

static void play_secure(struct hostile_peer *p)
{
    play(p, true);
}

/* --- the client --- */

/* One call at a time to a server; when it has ended, the next begins. */
struct slot {
    struct world *w;
    size_t server;
    pthread_mutex_t lock;
    torc_stream *call; /* under the lock; NULL: none runs */
    char mark[24];     /* random, of the present call; used on the loop's thread */
};

struct world {
    struct hostile *clear, *secure;
    struct kit_cert cert;
    torc_runtime *rt;
    torc_credentials *creds;
    torc_channel *channels[SERVERS];
    char names[SERVERS][8];
    struct slot slots[SERVERS][SLOTS];
    struct tc_rng rng; /* used on the loop's thread */
    char *large;       /* LARGE bytes, lent to the calls as their request */
    atomic_bool over;  /* slots begin no more calls */
    /* running: slots that may still have a call. The others: calls by their outcome. */
    atomic_uint running, ok, late, cancelled, other;
    /* Complaints, about headers of other calls and about missing ones: their number, and the first as text. Written by
     * the loop's thread. */
    atomic_uint foreign;
    char what[300];
};

static void complain(struct world *w, const struct slot *s, const char *name, const char *value)
{
    if (atomic_fetch_add(&w->foreign, 1) == 0)
        snprintf(w->what, sizeof(w->what), "call %s to server %s got \"%s: %.100s\"", s->mark, w->names[s->server],
                 name, value);
}

/* Returns how many fields are the name of the call's server or the call's mark. Complains about each other field,
 * except a filling with the call's mark. m: NULL has no fields. */
static unsigned count_own(struct slot *s, const torc_metadata *m)
{
    struct world *w = s->w;
    unsigned own = 0;
    for (size_t i = 0; i < torc_metadata_count(m); i++) {
        const char *name;
        const void *value;
        torc_metadata_at(m, i, &name, &value, NULL);
        const char *expected = strcmp(name, "server") == 0 ? w->names[s->server] : s->mark;
        bool filling = strcmp(name, "filling") == 0;
        if (!filling && strcmp(name, "server") != 0 && strcmp(name, "mark") != 0)
            complain(w, s, name, value);
        else if (filling ? strtoul(value, NULL, 10) != strtoul(s->mark, NULL, 10) : strcmp(value, expected) != 0)
            complain(w, s, name, value);
        else if (!filling)
            own++;
    }
    return own;
}

static void launch(struct slot *s);

static void on_result(const torc_result *r, void *arg)
{
    struct slot *s = arg;
    struct world *w = s->w;
    unsigned own = count_own(s, torc_result_headers(r)), own_late = count_own(s, torc_result_trailers(r));
    if (torc_result_code(r) == TORC_STATUS_OK) {
        atomic_fetch_add(&w->ok, 1);
        if (own != 3 || own_late != 3)
            complain(w, s, "marks", "not all of them");
    } else if (torc_result_code(r) == TORC_STATUS_DEADLINE_EXCEEDED) {
        atomic_fetch_add(&w->late, 1);
    } else if (torc_result_code(r) == TORC_STATUS_CANCELLED) {
        atomic_fetch_add(&w->cancelled, 1);
    } else if (atomic_fetch_add(&w->other, 1) == 0) {
        print_message("%s: %s\n", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    }
    pthread_mutex_lock(&s->lock);
    torc_stream *call = s->call;
    s->call = NULL;
    pthread_mutex_unlock(&s->lock);
    torc_stream_free(call);
    if (atomic_load(&w->over))
        atomic_fetch_sub(&w->running, 1);
    else
        launch(s);
}

/* Returns a deadline in ms. Three of four are at most 100 ms, so that many pass while a server stalls. */
static int64_t some_timeout(struct tc_rng *rng)
{
    static const int64_t most_ms[] = {5, 20, 100};
    uint64_t which = tc_rng_below(rng, 4);
    return which == TC_ARRAY_LEN(most_ms) ? LONG_MS : 1 + (int64_t)tc_rng_below(rng, (uint64_t)most_ms[which]);
}

/* Starts the slot's next call. Called on the loop's thread, which also runs on_result: so on_result finds s->call. */
static void launch(struct slot *s)
{
    struct world *w = s->w;
    torc_stream *call = NULL;
    struct torc_call_options o = {TORC_SIZE(torc_call_options)};
    snprintf(s->mark, sizeof(s->mark), "%lu", (unsigned long)(tc_rng_u64(&w->rng) >> 20));
    torc_metadata *m = torc_metadata_new();
    torc_metadata_add_string(m, "mark", s->mark);
    o.metadata = m;
    o.wait_for_ready = true;
    o.timeout_ms = some_timeout(&w->rng);
    o.lend_request = true;
    size_t len = tc_rng_below(&w->rng, 3) ? 10 : LARGE;
    assert_int_equal(torc_unary_async(w->channels[s->server], "/a.B/C", w->large, len, &o, on_result, s, &call, NULL),
                     0);
    torc_metadata_free(m);
    pthread_mutex_lock(&s->lock);
    s->call = call;
    pthread_mutex_unlock(&s->lock);
}

static void launch_all(void *arg)
{
    struct world *w = arg;
    for (size_t i = 0; i < SERVERS; i++)
        for (size_t k = 0; k < SLOTS; k++)
            launch(&w->slots[i][k]);
}

/* Returns true once enough calls have succeeded, and enough have ended early. */
static bool enough(struct world *w, unsigned seconds)
{
    return w->ok >= 20 * seconds && w->late + w->cancelled >= 20 * seconds;
}

/* Cancels some calls at random moments, until the test's time is over or there is a complaint. Called on the test's
 * thread. */
static void cancel_some(struct world *w, unsigned seconds)
{
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 7);
    uint64_t end_ns = tc_system_clock.monotonic_ns(NULL) + seconds * TC_NS_PER_S;
    uint64_t last_ns = end_ns + 60 * TC_NS_PER_S; /* a busy machine gets more time to see enough */
    while (!w->foreign && tc_system_clock.monotonic_ns(NULL) < (enough(w, seconds) ? end_ns : last_ns)) {
        struct timespec t = {.tv_nsec = (long)tc_rng_below(&rng, 1000000)};
        ppoll(NULL, 0, &t, NULL);
        struct slot *s = &w->slots[tc_rng_below(&rng, SERVERS)][tc_rng_below(&rng, SLOTS)];
        pthread_mutex_lock(&s->lock);
        if (s->call)
            torc_stream_cancel(s->call);
        pthread_mutex_unlock(&s->lock);
    }
}

/* Calls to the last plaintext server are hedged: attempts that lose end early. */
static const char hedging[] = "{\"methodConfig\":[{\"name\":[{}],\"hedgingPolicy\":"
                              "{\"maxAttempts\":3,\"hedgingDelay\":\"0.002s\",\"nonFatalStatusCodes\":[]}}]}";

static void open_channels(struct world *w)
{
    struct torc_runtime_options ro = {TORC_SIZE(torc_runtime_options)};
    w->rt = torc_runtime_new(&ro, NULL);
    struct torc_tls_options to = {TORC_SIZE(torc_tls_options), .roots_pem = w->cert.cert_pem};
    w->creds = torc_credentials_tls(&to, NULL);
    assert_non_null(w->creds);
    for (size_t i = 0; i < SERVERS; i++) {
        bool secure = i >= CLEAR;
        struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
        if (secure)
            o.credentials = w->creds;
        if (i == CLEAR - 1)
            o.service_config_json = hedging;
        size_t number = secure ? i - CLEAR : i;
        snprintf(w->names[i], sizeof(w->names[i]), "%s%zu", secure ? "s" : "c", number);
        char *target = tc_asprintf("ipv4:%s", hostile_address(secure ? w->secure : w->clear, number));
        w->channels[i] = torc_channel_new(w->rt, target, &o, NULL);
        assert_non_null(w->channels[i]);
        tc_free(target);
    }
}

static struct world world;

static void no_header_goes_astray(void **state)
{
    (void)state;
    struct world *w = &world;
    unsigned seconds = soak_seconds(4);
    tc_rng_init_seed(&w->rng, 1);
    w->large = tc_calloc(1, LARGE);
    open_channels(w);
    atomic_store(&w->running, SERVERS * SLOTS);
    for (size_t i = 0; i < SERVERS; i++) {
        for (size_t k = 0; k < SLOTS; k++) {
            struct slot *s = &w->slots[i][k];
            s->w = w;
            s->server = i;
            pthread_mutex_init(&s->lock, NULL);
        }
    }
    torc_runtime_post(w->rt, launch_all, w);
    cancel_some(w, seconds);
    atomic_store(&w->over, true);
    const struct timespec little = {.tv_nsec = 5000000};
    while (atomic_load(&w->running)) /* bounded by the longest deadline */
        ppoll(NULL, 0, &little, NULL);
    for (size_t i = 0; i < SERVERS; i++)
        torc_channel_free(w->channels[i]);
    torc_runtime_free(w->rt);
    torc_credentials_unref(w->creds);
    tc_free(w->large);
    print_message("%u OK, %u after their deadline, %u cancelled, %u others\n", w->ok, w->late, w->cancelled, w->other);
    if (w->foreign)
        fail_msg("%u headers of others; the first: %s", w->foreign, w->what);
    assert_int_equal(w->other, 0);
    assert_true(enough(w, seconds));
}

/* The servers are in two processes, one of them with TLS, forked before this process has threads. */
static int open_world(void **state)
{
    (void)state;
    static hostile_play_fn *const clear[CLEAR] = {play_clear, play_clear, play_clear};
    static hostile_play_fn *const secure[SECURE] = {play_secure, play_secure};
    world.cert = kit_cert_make(&(struct kit_cert_opts){.common_name = "hostile", .sans = "IP:127.0.0.1", .ca = true});
    world.clear = hostile_new(clear, CLEAR, NULL);
    world.secure = hostile_new(secure, SECURE, &world.cert);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    hostile_free(world.clear);
    hostile_free(world.secure);
    kit_cert_fini(&world.cert);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_header_goes_astray)};
    return cmocka_run_group_tests(tests, open_world, close_world);
}
