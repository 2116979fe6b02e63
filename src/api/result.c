/* Outcomes of RPCs, and messages: immutable and reference-counted. A torc_message is a struct tc_rstr by another name.
 * The struct that a codec keeps in a stream (api/typed.h) is handled here, too.
 *
 * The result of an RPC that ran is one block of the loop's (base/blocks.h): the struct, then the metadata. The status
 * text, the peer and the response are references to strings that others share. So the usual outcome reuses memory, and
 * may outlive the loop, as lent blocks do. The parts that only failures have (the error, the details of
 * google.rpc.Status) are made when the RPC fails, not when they are asked for, so that any thread may read a result.
 * One part comes later, the decoded response (api/typed.h): the first thread that decodes the response stores it for
 * all.
 *
 * For an RPC that could not start, the block comes from the system, and the result has a code and an error alone. If
 * there is no memory for a result, a static one (no_memory) stands for it. */
#include "api/result.h"

#include "api/explain.h"
#include "api/metadata.h"
#include "api/typed.h"
#include "base/mem.h"
#include "proto/wire.h"

struct detail {
    char *type_url;        /* owned */
    struct tc_slice bytes; /* in the trailers */
};

struct torc_result {
    struct tc_ref ref;
    int code;
    uint32_t attempts;
    uint32_t n_details;
    struct tc_rstr *text, *peer, *explain;   /* references; NULL: none */
    struct tc_rstr *response;                /* a reference; NULL: none */
    const torc_metadata *headers, *trailers; /* in this block, or static; NULL: none came */
    torc_error *error;                       /* NULL: OK, or no memory for a result */
    struct detail *details;                  /* n_details of them; owned */
    _Atomic(struct tc_typed *) typed;        /* the decoded response, or an error (tc_result_spoil); NULL: neither */
};

/* --- details: google.rpc.Status {code = 1, message = 2, details = 3}, google.protobuf.Any {type_url = 1, value = 2}
 * ---
 */

enum { STATUS_DETAILS = 3, ANY_TYPE_URL = 1, ANY_VALUE = 2 };

/* Returns the value of grpc-status-details-bin; NULL data if the trailer is absent or comes more than once. */
static struct tc_slice details_bytes(const torc_metadata *trailers)
{
    struct tc_slice found = {0};
    for (size_t i = 0; trailers && i < trailers->len; i++) {
        const struct tc_metadata_field *f = &trailers->fields[i];
        if (strcmp(f->name, "grpc-status-details-bin") != 0)
            continue;
        if (found.data)
            return tc_slice_of(NULL, 0);
        found = tc_slice_of(f->value, f->value_len);
    }
    return found;
}

/* Takes the next Any off the front of *rest. Returns false if there is none, with *malformed set if what is left cannot
 * be read. */
static bool details_next(struct tc_slice *rest, struct tc_slice *any, bool *malformed)
{
    struct tc_wire_field f;
    while (rest->len) {
        if (!tc_wire_next(rest, &f)) {
            *malformed = true;
            return false;
        }
        if (f.number == STATUS_DETAILS && f.is_bytes) {
            *any = f.value;
            return true;
        }
    }
    return false;
}

/* Stores the details; none if the bytes of the google.rpc.Status are malformed. An Any that is malformed gives what can
 * be read of it. A type URL with a NUL in it ends there for readers. */
static void details_read(torc_result *r)
{
    struct tc_slice rest = details_bytes(r->trailers), any;
    uint32_t n = 0;
    bool malformed = false;
    while (details_next(&rest, &any, &malformed))
        n++;
    if (malformed || !n)
        return;
    r->details = tc_calloc(n, sizeof(*r->details));
    rest = details_bytes(r->trailers);
    while (details_next(&rest, &any, &malformed)) {
        struct tc_slice url = tc_wire_find(any, ANY_TYPE_URL);
        r->details[r->n_details++] = (struct detail){
            .type_url = tc_strndup(url.data ? url.data : "", url.len),
            .bytes = tc_wire_find(any, ANY_VALUE),
        };
    }
}

