/* The code of the messages, which protoc-gen-c writes.
 *
 * protoc-gen-c 1.4 does not announce support for proto3's `optional`, so protoc would refuse such files. This plugin
 * announces it, and clears the mark proto3_optional in the request for protoc-gen-c. The meaning stays: protoc
 * describes an optional field X as the only member of a oneof "_X", and protobuf-c generates a member _X_case for it.
 *
 * Extensions of options (validation rules, annotations) are for compilers. They are removed, with the imports that only
 * they use, so that generated code does not include headers of those imports.
 *
 * A field gets another name if its member could not be compiled: another member has that name, or the name is a word
 * that cannot be a member (names.h). The numbers of fields stay, and so do the bytes on the wire. A field `base` keeps
 * its name, and the first member of the struct, `base` in protobuf-c, gets another. Services are removed.
 *
 * pgt_messages_prepare changes the descriptors of the unpacked request where they lie, for all files of the request.
 * New names lie in the schema's arena, which must outlive the request's use. Read pgt_messages_prepare first, then
 * message_prepare. */
#include "messages.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/table.h"
#include "names.h"

extern char **environ;

struct used_file {
    UT_hash_handle hh; /* by the file's name */
    const char *name;
};

struct usage {
    const struct pgt_schema *schema;
    struct tc_arena arena;   /* of `files` */
    struct tc_arena *names;  /* the schema's arena, for new names of fields */
    const pgt_file *file;    /* the file that is prepared */
    struct used_file *files; /* files that define a used type, or import such a file publicly */
};

static bool is_used(const struct usage *u, const char *file)
{
    struct used_file *known;
    HASH_FIND(hh, u->files, file, strlen(file), known);
    return known != NULL;
}

static void use_file(struct usage *u, const char *file)
{
    if (is_used(u, file))
        return;
    struct used_file *known = tc_arena_calloc(&u->arena, 1, sizeof(*known));
    known->name = file;
    HASH_ADD_KEYPTR(hh, u->files, known->name, strlen(known->name), known);
}

/* Marks the file that defines the type (".pkg.Name") as used. Does nothing for NULL and unknown types. */
static void use(struct usage *u, const char *type)
{
    const pgt_file *home = pgt_schema_home(u->schema, type);
    if (home)
        use_file(u, home->name);
}

/* Removes extensions of options from an array. Returns how many extensions are left. */
static size_t drop_custom_options(pgt_field **extensions, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!pgt_is_custom_option(extensions[i]))
            extensions[kept++] = extensions[i];
    return kept;
}

#define BASE_NAME "protobuf_c_base"

/* Makes room for a field `base`: the first member of a message's struct has that name, unless protobuf-c's option
 * base_field_name sets another. A message that has no struct of options to set it in gets a static one, which all such
 * messages share and nobody frees. */
static void base_rename(pgt_message *m)
{
    static Google__Protobuf__ProtobufCMessageOptions only_name = GOOGLE__PROTOBUF__PROTOBUF_CMESSAGE_OPTIONS__INIT;
    static Google__Protobuf__MessageOptions only_option = GOOGLE__PROTOBUF__MESSAGE_OPTIONS__INIT;
    static char name[] = BASE_NAME;
    only_name.base_field_name = name;
    only_option.pb_c_msg = &only_name;
    if (!m->options)
        m->options = &only_option;
    else if (!m->options->pb_c_msg)
        m->options->pb_c_msg = &only_name;
    else if (!m->options->pb_c_msg->base_field_name)
        m->options->pb_c_msg->base_field_name = name;
}

static bool is_base(const pgt_field *field)
{
    struct tc_buf lower = {0};
    pgt_field_lower(&lower, field->name);
    bool is = strcmp(tc_buf_cstr(&lower), "base") == 0;
    tc_buf_fini(&lower);
    return is;
}

/* Returns true if protobuf-c adds has_X to a field: a number, a bool, an enum or bytes that is optional in proto2 and
 * not in a oneof. */
static bool is_with_presence(const pgt_file *file, const pgt_field *f)
{
    return !(file->syntax && strcmp(file->syntax, "proto3") == 0) && !f->has_oneof_index && f->has_type &&
           f->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_OPTIONAL &&
           f->type != GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_STRING &&
           f->type != GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_MESSAGE;
}

/* Adds to `members` the member that protobuf-c adds to a field of this name, n_X or has_X. Returns false if another
 * member has the name. */
