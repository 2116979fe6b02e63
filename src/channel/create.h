/* Making channels. Any thread, except for tc_channel_new_private. */
#ifndef TC_CHANNEL_CREATE_H
#define TC_CHANNEL_CREATE_H

#include "channel/channel.h"

struct tc_channel_plugins;
struct tc_lb_registry;

/* Makes a channel and returns the handle's reference. Options as in the public API (copied). Takes over the plugins,
 * also on failure. Returns NULL with an error if target or options are malformed. */
torc_channel *tc_channel_make(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                              const struct tc_channel_plugins *plugins, bool is_private, torc_error **error);
/* Makes a channel without a public handle, on the runtime's loop (loop thread only): to an xDS server, for instance. It
 * connects with its first call. `policies` must outlive the channel, which ends with tc_channel_shutdown. Returns NULL
 * with *why set if target or options are malformed. */
torc_channel *tc_channel_new_private(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                                     const struct tc_lb_registry *policies, struct tc_status *why);

#endif
