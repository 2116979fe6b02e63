/* Interceptors: functions that see every RPC of a channel or a server. SPDX-License-Identifier: Apache-2.0
 *
 *     static int add_token(torc_rpc *rpc, void *state, void *arg)
 *     {
 *         (void)state;
 *         return torc_rpc_add_metadata(rpc, "authorization", arg, strlen(arg)) == 0 ? 0 : TORC_STATUS_INTERNAL;
 *     }
 *
 *     static const struct torc_interceptor token = {TORC_SIZE(torc_interceptor), .name = "token",
 *                                                   .on_start = add_token, .arg = "Bearer 1234"};
 *     const struct torc_interceptor *const list[] = {&token, NULL};
 *     struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = creds, .interceptors = list};
 *
 * The first interceptor of the list is the outermost, next to the application: requests go inward, from the first to
 * the last, responses and statuses outward. Further in are, in this order: the config selector (routes of xDS), HTTP
 * filters of xDS, retries and hedging, the attempt with its pick. So an RPC has one on_start, one on_status and one
 * on_end, but an on_attempt for each attempt.
 *
 * Hooks that answer return a verdict:
 *     0               the RPC goes on
 *     1 to 16         an enum torc_status_code: the RPC ends with it; nothing more is sent, and it is not retried. The
 *                     text is what torc_rpc_set_text was given, and the layer of the error is TORC_LAYER_INTERCEPTOR
 *     TORC_PENDING    the RPC waits for torc_rpc_resume; see torc_rpc_suspend
 * Any other number is a mistake of the interceptor: the RPC ends with INTERNAL and a text that names the interceptor.
 *
 * Hooks are called on the thread that drives the loop of the channel's runtime, in a turn of the loop, one at a time:
 * never inside a function that starts, cancels or frees an RPC without waiting. (A function that waits, such as
 * torc_unary, may drive the loop of a TORC_RUNTIME_CALLER runtime, and so call hooks.) Hooks must not wait. They may
 * call what any callback may: free or cancel the stream of the RPC, free the channel, start other RPCs, on the same
 * channel too (those RPCs pass the interceptors as any RPC does). A torc_rpc is valid only on that thread, from
 * on_start until on_end has returned.
 *
 * Hooks are not called for torc_explain, and not for an RPC that Torc refuses before it begins: one that could not
 * start (torc_result_error is not TORC_ESTATUS), or that begins after its channel ended or beyond memory_limit_bytes.
 * In a child of a fork no hook is called for the parent's RPCs.
 *
 * On a server (torc_server_options.interceptors) the first interceptor of the list is the outermost, too, next to the
 * client: requests go inward to the handler, responses and statuses outward. The comment of each hook says what differs
 * on a server. For all hooks of a server:
 *     - on_attempt, on_pick and on_wire are never called: a server makes no attempts.
 *     - Hooks are called on the thread that drives the runtime of the RPC's connection, also for methods that have a
 *       pool: with torc_server_options.runtimes, hooks of RPCs on different runtimes run side by side.
 *     - Where Torc ends the RPC (max_timeout_ms, the end of the server, a malformed message), the status does not wait
 *       for the verdicts of on_status.
 *     - A verdict that refuses is the status that the client gets, with its text. If on_start refuses, or on_message
 *       the request of a unary method, no handler runs. If a hook refuses while the handler has the call, on_cancel
 *       follows, and the functions of the call return TORC_ECANCELED.
 *     - Hooks are not called for requests that Torc answers by itself: malformed ones, methods that nobody has
 *       registered, RPCs beyond a limit of their connection or method.
 *
 * Bindings that cannot lay out the struct make it with torc_options_new("torc_interceptor", &error) and set its fields
 * by name (torc/options.h); torc_options_data gives the struct. */
#ifndef TORC_INTERCEPTOR_H
#define TORC_INTERCEPTOR_H

#include <stddef.h>
#include <stdint.h>

#include <torc/error.h>
#include <torc/export.h>
#include <torc/message.h>
#include <torc/metadata.h>
#include <torc/size.h>
#include <torc/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The verdict that delays an RPC. No enum torc_status_code and no enum torc_code has this value, or ever will. */
#define TORC_PENDING 65536

