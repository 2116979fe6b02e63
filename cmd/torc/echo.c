/* An echo on the server of the public API. on_call makes a struct echo_call, whose kind follows from the method. The
 * event `release` frees the struct. While a server runs, only the loop's thread uses the echo, except in echo_requests.
 *
 * A call asks for its next message after torc_server_call_send took the answer to the last one, or at once if its kind
 * is HANG, which never answers. A call whose client reads nothing takes 64 KiB of answers, or one larger answer
 * (torc_server_options.send_buffer_bytes): a client that sends and never reads is then not read either.
 *
 * A call whose answer waits for the delay is in echo->due, the oldest first: all wait equally long. No limit of the
 * server covers requests that wait there, so max_held bounds those of all calls together. */
#include "echo.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include <torc/time.h>

#include "base/headers.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/random.h"

enum { DEFAULT_MAX_HELD = 512 << 20 }; /* bytes */

enum kind { ECHO, HANG, FAIL, COUNT, HEADERS, REPEAT, KINDS };

struct echo_method {
    struct echo *echo;
    enum kind kind;
};

struct echo {
    struct echo_opts opts;
    atomic_ullong requests;
    atomic_size_t held; /* bytes of requests that wait to be answered, or are repeated */
    struct tc_rng rng;
    struct tc_link due; /* calls whose answer waits for the delay, by their `due` */
    struct echo_method methods[KINDS];
};

struct echo_call {
    struct tc_link due; /* in echo->due */
    struct echo *echo;
    torc_server_call *call; /* not to be used once call_finish was called */
    enum kind kind;
    torc_message *message; /* waits to be answered, or is repeated; a reference */
    int64_t due_ms;        /* when the answer is due, by torc_time_ms */
    bool introduced;       /* the headers, with x-backend, are sent */
};

static void call_drop_message(struct echo_call *c)
{
    if (c->message)
        atomic_fetch_sub(&c->echo->held, torc_message_size(c->message));
    torc_message_unref(c->message);
    c->message = NULL;
}

static void call_free(struct echo_call *c)
{
    tc_list_remove(&c->due);
    call_drop_message(c);
    tc_free(c);
}

/* Ends the call, with the load report (ORCA, A51) that came with the request. No event but `release` follows. */
static void call_finish(struct echo_call *c, int code, const char *text)
{
    size_t size;
    const char *load = torc_metadata_find(torc_server_call_metadata(c->call), "x-load-metrics-bin", &size);
    torc_metadata *trailers = torc_metadata_new();
    if (load)
        torc_metadata_add(trailers, "endpoint-load-metrics-bin", load, size);
    if (!c->introduced)
        torc_metadata_add_string(trailers, "x-backend", c->echo->opts.name);
    tc_list_remove(&c->due);
    torc_server_call_finish(c->call, code, text, trailers);
    torc_metadata_free(trailers);
}

/* Ends the call with the status whose number is the text of c->message; INVALID_ARGUMENT if the text is not such a
 * number. */
static void call_fail(struct echo_call *c)
{
    uint64_t code;
    if (tc_parse_u64(tc_slice_of(torc_message_data(c->message), torc_message_size(c->message)), 16, &code) != 0)
        call_finish(c, TORC_STATUS_INVALID_ARGUMENT, "the request must be the number of a status, 0 to 16");
    else
        call_finish(c, (int)code, code ? "failed on request" : NULL);
}

static void field_append(struct tc_buf *out, const char *name, const void *value, size_t size)
{
    tc_buf_append_str(out, name);
    tc_buf_append_str(out, ": ");
    if (tc_header_is_binary(tc_slice_str(name)))
        tc_base64_encode(out, value, size, true);
    else
        tc_buf_append(out, value, size);
    tc_buf_append_char(out, '\n');
}

/* Appends the answer of a COUNT or a HEADERS call; nothing for a call of another kind. */
static void answer_append(struct tc_buf *out, const struct echo_call *c)
{
    const char *name, *texts[] = {torc_server_call_method(c->call), torc_server_call_authority(c->call)};
    const void *value;
    size_t size;
    if (c->kind == COUNT) {
        tc_buf_printf(out, "%llu", (unsigned long long)echo_requests(c->echo));
    } else if (c->kind == HEADERS) {
        field_append(out, ":path", texts[0], strlen(texts[0]));
        field_append(out, ":authority", texts[1], strlen(texts[1]));
        const torc_metadata *m = torc_server_call_metadata(c->call);
        for (size_t i = 0; torc_metadata_at(m, i, &name, &value, &size) == 0; i++)
            field_append(out, name, value, size);
    }
}

/* Sends the answer to c->message; for a REPEAT call, again and again, until one is not taken. If there was no room
 * for an answer, on_writable calls this function again. */
static void call_answer(struct echo_call *c)
{
    struct tc_buf text = {0};
    bool own = c->kind == COUNT || c->kind == HEADERS;
    int rc;
    answer_append(&text, c);
    do {
        rc = own ? torc_server_call_send(c->call, text.data, text.len, 0, 0)
                 : torc_server_call_send(c->call, torc_message_data(c->message), torc_message_size(c->message), 0, 0);
    } while (rc == 0 && c->kind == REPEAT);
    tc_buf_fini(&text);
    if (rc != 0)
        return;
    call_drop_message(c);
    torc_server_call_want(c->call, 1);
}

