/* An echo on the internal server (server/server.h). The backends of kits/backends and kits/mesh are such echoes. The
 * command `torc backend` has another implementation.
 *
 * Each call but those of reflection has a struct echo, whose kind follows from the method; a method without a kind of
 * its own has ECHO. Messages are answered one after the other. A call of ECHO reads the next message when the last one
 * was answered and the client has taken enough of the answers (MAX_QUEUED_BYTES): a client that never reads cannot fill
 * the backend's memory. Count and Headers read on at once, whatever is queued.
 *
 * A struct echo stays in backend->calls from echo_begin until on_end, also after echo_finish. Calls that tc_server_free
 * cuts get no on_end: kit_echo_free frees their structs. All functions run on the server's loop thread. */
#include "support/kits/echo.h"

#include "base/mem.h"
#include "base/parse.h"

enum { MAX_QUEUED_BYTES = 65536, REPEAT_AT_ONCE = 1024 };

enum kind { ECHO, HANG, FAIL, COUNT, HEADERS, REPEAT, KINDS };

struct backend_method {
    struct kit_echo *backend;
    enum kind kind;
};

struct kit_echo {
    struct tc_server *server;
    char *name;
    struct kit_echo_opts opts;
    uint64_t requests;
    struct tc_link calls;
    struct backend_method methods[KINDS];
};

struct echo {
    struct tc_link link;
    struct kit_echo *backend;
    struct tc_server_call *call;
    enum kind kind;
    struct tc_timer timer;
    struct tc_rstr *message; /* the message that waits for the delay, or is repeated; a reference; NULL: none */
    bool finished;
    bool introduced; /* the headers with x-backend are sent */
    bool reading;    /* the next message was requested, or is being answered */
};

/* Ends the call. The trailers have the load report (ORCA, A51) that the client sent in its metadata, and x-backend
 * unless the headers had it. `text` is copied. Does nothing the second time. */
static void echo_finish(struct echo *e, int code, const char *text)
{
    if (e->finished)
        return;
    e->finished = true;
    const struct tc_header *load =
        tc_headers_find(tc_server_call_metadata(e->call), tc_slice_str("x-load-metrics-bin"));
    struct tc_headers trailers;
    tc_headers_init(&trailers, tc_server_call_arena(e->call));
    if (load)
        tc_headers_add(&trailers, tc_slice_str("endpoint-load-metrics-bin"), load->value);
    if (!e->introduced)
        tc_headers_add(&trailers, tc_slice_str("x-backend"), tc_slice_str(e->backend->name));
    tc_server_call_finish(e->call, code, text, trailers.len ? &trailers : NULL);
}

/* Ends the call with the status whose number, 0 to 16, is the request's text; otherwise with INVALID_ARGUMENT. */
static void echo_answer_fail(struct echo *e, struct tc_slice request)
{
    uint64_t code;
    if (tc_parse_u64(request, 16, &code) != 0) {
        echo_finish(e, TORC_STATUS_INVALID_ARGUMENT, "the request must be the number of a status, 0 to 16");
        return;
    }
    echo_finish(e, (int)code, code ? "failed on request" : "");
}

/* Reads the next message if the client has taken enough of the answers. If not, echo_on_written reads it later. */
static void echo_read_on(struct echo *e)
{
    e->reading = tc_server_call_queued_bytes(e->call) <= MAX_QUEUED_BYTES;
    if (e->reading)
        tc_server_call_read(e->call);
}

/* Sends the message again until enough is queued, at most REPEAT_AT_ONCE times: as long as flow control lets every
 * message through at once, nothing is queued. */
static void echo_repeat(struct echo *e)
{
    for (size_t n = 0; n < REPEAT_AT_ONCE && tc_server_call_queued_bytes(e->call) <= MAX_QUEUED_BYTES; n++)
        tc_server_call_send_ref(e->call, e->message);
}

static void echo_on_written(void *arg)
{
    struct echo *e = arg;
    if (e->kind == REPEAT && e->message)
        echo_repeat(e);
    else if (!e->reading && !e->finished && !e->message)
        echo_read_on(e);
}

/* Answers with the header fields of the request, one a line; binary values in base64. Then reads on. */
static void echo_answer_headers(struct echo *e)
{
    const struct tc_headers *h = tc_server_call_metadata(e->call);
    struct tc_buf text = {0};
    for (size_t i = 0; i < h->len; i++) {
        tc_buf_append_slice(&text, h->data[i].name);
        tc_buf_append_str(&text, ": ");
        if (tc_header_is_binary(h->data[i].name))
            tc_base64_encode(&text, h->data[i].value.data, h->data[i].value.len, true);
        else
            tc_buf_append_slice(&text, h->data[i].value);
        tc_buf_append_char(&text, '\n');
    }
    tc_server_call_send(e->call, tc_buf_slice(&text));
    tc_buf_fini(&text);
    tc_server_call_read(e->call);
}

