/* The xDS bootstrap (A27): the addresses of control planes, and the identity of this client.
 *
 * Reads GRPC_XDS_BOOTSTRAP or GRPC_XDS_BOOTSTRAP_CONFIG, or a text that the caller gives, into one immutable object
 * that all threads share. Three parts have files of their own: lists of servers (bootstrap_server.c), the Node message
 * (node.c), the caps of "torc.limits" (limits.c). Every error is collected with its field path, so that one read shows
 * all of them.
 *
 * Unknown members are ignored, except in "torc.limits": a typing error there would silently leave a default in force.
 *
 * The section "sharing of clients" says which authorities are shared: one client then holds their resources for all
 * targets. "torc.share_client" decides for all authorities. Without it an authority is shared if it has nothing to fall
 * back to (A71) and its server stands in no list with fallbacks (A47). */
#include "xds/bootstrap/bootstrap.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "xds/bootstrap/bootstrap_internal.h"

#define MAX_FILE_BYTES (size_t)(16u << 20)

/* Returns member `key` as a new string; `otherwise`, which may be NULL, if the member is absent, null or not a string.
 * Adds an error if the member is neither a string nor null. */
static struct tc_rstr *json_get_rstr(const json_t *obj, const char *key, const char *otherwise,
                                     struct tc_validation_errors *f)
{
    const char *s = otherwise;
    tc_json_get_str(obj, key, &s, f);
    return s ? tc_rstr_str(s) : NULL;
}

static void parse_authority(const char *name, const json_t *obj, const struct tc_xds_creds_check *creds,
                            struct tc_xds_authority *a, struct tc_validation_errors *f)
{
    a->name = tc_rstr_str(name);
    if (!json_is_object(obj)) {
        tc_validation_add(f, "must be an object");
        return;
    }
    a->client_listener_template = json_get_rstr(obj, "client_listener_resource_name_template", NULL, f);
    a->servers = tc_xds_servers_parse(obj, creds, &a->n_servers, f);
    tc_json_get_bool(obj, "fallback_on_reachability_only", &a->fallback_on_reachability_only, f);
    if (a->client_listener_template) {
        /* A47: a template for an authority names a resource of that authority. */
        char *prefix = tc_asprintf("xdstp://%s/", name);
        if (!tc_slice_starts(tc_rstr_slice(a->client_listener_template), tc_slice_str(prefix)))
            tc_validation_add_at(f, ".client_listener_resource_name_template", "must start with \"%s\"", prefix);
        tc_free(prefix);
    }
}

static void parse_authorities(const json_t *obj, const struct tc_xds_creds_check *creds, struct tc_xds_bootstrap *b,
                              struct tc_validation_errors *f)
{
    const json_t *map;
    if (!tc_json_get_obj(obj, "authorities", &map, f) || json_object_size(map) == 0)
        return;
    b->authorities = tc_calloc(json_object_size(map), sizeof(*b->authorities));
    tc_validation_push(f, ".authorities");
    const char *name;
    json_t *entry;
    json_object_foreach((json_t *)map, name, entry)
    {
        tc_validation_push_key(f, "", name);
        parse_authority(name, entry, creds, &b->authorities[b->n_authorities++], f);
        tc_validation_pop(f);
    }
    tc_validation_pop(f);
}

static void parse_share(const json_t *obj, struct tc_xds_bootstrap *b, struct tc_validation_errors *f)
{
    bool share;
    if (tc_json_get_bool(obj, "torc.share_client", &share, f))
        b->share = share ? TC_XDS_SHARE_ALWAYS : TC_XDS_SHARE_NEVER;
}

