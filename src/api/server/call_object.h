/* torc_server_call: the loop's call, and what other threads ask of it.
 *
 * Who may touch what: `core` and what is marked "loop" belong to the loop; what is marked "lock" is under the runtime's
 * lock; the loop sets all else before the handler is called, and it is constant from then on. */
#ifndef TC_API_SERVER_CALL_OBJECT_H
#define TC_API_SERVER_CALL_OBJECT_H

#include "api/arena.h"
#include "api/server/load.h"
#include "api/server/server_internal.h"
#include "api/typed.h"
#include "base/headers.h"
#include "base/rstr.h"
#include "server/call.h"
#include "tls/identity.h"

/* A message that the loop has not taken yet, or that nobody has received yet. */
struct tc_queued_message {
    struct tc_queued_message *next;
    struct tc_rstr *bytes;
    bool plain;
};

struct tc_message_queue {
    struct tc_queued_message *first, **last;
};

static inline void tc_message_queue_init(struct tc_message_queue *m)
{
    m->first = NULL;
    m->last = &m->first;
}
/* Takes over the reference. */
void tc_message_queue_add(struct tc_message_queue *m, struct tc_rstr *bytes, bool plain);
/* Returns the oldest message's bytes with their reference, NULL if there is none. */
struct tc_rstr *tc_message_queue_take(struct tc_message_queue *m, bool *plain);

/* Messages that were taken of the application and are not written yet. */
struct tc_unwritten {
    uint64_t room; /* for `bytes`; one message is always taken */
    size_t bytes;  /* their cost */
    size_t n;
};

/* Messages that the application asks for. */
struct tc_call_reads {
    uint64_t owed;  /* not yet asked of the core */
    unsigned asked; /* of the core, and not come yet */
};

/* How an RPC is to end. */
struct tc_call_ending {
    int code;
    struct tc_rstr *text;       /* a codec may set it before the call is finished: then the code is INTERNAL */
    struct tc_headers trailers; /* in the call's `sent`, as what `load` has */
    struct tc_load load;        /* what the RPC recorded */
};

/* The facts of a request. The metadata has what interceptors added. Texts are in `sent`, which the application cannot
 * reset. */
struct tc_call_facts {
    const char *path, *authority, *peer;
    const torc_metadata *metadata;
    uint64_t deadline_ns;             /* UINT64_MAX: none */
    struct tc_tls_identity *tls_peer; /* a reference; NULL: the client was not asked for a certificate */
    bool secure;
};

struct torc_server_call {
    struct tc_ref ref;   /* the handle's, the loop's while the RPC runs, the task's, and each function's that runs */
    torc_server *server; /* a reference */
    const struct tc_server_shard *shard; /* whose loop has the call */
    torc_runtime *rt;                    /* the shard's */
    struct torc_arena arena;             /* the application's, which may reset it; of one thread at a time */
    struct tc_call_facts facts;
    struct tc_rstr *request; /* of a unary handler */
    struct tc_task task;
    struct tc_pool_job job;         /* of a pool that is to call the handler */
    const struct tc_method *method; /* of the job; NULL: the handler needs no pool */
    struct tc_server_call *core;    /* loop: NULL once the RPC is over */
    struct tc_call_reads reads;     /* loop */
    bool introduced;                /* loop: the core has the initial metadata */
    struct tc_call_rpc *rpc;        /* loop: what its interceptors see; NULL: none */
    struct tc_server_places places; /* lock: until the RPC is over and the handle was given up */

    /* Lock: */
    struct tc_link waits;
    int over;             /* 0: the RPC runs; TORC_ECANCELED or TORC_ECLOSED */
    bool finished;        /* the handle was given up */
    bool task_queued;     /* the task is on its way to the loop */
    bool headers_wanted;  /* the initial metadata is settled: sent, or on the way */
    bool headers_given;   /* by torc_server_call_send_headers, and the loop has not taken them */
    struct tc_arena sent; /* headers and trailers: any thread sends them; the facts, before a handler is called */
    struct tc_headers headers;
    struct tc_message_queue unsent;
    struct tc_unwritten unwritten;
    bool tell_writable; /* on_writable is to come when there is room */
    bool ending_given;  /* the call was finished, and the loop has not taken the ending */
    struct tc_call_ending ending;
    uint64_t reads_wanted;  /* the loop has not taken them */
    uint64_t reads_pending; /* asked for by threads and not come yet */
    struct tc_message_queue received;
    struct tc_rstr *lent;   /* the message that the last torc_server_call_receive gave */
    struct tc_typed *typed; /* what a codec keeps (api/typed.h) */
    bool receiving;         /* a thread is in torc_server_call_receive */
    bool half_closed;       /* the client has sent its last message */
    bool asked;             /* want or receive was called */
    bool heard_set;
    bool released; /* events.release was called, or is not to be */
    struct torc_server_call_events heard;
    void *arg;
};

/* Has the loop take what the call wants, with the lock held. `quietly`: without waking the loop, for a thread that
 * drives it or wakes it afterwards (api/wait.h). Returns TORC_ECLOSED if the loop has ended. */
int tc_api_call_schedule(torc_server_call *c, bool quietly);
/* Calls the method's handler, here or on the method's pool; if the pool is full or was freed, finishes the call with
 * RESOURCE_EXHAUSTED instead. Loop thread. */
void tc_api_call_start(const struct tc_method *m, torc_server_call *c);
/* Gives a message to the application. Takes over the reference. Loop thread. */
void tc_api_call_deliver(torc_server_call *c, struct tc_rstr *message);
/* Asks the core for messages that the call is owed. Loop thread. */
void tc_api_call_read_owed(torc_server_call *c);
/* Sends the initial metadata, if it was not sent: it goes before the first message. `headers` NULL: none of the
 * application's. The core's call must exist. Loop thread. */
void tc_api_call_introduce(torc_server_call *c, const struct tc_headers *headers);
/* Tells the application that the RPC is over, unless it knows. Loop thread. */
void tc_api_call_over(torc_server_call *c, int code);
/* Queues a message, whose reference it takes over. With the lock held. */
void tc_api_call_queue(torc_server_call *c, struct tc_rstr *message, bool plain);
/* Sends a message without a copy, however much waits; on_writable follows. Does nothing if the RPC is over or the call
 * was finished. Takes a reference of its own. Any thread that holds the call. */
void tc_api_call_send_shared(torc_server_call *c, struct tc_rstr *message);
/* Asks for `n` more messages, with the lock held. Returns TORC_ELIMIT if the loop has yet to take too many,
 * TORC_ECLOSED if it has ended. */
int tc_api_call_want_reads(torc_server_call *c, uint32_t n, bool quietly);
/* Returns 0 while the RPC runs, TORC_ECANCELED or TORC_ECLOSED once it is over or about to end with its server. With
 * the lock held. */
static inline int tc_api_call_is_over(const torc_server_call *c)
{
    return c->over ? c->over : atomic_load(&c->server->freed) ? TORC_ECLOSED : 0;
}
/* Returns 0 if the call can be used: TORC_ESTATE once it was finished, else what tc_api_call_is_over returns. With the
 * lock held. */
static inline int tc_api_call_state(const torc_server_call *c)
{
    return c->finished ? TORC_ESTATE : tc_api_call_is_over(c);
}

#endif
