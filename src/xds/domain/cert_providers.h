/* Certificate providers (A29): the instances that the bootstrap names, of which one kind is known, file_watcher. An
 * instance is one object for all clusters of a domain that refer to it. Loop thread only. */
#ifndef TC_XDS_DOMAIN_CERT_PROVIDERS_H
#define TC_XDS_DOMAIN_CERT_PROVIDERS_H

#include "base/list.h"
#include "creds/cert_files.h"
#include "xds/bootstrap/bootstrap.h"

struct tc_cert_provider {
    struct tc_lref ref;
    struct tc_link link; /* of the list that it is shared by */
    struct tc_cert_files *files;
};

bool tc_cert_plugin_known(void *arg, const char *plugin);
/* Returns whether the configs of known plugins can be used; adds errors at certificate_providers["instance"]. */
void tc_cert_providers_check(const struct tc_xds_bootstrap *b, struct tc_validation_errors *errors);

/* Returns the instance, with one more user; NULL with the reason in *why (tc_free) when there is no such instance. Two
 * instances that read the same files are one in the list `shared`; NULL: it is shared with nobody. */
struct tc_cert_provider *tc_cert_provider_get(struct tc_link *shared, const struct tc_xds_bootstrap *b,
                                              const char *instance, char **why);
void tc_cert_provider_unref(struct tc_cert_provider *p); /* NULL is allowed */

#endif
