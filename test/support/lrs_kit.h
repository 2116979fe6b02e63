/* What the LRS server of a mesh_kit is told, added up by cluster and locality. Whatever fails in here fails the test.
 */
#ifndef TC_SUPPORT_LRS_KIT_H
#define TC_SUPPORT_LRS_KIT_H

#include "support/mesh_kit.h"

#define LRS_KIT_MAX 4

struct lrs_metric {
    char name[48]; /* "cpu", "mem", "application", or the name in load_metric_stats */
    uint64_t requests;
    double total;
};

/* Sums over the reports so far; in_progress: as the last report said. */
struct lrs_locality {
    uint64_t success, error, issued, in_progress;
    size_t n_metrics;
    struct lrs_metric metrics[8];
};

struct lrs_cluster {
    char name[16], service[16];
    struct lrs_locality a, b, none; /* by sub_zone; none: a locality without names */
    uint64_t dropped, dropped_lb;   /* all of them; those of category "lb" */
    uint64_t dropped_other;         /* those of other categories */
    uint64_t reports;
    uint64_t interval_ns, widest_ns; /* the sum, and the longest */
};

struct lrs_told {
    size_t n_clusters;
    struct lrs_cluster clusters[LRS_KIT_MAX];
    uint64_t reports, empty;        /* but for the first message of each stream */
    uint64_t faults;                /* messages out of order: a node that is missing or said twice */
    size_t streams, streams_so_far; /* as the server counts */
};

struct lrs_kit;

/* Observes from now on, and asks for all clusters. Free it after the mesh_kit's channels, before the mesh_kit. */
struct lrs_kit *lrs_kit_new(struct mesh_kit *k, uint64_t interval_ms);
void lrs_kit_free(struct lrs_kit *l);
/* Asks for one cluster alone; NULL: all. */
void lrs_kit_ask(struct lrs_kit *l, uint64_t interval_ms, const char *cluster);
/* Ends every stream with UNAVAILABLE and answers no new one, until `false` is said. */
void lrs_kit_hold(struct lrs_kit *l, bool hold);
/* Closes the control plane (port and connections) in the very turn in which it has taken in its next report. Waits for
 * that. */
void lrs_kit_crash_after_report(struct lrs_kit *l);
/* What was told so far; borrowed until the next call. */
const struct lrs_told *lrs_kit_look(struct lrs_kit *l);
/* The sums of one cluster in it; all zero when nothing was told of it. */
const struct lrs_cluster *lrs_told_cluster(const struct lrs_told *t, const char *name);
const struct lrs_metric *lrs_metric(const struct lrs_locality *l, const char *name);
uint64_t lrs_now_ns(void);

/* Looks until the condition on `t`, what was told, holds: at most 20 s. */
#define LRS_WAIT(kit, condition)                                                                                       \
    for (uint64_t until_ = lrs_now_ns() + UINT64_C(20000000000);;) {                                                   \
        const struct lrs_told *t = lrs_kit_look(kit);                                                                  \
        if (condition)                                                                                                 \
            break;                                                                                                     \
        if (lrs_now_ns() > until_)                                                                                     \
            fail_msg("waited in vain for %s", #condition);                                                             \
    }

/* --- callers --- */

/* What a caller saw; dropped: by the assignment's categories, broken: by circuit breaking. */
struct lrs_seen {
    uint64_t ok, failed, dropped, broken;
};

/* n calls one after another, every fourth of which the backend is to fail. Safe from several threads with a sum each.
 */
void lrs_calls(torc_channel *ch, size_t n, struct lrs_seen *seen);
/* A call that a backend takes and leaves unanswered; returns once it has it. No others may call meanwhile. End it with
 * lrs_hang_end. */
torc_call *lrs_hang(struct mesh_kit *k, torc_channel *ch);
void lrs_hang_end(torc_call *call);

#endif
