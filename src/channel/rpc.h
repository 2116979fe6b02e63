/* An RPC on its way through the interceptors of its channel or server: walks, and delays (torc/interceptor.h). Knows
 * neither channels nor servers.
 *
 * A walk takes a thing (the request, an attempt, a message, the status) past the interceptors that have one hook, in
 * one direction. An interceptor may refuse the thing (TC_WALK_FAILED), or hold it up (TC_WALK_WAITS): `resumed` is then
 * called when the walk has gone on, until it passed, failed or waits again. Loop thread only, unless noted. */
#ifndef TC_CHANNEL_RPC_H
#define TC_CHANNEL_RPC_H

#include "base/headers.h"
#include "base/status.h"
#include "channel/interceptors.h"
#include "runtime/runtime.h"

enum tc_walk_end { TC_WALK_PASSED, TC_WALK_WAITS, TC_WALK_FAILED };

struct tc_walk {
    torc_rpc *rpc; /* NULL: the walk has not begun */
    enum tc_hook hook;
    bool outward;             /* from the last interceptor of the list to the first */
    bool hurried;             /* no interceptor may hold up the walk: TORC_PENDING counts as 0 */
    uint32_t left;            /* interceptors of the hook that the walk has not called yet */
    uint32_t number;          /* of TC_HOOK_ATTEMPT: the attempt's */
    torc_pending *pending;    /* a reference; NULL: no interceptor holds up the walk */
    struct tc_rstr *message;  /* of TC_HOOK_MESSAGE: owned, until the owner of the walk takes it */
    struct tc_status failure; /* of TC_WALK_FAILED: owned */
    void (*resumed)(struct tc_walk *w, enum tc_walk_end end);
    void *owner;          /* for `resumed` */
    struct tc_task begin; /* tc_walk_begin_later */
};

/* The side of an RPC, channel or server: its getters. Texts and headers are borrowed. */
struct tc_rpc_side {
    const char *(*method)(const torc_rpc *rpc);
    const char *(*target)(const torc_rpc *rpc);
    const char *(*authority)(const torc_rpc *rpc);
    const char *(*peer)(const torc_rpc *rpc);
    uint64_t (*deadline_ns)(const torc_rpc *rpc); /* in the time of tc_loop_clock_ns; UINT64_MAX: none */
    /* The headers and trailers of the response; NULL when none came, on a server when none were sent. */
    const struct tc_headers *(*headers)(const torc_rpc *rpc);
    const struct tc_headers *(*trailers)(const torc_rpc *rpc);
    bool server; /* messages that walk outward are sent, and messages that walk inward are received */
};

/* An RPC. Lives in `arena`. */
struct torc_rpc {
    torc_runtime *rt;
    const struct tc_interceptors *list;
    const struct tc_rpc_side *side;
    void *owner; /* for `side` */
    struct tc_arena *arena;
    struct tc_headers *metadata; /* of the request */
    struct tc_status *status;    /* the outcome, while `ending` is set */
    struct tc_walk *in;          /* the walk that is inside a hook; NULL: none */
    struct tc_rstr *text;        /* of torc_rpc_set_text, for the verdict of the hook that runs */
    const torc_metadata *shown_metadata, *shown_headers, *shown_trailers; /* copies; NULL: not made */
    uint32_t attempts;                                                    /* that have begun */
    uint32_t started; /* interceptors, from the outermost, that the RPC has come to: their on_end is called */
    uint32_t passed;  /* interceptors that have let the RPC go on: their on_status is called */
    struct tc_sight *first_sight, **last_sight; /* what observers have not been told yet */
    struct tc_task tell;
    bool begun;                 /* of a channel: the request has passed on_start */
    bool ending;                /* the walk past on_status has begun, or tc_rpc_end was called */
    bool at_end;                /* on_end is called: the observers have seen everything */
    bool waits_at_end;          /* of a channel: the outcome waits for an interceptor, or behind a received message */
    bool sent_plain, sent_last; /* of sent.message */
    struct tc_headers *more_headers, *more_trailers; /* of a server, to add to; NULL: too late, or a channel's RPC */
    struct tc_walk main;                             /* on_start, then on_status */
    struct tc_walk sent;     /* a message to send; on a channel `message` waits here until the RPC has begun */
    struct tc_walk received; /* a received message */
    char *states;            /* of the interceptors, by tc_interceptor.state_at */
};

