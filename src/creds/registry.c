/* The types that a bootstrap may name. Each constructor gets its config, which is a JSON object, and adds validation
 * errors below "config". google_default and insecure ignore what is in the config, as in gRPC. */
#include "creds/registry.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "creds/call/jwt_file.h"
#include "creds/tls.h"

static torc_credentials *insecure_from_config(const json_t *config TC_UNUSED,
                                              struct tc_validation_errors *errors TC_UNUSED)
{
    return torc_credentials_insecure();
}

#if TC_WITH_TLS
/* A65 */
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

static torc_call_credentials *jwt_file_from_config(const json_t *config, struct tc_validation_errors *errors)
{
    const char *path = NULL;
    if (!tc_json_get_str(config, "jwt_token_file", &path, errors) || !path[0]) {
        if (!tc_validation_any(errors))
            tc_validation_add(errors, "jwt_token_file must name a file");
        return NULL;
    }
    return tc_call_creds_jwt_file(path);
}

/* A type has one of the two constructors. */
static const struct creds_type {
    const char *name;
    torc_credentials *(*of_channel)(const json_t *config, struct tc_validation_errors *errors);
    torc_call_credentials *(*of_call)(const json_t *config, struct tc_validation_errors *errors);
} types[] = {
    {.name = "insecure", .of_channel = insecure_from_config},
#if TC_WITH_TLS
    {.name = "tls", .of_channel = tls_from_config},
#endif
#if TC_WITH_HTTP_CREDENTIALS
    {.name = "google_default", .of_channel = google_default_from_config},
#endif
    {.name = "jwt_token_file", .of_call = jwt_file_from_config},
};

static const struct creds_type *type_find(const char *name, bool of_call)
{
    for (size_t i = 0; i < TC_ARRAY_LEN(types); i++)
        if (strcmp(types[i].name, name) == 0 && (types[i].of_call != NULL) == of_call)
            return &types[i];
    return NULL;
}

bool tc_creds_type_supported(const char *type)
{
    return type_find(type, false) != NULL;
}

bool tc_call_creds_type_supported(const char *type)
{
    return type_find(type, true) != NULL;
}

/* Makes channel credentials, or call credentials if `of_channel` is NULL. Exactly one of `of_channel` and `of_call` is
 * NULL; the other points to NULL at first, and still does after a failure. */
static void creds_make(const char *type, const char *config_json, torc_credentials **of_channel,
                       torc_call_credentials **of_call, char **why)
{
    char *reason = NULL;
    struct tc_validation_errors errors = {0};
    const struct creds_type *t = type_find(type, of_call != NULL);
    json_t *config = config_json ? tc_json_parse(tc_slice_str(config_json), &reason) : json_object();
    tc_validation_push(&errors, "config");
    if (!config || !json_is_object(config))
        tc_validation_add(&errors, "%s", reason ? reason : "must be an object");
    else if (!t)
        tc_validation_add(&errors, "unknown type");
    else if (of_call)
        *of_call = t->of_call(config, &errors);
    else
        *of_channel = t->of_channel(config, &errors);
    if (why && !(of_call ? (const void *)*of_call : (const void *)*of_channel))
        *why = tc_asprintf("%scredentials \"%s\": %s", of_call ? "call " : "", type, tc_validation_text(&errors));
    tc_validation_fini(&errors);
    tc_free(reason);
    json_decref(config);
}

torc_credentials *tc_creds_from_config(const char *type, const char *config_json, char **why)
{
    torc_credentials *c = NULL;
    creds_make(type, config_json, &c, NULL, why);
    return c;
}

torc_call_credentials *tc_call_creds_from_config(const char *type, const char *config_json, char **why)
{
    torc_call_credentials *c = NULL;
    creds_make(type, config_json, NULL, &c, why);
    return c;
}
