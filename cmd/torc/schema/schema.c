/* The pool of files and the types in them.
 *
 * Files are kept twice: in an index of descriptors, which finds the file of a name and knows imports, and in a
 * torc_schema, which has the linked types. struct schema owns both. schema_link adds new files of the index to the
 * torc_schema. If that fails, the new files leave both. schema_need and schema_need_file add a server's files by
 * reflect_symbol or reflect_file, and link them at once. Once schema_load has succeeded, both have the same files
 * whenever a function of schema.h returns. */
#include "schema/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli.h"
#include "proto/wire.h"
#include "schema/protoc.h"

void schema_init(struct schema *s, const char *command)
{
    *s = (struct schema){.command = command, .types = torc_schema_new()};
}

void schema_fini(struct schema *s)
{
    reflect_fini(&s->reflect);
    torc_schema_free(s->types);
    tc_descriptor_index_fini(&s->files);
}

/* Adds the files of a google.protobuf.FileDescriptorSet to the index. `option` and `path`: where it comes from, for
 * errors. */
static int add_set(struct schema *s, struct tc_slice set, const char *option, const char *path)
{
    struct tc_wire_field field;
    size_t before = s->files.files.len;
    bool whole = true;
    while (set.len && (whole = tc_wire_next(&set, &field))) {
        struct tc_status why = {0};
        if (field.number != 1 || !field.is_bytes)
            continue;
        if (tc_descriptor_index_add(&s->files, field.value, &why) != 0) {
            cli_fail(s->command, "%s %s: %s", option, path, tc_status_text(&why));
            tc_status_fini(&why);
            return CLI_FAILED;
        }
    }
    if (!whole || s->files.files.len == before)
        return cli_fail(s->command,
                        "%s %s: not a file of descriptors: protoc --include_imports --descriptor_set_out "
                        "writes one",
                        option, path);
    return 0;
}

int schema_load(struct schema *s, const struct schema_args *a)
{
    int rc = 0;
    for (size_t i = 0; i < a->protosets.len && rc == 0; i++) {
        struct tc_buf set = {0};
        rc = cli_read_regular(s->command, "--protoset", a->protosets.data[i], &set);
        if (rc == 0)
            rc = add_set(s, tc_buf_slice(&set), "--protoset", a->protosets.data[i]);
        tc_buf_fini(&set);
    }
    if (rc == 0 && a->protos.len) {
        struct tc_buf set = {0};
        rc = protoc_run(s->command, a, &set);
        if (rc == 0)
            rc = add_set(s, tc_buf_slice(&set), "--proto", a->protos.data[0]);
        tc_buf_fini(&set);
    }
    return rc ? rc : schema_link(s);
}

int schema_link(struct schema *s)
{
    struct tc_buf set = {0};
    torc_error *error = NULL;
    for (size_t i = s->n_linked; i < s->files.files.len; i++)
        tc_wire_append(&set, 1, s->files.files.data[i]->bytes);
    if (torc_schema_add_set(s->types, set.data, set.len, &error) == 0)
        torc_schema_link(s->types, &error);
    tc_buf_fini(&set);
    if (error) /* else schema_need would find names of files that are not linked */
        tc_descriptor_index_cut(&s->files, s->n_linked);
    s->n_linked = s->files.files.len;
    return error ? cli_fail_error(s->command, error) : 0;
}

/* Links the files that reflection brought. After a failure of reflection, drops them and returns what schema_need
 * returns for it. */
static int take_answer(struct schema *s, int rc)
{
    if (rc == REFLECT_OK)
        return schema_link(s);
    tc_descriptor_index_cut(&s->files, s->n_linked);
    switch (rc) {
    case REFLECT_NOT_FOUND:
        return SCHEMA_ABSENT;
    case REFLECT_ABSENT:
        return SCHEMA_NO_REFLECTION;
    default:
        return cli_fail(s->command, "%s", tc_buf_cstr(&s->reflect.why));
    }
}

