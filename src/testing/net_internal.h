/* Connections, for stream.c (the byte streams of both ends) and net.c (hosts, connecting, listening, faults). A
 * connection is freed when both ends are closed. */
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
    size_t len;     /* 0: the end of the stream, or its reset */
    bool reset;
};

/* One end, with the bytes that are on their way to it. */
struct tc_net_side {
    struct tc_bytestream bs;
    struct tc_net_connection *connection;
    struct tc_loop *loop;
    struct tc_buf inbox, flight; /* arrived and unread; under way */
    TC_VEC(struct tc_net_chunk) chunks;
    struct tc_world_event arrival; /* of the first chunk */
    struct tc_world_event again;   /* looks again for an owner of the end */
    struct tc_world_event give_up; /* the system's: bytes that this end sent were not acknowledged */
    uint64_t user_timeout_ns;
    struct tc_task event;
    unsigned events;
    bool reading, want_write;
    bool finished; /* the peer's end has arrived */
    bool failed;   /* reset, or given up */
    bool gave_up;
    bool closed; /* by the owner; or nobody ever owned it */
};

struct tc_net_connection {
    struct tc_link link;
    uint64_t id;
    struct tc_net_side ends[2]; /* the client's, the server's */
    char *address;              /* the server's */
    uint64_t delay_ns, stalled_until_ns;
    size_t buffer_bytes;
    size_t cut_after; /* this many bytes still arrive; SIZE_MAX: no limit */
    bool silent;      /* nothing arrives any longer, and nobody is told */
};

static inline struct tc_net_side *tc_net_side_peer(struct tc_net_side *end)
{
    struct tc_net_connection *c = end->connection;
    return &c->ends[end == &c->ends[0]];
}

/* The connection after this one has the next number: so two worlds in a row are alike. */
void tc_net_connection_number_from(uint64_t id);
/* Makes a connection between two loops; both ends are open. */
struct tc_net_connection *tc_net_connection_new(struct tc_loop *client, struct tc_loop *server,
                                                const struct tc_addr *addr);
/* Breaks it: both ends fail, unless an end has failed before. */
void tc_net_connection_reset(struct tc_net_connection *c);
void tc_net_connection_silence(struct tc_net_connection *c);
/* Returns true while both ends can still reach each other. */
bool tc_net_connection_is_open(const struct tc_net_connection *c);
/* Returns true while both ends hold the connection, be it silent or not. */
bool tc_net_connection_is_held(const struct tc_net_connection *c);
/* Counts a connection of the host that became half-open by itself. */
void tc_host_add_silenced(const char *address);
/* Returns the connections that have an end which is not closed. */
struct tc_link *tc_net_connections(void);

#endif
