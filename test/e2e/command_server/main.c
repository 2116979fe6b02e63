/* A server for the tests of torc call, list, describe and bench: shop.Orders, whose methods echo (Fail fails), and
 * reflection that is good or hostile. usage: command_server MODE SET. SET: a file with the FileDescriptorSet of
 * shop.proto and the .proto files beside it. Prints "listening ADDR" and serves until SIGTERM.
 *
 * MODE:
 *
 *   good         good reflection (torc_reflection)
 *   none         no reflection
 *   alpha        good reflection, by v1alpha alone
 *   undescribed  reflection lists shop.Orders, but has no files
 *   talkative    good reflection; each method of shop.Orders sends the last message until the client ends the call
 *   taciturn     good reflection; Get and Load send no response
 *   a row of `modes`: on v1 the row's function answers the requests. If the row has no function, streams end at once
 *   with the row's status. If this status is not OK, v1alpha is good.
 *
 * The handlers of this file run on a pool, so they may wait. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "base/buf.h"
#include "base/mem.h"
#include "proto/wire.h"

/* Field numbers of ServerReflectionRequest and ServerReflectionResponse. */
enum {
    FILE_BY_FILENAME = 3,
    FILE_CONTAINING_SYMBOL = 4,
    FILE_CONTAINING_EXTENSION = 5,
    ALL_EXTENSION_NUMBERS = 6,
    LIST_SERVICES = 7,
    FILES = 4,
    EXTENSION_NUMBERS = 5,
    SERVICES = 6,
    ERROR = 7
};

/* A request on a reflection stream: the number (kind) and the bytes (name) of its last field. */
struct question {
    unsigned kind;
    struct tc_slice name; /* borrowed from the request; valid until the mode's function returns */
    uint64_t n;           /* how many earlier requests of the stream were answered */
};

static struct tc_buf set;        /* the bytes of SET; they do not change once the server runs */
static bool talkative, taciturn; /* the mode; does not change once the server runs */

/* --- descriptors by hand --- */

/* Appends a message. Unless field_type is NULL, the message has a field "it" of this message type. */
static void add_message(struct tc_buf *file, const char *name, const char *field_type)
{
    struct tc_buf m = {0}, f = {0};
    tc_wire_append(&m, 1, tc_slice_str(name));
    if (field_type) {
        tc_wire_append(&f, 1, tc_slice_str("it"));
        tc_buf_append(&f, "\x18\x01\x20\x01\x28\x0b", 6); /* number 1, optional, a message */
        tc_wire_append(&f, 6, tc_slice_str(field_type));
        tc_wire_append(&m, 2, tc_buf_slice(&f));
    }
    tc_wire_append(file, 4, tc_buf_slice(&m));
    tc_buf_fini(&f);
    tc_buf_fini(&m);
}

/* Begins the file `name` of package shop, which imports the file `import` (NULL: none). */
static void begin_file(struct tc_buf *file, const char *name, const char *import)
{
    tc_wire_append(file, 1, tc_slice_str(name));
    tc_wire_append(file, 2, tc_slice_str("shop"));
    if (import)
        tc_wire_append(file, 3, tc_slice_str(import));
}

/* Appends the service shop.Orders with the method Get, whose request and response are a `type`. */
static void add_service(struct tc_buf *file, const char *type)
{
    struct tc_buf s = {0}, m = {0};
    tc_wire_append(&m, 1, tc_slice_str("Get"));
    tc_wire_append(&m, 2, tc_slice_str(type));
    tc_wire_append(&m, 3, tc_slice_str(type));
    tc_wire_append(&s, 1, tc_slice_str("Orders"));
    tc_wire_append(&s, 2, tc_buf_slice(&m));
    tc_wire_append(file, 6, tc_buf_slice(&s));
    tc_buf_fini(&m);
    tc_buf_fini(&s);
}

/* Appends a response with one file, and frees the file's bytes. */
static void answer_file(struct tc_buf *answer, struct tc_buf *file)
{
    struct tc_buf r = {0};
    tc_wire_append(&r, 1, tc_buf_slice(file));
    tc_wire_append(answer, FILES, tc_buf_slice(&r));
    tc_buf_fini(&r);
    tc_buf_fini(file);
}

