#include "mesh/cert_providers.h"

#include "base/json.h"
#include "base/mem.h"

#define FILE_WATCHER "file_watcher"

bool tc_cert_plugin_known(void *arg, const char *plugin)
{
    (void)arg;
    return strcmp(plugin, FILE_WATCHER) == 0;
}

/* The paths borrow from the entry. */
static void read_config(const json_t *entry, struct tc_cert_paths *paths, struct tc_faults *faults)
{
    const json_t *config = NULL;
    size_t before = faults->count;
    if (!tc_json_get_obj(entry, "config", &config, faults)) {
        if (faults->count == before)
            tc_faults_add_at(faults, ".config", "field not present");
        return;
    }
    tc_faults_push(faults, ".config");
    tc_cert_paths_parse(config, paths, faults);
    tc_json_get_str(config, "spiffe_trust_bundle_map_file", &paths->spiffe_trust_bundle_map_file, faults);
    if (faults->count == before && !paths->ca_certificate_file && !paths->certificate_file &&
        !paths->spiffe_trust_bundle_map_file)
        tc_faults_add(faults, "at least one of certificate_file, ca_certificate_file and spiffe_trust_bundle_map_file "
                              "must be set");
    tc_faults_pop(faults);
}

static void check_entry(const json_t *entry, struct tc_faults *faults)
{
    const char *plugin = NULL;
    struct tc_cert_paths paths;
    size_t before = faults->count;
    if (!json_is_object(entry)) {
        tc_faults_add(faults, "must be an object");
        return;
    }
    if (!tc_json_get_str(entry, "plugin_name", &plugin, faults)) {
        if (faults->count == before)
            tc_faults_add_at(faults, ".plugin_name", "field not present");
    } else if (tc_cert_plugin_known(NULL, plugin)) { /* others are refused where they are referred to */
        read_config(entry, &paths, faults);
    }
}

void tc_cert_providers_check(const struct tc_xds_bootstrap *b, struct tc_faults *faults)
{
    const char *instance;
    json_t *entry;
    if (!b->certificate_providers)
        return;
    json_object_foreach(b->certificate_providers, instance, entry)
    {
        tc_faults_push(faults, "certificate_providers[\"%s\"]", instance);
        check_entry(entry, faults);
        tc_faults_pop(faults);
    }
}

static struct tc_cert_provider *find(struct tc_mesh_domain *d, struct tc_rstr *key)
{
    TC_LIST_FOREACH(it, tc_mesh_domain_cert_providers(d))
    {
        struct tc_cert_provider *p = TC_CONTAINER_OF(it, struct tc_cert_provider, link);
        if (tc_rstr_eq(tc_cert_files_key(p->files), key))
            return p;
    }
    return NULL;
}

struct tc_cert_provider *tc_cert_provider_get(struct tc_mesh_domain *d, const struct tc_xds_bootstrap *b,
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
    struct tc_faults faults;
    struct tc_cert_paths paths = {0};
    struct tc_cert_provider *p = NULL;
    tc_faults_init(&faults);
    read_config(entry, &paths, &faults);
    if (tc_faults_any(&faults)) {
        *why = tc_asprintf("certificate provider instance \"%s\": %s", instance, tc_faults_text(&faults));
        goto done;
    }
    struct tc_cert_files *files = tc_cert_files_new(&paths);
    p = d ? find(d, tc_cert_files_key(files)) : NULL;
    if (p) {
        tc_lref_inc(&p->ref);
        tc_cert_files_unref(files);
    } else {
        p = TC_NEW(struct tc_cert_provider);
        tc_lref_init(&p->ref);
        tc_list_init(&p->link);
        p->files = files;
        if (d)
            tc_list_append(tc_mesh_domain_cert_providers(d), &p->link);
    }
done:
    tc_faults_fini(&faults);
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