static bool companion_take(struct pgt_name **members, struct tc_arena *arena, const pgt_file *file, const pgt_field *f,
                           const char *name)
{
    bool repeated = f->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_REPEATED;
    if (!repeated && !is_with_presence(file, f))
        return true;
    struct tc_buf member = {0};
    tc_buf_append_str(&member, repeated ? "n_" : "has_");
    pgt_field_member(&member, name);
    bool taken = pgt_name_take(members, arena, tc_buf_cstr(&member), "") == NULL;
    tc_buf_fini(&member);
    return taken;
}

/* Returns true if a message has a field `base` and no option that names its first member otherwise. */
static bool is_base_renamed(const pgt_message *m)
{
    if (m->options && m->options->pb_c_msg && m->options->pb_c_msg->base_field_name)
        return false;
    for (size_t i = 0; i < m->n_field; i++)
        if (is_base(m->field[i]))
            return true;
    return false;
}

/* Adds to `members` the names that protobuf-c gives to members beside the fields: n_X of a repeated field, has_X of an
 * optional one, X_case of a oneof. */
static void added_members_take(struct pgt_name **members, struct tc_arena *arena, const pgt_file *file,
                               const pgt_message *m)
{
    struct tc_buf member = {0};
    for (size_t i = 0; i < m->n_field; i++)
        companion_take(members, arena, file, m->field[i], m->field[i]->name);
    for (size_t i = 0; i < m->n_oneof_decl; i++) {
        tc_buf_clear(&member);
        pgt_lower(&member, tc_slice_str(m->oneof_decl[i]->name));
        tc_buf_append_str(&member, "_case");
        pgt_name_take(members, arena, tc_buf_cstr(&member), "");
    }
    tc_buf_fini(&member);
}

/* Appends one '_' or more to the name of each field whose member is a word of pgt_is_taken_member or has the name of
 * another member. The new name clashes with no member, and neither does its n_X or has_X. */
static void fields_rename(struct tc_arena *arena, const pgt_file *file, pgt_message *m)
{
    struct pgt_name *members = NULL;
    added_members_take(&members, arena, file, m);
    if (is_base_renamed(m))
        pgt_name_take(&members, arena, BASE_NAME, "");
    for (size_t i = 0; i < m->n_field; i++) {
        pgt_field *f = m->field[i];
        struct tc_buf name = {0}, member = {0};
        pgt_field_lower(&name, f->name);
        pgt_field_member(&member, f->name);
        size_t len = name.len;
        while (pgt_is_taken_member(tc_buf_cstr(&member)) || pgt_name_take(&members, arena, tc_buf_cstr(&member), "") ||
               (name.len > len && !companion_take(&members, arena, file, f, tc_buf_cstr(&name)))) {
            tc_buf_append_char(&name, '_');
            tc_buf_clear(&member);
            pgt_field_member(&member, tc_buf_cstr(&name));
        }
        if (name.len > len)
            f->name = tc_arena_dup(arena, tc_buf_slice(&name));
        tc_buf_fini(&name);
        tc_buf_fini(&member);
    }
    pgt_names_clear(&members);
}

/* Prepares a message and those nested in it, and marks the files of their fields' types as used. */
static void message_prepare(struct usage *u, pgt_message *m)
{
    m->n_extension = drop_custom_options(m->extension, m->n_extension);
    fields_rename(u->names, u->file, m);
    for (size_t i = 0; i < m->n_field; i++) {
        m->field[i]->has_proto3_optional = false;
        use(u, m->field[i]->type_name);
        if (is_base(m->field[i]))
            base_rename(m);
    }
    for (size_t i = 0; i < m->n_nested_type; i++)
        message_prepare(u, m->nested_type[i]);
}

/* Marks the files that import a used file publicly as used: who imports them sees the used file's types. A file comes
 * after its imports in the request, so one pass finds all. */
static void use_public_imports(struct usage *u, const Google__Protobuf__Compiler__CodeGeneratorRequest *request)
{
    for (size_t i = 0; i < request->n_proto_file; i++) {
        const pgt_file *file = request->proto_file[i];
        for (size_t k = 0; k < file->n_public_dependency; k++) {
            int32_t index = file->public_dependency[k];
            if (index >= 0 && (size_t)index < file->n_dependency && is_used(u, file->dependency[index]))
                use_file(u, file->name);
        }
    }
}