static void answer_error(struct tc_buf *answer, unsigned code, const char *text)
{
    struct tc_buf r = {0};
    tc_buf_append_char(&r, 8);
    tc_wire_append_varint(&r, code);
    tc_wire_append(&r, 2, tc_slice_str(text));
    tc_wire_append(answer, ERROR, tc_buf_slice(&r));
    tc_buf_fini(&r);
}

/* --- hostile reflection. The function of a mode returns false to leave the request unanswered. --- */

static bool other(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    (void)q;
    begin_file(&file, "other.proto", NULL);
    add_message(&file, "Other", NULL);
    answer_file(answer, &file);
    return true;
}

/* The first file imports the second, and both a third, for which the server sends the first again. */
static bool same(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    begin_file(&file, q->n == 1 ? "b.proto" : "a.proto", q->n == 1 ? NULL : "b.proto");
    tc_wire_append(&file, 3, tc_slice_str("c.proto"));
    add_message(&file, q->n == 1 ? "B" : "M", NULL);
    if (q->n != 1)
        add_service(&file, ".shop.M");
    answer_file(answer, &file);
    return true;
}

/* Each file imports the next, for ever. */
static bool chain(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    char name[64], import[64];
    snprintf(name, sizeof(name), "%llu.proto", (unsigned long long)q->n);
    snprintf(import, sizeof(import), "%llu.proto", (unsigned long long)q->n + 1);
    begin_file(&file, name, import);
    if (q->n == 0) {
        add_message(&file, "M", NULL);
        add_service(&file, ".shop.M");
    }
    answer_file(answer, &file);
    return true;
}

/* One file imports 5,000 others, which import none. */
static bool wide(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    char *name = tc_slice_dup(q->name), import[64];
    begin_file(&file, q->n ? name : "a.proto", NULL);
    tc_free(name);
    for (int i = 0; i < 5000 && q->n == 0; i++) {
        snprintf(import, sizeof(import), "%d.proto", i);
        tc_wire_append(&file, 3, tc_slice_str(import));
    }
    if (q->n == 0) {
        add_message(&file, "M", NULL);
        add_service(&file, ".shop.M");
    }
    answer_file(answer, &file);
    return true;
}

/* Appends an unknown field of `size` bytes. */
static void append_options(struct tc_buf *file, size_t size)
{
    tc_wire_append_head(file, 50000, size);
    memset(tc_buf_reserve(file, size), 'x', size);
    file->len += size;
}

static bool huge(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    (void)q;
    begin_file(&file, "a.proto", NULL);
    append_options(&file, 64u << 20);
    answer_file(answer, &file);
    return true;
}

/* Files of 12 MiB, each of which imports the next. */
static bool heavy(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    char name[64], import[64];
    snprintf(name, sizeof(name), "%llu.proto", (unsigned long long)q->n);
    snprintf(import, sizeof(import), "%llu.proto", (unsigned long long)q->n + 1);
    begin_file(&file, name, import);
    if (q->n == 0) {
        add_message(&file, "M", NULL);
        add_service(&file, ".shop.M");
    }
    append_options(&file, 12u << 20);
    answer_file(answer, &file);
    return true;
}

/* A file of 1 MB whose full names take 400 MB together. */
static bool long_names(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0}, m = {0};
    char scope[4001];
    (void)q;
    memset(scope, 's', sizeof(scope) - 1);
    scope[sizeof(scope) - 1] = '\0';
    begin_file(&file, "a.proto", NULL);
    tc_wire_append(&m, 1, tc_slice_str(scope));
    for (int i = 0; i < 100000; i++) {
        char name[32];
        int n = snprintf(name + 2, sizeof(name) - 2, "f%d", i);
        name[0] = 10;
        name[1] = (char)n;
        tc_wire_append(&m, 2, tc_slice_of(name, (size_t)n + 2));
    }
    tc_wire_append(&file, 4, tc_buf_slice(&m));
    tc_buf_fini(&m);
    answer_file(answer, &file);
    return true;
}

