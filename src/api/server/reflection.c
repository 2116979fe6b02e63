/* grpc.reflection.v1 and v1alpha as handlers of a server; both have the same messages.
 *
 * A stream has one answer at a time: the next request is asked for when torc_server_call_send has taken the answer to
 * the last one. Without room in the send buffer the answer waits in the stream for on_writable. So a client can make
 * the server hold one answer beside those in its call's send buffer.
 *
 * Files are under a mutex; the runtime's lock is never taken while the mutex is held. Streams run on the loops of their
 * calls; the application adds files on any thread. A stream belongs to the events of its call: `release` frees it.
 * torc_reflection is reference-counted: by the application's handle, the server's two methods (until their release) and
 * each stream. In a child of a fork the application's functions leave it alone: a thread of the parent may have locked
 * the mutex. */
#include <torc/reflection.h>

#include <pthread.h>
#include <stdlib.h>

#include "api/server/call_object.h"
#include "base/buf.h"
#include "base/fork.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/sized.h"
#include "base/thread.h"
#include "proto/descriptor_index.h"
#include "proto/wire.h"
#include "reflection_files.h" /* generated: tc_reflection_files, a FileDescriptorSet */

enum { MAX_REQUEST = 64 * 1024 };

/* Fields of ServerReflectionRequest. */
enum {
    HOST = 1,
    FILE_BY_FILENAME = 3,
    FILE_CONTAINING_SYMBOL = 4,
    FILE_CONTAINING_EXTENSION = 5,
    ALL_EXTENSION_NUMBERS_OF_TYPE = 6,
    LIST_SERVICES = 7,
};

/* Fields of ServerReflectionResponse. */
enum {
    VALID_HOST = 1,
    ORIGINAL_REQUEST = 2,
    FILE_DESCRIPTOR_RESPONSE = 4,
    ALL_EXTENSION_NUMBERS_RESPONSE = 5,
    LIST_SERVICES_RESPONSE = 6,
    ERROR_RESPONSE = 7,
};

struct torc_reflection {
    struct tc_ref ref;
    unsigned generation; /* tc_fork_generation when the service was made */
    pthread_mutex_t mutex;
    /* Under the mutex: */
    struct tc_descriptor_index index;
    size_t n_own;           /* of the index: the first n_own files are Torc's; constant once these are added */
    struct tc_buf services; /* a ListServiceResponse, empty until it is asked for */
};

struct reflection_stream {
    torc_reflection *reflection; /* a reference */
    TC_VEC(bool) sent;           /* by tc_descriptor_file.index: an answer of the stream has had the file */
    struct tc_buf answer;        /* waits for room in the send buffer; empty: none waits */
};

struct reflection_request {
    uint64_t kind;              /* a field of ServerReflectionRequest, from FILE_BY_FILENAME on; 0: unset */
    struct tc_slice host, text; /* in the request's bytes; text: the file, the symbol, or the type of an extension */
    int32_t number;             /* of FILE_CONTAINING_EXTENSION */
};

static void reflection_unref(torc_reflection *r)
{
    if (!tc_ref_dec(&r->ref))
        return;
    tc_descriptor_index_fini(&r->index);
    tc_buf_fini(&r->services);
    pthread_mutex_destroy(&r->mutex);
    tc_free(r);
}

static void on_release(void *arg)
{
    reflection_unref(arg);
}

/* --- requests --- */

/* Reads an ExtensionRequest: containing_type = 1, extension_number = 2. Stores q->text and q->number. Returns false if
 * the bytes are malformed. */
static bool extension_read(struct tc_slice bytes, struct reflection_request *q)
{
    struct tc_wire_field f;
    q->text = tc_slice_of("", 0);
    q->number = 0;
    for (struct tc_slice rest = bytes; rest.len;) {
        if (!tc_wire_next(&rest, &f))
            return false;
        if (f.number == 1 && f.is_bytes)
            q->text = f.value;
        else if (f.number == 2)
            q->number = (int32_t)f.varint;
    }
    return true;
}

/* Reads a request; of several kinds in it the last counts. Returns false if the bytes are malformed. */
static bool request_read(struct tc_slice bytes, struct reflection_request *q)
{
    struct tc_wire_field f;
    *q = (struct reflection_request){.host = tc_slice_of("", 0), .text = tc_slice_of("", 0)};
    for (struct tc_slice rest = bytes; rest.len;) {
        if (!tc_wire_next(&rest, &f))
            return false;
        if (!f.is_bytes || f.number < HOST || f.number == HOST + 1 || f.number > LIST_SERVICES)
            continue;
        if (f.number == HOST) {
            q->host = f.value;
            continue;
        }
        q->kind = f.number;
        q->text = f.value;
        if (f.number == FILE_CONTAINING_EXTENSION && !extension_read(f.value, q))
            return false;
    }
    return tc_utf8_valid(q->host) && tc_utf8_valid(q->text);
}

