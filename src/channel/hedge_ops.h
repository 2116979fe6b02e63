/* Hedging (hedge.h) as a table of functions. The files whose functions hedge.c calls, such as messages.c, use the table
 * and do not include hedge.h. Loop thread only, except `free`. */
#ifndef TC_CHANNEL_HEDGE_OPS_H
#define TC_CHANNEL_HEDGE_OPS_H

struct tc_hedge_ops;
struct tc_send_message;
struct tc_call;

/* In the arena of the parent, the call whose attempts these are. */
struct tc_hedge {
    const struct tc_hedge_ops *ops;
    unsigned n; /* attempts so far */
};

struct tc_hedge_ops {
    /* A message, borrowed, was pushed to the parent's send buffer. NULL: the parent half-closed without a message. */
    void (*send)(struct tc_hedge *h, struct tc_send_message *message);
    /* The parent wants messages: asks the winner for them. Does nothing while there is no winner. */
    void (*read)(struct tc_hedge *h);
    /* The parent is over: cancels the attempts that run. What the parent shows of an attempt stays until `free`. */
    void (*stop)(struct tc_hedge *h);
    /* Returns the attempt that the parent is committed to, borrowed until `free`; NULL: none yet. */
    const struct tc_call *(*winner)(const struct tc_hedge *h);
    /* Frees the attempts. Any thread. */
    void (*free)(struct tc_hedge *h);
};

#endif
