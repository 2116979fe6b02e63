/* Resources from files: YAML or JSON, in the shape of Envoy's filesystem xDS.
 *
 * A file is one document (yaml.c); a document is a list of resources, or one. The proto3 JSON reader (proto/json) turns
 * each resource into a serialised message, which the set keeps under the resource's name. The set keeps copies: nothing
 * of a document outlives the call. Errors carry the field path and, for files, the file; the first file with an error
 * ends the load. Any thread; one set on one thread at a time. */
#include "controlplane/resource_load.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "controlplane/yaml.h"
#include "pb/google/protobuf/any.pb-c.h"
#include "proto/json.h"

#define WRAPPER "type.googleapis.com/envoy.service.discovery.v3.Resource"

enum { MAX_FILE_BYTES = 256 << 20 };

/* Returns the name of a resource, borrowed; NULL if it has none. Most types have `name`, ClusterLoadAssignment has
 * cluster_name. */
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

/* Reads a resource as an Any in `arena`. Fields that Torc does not know are errors, unless s->warn is set: then the
 * resource is read without them, and s->warn is called. Returns what tc_proto_from_json returns. */
static int resource_read_message(const struct tc_resource_set *s, const json_t *resource, struct tc_arena *arena,
                                 ProtobufCMessage **message, struct tc_validation_errors *errors)
{
    const ProtobufCMessageDescriptor *any = &google__protobuf__any__descriptor;
    static const struct tc_proto_json_options lenient = {.ignore_unknown = true};
    struct tc_validation_errors strict = {0};
    if (!s->warn)
        return tc_proto_from_json(any, resource, NULL, arena, message, errors);
    struct tc_slice path = tc_validation_path(errors);
    if (path.len)
        tc_validation_push(&strict, "%.*s", (int)path.len, path.data);
    int rc = tc_proto_from_json(any, resource, NULL, arena, message, &strict);
    if (rc != 0) {
        rc = tc_proto_from_json(any, resource, &lenient, arena, message, errors);
        if (rc == 0)
            s->warn(s->warn_arg, s->file ? s->file->data : NULL, tc_validation_text(&strict));
    }
    tc_validation_fini(&strict);
    return rc;
}

/* Adds an error if the set has the resource already. The error names the first one's file if that is another file. */
static void resource_reject_second(const struct tc_resource_set *s, struct tc_slice url, const char *name,
                                   struct tc_validation_errors *errors)
{
    const struct tc_set_type *t = tc_resource_set_type(s, url);
    const struct tc_set_resource *first = t ? tc_set_type_find(t, tc_slice_str(name)) : NULL;
    if (!first)
        return;
    if (first->file && s->file && !tc_rstr_eq(first->file, s->file))
        tc_validation_add(errors, "\"%s\" is given twice: it is in %s too", name, first->file->data);
    else
        tc_validation_add(errors, "\"%s\" is given twice", name);
}

/* Adds one resource. `name` is the wrapper's name for it; NULL: the resource names itself. */
static void document_add_unwrapped(struct tc_resource_set *s, const json_t *resource, const char *name,
                                   struct tc_validation_errors *errors)
{
    struct tc_arena arena;
    ProtobufCMessage *message = NULL;
    if (!json_is_object(resource) || !json_is_string(json_object_get(resource, "@type"))) {
        tc_validation_add(errors, "must be an object with an @type");
        return;
    }
    if (!name)
        name = resource_name(resource);
    if (!name) {
        tc_validation_add(errors, "has no name (or cluster_name)");
        return;
    }
    tc_arena_init(&arena, 4096, 0);
    if (resource_read_message(s, resource, &arena, &message, errors) == 0) {
        const Google__Protobuf__Any *any = (const Google__Protobuf__Any *)message;
        struct tc_slice url = tc_slice_str(any->type_url), value = tc_slice_of(any->value.data, any->value.len);
        size_t before = errors->count;
        if (s->once)
            resource_reject_second(s, url, name, errors);
        if (s->check)
            s->check(s->check_arg, url, tc_slice_str(name), value, errors);
        if (errors->count == before)
            tc_resource_set_put(s, url, tc_slice_str(name), value);
    }
    tc_arena_fini(&arena);
}

