/* Asks a server for its .proto files.
 *
 * Questions and answers alternate on a stream, which reflect_rest ends. timeout_ms bounds the time that all streams of
 * a struct reflect are open, added up. An answer is a slice of r->kept, which the next question replaces. The caller's
 * thread blocks until the answer has come.
 *
 * A server is not trusted. Each answer must be whole, an error or of the kind that was asked for, and stay within the
 * limits below. An answer about a file or a symbol must hold it. Only UNIMPLEMENTED before any answer of a stream means
 * that the server has no reflection.
 *
 * reflect_symbol and reflect_file are walks over the index of files. A walk begins with the files of its first answer.
 * It appends their imports, breadth first, and then the files with extensions and the imports of these. */
#include "schema/reflect.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "proto/wire.h"

enum {
    MAX_FILES = 4096,               /* in the index */
    MAX_DEPTH = 128,                /* of imports */
    MAX_NESTED = 64,                /* messages within one another; deeper ones are not searched for extensions */
    MAX_EXTENSIBLE = 64,            /* messages of a walk whose extensions are asked for */
    MAX_EXTENSIONS = 1024,          /* of one message */
    MAX_MESSAGE = 16 * 1024 * 1024, /* bytes of an answer */
    MAX_BYTES = 64 * 1024 * 1024,   /* of all answers */
};

/* Fields of ServerReflectionRequest and ServerReflectionResponse. */
enum {
    FILE_BY_FILENAME = 3,
    FILE_CONTAINING_SYMBOL = 4,
    FILE_CONTAINING_EXTENSION = 5,
    ALL_EXTENSION_NUMBERS = 6,
    LIST_SERVICES = 7,
};
enum { FILE_DESCRIPTORS = 4, EXTENSION_NUMBERS = 5, SERVICES = 6, ERROR = 7 };

/* Replaces the text in r->why, and returns the code. */
static TC_PRINTF(3, 4) int fail(struct reflect *r, int code, const char *fmt, ...)
{
    va_list ap;
    tc_buf_clear(&r->why);
    tc_buf_printf(&r->why, "reflection of %s: ", torc_channel_target(r->channel));
    va_start(ap, fmt);
    tc_buf_vprintf(&r->why, fmt, ap);
    va_end(ap);
    return code;
}

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(NULL);
}

void reflect_rest(struct reflect *r)
{
    torc_message_unref(r->kept);
    r->kept = NULL;
    if (r->stream)
        r->spent_ns += now_ns() - r->opened_ns;
    torc_stream_free(r->stream);
    r->stream = NULL;
    r->answered = false;
}

void reflect_fini(struct reflect *r)
{
    reflect_rest(r);
    tc_buf_fini(&r->why);
}

static const char *method_of(const struct reflect *r)
{
    return r->alpha ? "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
                    : "grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
}

static int open_stream(struct reflect *r)
{
    int64_t left_ms = r->timeout_ms > 0 ? r->timeout_ms - (int64_t)(r->spent_ns / TC_NS_PER_MS) : r->timeout_ms;
    if (r->timeout_ms > 0 && left_ms <= 0)
        return fail(r, REFLECT_FAILED, "DEADLINE_EXCEEDED: the %lld ms for all questions are over",
                    (long long)r->timeout_ms);
    r->opened_ns = now_ns();
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = left_ms, .metadata = r->metadata,
                                  .max_receive_message_bytes = MAX_MESSAGE, .wait_for_ready = r->wait_for_ready};
    torc_error *error = NULL;
    r->stream = torc_stream_open(r->channel, method_of(r), &o, &error);
    int rc = r->stream ? REFLECT_OK : fail(r, REFLECT_FAILED, "%s", torc_error_text(error));
    torc_error_free(error);
    return rc;
}

