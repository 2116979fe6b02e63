/* The list xds_servers of the bootstrap, at its top level and in its authorities.
 *
 * The first supported type in channel_creds is used, and every supported entry of call_creds (A97). An unknown server
 * feature is ignored. Each server gets a key: a text that is equal for equal entries, whatever the order of members in
 * the file. The xDS client has one channel for each key (A47), and users of load reports name a server by its key. */
#include "base/json.h"
#include "xds/bootstrap/bootstrap_internal.h"

static int append_json_text(const char *data, size_t len, void *arg)
{
    tc_buf_append(arg, data, len);
    return 0;
}

/* Returns the key, a new string: uri, credentials with sorted members, features. */
static struct tc_rstr *server_key(const struct tc_xds_server *s)
{
    struct tc_buf b = {0};
    tc_buf_append_slice(&b, tc_rstr_slice(s->uri));
    tc_buf_printf(&b, "|%s|", tc_rstr_cstr(s->creds_type));
    if (s->creds_config)
        json_dump_callback(s->creds_config, append_json_text, &b, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    if (s->call_creds)
        json_dump_callback(s->call_creds, append_json_text, &b, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    tc_buf_printf(&b, "|%d%d%d%d%d", s->ignore_resource_deletion, s->fail_on_data_errors,
                  s->resource_timer_is_transient_error, s->incremental, s->trusted_xds_server);
    return tc_rstr_of_buf(&b);
}

/* Stores the first supported type (A27). If none is supported and the list has no other error, adds an error that names
 * all types of the list, or says that the list is empty. */
static void parse_creds(const json_t *list, const struct tc_xds_creds_check *creds, struct tc_xds_server *s,
                        struct tc_validation_errors *f)
{
    struct tc_buf unsupported = {0};
    size_t i, before = f->count;
    const json_t *entry;
    json_array_foreach(list, i, entry)
    {
        const char *type = NULL;
        const json_t *config = NULL;
        size_t at_entry = f->count;
        tc_validation_push(f, "[%zu]", i);
        if (!json_is_object(entry)) {
            tc_validation_add(f, "must be an object");
        } else {
            if (!tc_json_get_str(entry, "type", &type, f) && f->count == at_entry)
                tc_validation_add_at(f, ".type", "missing");
            tc_json_get_obj(entry, "config", &config, f);
        }
        tc_validation_pop(f);
        if (!type)
            continue;
        if (!s->creds_type && creds->supported(creds->arg, type, config)) {
            s->creds_type = tc_rstr_str(type);
            s->creds_config = config ? json_deep_copy(config) : NULL;
        }
        tc_buf_printf(&unsupported, "%s%s", unsupported.len ? ", " : "", type);
    }
    if (!s->creds_type && f->count == before) {
        if (unsupported.len)
            tc_validation_add(f, "none of these types is supported: %s", tc_buf_cstr(&unsupported));
        else
            tc_validation_add(f, "must not be empty");
    }
    tc_buf_fini(&unsupported);
}

/* A97: keeps the supported entries (type jwt_token_file), and checks their config. Skips entries of other types. */
static void parse_call_creds(const json_t *list, struct tc_xds_server *s, struct tc_validation_errors *f)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(list, i, entry)
    {
        const char *type = NULL, *path = NULL;
        const json_t *config = NULL;
        size_t before = f->count;
        tc_validation_push(f, "[%zu]", i);
        if (!json_is_object(entry))
            tc_validation_add(f, "must be an object");
        else if (!tc_json_get_str(entry, "type", &type, f) && f->count == before)
            tc_validation_add_at(f, ".type", "missing");
        if (type && strcmp(type, "jwt_token_file") == 0) {
            tc_json_get_obj(entry, "config", &config, f);
            tc_validation_push(f, ".config");
            if (config)
                tc_json_get_str(config, "jwt_token_file", &path, f);
            if (f->count == before && (!path || !path[0]))
                tc_validation_add_at(f, ".jwt_token_file", "must name a file");
            tc_validation_pop(f);
            if (!s->call_creds)
                s->call_creds = json_array();
            json_array_append_new(s->call_creds, json_deep_copy(entry));
        }
        tc_validation_pop(f);
    }
}

static void parse_features(const json_t *list, struct tc_xds_server *s, struct tc_validation_errors *f)
{
    const struct {
        const char *name;
        bool *flag;
    } known[] = {
        {"ignore_resource_deletion", &s->ignore_resource_deletion},
        {"fail_on_data_errors", &s->fail_on_data_errors},
        {"resource_timer_is_transient_error", &s->resource_timer_is_transient_error},
        {"resource_timer_is_transient_failure", &s->resource_timer_is_transient_error}, /* A88 has both names */
        {"torc.incremental_ads", &s->incremental},
        {"trusted_xds_server", &s->trusted_xds_server},
    };
    size_t i;
    const json_t *entry;
    json_array_foreach(list, i, entry)
    {
        const char *name = json_string_value(entry);
        if (!name) {
            tc_validation_push(f, "[%zu]", i);
            tc_validation_add(f, "must be a string");
            tc_validation_pop(f);
            continue;
        }
        for (size_t k = 0; k < TC_ARRAY_LEN(known); k++)
            if (strcmp(known[k].name, name) == 0)
                *known[k].flag = true;
    }
}

static void parse_server(const json_t *obj, const struct tc_xds_creds_check *creds, struct tc_xds_server *s,
                         struct tc_validation_errors *f)
{
    const char *uri = NULL;
    const json_t *list;
    if (!json_is_object(obj)) {
        tc_validation_add(f, "must be an object");
        return;
    }
    size_t before = f->count;
    if (!tc_json_get_str(obj, "server_uri", &uri, f) && f->count == before)
        tc_validation_add_at(f, ".server_uri", "missing");
    else if (uri && !*uri)
        tc_validation_add_at(f, ".server_uri", "must not be empty");
    s->uri = tc_rstr_str(uri ? uri : "");
    /* A27, first version: without channel_creds, the channel's own credentials. */
    if (tc_json_get_arr(obj, "channel_creds", &list, f)) {
        tc_validation_push(f, ".channel_creds");
        parse_creds(list, creds, s, f);
        tc_validation_pop(f);
    }
    if (tc_json_get_arr(obj, "call_creds", &list, f)) {
        tc_validation_push(f, ".call_creds");
        parse_call_creds(list, s, f);
        tc_validation_pop(f);
    }
    if (tc_json_get_arr(obj, "server_features", &list, f)) {
        tc_validation_push(f, ".server_features");
        parse_features(list, s, f);
        tc_validation_pop(f);
    }
    s->key = server_key(s);
}

struct tc_xds_server *tc_xds_servers_parse(const json_t *obj, const struct tc_xds_creds_check *creds, size_t *n,
                                           struct tc_validation_errors *f)
{
    const json_t *list;
    *n = 0;
    if (!tc_json_get_arr(obj, "xds_servers", &list, f))
        return NULL;
    tc_validation_push(f, ".xds_servers");
    size_t count = json_array_size(list);
    struct tc_xds_server *servers = NULL;
    if (count > TC_XDS_MAX_SERVERS) {
        tc_validation_add(f, "has %zu entries, at most %d are supported", count, TC_XDS_MAX_SERVERS);
    } else if (count) {
        servers = tc_calloc(count, sizeof(*servers));
        *n = count;
    }
    for (size_t i = 0; i < *n; i++) {
        tc_validation_push(f, "[%zu]", i);
        parse_server(json_array_get(list, i), creds, &servers[i], f);
        tc_validation_pop(f);
    }
    tc_validation_pop(f);
    return servers;
}

void tc_xds_servers_free(struct tc_xds_server *servers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tc_rstr_unref(servers[i].uri);
        tc_rstr_unref(servers[i].creds_type);
        tc_rstr_unref(servers[i].key);
        json_decref(servers[i].creds_config);
        json_decref(servers[i].call_creds);
    }
    tc_free(servers);
}
