/* The insides of torc_server and torc_server_call, for the files of src/api/server.
 *
 * Who may touch what: `core` and what is marked "loop" belong to the loop; what is marked "lock" is under the runtime's
 * lock; all else is constant once it was made. */
#ifndef TC_API_SERVER_SERVER_INTERNAL_H
#define TC_API_SERVER_SERVER_INTERNAL_H

#include <torc/server.h>

#include "api/arena.h"
#include "api/wait.h"
#include "base/headers.h"
#include "base/ref.h"
#include "base/rstr.h"
#include "base/table.h"
#include "server/call.h"
#include "server/server.h"

/* A method that the application registered. */
struct tc_method {
    UT_hash_handle hh;
    torc_server *server;
    struct torc_handler handler;
    char *path; /* "/service/method" or "*" */
};

enum tc_server_state { TC_SERVER_NEW, TC_SERVER_STARTED, TC_SERVER_STOPPING, TC_SERVER_STOPPED };

/* A torc_server_stop_async that waits for the end. */
struct tc_stop_fn {
    struct tc_stop_fn *next;
    void (*fn)(void *arg);
    void *arg;
};

struct torc_server {
    struct tc_ref ref; /* the application's, the loop's until the server has ended, and each call's */
    torc_runtime *rt;  /* a reference */
    struct torc_server_options opts;
    struct tc_runtime_member member;
    struct tc_task free_task;
    struct tc_server *core; /* loop: NULL once the server has ended */

    /* Lock: */
    struct tc_method *methods; /* constant after the start */
    enum tc_server_state state;
    bool ended; /* the loop's part is gone */
    struct tc_link waits;
    struct tc_stop_fn *stop_fns;
};

torc_server *tc_api_server_ref(torc_server *s);
void tc_api_server_unref(torc_server *s);

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

/* How an RPC is to end. */
struct tc_call_ending {
    int code;
    struct tc_rstr *text;
    struct tc_headers trailers; /* in the arena */
};

struct torc_server_call {
    struct tc_ref ref;   /* the handle's, the loop's while the RPC runs, the task's, and each function's that runs */
    torc_server *server; /* a reference */
    torc_runtime *rt;    /* the server's */
    struct torc_arena arena;
    const char *path, *authority, *peer;
    const torc_metadata *metadata;
    uint64_t deadline_ns;
    struct tc_rstr *request; /* of a unary handler */
    struct tc_task task;
    struct tc_server_call *core; /* loop: NULL once the RPC is over */
    uint64_t reads_owed;         /* loop: asked for, and not yet asked of the core */
    unsigned reads;              /* loop: asked of the core */
    bool introduced;             /* loop: the core has the initial metadata */

    /* Lock: */
    struct tc_link waits;
    int over;            /* 0: the RPC runs; TORC_ECANCELED or TORC_ECLOSED */
    bool finished;       /* the handle was given up */
    bool task_queued;    /* the task is on its way to the loop */
    bool headers_wanted; /* the initial metadata is settled: sent, or on the way */
    bool headers_given;  /* by torc_server_call_send_headers, and the loop has not taken them */
    struct tc_headers headers;
    struct tc_message_queue unsent;
    size_t unsent_bytes; /* taken of the application and not written yet */
    size_t n_unsent;
    bool tell_writable;
    bool ending_given;
    struct tc_call_ending ending;
    uint64_t reads_wanted;  /* the loop has not taken them */
    uint64_t reads_pending; /* asked for by threads and not come yet */
    struct tc_message_queue received;
    struct tc_rstr *lent;
    bool receiving;
    bool half_closed;
    bool asked; /* want or receive was called */
    bool heard_set;
    bool released; /* events.release was called, or is not to be */
    struct torc_server_call_events heard;
    void *arg;
};

/* Called by the core for each RPC of a method (server.c registers them). */
void tc_api_call_on_stream(void *method, struct tc_server_call *core);
void tc_api_call_on_unary(void *method, struct tc_server_call *core, struct tc_rstr *request);

/* Has the loop take what the call wants, with the lock held. Returns TORC_ECLOSED if the loop has ended. */
int tc_api_call_schedule(torc_server_call *c, bool quietly);
/* Gives a reference back. */
void tc_api_call_drop(torc_server_call *c);
/* Asks for `n` more messages, with the lock held. */
int tc_api_call_want_reads(torc_server_call *c, uint32_t n, bool quietly);
/* Returns 0 if the call can be used: TORC_ESTATE once it was finished, TORC_ECANCELED or TORC_ECLOSED once its RPC is
 * over. With the lock held. */
static inline int tc_api_call_state(const torc_server_call *c)
{
    return c->finished ? TORC_ESTATE : c->over;
}

#endif
