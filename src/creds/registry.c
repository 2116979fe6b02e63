/* Credentials by a name and JSON config, as the bootstrap's channel_creds have them. */
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "creds/files.h"

static torc_credentials *make_insecure(const json_t *config, struct tc_faults *faults)
{
    (void)config;
    (void)faults;
    return torc_credentials_insecure();
}

void tc_cert_paths_parse(const json_t *config, struct tc_cert_paths *out, struct tc_faults *faults)
{
    const char *interval;
    *out = (struct tc_cert_paths){.refresh_interval_ns = TC_CERT_REFRESH_DEFAULT_NS};
    tc_json_get_str(config, "ca_certificate_file", &out->ca_certificate_file, faults);
    tc_json_get_str(config, "certificate_file", &out->certificate_file, faults);
    tc_json_get_str(config, "private_key_file", &out->private_key_file, faults);
    if (tc_json_get_str(config, "refresh_interval", &interval, faults) &&
        (tc_parse_duration_ns(tc_slice_str(interval), &out->refresh_interval_ns) != 0 || !out->refresh_interval_ns))
        tc_faults_add_at(faults, ".refresh_interval", "\"%s\" is no duration above zero", interval);
    if (!out->certificate_file != !out->private_key_file)
        tc_faults_add(faults, "certificate_file and private_key_file must both be set, or neither");
}

/* A65 */
static torc_credentials *make_tls(const json_t *config, struct tc_faults *faults)
{
    struct tc_cert_paths paths;
    tc_cert_paths_parse(config, &paths, faults);
    return tc_faults_any(faults) ? NULL : tc_credentials_tls_files(&paths);
}

static torc_credentials *make_google_default(const json_t *config, struct tc_faults *faults)
{
    char *why = NULL;
    (void)config;
    torc_credentials *c = torc_credentials_google_default(NULL, &why);
    if (!c)
        tc_faults_add(faults, "%s", why);
    tc_free(why);
    return c;
}

static const struct {
    const char *type;
    torc_credentials *(*make)(const json_t *config, struct tc_faults *faults);
} types[] = {{"insecure", make_insecure}, {"tls", make_tls}, {"google_default", make_google_default}};

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
    struct tc_faults faults;
    tc_faults_init(&faults);
    json_t *config = config_json ? tc_json_parse(tc_slice_str(config_json), &reason) : json_object();
    tc_faults_push(&faults, "config");
    if (!config || !json_is_object(config)) {
        tc_faults_add(&faults, "%s", reason ? reason : "must be an object");
    } else {
        size_t i = 0;
        while (i < TC_ARRAY_LEN(types) && strcmp(types[i].type, type) != 0)
            i++;
        if (i < TC_ARRAY_LEN(types))
            c = types[i].make(config, &faults);
        else
            tc_faults_add(&faults, "unknown type");
    }
    if (!c && why)
        *why = tc_asprintf("credentials \"%s\": %s", type, tc_faults_text(&faults));
    tc_faults_fini(&faults);
    tc_free(reason);
    json_decref(config);
    return c;
}
