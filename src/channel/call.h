/* Calls on the loop: their events and their end. call_start.h starts one. Loop thread only. */
#ifndef TC_CHANNEL_CALL_H
#define TC_CHANNEL_CALL_H

#include "base/headers.h"
#include "base/rstr.h"
#include "base/status.h"

struct tc_call;

/* How a call ended; borrowed for on_done. */
struct tc_call_end {
    struct tc_status status;
    const struct tc_headers *headers;  /* NULL: none came */
    const struct tc_headers *trailers; /* NULL: none came */
    struct tc_rstr *peer;              /* text of the backend's address; NULL: none was reached */
    uint32_t attempts;                 /* that opened a stream; not counted: one whose request never left because it
                                          was too large, or never left and was sent again */
};

/* Called from the loop, never from inside a function of the call. All but on_done may be NULL. */
struct tc_call_events {
    /* The response's initial metadata, borrowed until on_done has returned. Does not come for trailers-only. */
    void (*on_headers)(void *arg, const struct tc_headers *headers);
    /* One message, after tc_call_read. The callee owns the reference. */
    void (*on_message)(void *arg, struct tc_rstr *message);
    /* The message given to tc_call_send was handed to a connected transport within its flow-control window, or dropped
     * because the stream is over. The next message may be sent. */
    void (*on_written)(void *arg);
    /* May replace the status of a call that ended with OK, before interceptors and on_done see it. With interceptors it
     * is called again behind them if the status is still OK. */
    void (*settle)(void *arg, struct tc_status *status);
    /* The end, exactly once and last; afterwards the call is gone. Not called after tc_call_cancel, nor after
     * tc_channel_shutdown. */
    void (*on_done)(void *arg, const struct tc_call_end *end);
};

/* Returns whether the stream of the present attempt has ended; received messages may still wait to be read. In
 * on_written, true means that the message may not have reached the server: the server did not want the message, or the
 * connection was lost. Returns false without a stream, so for each call that hedges. */
bool tc_call_ended(const struct tc_call *c);
/* Ends the call without on_done: no event comes after it, and the call is gone. Calls the interceptors' on_end from
 * inside. */
void tc_call_cancel(struct tc_call *c);

#endif
