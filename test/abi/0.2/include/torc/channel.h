/* Channels, on which RPCs start. SPDX-License-Identifier: Apache-2.0
 *
 * A channel has a target, whose name it resolves, an LB policy that chooses a backend for each RPC, and connections.
 * Channels of one runtime share connections to an address if they have equal credentials, TLS names and connection
 * options, and no dialer. A channel begins IDLE and connects with its first RPC. It ends when its handle is freed, or
 * with its runtime; the application frees the handle once in either case. Functions may be called on any thread.
 *
 * Targets: "xds:///name", "dns:///host:port", "dns://server/host:port" (asks the DNS server at that IP address),
 * "ipv4:a:p,b:p", "ipv6:[a]:p", "unix:path", "unix:///abs/path", "unix-abstract:name", "vsock:CID:PORT" (Linux),
 * "host:port" (dns; the default port is 443), and the schemes of resolvers that the application registered. "fd:3" is a
 * connected stream socket, which torc_channel_new takes over when it succeeds: the channel has that one connection, and
 * RPCs after its end fail. Do not give a second channel the same number: it would use and close the same descriptor.
 * Do not take "fd:" targets from outside: they can name any descriptor of the process.
 *
 *     torc_error *error = NULL;
 *     torc_credentials *tls = torc_credentials_tls(NULL, &error);
 *     struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = tls, .gzip = TORC_ON};
 *     torc_channel *channel = torc_channel_new(NULL, "dns:///orders:443", &o, &error);
 *     torc_credentials_unref(tls); // the channel has a reference of its own
 *     if (!channel)
 *         return fprintf(stderr, "%s\n", torc_error_text(error)), 1;
 *     ... RPCs: torc/call.h, torc/stream.h ...
 *     torc_channel_free(channel);
 */
#ifndef TORC_CHANNEL_H
#define TORC_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include <torc/connectivity.h>
#include <torc/credentials.h>
#include <torc/dialer.h>
#include <torc/interceptor.h>
#include <torc/lb.h>
#include <torc/metadata.h>
#include <torc/resolver.h>
#include <torc/runtime.h>
#include <torc/size.h>
#include <torc/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* RPCs to one target: its name resolution, load balancing and connections. */
typedef struct torc_channel torc_channel;