/* Finishes a stream that has ended. Returns REFLECT_OK if the question is to be asked again, of v1alpha. */
static int on_end(struct reflect *r)
{
    torc_result *result = torc_stream_finish(r->stream);
    int code = torc_result_code(result), rc = REFLECT_FAILED;
    bool absent = code == TORC_STATUS_UNIMPLEMENTED && !r->answered;
    if (absent && !r->alpha) {
        r->alpha = true;
        rc = REFLECT_OK;
    } else if (absent) {
        rc = fail(r, REFLECT_ABSENT, "the server has neither grpc.reflection.v1 nor grpc.reflection.v1alpha");
    } else if (code == TORC_STATUS_OK) {
        fail(r, rc, "the server ended the stream without an answer");
    } else {
        fail(r, rc, "%s: %s", torc_status_code_name(code), torc_result_text(result));
    }
    torc_result_free(result);
    reflect_rest(r);
    return rc;
}

/* Asks, on a new stream if none is open, and stores the answer's message in r->kept. */
static int exchange(struct reflect *r, const struct tc_buf *question)
{
    const torc_message *message;
    int rc;
    for (;;) {
        if (!r->stream && (rc = open_stream(r)) != REFLECT_OK)
            return rc;
        rc = torc_stream_send(r->stream, question->data, question->len, 0, -1);
        if (rc == 0)
            rc = torc_stream_receive(r->stream, -1, &message);
        if (rc == 1)
            break;
        if (rc != 0 && rc != TORC_ECLOSED)
            return fail(r, REFLECT_FAILED, "%s", torc_strerror(rc));
        if ((rc = on_end(r)) != REFLECT_OK)
            return rc;
    }
    r->answered = true;
    r->n_bytes += torc_message_size(message);
    torc_message_unref(r->kept);
    r->kept = torc_message_ref(message);
    return r->n_bytes <= MAX_BYTES
               ? REFLECT_OK
               : fail(r, REFLECT_FAILED, "the server sent more than %d MiB", MAX_BYTES / 1024 / 1024);
}

/* Returns false if a field of the message cannot be read. */
static bool is_whole(struct tc_slice message)
{
    struct tc_wire_field field;
    while (message.len)
        if (!tc_wire_next(&message, &field))
            return false;
    return true;
}

/* Returns the failure that an ErrorResponse means. `optional`: any error means REFLECT_NOT_FOUND. */
static int on_error(struct reflect *r, struct tc_slice error, bool optional, const char *about, struct tc_slice name)
{
    struct tc_wire_field field;
    uint64_t code = 0;
    struct tc_slice text = tc_wire_find(error, 2);
    while (tc_wire_next(&error, &field))
        if (field.number == 1 && field.is_varint)
            code = field.varint;
    return fail(r, optional || code == TORC_STATUS_NOT_FOUND ? REFLECT_NOT_FOUND : REFLECT_FAILED,
                "%s \"%.*s\": %s: %.*s", about, (int)TC_MIN(name.len, (size_t)256), name.data,
                code <= TORC_STATUS_UNAUTHENTICATED ? torc_status_code_name((int)code) : "an unknown status",
                (int)TC_MIN(text.len, (size_t)1024), text.data ? text.data : "");
}

/* Asks one question, and stores the answer in *answer, valid until the next question or reflect_rest. `question` and
 * `value`: field of the request. `wanted`: field of the response. `name`: what is asked for, for errors. */
static int ask_about(struct reflect *r, unsigned question, struct tc_slice value, struct tc_slice name, unsigned wanted,
                     struct tc_slice *answer)
{
    static const char *const about_what[] = {
        [FILE_BY_FILENAME] = "file",
        [FILE_CONTAINING_SYMBOL] = "symbol",
        [FILE_CONTAINING_EXTENSION] = "extension of",
        [ALL_EXTENSION_NUMBERS] = "extensions of",
        [LIST_SERVICES] = "services",
    };
    const char *about = about_what[question];
    struct tc_wire_field field;
    struct tc_buf b = {0};
    uint64_t kind = 0;
    tc_wire_append(&b, question, value);
    int rc = exchange(r, &b);
    tc_buf_fini(&b);
    if (rc != REFLECT_OK)
        return rc;
    struct tc_slice rest = tc_slice_of(torc_message_data(r->kept), torc_message_size(r->kept));
    if (!is_whole(rest))
        return fail(r, REFLECT_FAILED, "the answer to %s \"%.*s\" is not a ServerReflectionResponse", about,
                    (int)TC_MIN(name.len, (size_t)256), name.data);
    while (tc_wire_next(&rest, &field)) {
        if (field.number >= FILE_DESCRIPTORS && field.number <= ERROR && field.is_bytes) {
            kind = field.number;
            *answer = field.value;
        }
    }
    if (kind == ERROR)
        return on_error(r, *answer, question == ALL_EXTENSION_NUMBERS || question == FILE_CONTAINING_EXTENSION, about,
                        name);
    if (kind != wanted)
        return fail(r, REFLECT_FAILED, "the answer to %s \"%.*s\" is of another kind", about,
                    (int)TC_MIN(name.len, (size_t)256), name.data);
    if (!is_whole(*answer))
        return fail(r, REFLECT_FAILED, "the answer to %s \"%.*s\" is malformed", about,
                    (int)TC_MIN(name.len, (size_t)256), name.data);
    return REFLECT_OK;
}

