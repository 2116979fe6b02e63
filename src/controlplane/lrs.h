/* The load reporting server (LRS, StreamLoadStats): sends clients the clusters to report and the interval, and passes
 * each report on to an observer. Called on the thread of its server's loop. */
#ifndef TC_CONTROLPLANE_LRS_H
#define TC_CONTROLPLANE_LRS_H

#include "pb/envoy/service/load_stats/v3/lrs.pb-c.h"
#include "server/call.h"
#include "server/server.h"

struct tc_lrs;

/* The server's settings for the clients' reports. */
struct tc_lrs_config {
    uint64_t interval_ms;        /* from one report of a stream to the next */
    bool send_all_clusters;      /* every cluster is to be reported */
    const char *const *clusters; /* the clusters to report; not needed with send_all_clusters */
    size_t n_clusters;
    bool endpoint_granularity; /* reports are to have the load of each endpoint, too */
};

/* One LoadStatsRequest; borrowed for the call. */
struct tc_lrs_report {
    uint64_t stream;         /* the number of the stream, from 1 */
    bool first;              /* the first of its stream, which is answered (while mute: later) */
    struct tc_slice node_id; /* of the stream's first request with a node; empty: none yet, or the node has no id */
    const Envoy__Service__LoadStats__V3__LoadStatsRequest *request;
};

typedef void (*tc_lrs_report_fn)(void *arg, const struct tc_lrs_report *report);

/* Registers the method of LRS with the server. The object must live as long as the server takes calls. Asks for all
 * clusters every 10 s until tc_lrs_set. */
struct tc_lrs *tc_lrs_new(struct tc_server *server);
/* Call after tc_server_free. NULL is allowed. */
void tc_lrs_free(struct tc_lrs *l);
/* Sets the one observer of reports; NULL: none. */
void tc_lrs_observe(struct tc_lrs *l, tc_lrs_report_fn fn, void *arg);
/* Replaces the settings; copied. Streams whose first request came get the new settings at once, or when the server is
 * no longer mute. */
void tc_lrs_set(struct tc_lrs *l, const struct tc_lrs_config *config);

/* Return how many streams there are, with those that were ended and have not closed yet; and how many were opened so
 * far. */
size_t tc_lrs_streams(const struct tc_lrs *l);
uint64_t tc_lrs_streams_so_far(const struct tc_lrs *l);
/* Ends every open stream with a status. */
void tc_lrs_end_streams(struct tc_lrs *l, int code, const char *text);
/* While mute, the server takes in reports and sends no settings. A call with false sends the settings on the streams
 * that have asked and lack them. */
void tc_lrs_set_mute(struct tc_lrs *l, bool mute);
/* Sends bytes on every open stream, also while mute. For tests: the bytes need not be a LoadStatsResponse. */
void tc_lrs_send(struct tc_lrs *l, struct tc_slice response);

#endif
