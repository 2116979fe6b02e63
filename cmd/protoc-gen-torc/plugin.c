/* From a request to a response.
 *
 * The request is scanned before it is unpacked, because its bytes come from another program. The copy that the scan
 * makes without unknown fields is dropped: unknown fields (custom options, fields of a newer protoc) must reach
 * protoc-gen-c and the descriptions of reflection.
 *
 * The plugin generates its own files first. With the option `messages`, messages.c then changes the request for
 * protoc-gen-c, whose files are appended to the response. The first error ends the run: the response then has the error
 * and no files.
 *
 * The request lives in an arena until pgt_run returns; the schema and the options borrow from it. One thread runs one
 * request at a time, because messages.c has static options that it gives to messages. */
#include "plugin.h"

#include "base/arena.h"
#include "base/mem.h"
#include "emit.h"
#include "messages.h"
#include "names.h"
#include "proto/scan.h"

enum { FEATURE_PROTO3_OPTIONAL = 1 };

typedef Google__Protobuf__Compiler__CodeGeneratorRequest request_t;
typedef Google__Protobuf__Compiler__CodeGeneratorResponse response_t;
typedef Google__Protobuf__Compiler__CodeGeneratorResponse__File file_t;

/* The run for one request. A function that returns false has stored the reason in `why`. */
struct run {
    const request_t *request;
    struct pgt_schema schema;
    struct pgt_options options;
    struct tc_buf *response; /* serialised responses, each with one generated file */
    char *why;               /* tc_free; NULL: no error */
};

/* Appends the serialised response. Serialised responses one after another parse as one, with the files of all. */
static void response_append(struct tc_buf *out, const response_t *response)
{
    size_t n = google__protobuf__compiler__code_generator_response__get_packed_size(response);
    google__protobuf__compiler__code_generator_response__pack(response, (uint8_t *)tc_buf_reserve(out, n));
    out->len += n;
}

/* Appends a response with one file, whose name is the stem and the suffix. `content` is copied. */
static void file_append(struct run *r, struct tc_slice stem, const char *suffix, struct tc_buf *content)
{
    response_t response = GOOGLE__PROTOBUF__COMPILER__CODE_GENERATOR_RESPONSE__INIT;
    file_t file = GOOGLE__PROTOBUF__COMPILER__CODE_GENERATOR_RESPONSE__FILE__INIT, *files = &file;
    file.name = tc_asprintf("%.*s%s", (int)stem.len, stem.data, suffix);
    file.content = (char *)(uintptr_t)tc_buf_cstr(content);
    response.n_file = 1;
    response.file = &files;
    response_append(r->response, &response);
    tc_free(file.name);
}

/* Generates the stubs of one file of the request, or appends nothing if that fails. */
static bool file_run(struct run *r, const char *name)
{
    const pgt_file *file = pgt_schema_file(&r->schema, name);
    struct tc_buf header = {0}, source = {0};
    if (!file)
        return tc_refuse(&r->why, "'" TC_SHOWN "' is to be generated and not in the request", TC_SHOW(name));
    bool good = pgt_schema_accepts(file, &r->why) && pgt_emit(&r->schema, &r->options, file, &header, &source, &r->why);
    if (good) {
        file_append(r, pgt_stem(name), ".torc.h", &header);
        file_append(r, pgt_stem(name), ".torc.c", &source);
    }
    tc_buf_fini(&header);
    tc_buf_fini(&source);
    return good;
}

/* Appends protoc-gen-c's files. Its headers are marked as system headers. So compilers do not warn about the unnamed
 * unions in a header, which C99 lacks, nor (-Wmissing-braces) where code uses an initialiser of a header. */
static void messages_append(struct run *r, const response_t *response)
{
    for (size_t i = 0; i < response->n_file; i++) {
        const file_t *file = response->file[i];
        struct tc_slice name = tc_slice_str(file->name ? file->name : "");
        struct tc_buf content = {0};
        if (tc_slice_ends(name, tc_slice_str(".h")))
            tc_buf_append_str(&content, "#ifdef __GNUC__\n#pragma GCC system_header\n#endif\n");
        tc_buf_append_str(&content, file->content ? file->content : "");
        file_append(r, name, "", &content);
        tc_buf_fini(&content);
    }
}