/* Options of a channel. Their texts are copied. */
struct torc_channel_options {
    uint64_t size;
    torc_credentials *credentials;   /* required in options that are given: NULL is refused, because a function that
                                        could not make credentials must not lead to plaintext.
                                        torc_credentials_insecure() is never NULL. The channel takes its own
                                        reference */
    const char *authority;           /* :authority and TLS name; NULL: from the target */
    const char *user_agent;          /* put before "torc-c/VERSION"; NULL: none */
    const char *service_config_json; /* used when the resolver gives none; NULL: none. Of gRPC's service config count
                                        loadBalancingConfig, loadBalancingPolicy, methodConfig, retryThrottling,
                                        connectionScaling and healthCheckConfig (the last two not for xds: targets) */
    const char *xds_bootstrap_json;  /* instead of GRPC_XDS_BOOTSTRAP and GRPC_XDS_BOOTSTRAP_CONFIG; NULL: those */
    const char *http_proxy; /* "http://[user:password@]host[:port]", by HTTP CONNECT (A1), for dns: targets, and ipv4:
                               and ipv6: targets of one address; "http://" may be left out, the port is 443 unless
                               given; NULL: from grpc_proxy, https_proxy, http_proxy, no_grpc_proxy and no_proxy,
                               but none for localhost and loopback addresses; "": none */
    const struct torc_resolver_factory *const
        *resolvers; /* the application's, tried before Torc's own; NULL-terminated, NULL: none; the factories are
                       copied; their strings and the object that arg points at must live until `release` is called */
    const struct torc_lb_factory *const *lb_policies; /* the application's; NULL-terminated, NULL: none; copied as
                                                         resolvers are; names of Torc's own policies are refused */
    int32_t service_config_lookup;                    /* use the resolver's service config; 0: on */
    int32_t retries;                    /* obey retry and hedging policies (A6, A44); 0: on. Requests that no server
                                           has seen are sent again in any case */
    int32_t gzip;                       /* compress request messages; 0: off */
    int32_t keepalive_without_calls;    /* 0: off */
    int64_t keepalive_time_ms;          /* 0 and -1: off; under 10000 is raised to 10000 */
    int64_t keepalive_timeout_ms;       /* with keepalive also TCP_USER_TIMEOUT (A18); 0: 20000 */
    int64_t connect_timeout_ms;         /* for TCP, TLS and HTTP/2 together; 0: 20000 */
    int64_t idle_timeout_ms;            /* the channel becomes IDLE after this time without calls; 0: 1800000; -1:
                                          never */
    int64_t backoff_initial_ms;         /* at most backoff_max_ms; 0: 1000 */
    int64_t backoff_max_ms;             /* 0: 120000 */
    double backoff_multiplier;          /* 1 to 1000; 0: 1.6 */
    double backoff_jitter;              /* up to 1, a part of the delay; 0: 0.2; -1: none */
    int64_t dns_min_interval_ms;        /* between re-resolutions; 0: 30000; -1: none */
    int64_t xds_resource_timeout_ms;    /* A57's does-not-exist timer; 0: 15000 */
    int64_t max_receive_message_bytes;  /* 0: 4194304; -1: no limit */
    int64_t max_send_message_bytes;     /* of a message after compression; 0 and -1: no limit. No message has
                                           more than 4294967295 bytes, gRPC's own limit (RESOURCE_EXHAUSTED) */
    int64_t max_header_list_bytes;      /* of a response, decoded; 0: 16384 */
    int64_t max_request_header_bytes;   /* of a request: names and values of its headers and 32 bytes for each, before
                                           compression, some 600 bytes of Torc's own included; at most 268435456; 0:
                                           1048576. An RPC beyond it, or beyond what the server says that it takes,
                                           ends with RESOURCE_EXHAUSTED and is not sent */
    int64_t retry_buffer_bytes;         /* the most bytes of its request that a call keeps for another attempt; 0:
                                          262144; -1: nothing. A call that sends more is committed to the attempt that
                                          it has (A6) */
    int64_t channel_retry_buffer_bytes; /* the most bytes that all calls of the channel keep together; 0: 16777216; -1:
                                           nothing */
    int64_t ring_size_cap;              /* A42's local cap, at most 8388608; 0: GRPC_RING_HASH_CAP or 4096 */
    const struct torc_interceptor *const *interceptors; /* the application's, outermost first, at most 64
                                                           (torc/interceptor.h); NULL-terminated, NULL: none; copied */
    const struct torc_dialer *dialer; /* opens the channel's connections (torc/dialer.h); copied; NULL: Torc does */
    int64_t health_checks; /* obey healthCheckConfig of the service config (A17), TORC_ON or TORC_OFF; 0: on */
    int64_t max_connections_per_subchannel; /* the most connections to an address of an endpoint while the server's
                                               MAX_CONCURRENT_STREAMS is reached, where the service config's
                                               connectionScaling or the cluster's per_host_thresholds ask for several
                                               (A105); at most 1000; 0: 10 */
};

/* Makes a channel; nothing connects before the first RPC or torc_explain, torc_channel_connect, or torc_channel_state
 * with try_to_connect. NULL runtime: the default one; NULL options: defaults, and plaintext, as
 * torc_credentials_insecure: a channel with TLS needs options. NULL with an error when target or options are malformed
 * (TORC_EINVAL), options are of a newer version (TORC_EUNSUPPORTED), or the runtime has ended (TORC_ECLOSED), is the
 * parent process's (TORC_EFORK) or cannot be made (TORC_EIO). Errors of resolution (an xDS bootstrap that is missing,
 * say) are outcomes of RPCs. Any thread. */
TORC_API torc_channel *torc_channel_new(torc_runtime *runtime, const char *target,
                                        const struct torc_channel_options *options, torc_error **error);

/* Shuts down and gives up the handle: RPCs that run end with CANCELLED, connections go back to the pool (those of a
 * dialer or of "fd:N" end). Does not wait: the loop does it later. NULL is allowed. Any thread. A second call does
 * nothing while streams of the channel are held, and is not allowed afterwards. */
TORC_API void torc_channel_free(torc_channel *channel);

/* Returns the state as last published, TORC_CONNECTIVITY_SHUTDOWN for NULL; with try_to_connect an IDLE channel starts
 * to connect. That is one request: a channel that becomes IDLE again (its connection was lost, or the next priority's
 * ring_hash waits for RPCs) stays so until it is asked again, or an RPC comes. Any thread. */
TORC_API enum torc_connectivity torc_channel_state(torc_channel *channel, bool try_to_connect);