static int ask(struct reflect *r, unsigned question, struct tc_slice name, unsigned wanted, struct tc_slice *answer)
{
    return ask_about(r, question, name, name, wanted, answer);
}

int reflect_services(struct reflect *r, struct tc_slice *answer)
{
    int rc = ask(r, LIST_SERVICES, tc_slice_str("*"), SERVICES, answer);
    struct tc_wire_field field;
    struct tc_slice rest = rc == REFLECT_OK ? *answer : tc_slice_of(NULL, 0);
    while (rc == REFLECT_OK && tc_wire_next(&rest, &field))
        if (field.number == 1 && field.is_bytes && !is_whole(field.value))
            rc = fail(r, REFLECT_FAILED, "a service of the list is malformed");
    return rc;
}

enum { FILE_NAME = 1, FILE_PACKAGE = 2, FILE_MESSAGES = 4 }; /* fields of FileDescriptorProto */

/* The files of the index that one call of reflect_symbol or reflect_file has added. */
struct walk {
    size_t first;           /* index of the first of them */
    TC_VEC(unsigned) depth; /* of each file: how many imports lead to it */
};

/* Adds the files of an answer; `depth` is that of each. Stores in *last the name of the answer's last file, valid as
 * long as the answer, or an empty slice if the answer has no file. */
static int add_files(struct reflect *r, struct tc_descriptor_index *files, struct walk *w, unsigned depth,
                     struct tc_slice answer, struct tc_slice *last)
{
    struct tc_wire_field field;
    *last = tc_slice_of(NULL, 0);
    while (tc_wire_next(&answer, &field)) {
        struct tc_status why = {0};
        if (field.number != 1 || !field.is_bytes)
            continue;
        if (files->files.len >= MAX_FILES)
            return fail(r, REFLECT_FAILED, "the server has more than %d files", MAX_FILES);
        if (tc_descriptor_index_add(files, field.value, &why) != 0) {
            fail(r, REFLECT_FAILED, "a file of the answer: %s", tc_status_text(&why));
            tc_status_fini(&why);
            return REFLECT_FAILED;
        }
        if (files->files.len > w->first + w->depth.len)
            *tc_vec_push(&w->depth) = depth;
        *last = tc_wire_find(field.value, FILE_NAME);
    }
    return REFLECT_OK;
}

/* Fetches the file of a name. */
static int fetch_file(struct reflect *r, struct tc_descriptor_index *files, struct walk *w, unsigned depth,
                      struct tc_slice name)
{
    struct tc_slice answer;
    struct tc_slice last;
    int rc = ask(r, FILE_BY_FILENAME, name, FILE_DESCRIPTORS, &answer);
    if (rc == REFLECT_OK)
        rc = add_files(r, files, w, depth, answer, &last);
    if (rc == REFLECT_OK && !tc_descriptor_index_file(files, name))
        rc = fail(r, REFLECT_FAILED, "asked for the file \"%.*s\", the server sent %s%.*s%s",
                  (int)TC_MIN(name.len, (size_t)256), name.data, last.len ? "\"" : "none",
                  (int)TC_MIN(last.len, (size_t)256), last.data ? last.data : "", last.len ? "\"" : "");
    return rc;
}

/* Fetches an import of file `i` of the walk, unless the index has it. It is not a failure if the server does not have
 * the import. */
