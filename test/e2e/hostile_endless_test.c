/* Backends that send endlessly, as fast as they can (header_bombs: one block for each request). Each RPC ends with a
 * text that names the cause, and the next RPC begins; in the rows that send messages one RPC reads on. Meanwhile calls
 * to another backend over the same loop go on.
 *
 * The servers play in processes of their own, one for plaintext and one for TLS. Each row gets a channel and a struct
 * endless_run, which `play` owns, and plays for FOR_MS, then for up to PATIENCE_MS more until it has shown its outcome.
 * Callbacks run on the thread of the runtime `rt`: on_done starts the next RPC and frees the one that ended. The test's
 * thread starts the first RPC, waits, and cancels the last. The calls to the other backend begin on a thread of the
 * load. If $HOSTILE_ONLY is set, only rows whose name contains it are played. */
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/hostile/rows.h"
#include "support/kits/load.h"

#include "base/mem.h"

#define RPS 100
#define FOR_MS 450
#define PATIENCE_MS 20000
#define LONGEST_MS_MAX 500
#define GROWN_KB_MAX (32 * 1024)

/* --- the servers --- */

/* Sends frames with this payload until the client closes, on the stream of the first request (of_stream) or on
 * stream 0. */
static void send_on(struct hostile_peer *p, uint8_t type, bool of_stream, const void *payload, size_t len)
{
    uint32_t id = hostile_begin(p);
    while (id && hostile_flush_much(p))
        fake_h2_frame(hostile_frames(p), type, 0, of_stream ? id : 0, payload, len);
}

static void pings(struct hostile_peer *p)
{
    send_on(p, FAKE_H2_PING, false, "abcdefgh", 8);
}

static void window_updates(struct hostile_peer *p)
{
    send_on(p, FAKE_H2_WINDOW_UPDATE, false, "\0\0\0\1", 4);
}

static void unknown_frames(struct hostile_peer *p)
{
    send_on(p, 0xfa, true, "grease", 6);
}

static void large_unknown_frames(struct hostile_peer *p)
{
    static const char payload[16384];
    send_on(p, 0xfa, false, payload, sizeof(payload));
}

/* The windows that the client gives a server, in bytes. */
struct windows {
    uint32_t stream; /* of the request; 0: none has come */
    /* The bytes that are left of the two windows; the value of SETTINGS_INITIAL_WINDOW_SIZE. */
    int64_t of_connection, of_stream, initial;
    bool settings_seen; /* the first SETTINGS has come; fake_h2_start has acknowledged it */
};

