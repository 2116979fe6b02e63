/* The retry or hedging policy of an RPC (A6, A44), in one form for service configs and routes. Plain data of the config
 * that holds it. */
#ifndef TC_RESOLVER_RETRY_POLICY_H
#define TC_RESOLVER_RETRY_POLICY_H

#include "io/backoff.h"

/* A6: a larger maxAttempts counts as this. */
#define TC_RETRY_MAX_ATTEMPTS 5u

struct tc_retry_policy {
    unsigned max_attempts; /* the first included, at most TC_RETRY_MAX_ATTEMPTS; 0: neither retries nor hedging */
    uint32_t codes;        /* bit 1 << code for each status after which another attempt may follow */
    bool hedging;          /* attempts side by side, hedging_delay_ns apart; `codes` are the non-fatal statuses */
    uint64_t hedging_delay_ns;
    struct tc_backoff_opts backoff; /* without hedging */
};

#endif