static void parse_top(const json_t *root, const struct tc_xds_creds_check *creds, struct tc_xds_bootstrap *b,
                      struct tc_validation_errors *f)
{
    if (!json_is_object(root)) {
        tc_validation_add(f, "must be a JSON object");
        return;
    }
    size_t before = f->count;
    b->servers = tc_xds_servers_parse(root, creds, &b->n_servers, f);
    if (b->n_servers == 0 && f->count == before)
        tc_validation_add_at(f, ".xds_servers", "must have at least one entry");
    parse_authorities(root, creds, b, f);
    b->node = tc_xds_node_parse(root, &b->node_id, f);
    b->for_istiod = json_object_get(json_object_get(json_object_get(root, "node"), "metadata"), "GENERATOR") != NULL;
    b->server_listener_template = json_get_rstr(root, "server_listener_resource_name_template", NULL, f);
    b->client_default_listener_template =
        json_get_rstr(root, "client_default_listener_resource_name_template", "%s", f);
    tc_xds_limits_parse(root, &b->limits, f);
    parse_share(root, b, f);
    const json_t *providers;
    if (tc_json_get_obj(root, "certificate_providers", &providers, f))
        b->certificate_providers = json_deep_copy(providers);
}

struct tc_xds_bootstrap *tc_xds_bootstrap_check(struct tc_slice text, tc_xds_creds_supported_fn supported, void *arg,
                                                struct tc_validation_errors *f)
{
    char *why = NULL;
    json_t *root = tc_json_parse(text, &why);
    if (!root) {
        tc_validation_add(f, "not JSON: %s", why);
        tc_free(why);
        return NULL;
    }
    struct tc_xds_bootstrap *b = TC_NEW(struct tc_xds_bootstrap);
    tc_ref_init(&b->ref);
    parse_top(root, &(struct tc_xds_creds_check){supported, arg}, b, f);
    json_decref(root);
    if (!tc_validation_any(f))
        return b;
    tc_xds_bootstrap_unref(b);
    return NULL;
}

struct tc_xds_bootstrap *tc_xds_bootstrap_parse(struct tc_slice text, tc_xds_creds_supported_fn supported, void *arg,
                                                struct tc_status *error)
{
    struct tc_validation_errors f = {0};
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_check(text, supported, arg, &f);
    if (!b)
        *error = tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_XDS, "%s", tc_validation_text(&f));
    tc_validation_fini(&f);
    return b;
}

/* Reads a whole file into `out`, which the caller ends in any case. Returns false if the file cannot be read or is
 * blank, with the reason in *why, which is static or in `scratch`. */
static bool file_read_nonempty(const char *path, struct tc_buf *out, const char **why, char scratch[128])
{
    if (tc_file_read(path, MAX_FILE_BYTES, out, why, scratch) != 0)
        return false;
    bool empty = strspn(tc_buf_cstr(out), " \t\r\n") == out->len;
    if (empty)
        *why = "the file is empty";
    return !empty;
}

/* Parses a text; `origin` says in error texts where it came from. Takes over the reference of `origin`. */
static struct tc_xds_bootstrap *bootstrap_parse_from(struct tc_rstr *origin, struct tc_slice text,
                                                     tc_xds_creds_supported_fn supported, void *arg,
                                                     struct tc_status *error)
{
    struct tc_status inner = {0};
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_parse(text, supported, arg, &inner);
    if (b) {
        b->origin = origin;
        return b;
    }
    *error = tc_status_make(inner.code, TORC_LAYER_XDS, "%s: %s", origin->data, tc_status_text(&inner));
    tc_rstr_unref(origin);
    tc_status_fini(&inner);
    return NULL;
}

static struct tc_xds_bootstrap *bootstrap_from_file(const char *path, tc_xds_creds_supported_fn supported, void *arg,
                                                    struct tc_status *error)
{
    struct tc_buf text = {0};
    struct tc_xds_bootstrap *b = NULL;
    const char *why;
    char scratch[128];
    struct tc_rstr *origin = tc_rstr_printf("xDS bootstrap file \"" TC_SHOWN "\" (GRPC_XDS_BOOTSTRAP)", TC_SHOW(path));
    if (file_read_nonempty(path, &text, &why, scratch)) {
        b = bootstrap_parse_from(origin, tc_buf_slice(&text), supported, arg, error);
    } else {
        *error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS, "%s: %s", origin->data, why);
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
        return bootstrap_from_file(path, supported, arg, error);
    const char *text = getenv("GRPC_XDS_BOOTSTRAP_CONFIG");
    if (!text || !*text) {
        *error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                                "no xDS bootstrap: neither GRPC_XDS_BOOTSTRAP (a path) nor GRPC_XDS_BOOTSTRAP_CONFIG "
                                "(JSON) is set");
        return NULL;
    }
    return bootstrap_parse_from(tc_rstr_str("xDS bootstrap in GRPC_XDS_BOOTSTRAP_CONFIG"), tc_slice_str(text),
                                supported, arg, error);
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