/* --- answers --- */

/* Appends ErrorResponse {error_code = 1, error_message = 2}, with NOT_FOUND. */
static void error_append(struct tc_buf *out, const char *what, struct tc_slice name)
{
    struct tc_buf error = {0}, text = {0};
    tc_buf_append_str(&text, what);
    tc_buf_append_slice(&text, name);
    tc_wire_append_varint(&error, 1 << 3 | TC_WIRE_VARINT);
    tc_wire_append_varint(&error, TORC_STATUS_NOT_FOUND);
    tc_wire_append(&error, 2, tc_buf_slice(&text));
    tc_wire_append(out, ERROR_RESPONSE, tc_buf_slice(&error));
    tc_buf_fini(&text);
    tc_buf_fini(&error);
}

/* Returns the file's flag in s->sent, good until the next call for the stream. */
static bool *sent_flag(struct reflection_stream *s, const struct tc_descriptor_file *file)
{
    while (s->sent.len <= file->index)
        tc_vec_push(&s->sent);
    return &s->sent.data[file->index];
}

/* Appends FileDescriptorResponse: the file, and the files that it imports, directly or not, and that the stream has not
 * sent yet. Does not look at the imports of an import that was sent before. With the mutex held. */
static void files_append(struct reflection_stream *s, struct tc_buf *out, const struct tc_descriptor_file *first)
{
    const struct tc_descriptor_index *x = &s->reflection->index;
    TC_VEC(const struct tc_descriptor_file *) queue = {0};
    struct tc_buf files = {0};
    *tc_vec_push(&queue) = first;
    *sent_flag(s, first) = true;
    for (size_t i = 0; i < queue.len; i++) {
        const struct tc_descriptor_file *file = queue.data[i];
        tc_wire_append(&files, 1, file->bytes);
        for (size_t k = 0; k < file->imports.len; k++) {
            const struct tc_descriptor_file *import = tc_descriptor_index_file(x, file->imports.data[k]);
            bool *sent = import ? sent_flag(s, import) : NULL;
            if (!sent || *sent)
                continue;
            *sent = true;
            *tc_vec_push(&queue) = import;
        }
    }
    tc_wire_append(out, FILE_DESCRIPTOR_RESPONSE, tc_buf_slice(&files));
    tc_buf_fini(&files);
    tc_vec_fini(&queue);
}

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Appends ExtensionNumberResponse {base_type_name = 1, extension_number = 2, packed, sorted}, or an error if neither
 * the message nor an extension of it is known. With the mutex held. */
static void extensions_append(struct tc_buf *out, const struct tc_descriptor_index *x, struct tc_slice message)
{
    const struct tc_descriptor_numbers *e = tc_descriptor_index_extensions(x, message);
    struct tc_buf body = {0}, numbers = {0}, sorted = {0};
    if (!e && !tc_descriptor_index_message(x, message)) {
        error_append(out, "unknown message: ", message);
        return;
    }
    if (e) {
        tc_buf_append(&sorted, e->list.data, e->list.len * sizeof(int32_t));
        qsort(sorted.data, e->list.len, sizeof(int32_t), by_number);
        for (size_t i = 0; i < e->list.len; i++)
            tc_wire_append_varint(&numbers, (uint64_t)((const int32_t *)(const void *)sorted.data)[i]);
    }
    tc_wire_append(&body, 1, message);
    if (numbers.len)
        tc_wire_append(&body, 2, tc_buf_slice(&numbers));
    tc_wire_append(out, ALL_EXTENSION_NUMBERS_RESPONSE, tc_buf_slice(&body));
    tc_buf_fini(&sorted);
    tc_buf_fini(&numbers);
    tc_buf_fini(&body);
}

static int by_name(const void *a, const void *b)
{
    return tc_slice_cmp(*(const struct tc_slice *)a, *(const struct tc_slice *)b);
}

/* Appends the fields of ListServiceResponse: a ServiceResponse {name = 1} for each service with a method that was
 * registered for it, sorted; "*" is for no service. The server has started: its methods no longer change. */
