/* Connections, for stream.c (the byte streams of both ends), net.c (hosts, connecting, listening, faults) and the
 * faults of test/sim. A connection is freed when both ends are closed. The thread of the world. */
#ifndef TC_TESTING_NET_INTERNAL_H
#define TC_TESTING_NET_INTERNAL_H

#include "base/list.h"
#include "base/vec.h"
#include "io/bytestream.h"
#include "testing/net.h"
#include "testing/world.h"

struct tc_net_connection;

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
    struct tc_buf inbox, flight; /* bytes that arrived and are unread; bytes that are on their way here */
    TC_VEC(struct tc_net_chunk) chunks;
    struct tc_world_event arrival; /* of the first chunk */
    struct tc_world_event again;   /* looks again for an owner of the end */
    struct tc_world_event give_up; /* the system gives up: nobody acknowledged what this end sent */
    uint64_t user_timeout_ns;      /* from the silence, or the first byte sent in it, to give_up */
    uint64_t acknowledged_ns;      /* when this end hears of the last arrival of its bytes */
    struct tc_task event;          /* tells the owner `events` */
    unsigned events;
    bool reading, want_write; /* the owner wants TC_BS_READABLE; it waits for TC_BS_WRITABLE */
    bool finished;            /* the end of the peer's stream has arrived */
    bool failed;              /* reset, or given up */
    bool gave_up;
    bool closed; /* stream_close was called */
};

struct tc_net_connection {
    struct tc_link link;
    uint64_t id;
    struct tc_net_side ends[2]; /* the client's, the server's */
    char *address;              /* the server's */
    uint64_t delay_ns, stalled_until_ns;
    size_t buffer_bytes;
    size_t cut_after; /* the connection breaks when so many bytes have arrived; SIZE_MAX: no limit */
    bool silent;      /* nothing arrives any longer, and nobody is told */
};

static inline struct tc_net_side *tc_net_side_peer(struct tc_net_side *end)
{
    struct tc_net_connection *c = end->connection;
    return &c->ends[end == &c->ends[0]];
}

/* Numbers the next connection id + 1: so two worlds in a row are alike. */
void tc_net_connection_number_from(uint64_t id);
/* Makes a connection between two loops to a server's address; both ends are open. The caller sets the delay, the buffer
 * and the timeouts. */
struct tc_net_connection *tc_net_connection_new(struct tc_loop *client, struct tc_loop *server,
                                                const struct tc_addr *addr);
/* Breaks a connection: each end that has not failed before fails, and is told. */
void tc_net_connection_reset(struct tc_net_connection *c);
/* Makes a connection silent: nothing arrives at either end any longer, and no end is told. */
void tc_net_connection_silence(struct tc_net_connection *c);
/* Returns true while both ends can still reach each other. */
bool tc_net_connection_is_open(const struct tc_net_connection *c);
/* Returns true while both ends hold the connection, be it silent or not. */
bool tc_net_connection_is_held(const struct tc_net_connection *c);
/* Counts a connection of the host that became half-open by itself. */
void tc_host_add_silenced(const char *address);
/* Returns the list of all connections. */
struct tc_link *tc_net_connections(void);

#endif
