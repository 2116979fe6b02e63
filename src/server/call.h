/* A call of the server: its request in, its messages and its status out. Loop thread only, except
 * tc_server_places_give_back. */
#ifndef TC_SERVER_CALL_H
#define TC_SERVER_CALL_H

#include "base/arena.h"
#include "base/headers.h"
#include "base/ref.h"
#include "base/rstr.h"
#include "base/status.h"
#include "http2/encoding.h"

struct tc_addr;
struct tc_server;
struct tc_server_call;
struct tc_server_places;
struct tc_tls_identity;

/* Texts of the status that ends a unary request without a message, or with more than one. */
#define TC_SERVER_NO_REQUEST "unary request without a message"
#define TC_SERVER_TWO_REQUESTS "unary request of more than one message"

/* Returns the cost of a queued message: its bytes, its prefix, and the objects that hold it. */
static inline size_t tc_server_message_cost(size_t len)
{
    return len + 64;
}

/* Events of a call. Each may be NULL. */
struct tc_server_call_events {
    /* One message, after tc_server_call_read; the callee owns the reference. Not called for unary methods. */
    void (*on_message)(void *arg, struct tc_rstr *message);
    /* The client half-closed after its last message. Called only while a read is wanted; not for unary methods. */
    void (*on_half_close)(void *arg);
    /* Flow control has let through a message of `len` bytes (before compression). */
    void (*on_sent)(void *arg, size_t len);
    /* Flow control has let through all messages that were given to send. Not called after tc_server_call_finish. */
    void (*on_written)(void *arg);
    /* The call is over:
     *
     *   OK                   the owner's status was written;
     *   INTERNAL             a message was malformed or not whole, and the server wrote this status; or the client's
     *                        SETTINGS forbid headers of that size, and the server reset the stream;
     *   RESOURCE_EXHAUSTED   a message was too large, there was no memory for a message, or the server held too many
     *                        unread bytes; the server wrote this status or reset the stream;
     *   CANCELLED            the client gave up, the connection failed, or the call was reset, by its owner or at
     *                        max_queued_bytes;
     *   DEADLINE_EXCEEDED    the deadline passed;
     *   UNAVAILABLE          the server closed the connection;
     *   another              the status of tc_server_end.
     *
     * Always the last event, exactly once, also after tc_server_call_reset. Only tc_server_free, and tc_server_end
     * without a status, end calls without on_end. The call is freed when on_end returns. */
    void (*on_end)(void *arg, const struct tc_status *why);
};

/* Sets the events, which are borrowed until the call is over. */
void tc_server_call_set_events(struct tc_server_call *call, const struct tc_server_call_events *events, void *arg);
/* Returns the request's path, borrowed until on_end; empty if it has none. */
struct tc_slice tc_server_call_path(const struct tc_server_call *call);
/* Moves the call's places to *places. They outlive the call: the caller must give them back. */
void tc_server_call_take_places(struct tc_server_call *call, struct tc_server_places *places);
/* Gives the places back and empties *places. Does nothing if *places is empty. Any thread. */
void tc_server_places_give_back(struct tc_server_places *places);
/* Returns the text of the client's address, borrowed until on_end. */
const char *tc_server_call_peer(const struct tc_server_call *call);
/* Returns whether the connection has transport security. */
bool tc_server_call_secure(const struct tc_server_call *call);
/* Returns the client's identity by its certificate, borrowed until on_end; NULL: the client was not asked for a
 * certificate, or there is no TLS. */
struct tc_tls_identity *tc_server_call_tls_peer(const struct tc_server_call *call);
/* Returns tc_server_opts.owner of the call's server. */
void *tc_server_call_owner(const struct tc_server_call *call);
/* Returns when the deadline passes, in the time of tc_loop_now_ns; UINT64_MAX: never. */
uint64_t tc_server_call_deadline_ns(const struct tc_server_call *call);
/* Returns the request's metadata with pseudo-headers, borrowed until on_end. */
const struct tc_headers *tc_server_call_metadata(const struct tc_server_call *call);
/* Returns an arena that lives until on_end has returned. */
struct tc_arena *tc_server_call_arena(struct tc_server_call *call);

/* Sets how many bytes of delivered messages the owner keeps until the request is whole. They count as unread. */
void tc_server_call_keep(struct tc_server_call *call, size_t bytes);
/* Asks for one more message. */
void tc_server_call_read(struct tc_server_call *call);
/* Sends a copy of the initial metadata (NULL: empty), before the first message, which otherwise sends empty metadata.
 * The messages that follow are compressed with `encoding`, if the client accepts it. Does nothing if headers or the
 * status were sent, or after a reset. */
void tc_server_call_send_headers(struct tc_server_call *call, const struct tc_headers *headers,
                                 enum tc_h2_encoding encoding);
/* Sends a copy of a message, behind the queued messages. Does nothing after tc_server_call_finish or a reset.
 *
 * While all calls together queue more than max_queued_bytes, calls are reset. First go the calls whose client has taken
 * no message for 5 s, the longest waiting first. If there is none, the choice is by queued bytes: of the peer address
 * that holds the most, the connection that holds the most, and of its calls the call that holds the most. Among equals
 * it is this call. */
void tc_server_call_send(struct tc_server_call *call, struct tc_slice message);
/* Sends a message as tc_server_call_send does, without a copy. Takes a reference of its own. */
void tc_server_call_send_ref(struct tc_server_call *call, struct tc_rstr *message);
/* Sends a message as tc_server_call_send_ref does, but never compressed, whatever the encoding. */
void tc_server_call_send_plain(struct tc_server_call *call, struct tc_rstr *message);
/* Returns the cost of the messages that flow control has not let through: the queue, and the message that the stream
 * has, with its compressed form. 0 once the call was given up for max_queued_bytes. */
size_t tc_server_call_queued_bytes(const struct tc_server_call *call);
/* Ends the call when all queued messages have been sent. `text` and `trailers` may be NULL; both are copied. Does
 * nothing the second time, or after a reset. */
void tc_server_call_finish(struct tc_server_call *call, int code, const char *text, const struct tc_headers *trailers);
/* Sends a message, then OK. */
void tc_server_call_reply(struct tc_server_call *call, struct tc_slice message);
/* Resets the stream with an HTTP/2 error code, and drops the queued messages. The loop does so later, and calls on_end
 * first; no other event comes before. Does nothing the second time. */
void tc_server_call_reset(struct tc_server_call *call, uint32_t h2_error);

#endif
