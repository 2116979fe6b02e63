/* Retries as a service config asks for them (gRFC A6): the policy of a method, the throttling of a channel, and what a
 * call does when an attempt has failed. */
#ifndef TC_CHANNEL_RETRY_H
#define TC_CHANNEL_RETRY_H

#include "base/json.h"
#include "http2/stream.h"
#include "resolver/retry_policy.h"

struct tc_call;

/* Of a channel, in thousandths of a token. */
struct tc_retry_throttle {
    uint32_t max, ratio; /* max 0: none */
    uint32_t tokens;
};

/* The members retryPolicy, hedgingPolicy and retryThrottling of a service config. Faults are added at their fields; the
 * result counts only without any. */
void tc_retry_policy_parse(struct tc_retry_policy *p, const json_t *obj, struct tc_faults *f);
void tc_hedging_policy_parse(struct tc_retry_policy *p, const json_t *obj, struct tc_faults *f);
void tc_retry_throttle_parse(struct tc_retry_throttle *t, const json_t *obj, struct tc_faults *f);
/* Whether another attempt may be made now. */
bool tc_retry_throttle_open(const struct tc_retry_throttle *t);
/* An RPC succeeded. */
void tc_retry_throttle_success(struct tc_retry_throttle *t);
/* An RPC failed in a way that counts. */
void tc_retry_throttle_failure(struct tc_retry_throttle *t);
/* Another service config is in force: the tokens stay unless the settings differ. */
void tc_retry_throttle_update(struct tc_retry_throttle *t, const struct tc_retry_throttle *settings);

/* What the server says of further attempts (grpc-retry-pushback-ms). */
enum tc_pushback { TC_PUSHBACK_NONE, TC_PUSHBACK_DELAY, TC_PUSHBACK_STOP };
/* *delay_ms with DELAY only. NULL: no trailers. */
enum tc_pushback tc_retry_pushback(const struct tc_headers *trailers, uint64_t *delay_ms);

/* An attempt of the call has ended, or found no endpoint (trailers NULL): true when another follows, now or after a
 * backoff. */
bool tc_call_retry(struct tc_call *c, const struct tc_status *status, const struct tc_headers *trailers);
void tc_call_on_retry_timer(struct tc_timer *timer);

#endif
