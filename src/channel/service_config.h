/* Service configs (gRPC doc/service_config.md): the LB policy and the settings of methods. */
#ifndef TC_CHANNEL_SERVICE_CONFIG_H
#define TC_CHANNEL_SERVICE_CONFIG_H

#include "channel/retry.h"
#include "lb/policy.h"

struct tc_method_config {
    uint64_t timeout_ns; /* 0: none */
    int wait_for_ready;  /* -1: not said */
    bool has_max_request_bytes, has_max_response_bytes;
    uint64_t max_request_bytes, max_response_bytes;
    struct tc_retry_policy retry;
};

/* Shared, immutable. */
struct tc_service_config;

/* NULL with the reason in *why (tc_free) when the text is no valid service config (A21). Unknown fields are ignored.
 * Any thread. */
struct tc_service_config *tc_service_config_parse(const struct tc_lb_registry *registry, struct tc_slice text,
                                                  char **why);
struct tc_service_config *tc_service_config_ref(struct tc_service_config *c);
void tc_service_config_unref(struct tc_service_config *c);
/* The LB policy; NULL when the config names none. Borrowed. */
struct tc_lb_config *tc_service_config_lb(const struct tc_service_config *c);
/* A6's retryThrottling; max 0 when there is none. */
const struct tc_retry_throttle *tc_service_config_throttle(const struct tc_service_config *c);
/* proto3 JSON's Duration, decimal seconds with an "s", at a key: false when it is absent or a fault. */
bool tc_service_config_duration(const json_t *obj, const char *key, uint64_t *ns, struct tc_faults *f);
/* For "/package.Service/Method": by method, else by service, else the default; NULL when there is none. Borrowed. */
const struct tc_method_config *tc_service_config_method(const struct tc_service_config *c, struct tc_slice path);

#endif
