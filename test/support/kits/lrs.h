/* Load reports of clients to the LRS server of a kit_mesh, summed up by cluster and locality. A failure in the kit
 * fails the test; one that a report causes, on the servers' thread, ends the test program. */
#ifndef TC_SUPPORT_KITS_LRS_H
#define TC_SUPPORT_KITS_LRS_H

#include "support/kits/mesh.h"

#define KIT_LRS_MAX 4

struct kit_lrs_metric {
    char name[48];     /* "cpu", "mem", "application", or the name in load_metric_stats */
    uint64_t requests; /* that ended with the metric */
    double total;      /* of the metric's values */
};

/* Sums over all reports, but for in_progress (from the last report of any client) and port. */
struct kit_lrs_locality {
    uint64_t success, error, issued, in_progress;
    uint64_t endpoint_success, endpoint_error, endpoint_issued; /* sums of the counts by endpoint */
    uint64_t endpoint_reports;                                  /* the number of these counts */
    uint32_t port;                                              /* of the last endpoint reported */
    size_t n_metrics;
    struct kit_lrs_metric metrics[8];
};

/* A report with a locality other than these three, or with a cluster beyond KIT_LRS_MAX, is a failure. A cluster's name
 * must have at most 15 bytes. */
struct kit_lrs_cluster {
    char name[16], service[16];         /* of the cluster, and of the last report's EDS service; "": none */
    struct kit_lrs_locality a, b, none; /* by sub_zone; none: a locality without any name */
    uint64_t dropped, dropped_lb;       /* all drops; drops of category "lb" */
    uint64_t dropped_other;             /* drops of other categories */
    uint64_t reports;
    uint64_t interval_ns, widest_ns; /* the sum of the reports' intervals, and the longest of them */
};

struct kit_lrs_told {
    size_t n_clusters;
    struct kit_lrs_cluster clusters[KIT_LRS_MAX];
    uint64_t reports, empty; /* all, and those without a cluster; the first message of each stream does not count */
    uint64_t faults;         /* messages whose node is missing, repeated, or not the mesh's own (KIT_MESH_NODE) */
    size_t streams, streams_so_far; /* as the server counts */
};

struct kit_lrs;

/* Observes from now on and asks for all clusters, without counts by endpoint. The mesh is borrowed: free the kit_lrs
 * first. kit_lrs_free asserts that there were no `faults`. All functions with a kit_lrs are for the test's thread. */
struct kit_lrs *kit_lrs_new(struct kit_mesh *k, uint64_t interval_ms);
void kit_lrs_free(struct kit_lrs *l);
/* Asks for one cluster only (NULL: for all). The name must stay valid until the next kit_lrs_ask or kit_lrs_free. While
 * held (kit_lrs_hold), clients are not told until the hold ends. */
void kit_lrs_ask(struct kit_lrs *l, uint64_t interval_ms, const char *cluster);
/* Asks for counts by endpoint, too, or no longer. */
void kit_lrs_ask_endpoints(struct kit_lrs *l, bool endpoints);
/* Returns the port of a backend, in host byte order. */
uint16_t kit_lrs_backend_port(const struct kit_lrs *l, size_t backend);
/* true: ends the open streams with UNAVAILABLE, and answers new streams only after kit_lrs_hold(l, false). */
void kit_lrs_hold(struct kit_lrs *l, bool hold);
/* Closes the control plane's listening socket and connections in the loop turn in which it receives the next report.
 * Returns once the report has come (the connections may close just after); fails the test after 60 s.
 * kit_mesh_start_control_plane listens again. */
void kit_lrs_crash_after_report(struct kit_lrs *l);
/* Returns the sums of the reports so far; borrowed until the next kit_lrs_look or kit_lrs_free. */
const struct kit_lrs_told *kit_lrs_look(struct kit_lrs *l);
/* Returns the sums of one cluster, borrowed from `t`; never NULL; all zero if the cluster was not reported. */
const struct kit_lrs_cluster *kit_lrs_told_cluster(const struct kit_lrs_told *t, const char *name);
/* Returns a metric of the locality, borrowed from it; never NULL; all zero if the metric was not reported. */
const struct kit_lrs_metric *kit_lrs_metric(const struct kit_lrs_locality *l, const char *name);
/* Returns the time of the monotonic clock. */
uint64_t kit_lrs_now_ns(void);

/* Polls until the condition on `t`, the sums so far, holds. Fails the test after 60 s. */
#define KIT_LRS_WAIT(kit, condition)                                                                                   \
    for (uint64_t until_ = kit_lrs_now_ns() + UINT64_C(60000000000);;) {                                               \
        const struct kit_lrs_told *t = kit_lrs_look(kit);                                                              \
        if (condition)                                                                                                 \
            break;                                                                                                     \
        if (kit_lrs_now_ns() > until_)                                                                                 \
            fail_msg("waited in vain for %s", #condition);                                                             \
    }

/* --- callers --- */

/* The outcomes of a caller's RPCs. failed: by the backend, on request; dropped: by the drop categories of the EDS
 * resource; broken: by circuit breaking. */
struct kit_lrs_seen {
    uint64_t ok, failed, dropped, broken;
};

/* Makes n calls one after another, and adds their outcomes to *seen. Every fourth asks the backend to fail. An outcome
 * that struct kit_lrs_seen does not have ends the test program. Threads may call this at the same time with a `seen` of
 * their own. */
void kit_lrs_calls(torc_channel *ch, size_t n, struct kit_lrs_seen *seen);
/* Makes a call that a backend receives and leaves unanswered; returns once the backend has it, or fails the test after
 * 60 s. No other call may reach a backend meanwhile. End it with kit_lrs_hang_end. */
torc_stream *kit_lrs_hang(struct kit_mesh *k, torc_channel *ch);
/* Cancels the call and frees it. */
void kit_lrs_hang_end(torc_stream *call);

#endif