static void on_message(torc_server_call *call, const torc_message *message, void *arg)
{
    struct echo_call *c = arg;
    if (c->kind == HANG) {
        torc_server_call_want(call, 1);
        return;
    }
    c->message = torc_message_ref(message);
    size_t size = torc_message_size(message);
    if (atomic_fetch_add(&c->echo->held, size) + size > c->echo->opts.max_held) {
        call_finish(c, TORC_STATUS_RESOURCE_EXHAUSTED, "the backend holds too many bytes of requests");
        return;
    }
    if (c->echo->opts.delay_ms && c->kind != REPEAT) {
        c->due_ms = torc_time_ms() + (int64_t)TC_MIN(c->echo->opts.delay_ms, (uint64_t)INT64_MAX / 2);
        tc_list_append(&c->echo->due, &c->due);
    } else if (c->kind == FAIL) {
        call_fail(c);
    } else {
        call_answer(c);
    }
}

static void on_half_close(torc_server_call *call TC_UNUSED, void *arg)
{
    struct echo_call *c = arg;
    if (c->kind == REPEAT)
        call_finish(c, TORC_STATUS_INVALID_ARGUMENT, "there is no message to repeat");
    else if (c->kind != HANG)
        call_finish(c, TORC_STATUS_OK, NULL);
}

static void on_writable(torc_server_call *call TC_UNUSED, void *arg)
{
    call_answer(arg);
}

static void on_cancel(torc_server_call *call TC_UNUSED, void *arg)
{
    call_finish(arg, TORC_STATUS_CANCELLED, NULL);
}

static void on_release(void *arg)
{
    call_free(arg);
}

static const struct torc_server_call_events events = {
    TORC_SIZE(torc_server_call_events), .on_message = on_message, .on_half_close = on_half_close,
    .on_writable = on_writable,         .on_cancel = on_cancel,   .release = on_release};

/* Begins a call. All kinds but HANG and FAIL send their headers at once, unless fail_code ends the call. */
static void on_call(torc_server_call *call, void *arg)
{
    const struct echo_method *m = arg;
    struct echo *e = m->echo;
    if (strncmp(torc_server_call_method(call), "/grpc.reflection.", 17) == 0) {
        torc_server_call_finish(call, TORC_STATUS_UNIMPLEMENTED, "an echo has no reflection", NULL);
        return;
    }
    struct echo_call *c = TC_NEW(struct echo_call);
    *c = (struct echo_call){.echo = e, .call = call, .kind = m->kind};
    tc_list_init(&c->due);
    atomic_fetch_add(&e->requests, 1);
    if (torc_server_call_set_events(call, &events, c) != 0) {
        torc_server_call_finish(call, TORC_STATUS_CANCELLED, NULL, NULL);
        call_free(c);
        return;
    }
    /* Without headers the failure is Trailers-Only, so that the client may retry it. */
    if (c->kind == ECHO && e->opts.fail_code && tc_rng_double(&e->rng) * 100 < e->opts.fail_percent) {
        call_finish(c, e->opts.fail_code, "failed by --fail");
        return;
    }
    if (c->kind != HANG && c->kind != FAIL) {
        torc_metadata *headers = torc_metadata_new();
        torc_metadata_add_string(headers, "x-backend", e->opts.name);
        c->introduced = torc_server_call_send_headers(call, headers) == 0;
        torc_metadata_free(headers);
    }
    torc_server_call_want(call, 1);
}

struct echo *echo_new(const struct echo_opts *opts)
{
    struct echo *e = TC_NEW(struct echo);
    e->opts = *opts;
    e->opts.max_held = opts->max_held ? opts->max_held : DEFAULT_MAX_HELD;
    tc_rng_init_system(&e->rng);
    tc_list_init(&e->due);
    return e;
}

int echo_add(struct echo *e, torc_server *server, torc_error **error)
{
    static const char *const names[KINDS] = {[ECHO] = "*",
                                             [HANG] = "torc.test.Backend/Hang",
                                             [FAIL] = "torc.test.Backend/Fail",
                                             [COUNT] = "torc.test.Backend/Count",
                                             [HEADERS] = "torc.test.Backend/Headers",
                                             [REPEAT] = "torc.test.Backend/Repeat"};
    int rc = 0;
    for (enum kind kind = 0; kind < KINDS && rc == 0; kind++) {
        e->methods[kind] = (struct echo_method){e, kind};
        rc = torc_server_add_method(
            server, names[kind],
            &(struct torc_handler){TORC_SIZE(torc_handler), .stream = on_call, .arg = &e->methods[kind]}, error);
    }
    return rc;
}

void echo_free(struct echo *e)
{
    tc_free(e);
}

uint64_t echo_requests(struct echo *e)
{
    return atomic_load(&e->requests);
}

static struct echo_call *first_due(const struct echo *e)
{
    return tc_list_empty(&e->due) ? NULL : TC_CONTAINER_OF(e->due.next, struct echo_call, due);
}

int echo_timeout_ms(const struct echo *e)
{
    const struct echo_call *c = first_due(e);
    int64_t left_ms = c ? c->due_ms - torc_time_ms() : -1;
    return !c ? -1 : (int)TC_MAX(TC_MIN(left_ms, (int64_t)INT_MAX), (int64_t)0);
}

void echo_run_due(struct echo *e)
{
    struct echo_call *c;
    while ((c = first_due(e)) && c->due_ms <= torc_time_ms()) {
        tc_list_remove(&c->due);
        if (c->kind == FAIL)
            call_fail(c);
        else
            call_answer(c);
    }
}
