/* The config selector (A31): decides route, cluster, timeout and hash of each RPC before the pick. Immutable, counted.
 * Loop thread only. */
#ifndef TC_RESOLVER_CONFIG_SELECTOR_H
#define TC_RESOLVER_CONFIG_SELECTOR_H

#include "base/headers.h"
#include "base/ref.h"
#include "base/status.h"
#include "lb/picker.h"
#include "resolver/retry_policy.h"

struct tc_config_selector;
struct tc_filter_chain;

struct tc_select_args {
    struct tc_slice path;
    const struct tc_headers *headers; /* the application's metadata */
    struct tc_arena *arena;           /* the call's */
    struct tc_rng *rng;
    bool explain; /* out->route is wanted */
};

/* The decisions for one RPC. Strings live in the arena or as long as `hold`. */
struct tc_call_config {
    uint64_t timeout_ns;        /* the longest that the RPC may take, from its start; UINT64_MAX: no bound */
    struct tc_slice cluster;    /* for pick args */
    struct tc_session *session; /* for pick args: of the stateful session filter; NULL: none */
    bool auto_host_rewrite;     /* for pick args (A81) */
    bool has_hash;              /* for pick args: `hash` is set */
    uint64_t hash;
    uint64_t channel_id;                 /* for pick args: random, the same for all RPCs of the channel */
    struct tc_slice route;               /* for explain: what matched */
    int wait_for_ready;                  /* 0 or 1; -1: not set */
    uint64_t max_request_bytes;          /* of one message; UINT64_MAX: not set; 0: empty messages only */
    uint64_t max_response_bytes;         /* of one message; UINT64_MAX: not set; 0: empty messages only */
    const struct tc_retry_policy *retry; /* NULL: none; the selector's: the caller of select copies it at once */
    /* HTTP filters that the RPC passes before its pick (resolver/call_filter.h): a reference; NULL: none. */
    struct tc_filter_chain *filters;
    /* Releases `hold`, which keeps what was chosen for the RPC (its cluster). Called once, when the RPC is over. NULL:
     * there is nothing to release. */
    void (*release)(void *hold);
    void *hold;
};

/* A config that sets nothing. */
#define TC_CALL_CONFIG_NONE                                                                                            \
    ((struct tc_call_config){.timeout_ns = UINT64_MAX,                                                                 \
                             .wait_for_ready = -1,                                                                     \
                             .max_request_bytes = UINT64_MAX,                                                          \
                             .max_response_bytes = UINT64_MAX})

struct tc_config_selector_ops {
    /* Fills *out in and returns OK; the caller then owns what *out holds (`filters`, `hold`). Or returns the reason why
     * the RPC fails; *out must not be used then. The caller ends the status. */
    struct tc_status (*select)(struct tc_config_selector *cs, const struct tc_select_args *args,
                               struct tc_call_config *out);
    void (*free)(struct tc_config_selector *cs);
};

struct tc_config_selector {
    const struct tc_config_selector_ops *ops;
    struct tc_lref ref;
};

static inline struct tc_config_selector *tc_config_selector_ref(struct tc_config_selector *cs)
{
    tc_lref_inc(&cs->ref);
    return cs;
}

/* NULL is allowed. */
static inline void tc_config_selector_unref(struct tc_config_selector *cs)
{
    if (cs && tc_lref_dec(&cs->ref))
        cs->ops->free(cs);
}

#endif
