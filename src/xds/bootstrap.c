#include "xds/bootstrap.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "xds/bootstrap_parse.h"

#define MAX_FILE_BYTES (size_t)(16u << 20)

/* Member `key` as a shared string, or the default, or NULL. */
static struct tc_rstr *get_text(const json_t *obj, const char *key, const char *otherwise, struct tc_faults *f)
{
    const char *s = otherwise;
    tc_json_get_str(obj, key, &s, f);
    return s ? tc_rstr_str(s) : NULL;
}

static void parse_authority(const char *name, const json_t *obj, const struct tc_xds_creds_check *creds,
                            struct tc_xds_authority *a, struct tc_faults *f)
{
    a->name = tc_rstr_str(name);
    if (!json_is_object(obj)) {
        tc_faults_add(f, "must be an object");
        return;
    }
    a->client_listener_template = get_text(obj, "client_listener_resource_name_template", NULL, f);
    a->servers = tc_xds_servers_parse(obj, creds, &a->n_servers, f);
    tc_json_get_bool(obj, "fallback_on_reachability_only", &a->fallback_on_reachability_only, f);
    if (a->client_listener_template) {
        /* A47 */
        char *prefix = tc_asprintf("xdstp://%s/", name);
        if (!tc_slice_starts(tc_rstr_slice(a->client_listener_template), tc_slice_str(prefix)))
            tc_faults_add_at(f, ".client_listener_resource_name_template", "must start with \"%s\"", prefix);
        tc_free(prefix);
    }
}

static void parse_authorities(const json_t *obj, const struct tc_xds_creds_check *creds, struct tc_xds_bootstrap *b,
                              struct tc_faults *f)
{
    const json_t *map;
    if (!tc_json_get_obj(obj, "authorities", &map, f) || json_object_size(map) == 0)
        return;
    b->authorities = tc_calloc(json_object_size(map), sizeof(*b->authorities));
    tc_faults_push(f, ".authorities");
    const char *name;
    json_t *entry;
    json_object_foreach((json_t *)map, name, entry)
    {
        tc_faults_push(f, "[\"%s\"]", name);
        parse_authority(name, entry, creds, &b->authorities[b->n_authorities++], f);
        tc_faults_pop(f);
    }
    tc_faults_pop(f);
}

static void parse_top(const json_t *root, const struct tc_xds_creds_check *creds, struct tc_xds_bootstrap *b,
                      struct tc_faults *f)
{
    if (!json_is_object(root)) {
        tc_faults_add(f, "must be a JSON object");
        return;
    }
    size_t before = f->count;
    b->servers = tc_xds_servers_parse(root, creds, &b->n_servers, f);
    if (b->n_servers == 0 && f->count == before)
        tc_faults_add_at(f, ".xds_servers", "must have at least one entry");
    parse_authorities(root, creds, b, f);
    b->node = tc_xds_node_parse(root, &b->node_id, f);
    b->server_listener_template = get_text(root, "server_listener_resource_name_template", NULL, f);
    b->client_default_listener_template = get_text(root, "client_default_listener_resource_name_template", "%s", f);
    tc_xds_limits_parse(root, &b->limits, f);
    const json_t *providers;
    if (tc_json_get_obj(root, "certificate_providers", &providers, f))
        b->certificate_providers = json_deep_copy(providers);
}

struct tc_xds_bootstrap *tc_xds_bootstrap_parse(struct tc_slice text, tc_xds_creds_supported_fn supported, void *arg,
                                                struct tc_status *error)
{
    char *why = NULL;
    json_t *root = tc_json_parse(text, &why);
    if (!root) {
        *error = tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "not JSON: %s", why);
        tc_free(why);
        return NULL;
    }
    struct tc_xds_bootstrap *b = TC_NEW(struct tc_xds_bootstrap);
    struct tc_faults f;
    tc_ref_init(&b->ref);
    tc_faults_init(&f);
    parse_top(root, &(struct tc_xds_creds_check){supported, arg}, b, &f);
    json_decref(root);
    if (tc_faults_any(&f)) {
        *error = tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "%s", tc_faults_text(&f));
        tc_xds_bootstrap_unref(b);
        b = NULL;
    }
    tc_faults_fini(&f);
    return b;
}

