/* The insides of torc_server, for the files of src/api/server.
 *
 * Who may touch what: what is marked "loop" belongs to the shard's loop. What is marked "lock" is under the lock of the
 * server's first runtime. Atomic members are for any thread. All else is constant once the server was started. */
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
    const char *path; /* as in struct tc_method; specs that are added together have different paths */
    struct torc_handler handler;
    size_t max_request; /* bytes of a request, unless torc_server_limit sets another size; 0: an application's method.
                           A handler with a max_request is Torc's own, and never runs on a pool */
    void (*stopping)(void *arg); /* called on the home's loop with the handler's arg when a stop begins; or NULL */
};

/* A method that was registered, or one that has limits and is answered by the handler of "*". */
struct tc_method {
    UT_hash_handle hh;
    torc_server *server; /* which owns the method */
    struct torc_handler handler;
    char *path;                            /* "/service/method", "/service/" for the methods of a service, or "*" */
    torc_pool *pool;                       /* borrowed from `limits`; NULL: none. Set by the start, as `limits` is */
    const struct tc_method_limits *limits; /* borrowed from the server; NULL: none */
    size_t max_request;                    /* see struct tc_method_spec */
    void (*stopping)(void *arg);           /* see struct tc_method_spec */
    atomic_size_t calls;                   /* that have places, on all shards; counted only with a max_calls */
    bool spread;                           /* nobody registered it: server_spread made it of the handler of "*" */
};

/* The limits that torc_server_limit was given. */
struct tc_method_limits {
    UT_hash_handle hh;
    struct torc_method_options opts; /* has a reference to its pool */
    char *name;                      /* "/service/method", "/service" or "*" */
};

enum tc_server_state { TC_SERVER_NEW, TC_SERVER_STARTED, TC_SERVER_STOPPING, TC_SERVER_STOPPED };

/* The part of a server on one of its runtimes (torc_server_options.runtimes). */
struct tc_server_shard {
    torc_server *server; /* owns the shards; the shard's loop has a reference to it until `gone` */
    torc_runtime *rt;    /* a reference */
    size_t max;          /* connections; 0: no limit */
    struct tc_server_tally tally;
    atomic_size_t load;    /* connections that it has, or that are on their way to it */
    atomic_bool closed;    /* the shard takes no connection: it has ended, or could not be made */
    atomic_bool end_asked; /* tc_server_shards_end_later has asked for the end */
    struct tc_task make;   /* each is posted at most once */
    struct tc_task start;
    struct tc_task end;
    struct tc_runtime_member member; /* loop */
    struct tc_server *core;          /* loop: NULL before the shard was made and once it has ended */
    /* Under the lock of `rt`. ended: the shard's end has begun; the shard's loop, which alone sets `ended`, reads it
     * without the lock. gone: the shard's loop no longer calls handlers. */
    bool ended, gone;
    struct tc_link waits; /* under the lock of `rt`: threads that wait for `gone` */
    bool drained;         /* lock: shard_drained was called */
};

struct torc_server {
    struct tc_ref ref; /* the application's, each shard's loop's until `gone`, each call's, each posted task's, and that
                          of functions while they run */
    struct tc_server_shard *shards; /* owned; the first is the server's home */
    size_t n_shards;
    struct tc_server_share share;    /* of the shards' cores */
    torc_runtime *rt;                /* the home's; borrowed from its shard */
    struct torc_server_options opts; /* complete; `interceptors` and `runtimes` are good in tc_api_server_new alone */
    void (*adjust)(struct tc_server_opts *opts); /* changes the core's options, for a server of Torc's own; or NULL */
    struct tc_interceptors *interceptors;        /* owned; NULL: none */
    struct tc_task stopped_task;                 /* tells on the home's loop that all shards have drained */
    atomic_bool freed;                           /* torc_server_free was called; see tc_api_call_is_over */
    atomic_uint handlers; /* counts who may call handlers: each shard's loop until it has ended, each job on a pool */

