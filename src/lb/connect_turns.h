/* Turns for policies that begin many connections at once.
 *
 * A policy with thousands of new endpoints would hold up every call on the loop. So the policies of a channel that
 * connect all of their endpoints (lb/policies/petiole.h) together begin at most TC_CONNECT_TURN_PARTS endpoints from
 * the end of one turn of the loop to the end of the next; the other endpoints wait in line. A part is one endpoint that
 * begins to connect. A "turn" below (struct tc_connect_turn) is a policy's place in that line. Loop thread only, except
 * tc_connect_turns_init. */
#ifndef TC_LB_CONNECT_TURNS_H
#define TC_LB_CONNECT_TURNS_H

#include "io/loop.h"

#define TC_CONNECT_TURN_PARTS 128

/* Embedded in the channel, which cancels `end` after it has shut its policies down. */
struct tc_connect_turns {
    struct tc_loop *loop;
    struct tc_link waiting; /* turns, the next one first */
    struct tc_task end;     /* sets `left` to the full number at the end of the loop's turn, and runs turns that wait */
    uint32_t left;          /* parts that may still begin before the end of the loop's turn */
};

/* Embedded in a policy, whose shutdown must take the turn out of the line: tc_list_remove(&t->link). */
struct tc_connect_turn {
    struct tc_link link;
    /* Does at most *left parts, which may be 0, and subtracts them from *left. Returns true if there are more to do.
     * The policy may be shut down meanwhile: then returns false. */
    bool (*run)(struct tc_connect_turn *t, uint32_t *left);
};

/* Begins with an empty line and all parts left. `loop` is borrowed. Any thread, before the loop's thread uses `q`. */
void tc_connect_turns_init(struct tc_connect_turns *q, struct tc_loop *loop);

void tc_connect_turn_init(struct tc_connect_turn *t, bool (*run)(struct tc_connect_turn *t, uint32_t *left));
/* Runs the turn at once as far as q->left goes, and the rest at the ends of this and later turns of the loop. Does not
 * run a turn that waits in line already. */
void tc_connect_turn_request(struct tc_connect_turns *q, struct tc_connect_turn *t);

#endif
