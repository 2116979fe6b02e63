/* The types of messages, and the conversion of messages to and from JSON and text.
 *
 * Types come from files, or from the server's reflection: first those of the method's service, later the type of each
 * Any that is not known yet. A type that the server does not have is asked for once. t->schema owns all of them until
 * request_types_fini.
 *
 * One thread runs everything here. Functions that may ask the server block until it answers, and must not be called in
 * a callback. torc bench sets t->schema.reflect.channel to NULL before its load, and may then convert in callbacks.
 *
 * The types of google.rpc, which are the usual details of errors, are part of the command. t->details has them, apart
 * from t->schema, so that a server's files cannot conflict with them. */
#include <stdio.h>

#include "api/call_object.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli.h"
#include "error_details.h" /* generated: error_details_set, a FileDescriptorSet */
#include "proto/wire.h"
#include "request/request.h"
#include "schema/protoc.h"

/* MAX_ANY_TYPES: when the server lacks so many types, no more are asked for. It also limits how often json_of converts
 * a message again. MAX_TYPE_URL: bytes. */
enum { MAX_ANY_TYPES = 16, MAX_TYPE_URL = 4096 };

/* Appends the names of a service's first 16 methods. */
static void append_methods(const torc_schema_service *s, struct tc_buf *out)
{
    const torc_schema_method *m;
    for (size_t i = 0; i < 16 && (m = torc_schema_method_at(s, i)); i++)
        tc_buf_printf(out, "%s%s", i ? ", " : "", torc_schema_method_name(m));
}

/* Prints that the service does not have the method of t->path, and the first methods that it has; or that `service` is
 * the name of something else. Returns CLI_FAILED. */
static int no_method(const struct request_types *t, const char *service)
{
    const torc_schema_service *s = torc_schema_find_service(t->schema.types, service);
    struct tc_buf names = {0};
    if (!s)
        return cli_fail(t->command, "'%s' is not a service", service);
    append_methods(s, &names);
    cli_fail(t->command, "the service %s has no method %s; it has %s", service, t->path + strlen(service) + 1,
             tc_buf_cstr(&names));
    tc_buf_fini(&names);
    return CLI_FAILED;
}

/* Prints why the method's service was not found. METHOD may name only a service: of "shop.Orders", `service` is "shop",
 * and Orders was taken for the method. Returns CLI_FAILED. */
static int no_service(struct request_types *t, const char *service)
{
    char *whole = tc_asprintf("%s.%s", service, t->path + strlen(service) + 1);
    const char *hint = request_typed(t->args) ? "" : " (--raw sends the request as bytes)";
    const torc_schema_service *s = NULL;
    struct tc_buf why = t->schema.reflect.why; /* says why `service` was not found */
    t->schema.reflect.why = (struct tc_buf){0};
    int rc = schema_need(&t->schema, whole);
    tc_buf_fini(&t->schema.reflect.why);
    t->schema.reflect.why = why;
    if (rc == 0 && (s = torc_schema_find_service(t->schema.types, whole))) {
        struct tc_buf names = {0};
        append_methods(s, &names);
        cli_fail(t->command, TC_SHOWN " is a service: METHOD is " TC_SHOWN "/ and one of %s", TC_SHOW(whole),
                 TC_SHOW(whole), tc_buf_cstr(&names));
        tc_buf_fini(&names);
    } else if (rc != CLI_FAILED) { /* the error of CLI_FAILED is printed already */
        schema_no_service(&t->schema, service, hint);
    }
    tc_free(whole);
    return CLI_FAILED;
}

/* Looks for the service, sets t->method and does schema_write. If the server has no reflection and no option needs
 * types, prints a note on standard error that the request is sent as bytes, and returns 0. */
static int look_up(struct request_types *t, const char *service)
{
    int rc = schema_need(&t->schema, service);
    if (rc == SCHEMA_NO_REFLECTION && !request_typed(t->args)) {
        fprintf(stderr, "torc %s: the request is sent as bytes (--raw does that without asking): ", t->command);
        struct tc_buf shown = {0};
        fprintf(stderr, "%s\n", cli_shown(&shown, tc_buf_cstr(&t->schema.reflect.why)));
        tc_buf_fini(&shown);
        return 0;
    }
    if (rc == SCHEMA_NO_REFLECTION)
        return cli_fail(t->command, "%s", tc_buf_cstr(&t->schema.reflect.why));
    if (rc != 0)
        return rc == SCHEMA_ABSENT ? no_service(t, service) : rc;
    t->method = torc_schema_find_method(t->schema.types, t->path);
    return t->method ? schema_write(&t->schema, &t->args->from) : no_method(t, service);
}

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(NULL);
}

