/* torc call: the types of messages, and JSON and text by them.
 *
 * Types come from files, or from the server's reflection: by the method's service first, and then by the type of each
 * Any whose type nobody knows yet. A type that the server does not have is asked for once.
 *
 * Details of errors have types of their own, those of google.rpc, which the command knows without asking. */
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "call/run.h"
#include "cli.h"
#include "error_details.h" /* generated: error_details_set, a FileDescriptorSet */
#include "proto/wire.h"
#include "schema/protoc.h"

#define NAME "call"

enum { MAX_ANY_TYPES = 16, MAX_ANY_DEPTH = 100 };

static int no_method(const struct run *r, const char *service)
{
    const torc_schema_service *s = torc_schema_find_service(r->schema.types, service);
    const torc_schema_method *m;
    struct tc_buf names = {0};
    if (!s)
        return cli_fail(NAME, "'%s' is not a service", service);
    for (size_t i = 0; i < 16 && (m = torc_schema_method_at(s, i)); i++)
        tc_buf_printf(&names, "%s%s", i ? ", " : "", torc_schema_method_name(m));
    cli_fail(NAME, "the service %s has no method %s; it has %s", service, r->args.connect.method + strlen(service) + 1,
             tc_buf_cstr(&names));
    tc_buf_fini(&names);
    return CLI_FAILED;
}

static int look_up(struct run *r, const char *service)
{
    int rc = schema_need(&r->schema, service);
    const char *why = tc_buf_cstr(&r->schema.reflect.why);
    if (rc == SCHEMA_NO_REFLECTION && !call_args_typed(&r->args)) {
        fprintf(stderr, "torc call: the request is sent as bytes (--raw does that without asking): ");
        struct tc_buf shown = {0};
        fprintf(stderr, "%s\n", cli_shown(&shown, why));
        tc_buf_fini(&shown);
        return 0;
    }
    if (rc == SCHEMA_ABSENT && !*why)
        return cli_fail(NAME, "no file has the service '" TC_SHOWN "'", TC_SHOW(service));
    if (rc == SCHEMA_NO_REFLECTION || rc == SCHEMA_ABSENT)
        return cli_fail(NAME, "%s%s", why, call_args_typed(&r->args) ? "" : " (--raw sends the request as bytes)");
    if (rc != 0)
        return rc;
    r->method = torc_schema_find_method(r->schema.types, r->args.connect.method);
    return r->method ? schema_write(&r->schema, &r->args.from) : no_method(r, service);
}

int run_find_method(struct run *r)
{
    const struct call_args *a = &r->args;
    schema_init(&r->schema, NAME);
    if (!call_args_want_types(a))
        return 0;
    uint64_t begin = run_now_ns();
    double cpu = cli_cpu_seconds();
    int rc = schema_load(&r->schema, &a->from);
    if (!schema_args_offline(&a->from) || a->from.reflect) {
        r->reflect_metadata = headers_make(&a->headers.reflect, 0);
        r->schema.reflect.channel = r->channels[0];
        r->schema.reflect.metadata = r->reflect_metadata;
        r->schema.reflect.timeout_ms = a->timeout_ms ? a->timeout_ms : 10000;
        r->schema.reflect.wait_for_ready = a->wait_for_ready;
    }
    char *service = tc_slice_dup(tc_slice_of(a->connect.method, strcspn(a->connect.method, "/")));
    if (rc == 0)
        rc = look_up(r, service);
    tc_free(service);
    reflect_rest(&r->schema.reflect);
    r->schema_us = (run_now_ns() - begin) / 1000;
    r->schema_cpu_seconds = cli_cpu_seconds() - cpu;
    return rc;
}

/* Asks the server for the type of a URL, unless it is known or was asked for. Returns true if it has come. */
static bool fetch_type(struct run *r, const char *url)
{
    const char *slash = strrchr(url, '/'), *name = slash ? slash + 1 : url;
    if (!*name || r->absent.len >= MAX_ANY_TYPES || torc_schema_find_message(r->schema.types, name))
        return false;
    for (size_t i = 0; i < r->absent.len; i++)
        if (strcmp(r->absent.data[i], name) == 0)
            return false;
    if (schema_need(&r->schema, name) == 0 && torc_schema_find_message(r->schema.types, name))
        return true;
    *tc_vec_push(&r->absent) = tc_strdup(name);
    return false;
}

/* Fetches the types of the Any messages in a JSON value. Returns true if one has come. */
static bool fetch_types(struct run *r, const json_t *value, int depth)
{
    const char *key, *url = json_string_value(json_object_get(value, "@type"));
    bool came = url && fetch_type(r, url);
    json_t *item;
    size_t i;
    if (depth == MAX_ANY_DEPTH)
        return came;
    json_object_foreach((json_t *)value, key, item) came |= fetch_types(r, item, depth + 1);
    json_array_foreach(value, i, item) came |= fetch_types(r, item, depth + 1);
    return came;
}

/* Fetches the types that a text names. Returns true if it is to be read or written again. */
static bool fetch_types_of(struct run *r, struct tc_slice text)
{
    char *why = NULL;
    if (!r->schema.reflect.channel || tc_slice_find(text, tc_slice_str("\"@type\"")) < 0)
        return false;
    json_t *value = tc_json_parse(text, &why);
    bool came = value && fetch_types(r, value, 0);
    reflect_rest(&r->schema.reflect);
    json_decref(value);
    tc_free(why);
    return came;
}