static const struct tc_xds_server *server_find(const struct tc_xds_server *servers, size_t n, const struct tc_rstr *key)
{
    for (size_t i = 0; i < n; i++)
        if (tc_rstr_eq(servers[i].key, key))
            return &servers[i];
    return NULL;
}

const struct tc_xds_server *tc_xds_bootstrap_server(const struct tc_xds_bootstrap *b, const struct tc_rstr *key)
{
    const struct tc_xds_server *server = server_find(b->servers, b->n_servers, key);
    for (size_t i = 0; i < b->n_authorities && !server; i++)
        server = server_find(b->authorities[i].servers, b->authorities[i].n_servers, key);
    return server;
}

/* --- sharing of clients --- */

static bool servers_have_fallback(const struct tc_xds_server *servers, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!tc_rstr_eq(servers[i].key, servers[0].key))
            return true;
    return false;
}

/* Returns whether the list has fallbacks and contains this server. */
static bool servers_fall_back_with(const struct tc_xds_server *servers, size_t n, const struct tc_xds_server *server)
{
    return server_find(servers, n, server->key) && servers_have_fallback(servers, n);
}

/* A47: on one stream, a target asks a server for the resources of all authorities that name the server. So an authority
 * whose server is also in a list with fallbacks is not shared: each target's own client has that stream already. */
bool tc_xds_bootstrap_shares(const struct tc_xds_bootstrap *b, const struct tc_xds_authority *authority)
{
    bool own = authority && authority->n_servers;
    const struct tc_xds_server *servers = own ? authority->servers : b->servers;
    if (b->share != TC_XDS_SHARE_WITHOUT_FALLBACK)
        return b->share == TC_XDS_SHARE_ALWAYS;
    bool shares = !servers_have_fallback(servers, own ? authority->n_servers : b->n_servers) &&
                  !servers_fall_back_with(b->servers, b->n_servers, servers);
    for (size_t i = 0; i < b->n_authorities && shares; i++)
        shares = !servers_fall_back_with(b->authorities[i].servers, b->authorities[i].n_servers, servers);
    return shares;
}

bool tc_xds_bootstrap_shares_server(const struct tc_xds_bootstrap *b, const struct tc_xds_server *server)
{
    bool shares = tc_xds_bootstrap_shares(b, NULL) && server_find(b->servers, b->n_servers, server->key);
    for (size_t i = 0; i < b->n_authorities && !shares; i++)
        shares = tc_xds_bootstrap_shares(b, &b->authorities[i]) &&
                 server_find(b->authorities[i].servers, b->authorities[i].n_servers, server->key);
    return shares;
}

bool tc_xds_bootstrap_any(const struct tc_xds_bootstrap *b, bool shared)
{
    bool any = tc_xds_bootstrap_shares(b, NULL) == shared;
    for (size_t i = 0; i < b->n_authorities && !any; i++)
        any = tc_xds_bootstrap_shares(b, &b->authorities[i]) == shared;
    return any;
}

static bool any_server_without_credentials(const struct tc_xds_server *servers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!servers[i].creds_type)
            return true;
    return false;
}

bool tc_xds_bootstrap_uses_channel_credentials(const struct tc_xds_bootstrap *b)
{
    bool any = any_server_without_credentials(b->servers, b->n_servers);
    for (size_t i = 0; i < b->n_authorities && !any; i++)
        any = any_server_without_credentials(b->authorities[i].servers, b->authorities[i].n_servers);
    return any;
}