static bool garbage(const struct question *q, struct tc_buf *answer)
{
    (void)q;
    tc_buf_append(answer, "\x08", 1); /* a field without its value */
    return true;
}

static bool garbage_file(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    (void)q;
    tc_buf_append(&file, "\xff\xff\xff\xff", 4);
    answer_file(answer, &file);
    return true;
}

/* Answers a request for the list of services with a malformed list, and other requests with an empty list. */
static bool other_kind(const struct question *q, struct tc_buf *answer)
{
    tc_wire_append(answer, SERVICES, tc_slice_str(q->kind == LIST_SERVICES ? "\x0a\x03\x0a\x01S\x08" : ""));
    return true;
}

static bool no_file(const struct question *q, struct tc_buf *answer)
{
    (void)q;
    tc_wire_append(answer, FILES, tc_slice_str(""));
    return true;
}

static bool refuses(const struct question *q, struct tc_buf *answer)
{
    char text[3000];
    (void)q;
    snprintf(text, sizeof(text), "no\x1b[2J luck%2900s", "far");
    answer_error(answer, 13, text);
    return true;
}

static bool silent(const struct question *q, struct tc_buf *answer)
{
    (void)q;
    (void)answer;
    return false;
}

/* The file's name would lead out of a folder to which files are written. */
static bool evil_name(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    (void)q;
    begin_file(&file, "../../evil.proto", NULL);
    add_message(&file, "M", NULL);
    add_service(&file, ".shop.M");
    answer_file(answer, &file);
    return true;
}

/* A field's JSON name would act on terminals: U+009B begins an escape sequence, as ESC [ does. */
static bool evil_json(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0}, m = {0}, f = {0};
    (void)q;
    begin_file(&file, "a.proto", NULL);
    tc_wire_append(&f, 1, tc_slice_str("it"));
    tc_buf_append(&f, "\x18\x01\x20\x01\x28\x09", 6); /* number 1, optional, a string */
    tc_wire_append(&f, 10, tc_slice_str("\xc2\2332J"));
    tc_wire_append(&m, 1, tc_slice_str("M"));
    tc_wire_append(&m, 2, tc_buf_slice(&f));
    tc_wire_append(&file, 4, tc_buf_slice(&m));
    add_service(&file, ".shop.M");
    answer_file(answer, &file);
    tc_buf_fini(&f);
    tc_buf_fini(&m);
    return true;
}

/* A file and its import both define shop.M. */
static bool conflict(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    begin_file(&file, q->n ? "b.proto" : "a.proto", q->n ? NULL : "b.proto");
    add_message(&file, "M", NULL);
    if (q->n == 0)
        add_service(&file, ".shop.M");
    answer_file(answer, &file);
    return true;
}

/* The server has a.proto, but not b.proto, which a.proto imports. */
static bool lacking(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    begin_file(&file, "a.proto", "b.proto");
    add_service(&file, ".shop.Lost");
    if (q->n == 0)
        answer_file(answer, &file);
    else
        answer_error(answer, TORC_STATUS_NOT_FOUND, "no such file");
    tc_buf_fini(&file);
    return true;
}

/* Two files import each other. The message of each has a field with the type of the other's message. */
static bool circle(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    begin_file(&file, q->n ? "b.proto" : "a.proto", q->n ? "a.proto" : "b.proto");
    add_message(&file, q->n ? "B" : "A", q->n ? ".shop.A" : ".shop.B");
    if (q->n == 0)
        add_service(&file, ".shop.A");
    answer_file(answer, &file);
    return true;
}

/* Like the reflection of grpcio in Python: finds services and top-level messages, but not methods. */
static bool owners(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    if (!tc_slice_eq_str(q->name, "shop.Orders") && !tc_slice_eq_str(q->name, "shop.A")) {
        answer_error(answer, 5, "not found");
        return true;
    }
    begin_file(&file, "a.proto", NULL);
    add_message(&file, "A", NULL);
    add_service(&file, ".shop.A");
    answer_file(answer, &file);
    return true;
}