static void services_append(struct tc_buf *out, const torc_server *server)
{
    TC_VEC(struct tc_slice) names = {0};
    for (const struct tc_method *m = server->methods; m; m = m->hh.next) {
        const char *end = strrchr(m->path, '/');
        if (end && !m->spread)
            *tc_vec_push(&names) = tc_slice_of(m->path + 1, (size_t)(end - m->path - 1));
    }
    qsort(names.data, names.len, sizeof(names.data[0]), by_name);
    for (size_t i = 0; i < names.len; i++) {
        struct tc_buf service = {0};
        if (i > 0 && tc_slice_eq(names.data[i], names.data[i - 1]))
            continue;
        tc_wire_append(&service, 1, names.data[i]);
        tc_wire_append(out, 1, tc_buf_slice(&service));
        tc_buf_fini(&service);
    }
    tc_vec_fini(&names);
}

/* Appends the answer to a request. With the mutex held. */
static void answer_append(struct reflection_stream *s, struct tc_buf *out, const struct reflection_request *q,
                          const torc_server *server)
{
    torc_reflection *r = s->reflection;
    const struct tc_descriptor_file *file = NULL;
    const char *what = "";
    switch (q->kind) {
    case LIST_SERVICES:
        if (!r->services.len)
            services_append(&r->services, server);
        tc_wire_append(out, LIST_SERVICES_RESPONSE, tc_buf_slice(&r->services));
        return;
    case ALL_EXTENSION_NUMBERS_OF_TYPE:
        extensions_append(out, &r->index, q->text);
        return;
    case FILE_BY_FILENAME:
        file = tc_descriptor_index_file(&r->index, q->text);
        what = "unknown file: ";
        break;
    case FILE_CONTAINING_SYMBOL:
        file = tc_descriptor_index_symbol(&r->index, q->text);
        what = "unknown symbol: ";
        break;
    default:
        file = tc_descriptor_index_extension(&r->index, q->text, q->number);
        what = "unknown extension of ";
        break;
    }
    if (file)
        files_append(s, out, file);
    else
        error_append(out, what, q->text);
}

/* --- streams --- */

static void stream_free(void *arg)
{
    struct reflection_stream *s = arg;
    reflection_unref(s->reflection);
    tc_vec_fini(&s->sent);
    tc_buf_fini(&s->answer);
    tc_free(s);
}

/* Sends the answer, if there is room for it, and asks for the next request; without room, on_writable follows. Drops
 * the answer if the RPC is over. */
static void answer_send(torc_server_call *call, struct reflection_stream *s)
{
    int rc = torc_server_call_send(call, s->answer.data, s->answer.len, 0, 0);
    if (rc == TORC_EAGAIN)
        return;
    tc_buf_fini(&s->answer);
    if (rc == 0)
        torc_server_call_want(call, 1);
}

static void on_message(torc_server_call *call, const torc_message *message, void *arg)
{
    struct reflection_stream *s = arg;
    torc_reflection *r = s->reflection;
    struct tc_slice bytes = tc_slice_of(torc_message_data(message), torc_message_size(message));
    struct reflection_request q;
    if (!request_read(bytes, &q)) {
        torc_server_call_finish(call, TORC_STATUS_INTERNAL, "malformed ServerReflectionRequest", NULL);
        return;
    }
    if (!q.kind) {
        torc_server_call_finish(call, TORC_STATUS_INVALID_ARGUMENT, "the ServerReflectionRequest asks for nothing",
                                NULL);
        return;
    }
    if (q.host.len)
        tc_wire_append(&s->answer, VALID_HOST, q.host);
    tc_wire_append(&s->answer, ORIGINAL_REQUEST, bytes);
    pthread_mutex_lock(&r->mutex);
    answer_append(s, &s->answer, &q, call->server);
    pthread_mutex_unlock(&r->mutex);
    answer_send(call, s);
}