/* Returns JSON of a message; NULL with an error. */
static char *json_of(struct run *r, const torc_schema_message *type, const torc_message *message, torc_error **error)
{
    struct torc_json_options o = {TORC_SIZE(torc_json_options), .emit_defaults = r->args.emit_defaults,
                                  .unknown_any = TORC_ON, .indent = r->args.json ? 0 : 2};
    char *text = NULL;
    size_t size;
    for (int i = 0; i <= MAX_ANY_TYPES; i++) {
        torc_free(text);
        text = NULL;
        if (torc_json_from_bytes(r->schema.types, type, torc_message_data(message), torc_message_size(message), &o,
                                 &text, &size, error) != 0)
            return NULL;
        if (tc_slice_find(tc_slice_of(text, size), tc_slice_str("\"@value\"")) < 0 ||
            !fetch_types_of(r, tc_slice_of(text, size)))
            break;
    }
    return text;
}

/* Returns the descriptors that protoc is to read. */
static struct tc_slice set_of(struct run *r)
{
    tc_buf_clear(&r->set);
    schema_append_set(&r->schema, &r->set);
    return tc_buf_slice(&r->set);
}

char *run_show(struct run *r, const torc_schema_message *type, const torc_message *message, struct tc_buf *why)
{
    torc_error *error = NULL;
    struct tc_buf text = {0};
    if (r->args.text) {
        struct tc_slice bytes = tc_slice_of(torc_message_data(message), torc_message_size(message));
        int rc = protoc_decode(&r->schema.files, set_of(r), torc_schema_message_name(type), bytes, &text, why);
        while (text.len && text.data[text.len - 1] == '\n')
            text.len--;
        tc_buf_cstr(&text);
        if (rc == 0)
            return tc_buf_take(&text);
        tc_buf_fini(&text);
        return NULL;
    }
    char *json = json_of(r, type, message, &error);
    if (!json)
        tc_buf_append_str(why, torc_error_text(error));
    torc_error_free(error);
    return json;
}

static int read_json(struct run *r, struct tc_slice text, struct tc_buf *out, struct tc_buf *why)
{
    struct torc_json_options o = {TORC_SIZE(torc_json_options), .allow_unknown = r->args.allow_unknown,
                                  .unknown_any = TORC_ON};
    torc_error *error = NULL;
    void *bytes;
    size_t size;
    fetch_types_of(r, text);
    int rc = torc_json_to_bytes(r->schema.types, torc_schema_method_request(r->method), text.data, text.len, &o, &bytes,
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

int run_read_request(struct run *r, struct tc_slice text, struct tc_buf *out)
{
    const char *type = torc_schema_message_name(torc_schema_method_request(r->method));
    struct tc_buf why = {0};
    int rc = r->args.text ? protoc_encode(&r->schema.files, set_of(r), type, text, out, &why)
                          : read_json(r, text, out, &why);
    if (rc != 0)
        rc = cli_fail(NAME, "the request, a %s: %s", type, tc_buf_cstr(&why));
    tc_buf_fini(&why);
    return rc;
}

/* Makes the schema of google.rpc's details. */
static void load_details(struct run *r)
{
    torc_error *error = NULL;
    if (r->details.types)
        return;
    schema_init(&r->details, NAME);
    torc_schema_add_set(r->details.types, error_details_set, sizeof(error_details_set), &error);
    torc_schema_link(r->details.types, &error);
    if (error)
        cli_fail_error(NAME, error);
}

/* Appends a detail by the schema that has its type: {"@type": URL, and the fields}, or as an Any whose type nobody has,
 * {"@type": URL, "@value": base64}. */
static void append_detail(struct run *r, const char *url, const void *bytes, size_t size, struct tc_buf *out)
{
    struct torc_json_options o = {TORC_SIZE(torc_json_options), .unknown_any = TORC_ON};
    const torc_schema_message *own = torc_schema_find_message(r->details.types, url) || !r->method
                                         ? NULL
                                         : torc_schema_find_message(r->schema.types, url);
    struct tc_buf any = {0};
    char *text = NULL;
    if (own && torc_json_from_bytes(r->schema.types, own, bytes, size, &o, &text, NULL, NULL) == 0) {
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
    if (torc_json_from_bytes(r->details.types, torc_schema_find_message(r->details.types, "google.protobuf.Any"),
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

char *run_details(struct run *r, const torc_result *result)
{
    struct tc_buf out = {0};
    const char *url;
    const void *bytes;
    size_t size;
    for (size_t i = 0; torc_result_detail(result, i, &url, &bytes, &size) == 0; i++) {
        load_details(r);
        if (r->schema.reflect.channel && r->method && !torc_schema_find_message(r->details.types, url))
            fetch_type(r, url);
        tc_buf_append_char(&out, i ? ',' : '[');
        append_detail(r, url, bytes, size, &out);
    }
    reflect_rest(&r->schema.reflect);
    if (out.len)
        tc_buf_append_char(&out, ']');
    return out.len ? tc_buf_take(&out) : NULL;
}

void run_types_fini(struct run *r)
{
    schema_fini(&r->schema);
    schema_fini(&r->details);
    torc_metadata_free(r->reflect_metadata);
    for (size_t i = 0; i < r->absent.len; i++)
        tc_free(r->absent.data[i]);
    tc_vec_fini(&r->absent);
    tc_buf_fini(&r->set);
}