/* Appends a message with the extension range 100 to 65535. */
static void add_extensible(struct tc_buf *file, const char *name)
{
    struct tc_buf m = {0};
    tc_wire_append(&m, 1, tc_slice_str(name));
    tc_wire_append(&m, 5, tc_slice_str("\x08\x64\x10\x80\x80\x04"));
    tc_wire_append(file, 4, tc_buf_slice(&m));
    tc_buf_fini(&m);
}

/* Seventy messages may have extensions. The server says that the first 64 have none. Later answers cannot be read. */
static bool extensible(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    char name[16];
    if (q->n > 64)
        return garbage(q, answer);
    if (q->n) {
        answer_error(answer, TORC_STATUS_NOT_FOUND, "none");
        return true;
    }
    begin_file(&file, "a.proto", NULL);
    for (int i = 0; i < 70; i++) {
        snprintf(name, sizeof(name), "M%d", i);
        add_extensible(&file, name);
    }
    add_service(&file, ".shop.M0");
    answer_file(answer, &file);
    return true;
}

/* The server says that shop.M has 5,000 extensions, and has the descriptor of none. */
static bool extended(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0}, list = {0}, numbers = {0};
    if (q->n == 0) {
        begin_file(&file, "a.proto", NULL);
        add_extensible(&file, "M");
        add_service(&file, ".shop.M");
        answer_file(answer, &file);
    } else {
        for (unsigned i = 0; i < 5000; i++)
            tc_wire_append_varint(&numbers, 100 + i);
        tc_wire_append(&list, 2, tc_buf_slice(&numbers));
        tc_wire_append(answer, EXTENSION_NUMBERS, tc_buf_slice(&list));
    }
    tc_buf_fini(&numbers);
    tc_buf_fini(&list);
    return true;
}

/* shop.M has the extensions 100 and 101. The server has no file for 100; its file for 101 defines shop.e. */
static bool half_extended(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0};
    if (q->n == 0)
        return extended(q, answer);
    if (q->kind == FILE_CONTAINING_EXTENSION && tc_slice_ends(q->name, tc_slice_str("\x65"))) {
        begin_file(&file, "ext.proto", "a.proto");
        tc_wire_append(&file, 7, tc_slice_str("\x0a\x01\x65\x12\x07.shop.M\x18\x65\x20\x01\x28\x05"));
        answer_file(answer, &file);
    } else if (q->kind == ALL_EXTENSION_NUMBERS)
        tc_wire_append(answer, EXTENSION_NUMBERS, tc_slice_str("\x10\x64\x10\x65"));
    else
        answer_error(answer, TORC_STATUS_NOT_FOUND, "no such file");
    return true;
}

/* All types are good but shop.extra.Note, which an Any may hold: Note has a field of a type that no file has. Note and
 * shop.extra.Card, which is good, are in two files, both of which are named extra.proto. */
static bool bad_any(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf file = {0}, files = {0};
    struct tc_slice rest = tc_buf_slice(&set);
    struct tc_wire_field field;
    if (q->kind != FILE_CONTAINING_SYMBOL) {
        answer_error(answer, TORC_STATUS_NOT_FOUND, "not known here");
    } else if (tc_slice_eq_str(q->name, "shop.extra.Note") || tc_slice_eq_str(q->name, "shop.extra.Card")) {
        bool bad = tc_slice_eq_str(q->name, "shop.extra.Note");
        begin_file(&file, "extra.proto", NULL);
        tc_wire_append(&file, 2, tc_slice_str("shop.extra")); /* the last package counts */
        add_message(&file, bad ? "Note" : "Card", bad ? ".shop.Lost" : NULL);
        answer_file(answer, &file);
    } else {
        while (tc_wire_next(&rest, &field))
            if (!tc_slice_eq_str(tc_wire_find(field.value, 1), "extra.proto"))
                tc_wire_append(&files, 1, field.value);
        tc_wire_append(answer, FILES, tc_buf_slice(&files));
    }
    tc_buf_fini(&files);
    return true;
}

