/* The insides of torc_server, for the files of src/api/server.
 *
 * Who may touch what: `core` and what is marked "loop" belong to the loop; what is marked "lock" is under the lock of
 * the server's first runtime; atomic members are for any thread; all else is constant once the server was made. */
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

/* A method that is to be registered. */
struct tc_method_spec {
    const char *path;
    struct torc_handler handler;
    size_t max_request; /* bytes, of a service of Torc's own: the largest request, unless limits say another; 0: none */
    void (*stopping)(void *arg); /* called on the home's loop with the handler's arg when a stop begins; or NULL */
};

/* A method that the application registered, or one that the handler of "*" answers and that has limits. */
struct tc_method {
    UT_hash_handle hh;
    torc_server *server;
    struct torc_handler handler;
    char *path;                            /* "/service/method", "/service/" for the methods of a service, or "*" */
    torc_pool *pool;                       /* borrowed from the server's limits; NULL: none */
    const struct tc_method_limits *limits; /* NULL: none */
    size_t max_request;                    /* see struct tc_method_spec */
    void (*stopping)(void *arg);           /* see struct tc_method_spec */
    atomic_size_t calls;                   /* places taken, of all shards; counted if there is a max_calls */
};

/* The limits that torc_server_limit was given. */
struct tc_method_limits {
    UT_hash_handle hh;
    struct torc_method_options opts; /* with a reference to the pool */
    char *name;                      /* "/service/method", "/service" or "*" */
};

enum tc_server_state { TC_SERVER_NEW, TC_SERVER_STARTED, TC_SERVER_STOPPING, TC_SERVER_STOPPED };

/* A torc_server_stop_async that waits for the end of the stop. */
struct tc_stop_fn {
    struct tc_stop_fn *next;
    void (*fn)(void *arg);
    void *arg;
};

/* The part of a server on one of its runtimes (torc_server_options.runtimes). */
struct tc_server_shard {
    torc_server *server; /* holds the shards, and each shard's loop holds the server */
    torc_runtime *rt;    /* a reference */
    size_t max;          /* connections; 0: no limit */
    struct tc_server_tally tally;
    atomic_size_t load; /* connections that it has, or that are on their way to it */
    atomic_bool closed; /* takes no connection: it has ended, or could not be made */
    atomic_bool end_asked;
    struct tc_task make; /* each once */
    struct tc_task start;
    struct tc_task end;
    struct tc_runtime_member member;
    struct tc_server *core; /* loop: NULL before it was made and once it has ended */
    bool ended, gone;       /* under the lock of `rt`, as `waits`; gone: its loop has left the server */
    struct tc_link waits;   /* for `gone` */
    bool drained;           /* under the lock of the server's first runtime */
};

struct torc_server {
    struct tc_ref ref; /* the application's, each shard's loop's until the shard has ended, each call's, each task's */
    struct tc_server_shard *shards; /* the first is the server's home */
    size_t n_shards;
    struct tc_server_share share;
    torc_runtime *rt; /* the home's */
    struct torc_server_options opts;
    void (*adjust)(struct tc_server_opts *opts); /* changes the core's options, for a server of Torc's own; or NULL */
    struct tc_interceptors *interceptors;        /* NULL: none */
    struct tc_task stopped_task;                 /* tells on the home's loop that all shards have drained */
    atomic_bool freed;                           /* torc_server_free was called: calls that run end with the server */
    atomic_uint handlers; /* who may call handlers: each shard's loop, until it has ended, and jobs of pools */

    /* Lock: */
    struct tc_method *methods;       /* constant after the start */
    struct tc_method_limits *limits; /* constant after the start */
    enum tc_server_state state;
    bool ended; /* the home is gone */
    struct tc_link waits;
    struct tc_stop_fn *stop_fns;
    struct tc_server_load *load; /* a reference; constant after the start; NULL: none */
};

/* torc_server_new of a server of Torc's own: `adjust` (NULL: none) may change the core's options, also those that an
 * application does not have. */
torc_server *tc_api_server_new(const struct torc_server_options *given, void (*adjust)(struct tc_server_opts *opts),
                               torc_error **error);
torc_server *tc_api_server_ref(torc_server *s);
void tc_api_server_unref(torc_server *s);
/* Registers all of the methods and returns 0, or registers none and returns the code of an error that it stores.
 * `load`: the values of the server, which takes a reference; NULL: none. */
int tc_api_server_add(torc_server *s, const struct tc_method_spec *specs, size_t n, struct tc_server_load *load,
                      torc_error **error);
/* Tells all who wait that the server has stopped. The home's loop. */
void tc_api_server_stopped(torc_server *s);
/* Called by each of `handlers` when it no longer calls handlers: the last one releases them. */
void tc_api_server_handlers_end(torc_server *s);

/* Called by the core for each RPC of a method (shard.c registers them). */
void tc_api_call_on_stream(void *method, struct tc_server_call *core);
void tc_api_call_on_unary(void *method, struct tc_server_call *core, struct tc_rstr *request);
/* Returns whether the thread is a pool's, and runs a handler of the server whose RPC runs and is not finished. */
bool tc_api_call_handled_here(const torc_server *s);

/* --- shard.c --- */

/* Makes a shard on `first` before it returns, and one on each of opts.runtimes later (on fewer, if max_connections is
 * below their number). Returns 0, or the code of an error that it stores, and nothing was begun. */
int tc_server_shards_make(torc_server *s, torc_runtime *first, torc_error **error);
/* Frees the memory of shards that have ended. */
void tc_server_shards_free(struct tc_server_shard *shards, size_t n);
/* Returns TORC_EDEADLK inside a callback of one of the runtimes, else tc_runtime_check of the first. */
int tc_server_shards_check_blocking(const torc_server *s);

/* --- on the loop of the first shard, the server's home --- */

/* Has all shards begin to serve; the methods no longer change. */
void tc_server_shards_start(torc_server *s);
/* Has all shards drain; tc_api_server_stopped follows when the last shard has drained. */
void tc_server_shards_drain(torc_server *s, int64_t grace_ms);
/* The function of torc_server.stopped_task. */
void tc_server_shards_on_stopped(struct tc_task *task);
/* Listens on the address with a socket for each shard whose runtime has not ended, and stores the address as bound in
 * *bound, which the caller ends with tc_addr_fini. Returns 0, or TORC_EIO with a text in *error. */
int tc_server_shards_listen(torc_server *s, const struct tc_addr *addr, torc_credentials *credentials,
                            struct tc_addr *bound, struct tc_status *error);

/* --- the end --- */

/* Ends all shards, and waits for that. Outside of callbacks. Returns TORC_EFORK if it could not wait. */
int tc_server_shards_end(torc_server *s);
/* Has all shards end. Any thread. */
void tc_server_shards_end_later(torc_server *s);

#endif
