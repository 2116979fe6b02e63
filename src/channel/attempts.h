/* Which attempts to connect begin, and when. A policy may have any number of endpoints to connect to: all at once would
 * keep the loop from everybody else, and those that do not answer hold a descriptor each until the time to connect is
 * over. So some begin in a turn of the loop, and so many are under way as leave the process half of its descriptors;
 * the others wait, and channels take turns. Inside src/channel; loop thread only. */
#ifndef TC_CHANNEL_ATTEMPTS_H
#define TC_CHANNEL_ATTEMPTS_H

#include "io/loop.h"

struct tc_connection;

/* Of a channel: its connections that wait, and how many are under way. */
struct tc_attempts_line;

struct tc_attempts {
    struct tc_loop *loop;
    struct tc_attempts_line *lines; /* those that have either, by channel */
    struct tc_link waiting;         /* those that have connections that wait; the next one first */
    struct tc_task turn;            /* begins them */
    uint32_t begun;                 /* in this turn */
    uint64_t under_way;
};

void tc_attempts_init(struct tc_attempts *a, struct tc_loop *loop);
/* Nothing begins after it. */
void tc_attempts_stop(struct tc_attempts *a);

/* The connection's attempt is to begin, by tc_connection_begin: at once, or when it has its turn. */
void tc_attempts_want(struct tc_attempts *a, struct tc_connection *c);
/* It has begun. */
void tc_attempts_began(struct tc_attempts *a, struct tc_connection *c);
/* It is over: with a transport, with a failure, or given up, also before it began. Harmless when there is none. */
void tc_attempts_over(struct tc_attempts *a, struct tc_connection *c);

#endif