/* The types of the service are good. A request for the type of an Any gets no answer. */
static bool mute_any(const struct question *q, struct tc_buf *answer)
{
    bool service = tc_slice_eq_str(q->name, "shop.Orders");
    if (service)
        tc_wire_append(answer, FILES, tc_buf_slice(&set)); /* field 1 of set and response: the files */
    else if (q->kind != FILE_CONTAINING_SYMBOL)
        answer_error(answer, TORC_STATUS_NOT_FOUND, "not known here");
    return service || q->kind != FILE_CONTAINING_SYMBOL;
}

static const struct mode {
    const char *name;
    bool (*answer)(const struct question *q, struct tc_buf *answer); /* NULL: streams end at once */
    int status;                                                      /* with which streams end */
} modes[] = {
    {"other", other, TORC_STATUS_OK},
    {"same", same, TORC_STATUS_OK},
    {"chain", chain, TORC_STATUS_OK},
    {"wide", wide, TORC_STATUS_OK},
    {"huge", huge, TORC_STATUS_OK},
    {"heavy", heavy, TORC_STATUS_OK},
    {"long_names", long_names, TORC_STATUS_OK},
    {"garbage", garbage, TORC_STATUS_OK},
    {"garbage_file", garbage_file, TORC_STATUS_OK},
    {"other_kind", other_kind, TORC_STATUS_OK},
    {"no_file", no_file, TORC_STATUS_OK},
    {"refuses", refuses, TORC_STATUS_OK},
    {"silent", silent, TORC_STATUS_OK},
    {"evil_name", evil_name, TORC_STATUS_OK},
    {"evil_json", evil_json, TORC_STATUS_OK},
    {"conflict", conflict, TORC_STATUS_OK},
    {"lacking", lacking, TORC_STATUS_OK},
    {"circle", circle, TORC_STATUS_OK},
    {"owners", owners, TORC_STATUS_OK},
    {"ends", NULL, TORC_STATUS_OK},
    {"denied", NULL, TORC_STATUS_PERMISSION_DENIED},
    {"unauthenticated", NULL, TORC_STATUS_UNAUTHENTICATED},
    {"unavailable", NULL, TORC_STATUS_UNAVAILABLE},
    {"overdue", NULL, TORC_STATUS_DEADLINE_EXCEEDED},
    {"broken", NULL, TORC_STATUS_INTERNAL},
    {"extended", extended, TORC_STATUS_OK},
    {"half_extended", half_extended, TORC_STATUS_OK},
    {"extensible", extensible, TORC_STATUS_OK},
    {"bad_any", bad_any, TORC_STATUS_OK},
    {"mute_any", mute_any, TORC_STATUS_OK},
};

static void on_reflection(torc_server_call *call, void *arg)
{
    const struct mode *mode = arg;
    const torc_message *message;
    struct question q = {0};
    while (mode->answer && torc_server_call_receive(call, -1, &message) == 1) {
        struct tc_slice rest = tc_slice_of(torc_message_data(message), torc_message_size(message));
        struct tc_wire_field field;
        struct tc_buf answer = {0};
        while (tc_wire_next(&rest, &field)) {
            q.kind = (unsigned)field.number;
            q.name = field.value;
        }
        bool more = mode->answer(&q, &answer);
        if (more)
            torc_server_call_send(call, answer.data, answer.len, 0, -1);
        q.n += more;
        tc_buf_fini(&answer);
    }
    torc_server_call_finish(call, mode->status, mode->status ? "not\x1b[2J for you" : NULL, NULL);
}

/* Good reflection by v1alpha: answers a request for a file or a symbol with all files, the list of services with
 * shop.Orders, and other requests with an error. */
static bool all_files(const struct question *q, struct tc_buf *answer)
{
    struct tc_buf service = {0}, list = {0};
    if (q->kind == FILE_CONTAINING_SYMBOL || q->kind == FILE_BY_FILENAME) {
        tc_wire_append(answer, FILES, tc_buf_slice(&set)); /* field 1 of set and response: the files */
        return true;
    }
    if (q->kind != LIST_SERVICES) {
        answer_error(answer, TORC_STATUS_UNIMPLEMENTED, "not known here");
        return true;
    }
    tc_wire_append(&service, 1, tc_slice_str("shop.Orders"));
    tc_wire_append(&list, 1, tc_buf_slice(&service));
    tc_wire_append(answer, SERVICES, tc_buf_slice(&list));
    tc_buf_fini(&service);
    tc_buf_fini(&list);
    return true;
}