    /* Lock: */
    struct tc_method *methods;       /* constant after the start */
    struct tc_method_limits *limits; /* constant after the start */
    enum tc_server_state state;
    bool ended;                  /* the home has ended */
    struct tc_link waits;        /* threads that wait for TC_SERVER_STOPPED */
    struct tc_stop_fn *stop_fns; /* owned, a list */
    struct tc_server_load *load; /* a reference; constant after the start; NULL: none */
};

/* torc_server_new with a function that may change the core's options (NULL: none). It is called for each shard, on the
 * shard's loop. */
torc_server *tc_api_server_new(const struct torc_server_options *given, void (*adjust)(struct tc_server_opts *opts),
                               torc_error **error);
/* Add and release a reference. Any thread. */
torc_server *tc_api_server_ref(torc_server *s);
void tc_api_server_unref(torc_server *s);
/* Registers all of the methods and returns 0, or registers none and returns the code of an error that it stores. Copies
 * `specs` and their paths. `load`: the values of the server, which takes a reference (TORC_EEXIST if the server has
 * values); NULL: none. `s` NULL: TORC_EINVAL. Any thread. */
int tc_api_server_add(torc_server *s, const struct tc_method_spec *specs, size_t n, struct tc_server_load *load,
                      torc_error **error);
/* Sets TC_SERVER_STOPPED, and tells all who wait for it. Home's loop. */
void tc_api_server_stopped(torc_server *s);
/* Counts `handlers` down; the last one calls `release` of all handlers. Any thread. */
void tc_api_server_handlers_end(torc_server *s);

/* Called by the core for each RPC of a method, a struct tc_method (shard.c registers them); on_unary, once the request
 * is complete. `request` is borrowed. Loop thread. */
void tc_api_call_on_stream(void *method, struct tc_server_call *core);
void tc_api_call_on_unary(void *method, struct tc_server_call *core, struct tc_rstr *request);
/* Returns whether this thread runs a handler of the server on a pool, whose call is neither over nor finished. */
bool tc_api_call_handled_here(const torc_server *s);

/* --- shard.c --- */

/* Makes a shard on `first`, and has one made on each of opts.runtimes later (at most max_connections shards). Returns
 * 0, or the code of an error that it stores. After TORC_EFORK `s` must not be freed: the loop may have it. */
int tc_server_shards_make(torc_server *s, torc_runtime *first, torc_error **error);
/* Frees shards that have ended or were not made, and drops their references to runtimes. NULL is allowed for n = 0. */
void tc_server_shards_free(struct tc_server_shard *shards, size_t n);
/* Returns TORC_EDEADLK inside a callback of the runtime of any shard, else what tc_runtime_check returns for the first
 * runtime. Returns TORC_EFORK in any case if tc_runtime_check does. */
int tc_server_shards_check_blocking(const torc_server *s);

/* --- on the loop of the first shard, the server's home --- */

/* Has all shards begin to serve. The methods must not change from then on. */
void tc_server_shards_start(torc_server *s);
/* Has all shards drain; tc_api_server_stopped follows when the last has. grace_ms as for torc_server_stop. */
void tc_server_shards_drain(torc_server *s, int64_t grace_ms);
void tc_server_shards_on_stopped(struct tc_task *task); /* the function of torc_server.stopped_task */
/* Listens on the IP address with a socket for each shard whose runtime has not ended. Returns 0 with the address as
 * bound in *bound, which the caller ends with tc_addr_fini, or TORC_EIO with a text in *error. Takes its own references
 * to `credentials`. The other shards' loops take their sockets later; a failure there is logged. */
int tc_server_shards_listen(torc_server *s, const struct tc_addr *addr, torc_credentials *credentials,
                            struct tc_addr *bound, struct tc_status *error);

/* --- the end --- */

/* Ends all shards, and waits for that. Outside of callbacks. Returns 0, or TORC_EFORK if it could not wait. */
int tc_server_shards_end(torc_server *s);
/* Has all shards end. Any thread. */
void tc_server_shards_end_later(torc_server *s);

#endif
