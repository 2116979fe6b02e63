/* Making channels. Any thread, except for tc_channel_new_private. */
#ifndef TC_CHANNEL_CREATE_H
#define TC_CHANNEL_CREATE_H

#include "channel/channel.h"

struct tc_channel_plugins;
struct tc_lb_registry;

/* Makes a channel and returns the handle's reference. `options` are copied; NULL: the defaults, and plaintext. Takes
 * over the plugins, also on failure. is_private: the channel is for tc_channel_new_private. Returns NULL with an error
 * if target or options are malformed. */
torc_channel *tc_channel_make(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                              const struct tc_channel_plugins *plugins, bool is_private, torc_error **error);
/* Makes a channel without a public handle: to an xDS server, for instance. Loop thread only. The channel connects with
 * its first call. The caller ends the channel with tc_channel_shutdown. `policies` must outlive the channel. Returns
 * NULL with *why set, which the caller ends, if target or options are malformed. If the runtime was shut down, the
 * channel that is returned has ended already. */
torc_channel *tc_channel_new_private(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                                     const struct tc_lb_registry *policies, struct tc_status *why);

#endif