/* --- shop.Orders --- */

static void append_any(struct tc_buf *status, const char *url, struct tc_slice value)
{
    struct tc_buf any = {0};
    tc_wire_append(&any, 1, tc_slice_str(url));
    tc_wire_append(&any, 2, value);
    tc_wire_append(status, 3, tc_buf_slice(&any));
    tc_buf_fini(&any);
}

/* Fails with three details: an ErrorInfo, the request as a shop.Order (the order "7" if the request is empty), and a
 * message of an unknown type. */
static void fail_with_details(torc_server_call *call, struct tc_slice request)
{
    struct tc_buf status = {0}, info = {0}, order = {0};
    torc_metadata *trailers = torc_metadata_new();
    tc_buf_append(&status, "\x08\x09", 2);
    tc_wire_append(&status, 2, tc_slice_str("sold out"));
    tc_wire_append(&info, 1, tc_slice_str("SOLD_OUT"));
    tc_wire_append(&info, 2, tc_slice_str("shop.example"));
    if (request.len)
        tc_buf_append_slice(&order, request);
    else
        tc_wire_append(&order, 1, tc_slice_str("7"));
    append_any(&status, "type.googleapis.com/google.rpc.ErrorInfo", tc_buf_slice(&info));
    append_any(&status, "type.googleapis.com/shop.Order", tc_buf_slice(&order));
    append_any(&status, "type.googleapis.com/shop.Unheard", tc_slice_str("\x08\x01"));
    torc_metadata_add(trailers, "grpc-status-details-bin", status.data, status.len);
    torc_server_call_finish(call, TORC_STATUS_FAILED_PRECONDITION, "sold out", trailers);
    torc_metadata_free(trailers);
    tc_buf_fini(&order);
    tc_buf_fini(&info);
    tc_buf_fini(&status);
}

/* Get and Load echo the last message, Watch echoes each message three times, and Chat echoes each message once. Fail
 * fails with details. Metadata with names that begin with "x-" comes back as response headers. A user agent that has
 * more than 7 bytes and does not begin with "torc-c/" comes back as x-user-agent. */
static void on_order(torc_server_call *call, void *arg)
{
    const char *method = strrchr(torc_server_call_method(call), '/') + 1, *name;
    const torc_metadata *given = torc_server_call_metadata(call);
    const torc_message *message;
    struct tc_buf last = {0};
    torc_metadata *headers = torc_metadata_new();
    const void *value;
    size_t size;
    (void)arg;
    for (size_t i = 0; torc_metadata_at(given, i, &name, &value, &size) == 0; i++)
        if (strncmp(name, "x-", 2) == 0 ||
            (strcmp(name, "user-agent") == 0 && size > 7 && memcmp(value, "torc-c/", 7) != 0))
            torc_metadata_add(headers, strcmp(name, "user-agent") == 0 ? "x-user-agent" : name, value, size);
    torc_server_call_send_headers(call, headers);
    torc_metadata_free(headers);
    while (torc_server_call_receive(call, -1, &message) == 1) {
        tc_buf_clear(&last);
        tc_buf_append(&last, torc_message_data(message), torc_message_size(message));
        for (int i = 0; i < 3 && (strcmp(method, "Watch") == 0 || (strcmp(method, "Chat") == 0 && i == 0)); i++)
            torc_server_call_send(call, last.data, last.len, 0, -1);
    }
    while (talkative && torc_server_call_send(call, last.data, last.len, 0, -1) == 0)
        continue;
    if (strcmp(method, "Fail") == 0)
        fail_with_details(call, tc_buf_slice(&last));
    else if (!taciturn && (strcmp(method, "Get") == 0 || strcmp(method, "Load") == 0))
        torc_server_call_reply(call, last.data, last.len);
    else
        torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
    tc_buf_fini(&last);
}

