/* The parts of the xDS client, inside src/xds. One client has realms (authorities in use, the top level among them);
 * a realm has the cache entries that are watched and an ordered list of channels (servers in use, the first preferred,
 * later ones fallbacks: A71); a channel is shared by the realms that name the same server, and has one ADS stream. */
#ifndef TC_XDS_CLIENT_IMPL_H
#define TC_XDS_CLIENT_IMPL_H

#include <uthash.h>

#include "base/log.h"
#include "base/vec.h"
#include "io/mailbox.h"
#include "xds/bootstrap_parse.h"
#include "xds/client.h"
#include "xds/lrs.h"
#include "xds/name.h"

#define TC_XDS_LOG(level, ...) TC_LOG(TC_LOG_XDS, TORC_LOG_##level, __VA_ARGS__)

struct tc_xds_channel;

struct tc_xds_client {
    struct tc_lref refs;
    struct tc_loop *loop;
    struct tc_xds_bootstrap *bootstrap;
    struct tc_xds_transport_factory *factory;
    struct tc_xds_client_opts opts;
    struct tc_rstr *target; /* what opts.target reads */

    TC_VEC(const struct tc_xds_resource_type *) types; /* that were ever watched; an index in it stands for a type */
    struct tc_link realms;
    struct tc_link channels;
    struct tc_link orphans; /* watchers of names that cannot be: they were given an error */
    struct tc_task settle;  /* drops what nobody watches, when the present callbacks are through */
    uint64_t held_bytes;    /* of the resources in use, as received */
    uint64_t responses;     /* counts them, for tc_xds_entry.seen_in */

    struct tc_xds_replica *replica; /* of another loop's client (xds/replica.h); NULL: this asks servers itself */
};

/* A resource that is watched. */
struct tc_xds_entry {
    struct tc_xds_realm *realm;
    size_t type;
    struct tc_rstr *name; /* canonical */
    UT_hash_handle hh;    /* the realm's */
    struct tc_link watches;

    enum tc_xds_state state;
    struct tc_xds_resource *resource; /* in use, or NULL */
    struct tc_rstr *bytes;            /* its message as received */
    struct tc_rstr *version;
    const struct tc_xds_server *source; /* where it is from */
    int64_t updated_ns;
    struct tc_status error; /* of the data (A88); OK: none */
    struct tc_rstr *failed_version;
    int64_t failed_ns;

    /* What its watchers were last told. */
    struct tc_xds_resource *told_resource;
    struct tc_status told_error;

    /* A bit for each of the realm's channels: the subscription is in the request under way, was handed to a connected
     * transport (A57). */
    uint32_t sending_on, sent_on;
    /* The server thinks that it sent this one already, to an entry before this one: the next request leaves it out. */
    uint32_t held_back;
    struct tc_timer timer; /* does not exist */
    uint64_t seen_in;      /* the response that last named it */
};

/* An authority in use. */
struct tc_xds_realm {
    struct tc_link link;
    struct tc_xds_client *client;
    const struct tc_xds_authority *authority; /* NULL: the top level, for names without one */
    const struct tc_xds_server *servers;
    size_t n_servers;
    TC_VEC(struct tc_xds_channel *) channels; /* to the first of the servers */
    TC_VEC(struct tc_xds_entry *) entries;    /* a hash table for each type */
};

/* What an ADS stream knows of a type. */
struct tc_xds_ads_type {
    struct tc_rstr *version; /* last ACKed; outlives streams; not used by the incremental form */
    struct tc_rstr *nonce;   /* of the last response on this stream; incremental: that is still to be answered */
    struct tc_rstr *nack;    /* what the next request complains of */
    struct tc_xds_done *ack; /* incremental: of the response that is still to be answered */
    uint64_t turn;           /* in the queue to be sent: less is earlier; 0: nothing to send */
    bool requested;          /* on this stream */
    /* Names that the last request had and that were dropped from the cache since. A request that has such a name again
     * would tell the server nothing new, and it would not send the resource again. */
    TC_VEC(struct tc_rstr *) dropped;
};

struct tc_xds_ads;

/* What differs between the two forms of ADS: state of the world, and incremental. */
struct tc_xds_ads_ops {
    const char *method;
    unsigned node_field; /* the number of the Node in a request */
    /* Makes the request that is due for the type; false: there is nothing to say. */
    bool (*request)(struct tc_xds_channel *ch, size_t type, struct tc_buf *out);
    /* Takes in a response. False: it cannot be made out what it is. */
    bool (*apply)(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_done *done);
    /* A request was handed to a connected transport; may be NULL. */
    void (*on_sent)(struct tc_xds_channel *ch);
};

