/* xds_override_host (A55 as changed by A60, A61 and A75): sends the RPCs of a session to the endpoint that their cookie
 * names, wherever in the cluster it stands, and leaves all others to its child. What a session needs and the child does
 * not hold (an endpoint of a priority that is not in use, one that drains, one whose connection the child gave up) the
 * policy holds itself, until no session has used it for idle_timeout.
 *
 * The list of endpoints that it is given has at its top level those that drain; they are never the child's. Only
 * connectivity and EDS health decide on an endpoint: one that outlier detection has ejected keeps its sessions. */
#ifndef TC_LB_OVERRIDE_HOST_H
#define TC_LB_OVERRIDE_HOST_H

#include "lb/policy.h"

struct tc_override_host_settings {
    bool sessions;            /* false: no RPC has a session: the policy does nothing */
    unsigned statuses;        /* by bit of the health number (enum tc_health): endpoints that a session may have */
    uint64_t idle_timeout_ms; /* A75 */
};

/* {UNKNOWN, HEALTHY}, one hour. */
extern const struct tc_override_host_settings tc_override_host_defaults;

/* A75: sweeps are never closer than this. */
#define TC_OVERRIDE_SWEEP_MIN_MS 5000

extern const struct tc_lb_class tc_override_host_class;

/* A config with one reference; takes a reference of child. */
struct tc_lb_config *tc_override_host_config_new(const struct tc_override_host_settings *settings,
                                                 struct tc_lb_config *child);
/* Borrowed from the config. */
const struct tc_override_host_settings *tc_override_host_settings(const struct tc_lb_config *config);
struct tc_lb_config *tc_override_host_child(const struct tc_lb_config *config);

#endif
