/* The client of gRPC's xDS interop tests (PSM interop): sends RPCs at a steady rate and answers a test driver's
 * questions. Source: gRPC's xds-test-descriptions.md. The main thread sends. Results come on the runtime's thread. The
 * driver's questions are handled on threads of a pool, where handlers may wait. */
#ifndef PSM_H
#define PSM_H

#include <stdbool.h>

#include <torc/torc.h>

#include "csds_service.torc.h"
#include "services.torc.h"

enum psm_rpc { PSM_EMPTY_CALL, PSM_UNARY_CALL, PSM_RPCS }; /* as ClientConfigureRequest.RpcType numbers them */

struct psm_options {
    const char *server; /* target */
    unsigned channels;
    unsigned qps;        /* RPCs a second of each channel and kind; 0: none */
    unsigned stats_port; /* 0: any */
    int64_t timeout_ms;  /* of each RPC, as in psm_config */
    bool fail_on_failed_rpc, print_response, secure;
    char *rpcs, *metadata; /* as in the flags; NULL: not given */
};

/* Fills in the options, with defaults for flags that are not given. Returns 0; 2, with the reason printed, if a flag is
 * wrong. The texts of the options point into argv. */
int psm_options_parse(struct psm_options *o, int argc, char **argv);

/* The RPCs to send; changed by XdsUpdateClientConfigureService. */
struct psm_config {
    bool wanted[PSM_RPCS];
    torc_metadata *metadata[PSM_RPCS]; /* owned */
    int64_t timeout_ms;                /* of each RPC; 0: none from the client itself */
};

/* Reads the flags --rpc and --metadata, whose texts it changes. Returns false, with the reason printed and nothing to
 * free, if a flag is malformed. */
bool psm_config_init(struct psm_config *c, const struct psm_options *o);
/* Frees the metadata. */
void psm_config_fini(struct psm_config *c);

/* --- counts; any thread --- */

struct psm_stats;

/* Never NULL: the program aborts if memory runs out. */
struct psm_stats *psm_stats_new(void);
/* No other thread may use the stats any longer, and no psm_stats_watch may wait. */
void psm_stats_free(struct psm_stats *s);
/* Ends the waits of psm_stats_watch, now and from now on. */
void psm_stats_close(struct psm_stats *s);
/* Counts an RPC that starts. Returns its number, from 0. */
uint64_t psm_stats_started(struct psm_stats *s, enum psm_rpc rpc);
/* Counts the RPC's status code, and the RPC in the watches whose block it belongs to. `hostname`: the backend that
 * answered with OK, copied. NULL, if the RPC failed or the name is unknown: watches count the RPC as failed. */
void psm_stats_ended(struct psm_stats *s, uint64_t number, enum psm_rpc rpc, const torc_result *result,
                     const char *hostname);
/* Answers the call with all counts so far. */
void psm_stats_accumulated(struct psm_stats *s, torc_server_call *call);
/* Waits until the next num_rpcs RPCs to start have all ended, timeout_sec have passed, or psm_stats_close was called.
 * Answers the call with the counts of the RPCs that ended. num_rpcs must be at least 1, timeout_sec at least 0. */
void psm_stats_watch(struct psm_stats *s, torc_server_call *call,
                     const Grpc__Testing__LoadBalancerStatsRequest *request);

/* --- the RPCs --- */

struct psm_load;

/* Makes the runtime and the channels. Returns NULL, with the reason printed, if --rpc or --metadata is malformed, or if
 * the runtime or a channel cannot be made. Both arguments must outlive the load. */
struct psm_load *psm_load_new(const struct psm_options *o, struct psm_stats *stats);
/* Cancels the RPCs under way and waits for their ends, which psm_stats_ended still counts. No handler may use the
 * load any longer. */
void psm_load_free(struct psm_load *l);
/* Sends the RPCs that are due. Returns how many milliseconds to wait before calling it again. Main thread. */
int64_t psm_load_send(struct psm_load *l);
/* Takes ownership of the config. Any thread. */
void psm_load_configure(struct psm_load *l, const struct psm_config *config);
/* Returns the runtime whose channels send the RPCs; borrowed. Any thread. */
torc_runtime *psm_load_runtime(const struct psm_load *l);
/* With --fail_on_failed_rpc: returns true once an RPC has failed after one had succeeded. Any thread. */
bool psm_load_failed(const struct psm_load *l);

/* --- the services --- */

struct psm_service {
    struct psm_stats *stats; /* borrowed, as is the load */
    struct psm_load *load;
    int64_t default_timeout_ms; /* of RPCs after a ClientConfigureRequest without a timeout */
};

/* Registers the services' handlers. Some of them wait, so they need a pool. `s` must outlive the server and the
 * pool. */
void psm_service_add(struct psm_service *s, torc_server *server, torc_error **error);

#endif
