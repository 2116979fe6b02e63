/* Certificate providers (A29): the instances that the bootstrap names. One plugin is known, file_watcher. All clusters
 * of a runtime that refer to an instance share one object. Loop thread only, except tc_cert_plugin_known and
 * tc_cert_providers_check, which are for any thread. */
#ifndef TC_XDS_DOMAIN_CERT_PROVIDERS_H
#define TC_XDS_DOMAIN_CERT_PROVIDERS_H

#include "base/list.h"
#include "creds/cert_files.h"
#include "xds/bootstrap/bootstrap.h"

struct tc_cert_provider {
    struct tc_lref ref;
    struct tc_link link;         /* in the list `shared` of tc_cert_provider_get, or in none */
    struct tc_cert_files *files; /* a reference */
};

/* tc_xds_registries.cert_plugin_known; `arg` is not used. */
bool tc_cert_plugin_known(void *arg, const char *plugin);
/* Adds an error at or below certificate_providers["instance"] for each instance that is not an object, has no
 * plugin_name, or is of a known plugin and has a config that cannot be used. */
void tc_cert_providers_check(const struct tc_xds_bootstrap *b, struct tc_validation_errors *errors);

/* Returns the provider of an instance, with one more reference: the provider in the list `shared` that reads the same
 * files at the same refresh interval, else a new one, which is added to the list. `shared` NULL: always a new one.
 * Returns NULL with the reason in *why (tc_free) if the bootstrap, which may be NULL, has no such instance, or its
 * plugin or config cannot be used. */
struct tc_cert_provider *tc_cert_provider_get(struct tc_link *shared, const struct tc_xds_bootstrap *b,
                                              const char *instance, char **why);
void tc_cert_provider_unref(struct tc_cert_provider *p); /* NULL is allowed */

#endif