int request_find_method(struct request_types *t, torc_channel *channel)
{
    const struct request_args *a = t->args;
    schema_init(&t->schema, t->command);
    if (!request_want_types(a))
        return 0;
    uint64_t begin = now_ns();
    double cpu = cli_cpu_seconds();
    struct tc_rng rng;
    tc_rng_init_system(&rng);
    int rc = schema_load(&t->schema, &a->from);
    if (!schema_args_offline(&a->from) || a->from.reflect) {
        t->metadata = headers_make(&a->headers.reflect, 0, &rng);
        t->schema.reflect.channel = channel;
        t->schema.reflect.metadata = t->metadata;
        t->schema.reflect.timeout_ms = t->timeout_ms ? t->timeout_ms : 10000;
        t->schema.reflect.wait_for_ready = t->wait_for_ready;
    }
    char *service = tc_slice_dup(tc_slice_of(t->path, strcspn(t->path, "/")));
    if (rc == 0)
        rc = look_up(t, service);
    tc_free(service);
    reflect_rest(&t->schema.reflect);
    t->us = (now_ns() - begin) / 1000;
    t->cpu_seconds = cli_cpu_seconds() - cpu;
    return rc;
}

/* Looks for the type of a URL, unless the type is known or was looked for before, or MAX_ANY_TYPES are absent. Returns
 * true if the type was found now. */
static bool fetch_type(struct request_types *t, const char *url)
{
    const char *slash = strrchr(url, '/'), *name = slash ? slash + 1 : url;
    if (!*name || t->absent.len >= MAX_ANY_TYPES || torc_schema_find_message(t->schema.types, name))
        return false;
    for (size_t i = 0; i < t->absent.len; i++)
        if (strcmp(t->absent.data[i], name) == 0)
            return false;
    if (schema_need(&t->schema, name) == 0 && torc_schema_find_message(t->schema.types, name))
        return true;
    *tc_vec_push(&t->absent) = tc_strdup(name);
    return false;
}

/* Cuts blanks, and the character `c` after them, off the front of a text. Returns false if `c` is not there. */
static bool take_char(struct tc_slice *text, char c)
{
    size_t n = 0;
    while (n < text->len && strchr(" \t\r\n", text->data[n]) && text->data[n])
        n++;
    bool found = n < text->len && text->data[n] == c;
    *text = tc_slice_of(text->data + n + found, text->len - n - found);
    return found;
}

/* Fetches the types that a JSON text names: each string after a key "@type". Without reflection fetches nothing. A
 * quote inside a string has a backslash, so that the search finds whole strings only. Returns true if a new type was
 * found. */
static bool fetch_types_of(struct request_types *t, struct tc_slice text)
{
    const struct tc_slice key = tc_slice_str("\"@type\"");
    bool came = false;
    ptrdiff_t at;
    while (t->schema.reflect.channel && (at = tc_slice_find(text, key)) >= 0) {
        text = tc_slice_of(text.data + at + key.len, text.len - (size_t)at - key.len);
        if (!take_char(&text, ':') || !take_char(&text, '"'))
            continue;
        ptrdiff_t end = tc_slice_find(text, tc_slice_str("\""));
        if (end < 0 || end > MAX_TYPE_URL)
            continue;
        char *url = tc_slice_dup(tc_slice_of(text.data, (size_t)end));
        came |= fetch_type(t, url);
        tc_free(url);
    }
    reflect_rest(&t->schema.reflect);
    return came;
}

/* Returns JSON of a message, for torc_free; NULL with an error. While the JSON has an Any of unknown type ("@value"),
 * fetches types, and converts again if a new type came. */
