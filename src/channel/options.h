/* Channel options: defaults and checks. Any thread. */
#ifndef TC_CHANNEL_OPTIONS_H
#define TC_CHANNEL_OPTIONS_H

#include <torc/channel.h>

void tc_channel_options_init(struct torc_channel_options *options);
/* Stores the defaults, overridden by `given` (NULL: none). Returns false with the reason in *why (tc_free) if an option
 * is refused. */
bool tc_channel_options_complete(struct torc_channel_options *out, const struct torc_channel_options *given,
                                 torc_error **error);
/* Returns the cap of rings where ring_size_cap is 0: GRPC_RING_HASH_CAP, or 4096. */
uint32_t tc_channel_default_ring_cap(void);

#endif
