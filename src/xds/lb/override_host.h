/* xds_override_host (A55 as changed by A60, A61 and A75): sends the RPCs of a session to the endpoint that the
 * session's cookie names, in whatever priority it is, if the endpoint can be used. All other RPCs go to the child.
 *
 * A session may need a subchannel that the child does not hold: the session's endpoint is draining, or is in a priority
 * that is not in use, or the child has released the subchannel. The policy then holds a subchannel of its own until no
 * session has used it for idle_timeout.
 *
 * The tree of endpoint lists that the policy gets has the draining endpoints in its root; the child never gets them.
 * Only connectivity and EDS health decide whether an endpoint can be used: an endpoint that outlier detection has
 * ejected keeps its sessions. Policies: loop thread only; configs: any thread. */
#ifndef TC_XDS_LB_OVERRIDE_HOST_H
#define TC_XDS_LB_OVERRIDE_HOST_H

#include "xds/lb/override_host_config.h"

enum { TC_OVERRIDE_SWEEP_MIN_MS = 5000 }; /* A75: sweeps are at least this far apart */

extern const struct tc_lb_factory tc_override_host_factory;

#endif