/* Called once on the loop's thread, when the state is no longer `last`. `status_text`, borrowed for the call: why the
 * state is TRANSIENT_FAILURE; it may be "" in other states, and is never NULL. */
typedef void (*torc_channel_state_fn)(torc_channel *channel, enum torc_connectivity state, const char *status_text,
                                      void *arg);
/* Has fn called for one change of the state; another change needs another watch. A channel may have several watches.
 * 0: fn will be called, at the latest when the channel ends, with TORC_CONNECTIVITY_SHUTDOWN and a NULL channel.
 * TORC_EINVAL, TORC_EFORK, TORC_ECLOSED: fn will not be called. A `last` that is not a state differs from every state.
 * Any thread. */
TORC_API int torc_channel_watch_state(torc_channel *channel, enum torc_connectivity last, torc_channel_state_fn fn,
                                      void *arg);
/* Blocks until the state differs from `last`, and returns 0; TORC_ETIMEDOUT when timeout_ms has passed first (-1: no
 * limit; 0: only looks, which is allowed in a callback too). TORC_EINVAL for other negative times and for NULL,
 * TORC_EDEADLK in a callback, TORC_EFORK, TORC_ECLOSED after torc_runtime_free. *now is stored only with 0; `now` may
 * be NULL. If another thread frees the channel meanwhile, the state is TORC_CONNECTIVITY_SHUTDOWN; with that `last`,
 * TORC_ECLOSED: no other state follows. Any thread. */
TORC_API int torc_channel_wait_state(torc_channel *channel, enum torc_connectivity last, int64_t timeout_ms,
                                     enum torc_connectivity *now);
/* Connects and blocks until the state is READY, and returns 0; TORC_ETIMEDOUT when timeout_ms has passed first (-1: no
 * limit; 0: it has begun to connect). While it blocks, it connects again whenever the channel becomes IDLE. TORC_EINVAL
 * for other negative times and for NULL; TORC_ECLOSED when the channel or its runtime is freed, also meanwhile by
 * another thread; TORC_EDEADLK in a callback, whatever the time; TORC_EFORK. Any thread. */
TORC_API int torc_channel_connect(torc_channel *channel, int64_t timeout_ms);
/* Ends all backoffs: connections, resolutions, health checks and load reports that wait are tried again at once. NULL
 * is allowed. Any thread. */
TORC_API void torc_channel_reset_backoff(torc_channel *channel);
/* Stores the channel's present state as one JSON object for torc_free: {"target", "state", "status" (why, in
 * TRANSIENT_FAILURE), "pool", "child"}. "pool" counts the runtime's connections, without those to xDS servers:
 * {"connections" (connected or not), "unused" (those of them that no policy holds)}. "child" is the tree of LB
 * policies: each {"policy": name, ...} with its children, endpoints, states and timers; later versions may add members.
 * Counts of pick_first: "attempts", the addresses that the present pass over the list has tried; "failures", the
 * addresses that have failed in the first pass, later the failures since the last request for re-resolution. "child" is
 * absent while there is no policy: before the first result of name resolution, and after idle_timeout_ms. Blocks until
 * the loop has looked. Returns 0; or TORC_EINVAL, TORC_EDEADLK (inside a callback), TORC_EFORK or TORC_ECLOSED, and
 * *json is untouched. Any thread. */
TORC_API int torc_channel_describe(torc_channel *channel, char **json);
/* Returns the target as given, borrowed from the channel; NULL for NULL. Any thread. */
TORC_API const char *torc_channel_target(const torc_channel *channel);

/* An event of a channel, for tools: kind is "state", "connect", "connected", "connect_failed" or "closed"; detail is a
 * state's name or an address; reason is "" where there is none. The texts are borrowed for the call. Called on the
 * loop's thread, never inside the function that caused the event, so that the application may destroy children of its
 * LB policy there. */
typedef void (*torc_channel_event_fn)(const char *kind, const char *detail, const char *reason, void *arg);
/* Sets the channel's one observer, which replaces an earlier one; NULL removes it. Does not wait: the loop sets it, and
 * the earlier observer may be called until then. Connection events that the earlier observer was not told of are
 * dropped. Returns 0, TORC_EINVAL, TORC_EFORK or TORC_ECLOSED. Any thread. */
TORC_API int torc_channel_observe(torc_channel *channel, torc_channel_event_fn fn, void *arg);

#ifdef __cplusplus
}
#endif
#endif
