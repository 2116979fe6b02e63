/* The servers of the teardown campaign, and channels to them. A flow decides a channel's target, options and
 * credentials. A server or a channel that cannot be made fails the test. A flow whose own credentials cannot be made
 * goes on without them, unless they are Google's or those of answers.h: then the test fails. One thread, the test's,
 * calls all functions but those that are for any thread. */
#ifndef TC_SUPPORT_TEARDOWN_WORLD_H
#define TC_SUPPORT_TEARDOWN_WORLD_H

#include <torc/torc.h>

#include "base/random.h"

struct teardown;

/* Starts the servers, writes their files and makes one RPC that succeeds. The caller frees the result; never NULL. */
struct teardown *teardown_new(void);
/* Ends the servers and removes their files. Call it after teardown_settle. */
void teardown_free(struct teardown *t);

/* Makes a channel of the runtime by a random flow, whose number is stored in *flow. The caller frees the channel; never
 * NULL. csds: the address where the runtime serves CSDS, read during this call alone; NULL: it serves none. */
torc_channel *teardown_channel(struct teardown *t, torc_runtime *rt, const char *csds, struct tc_rng *rng,
                               size_t *flow);
/* Counts an RPC of the flow, which ended with the status `code`. Any thread. */
void teardown_count(struct teardown *t, size_t flow, int code);
/* Returns new credentials of answers.h, which the caller unrefs; never NULL. Any thread. */
torc_call_credentials *teardown_credentials(struct teardown *t);
/* Makes a random change at the servers (the head of world.c lists the changes). */
void teardown_stir(struct teardown *t, struct tc_rng *rng);
/* Waits until all credentials of answers.h have answered their requests and are destroyed. */
void teardown_settle(struct teardown *t);
/* Prints channels and RPCs by flow, and streams of load reports. Fails the test if no RPC succeeded on a flow with more
 * than 300 channels where RPCs can succeed: teardowns of that flow would have tested nothing. */
void teardown_report(struct teardown *t);

#endif
