/* Certificate providers (A29): the instances that the bootstrap names, of which one kind is known, file_watcher. An
 * instance is one object for all clusters of a domain that refer to it. Loop thread only. */
#ifndef TC_MESH_CERT_PROVIDERS_H
#define TC_MESH_CERT_PROVIDERS_H

#include "creds/cert_files.h"
#include "mesh/domain.h"
#include "xds/bootstrap.h"

struct tc_cert_provider {
    struct tc_lref ref;
    struct tc_link link; /* the domain's */
    struct tc_cert_files *files;
};

bool tc_cert_plugin_known(void *arg, const char *plugin);
/* Whether the configs of known plugins can be used; adds faults at certificate_providers["instance"]. */
void tc_cert_providers_check(const struct tc_xds_bootstrap *b, struct tc_faults *faults);

/* The instance, with one more user; NULL with the reason in *why (tc_free) when there is no such instance. Two
 * instances that read the same files are one. NULL domain: it is shared with nobody. */
struct tc_cert_provider *tc_cert_provider_get(struct tc_mesh_domain *d, const struct tc_xds_bootstrap *b,
                                              const char *instance, char **why);
void tc_cert_provider_unref(struct tc_cert_provider *p); /* NULL is allowed */

#endif
