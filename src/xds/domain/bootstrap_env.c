/* Checks of the bootstrap that need resolvers, credentials and certificate providers. A list of servers is refused only
 * if no server's URI is a valid target. Otherwise a server with an invalid URI counts as down (A71). */
#include "xds/domain/bootstrap_env.h"

#include "base/log.h"
#include "base/mem.h"
#include "creds/creds.h"
#include "creds/registry.h"
#include "xds/domain/cert_providers.h"

static bool creds_supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)config;
    return tc_creds_type_supported(type);
}

static bool known_scheme(void *arg, struct tc_slice scheme)
{
    (void)arg;
    return tc_resolver_find(scheme) != NULL;
}

static bool has_control(const char *text)
{
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return true;
    return false;
}

char *tc_bootstrap_env_uri_error(const char *uri)
{
    struct tc_target t;
    struct tc_buf authority = {0};
    char *why = NULL;
    if (has_control(uri))
        return tc_strdup("a control character is in it");
    if (tc_target_parse(&t, uri, known_scheme, NULL, &why) != 0)
        return why;
    if (strcmp(t.scheme, "xds") == 0) {
        why = tc_asprintf("target \"" TC_SHOWN "\": a control plane is not found by xDS itself", TC_SHOW(uri));
    } else {
        const struct tc_resolver_class *cls = tc_resolver_find(tc_slice_str(t.scheme));
        cls->authority(cls, &t, &authority, &why);
    }
    tc_buf_fini(&authority);
    tc_target_fini(&t);
    return why;
}

static bool any_server_usable(const struct tc_xds_server *servers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *why = tc_bootstrap_env_uri_error(servers[i].uri->data);
        if (!why)
            return true;
        tc_free(why);
    }
    return n == 0;
}

/* Adds an error for each server of the list, unless the list is empty or at least one URI is a valid target. */
static void check_servers(const struct tc_xds_server *servers, size_t n, struct tc_validation_errors *errors)
{
    if (any_server_usable(servers, n))
        return;
    for (size_t i = 0; i < n; i++) {
        char *why = tc_bootstrap_env_uri_error(servers[i].uri->data);
        tc_validation_push(errors, ".xds_servers[%zu].server_uri", i);
        tc_validation_add(errors, "%s", why);
        tc_validation_pop(errors);
        tc_free(why);
    }
}

static bool bootstrap_usable(const struct tc_xds_bootstrap *b, struct tc_status *error)
{
    struct tc_validation_errors errors = {0};
    check_servers(b->servers, b->n_servers, &errors);
    for (size_t i = 0; i < b->n_authorities; i++) {
        tc_validation_push_key(&errors, "authorities", b->authorities[i].name->data);
        check_servers(b->authorities[i].servers, b->authorities[i].n_servers, &errors);
        tc_validation_pop(&errors);
    }
    tc_cert_providers_check(b, &errors);
    bool ok = !tc_validation_any(&errors);
    if (!ok)
        *error = tc_status_make(TORC_STATUS_INVALID_ARGUMENT, TORC_LAYER_XDS, "%s%s%s", tc_rstr_cstr(b->origin),
                                b->origin ? ": " : "", tc_validation_text(&errors));
    tc_validation_fini(&errors);
    return ok;
}

struct tc_xds_bootstrap *tc_bootstrap_env_read(const struct tc_resolver_env *env, struct tc_status *error)
{
    struct tc_xds_bootstrap *b =
        env->xds_bootstrap_json
            ? tc_xds_bootstrap_parse(tc_slice_str(env->xds_bootstrap_json), creds_supported, NULL, error)
            : tc_xds_bootstrap_from_environment(creds_supported, NULL, error);
    if (b && !bootstrap_usable(b, error)) {
        tc_xds_bootstrap_unref(b);
        b = NULL;
    }
    if (b)
        TC_LOG(TC_LOG_XDS, TORC_LOG_DEBUG, "%s: %zu servers, the first %s, %zu authorities, node ID:%s",
               b->origin ? tc_rstr_cstr(b->origin) : "xDS bootstrap of the channel", b->n_servers,
               tc_rstr_cstr(b->servers[0].uri), b->n_authorities, tc_rstr_cstr(b->node_id));
    return b;
}