static bool is_public(const pgt_file *file, size_t index)
{
    for (size_t i = 0; i < file->n_public_dependency; i++)
        if (file->public_dependency[i] == (int32_t)index)
            return true;
    return false;
}

/* Removes the imports that are neither used nor public. public_dependency holds indices into `dependency`, in ascending
 * order, and gets the new ones. */
static void imports_prune(const struct usage *u, pgt_file *file)
{
    size_t kept = 0, n_public = 0;
    for (size_t i = 0; i < file->n_dependency; i++) {
        bool pub = is_public(file, i);
        if (!pub && !is_used(u, file->dependency[i]))
            continue;
        if (pub)
            file->public_dependency[n_public++] = (int32_t)kept;
        file->dependency[kept++] = file->dependency[i];
    }
    file->n_dependency = kept;
    file->n_public_dependency = n_public;
    file->n_weak_dependency = 0;
}

void pgt_messages_prepare(struct pgt_schema *schema, const Google__Protobuf__Compiler__CodeGeneratorRequest *request)
{
    for (size_t i = 0; i < request->n_proto_file; i++) {
        pgt_file *file = request->proto_file[i];
        struct usage u = {.schema = schema, .names = &schema->arena, .file = file};
        tc_arena_init(&u.arena, 0, 0);
        file->n_extension = drop_custom_options(file->extension, file->n_extension);
        for (size_t k = 0; k < file->n_message_type; k++)
            message_prepare(&u, file->message_type[k]);
        for (size_t k = 0; k < file->n_extension; k++) {
            use(&u, file->extension[k]->extendee);
            use(&u, file->extension[k]->type_name);
        }
        /* NAME.torc.h gets the types of methods from NAME.pb-c.h and its imports. */
        for (size_t k = 0; k < file->n_service; k++)
            for (size_t j = 0; j < file->service[k]->n_method; j++) {
                use(&u, file->service[k]->method[j]->input_type);
                use(&u, file->service[k]->method[j]->output_type);
            }
        use_public_imports(&u, request);
        imports_prune(&u, file);
        file->n_service = 0; /* Torc's functions replace protobuf-c's services, whose members may be words of C++ */
        HASH_CLEAR(hh, u.files);
        tc_arena_fini(&u.arena);
    }
}

/* Returns the status that waitpid stores, or -1 with errno. `in` and `out` are files instead of pipes, so that the two
 * processes cannot block each other. */
static int spawn_and_wait(const char *program, FILE *in, FILE *out)
{
    posix_spawn_file_actions_t actions;
    char *argv[] = {(char *)(uintptr_t)program, NULL};
    pid_t pid;
    int status, rv;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(in), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
    rv = posix_spawnp(&pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rv != 0) {
        errno = rv;
        return -1;
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

/* Appends the whole file, from its beginning. */
static void read_all(FILE *file, struct tc_buf *out)
{
    size_t n;
    rewind(file);
    do {
        n = fread(tc_buf_reserve(out, 65536), 1, 65536, file);
        out->len += n;
    } while (n);
}

bool pgt_messages_run(struct tc_slice program, const Google__Protobuf__Compiler__CodeGeneratorRequest *request,
                      struct tc_buf *response, char **why)
{
    char *name = tc_slice_dup(program.data ? program : tc_slice_str("protoc-gen-c"));
    size_t n = google__protobuf__compiler__code_generator_request__get_packed_size(request);
    uint8_t *bytes = tc_malloc(n + 1);
    FILE *in = tmpfile(), *out = tmpfile();
    google__protobuf__compiler__code_generator_request__pack(request, bytes);
    bool have = in && out;
    bool good = have && fwrite(bytes, 1, n, in) == n && fflush(in) == 0 && fseek(in, 0, SEEK_SET) == 0;
    if (!good) {
        tc_refuse(why, "messages: %s temporary file: %s", have ? "cannot write a" : "no", strerror(errno));
    } else {
        int status = spawn_and_wait(name, in, out);
        good = status == 0;
        if (status == -1)
            tc_refuse(why, "messages: cannot run %s: %s (protoc-gen-c=PATH names another)", name, strerror(errno));
        else if (!good)
            tc_refuse(why, "messages: %s ended with %s %d", name, WIFEXITED(status) ? "status" : "signal",
                      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        else
            read_all(out, response);
    }
    if (in)
        fclose(in);
    if (out)
        fclose(out);
    tc_free(bytes);
    tc_free(name);
    return good;
}
