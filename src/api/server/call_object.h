/* torc_server_call: the loop's call, and what other threads ask of it.
 *
 * Who may touch what: what is marked "loop" belongs to the loop. What is marked "lock" is under the runtime's lock. The
 * loop sets all else before the handler is called; from then on it is constant, except `ref`, `arena`, and the links by
 * which `task` and `job` are queued.
 *
 * Three members marked "lock" become constant, and the loop then reads them without the lock: `headers` once
 * headers_given is set, `ending` once ending_given is set, `arg` once heard_set is set. */
#ifndef TC_API_SERVER_CALL_OBJECT_H
#define TC_API_SERVER_CALL_OBJECT_H

#include "api/arena.h"
#include "api/server/load.h"
#include "api/server/message_queue.h"
#include "api/server/server_internal.h"
#include "api/typed.h"
#include "base/headers.h"
#include "base/rstr.h"
#include "server/call.h"
#include "tls/identity.h"

/* Messages that the application has sent and the core has not written yet. */
struct tc_unwritten {
    uint64_t room; /* torc_server_call_send keeps `bytes` within it, but always takes a message if none waits */
    size_t bytes;  /* the sum of tc_server_message_cost */
    size_t n;
};

/* Messages that are asked for, by the application, or by call_rpc.c for a unary method. */
struct tc_call_reads {
    uint64_t owed;  /* the core has not been asked for them yet */
    unsigned asked; /* the core was asked for them, and they have not come yet */
};

/* How an RPC is to end. */
struct tc_call_ending {
    int code;                   /* enum torc_status_code */
    struct tc_rstr *text;       /* owned; a codec may set it before the call is finished: then the code is INTERNAL */
    struct tc_headers trailers; /* in the call's arena `sent` */
    struct tc_load load;        /* what the RPC recorded; also in `sent` */
};

/* The facts of a request. The metadata has what interceptors added. Texts are in `sent`, which the application cannot
 * reset. */
struct tc_call_facts {
    const char *path, *authority, *peer;
    const torc_metadata *metadata;
    uint64_t deadline_ns;             /* in the time of tc_loop_clock_ns; UINT64_MAX: none */
    struct tc_tls_identity *tls_peer; /* a reference; NULL: no TLS, or the client was not asked for a certificate */
    bool secure;
};

struct torc_server_call {
    struct tc_ref ref;   /* the handle's, the loop's until on_end, the queued task's, and each holder's */
    torc_server *server; /* a reference */
    const struct tc_server_shard *shard; /* of the call's connection */
    torc_runtime *rt;                    /* the shard's, borrowed */
    struct torc_arena arena;             /* the application's, which may reset it; of one thread at a time */
    struct tc_call_facts facts;
    struct tc_rstr *request; /* a reference; NULL: the handler is not unary, or interceptors delay the message */
    struct tc_task task;
    struct tc_pool_job job;         /* calls the handler on the method's pool */
    const struct tc_method *method; /* of the job; NULL: the handler needs no pool */
    struct tc_server_call *core;    /* loop: NULL once the core's call has ended */
    struct tc_call_reads reads;     /* loop */
    bool introduced;                /* loop: the core has the initial metadata */
    struct tc_call_rpc *rpc;        /* loop: NULL: no interceptors, or the core's call has ended */
    struct tc_server_places places; /* lock: until the RPC is over and the handle was given up */

    /* Lock: */
    struct tc_link waits;      /* threads that wait, by tc_wait.owner */
    int over;                  /* 0: the RPC runs; TORC_ECANCELED or TORC_ECLOSED */
    bool finished;             /* the handle was given up */
    bool task_queued;          /* the task is on its way to the loop */
    bool headers_wanted;       /* the initial metadata is settled: sent, or on the way */
    bool headers_given;        /* by torc_server_call_send_headers, and the loop has not taken them */
    struct tc_arena sent;      /* has headers, trailers and recorded load, which any thread adds; and the facts */
    struct tc_headers headers; /* of torc_server_call_send_headers */
    struct tc_message_queue unsent;
    struct tc_unwritten unwritten;
    bool tell_writable; /* on_writable is to come when there is room */
    bool ending_given;  /* the call was finished, and the loop has not taken the ending */
    struct tc_call_ending ending;
    uint64_t reads_wanted;  /* messages asked for, which the loop has not taken into `reads` yet */
    uint64_t reads_pending; /* messages asked for without on_message, and not come yet */
    struct tc_message_queue received;
    struct tc_rstr *lent;   /* a reference: the message that the last torc_server_call_receive gave */
    struct tc_typed *typed; /* what a codec keeps (api/typed.h) */
    bool receiving;         /* a thread receives: until tc_api_call_receive_end, if a message came */
    bool half_closed;       /* the client has sent its last message */
    bool asked;             /* want or receive was called */
    bool heard_set;         /* torc_server_call_set_events has set `heard` and `arg` */
    bool released;          /* release_if_due has given the places back, and called `release` */
    struct torc_server_call_events heard;
    void *arg; /* of `heard` */
};

/* Has the loop take what the call wants, with the lock held. `quietly`: without waking the loop, for a thread that
 * drives the loop or wakes it afterwards (api/wait.h). Returns 0, or TORC_ECLOSED if the loop has ended. */
int tc_api_call_schedule(torc_server_call *c, bool quietly);
/* Calls the method's handler, here or on the method's pool; if the pool is full or was freed, finishes the call with
 * RESOURCE_EXHAUSTED instead. Loop thread. */
void tc_api_call_start(const struct tc_method *m, torc_server_call *c);
/* Gives a message to the application. Takes over the reference. Loop thread. */
void tc_api_call_deliver(torc_server_call *c, struct tc_rstr *message);
/* Asks the core for messages of reads.owed, as many as it may be asked for now. Loop thread. */
void tc_api_call_read_owed(torc_server_call *c);
/* Sends the initial metadata, unless it was sent. Must come before the first message. `headers`: the application's;
 * NULL: none. `core` must not be NULL. Loop thread. */
void tc_api_call_introduce(torc_server_call *c, const struct tc_headers *headers);
/* Sets `over` to the code unless it is set. Calls on_cancel if the call was neither over nor finished, and `release` if
 * the call is finished. Loop thread. */
void tc_api_call_over(torc_server_call *c, int code);
/* Queues a message, whose reference it takes over. The caller calls tc_api_call_schedule. With the lock held. */
void tc_api_call_queue(torc_server_call *c, struct tc_rstr *message, bool plain);
/* Sends a message without a copy, however much waits; on_writable follows when there is room. Does nothing if the RPC
 * is over or the call was finished. Takes a reference of its own. Any thread that holds the call. */
void tc_api_call_send_shared(torc_server_call *c, struct tc_rstr *message);
/* Asks for `n` more messages, with the lock held. Returns 0; TORC_ELIMIT if more than UINT32_MAX messages would wait
 * for the loop to ask for them; or TORC_ECLOSED if the loop has ended. */
int tc_api_call_want_reads(torc_server_call *c, uint32_t n, bool quietly);
/* Returns 0 while the RPC runs, TORC_ECANCELED or TORC_ECLOSED once it is over or about to end with its server. With
 * the lock held. */
static inline int tc_api_call_is_over(const torc_server_call *c)
{
    return c->over ? c->over : atomic_load(&c->server->freed) ? TORC_ECLOSED : 0;
}
/* Returns 0 if the call can be used; TORC_ESTATE once it was finished; else what tc_api_call_is_over returns. With the
 * lock held. */
static inline int tc_api_call_state(const torc_server_call *c)
{
    return c->finished ? TORC_ESTATE : tc_api_call_is_over(c);
}

#endif
