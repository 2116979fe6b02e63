/* The insides of torc_server, for the files of src/api/server.
 *
 * Who may touch what: `core` and what is marked "loop" belong to the loop; what is marked "lock" is under the runtime's
 * lock; all else is constant once the server was made. */
#ifndef TC_API_SERVER_SERVER_INTERNAL_H
#define TC_API_SERVER_SERVER_INTERNAL_H

#include <torc/server.h>

#include "api/server/pool.h"
#include "api/wait.h"
#include "base/ref.h"
#include "base/table.h"
#include "channel/interceptors.h"
#include "server/call.h"
#include "server/server.h"

/* A method that the application registered, or one that the handler of "*" answers and that has limits. */
struct tc_method {
    UT_hash_handle hh;
    torc_server *server;
    struct torc_handler handler;
    char *path;      /* "/service/method", "/service/" for the methods of a service, or "*" */
    torc_pool *pool; /* borrowed from the server's limits; NULL: none */
};

/* The limits that torc_server_limit was given. */
struct tc_method_limits {
    UT_hash_handle hh;
    struct torc_method_options opts; /* with a reference to the pool */
    char *name;                      /* "/service/method", "/service" or "*" */
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
    struct tc_interceptors *interceptors; /* NULL: none */
    struct tc_runtime_member member;
    struct tc_task free_task;
    struct tc_server *core; /* loop: NULL once the server has ended */
    atomic_bool freed;      /* torc_server_free was called: calls that run end with the server */
    atomic_uint handlers;   /* who may call handlers: the loop, until the server has ended, and jobs of pools */

    /* Lock: */
    struct tc_method *methods;       /* constant after the start */
    struct tc_method_limits *limits; /* constant after the start */
    enum tc_server_state state;
    bool ended; /* the loop's part is gone */
    struct tc_link waits;
    struct tc_stop_fn *stop_fns;
    void (*on_stopping)(void *arg); /* NULL: none */
    void *stopping_arg;
};

torc_server *tc_api_server_ref(torc_server *s);
void tc_api_server_unref(torc_server *s);
/* Sets fn, which is called on the loop when the server begins to stop, while its handlers are not released. */
void tc_api_server_on_stopping(torc_server *s, void (*fn)(void *arg), void *arg);
/* Called by each of `handlers` when it no longer calls handlers: the last one releases them. */
void tc_api_server_handlers_end(torc_server *s);

/* Called by the core for each RPC of a method (server.c registers them). */
void tc_api_call_on_stream(void *method, struct tc_server_call *core);
void tc_api_call_on_unary(void *method, struct tc_server_call *core, struct tc_rstr *request);

#endif
