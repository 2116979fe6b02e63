/* The bootstrap of a channel (declared in mesh/domain.h), with what src/xds cannot check: credentials, certificate
 * providers, and the servers' targets. */
#include "base/mem.h"
#include "creds/creds.h"
#include "mesh/cert_providers.h"
#include "mesh/domain.h"

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

char *tc_domain_uri_fault(const char *uri)
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

static bool any_usable(const struct tc_xds_server *servers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *why = tc_domain_uri_fault(servers[i].uri->data);
        if (!why)
            return true;
        tc_free(why);
    }
    return n == 0;
}

/* One that is no target counts as a server that is down (A71), as long as there is another. */
static void check_servers(const struct tc_xds_server *servers, size_t n, struct tc_faults *faults)
{
    if (any_usable(servers, n))
        return;
    for (size_t i = 0; i < n; i++) {
        char *why = tc_domain_uri_fault(servers[i].uri->data);
        tc_faults_push(faults, ".xds_servers[%zu].server_uri", i);
        tc_faults_add(faults, "%s", why);
        tc_faults_pop(faults);
        tc_free(why);
    }
}

static bool usable(const struct tc_xds_bootstrap *b, struct tc_status *error)
{
    struct tc_faults faults;
    tc_faults_init(&faults);
    check_servers(b->servers, b->n_servers, &faults);
    for (size_t i = 0; i < b->n_authorities; i++) {
        tc_faults_push(&faults, "authorities[\"%s\"]", b->authorities[i].name->data);
        check_servers(b->authorities[i].servers, b->authorities[i].n_servers, &faults);
        tc_faults_pop(&faults);
    }
    tc_cert_providers_check(b, &faults);
    bool ok = !tc_faults_any(&faults);
    if (!ok)
        *error = tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "%s%s%s", tc_rstr_cstr(b->origin), b->origin ? ": " : "",
                                tc_faults_text(&faults));
    tc_faults_fini(&faults);
    return ok;
}

struct tc_xds_bootstrap *tc_domain_bootstrap(const struct tc_resolver_env *env, struct tc_status *error)
{
    struct tc_xds_bootstrap *b =
        env->xds_bootstrap_json
            ? tc_xds_bootstrap_parse(tc_slice_str(env->xds_bootstrap_json), creds_supported, NULL, error)
            : tc_xds_bootstrap_from_environment(creds_supported, NULL, error);
    if (b && !usable(b, error)) {
        tc_xds_bootstrap_unref(b);
        b = NULL;
    }
    return b;
}
