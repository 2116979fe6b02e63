/* torc serve-xds --strict: decodes resources as a client does. */
#include <stdlib.h>
#include <string.h>

#include "api/builtin.h"
#include "cli.h"
#include "creds/creds.h"
#include "creds/registry.h"
#include "serve_xds.h"
#include "xds/resource/cluster.h"
#include "xds/resource/endpoints.h"
#include "xds/resource/listener.h"
#include "xds/resource/route_config.h"

static bool creds_supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)config;
    return tc_creds_type_supported(type);
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

int strict_init(struct strict *s, const char *command)
{
    struct tc_status error = {0};
    const char *variable = is_set("GRPC_XDS_BOOTSTRAP") ? "GRPC_XDS_BOOTSTRAP" : "GRPC_XDS_BOOTSTRAP_CONFIG";
    if (!is_set(variable))
        return 0;
    s->bootstrap = tc_xds_bootstrap_from_environment(creds_supported, NULL, &error);
    int rc = s->bootstrap ? 0
                          : cli_fail(command,
                                     "--strict: %s (--strict reads certificate providers from it; unset %s if the "
                                     "resources name none)",
                                     tc_status_text(&error), variable);
    tc_status_fini(&error);
    return rc;
}

void strict_fini(struct strict *s)
{
    if (s->bootstrap)
        tc_xds_bootstrap_unref(s->bootstrap);
    references_fini(&s->references);
}

/* If the errors are about a certificate provider, returns a hint that says where --strict looks for them; else "". */
static const char *hint_of(const char *errors)
{
    return strstr(errors, "unrecognized certificate provider instance name")
               ? " (--strict reads certificate providers from the bootstrap that GRPC_XDS_BOOTSTRAP names)"
               : "";
}

void strict_check(void *arg, struct tc_slice type_url, struct tc_slice name, struct tc_slice value,
                  struct tc_validation_errors *errors)
{
    static const struct tc_xds_resource_type *const types[] = {&tc_listener_type, &tc_route_config_type,
                                                               &tc_cluster_type, &tc_eds_type, &tc_eds_collection_type};
    struct strict *s = arg;
    const struct tc_xds_resource_type *type = NULL;
    for (size_t i = 0; i < TC_ARRAY_LEN(types); i++)
        if (tc_slice_eq_str(type_url, types[i]->type_url))
            type = types[i];
    if (!type) {
        tc_validation_add(errors, "\"%.*s\": gRPC clients do not request resources of type %.*s", (int)name.len,
                          name.data, (int)type_url.len, type_url.data);
        return;
    }
    const struct tc_xds_decode_context ctx = {
        .bootstrap = s->bootstrap,
        .server = s->bootstrap ? &s->bootstrap->servers[0] : NULL,
        .registries = tc_builtin_validation_context(),
    };
    struct tc_validation_errors found = {0};
    struct tc_rstr *own_name = NULL;
    struct tc_xds_resource *resource = type->decode(type, &ctx, value, &own_name, &found);
    if (!resource)
        tc_validation_add(errors, "%s \"%.*s\": %s%s", type->short_name, (int)name.len, name.data,
                          tc_validation_text(&found), hint_of(tc_validation_text(&found)));
    else if (own_name && !tc_slice_eq(tc_rstr_slice(own_name), name)) /* collections have no own_name */
        tc_validation_add(errors, "%s \"%.*s\": the resource itself has the name \"%s\"", type->short_name,
                          (int)name.len, name.data, tc_rstr_cstr(own_name));
    else
        references_add(&s->references, type, name, resource);
    tc_xds_resource_unref(resource);
    tc_rstr_unref(own_name);
    tc_validation_fini(&found);
}
