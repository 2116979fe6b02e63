/* Connections, for stream.c (the byte streams of both ends), net.c (hosts, connecting, listening, faults) and the
 * faults of test/sim. A connection is freed when both ends are closed. Any thread of the world (testing/threads.h). */
#ifndef TC_TESTING_NET_INTERNAL_H
#define TC_TESTING_NET_INTERNAL_H

#include "base/list.h"
#include "base/vec.h"
#include "io/bytestream.h"
#include "testing/net.h"
#include "testing/world.h"

struct tc_net_connection;

/* The bytes of one write, or the end of a stream, or a reset. */
struct tc_net_chunk {
    uint64_t at_ns; /* when it arrives */
    size_t len;     /* bytes; 0: the end of the stream, or a reset */
    bool reset;     /* with len 0 alone */
};

/* One end, with the bytes that are on their way to it. */
struct tc_net_side {
    struct tc_bytestream bs;
    struct tc_net_connection *connection;
    struct tc_loop *loop;
    struct tc_buf inbox, flight;        /* bytes that arrived and are unread; bytes on their way to this end */
    TC_VEC(struct tc_net_chunk) chunks; /* on their way to this end, in order; their bytes are in `flight` */
    struct tc_world_event arrival;      /* of the first chunk */
    struct tc_world_event again;        /* looks again whether the end has an owner */
    struct tc_world_event give_up;      /* fails the end: nobody acknowledged the bytes that it sent */
    uint64_t user_timeout_ns;           /* the time until give_up (TCP_USER_TIMEOUT) */
    uint64_t acknowledged_ns;           /* when the peer's last acknowledgement arrives at this end; 0: none yet */
    struct tc_task event;               /* tells the owner `events` */
    unsigned events;                    /* TC_BS_* that the owner has not heard of */
    bool reading, want_write;           /* the owner wants TC_BS_READABLE; it waits for TC_BS_WRITABLE */
    bool finished;                      /* the end of the peer's stream has arrived */
    bool failed;                        /* reset, or given up */
    bool gave_up;                       /* failed by give_up */
    bool closed;                        /* stream_close was called */
};

struct tc_net_connection {
    struct tc_link link;
    uint64_t id;                         /* from 1, in the order in which connections are made */
    struct tc_net_side ends[2];          /* the client's, the server's */
    char *address;                       /* the server's; owned */
    uint64_t delay_ns, stalled_until_ns; /* one way; nothing arrives before (0: no stall) */
    size_t buffer_bytes;                 /* as in struct tc_net_options */
    size_t cut_after; /* so many bytes still arrive, at both ends together; the next breaks it. SIZE_MAX: no limit */
    bool silent;      /* nothing arrives any longer, and nobody is told */
};

static inline struct tc_net_side *tc_net_side_peer(struct tc_net_side *end)
{
    struct tc_net_connection *c = end->connection;
    return &c->ends[end == &c->ends[0]];
}

/* The next connection has the number id + 1. tc_net_begin calls it, so that two worlds in a row are alike. */
void tc_net_connection_number_from(uint64_t id);
/* Makes a connection between two loops to a server's address, which is borrowed for the call; both ends are open. The
 * caller sets the delay, the buffer and the timeouts, and hands each end's byte stream to an owner, who closes it. */
struct tc_net_connection *tc_net_connection_new(struct tc_loop *client, struct tc_loop *server,
                                                const struct tc_addr *addr);
/* Breaks a connection: each end that has not failed yet fails, and its owner is told. */
void tc_net_connection_reset(struct tc_net_connection *c);
/* Makes a connection silent: nothing arrives at either end any longer, and no end is told. */
void tc_net_connection_silence(struct tc_net_connection *c);
/* Returns true while both ends hold the connection, and it is not silent. */
bool tc_net_connection_is_open(const struct tc_net_connection *c);
/* Returns true while both ends hold the connection: neither has failed or was closed. */
bool tc_net_connection_is_held(const struct tc_net_connection *c);
/* Counts a connection that test/sim made silent; does nothing for an address that is not known. */
void tc_host_add_silenced(const char *address);
/* Returns the list of all connections (`link` of struct tc_net_connection); never NULL. */
struct tc_link *tc_net_connections(void);

#endif
