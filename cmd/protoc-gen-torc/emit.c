/* Generated code: the declarations of NAME.torc.h and the definitions of NAME.torc.c.
 *
 * The functions of a method come from a table, `functions`. A row is one function: its side, client or server; the
 * kinds of methods that have it; its comment, declaration and body. The declaration and the body have placeholders:
 *
 *     $X  the method, "helloworld__greeter__say_hello"      $F  its member in the struct of handlers, "say_hello"
 *     $S  the service, "helloworld__greeter"
 *     $Q  the type of requests      $R  the type of responses
 *     $M  the method's entry in the table of methods
 *
 * Each function's name ends with a word of its own, since protobuf-c defines $X itself. The work is done by the library
 * (torc/protobuf_c.h), so that generated code stays small and a fix needs no new generation. Generated code compiles as
 * C++ too, so it has the casts that C++ needs.
 *
 * pgt_emit first adds all methods to the emitter's `methods`, which keeps the order of the file, so the methods of one
 * service are neighbours. It writes their functions only if all methods were accepted. Names lie in the emitter's arena
 * until pgt_emit returns. Read pgt_emit, method_emit and handlers_emit first. */
#include "emit.h"

#include "base/mem.h"
#include "base/table.h"
#include "comments.h"
#include "names.h"

enum { UNARY = 1, CLIENT = 2, SERVER = 4, BIDI = 8 };

struct method {
    UT_hash_handle hh;        /* by `name` */
    unsigned kind;            /* UNARY, CLIENT, SERVER or BIDI */
    size_t index;             /* in the table of methods */
    char *path, *name;        /* "/pkg.Svc/Method", $X */
    char *service, *member;   /* $S, $F */
    char *request, *response; /* $Q, $R */
    char *request_lower, *response_lower;
};

struct emitter {
    const struct pgt_schema *schema;
    const struct pgt_options *options;
    const pgt_file *file;
    struct tc_buf *header, *source;
    struct tc_arena arena;
    struct method *methods;    /* of all services, in the order of the file */
    struct pgt_name *services; /* their names in C */
    struct pgt_name *members;  /* of the handlers of the service that is added */
    struct tc_buf table;       /* the name of the table of methods */
    char **why;                /* the reason of a refusal, for the caller */
};

struct function {
    unsigned side;  /* PGT_CLIENT or PGT_SERVER */
    unsigned kinds; /* bits of the kinds of methods that have it */
    const char *about;
    const char *declaration;
    const char *body;
};