static uint32_t be32(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void on_frame(struct hostile_peer *p, struct windows *w, const struct fake_h2_frame *f)
{
    if (f->type == FAKE_H2_WINDOW_UPDATE && f->stream == 0)
        w->of_connection += be32(f->payload);
    if (f->type == FAKE_H2_WINDOW_UPDATE && f->stream && f->stream == w->stream)
        w->of_stream += be32(f->payload);
    if (f->type == FAKE_H2_PING && !(f->flags & FAKE_H2_ACK))
        fake_h2_ping(hostile_frames(p), f->payload, true);
    if (f->type != FAKE_H2_SETTINGS || f->flags & FAKE_H2_ACK)
        return;
    for (size_t at = 0; at + 6 <= f->len; at += 6) {
        if (f->payload[at + 1] != 4)
            continue;
        w->of_stream += be32(f->payload + at + 2) - w->initial;
        w->initial = be32(f->payload + at + 2);
    }
    if (w->settings_seen)
        fake_h2_frame(hostile_frames(p), FAKE_H2_SETTINGS, FAKE_H2_ACK, 0, NULL, 0);
    w->settings_seen = true;
}

/* Sends messages of len bytes to the first request as the windows allow, until the client closes. */
static void messages(struct hostile_peer *p, const void *data, size_t len)
{
    const struct fake_h2_frame *f;
    struct windows w = {.of_connection = 65535, .of_stream = 65535, .initial = 65535};
    int64_t whole = (int64_t)len + 5;
    hostile_keep(p);
    fake_h2_start(hostile_frames(p));
    hostile_flush(p);
    while (!w.stream && (f = hostile_next(p, true))) {
        on_frame(p, &w, f);
        if (f->type == FAKE_H2_HEADERS)
            w.stream = f->stream;
    }
    fake_h2_headers(hostile_frames(p), w.stream, HOSTILE_OK, false);
    while (w.stream && hostile_flush(p)) {
        while ((f = hostile_next(p, TC_MIN(w.of_connection, w.of_stream) < whole)))
            on_frame(p, &w, f);
        for (int i = 0; i < 256 && TC_MIN(w.of_connection, w.of_stream) >= whole; i++) {
            fake_h2_message(hostile_frames(p), w.stream, data, len, false);
            w.of_connection -= whole;
            w.of_stream -= whole;
        }
    }
}

static void small_messages(struct hostile_peer *p)
{
    messages(p, "x", 1);
}

static void large_messages(struct hostile_peer *p)
{
    static const char data[16000];
    messages(p, data, sizeof(data));
}

/* Answers each request with a field of 3.9 KB and about 44,000 references to it. */
static void header_bombs(struct hostile_peer *p)
{
    struct tc_buf block = {0};
    fake_h2_hpack(&block, HOSTILE_OK);
    hostile_indexed(&block, "x", 3900, 'v');
    while (block.len < 48000)
        tc_buf_append_char(&block, (char)(0x80 | 62));
    for (uint32_t id = hostile_begin(p); id; id = hostile_await(p, FAKE_H2_HEADERS))
        for (size_t at = 0; at < block.len; at += 16000)
            fake_h2_frame(hostile_frames(p), at ? FAKE_H2_CONTINUATION : FAKE_H2_HEADERS,
                          at + 16000 == block.len ? FAKE_H2_END_HEADERS : 0, id, block.data + at, 16000);
    tc_buf_fini(&block);
}

/* Sends key updates with nothing between them, until the client closes. */
static void key_updates(struct hostile_peer *p)
{
    if (!hostile_begin(p))
        return;
    while (hostile_is_heard(p) && SSL_key_update(hostile_ssl(p), SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
        (void)SSL_do_handshake(hostile_ssl(p));
}

/* Sends key updates with an empty DATA frame after each, so that no two are adjacent. */
static void key_updates_between_messages(struct hostile_peer *p)
{
    uint32_t id = hostile_begin(p);
    fake_h2_headers(hostile_frames(p), id, HOSTILE_OK, false);
    while (id && hostile_is_heard(p) && SSL_key_update(hostile_ssl(p), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) {
        fake_h2_data(hostile_frames(p), id, "", 0, false);
        if (!hostile_flush(p))
            break;
    }
}

#define TOO_MANY "too many frames that carry nothing"
#define TLS_MESSAGES "too many TLS messages without data (more than 64)"

static const struct endless {
    const char *name;
    hostile_play_fn *play;
    const char *text;    /* of each RPC's end; NULL: the RPC reads on */
    const char *or_else; /* another text; which limit is met first depends on the machine's speed */
    bool tls;
} rows[] = {
    {"PING", pings, "Flooding was detected", TOO_MANY, false},
    {"WINDOW_UPDATE", window_updates, TOO_MANY, NULL, false},
    {"frames of an unknown type", unknown_frames, TOO_MANY, NULL, false},
    {"frames of an unknown type of 16 KiB", large_unknown_frames, TOO_MANY, NULL, false},
    {"indexed header bombs", header_bombs, "received headers larger than max", "too many", false},
    {"messages of a byte", small_messages, NULL, NULL, false},
    {"messages of 16 kB", large_messages, NULL, NULL, false},
    {"WINDOW_UPDATE over TLS", window_updates, TOO_MANY, NULL, true},
    {"messages of a byte over TLS", small_messages, NULL, NULL, true},
    {"key updates", key_updates, TLS_MESSAGES, NULL, true},
    {"key updates between empty frames", key_updates_between_messages, "too many empty frames", TOO_MANY, true},
};
#define N_ROWS TC_ARRAY_LEN(rows)

/* --- the client --- */

static struct hostile *servers[2]; /* plaintext, TLS */
static struct kit_cert root, cert;
static torc_credentials *creds;
static torc_runtime *rt;
static torc_channel *good;

/* RPCs one after another, each of which reads until it ends. */
struct endless_run {
    const struct endless *row;
    torc_channel *ch;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock: */
    torc_stream *call; /* NULL: no call runs */
    bool stop;         /* no further RPC begins */
    uint64_t ended;    /* RPCs that ended with the row's text */
    char wrong[512];   /* the outcome of an RPC that ended otherwise; "": none */

    atomic_ullong messages, bytes; /* received; the bytes with the messages' prefixes */
};

static void start(struct endless_run *run);

static void on_message(torc_stream *call, const torc_message *message, void *arg)
{
    struct endless_run *run = arg;
    atomic_fetch_add(&run->messages, 1);
    atomic_fetch_add(&run->bytes, torc_message_size(message) + 5);
    torc_stream_want(call, 1);
}

static void on_done(torc_stream *call, const torc_result *r, void *arg)
{
    struct endless_run *run = arg;
    const struct endless *row = run->row;
    pthread_mutex_lock(&run->lock);
    bool named =
        row->text &&
        (torc_result_code(r) == TORC_STATUS_UNAVAILABLE || torc_result_code(r) == TORC_STATUS_RESOURCE_EXHAUSTED) &&
        (strstr(torc_result_text(r), row->text) || (row->or_else && strstr(torc_result_text(r), row->or_else)));
    if (named)
        run->ended++;
    else if (!run->stop)
        snprintf(run->wrong, sizeof(run->wrong), "%s: %s %s", row->name, torc_status_code_name(torc_result_code(r)),
                 torc_result_text(r));
    run->call = NULL;
    if (named && !run->stop)
        start(run);
    pthread_cond_signal(&run->changed);
    pthread_mutex_unlock(&run->lock);
    torc_stream_free(call);
}

static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_message = on_message,
                                                 .on_done = on_done};

/* Starts the next RPC. With the lock held. */
static void start(struct endless_run *run)
{
    torc_error *error = NULL;
    run->call = torc_stream_start(run->ch, "/a.B/C", NULL, &events, run, &error);
    assert_non_null(run->call);
    torc_stream_send(run->call, "", 0, TORC_SEND_LAST, 0);
    torc_stream_want(run->call, 1);
}

/* Returns true once an RPC has ended with the row's text. If the row has no text: once an RPC has read more than the
 * first window. */
static bool went_on(struct endless_run *run)
{
    pthread_mutex_lock(&run->lock);
    bool ended = run->ended > 0;
    pthread_mutex_unlock(&run->lock);
    return run->row->text ? ended : atomic_load(&run->bytes) > 70000;
}

/* Makes RPCs for FOR_MS, and for up to PATIENCE_MS more until the row has shown its outcome. Returns when the last RPC
 * has ended. */
static void run_for_a_while(struct endless_run *run)
{
    pthread_mutex_lock(&run->lock);
    start(run);
    pthread_mutex_unlock(&run->lock);
    (void)poll(NULL, 0, FOR_MS);
    for (int ms = 0; ms < PATIENCE_MS && !went_on(run); ms += 50)
        (void)poll(NULL, 0, 50);
    pthread_mutex_lock(&run->lock);
    run->stop = true;
    while (run->call) {
        torc_stream_cancel(run->call);
        pthread_cond_wait(&run->changed, &run->lock);
    }
    pthread_mutex_unlock(&run->lock);
}

/* Plays a row. Returns false if a call to the other backend took longer than LONGEST_MS_MAX; always returns true where
 * FOOTPRINT_MEASURED is false. */
static bool play(size_t i)
{
    struct endless_run run = {.row = &rows[i], .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct kit_load_report report;
    struct hostile *h = servers[rows[i].tls];
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    if (rows[i].tls)
        o.credentials = creds;
    char *target = tc_asprintf("ipv4:%s", hostile_address(h, i));
    run.ch = torc_channel_new(rt, target, &o, NULL);
    tc_free(target);
    struct footprint before = footprint_begin();
    struct kit_load *load = kit_load_new(good, RPS, 1);
    run_for_a_while(&run);
    kit_load_free(load, &report);
    torc_channel_free(run.ch);
    bool over = hostile_wait_over(h, i);
    struct footprint grown = footprint_since(&before);
    print_message(
        "%s: %llu messages, %llu RPCs ended by name; %ld kB, %llu ms of CPU; of %llu calls to another backend "
        "the longest took %llu ms\n",
        rows[i].name, atomic_load(&run.messages), (unsigned long long)run.ended, grown.kb,
        (unsigned long long)grown.cpu_ms, (unsigned long long)report.calls, (unsigned long long)report.longest_ms);
    assert_true(over);
    if (*run.wrong)
        fail_msg("%s", run.wrong);
    if (report.failed)
        fail_msg("%s", report.first);
    assert_true(went_on(&run));
    assert_true(report.calls > 10);
    if (!FOOTPRINT_MEASURED)
        return true;
    assert_true(grown.kb <= GROWN_KB_MAX);
    return report.longest_ms <= LONGEST_MS_MAX;
}

static void others_go_on(void **state)
{
    (void)state;
    const char *only = getenv("HOSTILE_ONLY");
    for (size_t i = 0; i < N_ROWS; i++)
        if ((!only || strstr(rows[i].name, only)) && !play(i) &&
            !play(i)) /* one slow call may be due to a stall of the machine */
            fail_msg("%s: calls to another backend took more than %d ms, twice", rows[i].name, LONGEST_MS_MAX);
}

static int open_world(void **state)
{
    (void)state;
    hostile_play_fn *plays[N_ROWS];
    for (size_t i = 0; i < N_ROWS; i++)
        plays[i] = rows[i].play;
    root = kit_cert_make(&(struct kit_cert_opts){.common_name = "root", .ca = true});
    cert = kit_cert_make(&(struct kit_cert_opts){.common_name = "hostile", .sans = "IP:127.0.0.1", .issuer = &root});
    servers[0] = hostile_new(plays, N_ROWS, NULL);
    servers[1] = hostile_new(plays, N_ROWS, &cert);
    struct torc_tls_options tls = {TORC_SIZE(torc_tls_options), .roots_pem = root.cert_pem};
    creds = torc_credentials_tls(&tls, NULL);
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .idle_connection_ms = 100};
    rt = torc_runtime_new(&o, NULL);
    char *target = tc_asprintf("ipv4:%s", hostile_backend(servers[0]));
    good = torc_channel_new(rt, target, NULL, NULL);
    tc_free(target);
    assert_int_equal(torc_channel_connect(good, 60000), 0);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    torc_channel_free(good);
    torc_runtime_free(rt);
    torc_credentials_unref(creds);
    hostile_free(servers[0]);
    hostile_free(servers[1]);
    kit_cert_fini(&cert);
    kit_cert_fini(&root);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(others_go_on)};
    return cmocka_run_group_tests(tests, open_world, close_world);
}