static char *json_of(struct request_types *t, const torc_schema_message *type, const torc_message *message,
                     torc_error **error)
{
    struct torc_json_options o = {TORC_SIZE(torc_json_options), .emit_defaults = t->args->emit_defaults,
                                  .unknown_any = TORC_ON, .indent = t->one_line ? 0 : 2};
    char *text = NULL;
    size_t size;
    for (int i = 0; i <= MAX_ANY_TYPES; i++) {
        torc_free(text);
        text = NULL;
        if (torc_json_from_bytes(t->schema.types, type, torc_message_data(message), torc_message_size(message), &o,
                                 &text, &size, error) != 0)
            return NULL;
        if (tc_slice_find(tc_slice_of(text, size), tc_slice_str("\"@value\"")) < 0 ||
            !fetch_types_of(t, tc_slice_of(text, size)))
            break;
    }
    return text;
}

/* Returns the descriptors that protoc is to read. They are in t->set, until the next call. */
static struct tc_slice set_of(struct request_types *t)
{
    tc_buf_clear(&t->set);
    schema_append_set(&t->schema, &t->set);
    return tc_buf_slice(&t->set);
}

char *request_show(struct request_types *t, const torc_schema_message *type, const torc_message *message,
                   struct tc_buf *why)
{
    torc_error *error = NULL;
    struct tc_buf text = {0};
    if (t->args->text) {
        struct tc_slice bytes = tc_slice_of(torc_message_data(message), torc_message_size(message));
        int rc = protoc_decode(&t->schema.files, set_of(t), torc_schema_message_name(type), bytes, &text, why);
        while (text.len && text.data[text.len - 1] == '\n')
            text.len--;
        tc_buf_cstr(&text);
        if (rc == 0)
            return tc_buf_take(&text);
        tc_buf_fini(&text);
        return NULL;
    }
    char *json = json_of(t, type, message, &error);
    if (!json)
        tc_buf_append_str(why, torc_error_text(error));
    torc_error_free(error);
    return json;
}

/* Converts JSON, and appends the bytes to *out. Returns 0, or a TORC_ code with the reason appended to *why. */
static int read_json(struct request_types *t, struct tc_slice text, struct tc_buf *out, struct tc_buf *why)
{
    struct torc_json_options o = {TORC_SIZE(torc_json_options), .allow_unknown = t->args->allow_unknown,
                                  .unknown_any = TORC_ON};
    torc_error *error = NULL;
    void *bytes;
    size_t size;
    fetch_types_of(t, text);
    int rc = torc_json_to_bytes(t->schema.types, torc_schema_method_request(t->method), text.data, text.len, &o, &bytes,
                                &size, &error);
    if (rc == 0) {
        tc_buf_append(out, bytes, size);
        torc_free(bytes);
    } else {
        tc_buf_append_str(why, torc_error_text(error));
    }
    torc_error_free(error);
    return rc;
}

/* Converts JSON or --format text, and appends the bytes to *out. Returns 0, or a negative number with the reason
 * appended to *why. */
static int read_value(struct request_types *t, struct tc_slice text, struct tc_buf *out, struct tc_buf *why)
{
    const char *type = torc_schema_message_name(torc_schema_method_request(t->method));
    return t->args->text ? protoc_encode(&t->schema.files, set_of(t), type, text, out, why)
                         : read_json(t, text, out, why);
}

/* Reads again a text that could not be read, with line ends and blanks in front that stand for the input before it. So
 * the error in *why names the place in the whole input. */
static int read_in_place(struct request_types *t, struct tc_slice text, struct request_place at, struct tc_buf *out,
                         struct tc_buf *why)
{
    struct tc_buf whole = {0};
    memset(tc_buf_reserve(&whole, at.lines + at.characters), ' ', at.lines + at.characters);
    memset(whole.data, '\n', at.lines);
    whole.len = at.lines + at.characters;
    tc_buf_append_slice(&whole, text);
    tc_buf_clear(why);
    int rc = read_value(t, tc_buf_slice(&whole), out, why);
    tc_buf_fini(&whole);
    return rc;
}

