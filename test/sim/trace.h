/* The trace of a run: what happened, in order, with the world's time. Story lines are for people; detail lines have the
 * rest, such as which bytes went where. Both go into the digest, which must be the same in two builds. */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define SIM_PRINTF __attribute__((format(printf, 1, 2)))

enum sim_trace_level { SIM_TRACE_NONE, SIM_TRACE_STORY, SIM_TRACE_DETAIL };

/* Begins a trace that prints lines up to this level to standard output. Forgets the digest, counts and finding of an
 * earlier trace. */
void sim_trace_begin(enum sim_trace_level print);
void sim_story(const char *fmt, ...) SIM_PRINTF;
void sim_detail(const char *fmt, ...) SIM_PRINTF;
/* Returns the digest of the lines so far, printed or not. */
uint64_t sim_trace_digest(void);
/* Takes what the world says and counts into the trace; faults and attempts to connect go to sim/faults.h. */
extern const struct tc_world_observer sim_observer;

/* The rows of the table of counts: name and text. */
#define SIM_COUNTS(X)                                                                                                  \
    X(CALLS, "calls")                                                                                                  \
    X(CALLS_OK, "calls: OK")                                                                                           \
    X(CALLS_CANCELLED, "calls: CANCELLED")                                                                             \
    X(CALLS_DEADLINE, "calls: DEADLINE_EXCEEDED")                                                                      \
    X(CALLS_UNAVAILABLE, "calls: UNAVAILABLE")                                                                         \
    X(CALLS_OTHER, "calls: other status")                                                                              \
    X(CALLS_FREED, "calls: freed by the application")                                                                  \
    X(CALLS_CERTAIN, "calls judged in a settled world")                                                                \
    X(CALLS_DOOMED, "calls that had to fail")                                                                          \
    X(CALLS_DOOMED_AT_ONCE, "calls that had to fail at once")                                                          \
    X(CALLS_UNROUTED, "calls that nothing could route")                                                                \
    X(EJECTED_AGAIN, "endpoints that outlier detection had to eject twice in a row")                                   \
    X(CALLS_KEYED, "calls whose endpoint the ring named")                                                              \
    X(CALLS_TABLE, "calls whose endpoint the table of maglev named")                                                   \
    X(CALLS_BOUNDED, "calls whose endpoint the ring or table named, and loads are bounded")                            \
    X(CALLS_PASSED_ON, "calls that bounded loads passed on")                                                           \
    X(CALLS_EJECTED, "calls that had to avoid an ejected endpoint")                                                    \
    X(CALLS_HEDGED, "calls that had to be hedged")                                                                     \
    X(CALLS_UNRESOLVED, "calls whose name had to fail")                                                                \
    X(CALLS_SESSION, "calls whose endpoint the session named")                                                         \
    X(CALLS_BREAKER, "calls that a circuit breaker dropped")                                                           \
    X(CALLS_REFUSED, "calls that a backend refused without looking")                                                   \
    X(CALLS_DROPPED, "calls that the endpoints' resource wanted dropped")                                              \
    X(CALLS_ABORTED, "calls that the fault filter failed")                                                             \
    X(CALLS_LIMITED, "calls whose route limits their time")                                                            \
    X(CALLS_PUSHED_BACK, "tries after a server's pushback")                                                            \
    X(CALLS_WEIGHED, "calls whose endpoint reports of load weigh")                                                     \
    X(CALLS_RETRIED, "calls that were retried")                                                                        \
    X(TIMEOUTS_OF_RETRIES, "retries whose timeout was judged")                                                         \
    X(KIND_UNARY, "calls: unary")                                                                                      \
    X(KIND_CLIENT_STREAM, "calls: client streaming")                                                                   \
    X(KIND_SERVER_STREAM, "calls: server streaming")                                                                   \
    X(KIND_BIDI_STREAM, "calls: bidirectional streaming")                                                              \
    X(LAYER_RESOLVER, "failures: layer resolver")                                                                      \
    X(LAYER_XDS, "failures: layer xds")                                                                                \
    X(LAYER_LB, "failures: layer lb")                                                                                  \
    X(LAYER_CONNECT, "failures: layer connect")                                                                        \
    X(LAYER_HTTP2, "failures: layer http2")                                                                            \
    X(LAYER_LIMIT, "failures: layer limit")                                                                            \
    X(LAYER_DEADLINE, "failures: layer deadline")                                                                      \
    X(LAYER_PEER, "failures: layer peer")                                                                              \
    X(POLICY_ROUND_ROBIN, "calls: round_robin")                                                                        \
    X(POLICY_RING_HASH, "calls: ring_hash")                                                                            \
    X(POLICY_MAGLEV, "calls: maglev")                                                                                  \
    X(POLICY_PICK_FIRST, "calls: pick_first in each locality")                                                         \
    X(POLICY_LEAST_REQUEST, "calls: least_request, in its three ways")                                                 \
    X(POLICY_WEIGHTED, "calls: weighted_round_robin")                                                                  \
    X(POLICY_AGGREGATE, "calls: aggregate cluster")                                                                    \
    X(POLICY_DNS, "calls: logical DNS cluster")                                                                        \
    X(POLICY_OUTLIERS, "calls: outlier detection")                                                                     \
    X(POLICY_HEDGING, "calls: hedging")                                                                                \
    X(NAMES_FAILED, "names: look-ups that failed")                                                                     \
    X(CHANNELS, "channels that took the place of others")                                                              \
    X(FALLBACKS, "fault: primary control plane unreachable from the start")                                            \
    X(CONNECTS, "connections: attempts")                                                                               \
    X(CONNECTS_REFUSED, "connections: refused")                                                                        \
    X(CONNECTS_SILENT, "connections: silent")                                                                          \
    X(FAULT_RESET, "fault: connection reset")                                                                          \
    X(FAULT_CUT, "fault: connection cut at a byte")                                                                    \
    X(FAULT_STALL, "fault: connection stalled")                                                                        \
    X(FAULT_HALF_OPEN, "fault: half-open connection")                                                                  \
    X(FAULT_DOWN, "fault: endpoint refuses")                                                                           \
    X(FAULT_SILENT, "fault: endpoint silent")                                                                          \
    X(FAULT_CONTROL_PLANE, "fault: control plane unreachable")                                                         \
    X(FAULT_STREAM_END, "fault: ADS stream ended")                                                                     \
    X(FAULT_GOAWAY, "fault: GOAWAY of an endpoint")                                                                    \
    X(FAULT_HASTY_GOAWAY, "fault: GOAWAY that leaves requests on their way out")                                       \
    X(FAULT_DNS, "fault: a name fails")                                                                                \
    X(FAULT_SICK, "fault: endpoint answers errors")                                                                    \
    X(SHORT_WRITES, "partial writes")                                                                                  \
    X(CHANGE_ENDPOINTS, "change: endpoints")                                                                           \
    X(CHANGE_CLUSTER, "change: cluster")                                                                               \
    X(CHANGE_ROUTE, "change: route")                                                                                   \
    X(CHANGE_BAD_ENDPOINTS, "change: bad endpoints")                                                                   \
    X(CHANGE_BAD_CLUSTER, "change: bad cluster")                                                                       \
    X(CHANGE_BAD_LISTENER, "change: bad listener")                                                                     \
    X(CHANGE_NEUTRAL, "change: an update without a difference")                                                        \
    X(CHANGE_UNROUTED, "change: a route that goes")                                                                    \
    X(CHANGE_BLINK, "change: endpoints that go and come back at once")                                                 \
    X(SCENES_EJECTION, "scene: an endpoint fails again and again")                                                     \
    X(SCENES_FAILOVER, "scene: a priority fails, the next one changes")                                                \
    X(SCENES_WEIGHTS, "scene: weighted_round_robin has reports of all")                                                \
    X(LOOK_UPS_DUE, "look-ups that the end of connections made due")                                                   \
    X(SCENES_MOVE, "scene: a name moves to other addresses")                                                           \
    X(SCENES_ABSENT, "scene: the control plane fails, and a listener is known to be absent")                           \
    X(CHANGE_DELETED, "change: resource deleted")                                                                      \
    X(CHANGE_RESTORED, "change: resource restored")                                                                    \
    X(LOAD_REPORTS, "load reports")                                                                                    \
    X(SHARES, "shares of localities that were judged")                                                                 \
    X(LOADS_WHOLE, "runs whose loads must add up")                                                                     \
    X(RESOURCES_SHOWN, "resources whose client status was judged")                                                     \
    X(CALMS, "calm periods")

enum sim_count {
#define X(name, text) SIM_COUNT_##name,
    SIM_COUNTS(X)
#undef X
        SIM_COUNT_ALL
};

extern uint64_t sim_counts[SIM_COUNT_ALL];
extern const char *const sim_count_texts[SIM_COUNT_ALL];
static inline void sim_count(enum sim_count which)
{
    sim_counts[which]++;
}

/* Records a finding, as a line of the story: a rule is broken. The text up to its first colon, or all of it, names the
 * rule: search.c compares that. The first finding is remembered, at most 511 bytes of it. */
void sim_violation(const char *fmt, ...) SIM_PRINTF;
/* Returns the first finding, borrowed until the next sim_trace_begin; NULL: there is none. */
const char *sim_first_violation(void);

#endif