/* An RPC as its interceptors see it. */
typedef struct torc_rpc torc_rpc;

/* A delay of an RPC, for the interceptor to end. */
typedef struct torc_pending torc_pending;

/* A pick, as on_pick sees it; valid during the hook. For NULL, texts are "" and numbers are 0. */
typedef struct torc_pick torc_pick;

/* An event of an attempt, as on_wire sees it; valid during the hook. For NULL, the peer is "" and numbers are 0. */
typedef struct torc_wire torc_wire;

/* An interceptor. Every function may be NULL. `state` is memory of the RPC: state_size bytes, zero at first, aligned to
 * 16 bytes, valid until on_end has returned; NULL if state_size is 0. */
struct torc_interceptor {
    uint64_t size;
    int64_t state_size; /* up to 65536; 0: no state */
    const char *name;   /* for texts; copied; NULL: its place in the list */

    /* The RPC begins: its route is not chosen yet, and nothing was sent. The hook may add metadata, which routes and
     * hash policies see. On a server: the request's metadata came, and no message was read; the handler sees what the
     * hook adds. */
    int (*on_start)(torc_rpc *rpc, void *state, void *arg);

    /* An attempt begins, before its pick: number 1, then each retry (also one that A6 calls transparent) and each
     * hedge. Hedges may wait side by side. A verdict that refuses ends the RPC and the attempts that run. */
    int (*on_attempt)(torc_rpc *rpc, uint32_t number, void *state, void *arg);

    /* A message on its way: `sent` 1, to the server, once for all attempts, before it is compressed and its size is
     * checked; 0, from the server, after it was decompressed. *message is borrowed. A hook that stores another message
     * there gives Torc a reference of its own (torc_message_new); a hook that stores NULL ends the RPC with INTERNAL.
     * While a message is delayed, no other message passes in its direction: a sender gets TORC_EAGAIN, and flow control
     * slows the server. The status comes behind a received message that is delayed. On a server `sent` is 1 for
     * messages to the client and 0 for messages from it. The handler's status comes behind the handler's messages, and
     * drops a message from the client that is delayed. */
    int (*on_message)(torc_rpc *rpc, int sent, torc_message **message, void *state, void *arg);

    /* The outcome, on its way to the application, after retries. Called once for each interceptor that let the RPC go
     * on (its on_start did, or it has none), the innermost first, whatever ended the RPC (a cancellation and the
     * deadline, too). Verdict 0 leaves the status as it is; 1 to 16 replaces it. A failure cannot become OK: the
     * response would be missing. Headers and trailers can be read. On a server the status is on its way to the client;
     * the hook is also called when the client will not see it (the client gave up, its connection broke). */
    int (*on_status)(torc_rpc *rpc, int code, void *state, void *arg);

    /* Observes: a picker was asked for an attempt. An RPC that waits for a connection has several picks. */
    void (*on_pick)(torc_rpc *rpc, const torc_pick *pick, void *state, void *arg);

    /* Observes: something happened to an attempt. */
    void (*on_wire)(torc_rpc *rpc, const torc_wire *wire, void *state, void *arg);

    /* The RPC is over, with this status. Called exactly once for each interceptor that the RPC had reached (its
     * on_start was called, or it has none and the RPC went past it), the innermost first, before the application hears
     * of the end. On a server: the status was written (the handler's, or Torc's own because a message was
     * malformed or too large), or the RPC ended in another way, and the status says why; on_cancel may have come
     * before. */
    void (*on_end)(torc_rpc *rpc, int code, void *state, void *arg);

    /* The channel gives the interceptor up, and no hook follows: this function may free `arg`. Called once for each
     * channel that was made with the interceptor, when the channel and the handles of its RPCs have been freed, by the
     * thread that frees the last of them or by the thread that drives the loop. Not called if torc_channel_new failed.
     * For a server: once, when the server and its calls have been given up; not called if torc_server_new failed. */
    void (*release)(void *arg);
    void *arg; /* handed to the functions; may be NULL */
};

/* --- the RPC. For hooks, on the loop's thread. For NULL, peer and text are "", other pointers NULL and numbers 0;
 * functions that add or set return TORC_EINVAL. --- */

