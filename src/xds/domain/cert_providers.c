/* Certificate provider instances (A29).
 *
 * The bootstrap's certificate_providers name instances; Cluster resources refer to an instance by name. The one plugin
 * is file_watcher. An instance is checked three times: with the bootstrap (tc_cert_providers_check: configs of known
 * plugins must be usable), with a Cluster that names it (transport_socket_decoder.c: the instance must exist and its
 * plugin be known), and on use (tc_cert_provider_get).
 *
 * Instances that read the same files at the same refresh interval are one object in the list of the xDS client pool, so
 * that the files are read once for all clusters of the runtime. The list holds no reference: the last user of an object
 * takes it off the list and frees it. */
#include "xds/domain/cert_providers.h"

#include "base/json.h"
#include "base/mem.h"

#define FILE_WATCHER "file_watcher"

bool tc_cert_plugin_known(void *arg, const char *plugin)
{
    (void)arg;
    return strcmp(plugin, FILE_WATCHER) == 0;
}

/* Stores the paths, borrowed from the entry. Adds errors if the config cannot be used; *paths may then be unset. */
static void provider_read_config(const json_t *entry, struct tc_cert_paths *paths, struct tc_validation_errors *errors)
{
    const json_t *config = NULL;
    size_t before = errors->count;
    if (!tc_json_get_obj(entry, "config", &config, errors)) {
        if (errors->count == before)
            tc_validation_add_at(errors, ".config", "field not present");
        return;
    }
    tc_validation_push(errors, ".config");
    tc_cert_paths_parse(config, paths, errors);
    tc_json_get_str(config, "spiffe_trust_bundle_map_file", &paths->spiffe_trust_bundle_map_file, errors);
    if (errors->count == before && !paths->ca_certificate_file && !paths->certificate_file &&
        !paths->spiffe_trust_bundle_map_file)
        tc_validation_add(errors,
                          "at least one of certificate_file, ca_certificate_file and spiffe_trust_bundle_map_file "
                          "must be set");
    tc_validation_pop(errors);
}

static void provider_check_entry(const json_t *entry, struct tc_validation_errors *errors)
{
    const char *plugin = NULL;
    struct tc_cert_paths paths;
    size_t before = errors->count;
    if (!json_is_object(entry)) {
        tc_validation_add(errors, "must be an object");
        return;
    }
    if (!tc_json_get_str(entry, "plugin_name", &plugin, errors)) {
        if (errors->count == before)
            tc_validation_add_at(errors, ".plugin_name", "field not present");
    } else if (tc_cert_plugin_known(NULL, plugin)) { /* an unknown plugin is refused where a Cluster refers to it */
        provider_read_config(entry, &paths, errors);
    }
}

void tc_cert_providers_check(const struct tc_xds_bootstrap *b, struct tc_validation_errors *errors)
{
    const char *instance;
    json_t *entry;
    if (!b->certificate_providers)
        return;
    tc_validation_push_field(errors, ".certificate_providers");
    json_object_foreach(b->certificate_providers, instance, entry)
    {
        tc_validation_push_key(errors, "", instance);
        provider_check_entry(entry, errors);
        tc_validation_pop(errors);
    }
    tc_validation_pop(errors);
}

static struct tc_cert_provider *provider_find(const struct tc_link *shared, struct tc_rstr *key)
{
    TC_LIST_FOREACH(it, shared)
    {
        struct tc_cert_provider *p = TC_CONTAINER_OF(it, struct tc_cert_provider, link);
        if (tc_rstr_eq(tc_cert_files_key(p->files), key))
            return p;
    }
    return NULL;
}

struct tc_cert_provider *tc_cert_provider_get(struct tc_link *shared, const struct tc_xds_bootstrap *b,
                                              const char *instance, char **why)
{
    const json_t *entry = b && b->certificate_providers ? json_object_get(b->certificate_providers, instance) : NULL;
    const char *plugin = entry ? json_string_value(json_object_get(entry, "plugin_name")) : NULL;
    if (!entry || !plugin || !tc_cert_plugin_known(NULL, plugin)) {
        *why = entry ? tc_asprintf("certificate provider instance \"%s\": plugin \"%s\" is not supported", instance,
                                   plugin ? plugin : "")
                     : tc_asprintf("certificate provider instance \"%s\" is not in the xDS bootstrap", instance);
        return NULL;
    }
    struct tc_validation_errors errors = {0};
    struct tc_cert_paths paths = {0};
    struct tc_cert_provider *p = NULL;
    provider_read_config(entry, &paths, &errors);
    if (tc_validation_any(&errors)) {
        *why = tc_asprintf("certificate provider instance \"%s\": %s", instance, tc_validation_text(&errors));
        goto done;
    }
    struct tc_cert_files *files = tc_cert_files_new(&paths);
    p = shared ? provider_find(shared, tc_cert_files_key(files)) : NULL;
    if (p) {
        tc_lref_inc(&p->ref);
        tc_cert_files_unref(files);
    } else {
        p = TC_NEW(struct tc_cert_provider);
        tc_lref_init(&p->ref);
        tc_list_init(&p->link);
        p->files = files;
        if (shared)
            tc_list_append(shared, &p->link);
    }
done:
    tc_validation_fini(&errors);
    return p;
}

void tc_cert_provider_unref(struct tc_cert_provider *p)
{
    if (!p || !tc_lref_dec(&p->ref))
        return;
    tc_list_remove(&p->link);
    tc_cert_files_unref(p->files);
    tc_free(p);
}