static int follow(struct reflect *r, struct tc_descriptor_index *files, struct walk *w, size_t i, struct tc_slice name)
{
    if (tc_descriptor_index_file(files, name))
        return REFLECT_OK;
    if (w->depth.data[i] >= MAX_DEPTH)
        return fail(r, REFLECT_FAILED, "imports are more than %d deep, at \"%.*s\"", MAX_DEPTH,
                    (int)TC_MIN(name.len, (size_t)256), name.data);
    int rc = fetch_file(r, files, w, w->depth.data[i] + 1, name);
    return rc == REFLECT_NOT_FOUND ? REFLECT_OK : rc;
}

/* Fetches the imports of the files of the walk, from file `i` on. */
static int follow_all(struct reflect *r, struct tc_descriptor_index *files, struct walk *w, size_t i)
{
    int rc = REFLECT_OK;
    for (; rc == REFLECT_OK && i < w->depth.len; i++)
        for (size_t k = 0; rc == REFLECT_OK && k < files->files.data[w->first + i]->imports.len; k++)
            rc = follow(r, files, w, i, files->files.data[w->first + i]->imports.data[k]);
    return rc;
}

/* Full names of messages that may have extensions. */
struct extensible {
    TC_VEC(char *) names; /* MAX_EXTENSIBLE at most; owned */
};

/* Looks at the messages in the fields `number` of a descriptor, and at the messages nested in these, and adds the names
 * of the extensible ones. `scope`: the descriptor's package or full name; "": none. `depth`: 0 if the descriptor is a
 * file's; 1 for a message of a file, 2 for a message nested in it, and so on. */
static void find_extensible(struct extensible *e, struct tc_slice descriptor, unsigned number, const char *scope,
                            int depth)
{
    enum { NAME = 1, NESTED = 3, EXTENSION_RANGE = 5 };
    struct tc_wire_field field, inner;
    while (depth < MAX_NESTED && tc_wire_next(&descriptor, &field)) {
        if (field.number != number || !field.is_bytes)
            continue;
        struct tc_slice name = tc_wire_find(field.value, NAME), rest = field.value;
        char *full = tc_asprintf("%s%s%.*s", scope, *scope ? "." : "", (int)name.len, name.data ? name.data : "");
        bool found = false;
        while (!found && tc_wire_next(&rest, &inner))
            found = inner.number == EXTENSION_RANGE && inner.is_bytes;
        find_extensible(e, field.value, NESTED, full, depth + 1);
        if (found && e->names.len < MAX_EXTENSIBLE)
            *tc_vec_push(&e->names) = full;
        else
            tc_free(full);
    }
}

/* Fetches the file of one extension, and its imports. */
static int fetch_extension(struct reflect *r, struct tc_descriptor_index *files, struct walk *w, struct tc_slice type,
                           int32_t number)
{
    struct tc_buf request = {0};
    struct tc_slice answer;
    struct tc_slice last;
    size_t before = w->depth.len;
    tc_wire_append(&request, 1, type);
    tc_buf_append_char(&request, 2 << 3);
    tc_wire_append_varint(&request, (uint64_t)(int64_t)number);
    int rc = ask_about(r, FILE_CONTAINING_EXTENSION, tc_buf_slice(&request), type, FILE_DESCRIPTORS, &answer);
    tc_buf_fini(&request);
    if (rc == REFLECT_OK)
        rc = add_files(r, files, w, 0, answer, &last);
    return rc == REFLECT_OK ? follow_all(r, files, w, before) : rc;
}

