/* torc bootstrap --check: everything that is wrong with a bootstrap.
 *
 * A channel stops at the first stage with an error: JSON, then the fields (tc_xds_bootstrap_check), then the server
 * URIs and the certificate providers. This check runs every stage on any text that is JSON, so that one run shows all
 * faults. It also checks the config of TLS credentials, which a channel reads only when it makes the credentials. If
 * no fault is found, the channel's own reader (tc_bootstrap_env_read) decides.
 *
 * A member that is not in the tables of known members (top_members) is a warning: a channel ignores it silently. Other
 * warnings are about an unknown server feature, a file that this process cannot read, and a server that counts as down.
 *
 * The parameters `f` and `w` of the functions collect faults and warnings. Findings are copies and borrow nothing from
 * the text. */
#include "bootstrap/bootstrap.h"

#include <errno.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "creds/cert_files.h"
#include "creds/registry.h"
#include "xds/domain/bootstrap_env.h"
#include "xds/domain/cert_providers.h"

enum { MAX_TEXT = 16 * 1024 * 1024 };

/* --- findings --- */

static void add(struct bootstrap_list *list, struct tc_slice path, struct tc_slice text)
{
    *tc_vec_push(&list->all) = (struct bootstrap_finding){tc_slice_dup(path), tc_slice_dup(text)};
}

/* The `report` callback of a struct tc_validation_errors. arg: the struct bootstrap_list that gets the error. */
static void on_error(void *arg, struct tc_slice path, struct tc_slice text)
{
    struct bootstrap_list *list = arg;
    list->bytes += path.len + text.len;
    if (list->bytes > MAX_TEXT)
        list->left_out++;
    else
        add(list, path, text);
}

/* If findings were left out, adds a last one with their number. */
static void end(struct bootstrap_list *list)
{
    struct tc_buf text = {0};
    if (list->left_out) {
        tc_buf_printf(&text, "and %zu more, beyond %d MiB of text", list->left_out, MAX_TEXT / 1024 / 1024);
        add(list, tc_slice_str(""), tc_buf_slice(&text));
    }
    tc_buf_fini(&text);
}

static void list_fini(struct bootstrap_list *list)
{
    for (size_t i = 0; i < list->all.len; i++) {
        tc_free(list->all.data[i].path);
        tc_free(list->all.data[i].text);
    }
    tc_vec_fini(&list->all);
}

/* --- warnings --- */

/* CREDS: an object that Torc reads only if it supports the entry's type or plugin (reads_config). */
enum kind { VALUE, OBJECT, LIST, MAP, CREDS };

struct known {
    const char *name;
    enum kind kind;
    const struct known *members; /* of the object, of each item of the list, of each value of the map */
};

static const struct known file_members[] = {{"ca_certificate_file", VALUE, NULL},
                                            {"certificate_file", VALUE, NULL},
                                            {"private_key_file", VALUE, NULL},
                                            {"refresh_interval", VALUE, NULL},
                                            {"spiffe_trust_bundle_map_file", VALUE, NULL},
                                            {"jwt_token_file", VALUE, NULL},
                                            {NULL, VALUE, NULL}};
static const struct known creds_members[] = {
    {"type", VALUE, NULL}, {"config", CREDS, file_members}, {NULL, VALUE, NULL}};
static const struct known provider_members[] = {
    {"plugin_name", VALUE, NULL}, {"config", CREDS, file_members}, {NULL, VALUE, NULL}};
static const struct known server_members[] = {{"server_uri", VALUE, NULL},
                                              {"channel_creds", LIST, creds_members},
                                              {"call_creds", LIST, creds_members},
                                              {"server_features", VALUE, NULL},
                                              {NULL, VALUE, NULL}};
static const struct known authority_members[] = {{"xds_servers", LIST, server_members},
                                                 {"client_listener_resource_name_template", VALUE, NULL},
                                                 {"fallback_on_reachability_only", VALUE, NULL},
                                                 {NULL, VALUE, NULL}};
static const struct known locality_members[] = {{"region", VALUE, NULL},
                                                {"zone", VALUE, NULL},
                                                {"sub_zone", VALUE, NULL},
                                                {"subZone", VALUE, NULL},
                                                {NULL, VALUE, NULL}};
static const struct known node_members[] = {{"id", VALUE, NULL},
                                            {"cluster", VALUE, NULL},
                                            {"metadata", VALUE, NULL},
                                            {"locality", OBJECT, locality_members},
                                            {"user_agent_name", VALUE, NULL},
                                            {"userAgentName", VALUE, NULL},
                                            {"user_agent_version", VALUE, NULL},
                                            {"userAgentVersion", VALUE, NULL},
                                            {"build_version", VALUE, NULL},
                                            {"client_features", VALUE, NULL},
                                            {"clientFeatures", VALUE, NULL},
                                            {NULL, VALUE, NULL}};
