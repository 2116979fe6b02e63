#include "creds/call/registry.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "creds/call/jwt_file.h"

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

bool tc_call_creds_type_supported(const char *type)
{
    return strcmp(type, "jwt_token_file") == 0;
}

torc_call_credentials *tc_call_creds_from_config(const char *type, const char *config_json, char **why)
{
    torc_call_credentials *c = NULL;
    char *reason = NULL;
    struct tc_validation_errors errors = {0};
    json_t *config = config_json ? tc_json_parse(tc_slice_str(config_json), &reason) : json_object();
    tc_validation_push(&errors, "config");
    if (!json_is_object(config))
        tc_validation_add(&errors, "%s", reason ? reason : "must be an object");
    else if (!tc_call_creds_type_supported(type))
        tc_validation_add(&errors, "unknown type");
    else
        c = jwt_file_from_config(config, &errors);
    if (!c && why)
        *why = tc_asprintf("call credentials \"%s\": %s", type, tc_validation_text(&errors));
    tc_validation_fini(&errors);
    tc_free(reason);
    json_decref(config);
    return c;
}
