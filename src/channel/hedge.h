/* Hedging (A6): attempts of one call side by side. Loop thread only. */
#ifndef TC_CHANNEL_HEDGE_H
#define TC_CHANNEL_HEDGE_H

struct tc_call;

/* Begins the first attempt of a call whose retry policy is hedging, or with a hedging delay of 0 all attempts that the
 * throttle allows. Sets c->hedge, which lies in the call's arena. */
void tc_hedge_start(struct tc_call *c);

#endif
