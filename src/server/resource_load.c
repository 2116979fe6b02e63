/* Resource sets from files and JSON (declared in resource_set.h). */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "pb/google/protobuf/any.pb-c.h"
#include "proto/json.h"
#include "server/resource_set.h"
#include "server/yaml.h"

#define WRAPPER "type.googleapis.com/envoy.service.discovery.v3.Resource"
#define MAX_FILE_BYTES ((size_t)256 << 20)

/* Where each type has its name. */
static const char *resource_name(const json_t *resource)
{
    static const char *const keys[] = {"name", "cluster_name", "clusterName"};
    for (size_t i = 0; i < TC_ARRAY_LEN(keys); i++) {
        const json_t *v = json_object_get(resource, keys[i]);
        if (json_is_string(v) && json_string_length(v))
            return json_string_value(v);
    }
    return NULL;
}

/* The message of a resource. Where fields are unknown and somebody wants to hear of it, without them. */
static int read_message(const struct tc_resource_set *s, const json_t *resource, struct tc_arena *arena,
                        ProtobufCMessage **message, struct tc_faults *faults)
{
    const ProtobufCMessageDescriptor *any = &google__protobuf__any__descriptor;
    static const struct tc_proto_json_options lenient = {.ignore_unknown = true};
    struct tc_faults strict;
    if (!s->warn)
        return tc_proto_from_json(any, resource, NULL, arena, message, faults);
    tc_faults_init(&strict);
    struct tc_slice path = tc_faults_path(faults);
    if (path.len)
        tc_faults_push(&strict, "%.*s", (int)path.len, path.data);
    int rc = tc_proto_from_json(any, resource, NULL, arena, message, &strict);
    if (rc != 0) {
        rc = tc_proto_from_json(any, resource, &lenient, arena, message, faults);
        if (rc == 0)
            s->warn(s->warn_arg, s->file ? s->file->data : NULL, tc_faults_text(&strict));
    }
    tc_faults_fini(&strict);
    return rc;
}

/* Where that resource has been read already, it is a fault, which names the other file when it was there. */
static void refuse_second(const struct tc_resource_set *s, struct tc_slice url, const char *name,
                          struct tc_faults *faults)
{
    const struct tc_set_type *t = tc_resource_set_type(s, url);
    const struct tc_set_resource *first = t ? tc_set_type_find(t, tc_slice_str(name)) : NULL;
    if (!first)
        return;
    if (first->file && s->file && !tc_rstr_eq(first->file, s->file))
        tc_faults_add(faults, "\"%s\" is given twice: it is in %s too", name, first->file->data);
    else
        tc_faults_add(faults, "\"%s\" is given twice", name);
}

static void add_unwrapped(struct tc_resource_set *s, const json_t *resource, const char *name, struct tc_faults *faults)
{
    struct tc_arena arena;
    ProtobufCMessage *message = NULL;
    if (!json_is_object(resource) || !json_is_string(json_object_get(resource, "@type"))) {
        tc_faults_add(faults, "must be an object with an @type");
        return;
    }
    if (!name)
        name = resource_name(resource);
    if (!name) {
        tc_faults_add(faults, "has no name (or cluster_name)");
        return;
    }
    tc_arena_init(&arena, 4096, 0);
    if (read_message(s, resource, &arena, &message, faults) == 0) {
        const Google__Protobuf__Any *any = (const Google__Protobuf__Any *)message;
        struct tc_slice url = tc_slice_str(any->type_url), value = tc_slice_of(any->value.data, any->value.len);
        size_t before = faults->count;
        if (s->once)
            refuse_second(s, url, name, faults);
        if (s->check)
            s->check(s->check_arg, url, tc_slice_str(name), value, faults);
        if (faults->count == before)
            tc_resource_set_put(s, url, tc_slice_str(name), value);
    }
    tc_arena_fini(&arena);
}

static bool is_wrapper(const json_t *resource)
{
    const char *type = json_string_value(json_object_get(resource, "@type"));
    return type && strcmp(type, WRAPPER) == 0;
}

static void add_resource(struct tc_resource_set *s, const json_t *resource, struct tc_faults *faults)
{
    if (!is_wrapper(resource)) {
        add_unwrapped(s, resource, NULL, faults);
        return;
    }
    const char *name = NULL;
    tc_json_get_str(resource, "name", &name, faults);
    tc_faults_push(faults, ".resource");
    if (is_wrapper(json_object_get(resource, "resource")))
        tc_faults_add(faults, "must not be a wrapper itself");
    else
        add_unwrapped(s, json_object_get(resource, "resource"), name && *name ? name : NULL, faults);
    tc_faults_pop(faults);
}