extern const struct tc_xds_ads_ops tc_xds_ads_sotw;  /* ads_sotw.c */
extern const struct tc_xds_ads_ops tc_xds_ads_delta; /* ads_delta.c */

struct tc_xds_ahead;

struct tc_xds_ads {
    const struct tc_xds_ads_ops *ops;
    struct tc_xds_stream *stream; /* NULL: none now */
    struct tc_xds_done *token;    /* of the response that is being worked on */
    struct tc_xds_ahead *ahead;   /* the same while another thread decodes it */
    struct tc_mailbox *box;       /* for that; NULL: there was none yet */
    TC_VEC(struct tc_xds_ads_type) types;
    uint64_t last_turn;
    size_t sending_type;
    bool sending, sent_node, seen_response;
    bool refused;          /* the response was, or a part of it */
    uint64_t read_at_ms;   /* not before this is the next read */
    struct tc_timer pause; /* until then */
    bool hold_backoff;     /* the last stream broke on a response that is too large: a first response proves nothing */
    uint64_t restarted_ms; /* when a stream was last followed by another at once; 0: never */
    struct tc_backoff backoff;
    struct tc_timer retry;
    struct tc_task send, restart;
    /* Incremental: what this stream's first requests said, and what to make of it when nothing comes back. */
    bool gave_versions, asked_anew;
    struct tc_timer quiet;
    struct tc_xds_done *acking; /* of the response that the request under way answers */
};

struct tc_xds_channel {
    struct tc_link link;
    struct tc_xds_client *client;
    const struct tc_xds_server *server; /* the bootstrap's */
    struct tc_xds_transport *transport;
    size_t users;            /* realms that have it in their list */
    struct tc_status status; /* why the server cannot be reached; OK: nothing bad is known */
    struct tc_xds_ads ads;
    struct tc_xds_lrs *lrs; /* NULL: none was ever asked for */
};

/* client.c */
const char *tc_xds_node_id(const struct tc_xds_client *c);
#define TC_XDS_NO_TYPE SIZE_MAX
size_t tc_xds_type_index(const struct tc_xds_client *c, struct tc_slice type_url);

/* cache.c */
struct tc_xds_entry *tc_xds_entry_find(const struct tc_xds_realm *r, size_t type, struct tc_slice name);
/* A new one, REQUESTED, in the realm's table. */
struct tc_xds_entry *tc_xds_entry_new(struct tc_xds_realm *r, size_t type, struct tc_rstr *name);
/* Takes it out of the table. Its watches must be gone. */
void tc_xds_entry_free(struct tc_xds_entry *e);
struct tc_xds_entry **tc_xds_entries(struct tc_xds_realm *r, size_t type);
/* A valid resource came from the server; takes the reference. */
/* False: with so many bytes in place of its own, all that are held were more than held_bytes; *most is that. */
bool tc_xds_entry_fits(const struct tc_xds_entry *e, size_t bytes, uint64_t *most);
void tc_xds_entry_accept(struct tc_xds_entry *e, const struct tc_xds_server *source, struct tc_xds_resource *resource,
                         struct tc_slice bytes, struct tc_slice version, struct tc_xds_done *done);
/* A data error came; takes the status. `drop`: the resource in use goes (A88). */
void tc_xds_entry_fail(struct tc_xds_entry *e, enum tc_xds_state state, struct tc_status error, struct tc_slice version,
                       bool drop, struct tc_xds_done *done);
/* Starts or stops the does-not-exist timer as the entry's state says. */
void tc_xds_entry_check_timer(struct tc_xds_entry *e);
/* What holds now: an error beside or in place of the resource, borrowed; OK: none. */
const struct tc_status *tc_xds_entry_error(const struct tc_xds_entry *e);
/* Tells the watchers what they do not know yet; idempotent. */
void tc_xds_entry_reconcile(struct tc_xds_entry *e, struct tc_xds_done *done);

/* watch.c */
void tc_xds_watch_start(struct tc_xds_client *c, struct tc_xds_watcher *w, struct tc_xds_entry *e);
/* Drops what is queued for the watcher and forgets it. */
void tc_xds_watch_stop(struct tc_xds_watcher *w);
struct tc_xds_entry *tc_xds_watch_entry(const struct tc_xds_watcher *w);
/* Queues a callback. */
void tc_xds_watch_changed(struct tc_xds_watcher *w, struct tc_xds_resource *resource, const struct tc_status *error,
                          struct tc_xds_done *done);
