/* A channel on virtual time that never connects: the test publishes its states and pickers with tc_channel_set_state.
 * One thread; the test turns the loop. */
#ifndef TC_SUPPORT_KITS_CHANNEL_H
#define TC_SUPPORT_KITS_CHANNEL_H

#include "channel/create.h"
#include "io/loop.h"

struct kit_channel {
    struct tc_loop *loop;
    torc_runtime *rt;
    torc_channel *ch; /* NULL: the test has shut it down */
};

/* service_config: JSON; NULL: none. */
void kit_channel_init(struct kit_channel *k, const char *service_config);
void kit_channel_fini(struct kit_channel *k);

#endif
