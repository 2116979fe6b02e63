/* Calls on the loop: what the public API, and the xDS transport, are made of. Loop thread only. */
#ifndef TC_CHANNEL_CALL_H
#define TC_CHANNEL_CALL_H

#include "base/headers.h"
#include "base/rstr.h"
#include "base/status.h"
#include "channel/channel.h"

struct tc_call;

/* How a call ended; borrowed for on_done. */
struct tc_call_end {
    struct tc_status status;
    const struct tc_headers *headers;  /* NULL: none came */
    const struct tc_headers *trailers; /* NULL: none came */
    struct tc_rstr *peer;              /* text of the backend's address; NULL: none was reached */
    uint32_t attempts;                 /* how often the request was sent */
};

/* Each comes from the loop, never from inside a function of this header. Each but on_done may be NULL. */
struct tc_call_events {
    void (*on_headers)(void *arg, const struct tc_headers *headers);
    /* One message after tc_call_read; the callee owns the reference. */
    void (*on_message)(void *arg, struct tc_rstr *message);
    /* The message given to tc_call_send was handed to a connected transport, as far as flow control goes. */
    void (*on_written)(void *arg);
    /* The end, exactly once and last; afterwards the call is gone. Not after tc_call_cancel. */
    void (*on_done)(void *arg, const struct tc_call_end *end);
};

struct tc_call_opts {
    struct tc_slice method;            /* "/package.Service/Method"; copied */
    const struct tc_headers *metadata; /* copied; NULL: none */
    uint64_t timeout_ns;               /* 0: none */
    bool wait_for_ready;
    uint64_t max_receive_message_bytes; /* 0: the channel's; UINT64_MAX: none */
};

/* Starts a call of any kind. Never NULL: what goes wrong is an outcome. */
struct tc_call *tc_call_start(torc_channel *ch, const struct tc_call_opts *opts, const struct tc_call_events *events,
                              void *arg);
/* Sends one message; takes over its reference. `end`: half-close after it. TORC_ESTATE while one is under way or after
 * the last. */
int tc_call_send(struct tc_call *c, struct tc_rstr *message, bool end);
/* Half-closes without a message. */
int tc_call_send_end(struct tc_call *c);
/* Wants one more message; demands add up. */
void tc_call_read(struct tc_call *c);
/* Ends it without on_done; no callback comes after, and the call is gone. */
void tc_call_cancel(struct tc_call *c);

#endif
