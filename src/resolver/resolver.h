/* The resolver interface: from a target to endpoints, service config and, with xDS, a config selector. Loop thread
 * only, except the registry, the `authority` of a class, and a result that the loop has not seen yet. */
#ifndef TC_RESOLVER_RESOLVER_H
#define TC_RESOLVER_RESOLVER_H

#include <torc/credentials.h>
#include <torc/runtime.h>

#include "io/backoff.h"
#include "lb/policy.h"
#include "resolver/config_selector.h"
#include "resolver/target.h"

struct tc_resolver;

/* A resolver's result. The receiver takes over all references (tc_resolver_result_fini).
 *
 * A result without endpoints is an error. An error alone goes to the LB policy, and the service config and the selector
 * of the last result stay. An error with an lb_config but no selector (xDS) says that nothing can be routed: the policy
 * is updated, and new RPCs fail with `status`, unless they wait for ready. */
struct tc_resolver_result {
    struct tc_endpoints *endpoints;      /* NULL: there are no endpoints, and `status` says why */
    struct tc_status status;             /* of the endpoints */
    struct tc_rstr *service_config;      /* JSON, or NULL */
    struct tc_lb_config *lb_config;      /* decided by the resolver (xDS), wins over the service config's; NULL: none */
    struct tc_config_selector *selector; /* NULL, with endpoints: the service config's method configs apply */
    void *attributes;                    /* for the LB policies (the XdsConfig); NULL: none */
    void (*attributes_unref)(void *attributes); /* releases `attributes` */
};

/* Releases what a result holds, and zeroes it. */
void tc_resolver_result_fini(struct tc_resolver_result *r);

/* The inputs of a resolver. Outlives the resolver. */
struct tc_resolver_env {
    struct tc_loop *loop;
    const struct tc_lb_registry *lb_registry;
    struct tc_slice authority;      /* the channel's data-plane authority: its option's, else the target's */
    const char *xds_bootstrap_json; /* or NULL */
    uint64_t channel_id;            /* A42: random, the same for all resolvers that the channel makes */
    uint64_t dns_min_interval_ms;
    uint64_t xds_resource_timeout_ms;
    /* The channel's without its call credentials (A27), for a bootstrap without channel_creds; opaque here. */
    torc_credentials *credentials;
    torc_runtime *runtime; /* opaque here */
    struct tc_backoff_opts backoff;
    /* The resolver calls it with a result, from the loop and never from inside one of its ops. Takes over what *result
     * holds. Returns false if the service config or the LB policy refused the result: a polling resolver then tries
     * again with backoff. Does not shut the resolver down from inside. */
    bool (*on_result)(void *arg, struct tc_resolver_result *result);
    void *arg;
};

struct tc_resolver_ops {
    /* Begins to resolve. Called once, first. */
    void (*start)(struct tc_resolver *r);
    /* Called when the LB policy wants newer endpoints: a polling resolver then resolves again as soon as it may. */
    void (*request_reresolution)(struct tc_resolver *r);
    /* Ends a wait after a failure: the resolver tries again at once. */
    void (*reset_backoff)(struct tc_resolver *r);
    /* Frees the resolver. No callback comes after it returns. */
    void (*shutdown)(struct tc_resolver *r);
    /* Appends what the resolver waits for before it can report a result that RPCs can use, for people, or nothing. May
     * be NULL. */
    void (*pending)(const struct tc_resolver *r, struct tc_buf *out);
};

struct tc_resolver {
    const struct tc_resolver_ops *ops;
    const struct tc_resolver_env *env;
};

struct tc_resolver_class {
    const char *scheme;
    /* Appends the default :authority of a target. Returns false if the class does not accept the target, with the
     * reason in *why (tc_free; `why` may be NULL). Any thread: a channel is made on any. */
    bool (*authority)(const struct tc_resolver_class *cls, const struct tc_target *target, struct tc_buf *out,
                      char **why);
    /* Makes a resolver that is not started yet. The target is one that `authority` accepted, and borrowed for the call.
     * Never returns NULL. */
    struct tc_resolver *(*create)(const struct tc_resolver_class *cls, const struct tc_target *target,
                                  const struct tc_resolver_env *env);
    void *arg; /* the class's own */
};

/* Adds a class to the process's registry of resolvers; api/builtin.c adds "xds". `cls` is kept and must live as long as
 * the process. Returns 0, TORC_EEXIST for a scheme that is taken, or TORC_ELIMIT when the registry has no room. Any
 * thread. */
int tc_resolver_register(const struct tc_resolver_class *cls);
/* Returns the class of a scheme, which is in lower case; NULL if no resolver has the scheme. Any thread. */
const struct tc_resolver_class *tc_resolver_find(struct tc_slice scheme);
/* Appends all schemes, for people: "ipv4, ipv6, ...". Any thread. */
void tc_resolver_schemes(struct tc_buf *out);

#endif