static const struct function functions[] = {
    {PGT_CLIENT, UNARY, "Calls and waits for the outcome, which is never NULL; torc_result_free frees it.",
     "torc_result *$X__call(torc_channel *channel, const $Q *request, const struct torc_call_options *options)",
     "    return torc_protobuf_c_call(channel, $M, (const ProtobufCMessage *)request, options);\n"},
    {PGT_CLIENT, UNARY,
     "Calls; fn gets the outcome. Returns 0, or a negative number with an error, and fn is not called then.",
     "int $X__async(torc_channel *channel, const $Q *request, const struct torc_call_options *options,\n"
     "    torc_result_fn fn, void *arg, torc_stream **handle, torc_error **error)",
     "    return torc_protobuf_c_async(channel, $M, (const ProtobufCMessage *)request, options, fn, arg, handle, "
     "error);\n"},
    {PGT_CLIENT, UNARY | CLIENT, "The response, which lives as long as the outcome; NULL: torc_result_error says why.",
     "const $R *$X__response(const torc_result *result)",
     "    return (const $R *)torc_protobuf_c_response(result, $M);\n"},
    {PGT_CLIENT, SERVER, "Begins the RPC for a thread that waits. NULL with an error when it cannot begin.",
     "torc_stream *$X__open(torc_channel *channel, const $Q *request, const struct torc_call_options *options,\n"
     "    torc_error **error)",
     "    return torc_protobuf_c_open(channel, $M, (const ProtobufCMessage *)request, options, error);\n"},
    {PGT_CLIENT, SERVER, "Begins the RPC with callbacks. NULL with an error when it cannot begin.",
     "torc_stream *$X__start(torc_channel *channel, const $Q *request, const struct torc_call_options *options,\n"
     "    const struct torc_stream_events *events, void *arg, torc_error **error)",
     "    return torc_protobuf_c_start(channel, $M, (const ProtobufCMessage *)request, options, events, arg, "
     "error);\n"},
    {PGT_CLIENT, CLIENT | BIDI, "Begins the RPC for a thread that waits. NULL with an error when it cannot begin.",
     "torc_stream *$X__open(torc_channel *channel, const struct torc_call_options *options, torc_error **error)",
     "    return torc_protobuf_c_open(channel, $M, NULL, options, error);\n"},
    {PGT_CLIENT, CLIENT | BIDI, "Begins the RPC with callbacks. NULL with an error when it cannot begin.",
     "torc_stream *$X__start(torc_channel *channel, const struct torc_call_options *options,\n"
     "    const struct torc_stream_events *events, void *arg, torc_error **error)",
     "    return torc_protobuf_c_start(channel, $M, NULL, options, events, arg, error);\n"},
    {PGT_CLIENT, CLIENT | BIDI, "Sends a message; flags and the outcome are those of torc_stream_send.",
     "int $X__send(torc_stream *stream, const $Q *request, unsigned flags, int64_t timeout_ms)",
     "    return torc_protobuf_c_send(stream, $M, (const ProtobufCMessage *)request, flags, timeout_ms);\n"},
    {PGT_CLIENT, SERVER | BIDI,
     "The next message: 1 with *response, which lives until the next; else as torc_stream_receive.",
     "int $X__receive(torc_stream *stream, int64_t timeout_ms, const $R **response)",
     "    const ProtobufCMessage *message = NULL;\n"
     "    int rv = torc_protobuf_c_receive(stream, $M, timeout_ms, &message);\n"
     "    if (rv == 1)\n"
     "        *response = (const $R *)message;\n"
     "    return rv;\n"},
    {PGT_CLIENT, CLIENT | SERVER | BIDI,
     "In on_message of torc_stream_events: the message that came; NULL: it is malformed.",
     "const $R *$X__message(torc_stream *stream, const torc_message *message)",
     "    return (const $R *)torc_protobuf_c_message(stream, $M, message);\n"},
    {PGT_SERVER, CLIENT | BIDI,
     "The next request: 1 with *request, which lives until the next; else as torc_protobuf_c_next.",
     "int $X__next(torc_server_call *call, int64_t timeout_ms, const $Q **request)",
     "    const ProtobufCMessage *message = NULL;\n"
     "    int rv = torc_protobuf_c_next(call, $M, timeout_ms, &message);\n"
     "    if (rv == 1)\n"
     "        *request = (const $Q *)message;\n"
     "    return rv;\n"},
    {PGT_SERVER, CLIENT | BIDI,
     "In on_message of torc_server_call_events: the request that came; NULL: it is malformed.",
     "const $Q *$X__request(torc_server_call *call, const torc_message *message)",
     "    return (const $Q *)torc_protobuf_c_request(call, $M, message);\n"},
    {PGT_SERVER, UNARY | CLIENT, "Answers, and ends the call, as torc_server_call_reply.",
     "int $X__reply(torc_server_call *call, const $R *response)",
     "    return torc_protobuf_c_reply(call, $M, (const ProtobufCMessage *)response);\n"},
    {PGT_SERVER, SERVER | BIDI, "Sends a response, as torc_server_call_send; torc_server_call_finish ends the call.",
     "int $X__reply(torc_server_call *call, const $R *response, unsigned flags, int64_t timeout_ms)",
     "    return torc_protobuf_c_respond(call, $M, (const ProtobufCMessage *)response, flags, timeout_ms);\n"},
};

/* Functions by which the library calls a method's handler with the types of its messages. The member is in parentheses
 * because it may have the name of a function-like macro ("assert"). */
