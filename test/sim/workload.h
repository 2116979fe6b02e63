/* A run. Its seed decides each step, so that a run can be repeated and shortened. */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Features that a seed turns on or off (swarm testing): runs then also find bugs that show only while some feature is
 * off. */
#define SIM_FEATURES(X)                                                                                                \
    X(RING_HASH, "ring_hash")                                                                                          \
    X(AGGREGATES, "aggregates")                                                                                        \
    X(PRIORITIES, "priorities")                                                                                        \
    X(DOMAIN, "domain")                                                                                                \
    X(RESETS, "resets")                                                                                                \
    X(CUTS, "cuts")                                                                                                    \
    X(STALLS, "stalls")                                                                                                \
    X(HALF_OPEN, "half-open")                                                                                          \
    X(DOWN, "down")                                                                                                    \
    X(SILENT, "silent")                                                                                                \
    X(CONTROL_PLANE, "control-plane")                                                                                  \
    X(STREAM_ENDS, "stream-ends")                                                                                      \
    X(GOAWAY, "goaway")                                                                                                \
    X(SICK, "sick")                                                                                                    \
    X(CHANGES, "changes")                                                                                              \
    X(BAD_CHANGES, "bad-changes")                                                                                      \
    X(DELETES, "deletes")                                                                                              \
    X(CANCELS, "cancels")                                                                                              \
    X(FREES, "frees")                                                                                                  \
    X(SHORT_DEADLINES, "short-deadlines")                                                                              \
    X(SMALL_BUFFERS, "small-buffers")                                                                                  \
    X(SLOW_JOBS, "slow-jobs")                                                                                          \
    X(SLOW_CPU, "slow-cpu")                                                                                            \
    X(SLOW_CONNECTS, "slow-connects")                                                                                  \
    X(STREAMS, "streams")                                                                                              \
    X(RETRIES, "retries")                                                                                              \
    X(SESSIONS, "sessions")                                                                                            \
    X(BREAKERS, "breakers")                                                                                            \
    X(DNS, "dns")                                                                                                      \
    X(DNS_FAILS, "dns-fails")                                                                                          \
    X(FALLBACK, "fallback")                                                                                            \
    X(OUTLIERS, "outliers")                                                                                            \
    X(HEDGING, "hedging")                                                                                              \
    X(PICK_FIRST, "pick_first")                                                                                        \
    X(REFUSALS, "refusals")                                                                                            \
    X(ROUTES_GO, "routes-go")                                                                                          \
    X(DATA_ERRORS, "data-errors")                                                                                      \
    X(SCENES, "scenes")                                                                                                \
    X(BALANCERS, "balancers")                                                                                          \
    X(MAGLEV, "maglev")                                                                                                \
    X(BOUNDED_LOADS, "bounded-loads")                                                                                  \
    X(PUSHBACK, "pushback")                                                                                            \
    X(DROPS, "drops")                                                                                                  \
    X(ABORTS, "aborts")                                                                                                \
    X(ROUTE_LIMITS, "route-limits")                                                                                    \
    X(FEW_STREAMS, "few-streams")                                                                                      \
    X(NEW_CHANNELS, "new-channels")                                                                                    \
    X(LONG_BACKOFF, "long-backoff")                                                                                    \
    X(BAD_START, "bad-start")                                                                                          \
    X(ROUTES_APART, "routes-apart")                                                                                    \
    X(INCREMENTAL, "incremental")                                                                                      \
    X(UPDATES, "updates")

enum sim_feature {
#define X(name, text) SIM_FEATURE_##name,
    SIM_FEATURES(X)
#undef X
        SIM_FEATURE_ALL
};

extern const char *const sim_feature_names[SIM_FEATURE_ALL];

/* Adds the features of a list ("dns,streams") to the bits. Returns false if a name is unknown; the features before that
 * name are added then. */
bool sim_features_parse(const char *list, uint64_t *bits);
/* Prints `before` and a list of the features; prints nothing if there are none. */
void sim_features_print(FILE *out, const char *before, uint64_t bits);

enum { SIM_MAX_STEPS = 4096 };

struct sim_run {
    uint64_t seed;
    unsigned steps;           /* SIM_MAX_STEPS at most */
    uint64_t without;         /* features that are off whatever the seed says: bits by enum sim_feature */
    bool skip[SIM_MAX_STEPS]; /* steps that are left out, by number from 0 */
};

/* Performs the run, which is borrowed. A process can perform one run. Findings and counts go to the trace, which the
 * caller has begun (sim_trace_begin). */
void sim_workload_run(const struct sim_run *run);

#endif