/* Fetches the extensions of a message. An error response means that there are none. */
static int fetch_extensions(struct reflect *r, struct tc_descriptor_index *files, struct walk *w, struct tc_slice type)
{
    TC_VEC(int32_t) numbers = {0};
    struct tc_slice answer;
    struct tc_wire_field field;
    uint64_t value;
    int rc = ask(r, ALL_EXTENSION_NUMBERS, type, EXTENSION_NUMBERS, &answer);
    if (rc == REFLECT_NOT_FOUND)
        return REFLECT_OK;
    while (rc == REFLECT_OK && tc_wire_next(&answer, &field)) {
        size_t width;
        if (field.number == 2 && field.is_varint)
            *tc_vec_push(&numbers) = (int32_t)field.varint;
        for (struct tc_slice packed = field.value; field.number == 2 && field.is_bytes && packed.len;
             packed = tc_slice_of(packed.data + width, packed.len - width)) {
            if (!(width = tc_wire_varint(packed.data, packed.data + packed.len, 10, &value))) {
                rc = fail(r, REFLECT_FAILED, "the numbers of extensions of \"%.*s\" are malformed",
                          (int)TC_MIN(type.len, (size_t)256), type.data);
                break;
            }
            *tc_vec_push(&numbers) = (int32_t)value;
        }
    }
    if (rc == REFLECT_OK && numbers.len > MAX_EXTENSIONS)
        rc = fail(r, REFLECT_FAILED, "%.*s has more than %d extensions", (int)TC_MIN(type.len, (size_t)256), type.data,
                  MAX_EXTENSIONS);
    for (size_t i = 0; rc == REFLECT_OK && i < numbers.len; i++)
        if (!tc_descriptor_index_extension(files, type, numbers.data[i]) &&
            (rc = fetch_extension(r, files, w, type, numbers.data[i])) == REFLECT_NOT_FOUND)
            rc = REFLECT_OK; /* the server has no file for this one */
    tc_vec_fini(&numbers);
    return rc;
}

/* Fetches the extensions of the first MAX_EXTENSIBLE extensible messages in the files of the walk. Messages of
 * descriptor.proto are left out. */
static int follow_extensions(struct reflect *r, struct tc_descriptor_index *files, struct walk *w)
{
    struct extensible e = {0};
    int rc = REFLECT_OK;
    for (size_t i = 0; i < w->depth.len; i++) {
        const struct tc_descriptor_file *file = files->files.data[w->first + i];
        char *package = tc_slice_dup(tc_wire_find(file->bytes, FILE_PACKAGE));
        if (strcmp(file->name, "google/protobuf/descriptor.proto") != 0)
            find_extensible(&e, file->bytes, FILE_MESSAGES, package, 0);
        tc_free(package);
    }
    for (size_t i = 0; rc == REFLECT_OK && i < e.names.len; i++)
        rc = fetch_extensions(r, files, w, tc_slice_str(e.names.data[i]));
    for (size_t i = 0; i < e.names.len; i++)
        tc_free(e.names.data[i]);
    tc_vec_fini(&e.names);
    return rc;
}

/* Ends a walk: unless `rc` is a failure, fetches the imports and extensions of its files. */
static int finish(struct reflect *r, struct tc_descriptor_index *files, struct walk *w, int rc)
{
    if (rc == REFLECT_OK)
        rc = follow_all(r, files, w, 0);
    if (rc == REFLECT_OK)
        rc = follow_extensions(r, files, w);
    tc_vec_fini(&w->depth);
    return rc;
}

int reflect_symbol(struct reflect *r, struct tc_descriptor_index *files, struct tc_slice symbol)
{
    struct walk w = {.first = files->files.len};
    struct tc_slice answer;
    struct tc_slice last;
    int rc = ask(r, FILE_CONTAINING_SYMBOL, symbol, FILE_DESCRIPTORS, &answer);
    if (rc == REFLECT_OK)
        rc = add_files(r, files, &w, 0, answer, &last);
    if (rc == REFLECT_OK && !tc_descriptor_index_symbol(files, symbol))
        rc = fail(r, REFLECT_FAILED, "asked for the file that defines \"%.*s\", the server sent %s%.*s%s",
                  (int)TC_MIN(symbol.len, (size_t)256), symbol.data, last.len ? "\"" : "none",
                  (int)TC_MIN(last.len, (size_t)256), last.data ? last.data : "", last.len ? "\", which does not" : "");
    return finish(r, files, &w, rc);
}

int reflect_file(struct reflect *r, struct tc_descriptor_index *files, struct tc_slice name)
{
    struct walk w = {.first = files->files.len};
    int rc = fetch_file(r, files, &w, 0, name);
    return finish(r, files, &w, rc);
}
