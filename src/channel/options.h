/* Channel options: defaults and checks. Any thread. */
#ifndef TC_CHANNEL_OPTIONS_H
#define TC_CHANNEL_OPTIONS_H

#include <torc/channel.h>

/* Stores the options `given` (NULL: the defaults, and plaintext), with each 0 and -1 replaced by the value for which it
 * stands. Raises keepalive_time_ms, if it is on, to at least 10 s. Pointers are borrowed from `given`. Returns false
 * with an error if an option is refused. */
bool tc_channel_options_complete(struct torc_channel_options *out, const struct torc_channel_options *given,
                                 torc_error **error);
/* Returns the value that ring_size_cap 0 stands for: GRPC_RING_HASH_CAP of the environment, or 4096 if the variable is
 * unset or not in 1..TC_RING_SIZE_MAX. */
uint32_t tc_channel_default_ring_cap(void);

#endif