/* Return the method, "/package.Service/Method"; the channel's target ("" on a server); the channel's :authority (on a
 * server, that of the request). Borrowed from the RPC. */
TORC_API const char *torc_rpc_method(const torc_rpc *rpc);
TORC_API const char *torc_rpc_target(const torc_rpc *rpc);
TORC_API const char *torc_rpc_authority(const torc_rpc *rpc);

/* Returns the address of the last backend; "" before one was reached, and with hedging until an attempt has brought
 * headers or the RPC has its outcome. On a server the client's address. Borrowed for the hook. */
TORC_API const char *torc_rpc_peer(const torc_rpc *rpc);

/* Returns the milliseconds until the deadline, as torc_call_options.timeout_ms takes them: 0 for no deadline, -1 when
 * it has passed. */
TORC_API int64_t torc_rpc_time_left(const torc_rpc *rpc);

/* Returns the number of attempts that have begun; 0 on a server. */
TORC_API uint32_t torc_rpc_attempts(const torc_rpc *rpc);

/* Returns the metadata of the request, with what interceptors have added so far. Borrowed until on_end has returned;
 * later additions are not in it. The first call, and the first after an addition, makes a copy. */
TORC_API const torc_metadata *torc_rpc_metadata(torc_rpc *rpc);

/* Adds a field to the metadata of the request, with copies of name and value. TORC_EINVAL for a field that
 * torc_metadata_add refuses, TORC_ESTATE except in on_start. */
TORC_API int torc_rpc_add_metadata(torc_rpc *rpc, const char *name, const void *value, size_t value_len);

/* Adds a field to the initial metadata, or to the trailers, of a server's response, with copies of name and value. Only
 * in hooks that return a verdict. TORC_EINVAL for a field that torc_metadata_add refuses; TORC_ESTATE on a channel,
 * outside of such a hook, for initial metadata that was sent already, and for an RPC that the client no longer hears
 * of. Added initial metadata is sent also when the RPC is refused. */
TORC_API int torc_rpc_add_header(torc_rpc *rpc, const char *name, const void *value, size_t value_len);
TORC_API int torc_rpc_add_trailer(torc_rpc *rpc, const char *name, const void *value, size_t value_len);

/* Sets the text of the status that the hook returns, copied (NULL: one that names the interceptor, or in on_status of a
 * failure the text that was there). Has no effect if the hook returns 0 or TORC_PENDING; a later call replaces it.
 * TORC_ESTATE outside of a hook that returns a verdict. */
TORC_API int torc_rpc_set_text(torc_rpc *rpc, const char *text);

/* Return the initial metadata and the trailers of the response, in on_status and on_end; NULL when none came (on a
 * server: when there are none, or initial metadata was not sent), and in other hooks. Borrowed until on_end has
 * returned. */
TORC_API const torc_metadata *torc_rpc_headers(torc_rpc *rpc);
TORC_API const torc_metadata *torc_rpc_trailers(torc_rpc *rpc);

/* Return the text of the status, and the part that made it (enum torc_layer; TORC_LAYER_NONE for OK; TORC_LAYER_PEER
 * for the handler of a server), in on_status and on_end; "" and TORC_LAYER_NONE in other hooks. Borrowed for the hook.
 */
TORC_API const char *torc_rpc_text(const torc_rpc *rpc);
TORC_API int torc_rpc_layer(const torc_rpc *rpc);

/* --- delays --- */

/* Lets the present hook delay the RPC. The hook keeps the object that is returned, and returns TORC_PENDING;
 * torc_rpc_resume must then be called once, from any thread and at any time. Meanwhile the deadline counts, and the RPC
 * may be cancelled or end with its channel. Such an RPC does not wait for torc_rpc_resume; the object stays valid, and
 * resuming it only frees it. After the deadline, a cancellation, or the end of the channel, TORC_PENDING from on_status
 * counts as 0. If the hook returns another verdict, that verdict counts at once; torc_rpc_resume must still be called,
 * and only frees the object. Returns NULL outside of a hook that returns a verdict, and when the hook has an object
 * already. */