static const struct {
    unsigned kinds;
    const char *code;
} callers[] = {
    {UNARY | SERVER, "\nstatic void $X__caller(torc_server_call *call, const ProtobufCMessage *request, const void "
                     "*handlers, void *arg)\n"
                     "{\n    (((const struct $S__handlers *)handlers)->$F)(call, (const $Q *)request, arg);\n}\n"},
    {CLIENT | BIDI, "\nstatic void $X__caller(torc_server_call *call, const void *handlers, void *arg)\n"
                    "{\n    (((const struct $S__handlers *)handlers)->$F)(call, arg);\n}\n"},
};

/* Appends a text with its placeholders filled in. */
static void expand(const struct emitter *e, const struct method *m, struct tc_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text != '$') {
            tc_buf_append_char(out, *text);
            continue;
        }
        switch (*++text) {
        case 'X':
            tc_buf_append_str(out, m->name);
            break;
        case 'S':
            tc_buf_append_str(out, m->service);
            break;
        case 'F':
            tc_buf_append_str(out, m->member);
            break;
        case 'Q':
            tc_buf_append_str(out, m->request);
            break;
        case 'R':
            tc_buf_append_str(out, m->response);
            break;
        default:
            tc_buf_printf(out, "&%.*s[%zu]", (int)e->table.len, e->table.data, m->index);
        }
    }
}

/* Ends the comment that the caller has begun in the header. Before the end it adds the comment of the element at
 * `path`, if the element has one. */
static void comment_emit(struct emitter *e, const int32_t *path, size_t n)
{
    const char *text = pgt_comment_of(e->file, path, n);
    if (text)
        tc_buf_append_str(e->header, " *\n");
    if (text)
        pgt_comment_write(e->header, text);
    tc_buf_append_str(e->header, " */\n");
}

static const char *const kind_names[] = {[UNARY] = "unary",
                                         [CLIENT] = "client streaming",
                                         [SERVER] = "server streaming",
                                         [BIDI] = "bidirectional streaming"};

static void method_emit(struct emitter *e, const struct method *m, int32_t service, int32_t index)
{
    tc_buf_printf(e->header, "\n/* %s, %s.\n", m->path, kind_names[m->kind]);
    comment_emit(e, (const int32_t[]){6, service, 2, index}, 4);
    for (size_t i = 0; i < TC_ARRAY_LEN(functions); i++) {
        const struct function *f = &functions[i];
        if (!(f->kinds & m->kind) || !(f->side & e->options->sides))
            continue;
        tc_buf_printf(e->header, "/* %s */\n", f->about);
        expand(e, m, e->header, f->declaration);
        tc_buf_append_str(e->header, ";\n");
        tc_buf_append_char(e->source, '\n');
        expand(e, m, e->source, f->declaration);
        tc_buf_append_str(e->source, "\n{\n");
        expand(e, m, e->source, f->body);
        tc_buf_append_str(e->source, "}\n");
    }
}

/* Copies the text into the arena, frees the buffer and returns the copy. */
static char *arena_take(struct emitter *e, struct tc_buf *text)
{
    char *copy = tc_arena_dup(&e->arena, tc_buf_slice(text));
    tc_buf_fini(text);
    return copy;
}

/* Returns protobuf-c's name of the service ($S) or, with `method`, of the method ($X). A prefix in the options replaces
 * the package. */
static char *c_name(struct emitter *e, const pgt_service *service, const char *method)
{
    struct tc_buf full = {0}, name = {0};
    bool prefixed = e->options->prefix.data != NULL;
    const char *package = e->file->package && !prefixed ? e->file->package : "";
    tc_buf_printf(&full, "%s%s%s%s%s", package, *package ? "." : "", service->name, method ? "." : "",
                  method ? method : "");
    if (prefixed) {
        tc_buf_append_slice(&name, e->options->prefix);
        tc_buf_append_str(&name, "__");
        pgt_lower(&name, tc_buf_slice(&full));
    } else {
        pgt_schema_lower(e->file, tc_buf_cstr(&full), &name);
    }
    tc_buf_fini(&full);
    return arena_take(e, &name);
}

/* Returns the method's member of the struct of handlers. Appends '_' while another method of the service has the name:
 * "Delete" and "Delete_" become "delete_" and "delete__". */
