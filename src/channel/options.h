/* Channel options: defaults, and what is refused. */
#ifndef TC_CHANNEL_OPTIONS_H
#define TC_CHANNEL_OPTIONS_H

#include <torc/channel.h>

/* `given` (NULL: none) over the defaults, with its limits applied. False with the reason in *why (tc_free). */
bool tc_channel_options_complete(struct torc_channel_options *out, const struct torc_channel_options *given,
                                 char **why);
/* The cap of rings where ring_size_cap is 0: GRPC_RING_HASH_CAP's, or 4096. */
uint32_t tc_channel_default_ring_cap(void);

#endif