/* --- making a result --- */

/* Nobody gives back the first reference, so it is never freed. */
static struct torc_result no_memory = {.ref = {1}, .code = TORC_STATUS_RESOURCE_EXHAUSTED};

static torc_result *result_no_memory(void)
{
    tc_ref_inc(&no_memory.ref);
    return &no_memory;
}

torc_result *tc_result_make(torc_stream *call, const struct tc_call_end *end, struct tc_rstr *response)
{
    const torc_metadata *headers, *trailers;
    torc_result *r = tc_metadata_copy_behind(tc_loop_blocks(call->channel->loop), sizeof(*r), end->headers,
                                             end->trailers, &headers, &trailers);
    if (!r)
        return result_no_memory();
    *r = (struct torc_result){
        .code = end->status.code,
        .attempts = end->attempts,
        .text = tc_rstr_ref(end->status.text),
        .peer = tc_rstr_ref(end->peer),
        .response = tc_rstr_ref(response),
        .headers = headers,
        .trailers = trailers,
    };
    tc_ref_init(&r->ref);
    if (TC_UNLIKELY(r->code != TORC_STATUS_OK)) {
        r->error = tc_error_of_status(&end->status);
        details_read(r);
    }
    if (TC_UNLIKELY(call->core.asked.explain))
        r->explain = tc_rstr_str(tc_call_explain(&call->core));
    return r;
}

torc_result *tc_result_refused(torc_error *error)
{
    torc_result *r = tc_blocks_try_take(NULL, sizeof(*r));
    if (!r) {
        torc_error_free(error);
        return result_no_memory();
    }
    *r = (struct torc_result){.code = torc_error_status(error), .error = error};
    tc_ref_init(&r->ref);
    return r;
}

torc_result *tc_result_refused_code(int code, const char *what)
{
    torc_error *error = NULL;
    tc_error_set_code(&error, code, what);
    return tc_result_refused(error);
}

/* --- the decoded response --- */

struct tc_typed *tc_result_typed(const torc_result *r)
{
    return atomic_load_explicit(&((torc_result *)(uintptr_t)r)->typed, memory_order_acquire);
}

/* Stores `mine` in an empty *place and returns it; else frees `mine` and returns what *place has. */
static struct tc_typed *keep_first(_Atomic(struct tc_typed *) *place, struct tc_typed *mine)
{
    struct tc_typed *first = NULL;
    if (atomic_compare_exchange_strong(place, &first, mine))
        return mine;
    mine->free(mine);
    return first;
}

struct tc_typed *tc_result_keep(const torc_result *r, struct tc_typed *mine)
{
    return keep_first(&((torc_result *)(uintptr_t)r)->typed, mine);
}

static void spoilt_free(struct tc_typed *d)
{
    torc_error_free(d->error);
    tc_free(d);
}

void tc_result_spoil(const torc_result *r, torc_error *error)
{
    if (r == &no_memory) { /* all RPCs share it */
        torc_error_free(error);
        return;
    }
    struct tc_typed *d = TC_NEW(struct tc_typed);
    *d = (struct tc_typed){.free = spoilt_free, .error = error};
    tc_result_keep(r, d);
}

struct tc_typed *tc_stream_typed(torc_stream *stream)
{
    return atomic_load_explicit(&stream->lent_message.typed, memory_order_acquire);
}

const char *tc_stream_method(const torc_stream *stream)
{
    return stream->core.asked.path.data; /* path_make ends it with a NUL */
}

struct tc_typed *tc_stream_keep(torc_stream *stream, struct tc_typed *mine)
{
    return keep_first(&stream->lent_message.typed, mine);
}

/* --- reading a result --- */

/* Returns the error in `typed`, which counts instead of the result's own error; NULL: none. */
static const torc_error *spoilt(const torc_result *r)
{
    const struct tc_typed *d = r ? tc_result_typed(r) : NULL;
    return d ? d->error : NULL;
}