static char *member_name(struct emitter *e, const char *method)
{
    struct tc_buf name = {0};
    pgt_member(&name, tc_slice_str(method));
    while (pgt_name_take(&e->members, &e->arena, tc_buf_cstr(&name), ""))
        tc_buf_append_char(&name, '_');
    return arena_take(e, &name);
}

/* Gets protobuf-c's names of a message type (".pkg.Name", may be NULL), in the arena: *camel of its struct, *lower of
 * its functions. Returns false with the reason if the request does not have the type. */
static bool type_names(struct emitter *e, const struct method *m, const char *type, char **camel, char **lower)
{
    const pgt_file *home = pgt_schema_home(e->schema, type);
    struct tc_buf camel_text = {0}, lower_text = {0};
    if (!home)
        return tc_refuse(e->why, "%s: %s names the type '" TC_SHOWN "', which is not in the request", e->file->name,
                         m->path, TC_SHOW(type ? type : ""));
    pgt_schema_camel(home, type, &camel_text);
    pgt_schema_lower(home, type, &lower_text);
    *camel = arena_take(e, &camel_text);
    *lower = arena_take(e, &lower_text);
    return true;
}

static bool method_add(struct emitter *e, const pgt_service *service, const pgt_method *proto)
{
    const char *package = e->file->package ? e->file->package : "";
    if (!proto->name || !pgt_is_identifier(tc_slice_str(proto->name)))
        return tc_refuse(e->why, "%s: '" TC_SHOWN "' is not a method's name", e->file->name,
                         TC_SHOW(proto->name ? proto->name : ""));
    struct method *m = tc_arena_calloc(&e->arena, 1, sizeof(*m)), *other;
    struct tc_buf path = {0};
    tc_buf_printf(&path, "/%s%s%s/%s", package, *package ? "." : "", service->name, proto->name);
    m->path = arena_take(e, &path);
    m->index = HASH_COUNT(e->methods);
    m->kind = proto->client_streaming   ? proto->server_streaming ? BIDI : CLIENT
              : proto->server_streaming ? SERVER
                                        : UNARY;
    m->name = c_name(e, service, proto->name);
    m->service = c_name(e, service, NULL);
    m->member = member_name(e, proto->name);
    HASH_FIND(hh, e->methods, m->name, strlen(m->name), other);
    if (other)
        return tc_refuse(e->why, "%s: the methods %s and %s are one name in C, %s", e->file->name, other->path, m->path,
                         m->name);
    HASH_ADD_KEYPTR(hh, e->methods, m->name, strlen(m->name), m);
    return type_names(e, m, proto->input_type, &m->request, &m->request_lower) &&
           type_names(e, m, proto->output_type, &m->response, &m->response_lower);
}

static bool service_check_name(struct emitter *e, const pgt_service *service)
{
    const char *name = c_name(e, service, NULL);
    const char *other = pgt_name_take(&e->services, &e->arena, name, service->name);
    return !other || tc_refuse(e->why, "%s: the services %s and %s are one name in C, %s", e->file->name, other,
                               service->name, name);
}

/* Checks and adds all services and methods of the file, before their functions are written: the table of methods comes
 * first. */
static bool services_add(struct emitter *e)
{
    for (size_t i = 0; i < e->file->n_service; i++) {
        const pgt_service *service = e->file->service[i];
        if (!service->name || !pgt_is_identifier(tc_slice_str(service->name)))
            return tc_refuse(e->why, "%s: '" TC_SHOWN "' is not a service's name", e->file->name,
                             TC_SHOW(service->name ? service->name : ""));
        for (size_t k = 0; k < service->n_method; k++)
            if (!method_add(e, service, service->method[k]))
                return false;
        pgt_names_clear(&e->members);
        if (!service_check_name(e, service))
            return false;
    }
    return true;
}

