/* The config of xds_override_host: A55's OverrideHostLoadBalancingPolicyConfig with A75's idle timeout, from JSON and
 * from code. Immutable and counted, any thread. */
#ifndef TC_XDS_LB_OVERRIDE_HOST_CONFIG_H
#define TC_XDS_LB_OVERRIDE_HOST_CONFIG_H

#include "lb/policy.h"

struct tc_override_host_settings {
    bool sessions;            /* false: no RPC has a session, and the policy only withholds draining endpoints */
    unsigned statuses;        /* bits by enum tc_health: endpoints that a session may use */
    uint64_t idle_timeout_ms; /* A75: how long the policy keeps a subchannel of its own that no session uses */
};

struct tc_override_host_config {
    struct tc_lb_config base; /* first */
    struct tc_override_host_settings settings;
    struct tc_lb_config *child; /* a reference; never NULL */
};

static inline const struct tc_override_host_config *tc_override_host_config(const struct tc_lb_config *config)
{
    return TC_CONTAINER_OF(config, const struct tc_override_host_config, base);
}

/* No sessions, statuses UNKNOWN and HEALTHY, and an idle timeout of one hour. */
extern const struct tc_override_host_settings tc_override_host_defaults;

/* Returns a config for `factory`, which is xds_override_host's, with one reference. Copies the settings. Takes a
 * reference of `child`, which is not NULL. */
struct tc_lb_config *tc_override_config_new(const struct tc_lb_factory *factory,
                                            const struct tc_override_host_settings *settings,
                                            struct tc_lb_config *child);

/* The operations of the factory that concern configs. */
struct tc_lb_config *tc_override_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                              const struct tc_lb_registry *registry, unsigned depth,
                                              struct tc_validation_errors *errors);
void tc_override_config_free(struct tc_lb_config *config);
bool tc_override_config_equal(const struct tc_lb_config *a, const struct tc_lb_config *b);

#endif
