/* Hedging (A6): attempts of one call side by side, the next after a delay or as soon as one has failed; the first that
 * answers is the call. Each attempt is a call of its own (tc_call.is_attempt) with the parent's config, whose request
 * it is fed from the messages that the parent keeps. In the parent's arena; inside src/channel. */
#ifndef TC_CHANNEL_HEDGE_H
#define TC_CHANNEL_HEDGE_H

#include <stdint.h>

struct tc_call;
struct tc_hedge;
struct tc_out;

/* Makes the call's first attempt; its retry policy says hedging. */
void tc_hedge_start(struct tc_call *c);
/* A message was queued at the parent, or (NULL) it half-closed. */
void tc_hedge_send(struct tc_hedge *h, struct tc_out *message);
/* One more message is wanted. */
void tc_hedge_read(struct tc_hedge *h);
/* The parent is over: cancels what runs. Attempts keep what the parent points at. */
void tc_hedge_stop(struct tc_hedge *h);
/* Frees the attempts. NULL is allowed. */
void tc_hedge_free(struct tc_hedge *h);
/* Attempts so far. */
unsigned tc_hedge_attempts(const struct tc_hedge *h);

#endif
