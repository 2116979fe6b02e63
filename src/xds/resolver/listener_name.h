/* The names that a target of the xds resolver stands for (A47). Pure functions, any thread. */
#ifndef TC_XDS_RESOLVER_LISTENER_NAME_H
#define TC_XDS_RESOLVER_LISTENER_NAME_H

#include "resolver/target.h"
#include "xds/bootstrap/bootstrap.h"

/* Appends the name of the listener resource for a target. Returns 0, or TORC_ENOTFOUND if the target names an authority
 * that the bootstrap does not have. */
int tc_listener_name(const struct tc_xds_bootstrap *bootstrap, const struct tc_target *target, struct tc_buf *out);
/* Appends the data plane's authority: the target's path, with characters that an authority cannot have
 * percent-encoded. */
void tc_data_plane_authority(const struct tc_target *target, struct tc_buf *out);

#endif