/* Registers `mode` as the reflection of `version` ("v1", "v1alpha"), on o->pool. Returns false with an error. */
static bool add_version(torc_server *server, const char *version, const struct mode *mode,
                        const struct torc_method_options *o, torc_error **error)
{
    struct torc_handler h = {TORC_SIZE(torc_handler), .stream = on_reflection, .arg = (void *)(uintptr_t)mode};
    char *service = tc_asprintf("grpc.reflection.%s.ServerReflection", version);
    char *path = tc_asprintf("/%s/ServerReflectionInfo", service);
    bool added =
        torc_server_add_method(server, path, &h, error) == 0 && torc_server_limit(server, service, o, error) == 0;
    tc_free(path);
    tc_free(service);
    return added;
}

/* Registers the reflection of the mode `name`. Returns false with an error, or with none if there is no such mode. If
 * the mode has a torc_reflection, stores it in *reflection; the caller frees it. */
static bool add_reflection(torc_server *server, const char *name, torc_reflection **reflection,
                           const struct torc_method_options *o, torc_error **error)
{
    static const struct mode alpha = {"alpha", all_files, TORC_STATUS_OK};
    talkative = strcmp(name, "talkative") == 0;
    taciturn = strcmp(name, "taciturn") == 0;
    if (strcmp(name, "none") == 0)
        return true;
    if (strcmp(name, "undescribed") == 0)
        return (*reflection = torc_reflection_new(server, error)) != NULL;
    if (strcmp(name, "good") == 0 || talkative || taciturn) {
        *reflection = torc_reflection_new(server, error);
        return *reflection && torc_reflection_add_set(*reflection, set.data, set.len, error) == 0;
    }
    if (strcmp(name, "alpha") == 0)
        return add_version(server, "v1alpha", &alpha, o, error);
    for (size_t i = 0; i < TC_ARRAY_LEN(modes); i++)
        if (strcmp(modes[i].name, name) == 0)
            return add_version(server, "v1", &modes[i], o, error) &&
                   (!modes[i].status || add_version(server, "v1alpha", &alpha, o, error));
    return false;
}

static bool read_set(const char *path)
{
    FILE *in = fopen(path, "rb");
    size_t n;
    while (in && (n = fread(tc_buf_reserve(&set, 65536), 1, 65536, in)) > 0)
        set.len += n;
    return in && fclose(in) == 0 && set.len;
}

int main(int argc, char **argv)
{
    static const char *const methods[] = {"Get", "Watch", "Load", "Chat", "Fail"};
    struct torc_handler orders = {TORC_SIZE(torc_handler), .stream = on_order};
    torc_error *error = NULL;
    torc_reflection *reflection = NULL;
    sigset_t ends;
    char *bound, path[64];
    int number;
    if (argc != 3 || !read_set(argv[2]))
        return fprintf(stderr, "usage: command_server MODE SET\n"), 2;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    /* The queue has room for the calls of torc bench --rps while a busy machine runs none of the pool's threads. */
    torc_pool *pool = torc_pool_new(16, 4096, &error);
    torc_server *server = torc_server_new(NULL, &error);
    for (size_t i = 0; i < TC_ARRAY_LEN(methods); i++) {
        snprintf(path, sizeof(path), "/shop.Orders/%s", methods[i]);
        torc_server_add_method(server, path, &orders, &error);
    }
    struct torc_method_options o = {TORC_SIZE(torc_method_options), .pool = pool};
    bool added = add_reflection(server, argv[1], &reflection, &o, &error);
    torc_server_limit(server, "shop.Orders", &o, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    if (!added || torc_server_start(server, &error) != 0)
        return fprintf(stderr, "command_server: %s\n", error ? torc_error_text(error) : "no such mode"), 1;
    printf("listening %s\n", bound);
    fflush(stdout);
    sigwait(&ends, &number);
    torc_server_free(server);
    torc_reflection_free(reflection);
    torc_pool_free(pool);
    torc_free(bound);
    tc_buf_fini(&set);
    return 0;
}
