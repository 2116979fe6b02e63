/* Reads the bootstrap of a channel, and checks the parts that xds/bootstrap cannot: credential types, certificate
 * providers, and the servers' targets. Any thread. */
#ifndef TC_XDS_DOMAIN_BOOTSTRAP_ENV_H
#define TC_XDS_DOMAIN_BOOTSTRAP_ENV_H

#include "resolver/resolver.h"
#include "xds/bootstrap/bootstrap.h"

/* Reads and checks the bootstrap: from env->xds_bootstrap_json, or from the process's environment if that is NULL.
 * Returns an object with one reference. On failure returns NULL with *error: UNAVAILABLE if there is no text or the
 * file cannot be read, INVALID_ARGUMENT if the text is invalid or a check fails. */
struct tc_xds_bootstrap *tc_bootstrap_env_read(const struct tc_resolver_env *env, struct tc_status *error);
/* Returns why this URI cannot be the target of a control plane (tc_free); NULL: it can be. */
char *tc_bootstrap_env_uri_error(const char *uri);

#endif