/* Reads a whole file; false with a reason. */
static bool read_file(const char *path, struct tc_buf *out, const char **why, char scratch[128])
{
    if (tc_file_read(path, MAX_FILE_BYTES, out, why, scratch) != 0)
        return false;
    bool empty = strspn(tc_buf_cstr(out), " \t\r\n") == out->len;
    if (empty)
        *why = "the file is empty";
    return !empty;
}

/* Takes over the origin. */
static struct tc_xds_bootstrap *parse_from(struct tc_rstr *origin, struct tc_slice text,
                                           tc_xds_creds_supported_fn supported, void *arg, struct tc_status *error)
{
    struct tc_status inner = {0};
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_parse(text, supported, arg, &inner);
    if (b) {
        b->origin = origin;
        return b;
    }
    *error = tc_status_make(inner.code, "%s: %s", origin->data, tc_status_text(&inner));
    tc_rstr_unref(origin);
    tc_status_fini(&inner);
    return NULL;
}

static struct tc_xds_bootstrap *from_file(const char *path, tc_xds_creds_supported_fn supported, void *arg,
                                          struct tc_status *error)
{
    struct tc_buf text = {0};
    struct tc_xds_bootstrap *b = NULL;
    const char *why;
    char scratch[128];
    struct tc_rstr *origin = tc_rstr_printf("xDS bootstrap file \"" TC_SHOWN "\" (GRPC_XDS_BOOTSTRAP)", TC_SHOW(path));
    if (read_file(path, &text, &why, scratch)) {
        b = parse_from(origin, tc_buf_slice(&text), supported, arg, error);
    } else {
        *error = tc_status_make(TORC_STATUS_UNAVAILABLE, "%s: %s", origin->data, why);
        tc_rstr_unref(origin);
    }
    tc_buf_fini(&text);
    return b;
}

struct tc_xds_bootstrap *tc_xds_bootstrap_from_environment(tc_xds_creds_supported_fn supported, void *arg,
                                                           struct tc_status *error)
{
    const char *path = getenv("GRPC_XDS_BOOTSTRAP");
    if (path && *path)
        return from_file(path, supported, arg, error);
    const char *text = getenv("GRPC_XDS_BOOTSTRAP_CONFIG");
    if (!text || !*text) {
        *error = tc_status_make(TORC_STATUS_UNAVAILABLE,
                                "no xDS bootstrap: neither GRPC_XDS_BOOTSTRAP (a path) nor GRPC_XDS_BOOTSTRAP_CONFIG "
                                "(JSON) is set");
        return NULL;
    }
    return parse_from(tc_rstr_str("xDS bootstrap in GRPC_XDS_BOOTSTRAP_CONFIG"), tc_slice_str(text), supported, arg,
                      error);
}

struct tc_xds_bootstrap *tc_xds_bootstrap_ref(struct tc_xds_bootstrap *b)
{
    if (b)
        tc_ref_inc(&b->ref);
    return b;
}

void tc_xds_bootstrap_unref(struct tc_xds_bootstrap *b)
{
    if (!b || !tc_ref_dec(&b->ref))
        return;
    tc_rstr_unref(b->origin);
    tc_xds_servers_free(b->servers, b->n_servers);
    for (size_t i = 0; i < b->n_authorities; i++) {
        tc_rstr_unref(b->authorities[i].name);
        tc_rstr_unref(b->authorities[i].client_listener_template);
        tc_xds_servers_free(b->authorities[i].servers, b->authorities[i].n_servers);
    }
    tc_free(b->authorities);
    tc_rstr_unref(b->node_id);
    tc_rstr_unref(b->node);
    tc_rstr_unref(b->server_listener_template);
    tc_rstr_unref(b->client_default_listener_template);
    json_decref(b->certificate_providers);
    tc_free(b);
}

const struct tc_xds_authority *tc_xds_bootstrap_authority(const struct tc_xds_bootstrap *b, struct tc_slice name)
{
    for (size_t i = 0; i < b->n_authorities; i++)
        if (tc_slice_eq(tc_rstr_slice(b->authorities[i].name), name))
            return &b->authorities[i];
    return NULL;
}