/* Answers the message that waits, by the kind of the call, and gives up its reference. */
static void echo_answer(struct echo *e)
{
    struct tc_rstr *message = e->message;
    e->message = NULL;
    if (e->kind == FAIL) {
        echo_answer_fail(e, tc_rstr_slice(message));
    } else if (e->kind == COUNT) {
        struct tc_buf text = {0};
        tc_buf_printf(&text, "%llu", (unsigned long long)e->backend->requests);
        tc_server_call_send(e->call, tc_buf_slice(&text));
        tc_buf_fini(&text);
        tc_server_call_read(e->call);
    } else if (e->kind == HEADERS) {
        echo_answer_headers(e);
    } else {
        tc_server_call_send_ref(e->call, message);
        echo_read_on(e);
    }
    tc_rstr_unref(message);
}

static void echo_on_timer(struct tc_timer *timer)
{
    echo_answer(TC_CONTAINER_OF(timer, struct echo, timer));
}

static void echo_on_message(void *arg, struct tc_rstr *message)
{
    struct echo *e = arg;
    if (e->finished || e->kind == HANG) {
        tc_rstr_unref(message);
        if (e->kind == HANG)
            tc_server_call_read(e->call);
        return;
    }
    e->message = message;
    if (e->kind == REPEAT)
        echo_repeat(e);
    else if (e->backend->opts.delay_ms)
        tc_timer_start(&e->timer, e->backend->opts.delay_ms);
    else
        echo_answer(e);
}

static void echo_on_half_close(void *arg)
{
    struct echo *e = arg;
    if (e->kind == REPEAT && !e->message)
        echo_finish(e, TORC_STATUS_INVALID_ARGUMENT, "there is no message to repeat");
    else if (e->kind != HANG && e->kind != REPEAT)
        echo_finish(e, TORC_STATUS_OK, "");
}

static void echo_free(struct echo *e)
{
    tc_timer_stop(&e->timer);
    tc_list_remove(&e->link);
    tc_rstr_unref(e->message);
    tc_free(e);
}

static void echo_on_end(void *arg, const struct tc_status *why TC_UNUSED)
{
    echo_free(arg);
}

static const struct tc_server_call_events events = {.on_message = echo_on_message,
                                                    .on_half_close = echo_on_half_close,
                                                    .on_written = echo_on_written,
                                                    .on_end = echo_on_end};

static bool backend_chosen_to_fail(const struct kit_echo *b)
{
    struct tc_rng *rng = tc_loop_rng(tc_server_loop(b->server));
    return b->opts.fail_code && tc_rng_double(rng) * 100.0 < b->opts.fail_percent;
}

/* Begins a call. All kinds but Hang and Fail send their headers at once, unless the call is chosen to fail. */
static void echo_begin(struct kit_echo *b, struct tc_server_call *call, enum kind kind)
{
    struct echo *e = TC_NEW(struct echo);
    struct tc_headers headers;
    b->requests++;
    e->backend = b;
    e->call = call;
    e->kind = kind;
    tc_timer_init(&e->timer, tc_server_loop(b->server), echo_on_timer);
    tc_list_append(&b->calls, &e->link);
    tc_server_call_set_events(call, &events, e);
    /* A failure is trailers-only, as servers send it, so that it may be retried. */
    if (kind == ECHO && backend_chosen_to_fail(b)) {
        echo_finish(e, b->opts.fail_code, "failed by fail_percent");
        return;
    }
    if (kind != HANG && kind != FAIL) {
        tc_headers_init(&headers, tc_server_call_arena(call));
        tc_headers_add(&headers, tc_slice_str("x-backend"), tc_slice_str(b->name));
        tc_server_call_send_headers(call, &headers, TC_H2_IDENTITY);
        e->introduced = true;
    }
    e->reading = true;
    tc_server_call_read(call);
}

static void backend_on_call(void *arg, struct tc_server_call *call)
{
    const struct backend_method *m = arg;
    if (tc_slice_starts(tc_server_call_path(call), tc_slice_str("/grpc.reflection."))) {
        tc_server_call_finish(call, TORC_STATUS_UNIMPLEMENTED, "an echo has no reflection", NULL);
        return;
    }
    echo_begin(m->backend, call, m->kind);
}

struct kit_echo *kit_echo_new(struct tc_server *server, const struct kit_echo_opts *opts)
{
    static const char *const paths[KINDS] = {
        [HANG] = "/torc.test.Backend/Hang",     [FAIL] = "/torc.test.Backend/Fail",
        [COUNT] = "/torc.test.Backend/Count",   [HEADERS] = "/torc.test.Backend/Headers",
        [REPEAT] = "/torc.test.Backend/Repeat",
    };
    struct kit_echo *b = TC_NEW(struct kit_echo);
    b->server = server;
    b->opts = *opts;
    b->name = tc_strdup(opts->name);
    tc_list_init(&b->calls);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        b->methods[kind] = (struct backend_method){b, kind};
        if (paths[kind])
            tc_server_add_method(server, paths[kind], backend_on_call, &b->methods[kind]);
    }
    tc_server_set_default(server, backend_on_call, &b->methods[ECHO]);
    return b;
}

void kit_echo_free(struct kit_echo *b)
{
    if (!b)
        return;
    while (!tc_list_empty(&b->calls))
        echo_free(TC_CONTAINER_OF(b->calls.next, struct echo, link));
    tc_free(b->name);
    tc_free(b);
}

uint64_t kit_echo_requests(const struct kit_echo *b)
{
    return b->requests;
}