/* A version that holds for a whole type only when one file alone gives it. */
static void hint_versions(struct tc_resource_set *s, const json_t *list, const char *version)
{
    size_t i;
    json_t *resource;
    json_array_foreach(list, i, resource)
    {
        const json_t *inner = is_wrapper(resource) ? json_object_get(resource, "resource") : resource;
        const char *url = json_string_value(json_object_get(inner, "@type"));
        for (size_t k = 0; url && k < s->types.len; k++) {
            struct tc_set_type *t = &s->types.data[k];
            if (!tc_slice_eq_str(tc_rstr_slice(t->type_url), url))
                continue;
            if (t->version_hint && strcmp(t->version_hint->data, version) == 0)
                continue;
            struct tc_rstr *hint =
                t->version_hint ? tc_rstr_printf("%s+%s", t->version_hint->data, version) : tc_rstr_str(version);
            tc_rstr_unref(t->version_hint);
            t->version_hint = hint;
        }
    }
}

void tc_resource_set_add_json(struct tc_resource_set *s, const json_t *doc, struct tc_faults *faults)
{
    const json_t *list = json_is_array(doc) ? doc : json_object_get(doc, "resources");
    const char *version = NULL;
    size_t i;
    json_t *resource;
    if (json_is_object(doc) && json_object_get(doc, "@type")) {
        add_resource(s, doc, faults);
        return;
    }
    if (!json_is_array(list)) {
        tc_faults_add_at(faults, ".resources", "must be a list of resources");
        return;
    }
    json_array_foreach(list, i, resource)
    {
        tc_faults_push(faults, ".resources[%zu]", i);
        add_resource(s, resource, faults);
        tc_faults_pop(faults);
    }
    if (json_is_object(doc) && tc_json_get_str(doc, "version_info", &version, faults) && *version)
        hint_versions(s, list, version);
}

static int read_file(const char *path, struct tc_buf *out, char **why)
{
    const char *reason;
    char scratch[128];
    if (tc_file_read(path, MAX_FILE_BYTES, out, &reason, scratch) == 0)
        return 0;
    *why = tc_asprintf("cannot read %s: %s", path, reason);
    return TORC_EIO;
}

static int load_file(struct tc_resource_set *s, const char *path, char **why)
{
    struct tc_buf text = {0};
    struct tc_faults faults;
    char *reason = NULL;
    json_t *doc = NULL;
    tc_faults_init(&faults);
    int rc = read_file(path, &text, why);
    if (rc != 0)
        goto done;
    doc = tc_yaml_parse(tc_buf_slice(&text), &reason);
    s->file = tc_rstr_str(path);
    if (doc)
        tc_resource_set_add_json(s, doc, &faults);
    tc_rstr_unref(s->file);
    s->file = NULL;
    if (!doc || tc_faults_any(&faults)) {
        *why = tc_asprintf("%s: %s", path, doc ? tc_faults_text(&faults) : reason);
        rc = TORC_EPARSE;
    }
done:
    tc_free(reason);
    json_decref(doc);
    tc_faults_fini(&faults);
    tc_buf_fini(&text);
    return rc;
}

static int is_resource_file(const struct dirent *entry)
{
    struct tc_slice name = tc_slice_str(entry->d_name);
    return entry->d_name[0] != '.' &&
           (tc_slice_ends(name, tc_slice_str(".yaml")) || tc_slice_ends(name, tc_slice_str(".yml")) ||
            tc_slice_ends(name, tc_slice_str(".json")));
}

static int load_dir(struct tc_resource_set *s, const char *path, char **why)
{
    struct dirent **entries = NULL;
    int rc = 0;
    int n = scandir(path, &entries, is_resource_file, alphasort);
    if (n < 0) {
        *why = tc_asprintf("cannot read folder %s: %s", path, strerror(errno));
        return TORC_EIO;
    }
    if (n == 0) {
        *why = tc_asprintf("folder %s has no .yaml, .yml or .json file", path);
        rc = TORC_EPARSE;
    }
    for (int i = 0; i < n; i++) {
        char *file = tc_asprintf("%s/%s", path, entries[i]->d_name);
        if (rc == 0)
            rc = load_file(s, file, why);
        tc_free(file);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

int tc_resource_set_load(struct tc_resource_set *s, const char *const *paths, size_t n, char **why)
{
    s->once = true;
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        bool is_dir = stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode);
        int rc = is_dir ? load_dir(s, paths[i], why) : load_file(s, paths[i], why);
        if (rc != 0)
            return rc;
    }
    return 0;
}
