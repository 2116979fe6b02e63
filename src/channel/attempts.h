/* Which attempts to connect begin, and when. A policy may have any number of endpoints to connect to: all at once would
 * keep the loop from everybody else, and those that do not answer hold a descriptor each until the time to connect is
 * over. So some begin in a turn of the loop, and so many are under way as leave the process half of its descriptors.
 * The others wait, and take turns: channels, and in a channel its localities (so do priorities and clusters, which have
 * none in common). Beyond the half there is room for those who have little under way, so that endpoints that are silent
 * keep nobody else waiting. Inside src/channel; loop thread only. */
#ifndef TC_CHANNEL_ATTEMPTS_H
#define TC_CHANNEL_ATTEMPTS_H

#include "io/loop.h"

struct tc_connection;
struct tc_attempts_line;  /* a locality's connections that wait or are under way */
struct tc_attempts_lines; /* a channel's */

struct tc_attempts {
    struct tc_loop *loop;
    struct tc_attempts_lines *channels;
    struct tc_link waiting; /* channels with connections that wait; the next one first */
    struct tc_link again;   /* connections that were READY before and wait for the next turn of the loop alone */
    struct tc_task turn;    /* begins them */
    uint32_t begun;         /* in this turn */
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