static void table_emit(struct emitter *e)
{
    if (!e->methods)
        return;
    tc_buf_printf(e->source, "\nstatic const struct torc_protobuf_c_method %.*s[] = {\n", (int)e->table.len,
                  e->table.data);
    for (const struct method *m = e->methods; m; m = m->hh.next) {
        tc_buf_printf(e->source, "    {sizeof(struct torc_protobuf_c_method), torc_stub_v1, \"%s\",\n", m->path);
        tc_buf_printf(e->source, "     &%s__descriptor,\n     &%s__descriptor, %d, %d},\n", m->request_lower,
                      m->response_lower, (m->kind & (CLIENT | BIDI)) != 0, (m->kind & (SERVER | BIDI)) != 0);
    }
    tc_buf_append_str(e->source, "};\n");
}

/* Writes the struct of handlers, their callers, the table of both, and the function that registers the handlers. `m`:
 * the service's first method. */
static void handlers_emit(struct emitter *e, const pgt_service *service, const struct method *m)
{
    const struct method *first = m;
    tc_buf_printf(e->header,
                  "\n/* The handlers of %s: %s:\n"
                  " * struct %s__handlers h = {TORC_SIZE(%s__handlers), ...}; */\n"
                  "struct %s__handlers {\n    uint64_t size;\n",
                  service->name,
                  e->options->strict ? "none may be NULL. Begins with its size"
                                     : "NULL is UNIMPLEMENTED. Begins with its size, and 0 in the rest",
                  m->service, m->service, m->service);
    for (size_t k = 0; k < service->n_method; k++, m = m->hh.next)
        if (m->kind & (UNARY | SERVER))
            tc_buf_printf(e->header, "    void (*%s)(torc_server_call *call, const %s *request, void *arg);\n",
                          m->member, m->request);
        else
            tc_buf_printf(e->header, "    void (*%s)(torc_server_call *call, void *arg);\n", m->member);
    tc_buf_append_str(e->header, "};\n");
    m = first;
    for (size_t k = 0; k < service->n_method; k++, m = m->hh.next)
        for (size_t i = 0; i < TC_ARRAY_LEN(callers); i++)
            if (callers[i].kinds & m->kind)
                expand(e, m, e->source, callers[i].code);
    tc_buf_printf(e->source, "\nstatic const struct torc_protobuf_c_handler handlers_of_%s[] = {\n", first->service);
    m = first;
    for (size_t k = 0; k < service->n_method; k++, m = m->hh.next)
        expand(e, m, e->source,
               m->kind & (UNARY | SERVER) ? "    {sizeof(struct torc_protobuf_c_handler), $M,\n     offsetof(struct "
                                            "$S__handlers, $F), $X__caller, NULL},\n"
                                          : "    {sizeof(struct torc_protobuf_c_handler), $M,\n     offsetof(struct "
                                            "$S__handlers, $F), NULL, $X__caller},\n");
    tc_buf_append_str(e->source, "};\n");
    expand(e, first, e->header,
           "/* Registers the handlers, which are copied; arg is theirs. 0, or an error of torc_protobuf_c_add. */\n"
           "int $S__add(torc_server *server, const struct $S__handlers *handlers, void *arg, torc_error **error);\n");
    expand(
        e, first, e->source,
        "\nint $S__add(torc_server *server, const struct $S__handlers *handlers, void *arg, torc_error **error)\n{\n");
    tc_buf_printf(e->source,
                  "    return torc_protobuf_c_add(server, handlers_of_%s, %zu, handlers, arg, %s, error);\n}\n",
                  first->service, service->n_method, e->options->strict ? "TORC_PROTOBUF_C_STRICT" : "0");
}

static void services_emit(struct emitter *e)
{
    const struct method *m = e->methods;
    for (size_t i = 0; i < e->file->n_service; i++) {
        const pgt_service *service = e->file->service[i];
        const struct method *first = m;
        tc_buf_printf(e->header, "\n/* --- service %s%s%s ---\n", e->file->package ? e->file->package : "",
                      e->file->package && *e->file->package ? "." : "", service->name);
        comment_emit(e, (const int32_t[]){6, (int32_t)i}, 2);
        for (size_t k = 0; k < service->n_method; k++, m = m->hh.next)
            method_emit(e, m, (int32_t)i, (int32_t)k);
        if (first && service->n_method && e->options->sides & PGT_SERVER)
            handlers_emit(e, service, first);
    }
}