int torc_result_code(const torc_result *r)
{
    if (TC_UNLIKELY(spoilt(r) != NULL))
        return TORC_STATUS_INTERNAL;
    return r ? r->code : TORC_STATUS_UNKNOWN;
}

/* An error other than TORC_ESTATUS stands for the status message: the RPC could not start, or there was no memory for
 * its result. */
const char *torc_result_text(const torc_result *r)
{
    if (TC_UNLIKELY(spoilt(r) != NULL))
        return torc_error_text(spoilt(r));
    if (!r || r->text)
        return r ? r->text->data : "";
    const torc_error *error = torc_result_error(r);
    return torc_error_code(error) == TORC_ESTATUS ? "" : torc_error_text(error);
}

const torc_error *torc_result_error(const torc_result *r)
{
    if (TC_UNLIKELY(spoilt(r) != NULL))
        return spoilt(r);
    if (!r || r->code == TORC_STATUS_OK || r->error)
        return r ? r->error : NULL;
    return tc_error_no_memory();
}

const torc_message *torc_result_response(const torc_result *r)
{
    return r && !spoilt(r) ? (const torc_message *)r->response : NULL;
}

const torc_metadata *torc_result_headers(const torc_result *r)
{
    return r ? r->headers : NULL;
}

const torc_metadata *torc_result_trailers(const torc_result *r)
{
    return r ? r->trailers : NULL;
}

const char *torc_result_peer(const torc_result *r)
{
    return r ? tc_rstr_cstr(r->peer) : "";
}

uint32_t torc_result_attempts(const torc_result *r)
{
    return r ? r->attempts : 0;
}

const char *torc_result_explain(const torc_result *r)
{
    return r && r->explain ? r->explain->data : NULL;
}

int torc_result_detail(const torc_result *r, size_t i, const char **type_url, const void **bytes, size_t *size)
{
    if (!r)
        return TORC_EINVAL;
    if (i >= r->n_details)
        return TORC_ENOTFOUND;
    const struct detail *d = &r->details[i];
    if (type_url)
        *type_url = d->type_url;
    if (bytes)
        *bytes = d->bytes.data ? d->bytes.data : "";
    if (size)
        *size = d->bytes.len;
    return 0;
}

torc_result *torc_result_ref(const torc_result *given)
{
    torc_result *r = (torc_result *)(uintptr_t)given;
    if (r)
        tc_ref_inc(&r->ref);
    return r;
}

void torc_result_free(torc_result *r)
{
    if (!r || !tc_ref_dec(&r->ref))
        return;
    tc_rstr_unref(r->text);
    tc_rstr_unref(r->peer);
    tc_rstr_unref(r->response);
    if (TC_UNLIKELY(r->error != NULL)) {
        torc_error_free(r->error);
        for (uint32_t i = 0; i < r->n_details; i++)
            tc_free(r->details[i].type_url);
        tc_free(r->details);
    }
    tc_rstr_unref(r->explain);
    struct tc_typed *d = atomic_load_explicit(&r->typed, memory_order_relaxed);
    if (d)
        d->free(d);
    tc_blocks_give(r);
}

/* --- messages --- */

torc_message *torc_message_new(const void *data, size_t size)
{
    return data || !size ? (torc_message *)tc_rstr_new(data, size) : NULL;
}

const void *torc_message_data(const torc_message *message)
{
    return message ? ((const struct tc_rstr *)message)->data : NULL;
}

size_t torc_message_size(const torc_message *message)
{
    return message ? ((const struct tc_rstr *)message)->len : 0;
}

int torc_message_compressed(const torc_message *message)
{
    return message ? ((const struct tc_rstr *)message)->compressed : TORC_EINVAL;
}

torc_message *torc_message_ref(const torc_message *message)
{
    return (torc_message *)tc_rstr_ref((struct tc_rstr *)(uintptr_t)message);
}

void torc_message_unref(torc_message *message)
{
    tc_rstr_unref((struct tc_rstr *)message);
}
