/* The servers of the teardown campaign, and channels to them. A flow decides a channel's target, options and
 * credentials. */
#ifndef TC_SUPPORT_TEARDOWN_WORLD_H
#define TC_SUPPORT_TEARDOWN_WORLD_H

#include <torc/torc.h>

#include "base/random.h"

struct teardown;

struct teardown *teardown_new(void);
/* Call it after teardown_settle. */
void teardown_free(struct teardown *t);

/* Makes a channel by a random flow, whose number is stored in *flow. csds: the address where the runtime serves CSDS;
 * NULL: it does not. Always called by the same thread. */
torc_channel *teardown_channel(struct teardown *t, torc_runtime *rt, const char *csds, struct tc_rng *rng,
                               size_t *flow);
/* Counts an RPC of the flow, which ended with `code`. Any thread. */
void teardown_count(struct teardown *t, size_t flow, int code);
/* Returns new credentials of answers.h, which the caller unrefs. Any thread. */
torc_call_credentials *teardown_credentials(struct teardown *t);
/* Changes something at the servers. */
void teardown_stir(struct teardown *t, struct tc_rng *rng);
/* Waits until all credentials of answers.h have answered their requests and are destroyed. */
void teardown_settle(struct teardown *t);
/* Prints channels and RPCs by flow, and streams of load reports. Fails the test if no RPC succeeded on a flow with more
 * than 300 channels where RPCs can succeed: teardowns of that flow would have tested nothing. */
void teardown_report(struct teardown *t);

#endif
