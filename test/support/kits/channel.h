/* A channel on a loop with virtual time. Its connection attempts never end: the test publishes states and pickers
 * with tc_channel_set_state. One thread; the test turns the loop. */
#ifndef TC_SUPPORT_KITS_CHANNEL_H
#define TC_SUPPORT_KITS_CHANNEL_H

#include "channel/create.h"
#include "io/loop.h"

struct kit_channel {
    struct tc_loop *loop;
    torc_runtime *rt;
    torc_channel *ch; /* of tc_channel_new_private; a test that shuts the channel down sets this to NULL */
};

/* Makes loop, runtime and channel. service_config: JSON; NULL: none. Fails the test if the channel cannot
 * be made. */
void kit_channel_init(struct kit_channel *k, const char *service_config);
/* Shuts the channel down unless `ch` is NULL, runs the loop, and frees runtime and loop. */
void kit_channel_fini(struct kit_channel *k);

#endif
