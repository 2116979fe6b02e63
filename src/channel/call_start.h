/* Starting calls, for the public API and the xDS transport. Loop thread only. */
#ifndef TC_CHANNEL_CALL_START_H
#define TC_CHANNEL_CALL_START_H

#include "channel/call.h"
#include "channel/channel.h"
#include "channel/messages.h"

struct tc_call_opts {
    struct tc_slice method;            /* "/package.Service/Method"; copied */
    const struct tc_headers *metadata; /* copied; NULL: none */
    uint64_t timeout_ns;               /* 0: none */
    int wait_for_ready;                /* 1; -1: no, whatever the config says; 0: as the config says */
    bool once; /* a request that left is not sent again transparently, even if the server has not processed it */
    uint64_t max_receive_message_bytes; /* 0: the channel's; UINT64_MAX: none; a smaller one of the config counts */
};

/* Starts a call with memory of its own, which is freed after on_done, by tc_call_cancel, or by tc_channel_shutdown.
 * `opts` is copied, `events` borrowed until then. Never returns NULL: a failure is an outcome of the call, and on_done
 * comes later. */
struct tc_call *tc_call_start(torc_channel *ch, const struct tc_call_opts *opts, const struct tc_call_events *events,
                              void *arg);

/* Begins a call that tc_call_init prepared. Does not call `events` from inside (interceptors' on_start runs). */
void tc_call_begin(struct tc_call *c);
/* Ends a call that tc_call_init prepared and that must not begin. Takes over the status. Does not call back from
 * inside. */
void tc_call_refuse(struct tc_call *c, struct tc_status why);

#endif