int request_read(struct request_types *t, struct tc_slice text, struct request_place at, struct tc_buf *out)
{
    const char *type = torc_schema_message_name(torc_schema_method_request(t->method)), *source = t->args->source;
    struct tc_buf why = {0};
    int rc = read_value(t, text, out, &why);
    if (rc != 0 && at.lines + at.characters)
        rc = read_in_place(t, text, at, out, &why);
    if (rc != 0)
        rc = cli_fail(t->command, "%s%sthe request, a %s: %s", source ? source : "", source ? ": " : "", type,
                      tc_buf_cstr(&why));
    tc_buf_fini(&why);
    return rc;
}

/* Makes t->details, unless it is made. */
static void load_details(struct request_types *t)
{
    torc_error *error = NULL;
    if (t->details.types)
        return;
    schema_init(&t->details, t->command);
    torc_schema_add_set(t->details.types, error_details_set, sizeof(error_details_set), &error);
    torc_schema_link(t->details.types, &error);
    if (error)
        cli_fail_error(t->command, error);
}

/* Appends a detail as the JSON of an Any: {"@type": URL, and the fields}. Its type is looked for in t->details, then in
 * t->schema. {"@type": URL, "@value": base64} if neither has the type, or if the bytes do not fit a type of t->schema.
 * {"@type": URL, "@error": text} if the bytes do not fit a type of t->details. */
static void append_detail(struct request_types *t, const char *url, const void *bytes, size_t size, struct tc_buf *out)
{
    struct torc_json_options o = {TORC_SIZE(torc_json_options), .unknown_any = TORC_ON};
    const torc_schema_message *own = torc_schema_find_message(t->details.types, url) || !t->method
                                         ? NULL
                                         : torc_schema_find_message(t->schema.types, url);
    struct tc_buf any = {0};
    char *text = NULL;
    if (own && torc_json_from_bytes(t->schema.types, own, bytes, size, &o, &text, NULL, NULL) == 0) {
        tc_buf_append_str(out, "{\"@type\":");
        cli_json_string(out, url, strlen(url));
        if (text[0] == '{')
            tc_buf_printf(out, "%s%s", strcmp(text, "{}") == 0 ? "" : ",", text + 1);
        else
            tc_buf_printf(out, ",\"value\":%s}", text);
        torc_free(text);
        return;
    }
    tc_wire_append(&any, 1, tc_slice_str(url));
    tc_wire_append(&any, 2, tc_slice_of(bytes, size));
    torc_error *error = NULL;
    if (torc_json_from_bytes(t->details.types, torc_schema_find_message(t->details.types, "google.protobuf.Any"),
                             any.data, any.len, &o, &text, NULL, &error) == 0) {
        tc_buf_append_str(out, text);
    } else {
        tc_buf_append_str(out, "{\"@type\":");
        cli_json_string(out, url, strlen(url));
        tc_buf_append_str(out, ",\"@error\":");
        cli_json_string(out, torc_error_text(error), strlen(torc_error_text(error)));
        tc_buf_append_char(out, '}');
    }
    torc_free(text);
    torc_error_free(error);
    tc_buf_fini(&any);
}

char *request_details(struct request_types *t, const torc_result *result)
{
    struct tc_buf out = {0};
    const char *url;
    const void *bytes;
    size_t size;
    for (size_t i = 0; torc_result_detail(result, i, &url, &bytes, &size) == 0; i++) {
        load_details(t);
        if (t->schema.reflect.channel && t->method && !torc_schema_find_message(t->details.types, url))
            fetch_type(t, url);
        tc_buf_append_char(&out, i ? ',' : '[');
        append_detail(t, url, bytes, size, &out);
    }
    reflect_rest(&t->schema.reflect);
    if (out.len)
        tc_buf_append_char(&out, ']');
    return out.len ? tc_buf_take(&out) : NULL;
}

bool request_take_response(const struct request_types *t, torc_stream *stream, uint64_t n)
{
    bool fits = n == 1 || (t->method && torc_schema_method_server_streams(t->method));
    if (!fits)
        tc_call_fail(&stream->core,
                     tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2,
                                    "the server sent more than one response to %s, which has one", t->path));
    return fits;
}

void request_types_fini(struct request_types *t)
{
    schema_fini(&t->schema);
    schema_fini(&t->details);
    torc_metadata_free(t->metadata);
    for (size_t i = 0; i < t->absent.len; i++)
        tc_free(t->absent.data[i]);
    tc_vec_fini(&t->absent);
    tc_buf_fini(&t->set);
}
