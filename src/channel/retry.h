/* Retries (A6): the decision whether another attempt follows a failed one. Loop thread only. */
#ifndef TC_CHANNEL_RETRY_H
#define TC_CHANNEL_RETRY_H

#include "base/headers.h"
#include "resolver/retry_policy.h"

/* A channel's throttle, in thousandths of a token. */
struct tc_retry_throttle {
    uint32_t max, ratio; /* max 0: retries are not throttled */
    uint32_t tokens;
};

/* Returns true if another attempt may be made now. */
bool tc_retry_throttle_open(const struct tc_retry_throttle *t);
/* Takes a token for a failed attempt. */
void tc_retry_throttle_failure(struct tc_retry_throttle *t);
/* Applies the settings of a service config. Refills the tokens if the settings differ from the present ones. */
void tc_retry_throttle_update(struct tc_retry_throttle *t, const struct tc_retry_throttle *settings);
/* Gives back `ratio` of a token for an attempt that succeeded. */
static inline void tc_retry_throttle_success(struct tc_retry_throttle *t)
{
    t->tokens = TC_MIN(t->tokens + t->ratio, t->max);
}

/* The server's wish for further attempts (grpc-retry-pushback-ms). STOP: the value is negative, malformed, or above
 * INT32_MAX. */
enum tc_pushback { TC_PUSHBACK_NONE, TC_PUSHBACK_DELAY, TC_PUSHBACK_STOP };
/* Reads the server's wish from the trailers (may be NULL). Stores *delay_ms with DELAY only. */
enum tc_pushback tc_retry_pushback(const struct tc_headers *trailers, uint64_t *delay_ms);

/* The retries of an RPC. */
struct tc_retry {
    struct tc_retry_policy policy;
    unsigned tries; /* attempts that failed and were followed by another under the policy */
    struct tc_backoff backoff;
};

/* The failure of an attempt. */
struct tc_retry_outcome {
    int code;                          /* enum torc_status_code, not OK */
    const struct tc_headers *trailers; /* NULL: none came */
    bool resendable;                   /* the call is not committed, and its messages fit the buffers */
};

/* Takes a token from the throttle if the status is retryable, or the server forbids further attempts
 * (TC_PUSHBACK_STOP). Returns true if another attempt follows, *delay_ms from now. Without a retry policy, returns
 * false and takes no token. */
bool tc_retry_next(struct tc_retry *r, struct tc_retry_throttle *throttle, const struct tc_retry_outcome *o,
                   struct tc_rng *rng, uint64_t *delay_ms);

#endif