static const struct known top_members[] = {{"xds_servers", LIST, server_members},
                                           {"node", OBJECT, node_members},
                                           {"authorities", MAP, authority_members},
                                           {"certificate_providers", MAP, provider_members},
                                           {"client_default_listener_resource_name_template", VALUE, NULL},
                                           {"server_listener_resource_name_template", VALUE, NULL},
                                           {"torc.limits", VALUE, NULL},
                                           {"torc.share_client", VALUE, NULL},
                                           {NULL, VALUE, NULL}};
static const char *const known_features[] = {
    "xds_v3",
    "ignore_resource_deletion",
    "fail_on_data_errors",
    "resource_timer_is_transient_error",
    "resource_timer_is_transient_failure",
    "torc.incremental_ads",
    "trusted_xds_server",
};

static void look_at(const json_t *obj, const struct known *known, struct tc_validation_errors *w);

static void look_at_file(const char *path, struct tc_validation_errors *w)
{
    if (access(path, R_OK) != 0)
        tc_validation_add(w, "%s cannot be read here: %s", path, strerror(errno));
}

static void look_at_features(const json_t *list, struct tc_validation_errors *w)
{
    const json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        const char *name = json_string_value(item);
        size_t k = 0;
        while (name && k < TC_ARRAY_LEN(known_features) && strcmp(known_features[k], name) != 0)
            k++;
        if (k < TC_ARRAY_LEN(known_features) || !name)
            continue;
        tc_validation_push(w, "[%zu]", i);
        tc_validation_add(w, "\"%s\" is not a server feature that Torc knows", name);
        tc_validation_pop(w);
    }
}

static void look_at_member(const struct known *k, const char *name, const json_t *value, struct tc_validation_errors *w)
{
    const char *key;
    json_t *item;
    size_t i, len = strlen(name);
    if (strcmp(name, "server_features") == 0)
        look_at_features(value, w);
    if (json_is_string(value) && len > 5 && strcmp(name + len - 5, "_file") == 0)
        look_at_file(json_string_value(value), w);
    if (k->kind == OBJECT || k->kind == CREDS)
        look_at(value, k->members, w);
    if (k->kind == LIST) {
        json_array_foreach(value, i, item)
        {
            tc_validation_push(w, "[%zu]", i);
            look_at(item, k->members, w);
            tc_validation_pop(w);
        }
    }
    if (k->kind == MAP) {
        json_object_foreach((json_t *)value, key, item)
        {
            tc_validation_push_key(w, "", key);
            look_at(item, k->members, w);
            tc_validation_pop(w);
        }
    }
}

/* Returns true if Torc reads the config of this entry of credentials or of providers. True also without a type and a
 * plugin name. */
static bool reads_config(const json_t *entry)
{
    const char *type = json_string_value(json_object_get(entry, "type"));
    const char *plugin = json_string_value(json_object_get(entry, "plugin_name"));
    return type ? tc_creds_type_supported(type) || tc_call_creds_type_supported(type)
                : !plugin || tc_cert_plugin_known(NULL, plugin);
}

/* Returns true if a path can show the name as ".name". */
static bool is_plain(const char *name)
{
    return *name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")];
}

static void look_at(const json_t *obj, const struct known *known, struct tc_validation_errors *w)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)obj, name, value)
    {
        const struct known *k = known;
        while (k->name && strcmp(k->name, name) != 0)
            k++;
        if (k->name || is_plain(name))
            tc_validation_push(w, ".%s", name);
        else
            tc_validation_push_key(w, "", name);
        if (!k->name)
            tc_validation_add(w, "not known, and ignored");
        else if (k->kind != CREDS || reads_config(obj))
            look_at_member(k, name, value, w);
        tc_validation_pop(w);
    }
}

/* --- faults --- */

static bool creds_supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)config;
    return tc_creds_type_supported(type);
}

/* Checks the config of the credentials that a channel uses: the first supported entry of the list. Only "tls" has a
 * config to check; it names files. */
static void check_creds(const json_t *list, struct tc_validation_errors *f)
{
    const json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        const char *type = json_string_value(json_object_get(item, "type"));
        const json_t *config = json_object_get(item, "config");
        struct tc_cert_paths paths;
        if (!type || !tc_creds_type_supported(type))
            continue;
        if (strcmp(type, "tls") == 0 && json_is_object(config)) {
            tc_validation_push(f, ".channel_creds[%zu].config", i);
            tc_cert_paths_parse(config, &paths, f);
            tc_validation_pop(f);
        }
        return;
    }
}

/* Checks the servers of a list. A server whose URI is not a target counts as down (A71). That is a fault if no server
 * of the list has a target, else a warning. The first pass counts the servers with a target. */