TORC_API torc_pending *torc_rpc_suspend(torc_rpc *rpc);

/* Adds metadata to the request when the RPC resumes, after a delay in on_start. TORC_EINVAL for a field that
 * torc_metadata_add refuses. One thread at a time, before torc_rpc_resume. */
TORC_API int torc_pending_add_metadata(torc_pending *pending, const char *name, const void *value, size_t value_len);

/* Replaces the message when the RPC resumes, after a delay in on_message. Takes over the reference to the message, also
 * when it fails. One thread at a time, before torc_rpc_resume. TORC_EINVAL when either is NULL. */
TORC_API int torc_pending_set_message(torc_pending *pending, torc_message *message);

/* Ends the delay with the verdict of the hook (TORC_PENDING is not allowed again) and, if that refuses, a text that is
 * copied (NULL: as in torc_rpc_set_text). Takes over the object. Does not wait, and calls no hook from inside. In a
 * child of a fork, and while the process exits, nothing happens. NULL is allowed. Any thread, once. */
TORC_API void torc_rpc_resume(torc_pending *pending, int verdict, const char *text);

/* --- picks --- */

/* Answers of a picker. Later versions may add numbers. */
enum torc_pick_kind {
    TORC_PICK_COMPLETE = 1, /* the attempt goes to the endpoint */
    TORC_PICK_QUEUE = 2,    /* the attempt waits for the next picker */
    TORC_PICK_FAIL = 3,     /* the attempt fails, or waits if the RPC is wait-for-ready */
    TORC_PICK_DROP = 4,     /* the attempt fails, wait-for-ready or not */
};

/* Returns an enum torc_pick_kind. */
TORC_API int torc_pick_outcome(const torc_pick *pick);
/* Returns the number of the attempt, as on_attempt counts. */
TORC_API uint32_t torc_pick_attempt(const torc_pick *pick);
/* Return the address of the endpoint, or of the endpoint whose connection the pick waits for; the LB policy that chose
 * the endpoint; the xDS cluster. "" where there is none. Borrowed for the hook. */
TORC_API const char *torc_pick_endpoint(const torc_pick *pick);
TORC_API const char *torc_pick_policy(const torc_pick *pick);
TORC_API const char *torc_pick_cluster(const torc_pick *pick);
/* Return why the pick fails or is dropped: an enum torc_status_code and its text; TORC_STATUS_OK and "" otherwise.
 * Borrowed for the hook. */
TORC_API int torc_pick_code(const torc_pick *pick);
TORC_API const char *torc_pick_text(const torc_pick *pick);

/* --- events of attempts --- */

/* Events of an attempt. Later versions may add numbers. */
enum torc_wire_kind {
    TORC_WIRE_OPENED = 1,   /* the attempt has a stream on the connection to torc_wire_peer */
    TORC_WIRE_SENT = 2,     /* a message was handed to the connection, or dropped because the server had ended the
                               stream; torc_wire_bytes is its size before compression */
    TORC_WIRE_HEADERS = 3,  /* the initial metadata of the response came */
    TORC_WIRE_RECEIVED = 4, /* a message came; torc_wire_bytes is its size after decompression */
    TORC_WIRE_ENDED = 5,    /* the stream is over, with torc_wire_code; once for each TORC_WIRE_OPENED */
};

/* Returns an enum torc_wire_kind. */
TORC_API int torc_wire_event(const torc_wire *wire);
/* Returns the number of the attempt, as on_attempt counts. */
TORC_API uint32_t torc_wire_attempt(const torc_wire *wire);
/* Returns the address that the attempt went to. Borrowed for the hook. */
TORC_API const char *torc_wire_peer(const torc_wire *wire);
/* Returns the size of the message, in TORC_WIRE_SENT and TORC_WIRE_RECEIVED; 0 in other events. */
TORC_API uint64_t torc_wire_bytes(const torc_wire *wire);
/* Returns the status of the attempt, an enum torc_status_code, in TORC_WIRE_ENDED: for an attempt that Torc gave up,
 * the status that says why. */
TORC_API int torc_wire_code(const torc_wire *wire);

#ifdef __cplusplus
}
#endif
#endif
