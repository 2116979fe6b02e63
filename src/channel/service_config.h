/* Service configs (gRPC doc/service_config.md): the LB policy, the settings of methods, and settings of the channel.
 * Immutable and counted; any thread. */
#ifndef TC_CHANNEL_SERVICE_CONFIG_H
#define TC_CHANNEL_SERVICE_CONFIG_H

#include "channel/retry.h"
#include "lb/policy.h"

struct tc_method_config {
    uint64_t timeout_ns;         /* UINT64_MAX: none */
    int wait_for_ready;          /* 0 or 1; -1: not set */
    uint64_t max_request_bytes;  /* of one message; UINT64_MAX: not set */
    uint64_t max_response_bytes; /* of one message; UINT64_MAX: not set */
    struct tc_retry_policy retry;
};

struct tc_service_config;

/* Returns a reference to the parsed config, or NULL with the reason in *why (the caller frees it with tc_free) if the
 * text is not a valid service config (A21). Unknown fields are ignored. The factories of `registry` must outlive the
 * config. */
struct tc_service_config *tc_service_config_parse(const struct tc_lb_registry *registry, struct tc_slice text,
                                                  char **why);
/* NULL is allowed for both. */
struct tc_service_config *tc_service_config_ref(struct tc_service_config *c);
void tc_service_config_unref(struct tc_service_config *c);
/* Returns the config of the LB policy; NULL if the service config does not name a policy. Borrowed. */
struct tc_lb_config *tc_service_config_lb(const struct tc_service_config *c);
/* Returns the service whose health is checked (A17), "" for the whole server; NULL: none. Borrowed. */
struct tc_rstr *tc_service_config_health(const struct tc_service_config *c);
/* Returns how many connections a subchannel may have (A105); 1 if the config does not say, or the environment turns
 * A105 off. */
uint32_t tc_service_config_max_connections(const struct tc_service_config *c);
/* Returns retryThrottling (A6) with all its tokens; max 0: none. Borrowed. */
const struct tc_retry_throttle *tc_service_config_throttle(const struct tc_service_config *c);
/* Returns the config of "/package.Service/Method": by method, else by service, else the default; NULL: none.
 * Borrowed. */
const struct tc_method_config *tc_service_config_method(const struct tc_service_config *c, struct tc_slice path);

#endif