static void check_servers(const json_t *list, struct tc_validation_errors *f, struct tc_validation_errors *w)
{
    const json_t *server;
    size_t i, good = 0;
    for (int pass = 0; pass < 2; pass++) {
        json_array_foreach(list, i, server)
        {
            const char *uri = json_string_value(json_object_get(server, "server_uri"));
            char *why = uri && *uri ? tc_bootstrap_env_uri_error(uri) : NULL;
            struct tc_validation_errors *to = good ? w : f;
            good += pass == 0 && uri && *uri && !why;
            tc_validation_push(to, ".xds_servers[%zu]", i);
            if (pass && why)
                tc_validation_add_at(to, ".server_uri", good ? "%s; the server counts as down" : "%s", why);
            tc_validation_pop(to);
            tc_validation_push(f, ".xds_servers[%zu]", i);
            if (pass)
                check_creds(json_object_get(server, "channel_creds"), f);
            tc_validation_pop(f);
            tc_free(why);
        }
    }
}

static void check_authorities(const json_t *map, struct tc_validation_errors *f, struct tc_validation_errors *w)
{
    const char *name;
    json_t *authority;
    tc_validation_push_field(f, ".authorities");
    tc_validation_push_field(w, ".authorities");
    json_object_foreach((json_t *)map, name, authority)
    {
        tc_validation_push_key(f, "", name);
        tc_validation_push_key(w, "", name);
        check_servers(json_object_get(authority, "xds_servers"), f, w);
        tc_validation_pop(f);
        tc_validation_pop(w);
    }
    tc_validation_pop(f);
    tc_validation_pop(w);
}

static void check_rest(const json_t *root, struct tc_validation_errors *f, struct tc_validation_errors *w)
{
    json_t *providers = json_object_get(root, "certificate_providers");
    struct tc_xds_bootstrap only_providers = {.certificate_providers = json_is_object(providers) ? providers : NULL};
    check_servers(json_object_get(root, "xds_servers"), f, w);
    check_authorities(json_object_get(root, "authorities"), f, w);
    tc_cert_providers_check(&only_providers, f);
    look_at(root, top_members, w);
}

static char *summary_of(const struct tc_xds_bootstrap *b)
{
    struct tc_buf out = {0};
    tc_buf_printf(&out, "%zu server%s, the first " TC_SHOWN " (%s)", b->n_servers, b->n_servers == 1 ? "" : "s",
                  TC_SHOW(b->servers[0].uri->data),
                  b->servers[0].creds_type ? b->servers[0].creds_type->data : "the channel's credentials");
    if (b->n_authorities)
        tc_buf_printf(&out, ", %zu authorit%s", b->n_authorities, b->n_authorities == 1 ? "y" : "ies");
    tc_buf_printf(&out, ", node \"" TC_SHOWN "\"", TC_SHOW(tc_rstr_cstr(b->node_id)));
    return tc_buf_take(&out);
}

/* Reads the text as a channel does. Stores the summary, or adds the channel's error to *f. */
static void read_as_channel(struct tc_slice text, struct bootstrap_findings *out, struct tc_validation_errors *f)
{
    struct tc_status error = {0};
    char *copy = tc_slice_dup(text);
    struct tc_resolver_env env = {.xds_bootstrap_json = copy};
    struct tc_xds_bootstrap *b = tc_bootstrap_env_read(&env, &error);
    if (b)
        out->summary = summary_of(b);
    else
        tc_validation_add(f, "%s", tc_status_text(&error));
    tc_xds_bootstrap_unref(b);
    tc_status_fini(&error);
    tc_free(copy);
}

void bootstrap_check(struct tc_slice text, struct bootstrap_findings *out)
{
    *out = (struct bootstrap_findings){0};
    struct tc_validation_errors f = {.report = on_error, .arg = &out->faults};
    struct tc_validation_errors w = {.report = on_error, .arg = &out->warnings};
    if (memchr(text.data ? text.data : "", '\0', text.len)) {
        tc_validation_add(&f, "not JSON: it has a NUL");
    } else {
        tc_xds_bootstrap_unref(tc_xds_bootstrap_check(text, creds_supported, NULL, &f));
        json_t *root = tc_json_parse(text, NULL);
        if (root)
            check_rest(root, &f, &w);
        json_decref(root);
        if (!f.count)
            read_as_channel(text, out, &f);
    }
    end(&out->faults);
    end(&out->warnings);
    tc_validation_fini(&f);
    tc_validation_fini(&w);
}

void bootstrap_findings_fini(struct bootstrap_findings *f)
{
    list_fini(&f->faults);
    list_fini(&f->warnings);
    tc_free(f->summary);
}
