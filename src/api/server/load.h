/* Values of load, of an RPC and of a server, and reports of them (torc/orca.h). Any thread, under
 * the locks that the comments name. */
#ifndef TC_API_SERVER_LOAD_H
#define TC_API_SERVER_LOAD_H

#include <pthread.h>
#include <torc/orca.h>

#include "base/arena.h"
#include "base/headers.h"
#include "base/ref.h"

struct tc_buf;

/* One value of a report. */
struct tc_load_value;

/* The values of an RPC or of a server, each metric and name once. All zero is empty. Guarded by a lock of the owner:
 * the runtime's lock for an RPC, the mutex of struct tc_server_load for a server. The values of an RPC lie in an arena,
 * those of a server belong to struct tc_server_load. */
struct tc_load {
    struct tc_load_value *first;
    size_t n;
};

/* The values of a server. A torc_orca and the server that it reports hold a reference each. */
struct tc_server_load {
    struct tc_ref ref;
    pthread_mutex_t mutex;
    struct tc_load load; /* under the mutex */
};

/* Returns whether the metric is known, its name is good (NULL for a metric without names), and, with of_server, a
 * server may have the metric. Any thread. */
bool tc_load_metric_is_good(int metric, const char *name, bool of_server);
/* Sets a value of a metric that tc_load_metric_is_good accepts. `arena`: for the memory of a new value; NULL: by
 * tc_malloc. The name is copied. Returns 0, TORC_EINVAL if the value is out of range, TORC_ELIMIT if there are 256
 * others. With the owner's lock held. */
int tc_load_set(struct tc_load *load, struct tc_arena *arena, int metric, const char *name, double value);
/* Adds the trailer endpoint-load-metrics-bin, a report of an RPC, unless the RPC has no value or the trailers have such
 * a field already. The report has the server's values (NULL: none), too, except those that the RPC has set. The
 * report's bytes are in the arena. With the lock of `load` held; takes the server's mutex. */
void tc_load_add_trailer(const struct tc_load *load, struct tc_server_load *server, struct tc_arena *arena,
                         struct tc_headers *trailers);

/* Returns empty values with one reference. */
struct tc_server_load *tc_server_load_new(void);
void tc_server_load_unref(struct tc_server_load *s); /* NULL is allowed */
/* tc_load_set, under the mutex, without an arena. */
int tc_server_load_set(struct tc_server_load *s, int metric, const char *name, double value);
/* Drops a value; `name` as for tc_load_set. Returns false if there is no such value. */
bool tc_server_load_clear(struct tc_server_load *s, int metric, const char *name);
/* Appends the server's values to a report, except those that the RPC has set (NULL: no RPC; else with the RPC's lock
 * held). Takes the server's mutex. */
void tc_server_load_append(struct tc_buf *out, struct tc_server_load *s, const struct tc_load *of_rpc);

#endif
