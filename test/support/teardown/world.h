/* The servers of the teardown campaign, of every kind that a channel may depend on, some of them good or bad at random,
 * and channels to them by each flow. */
#ifndef TC_SUPPORT_TEARDOWN_WORLD_H
#define TC_SUPPORT_TEARDOWN_WORLD_H

#include <torc/torc.h>

#include "base/random.h"

struct teardown;

struct teardown *teardown_new(void);
/* Call it after teardown_settle. */
void teardown_free(struct teardown *t);

/* Makes a channel by a random flow, whose number is put into *flow. One thread. csds: where the runtime serves CSDS;
 * NULL: nowhere. */
torc_channel *teardown_channel(struct teardown *t, torc_runtime *rt, const char *csds, struct tc_rng *rng,
                               size_t *flow);
/* Counts an RPC of a flow that ended by itself. Any thread. */
void teardown_count(struct teardown *t, size_t flow, int code);
/* Call credentials of an application that answer at once or from another thread, with a token or an error. */
torc_call_credentials *teardown_credentials(struct teardown *t);
/* Changes something at the servers. */
void teardown_stir(struct teardown *t, struct tc_rng *rng);
/* Waits until no request to the application's credentials is unanswered, and all of these credentials are released. */
void teardown_settle(struct teardown *t);
/* Prints channels and RPCs by flow, and streams of load reports. Fails the test if no RPC succeeded on a flow with more
 * than 300 channels where RPCs can succeed: teardowns of that flow would have tested nothing. */
void teardown_report(struct teardown *t);

#endif