/* Runs protoc-gen-c on the request, whose files it changes. The parameter is not passed on: it has options of this
 * plugin. */
static bool messages_run(struct run *r)
{
    request_t request = *r->request;
    struct tc_buf theirs = {0};
    request.parameter = NULL;
    pgt_messages_prepare(&r->schema, &request);
    bool good = pgt_messages_run(r->options.protoc_gen_c, &request, &theirs, &r->why);
    response_t *response = NULL;
    if (good)
        response =
            google__protobuf__compiler__code_generator_response__unpack(NULL, theirs.len, (uint8_t *)theirs.data);
    if (good && !response)
        good = tc_refuse(&r->why, "messages: what protoc-gen-c wrote is not a CodeGeneratorResponse");
    if (good && response->error)
        good = tc_refuse(&r->why, "protoc-gen-c: %s", response->error);
    if (good)
        messages_append(r, response);
    if (response)
        google__protobuf__compiler__code_generator_response__free_unpacked(response, NULL);
    tc_buf_fini(&theirs);
    return good;
}

static bool request_run(struct run *r)
{
    const request_t *request = r->request;
    if (!pgt_options_read(&r->options, request->parameter ? request->parameter : "", &r->why) ||
        !pgt_schema_init(&r->schema, request, &r->why))
        return false;
    for (size_t i = 0; i < request->n_file_to_generate; i++)
        if (!file_run(r, request->file_to_generate[i]))
            return false;
    return !r->options.messages || messages_run(r);
}

static void *request_alloc(void *arena, size_t size)
{
    return tc_arena_alloc(arena, size);
}

static void request_free(void *arena, void *block)
{
    (void)arena;
    (void)block;
}

/* Unpacks into the arena: free_unpacked would miss elements that pgt_messages_prepare removes from arrays. Returns NULL
 * for malformed bytes. */
static request_t *request_unpack(struct tc_slice bytes, struct tc_arena *arena)
{
    ProtobufCAllocator allocator = {.alloc = request_alloc, .free = request_free, .allocator_data = arena};
    return google__protobuf__compiler__code_generator_request__unpack(&allocator, bytes.len,
                                                                      (const uint8_t *)bytes.data);
}

bool pgt_run(struct tc_slice bytes, struct tc_buf *out, char **why)
{
    /* Repeated fields, texts and custom options of a .proto may be of any size. The depth and the number
     * of values have the defaults. */
    static const struct tc_scan_options limits = {
        .max_repeated = SIZE_MAX, .max_string_bytes = SIZE_MAX, .max_unknown_bytes = SIZE_MAX};
    struct tc_validation_errors errors = {0};
    struct tc_buf clean = {0};
    struct tc_slice scanned;
    struct tc_arena arena;
    tc_arena_init(&arena, 0, 0);
    request_t *request = NULL;
    if (tc_scan(&google__protobuf__compiler__code_generator_request__descriptor, bytes, &limits, &clean, &scanned,
                &errors) == 0)
        request = request_unpack(bytes, &arena);
    if (!request)
        tc_refuse(why, "not a CodeGeneratorRequest: %s",
                  tc_validation_any(&errors) ? tc_validation_text(&errors) : "malformed");
    tc_validation_fini(&errors);
    tc_buf_fini(&clean);
    if (!request) {
        tc_arena_fini(&arena);
        return false;
    }
    struct tc_buf files = {0};
    struct run r = {.request = request, .response = &files};
    response_t response = GOOGLE__PROTOBUF__COMPILER__CODE_GENERATOR_RESPONSE__INIT;
    if (request_run(&r))
        tc_buf_append_slice(out, tc_buf_slice(&files));
    response.error = r.why;
    response.has_supported_features = true;
    response.supported_features = FEATURE_PROTO3_OPTIONAL;
    response_append(out, &response);
    tc_free(r.why);
    tc_buf_fini(&files);
    pgt_schema_fini(&r.schema);
    tc_arena_fini(&arena);
    return true;
}
