/* Work in parts: policies of a channel that have many endpoints to begin with take turns, so that the loop is others'
 * as well, however many policies there are. Loop thread only. */
#ifndef TC_LB_TURNS_H
#define TC_LB_TURNS_H

#include "io/loop.h"

/* Parts of all policies in one turn of the loop. */
#define TC_LB_PARTS 128

/* A channel's. */
struct tc_lb_turns {
    struct tc_loop *loop;
    struct tc_link waiting; /* the next one first */
    struct tc_task end;     /* of the loop's turn */
    uint32_t left;          /* parts in this turn */
};

/* A policy's. */
struct tc_lb_turn {
    struct tc_link link;
    /* Does so many parts at most, and takes them off *left; true: there are more. */
    bool (*run)(struct tc_lb_turn *t, uint32_t *left);
};

void tc_lb_turns_init(struct tc_lb_turns *q, struct tc_loop *loop);
/* No policy is left. */
void tc_lb_turns_stop(struct tc_lb_turns *q);

void tc_lb_turn_init(struct tc_lb_turn *t, bool (*run)(struct tc_lb_turn *t, uint32_t *left));
/* Runs it: at once, as far as this turn of the loop goes, and then in the next ones. */
void tc_lb_turn_want(struct tc_lb_turns *q, struct tc_lb_turn *t);
void tc_lb_turn_cancel(struct tc_lb_turn *t);

#endif