static bool is_wrapper(const json_t *resource)
{
    const char *type = json_string_value(json_object_get(resource, "@type"));
    return type && strcmp(type, WRAPPER) == 0;
}

static void document_add_resource(struct tc_resource_set *s, const json_t *resource,
                                  struct tc_validation_errors *errors)
{
    if (!is_wrapper(resource)) {
        document_add_unwrapped(s, resource, NULL, errors);
        return;
    }
    const char *name = NULL;
    tc_json_get_str(resource, "name", &name, errors);
    tc_validation_push(errors, ".resource");
    if (is_wrapper(json_object_get(resource, "resource")))
        tc_validation_add(errors, "must not be a wrapper itself");
    else
        document_add_unwrapped(s, json_object_get(resource, "resource"), name && *name ? name : NULL, errors);
    tc_validation_pop(errors);
}

/* Returns true if the version is one of the versions that the hint joins. */
static bool hint_has(const char *hint, const char *version)
{
    size_t n = strlen(version);
    for (const char *at = hint; (at = strstr(at, version)); at++)
        if ((at == hint || at[-1] == '+') && (at[n] == '+' || at[n] == '\0'))
            return true;
    return false;
}

/* Notes a document's version_info for the types of its resources. The versions of several documents are joined. */
static void document_hint_versions(struct tc_resource_set *s, const json_t *list, const char *version)
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
            if (t->version_hint && hint_has(t->version_hint->data, version))
                continue;
            struct tc_rstr *hint =
                t->version_hint ? tc_rstr_printf("%s+%s", t->version_hint->data, version) : tc_rstr_str(version);
            tc_rstr_unref(t->version_hint);
            t->version_hint = hint;
        }
    }
}

void tc_resource_set_add_json(struct tc_resource_set *s, const json_t *doc, struct tc_validation_errors *errors)
{
    const json_t *list = json_is_array(doc) ? doc : json_object_get(doc, "resources");
    const char *version = NULL;
    size_t i;
    json_t *resource;
    if (json_is_object(doc) && json_object_get(doc, "@type")) {
        document_add_resource(s, doc, errors);
        return;
    }
    if (!json_is_array(list)) {
        tc_validation_add_at(errors, ".resources", "must be a list of resources");
        return;
    }
    json_array_foreach(list, i, resource)
    {
        tc_validation_push(errors, ".resources[%zu]", i);
        document_add_resource(s, resource, errors);
        tc_validation_pop(errors);
    }
    if (json_is_object(doc) && tc_json_get_str(doc, "version_info", &version, errors) && *version)
        document_hint_versions(s, list, version);
}

static int resource_read_file(const char *path, struct tc_buf *out, char **why)
{
    const char *reason;
    char scratch[128];
    if (tc_file_read(path, MAX_FILE_BYTES, out, &reason, scratch) == 0)
        return 0;
    *why = tc_asprintf("cannot read %s: %s", path, reason);
    return TORC_EIO;
}

static int resource_load_file(struct tc_resource_set *s, const char *path, char **why)
{
    struct tc_buf text = {0};
    struct tc_validation_errors errors = {0};
    char *reason = NULL;
    json_t *doc = NULL;
    int rc = resource_read_file(path, &text, why);
    if (rc != 0)
        goto done;
    doc = tc_yaml_parse(tc_buf_slice(&text), &reason);
    s->file = tc_rstr_str(path);
    if (doc)
        tc_resource_set_add_json(s, doc, &errors);
    tc_rstr_unref(s->file);
    s->file = NULL;
    if (!doc || tc_validation_any(&errors)) {
        *why = tc_asprintf("%s: %s", path, doc ? tc_validation_text(&errors) : reason);
        rc = TORC_EPARSE;
    }
done:
    tc_free(reason);
    json_decref(doc);
    tc_validation_fini(&errors);
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

/* Loads the files of a folder in the order of their names; a folder without any is an error. */
static int resource_load_dir(struct tc_resource_set *s, const char *path, char **why)
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
            rc = resource_load_file(s, file, why);
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
        int rc = is_dir ? resource_load_dir(s, paths[i], why) : resource_load_file(s, paths[i], why);
        if (rc != 0)
            return rc;
    }
    return 0;
}
