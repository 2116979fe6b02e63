/* The xDS client: watches resources by type and name over ADS, keeps the resources, and notifies watchers.
 *
 * Watcher callbacks come by the loop's serial queue, never from inside a call. A callback with news of a response
 * carries the response's flow-control token, borrowed; other callbacks, and all of a remote client, have NULL. The next
 * response is not read while anybody holds the token: a watcher that is not done when its callback returns takes a
 * reference (tc_xds_token_ref). Clients are counted. Loop thread only. */
#ifndef TC_XDS_CLIENT_CLIENT_H
#define TC_XDS_CLIENT_CLIENT_H

#include "io/backoff.h"
#include "io/loop.h"
#include "xds/client/resource_type.h"
#include "xds/client/token.h"
#include "xds/load/load_store.h"

struct tc_xds_client;
struct tc_xds_watcher;

struct tc_xds_watcher_ops {
    /* A88's OnResourceChanged: a new value, or an error when there is no value to use. Both are borrowed, and exactly
     * one of them is NULL. */
    void (*on_changed)(struct tc_xds_watcher *w, struct tc_xds_resource *resource, const struct tc_status *error,
                       struct tc_xds_token *token);
    /* A88's OnAmbientError: an error while the last value stays in use, or an OK status when the error is over. */
    void (*on_ambient_error)(struct tc_xds_watcher *w, const struct tc_status *error, struct tc_xds_token *token);
};

/* A watch, embedded in the object that gets the values. */
struct tc_xds_watcher {
    const struct tc_xds_watcher_ops *ops;
    /* The members below belong to the clients, and are zero at first. */
    struct tc_link link;
    struct tc_link forwarded; /* of a forwarding client */
    void *internal;           /* NULL: the watcher does not watch */
    void *remote;             /* of a remote client */
};

/* The settings of a client that asks servers itself (local_client.h). */
struct tc_xds_client_opts {
    /* The data-plane target whose client this is, for the log; empty: several targets share it. */
    struct tc_slice target;
    uint64_t resource_timeout_ms;   /* does-not-exist timer, 15000 */
    struct tc_backoff_opts backoff; /* between ADS streams, and between LRS streams */
    /* For decode contexts. With decode_thread_bytes, another thread may read them even after the client's end. */
    const void *registries;
    size_t max_resources_per_response; /* 65536 */
    /* Responses with this many bytes to decode, or with a resource that is slow to decode, are decoded on another
     * thread if their type allows it (any_thread). 0, the default: never. */
    size_t decode_thread_bytes;
};

/* NULL stays NULL. */
struct tc_xds_client *tc_xds_client_ref(struct tc_xds_client *c);
/* Dropping the last reference ends the client: its streams end, and no callback follows. NULL is allowed. */
void tc_xds_client_unref(struct tc_xds_client *c);

/* Begins to watch. A cached value comes first, then an ambient error if there is one. If the name is malformed, or its
 * authority is not in the bootstrap, the watcher gets an error that says so through on_changed. The watcher must not
 * watch already, and must live until it is unwatched or the client's last reference is dropped.
 *
 * The code of an error is NOT_FOUND if the resource is in the state TC_XDS_DOES_NOT_EXIST and a server can be reached,
 * else UNAVAILABLE, even if the server sent an error NOT_FOUND. The text does not name the resource, unless the name is
 * malformed: a watcher that fails an RPC with the error adds the name and chooses the code. */
void tc_xds_client_watch(struct tc_xds_client *c, const struct tc_xds_resource_type *type, struct tc_slice name,
                         struct tc_xds_watcher *watcher);
/* Ends the watch: no callback follows. Does nothing for a watcher that does not watch. When the last watcher of a
 * resource leaves, a task drops the subscription and the cached value: a watcher that begins before the task runs still
 * finds both. */
void tc_xds_client_unwatch(struct tc_xds_client *c, struct tc_xds_watcher *watcher);
/* Ends waits after failures: streams and connections that wait to be tried again are tried at once. */
void tc_xds_client_reset_backoff(struct tc_xds_client *c);
/* Returns the counts of a cluster's RPCs that are reported to the bootstrap's server with this key (A27: lrs_server
 * self), with one more reference and one more user (xds/load/load_store.h); NULL if there is no such server. Reports
 * are sent while there is a user. User and reference may be given back after the client's end. `service` may be
 * NULL. */
struct tc_load_cluster *tc_xds_client_load(struct tc_xds_client *c, const struct tc_rstr *server_key,
                                           struct tc_rstr *cluster, struct tc_rstr *service);
/* Returns the client's bootstrap, borrowed. */
const struct tc_xds_bootstrap *tc_xds_client_bootstrap(const struct tc_xds_client *c);

enum tc_xds_state { /* the numbers of CSDS's ClientResourceStatus (A40, A88) */
                    TC_XDS_REQUESTED = 1,
                    TC_XDS_DOES_NOT_EXIST = 2,
                    TC_XDS_ACKED = 3,
                    TC_XDS_NACKED = 4,
                    TC_XDS_RECEIVED_ERROR = 5,
                    TC_XDS_TIMEOUT = 6,
};

/* One cache entry in a dump; borrowed for the call. */
struct tc_xds_dump_entry {
    const struct tc_xds_resource_type *type;
    struct tc_slice name;
    enum tc_xds_state state;
    struct tc_slice version;        /* of the value in use */
    int64_t updated_ns;             /* realtime of the value in use; 0: none */
    const struct tc_rstr *bytes;    /* the resource message as received; NULL: none */
    const struct tc_status *error;  /* NULL: none */
    struct tc_slice failed_version; /* the version that `error` is about; may be empty */
    int64_t failed_ns;              /* realtime of `error`; 0: none */
};

typedef void (*tc_xds_dump_fn)(void *arg, const struct tc_xds_dump_entry *entry);
/* Calls fn for each entry of the client's cache. A remote client has no cache; a forwarding client shows the entries of
 * the target's own client (client_internal.h). */
void tc_xds_client_dump(const struct tc_xds_client *c, tc_xds_dump_fn fn, void *arg);

#endif