/* A pick and an event, as observers see them. Texts are in the arena of the tc_sight, "" where there is none. */
struct torc_pick {
    int outcome;      /* enum torc_pick_kind */
    uint32_t attempt; /* its number */
    const char *endpoint, *policy, *cluster;
    int code; /* enum torc_status_code */
    const char *text;
};

struct torc_wire {
    int event; /* enum torc_wire_kind */
    uint32_t attempt;
    const char *peer;
    uint64_t bytes;
    int code; /* enum torc_status_code */
};

/* A pick or an event on its way to the observers (interceptors with on_pick or on_wire), with its texts. */
struct tc_sight {
    struct tc_sight *next;
    enum tc_hook hook; /* TC_HOOK_PICK or TC_HOOK_WIRE */
    struct torc_pick pick;
    struct torc_wire wire;
    struct tc_arena texts;
};

/* Makes an RPC in the arena. Everything is borrowed until tc_rpc_end has returned. */
torc_rpc *tc_rpc_new(const struct tc_interceptors *list, torc_runtime *rt, const struct tc_rpc_side *side, void *owner,
                     struct tc_arena *arena, struct tc_headers *metadata, struct tc_status *status);

static inline bool tc_rpc_has(const torc_rpc *rpc, enum tc_hook hook)
{
    return rpc->list->rows[hook].n != 0;
}

/* Begins a walk, which is zeroed or over, with w->owner, w->resumed and (for messages) w->message set. Calls hooks from
 * inside. Returns PASSED; WAITS if `resumed` follows, unless the walk is stopped; or FAILED with w->failure. */
enum tc_walk_end tc_walk_begin(struct tc_walk *w, torc_rpc *rpc, enum tc_hook hook, bool outward);
/* Begins a walk by the serial queue: `resumed` is called, unless the walk is stopped. For callers that may run inside
 * an object that the application can destroy in its hook. */
void tc_walk_begin_later(struct tc_walk *w, torc_rpc *rpc, enum tc_hook hook, bool outward);
/* Goes on with a walk whose delay tc_walk_let_go has dropped, behind the interceptor that held it up. Returns what
 * tc_walk_begin returns. */
enum tc_walk_end tc_walk_go_on(struct tc_walk *w);
/* Drops the delay that holds up the walk, if any; nothing else changes. */
void tc_walk_let_go(struct tc_walk *w);
/* Ends the walk, and frees its message and failure. Allowed for a walk that is zeroed or over. */
void tc_walk_stop(struct tc_walk *w);
/* Returns the name of the interceptor that holds up the walk, borrowed from the list, or NULL. */
const char *tc_walk_holder(const struct tc_walk *w);
/* Returns the name of an interceptor that holds up the request, a message or the outcome, or NULL. */
const char *tc_rpc_holder(const torc_rpc *rpc);

/* Stops the walks `main` and `sent`; `messages`: also `received`. */
void tc_rpc_stop(torc_rpc *rpc, bool messages);
/* Shows the observers the sights that are left, then calls on_end of the interceptors, once. All walks must be over. */
void tc_rpc_end(torc_rpc *rpc);
/* Returns a new sight, for the caller to fill in; its texts may lie in sight->texts. The RPC owns the sight and shows
 * it to the observers by the serial queue, or earlier before the next walk or the end. Never at once: observers may
 * destroy its cause (their own LB policy). */
struct tc_sight *tc_rpc_sight(torc_rpc *rpc, enum tc_hook hook);

/* --- delays --- */

/* Counted: one reference is the interceptor's, the other the walk's. */
struct torc_pending {
    struct tc_ref ref;
    torc_runtime *rt;     /* a reference */
    struct tc_walk *walk; /* the loop's; NULL: the walk has let go of the delay */
    struct tc_task task;
    /* The interceptor's, until tc_pending_resume. */
    int verdict;
    struct tc_rstr *text;
    struct tc_rstr *message; /* NULL: as it was */
    struct tc_arena arena;
    struct tc_headers metadata; /* to be added */
};

/* Makes a delay of the walk whose hook runs, and returns the interceptor's reference. Returns NULL outside of a walk's
 * hooks, and if the hook has a delay already. */
torc_pending *tc_rpc_suspend(torc_rpc *rpc);
/* Ends a delay with a verdict: the walk goes on, or fails, on the loop. Takes over the interceptor's reference, and the
 * text (NULL: none). Does nothing else if the loop has ended. Any thread. */
void tc_pending_resume(torc_pending *p, int verdict, struct tc_rstr *text);

#endif
