/* What the teardown campaign's channels are about: servers of every kind that a channel may depend on, each as good or
 * as bad as chance has it, and channels by each flow to them. */
#ifndef TC_SUPPORT_TEARDOWN_WORLD_H
#define TC_SUPPORT_TEARDOWN_WORLD_H

#include <torc/torc.h>

#include "base/random.h"

struct teardown_world;

struct teardown_world *teardown_world_new(void);
void teardown_world_free(struct teardown_world *t);

/* A channel by one of the flows, which *flow then numbers; csds: where the runtime serves CSDS, NULL: nowhere. */
torc_channel *teardown_world_channel(struct teardown_world *t, torc_runtime *rt, const char *csds, struct tc_rng *rng,
                                     size_t *flow);
/* An RPC of a flow ended by itself. Any thread. */
void teardown_world_count(struct teardown_world *t, size_t flow, int code);
/* Call credentials of an application, whose answers come at once or from another thread, or say no. */
torc_call_credentials *teardown_world_credentials(struct teardown_world *t);
/* Something changes at the servers. */
void teardown_world_stir(struct teardown_world *t, struct tc_rng *rng);
/* Until nothing waits for an answer of the application's credentials, all of which must be released by then. */
void teardown_world_settle(struct teardown_world *t);
/* Channels and RPCs so far by each flow, a line for each, and streams of load reports. Fails where a flow on which an
 * RPC can succeed had none that did: what is torn down would have been nothing yet. */
void teardown_world_report(struct teardown_world *t);

#endif
