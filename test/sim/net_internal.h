/* Connections, for stream.c (the byte streams of both ends) and net.c (hosts, connecting, listening, faults). A
 * connection is freed when both ends are closed. */
#ifndef SIM_NET_INTERNAL_H
#define SIM_NET_INTERNAL_H

#include "base/list.h"
#include "base/vec.h"
#include "io/bytestream.h"
#include "sim/net.h"
#include "sim/world.h"

struct sim_connection;

struct sim_chunk {
    uint64_t at_ns; /* when it arrives */
    size_t len;     /* 0: the end of the stream, or its reset */
    bool reset;
};

/* One end, with the bytes that are on their way to it. */
struct sim_end {
    struct tc_bytestream bs;
    struct sim_connection *connection;
    struct tc_loop *loop;
    struct tc_buf inbox, flight; /* arrived and unread; under way */
    TC_VEC(struct sim_chunk) chunks;
    struct sim_event arrival; /* of the first chunk */
    struct sim_event again;   /* looks again for an owner of the end */
    struct tc_task event;
    unsigned events;
    bool reading, want_write;
    bool finished; /* the peer's end has arrived */
    bool failed;   /* reset */
    bool closed;   /* by the owner; or nobody ever owned it */
};

struct sim_connection {
    struct tc_link link;
    uint64_t id;
    struct sim_end ends[2]; /* the client's, the server's */
    char *address;          /* the server's */
    uint64_t delay_ns, stalled_until_ns;
    size_t buffer_bytes;
    size_t cut_after;         /* this many bytes still arrive; SIZE_MAX: no limit */
    bool silent;              /* nothing arrives any longer, and nobody is told */
    struct sim_event give_up; /* the system's: sent bytes were not acknowledged */
    uint64_t user_timeout_ns;
};

static inline struct sim_end *sim_end_peer(struct sim_end *end)
{
    struct sim_connection *c = end->connection;
    return &c->ends[end == &c->ends[0]];
}

/* Makes a connection between two loops; both ends are open. */
struct sim_connection *sim_connection_new(struct tc_loop *client, struct tc_loop *server, const struct tc_addr *addr);
/* Breaks it: both ends fail. */
void sim_connection_reset(struct sim_connection *c);
void sim_connection_silence(struct sim_connection *c);
/* A fault of the network happened, or goes on until then. */
void sim_net_note_fault(uint64_t until_ns);
/* Returns the connections that have an end which is not closed. */
struct tc_link *sim_connections(void);

#endif