/* Writes the file's descriptor as bytes, without the positions and comments of its source. */
static void reflection_emit(struct emitter *e)
{
    pgt_file plain = *e->file;
    struct tc_buf name = {0};
    plain.source_code_info = NULL;
    size_t n = google__protobuf__file_descriptor_proto__get_packed_size(&plain);
    uint8_t *bytes = tc_malloc(n + 1);
    google__protobuf__file_descriptor_proto__pack(&plain, bytes);
    pgt_path(&name, tc_slice_str(e->file->name), false);
    tc_buf_printf(e->header, "\n/* The file's description, a serialised google.protobuf.FileDescriptorProto. */\n");
    tc_buf_printf(e->header, "extern const struct torc_stub_file torc_stub_file__%s;\n", tc_buf_cstr(&name));
    tc_buf_printf(e->source, "\nstatic const unsigned char torc_stub_bytes__%s[] = {", tc_buf_cstr(&name));
    for (size_t i = 0; i < n; i++)
        tc_buf_printf(e->source, "%s%u,", i % 20 ? "" : "\n    ", bytes[i]);
    if (!n)
        tc_buf_append_str(e->source, "0");
    tc_buf_append_str(e->source, "\n};\n");
    tc_buf_printf(
        e->source,
        "\nconst struct torc_stub_file torc_stub_file__%s = {\n    sizeof(struct torc_stub_file), torc_stub_v1, "
        "\"%s\", torc_stub_bytes__%s, %zu,\n};\n",
        tc_buf_cstr(&name), e->file->name, tc_buf_cstr(&name), n);
    tc_buf_fini(&name);
    tc_free(bytes);
}

/* Writes the beginnings of both files, and names the table of methods. */
static void begin(struct emitter *e, struct tc_slice stem)
{
    struct tc_buf guard = {0};
    pgt_path(&guard, stem, true);
    tc_buf_printf(e->header, "/* Generated by protoc-gen-torc from %s. Do not edit. */\n", e->file->name);
    tc_buf_printf(e->header, "#ifndef TORC_STUB_%s_H\n#define TORC_STUB_%s_H\n\n", tc_buf_cstr(&guard),
                  tc_buf_cstr(&guard));
    /* protobuf-c's headers have anonymous unions, about which -Wpedantic warns in C99. */
    tc_buf_printf(
        e->header,
        "#include <torc/protobuf_c.h>\n\n"
        "#ifdef __GNUC__\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wpedantic\"\n#endif\n"
        "#include \"%.*s.pb-c.h\"\n#ifdef __GNUC__\n#pragma GCC diagnostic pop\n#endif\n\n",
        (int)stem.len, stem.data);
    tc_buf_append_str(e->header, "#if !defined(TORC_STUB_VERSION) || TORC_STUB_VERSION < 1\n"
                                 "#error \"this file needs a newer Torc\"\n#endif\n\n"
                                 "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
    tc_buf_printf(e->source, "/* Generated by protoc-gen-torc from %s. Do not edit. */\n", e->file->name);
    tc_buf_printf(e->source, "#include \"%.*s.torc.h\"\n\n#include <stddef.h>\n", (int)stem.len, stem.data);
    tc_buf_append_str(&e->table, "methods_of_");
    pgt_path(&e->table, stem, false);
    tc_buf_fini(&guard);
}

bool pgt_emit(const struct pgt_schema *schema, const struct pgt_options *options, const pgt_file *file,
              struct tc_buf *header, struct tc_buf *source, char **why)
{
    struct emitter e = {
        .schema = schema, .options = options, .file = file, .header = header, .source = source, .why = why};
    tc_arena_init(&e.arena, 0, 0);
    begin(&e, pgt_stem(file->name));
    bool good = services_add(&e);
    if (good) {
        table_emit(&e);
        services_emit(&e);
        if (options->reflection)
            reflection_emit(&e);
        tc_buf_append_str(header, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
    }
    HASH_CLEAR(hh, e.methods);
    pgt_names_clear(&e.services);
    pgt_names_clear(&e.members);
    tc_buf_fini(&e.table);
    tc_arena_fini(&e.arena);
    return good;
}