int schema_need(struct schema *s, const char *symbol)
{
    struct tc_slice name = tc_slice_str(symbol);
    if (tc_descriptor_index_symbol(&s->files, name))
        return 0;
    return s->reflect.channel ? take_answer(s, reflect_symbol(&s->reflect, &s->files, name)) : SCHEMA_ABSENT;
}

int schema_need_file(struct schema *s, const char *file)
{
    struct tc_slice name = tc_slice_str(file);
    if (tc_descriptor_index_file(&s->files, name))
        return 0;
    return s->reflect.channel ? take_answer(s, reflect_file(&s->reflect, &s->files, name)) : SCHEMA_ABSENT;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Finds what schema_services stores. Prints nothing. Returns a REFLECT_ code, with the error in s->reflect.why. After
 * an error, the names are those of the files alone, unsorted. */
static int find_services(struct schema *s, struct schema_names *names)
{
    const torc_schema_service *service;
    struct tc_slice answer;
    for (size_t i = 0; (service = torc_schema_service_at(s->types, i)); i++)
        *tc_vec_push(&names->list) = tc_strdup(torc_schema_service_name(service));
    if (s->reflect.channel) {
        struct tc_wire_field field;
        int rc = reflect_services(&s->reflect, &answer);
        if (rc != REFLECT_OK)
            return rc;
        while (tc_wire_next(&answer, &field))
            if (field.number == 1 && field.is_bytes)
                *tc_vec_push(&names->list) = tc_slice_dup(tc_wire_find(field.value, 1));
    }
    if (names->list.len)
        qsort(names->list.data, names->list.len, sizeof(char *), compare_names);
    size_t kept = 0;
    for (size_t i = 0; i < names->list.len; i++) {
        if (kept && strcmp(names->list.data[kept - 1], names->list.data[i]) == 0)
            tc_free(names->list.data[i]);
        else
            names->list.data[kept++] = names->list.data[i];
    }
    names->list.len = kept;
    return REFLECT_OK;
}

int schema_services(struct schema *s, struct schema_names *names)
{
    return find_services(s, names) == REFLECT_OK ? 0 : cli_fail(s->command, "%s", tc_buf_cstr(&s->reflect.why));
}

int schema_no_service(struct schema *s, const char *service, const char *hint)
{
    enum { SHOWN = 16 };
    struct schema_names names = {0};
    struct tc_buf known = {0}, why = {0};
    tc_buf_append_slice(&why, tc_buf_slice(&s->reflect.why));
    bool found = find_services(s, &names) == REFLECT_OK, listed = false;
    for (size_t i = 0; i < names.list.len; i++)
        listed |= strcmp(names.list.data[i], service) == 0;
    for (size_t i = 0; i < names.list.len && i < SHOWN; i++)
        tc_buf_printf(&known, "%s" TC_SHOWN,
                      i                    ? ", "
                      : s->reflect.channel ? "; it has "
                                           : "; they have ",
                      TC_SHOW(names.list.data[i]));
    if (names.list.len > SHOWN)
        tc_buf_printf(&known, " and %zu more", names.list.len - SHOWN);
    if (s->reflect.channel && !found)
        cli_fail(s->command, "%s%s", tc_buf_cstr(&why), hint);
    else if (s->reflect.channel && listed)
        cli_fail(s->command,
                 "the server lists the service " TC_SHOWN ", but has no description of it: give one with --proto or "
                 "--protoset%s",
                 TC_SHOW(service), hint);
    else if (s->reflect.channel)
        cli_fail(s->command, "the server has no service " TC_SHOWN "%s%s", TC_SHOW(service), tc_buf_cstr(&known), hint);
    else
        cli_fail(s->command, "no file has the service '" TC_SHOWN "'%s", TC_SHOW(service), tc_buf_cstr(&known));
    schema_names_free(&names);
    tc_buf_fini(&known);
    tc_buf_fini(&why);
    return CLI_FAILED;
}

void schema_names_free(struct schema_names *names)
{
    for (size_t i = 0; i < names->list.len; i++)
        tc_free(names->list.data[i]);
    tc_vec_fini(&names->list);
}
