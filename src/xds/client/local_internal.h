/* The data of a local client (xds/client/local_client.h): the authorities in use, and the cache entries of each. Loop
 * thread only. */
#ifndef TC_XDS_CLIENT_LOCAL_INTERNAL_H
#define TC_XDS_CLIENT_LOCAL_INTERNAL_H

#include "base/table.h"
#include "base/vec.h"
#include "xds/client/client_internal.h"
#include "xds/client/transport.h"

struct tc_xds_channel;
struct tc_xds_channel_events;

struct tc_xds_local_client {
    struct tc_xds_client base;
    struct tc_xds_transport_factory *factory;
    const struct tc_xds_channel_events *events; /* the functions that channels call (local_client.c); static */
    struct tc_xds_client_opts opts;
    struct tc_rstr *target; /* owns the text of opts.target */

    TC_VEC(const struct tc_xds_resource_type *)
    types;                      /* every type that was ever watched; its index stands for the type */
    struct tc_link authorities; /* in use; of struct tc_xds_authority_state */
    struct tc_link channels;    /* one for each server that authorities or load reports use (A47) */
    struct tc_link orphans;     /* watchers of malformed names and unknown authorities; each got an error */
    struct tc_task settle;      /* drops resources without watchers */
    uint64_t held_bytes;        /* of the resources in use, as received */
    uint64_t responses;         /* number of the last response, for tc_xds_entry.seen_in */
    /* The log wants the states of resources. Set by the log's level once for a response, not for each of its
     * resources, and once for each new entry and timeout (tc_xds_entries_check_log). */
    bool logs_states;
};

/* An authority in use. */
struct tc_xds_authority_state {
    struct tc_link link;
    struct tc_xds_local_client *client;
    const struct tc_xds_authority *config; /* the bootstrap's; NULL: the top level, for plain names */
    const struct tc_xds_server *servers;   /* in order of preference */
    size_t n_servers;
    TC_VEC(struct tc_xds_channel *) channels; /* channels[i]: to servers[i]; all but the first are fallbacks (A71) */
    TC_VEC(struct tc_xds_entry *) entries;    /* entries[type]: a hash table by name */
};

/* A cache entry: a resource that is watched, or that lost its last watcher and waits for the task `settle`. */
struct tc_xds_entry {
    struct tc_xds_authority_state *authority;
    size_t type;
    struct tc_rstr *name; /* canonical */
    UT_hash_handle hh;    /* the authority's */
    struct tc_link watches;

    enum tc_xds_state state;
    struct tc_xds_resource *resource; /* in use, a reference; NULL: none */
    struct tc_rstr *bytes;            /* its message as received */
    struct tc_rstr *version;
    const struct tc_xds_server *source; /* the server that sent the value in use; the bootstrap's */
    int64_t updated_ns;                 /* realtime of the value in use; 0: none */
    struct tc_status error;         /* why there is no newer value (A88): rejected, deleted, timeout, ...; OK: none */
    bool absent;                    /* `error` says that the resource does not exist */
    struct tc_rstr *failed_version; /* that `error` is about; NULL: no error */
    const struct tc_xds_server *failed_by; /* the server that `error` is from; NULL: no error, or a timeout's */
    int64_t failed_ns;                     /* realtime of `error`; 0: none */

    /* The last notification of the watchers (tc_xds_entry_reconcile); references. */
    struct tc_xds_resource *told_resource;
    struct tc_status told_error;

    /* A bit for each of the authority's channels. sending_on: the subscription is in the request that is being sent.
     * sent_on: on_sent has come for a request with the subscription, so that the does-not-exist timer may run (A57). */
    uint32_t sending_on, sent_on;
    /* Bits of channels whose server may still count the name as subscribed, from before this entry was made or from
     * before the authority got the channel back. State of the world: the next request leaves the name out, and the
     * request after it has the name; without this the server would see no change and send nothing. Incremental: not
     * needed. */
    uint32_t held_back;
    unsigned timed_on;      /* index of the channel that the timer counts for, plus 1; 0: the timer does not run */
    struct tc_timer timer;  /* the does-not-exist timer (A57) */
    uint64_t late_until_ms; /* the timer, which has fired, may start again before this loop time; 0: has not fired */
    uint64_t seen_in;       /* number of the last response that named the resource */
};

#endif
