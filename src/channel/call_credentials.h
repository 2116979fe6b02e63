/* The call credentials of a call: gathered when the connection is known, because they go over secure connections only.
 * A call without credentials does not have this struct. Loop thread only, except tc_call_credentials_new and
 * tc_call_credentials_fini. */
#ifndef TC_CHANNEL_CALL_CREDENTIALS_H
#define TC_CHANNEL_CALL_CREDENTIALS_H

#include "base/headers.h"
#include "creds/call/call.h"

/* Lives in the call's arena. */
struct tc_call_credentials {
    struct tc_loop *loop;
    torc_call_credentials *of_channel; /* asked first; borrowed; NULL: none */
    torc_call_credentials *own;        /* the call's, asked after the channel's; a reference; NULL: none */
    size_t next;                       /* how many parts have answered: the channel's come first, then the call's own */
    struct tc_auth_context context;    /* strings in the arena; method NULL: not made yet */
    struct tc_auth_waiter waiter;
    struct tc_headers headers; /* the headers that the credentials gave, copied to the arena */
    /* Called on the loop, after tc_call_credentials_get returned TORC_EAGAIN: the part has answered, or `error`, which
     * is borrowed, says why not. */
    void (*on_answer)(void *arg, const struct tc_status *error);
    void *arg;
};

/* Makes the struct in the arena; takes a reference to `own` (NULL: the call has no credentials of its own). The caller
 * sets of_channel, on_answer and arg before tc_call_credentials_get. Any thread. */
struct tc_call_credentials *tc_call_credentials_new(struct tc_arena *arena, struct tc_loop *loop,
                                                    torc_call_credentials *own);
/* Asks the credentials that have not answered yet for an RPC on `path` ("/service/method") of `authority`. Returns 0
 * when `headers` has all answers; TORC_EAGAIN when one is awaited: cc->on_answer follows, with NULL or a borrowed
 * error, and after NULL the caller calls tc_call_credentials_get again; another code with a status in *error, which the
 * caller takes. */
int tc_call_credentials_get(struct tc_call_credentials *cc, struct tc_slice authority, struct tc_slice path,
                            struct tc_status *error);
/* Overwrites and forgets all answers: another attempt asks again. */
void tc_call_credentials_reset(struct tc_call_credentials *cc);
/* Ends the wait for an answer, if any. */
void tc_call_credentials_stop(struct tc_call_credentials *cc);
/* Gives back the reference to `own`, and overwrites the answers. Called once, by tc_call_fini. Any thread. */
void tc_call_credentials_fini(struct tc_call_credentials *cc);
/* Appends which credentials are awaited: their type, and where their answer comes from, if that is known. */
void tc_call_credentials_describe_awaited(const struct tc_call_credentials *cc, struct tc_buf *out);

#endif
