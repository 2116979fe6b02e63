/* The attempts of a call: a pick, and a stream on the connection it chose. Loop thread only. */
#ifndef TC_CHANNEL_ATTEMPT_H
#define TC_CHANNEL_ATTEMPT_H

struct tc_call;

/* Once for a call, before its first attempt: prepares its waits and the timer of retries. */
void tc_call_attempt_init(struct tc_call *c);
/* An attempt begins: interceptors see it, then it picks. */
void tc_call_attempt(struct tc_call *c);
/* Picks, and goes on as the pick says: opens a stream, waits, retries or fails. */
void tc_call_pick(struct tc_call *c);

#endif