static void on_half_close(torc_server_call *call, void *arg TC_UNUSED)
{
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

static void on_writable(torc_server_call *call, void *arg)
{
    struct reflection_stream *s = arg;
    if (s->answer.len)
        answer_send(call, s);
}

static void on_cancel(torc_server_call *call, void *arg TC_UNUSED)
{
    torc_server_call_finish(call, TORC_STATUS_CANCELLED, NULL, NULL);
}

static const struct torc_server_call_events events = {
    TORC_SIZE(torc_server_call_events), .on_message = on_message, .on_half_close = on_half_close,
    .on_writable = on_writable,         .on_cancel = on_cancel,   .release = stream_free};

static void on_stream(torc_server_call *call, void *arg)
{
    struct reflection_stream *s = TC_NEW(struct reflection_stream);
    s->reflection = arg;
    tc_ref_inc(&s->reflection->ref);
    if (torc_server_call_set_events(call, &events, s) == 0) {
        torc_server_call_want(call, 1);
        return;
    }
    stream_free(s);
    torc_server_call_finish(call, TORC_STATUS_CANCELLED, NULL, NULL);
}

/* --- the application --- */

static bool is_of_parent(const torc_reflection *r)
{
    return r->generation != tc_fork_generation();
}

/* Stores TORC_EFORK as an error, and returns it. */
static int refuse_in_child(torc_error **error)
{
    tc_error_set_code(error, TORC_EFORK, "reflection");
    return TORC_EFORK;
}

/* Adds a copy of a FileDescriptorProto; leaves it out if a file of Torc's has its name. Returns 0, or the code of an
 * error that it stores. */
static int file_add(torc_reflection *r, struct tc_slice bytes, torc_error **error)
{
    struct tc_status why = {0};
    pthread_mutex_lock(&r->mutex);
    const struct tc_descriptor_file *own = tc_descriptor_index_file(&r->index, tc_wire_find(bytes, 1));
    int rc = own && own->index < r->n_own ? 0 : tc_descriptor_index_add(&r->index, bytes, &why);
    pthread_mutex_unlock(&r->mutex);
    if (rc != 0)
        tc_error_set(error, rc, TORC_LAYER_API, "%s", tc_status_text(&why));
    tc_status_fini(&why);
    return rc;
}

/* Adds the files of a FileDescriptorSet, up to the first that fails. Returns what file_add returns, or TORC_EPARSE with
 * an error. */
static int set_add(torc_reflection *r, struct tc_slice set, torc_error **error)
{
    struct tc_wire_field f;
    int rc = 0;
    while (rc == 0 && set.len) {
        if (!tc_wire_next(&set, &f)) {
            tc_error_set(error, TORC_EPARSE, TORC_LAYER_API, "malformed FileDescriptorSet");
            return TORC_EPARSE;
        }
        if (f.is_bytes && f.number == 1)
            rc = file_add(r, f.value, error);
    }
    return rc;
}

int torc_reflection_add_set(torc_reflection *r, const void *bytes, size_t size, torc_error **error)
{
    TC_NO_CANCEL;
    if (tc_error_pending(error))
        return torc_error_code(*error);
    if (!r || (!bytes && size)) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "the reflection and the bytes must not be NULL");
        return TORC_EINVAL;
    }
    return is_of_parent(r) ? refuse_in_child(error) : set_add(r, tc_slice_of(bytes, size), error);
}

int torc_reflection_add(torc_reflection *r, const struct torc_stub_file *given, torc_error **error)
{
    TC_NO_CANCEL;
    struct torc_stub_file file;
    if (tc_error_pending(error))
        return torc_error_code(*error);
    int rc = r && given ? tc_sized_take(&file, sizeof(file), given) : TORC_EINVAL;
    if (rc == 0 && !file.descriptor)
        rc = TORC_EINVAL;
    if (rc == TORC_EUNSUPPORTED)
        tc_error_set(error, rc, TORC_LAYER_API, "file: generated code of a newer version");
    else if (rc != 0)
        tc_error_set(error, rc, TORC_LAYER_API, "the reflection, the file and its descriptor must not be NULL");
    if (rc == 0 && is_of_parent(r))
        return refuse_in_child(error);
    return rc ? rc : file_add(r, tc_slice_of(file.descriptor, (size_t)file.descriptor_size), error);
}

torc_reflection *torc_reflection_new(torc_server *server, torc_error **error)
{
    TC_NO_CANCEL;
    if (tc_error_pending(error))
        return NULL;
    torc_reflection *r = TC_NEW(torc_reflection);
    const struct torc_handler handler = {TORC_SIZE(torc_handler), .stream = on_stream, .release = on_release, .arg = r};
    const struct tc_method_spec methods[] = {
        {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", handler, MAX_REQUEST, NULL},
        {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", handler, MAX_REQUEST, NULL}};
    tc_ref_init(&r->ref);
    r->generation = tc_fork_generation();
    tc_ref_inc(&r->ref);
    tc_ref_inc(&r->ref);
    pthread_mutex_init(&r->mutex, NULL);
    set_add(r, tc_slice_of(tc_reflection_files, sizeof(tc_reflection_files)), NULL);
    r->n_own = r->index.files.len;
    if (tc_api_server_add(server, methods, TC_ARRAY_LEN(methods), NULL, error) == 0)
        return r;
    for (int i = 0; i < 3; i++)
        reflection_unref(r);
    return NULL;
}

void torc_reflection_free(torc_reflection *r)
{
    if (r && !is_of_parent(r))
        reflection_unref(r);
}
