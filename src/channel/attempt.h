/* The attempts of a call: a pick, and a stream on the connection it chose. Loop thread only, except
 * tc_call_attempt_init. */
#ifndef TC_CHANNEL_ATTEMPT_H
#define TC_CHANNEL_ATTEMPT_H

struct tc_call;

/* Prepares the waits and the retry timer of a call, once, before its first attempt. Any thread, as tc_call_init. */
void tc_call_attempt_init(struct tc_call *c);
/* Begins an attempt: it passes the interceptors, then picks. */
void tc_call_attempt(struct tc_call *c);
/* Picks, and then opens a stream, waits, retries or fails. A dry call ends here, whatever the pick says. */
void tc_call_pick(struct tc_call *c);

#endif
