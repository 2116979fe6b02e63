/* The types that a bootstrap may name. Each constructor gets its config, and adds validation errors below "config".
 * google_default and insecure have no config of their own; whatever is in it is ignored, as gRPC does. */
#include "creds/registry.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "creds/tls.h"

static torc_credentials *insecure_from_config(const json_t *config TC_UNUSED,
                                              struct tc_validation_errors *errors TC_UNUSED)
{
    return torc_credentials_insecure();
}

#if TC_WITH_TLS
/* A65: the files of the config, read again when they change. */
static torc_credentials *tls_from_config(const json_t *config, struct tc_validation_errors *errors)
{
    struct tc_cert_paths paths;
    tc_cert_paths_parse(config, &paths, errors);
    return tc_validation_any(errors) ? NULL : tc_credentials_tls_files(&paths);
}

#endif

#if TC_WITH_HTTP_CREDENTIALS
static torc_credentials *google_default_from_config(const json_t *config TC_UNUSED, struct tc_validation_errors *errors)
{
    torc_error *error = NULL;
    torc_credentials *c = torc_credentials_google_default(NULL, &error);
    if (!c)
        tc_validation_add(errors, "%s", torc_error_text(error));
    torc_error_free(error);
    return c;
}

#endif

static const struct {
    const char *type;
    torc_credentials *(*make)(const json_t *config, struct tc_validation_errors *errors);
} types[] = {
    {"insecure", insecure_from_config},
#if TC_WITH_TLS
    {"tls", tls_from_config},
#endif
#if TC_WITH_HTTP_CREDENTIALS
    {"google_default", google_default_from_config},
#endif
};

bool tc_creds_type_supported(const char *type)
{
    for (size_t i = 0; i < TC_ARRAY_LEN(types); i++)
        if (strcmp(types[i].type, type) == 0)
            return true;
    return false;
}

torc_credentials *tc_creds_from_config(const char *type, const char *config_json, char **why)
{
    torc_credentials *c = NULL;
    char *reason = NULL;
    struct tc_validation_errors errors = {0};
    json_t *config = config_json ? tc_json_parse(tc_slice_str(config_json), &reason) : json_object();
    tc_validation_push(&errors, "config");
    if (!config || !json_is_object(config)) {
        tc_validation_add(&errors, "%s", reason ? reason : "must be an object");
    } else {
        size_t i = 0;
        while (i < TC_ARRAY_LEN(types) && strcmp(types[i].type, type) != 0)
            i++;
        if (i < TC_ARRAY_LEN(types))
            c = types[i].make(config, &errors);
        else
            tc_validation_add(&errors, "unknown type");
    }
    if (!c && why)
        *why = tc_asprintf("credentials \"%s\": %s", type, tc_validation_text(&errors));
    tc_validation_fini(&errors);
    tc_free(reason);
    json_decref(config);
    return c;
}