void tc_xds_watch_ambient(struct tc_xds_watcher *w, const struct tc_status *error, struct tc_xds_done *done);
struct tc_xds_done *tc_xds_done_new(struct tc_xds_channel *ch);
/* The channel's stream is gone: the token is no one's. */
void tc_xds_done_detach(struct tc_xds_done *d);

/* servers.c */
/* The realm of an authority (NULL: the top level), with its first channel. */
struct tc_xds_realm *tc_xds_realm_get(struct tc_xds_client *c, const struct tc_xds_authority *authority);
/* Its entries must be gone. */
void tc_xds_realm_free(struct tc_xds_realm *r);
/* The place of a channel in the realm's list, or -1. */
int tc_xds_realm_index(const struct tc_xds_realm *r, const struct tc_xds_channel *ch);
/* Why nothing new can be learnt for this realm; OK: nothing bad is known. */
const struct tc_status *tc_xds_realm_error(const struct tc_xds_realm *r);
/* A71: uses the next servers when those in use fail and something is missing. */
void tc_xds_realm_fall_back(struct tc_xds_realm *r);
/* A resource came from the channel at `index`: lower servers are not needed any more. */
void tc_xds_realm_cut(struct tc_xds_realm *r, size_t index);
/* The subscriptions of a type changed. */
void tc_xds_realm_request(struct tc_xds_realm *r, size_t type);
/* The server cannot be reached, for this reason; takes the status. */
void tc_xds_channel_fail(struct tc_xds_channel *ch, struct tc_status status);
void tc_xds_channel_healthy(struct tc_xds_channel *ch, struct tc_xds_done *done);
/* Ends it when no realm uses it and no loads are to be reported on it. */
void tc_xds_channel_release(struct tc_xds_channel *ch);
/* The entry that a name in a response of this channel means, or NULL. */
struct tc_xds_entry *tc_xds_channel_entry(struct tc_xds_channel *ch, size_t type, const struct tc_xds_name *name);

/* ads.c: what both forms share */
void tc_xds_ads_init(struct tc_xds_channel *ch);
void tc_xds_ads_fini(struct tc_xds_channel *ch);
/* Opens a stream unless there is one or the next is timed. */
void tc_xds_ads_start(struct tc_xds_channel *ch);
struct tc_xds_ads_type *tc_xds_ads_type(struct tc_xds_channel *ch, size_t type);
/* Queues a request of this type; those of one turn become one. */
void tc_xds_ads_request(struct tc_xds_channel *ch, size_t type);
/* An entry that was asked for is gone from the cache. */
void tc_xds_ads_drop(struct tc_xds_channel *ch, size_t type, struct tc_rstr *name);
/* Was the name dropped, and does the server not know it yet? */
bool tc_xds_ads_dropped(const struct tc_xds_channel *ch, size_t type, const struct tc_rstr *name);
/* All watchers are done with the last response. */
void tc_xds_ads_read(struct tc_xds_channel *ch);
void tc_xds_ads_reset_backoff(struct tc_xds_channel *ch);
/* Calls fn for each entry of the type whose realm uses this channel. */
void tc_xds_ads_each_entry(struct tc_xds_channel *ch, size_t type,
                           void (*fn)(struct tc_xds_entry *e, uint32_t bit, void *arg), void *arg);
/* The server answers, by a response or by having nothing to add. */
void tc_xds_ads_proved(struct tc_xds_channel *ch);

/* ads_delta.c */
void tc_xds_ads_on_quiet(struct tc_timer *timer);

/* response.c, response_delta.c: take in a DiscoveryResponse, a DeltaDiscoveryResponse. */
bool tc_xds_response_apply(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_done *done);
bool tc_xds_response_apply_delta(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_done *done);
/* The stream of the response that is decoded ahead ended, by this status; it is told of once that is applied. */
void tc_xds_ahead_end(struct tc_xds_ahead *h, const struct tc_status *status, bool local);
/* It is not to be applied any more. */
void tc_xds_ahead_abandon(struct tc_xds_ahead *h);
/* The response was refused, and took so long of the processor: the next is not read at once. */
void tc_xds_ads_pause(struct tc_xds_channel *ch, uint64_t took_ns);
/* What the end of a stream means. */
void tc_xds_ads_ended(struct tc_xds_channel *ch, const struct tc_status *status, bool local);

#endif
