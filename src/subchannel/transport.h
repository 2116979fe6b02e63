/* A connected transport: an HTTP/2 connection. It outlives its place in the pool: after a GOAWAY it goes on until its
 * last stream ended. The transports to one server that are in use form a group (A105); calls wait on the group for a
 * free stream (MAX_CONCURRENT_STREAMS). Loop thread only. */
#ifndef TC_SUBCHANNEL_TRANSPORT_H
#define TC_SUBCHANNEL_TRANSPORT_H

#include "http2/client_stream.h"
#include "http2/connection.h"

struct tc_transport;

/* How many transports in a row were barren (connection.c): gone soon after their attempt started, and ended before the
 * server had ended any RPC with a status. Shared by the connection and by those of its transports that are not judged
 * yet. */
struct tc_barren {
    struct tc_lref ref;
    unsigned n;
};

/* Returns a count of 0 with one reference. */
struct tc_barren *tc_barren_new(void);
/* NULL is allowed. */
void tc_barren_unref(struct tc_barren *b);

/* The transports in use of one connection of the pool, which embeds the group, and the calls that wait for a stream on
 * any of them. */
struct tc_transport_group {
    struct tc_link in_use;   /* struct tc_transport, the oldest first */
    struct tc_link waiting;  /* struct tc_capacity_wait, first come, first served */
    struct tc_rstr *address; /* for texts; borrowed */
    bool serving;            /* the group calls `fn` of calls that waited: they may open a stream (tc_transport_open) */
    /* Calls wait for a stream. Called from inside tc_transport_wait unless the group is `serving`, and after it has
     * served if calls still wait. May be NULL. */
    void (*on_wait)(struct tc_transport_group *g);
};

/* Waits for a stream; embedded in a call or a side stream. The owner initialises `link`, and sets `only` and `fn`. */
struct tc_capacity_wait {
    struct tc_link link;
    const struct tc_transport *only;  /* the owner can use no other transport; NULL: any of the group */
    struct tc_transport_group *group; /* set by tc_transport_wait */
    /* Called when the wait is over and off the list: from the loop, when a stream of `t` can be opened; or with NULL,
     * when the last transport of the group is gone, possibly from inside tc_transport_drain or tc_transport_close.
     *
     * With `only` the end of that transport does not end the wait while the group has others. The owner ends the wait
     * in the transport's on_gone, or before it drains or closes the transport. */
    void (*fn)(struct tc_capacity_wait *wait, struct tc_transport *t);
};

struct tc_transport_events {
    /* The server's SETTINGS came. Comes once, before the transport joins a group; may be NULL after that. */
    void (*on_ready)(void *arg);
    /* GOAWAY came, the connection was lost, or its stream numbers are used up. No stream can be opened from now on, and
     * the transport has left its group. The owner forgets the transport, and must not close it inside the call: the
     * transport frees itself when its last stream has ended. `why` is borrowed. too_many_pings: see on_draining
     * (http2/connection.h). The last event. */
    void (*on_gone)(void *arg, struct tc_transport *t, const struct tc_status *why, bool too_many_pings);
};

/* Makes a transport that waits for the server's SETTINGS. Takes over the byte stream, and takes a reference of its own
 * to `address`. `list` is the owner's list of all its transports, draining ones included, and outlives them. `events`
 * is borrowed until on_gone, tc_transport_drain or tc_transport_close. Never returns NULL. */
struct tc_transport *tc_transport_new(struct tc_loop *loop, struct tc_bytestream *bs, const struct tc_h2_opts *opts,
                                      struct tc_rstr *address, struct tc_link *list,
                                      const struct tc_transport_events *events, void *arg);

/* Prepares a group without transports. `address` is borrowed as long as the group lives. */
void tc_transport_group_init(struct tc_transport_group *g, struct tc_rstr *address,
                             void (*on_wait)(struct tc_transport_group *g));
/* Adds a transport that is ready, as the newest, until it is gone. Replaces its events; `arg` stays. began_ms: when the
 * attempt that made it began, in the loop's time. */
void tc_transport_group_join(struct tc_transport_group *g, struct tc_transport *t,
                             const struct tc_transport_events *events, uint64_t began_ms);
/* Returns the oldest transport; NULL: there is none. */
struct tc_transport *tc_transport_group_oldest(const struct tc_transport_group *g);
/* Returns the oldest transport with a free stream, else the newest; NULL: there is none. */
struct tc_transport *tc_transport_group_choose(const struct tc_transport_group *g);
size_t tc_transport_group_count(const struct tc_transport_group *g);
/* Returns true if a call waits that any transport may serve, and no transport has a stream for it. */
bool tc_transport_group_starves(const struct tc_transport_group *g);

/* Lets the transport go: sends GOAWAY with `debug_text`. No event follows, and the transport frees itself when its last
 * stream has ended. If the transport was the group's last, the group's waits end with NULL from inside the call. */
void tc_transport_drain(struct tc_transport *t, const char *debug_text);
/* Ends the transport at once and frees it, without events. If the transport was the group's last, the group's waits end
 * with NULL from inside the call. Open streams end as tc_h2_conn_close says. */
void tc_transport_close(struct tc_transport *t);
/* Returns the transport with this link on the owner's list. */
struct tc_transport *tc_transport_of_link(struct tc_link *link);

struct tc_h2_conn *tc_transport_h2(const struct tc_transport *t);
/* Returns began_ms of tc_transport_group_join. */
uint64_t tc_transport_began_ms(const struct tc_transport *t);
/* Returns the keepalive time with which the transport began; 0: off. */
uint64_t tc_transport_keepalive_ms(const struct tc_transport *t);
/* Called from on_gone for a transport that is gone soon after its attempt began, and has answered no RPC yet, but still
 * may: its end resets `barren` to 0 or adds 1. Takes a reference to `barren`. */
void tc_transport_judge_later(struct tc_transport *t, struct tc_barren *barren);
/* Returns the address as text, borrowed from the transport. */
struct tc_rstr *tc_transport_address(const struct tc_transport *t);
/* Opens a stream as tc_h2_client_stream_open does, on a transport that has joined a group. Returns NULL with
 * TORC_ECLOSED if the transport is gone, and with TORC_EAGAIN also while other calls wait on the group: no call
 * overtakes them. */
struct tc_h2_stream *tc_transport_open(struct tc_transport *t, const struct tc_h2_request *request,
                                       struct tc_arena *arena, const struct tc_h2_client_events *events, void *arg,
                                       int *error);
/* Waits for a stream of the transport's group, after tc_transport_open returned TORC_EAGAIN. `wait` stays its owner's,
 * who keeps it until fn is called or tc_list_remove has ended the wait. */
void tc_transport_wait(struct tc_transport *t, struct tc_capacity_wait *wait);

#endif
