/* The oracle is told what happens, notes it, and judges it by the rules below.
 *
 * This file takes the events. Of the rules it judges the ones that always hold, except `request`, and those rules of a
 * settled world that oracle_settled.c leaves to it. oracle_internal.h says what the other files do.
 *
 * A disturbance (oracle_disturbed) moves disturbed_ms on and forgets what counts in one settled world alone: answered
 * keys, failures because nothing can be reached, load reports. oracle_settled says whether the world is settled.
 *
 * The one `oracle` is the process's. It holds a copy of the mesh and owns a struct tracked for each call, by id, until
 * oracle_end. oracle_call_begins may move all of these, so nobody keeps a pointer to one beyond the event. Events come
 * on the world's one thread: from steps of the workload, and from inside turns of the loops. Read oracle_call_begins,
 * oracle_call_seen and oracle_call_ends first. */

/* The rules. Rules of load reports and CSDS are in oracle_reports.c.
 *
 * Always:
 *   once        a call ends once, and not after it was freed
 *   deadline    DEADLINE_EXCEEDED comes at the deadline, and no call outlives its deadline or its route's limit (A31)
 *   cancelled   CANCELLED comes only to calls that the application cancelled, or whose channel it freed
 *   echo        an OK has the answer of the backend that the result names, to this call
 *   stream      messages come whole, in order and once, all of one backend; an OK has all of them
 *   attempts    the backends together saw a call at most as often as the result says
 *   layer       the result has the right layer for a deadline, a cancel, OK, a status that the backend was asked for
 *   backoff     a runtime whose attempt to connect was refused does not begin another one to the host before the first
 *               backoff, less its jitter, has passed since the begin of the refused one
 *   request     a backend gets the authority and the metadata of the call, the time that is left to it, and the number
 *               of tries before (oracle_requests.c)
 *
 * In a settled world: nothing has disturbed it from ORACLE_SETTLED_MS before the call began until the call ended. (A
 * bad version or a deletion disturbs nothing where A88 keeps the last good version, nor does an update without a
 * difference.)
 *   reachable   with a reachable endpoint in any group (a priority of a leaf cluster, in the order of A37 and A56), a
 *               call that has time enough succeeds; without one it does not
 *   member      an endpoint that answers is one of the service
 *   group       a call that succeeds went to an endpoint of the groups up to the first with a reachable endpoint
 *   ring        calls of a key go to the endpoint that the ring has for it (ring_model.c), or Maglev's table
 *               (maglev_model.c), unless loads are bounded and two other calls of the channel may be there
 *   shares      each locality of a group gets the part of its calls that its weight says; an endpoint that
 *               weighted_round_robin balances gets the part that its reports say (A58); of all calls, the fault filter
 *               and drops fail the part that they are set to (oracle_shares.c)
 *   session     calls of a session go to its endpoint, if that is an endpoint of the cluster and can be reached (A55;
 *               session_counts has the exceptions)
 *   cookie      the response's cookie names the endpoint that served, unless the request's cookie did (A55)
 *   breaker     no cluster has more calls than its limit, and no call is dropped while fewer are under way (A32)
 *   retries     a backend's failure is final after as many tries as the route allows, no call has more, and there is a
 *               backoff before each (A44), or what the backend asked for: a time, or no further try (A6)
 *   refused     when a backend refused a call without looking, the client sends it again by itself, once at most; each
 *               further time is one of the call's tries (A6)
 *   ejected     no call goes to an endpoint that outlier detection must have ejected; the endpoints that it cannot have
 *               ejected serve as ever (A50)
 *   hedging     while no attempt has answered, one more begins after each delay, and when one has failed; no others
 *               begin (A6)
 *   layer       the result has the right layer for a circuit breaker, a backend's status, endpoints that cannot be
 *               connected
 *   route       while nothing routes a service's calls, none goes anywhere: they fail, or wait for ready
 *   doomed      once a channel has failed a call because nothing can be reached, it fails the next ones at once; where
 *               every endpoint refuses connections, it fails the first one at once, too
 *   waiting     a call that began before the world settled ends, too
 *   note        a policy's failure says which node and which name it concerns (A88)
 *   quiet       nobody connects more often than backoff allows
 *   look-up     when the connections to a name's hosts end, the name is looked up again (scene_move), unless a look-up
 *               came less than LOOK_UP_INTERVAL_MS before
 *   injected    the fault filter (A33) and drops fail calls only where they are set to; no backend sees a call that the
 *               fault filter fails
 *   fallback    nobody is connected to the second control plane while the first one serves, or when it was lost while
 *               clients had all that they asked for; when they had not, somebody is (A71)
 *
 * Exceptions, by the texts: if a service has several groups, some may be passed over (oracle_may_pass_over).
 *   ejected     a group whose reachable endpoints may all be ejected, and a ring with one that may be (A50)
 *   two failed  a ring with two endpoints that cannot be reached: it may be in TRANSIENT_FAILURE while a third connects
 *               (A42's aggregation, rule 2). A56 turns to the next group meanwhile, even to one that fails
 *   too slow    a ring with a silent endpoint, if connecting may take longer than A56's failover timer: a ring connects
 *               one endpoint after the other (A42), and is in CONNECTING meanwhile */
#include "sim/oracle_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/error.h>
#include <torc/status.h>

#include "sim/trace.h"

struct oracle_state oracle;

static void note_members(uint64_t now_ms)
{
    for (unsigned s = 0; s < oracle.mesh.n_services; s++) {
        struct group groups[MAX_GROUPS];
        size_t n = oracle_groups(s, groups);
        for (unsigned h = 0; h < SIM_HOSTS; h++) {
            bool member = false;
            for (size_t g = 0; g < n; g++)
                member = member || groups[g].member[h];
            if (member)
                oracle.member_ms[s][h] = UINT64_MAX;
            else if (oracle.member_ms[s][h] == UINT64_MAX)
                oracle.member_ms[s][h] = now_ms;
        }
    }
}

/* --- events --- */

void oracle_disturbed(uint64_t now_ms)
{
    if (now_ms <= oracle.disturbed_ms)
        return;
    oracle.disturbed_ms = now_ms;
    memset(oracle.key_answered_ms, 0, sizeof(oracle.key_answered_ms));
    memset(oracle.doomed_ms, 0, sizeof(oracle.doomed_ms));
    memset(oracle.reported, 0, sizeof(oracle.reported));
}

void oracle_begin(const struct sim_mesh *mesh, uint64_t connect_timeout_ms, uint64_t now_ms)
{
    memset(&oracle, 0, sizeof(oracle));
    oracle.connect_timeout_ms = connect_timeout_ms;
    for (unsigned h = 0; h < SIM_HOSTS; h++)
        oracle.hosts[h].up = true;
    oracle_changed(mesh, now_ms);
}

void oracle_changed(const struct sim_mesh *mesh, uint64_t now_ms)
{
    for (unsigned s = 0; s < mesh->n_services; s++)
        if (mesh->services[s].cluster != oracle.mesh.services[s].cluster ||
            mesh->services[s].unrouted != oracle.mesh.services[s].unrouted)
            oracle.routed_ms[s] = now_ms;
    oracle.mesh = *mesh;
    note_members(now_ms);
    oracle_disturbed(now_ms);
}

void oracle_host(unsigned host, bool up, bool silent, uint64_t now_ms)
{
    oracle.hosts[host].up = up;
    oracle.hosts[host].silent = silent;
    oracle_disturbed(now_ms);
}

void oracle_name(unsigned cluster, bool unknown, uint64_t now_ms)
{
    oracle.name_unknown[cluster] = unknown;
    note_members(now_ms);
    oracle_disturbed(now_ms);
}

bool oracle_name_known(unsigned cluster)
{
    return !oracle.name_unknown[cluster];
}

void oracle_name_asked(unsigned cluster, uint64_t now_ms)
{
    oracle.name_asked_ms[cluster] = now_ms;
}

void oracle_name_lost(unsigned cluster, uint64_t lost_ms)
{
    oracle.name_due[cluster] = oracle.name_asked_ms[cluster] + LOOK_UP_INTERVAL_MS <= lost_ms;
    oracle.name_lost_ms[cluster] = lost_ms;
}

void oracle_judge_look_up(unsigned cluster, uint64_t now_ms)
{
    uint64_t lost_ms = oracle.name_lost_ms[cluster], asked_ms = oracle.name_asked_ms[cluster];
    if (!oracle.name_due[cluster])
        return;
    sim_count(SIM_COUNT_LOOK_UPS_DUE);
    if (asked_ms < lost_ms)
        sim_violation("look-up: the connections to the hosts of d%u ended %llu ms ago, and nobody has looked it up for "
                      "%llu ms",
                      cluster, (unsigned long long)(now_ms - lost_ms), (unsigned long long)(now_ms - asked_ms));
}

/* A GOAWAY disturbs nobody: calls on the connection go on, new calls go to the next connection, and a call that the
 * server did not look at is sent again (A6). It may cost attempts (count_load); if hasty, these may count as failed for
 * A50. The weight of an endpoint begins again with its next connection (A58). */
void oracle_goaway(unsigned host, bool hasty, uint64_t now_ms)
{
    oracle.goaway_ms[1] = oracle.goaway_ms[0];
    oracle.goaway_ms[0] = now_ms;
    for (unsigned r = 0; r < RUNTIMES; r++)
        for (unsigned s = 0; s < SIM_SERVICES; s++) {
            oracle.reported[r][s][host] = (struct reported){0};
            if (hasty)
                oracle.ends[r][s][host].may_have_failed_ms = now_ms + FAST_MS;
        }
}

unsigned oracle_goaways(const struct tracked *t)
{
    unsigned n = 0;
    for (unsigned i = 0; i < 2; i++)
        n += oracle.goaway_ms[i] > 0 && t->began_ms < oracle.goaway_ms[i] + FAST_MS;
    return n;
}

bool oracle_aborted(const struct oracle_outcome *r)
{
    return r->code == SIM_ABORT_CODE && r->layer == TORC_LAYER_INTERCEPTOR;
}

bool oracle_dropped(const struct oracle_outcome *r)
{
    return r->code == TORC_STATUS_UNAVAILABLE && strstr(r->message, "EDS-configured drop") != NULL;
}

void oracle_sick(unsigned host, int code, uint64_t now_ms)
{
    oracle.hosts[host].sick = code;
    oracle_disturbed(now_ms);
}

/* A backoff from before may or may not bind the new channel: neither is a violation. `dialled` does not say which
 * runtime is which, so the refusals of all runtimes are forgotten. */
void oracle_channel(unsigned runtime, unsigned service, uint64_t now_ms)
{
    oracle.opened_ms[runtime][service] = now_ms;
    for (unsigned h = 0; h < SIM_HOSTS; h++)
        for (unsigned r = 0; r < RUNTIMES; r++)
            oracle.dialled[r][h].failed = false;
    memset(oracle.ends[runtime][service], 0, sizeof(oracle.ends[runtime][service]));
    memset(oracle.reported[runtime][service], 0, sizeof(oracle.reported[runtime][service]));
    memset(oracle.key_answered_ms[runtime][service], 0, sizeof(oracle.key_answered_ms[runtime][service]));
    oracle.doomed_ms[runtime][service] = 0;
}

/* --- calls --- */

static void serving_over(struct tracked *t)
{
    oracle.serving[t->cluster] -= t->serving;
    t->serving = false;
}

/* Counts a call that begins, if chance may fail it. A call counts for the fault filter if it has the time to come to
 * the filter, and for drops if it will have exactly one pick. */
static void count_chances(struct tracked *t)
{
    const struct sim_service *service = &oracle.mesh.services[t->call.service];
    const struct sim_cluster *c = &oracle.mesh.clusters[service->cluster];
    struct group groups[MAX_GROUPS];
    double aborts = service->abort_percent / 100.0, drops = c->drop_percent / 100.0;
    bool fast = t->timeout_ms >= 0 && t->timeout_ms < FAST_MS;
    if (!oracle_settled(t->began_ms) || !t->call.routed || fast || service->unrouted || service->hedged)
        return;
    t->may_be_aborted = service->abort_percent > 0;
    if (t->may_be_aborted)
        oracle_count_chance(ORACLE_ABORTS, aborts);
    size_t n = oracle_groups(t->call.service, groups);
    oracle_groups_eject(groups, n, t);
    t->may_be_dropped = c->drop_percent > 0 && !c->is_aggregate && !c->dns && !service->retries &&
                        t->call.session < 0 && !t->call.refusals && groups[0].reachable == groups[0].members &&
                        groups[0].unsure == 0 && groups[0].members > 0 && oracle_goaways(t) == 0;
    if (t->may_be_dropped)
        oracle_count_chance(ORACLE_DROPS, (1 - aborts) * drops);
}

uint64_t oracle_call_begins(const struct oracle_call *call, uint64_t now_ms)
{
    if (oracle.n_calls == oracle.room) {
        oracle.room = oracle.room ? oracle.room * 2 : 256;
        oracle.calls = realloc(oracle.calls, oracle.room * sizeof(*oracle.calls));
        if (!oracle.calls)
            abort();
    }
    oracle.calls[oracle.n_calls] = (struct tracked){
        .call = *call, .began_ms = now_ms, .cluster = oracle.mesh.services[call->service].cluster, .from = -1};
    int64_t limit_ms = oracle.mesh.services[call->service].limit_ms;
    bool limited = limit_ms > 0 && (call->timeout_ms < 0 || limit_ms < call->timeout_ms);
    oracle.calls[oracle.n_calls].timeout_ms = limited ? limit_ms : call->timeout_ms;
    if (limited)
        sim_count(SIM_COUNT_CALLS_LIMITED);
    count_chances(&oracle.calls[oracle.n_calls]);
    return oracle.n_calls++;
}

void oracle_call_cancelled(uint64_t id)
{
    oracle.calls[id].call.cancelled = true;
    serving_over(&oracle.calls[id]);
}

void oracle_call_freed(uint64_t id, uint64_t now_ms)
{
    struct tracked *t = &oracle.calls[id];
    t->call.freed = true;
    for (unsigned h = 0; h < SIM_HOSTS; h++)
        oracle.ends[t->call.runtime][t->call.service][h].may_have_failed_ms = now_ms;
    oracle.unknown += MAX_TRIES;
    serving_over(&oracle.calls[id]);
}

bool oracle_settled(uint64_t now_ms)
{
    return oracle.disturbed_ms + ORACLE_SETTLED_MS <= now_ms;
}

static void judge_time(uint64_t id, const struct tracked *t, const struct oracle_outcome *r, uint64_t now_ms)
{
    uint64_t took_ms = now_ms - t->began_ms;
    /* A call of a new channel may hear of its route only when the route's limit is over. */
    bool is_new = oracle.opened_ms[t->call.runtime][t->call.service] + FAST_MS > t->began_ms;
    bool was_routed = t->n_seen > 0 || (oracle_settled(t->began_ms) && t->call.routed && !is_new &&
                                        !oracle.mesh.services[t->call.service].unrouted);
    int64_t most_ms = was_routed ? t->timeout_ms : t->call.timeout_ms;
    if (most_ms >= 0 && took_ms > (uint64_t)most_ms + SLACK_MS)
        sim_violation("deadline: call %llu took %llu ms with a deadline of %lld ms", (unsigned long long)id,
                      (unsigned long long)took_ms, (long long)most_ms);
    if (r->code == TORC_STATUS_DEADLINE_EXCEEDED && (t->timeout_ms < 0 || took_ms + SLACK_MS < (uint64_t)t->timeout_ms))
        sim_violation("deadline: call %llu ended with DEADLINE_EXCEEDED after %llu ms, deadline %lld ms: %s",
                      (unsigned long long)id, (unsigned long long)took_ms, (long long)t->timeout_ms, r->message);
    if (r->code == TORC_STATUS_CANCELLED && !t->call.cancelled)
        sim_violation("cancelled: nobody cancelled call %llu: %s", (unsigned long long)id, r->message);
}

/* Judges the layer as far as it is known in any world: DEADLINE for a deadline or a cancel, NONE for OK, PEER for the
 * code that the backend was asked for, and any layer but NONE for every other failure. */
static void judge_layer(uint64_t id, const struct tracked *t, const struct oracle_outcome *r)
{
    bool own = r->code == TORC_STATUS_DEADLINE_EXCEEDED || (r->code == TORC_STATUS_CANCELLED && t->call.cancelled);
    bool right = own                                                        ? r->layer == TORC_LAYER_DEADLINE
                 : r->code == TORC_STATUS_OK                                ? r->layer == TORC_LAYER_NONE
                 : t->call.asked_code != 0 && r->code == t->call.asked_code ? r->layer == TORC_LAYER_PEER
                                                                            : r->layer != TORC_LAYER_NONE;
    if (!right)
        sim_violation("layer: call %llu failed with %s in layer %d: %s", (unsigned long long)id,
                      torc_status_code_name(r->code), r->layer, r->message);
}

/* Returns the host that answered; -1 if the answer is wrong. */
static int judge_answer(uint64_t id, const struct tracked *t, const struct oracle_outcome *r)
{
    int host = sim_host_of(r->peer);
    char expected[64];
    snprintf(expected, sizeof(expected), "%d %llu", host, (unsigned long long)id);
    if (host < 0 || t->call.asked_code != 0 || !r->response || strcmp(expected, r->response) != 0) {
        sim_violation("echo: call %llu has the answer \"%s\" of %s, asked for %d", (unsigned long long)id,
                      r->response ? r->response : "", r->peer, t->call.asked_code);
        return -1;
    }
    return host;
}

static int judge_stream(uint64_t id, const struct tracked *t, const struct oracle_outcome *r)
{
    int host = sim_host_of(r->peer);
    unsigned expected = t->call.kind == SIM_CLIENT_STREAM ? 1 : t->call.n_messages;
    if (host < 0 || t->call.asked_code != 0 || t->n_received != expected || (expected > 0 && t->from != host)) {
        sim_violation("stream: call %llu of %s has %u messages of host %d, expected %u; asked for %d",
                      (unsigned long long)id, r->peer, t->n_received, t->from, expected, t->call.asked_code);
        return -1;
    }
    return host;
}

static void judge_member(uint64_t id, const struct tracked *t, int host)
{
    uint64_t member_ms = oracle.member_ms[t->call.service][host];
    if (oracle_settled(t->began_ms) && member_ms < t->began_ms - ORACLE_SETTLED_MS)
        sim_violation("member: call %llu went to host %d, which is not an endpoint of s%u", (unsigned long long)id,
                      host, t->call.service);
}

static void count_outcome(const struct oracle_call *call, const struct oracle_outcome *r)
{
    static const enum sim_count layers[] = {[TORC_LAYER_RESOLVER] = SIM_COUNT_LAYER_RESOLVER,
                                            [TORC_LAYER_XDS] = SIM_COUNT_LAYER_XDS,
                                            [TORC_LAYER_LB] = SIM_COUNT_LAYER_LB,
                                            [TORC_LAYER_CONNECT] = SIM_COUNT_LAYER_CONNECT,
                                            [TORC_LAYER_HTTP2] = SIM_COUNT_LAYER_HTTP2,
                                            [TORC_LAYER_LIMIT] = SIM_COUNT_LAYER_LIMIT,
                                            [TORC_LAYER_DEADLINE] = SIM_COUNT_LAYER_DEADLINE,
                                            [TORC_LAYER_PEER] = SIM_COUNT_LAYER_PEER};
    static const enum sim_count kinds[SIM_KINDS] = {SIM_COUNT_KIND_UNARY, SIM_COUNT_KIND_CLIENT_STREAM,
                                                    SIM_COUNT_KIND_SERVER_STREAM, SIM_COUNT_KIND_BIDI_STREAM};
    const struct sim_service *service = &oracle.mesh.services[call->service];
    const struct sim_cluster *c = &oracle.mesh.clusters[service->cluster];
    if (c->outliers)
        sim_count(SIM_COUNT_POLICY_OUTLIERS);
    sim_count(service->hedged                  ? SIM_COUNT_POLICY_HEDGING
              : c->is_aggregate                ? SIM_COUNT_POLICY_AGGREGATE
              : c->dns                         ? SIM_COUNT_POLICY_DNS
              : c->policy == SIM_RING_HASH     ? SIM_COUNT_POLICY_RING_HASH
              : c->policy == SIM_MAGLEV        ? SIM_COUNT_POLICY_MAGLEV
              : c->policy == SIM_PICK_FIRST    ? SIM_COUNT_POLICY_PICK_FIRST
              : c->policy == SIM_WEIGHTED      ? SIM_COUNT_POLICY_WEIGHTED
              : c->policy >= SIM_LEAST_REQUEST ? SIM_COUNT_POLICY_LEAST_REQUEST
                                               : SIM_COUNT_POLICY_ROUND_ROBIN);
    sim_count(r->code == TORC_STATUS_OK                  ? SIM_COUNT_CALLS_OK
              : r->code == TORC_STATUS_CANCELLED         ? SIM_COUNT_CALLS_CANCELLED
              : r->code == TORC_STATUS_DEADLINE_EXCEEDED ? SIM_COUNT_CALLS_DEADLINE
              : r->code == TORC_STATUS_UNAVAILABLE       ? SIM_COUNT_CALLS_UNAVAILABLE
                                                         : SIM_COUNT_CALLS_OTHER);
    if (r->code != TORC_STATUS_OK && (size_t)r->layer < sizeof(layers) / sizeof(layers[0]) && layers[r->layer])
        sim_count(layers[r->layer]);
    sim_count(kinds[call->kind]);
    if (r->seen > 1)
        sim_count(SIM_COUNT_CALLS_RETRIED);
}

/* Counts what oracle_loads compares with the sums of load reports. */
static void count_load(const struct tracked *t, const struct oracle_outcome *r)
{
    bool own = r->code == TORC_STATUS_CANCELLED || r->code == TORC_STATUS_DEADLINE_EXCEEDED;
    if (oracle.mesh.services[t->call.service].hedged)
        return;
    oracle.attempts += r->attempts;
    oracle.succeeded += r->code == TORC_STATUS_OK;
    oracle.dropped += strstr(r->message, "circuit breaker drop") != NULL || oracle_dropped(r);
    oracle.unsent += oracle_settled(t->began_ms) && oracle_goaways(t) == 0 ? 0 : MAX_TRIES;
    oracle.unknown += own; /* the answer may have been on its way */
}

/* A50: returns whether a failure at the host, at now_ms, ejects the host for the second time, and so for longer:
 *   - The host was ejected: the failure at failed_ms had no success beside it in its interval.
 *   - The host has returned: this call, which began after the ejection, was sent there by the policy.
 *   - The failure is in the first interval after the return, so that the multiplier has not gone back. The return is at
 *     the first end of an interval after the ejection time. */
static bool fails_again(const struct tracked *t, unsigned host, uint64_t now_ms)
{
    const struct ends *e = &oracle.ends[t->call.runtime][t->call.service][host];
    const uint64_t late_ms = 500; /* of a loop that is busy */
    uint64_t back_ms = (SIM_EJECTION_MS / SIM_OUTLIER_INTERVAL_MS + 1) * SIM_OUTLIER_INTERVAL_MS;
    struct group groups[MAX_GROUPS];
    size_t n = oracle_groups(t->call.service, groups), n_member = 0;
    for (size_t g = 0; g < n; g++) {
        const struct sim_cluster *c = groups[g].cluster;
        n_member += groups[g].member[host];
        if (groups[g].member[host] && (!c->outliers || c->dns || c->policy == SIM_PICK_FIRST))
            return false;
    }
    return n_member == 1 && e->times == 1 && t->call.session < 0 && oracle_settled(e->failed_ms) &&
           t->began_ms > e->failed_ms + SIM_OUTLIER_INTERVAL_MS + SLACK_MS &&
           (e->succeeded_ms == 0 || e->succeeded_ms + SIM_OUTLIER_INTERVAL_MS + SLACK_MS < e->failed_ms) &&
           now_ms + late_ms < e->ejected_ms + back_ms + SIM_OUTLIER_INTERVAL_MS;
}

/* Notes where a call failed or succeeded. A call that was retried or given up may have failed at any host. A failure at
 * an endpoint that is ejected already (calls of its sessions may go there) does not eject it again: A50 does not say
 * whether it would, and docs/evidence/conformance.md says that Torc does as Envoy does. */
static void count_ends(const struct tracked *t, const struct oracle_outcome *r, uint64_t now_ms)
{
    int host = sim_host_of(r->peer);
    bool at_host =
        host >= 0 && r->seen <= 1 && !t->call.refusals && (r->code == TORC_STATUS_OK || r->layer == TORC_LAYER_PEER);
    bool in_service = host >= 0 && !oracle_had_failures(t, (unsigned)host, now_ms);
    bool again = host >= 0 && fails_again(t, (unsigned)host, now_ms);
    if (at_host && again && r->code != TORC_STATUS_OK)
        sim_count(SIM_COUNT_EJECTED_AGAIN);
    /* Filters, policies and limits fail a call before anything is sent: no endpoint is to blame. */
    bool nowhere =
        oracle_aborted(r) || (r->code == TORC_STATUS_UNAVAILABLE && r->attempts == 0 && oracle_settled(t->began_ms) &&
                              (r->layer == TORC_LAYER_LIMIT || r->layer == TORC_LAYER_LB ||
                               r->layer == TORC_LAYER_CONNECT || oracle_dropped(r)));
    for (unsigned h = 0; h < SIM_HOSTS && !nowhere; h++)
        if (!at_host || (r->code != TORC_STATUS_OK && (int)h == host))
            oracle.ends[t->call.runtime][t->call.service][h].may_have_failed_ms = now_ms;
    if (host >= 0 && r->code == TORC_STATUS_OK)
        oracle.ends[t->call.runtime][t->call.service][host].succeeded_ms = now_ms;
    else if (at_host && (in_service || again))
        oracle.ends[t->call.runtime][t->call.service][host] = (struct ends){
            .failed_ms = now_ms,
            .may_have_failed_ms = now_ms,
            .succeeded_ms = oracle.ends[t->call.runtime][t->call.service][host].succeeded_ms,
            .ejected_ms = in_service ? now_ms : t->began_ms,
            .times = in_service ? 1 : 2,
        };
}

/* Judges the time since the previous try, and counts this one. A44: the backoff before a retry is 25 ms at first and
 * doubles up to 250 ms; jitter takes off at most a fifth (A6). A backend's pushback, which comes after the time that
 * the backend takes, replaces the backoff. A try between that no backend sees only makes the time longer. */
static void judge_backoff(uint64_t id, struct tracked *t, uint64_t now_ms)
{
    uint64_t least_ms = t->n_seen == 0 ? 0 : 20ull << (t->n_seen - 1);
    if (least_ms > 200)
        least_ms = 200;
    if (t->n_seen > 0 && t->call.pushback_ms >= 0 && oracle.hosts[t->seen_host].sick) {
        least_ms = (uint64_t)t->call.delay_ms + (uint64_t)t->call.pushback_ms;
        sim_count(SIM_COUNT_CALLS_PUSHED_BACK);
    }
    if (!oracle.mesh.services[t->call.service].hedged && oracle_settled(t->began_ms) && oracle_settled(now_ms) &&
        now_ms + 1 < t->seen_ms + least_ms)
        sim_violation("retries: try %u of call %llu came %llu ms after the one before, backoff %llu ms", t->n_seen + 1,
                      (unsigned long long)id, (unsigned long long)(now_ms - t->seen_ms), (unsigned long long)least_ms);
    t->seen_ms = now_ms;
    t->n_seen++;
}

/* A6: an attempt of a hedged call begins with the call, after each hedging delay, and when an attempt has failed or was
 * refused. */
static void judge_pace(uint64_t id, struct tracked *t, uint64_t now_ms)
{
    uint64_t allowed = 1 + (now_ms - t->began_ms) / SIM_HEDGING_DELAY_MS + t->n_refused;
    for (unsigned i = 0; i < t->n_failing; i++)
        allowed += t->failing_ms[i] <= now_ms;
    if (oracle.mesh.services[t->call.service].hedged && oracle_settled(t->began_ms) && oracle_settled(now_ms) &&
        oracle_goaways(t) == 0 && t->n_seen > allowed)
        sim_violation("hedging: attempt %u of call %llu came %llu ms after the call began, with %u attempts at sick "
                      "backends before",
                      t->n_seen, (unsigned long long)id, (unsigned long long)(now_ms - t->began_ms), t->n_failing);
}

void oracle_call_seen(uint64_t id, const struct oracle_request *request, uint64_t now_ms)
{
    struct tracked *t = &oracle.calls[id];
    const struct sim_service *service = &oracle.mesh.services[t->call.service];
    const struct sim_cluster *c = &oracle.mesh.clusters[t->cluster];
    oracle_judge_request(id, t, request, now_ms);
    judge_backoff(id, t, now_ms);
    judge_pace(id, t, now_ms);
    if (oracle.hosts[request->host].sick && t->n_failing < MAX_TRIES)
        t->failing_ms[t->n_failing++] = now_ms + t->call.delay_ms;
    t->seen_host = (int)request->host;
    if (t->ended || t->call.cancelled || t->call.freed || t->serving || service->hedged ||
        !oracle_settled(t->began_ms) || !oracle_settled(now_ms) || service->retries || c->is_aggregate)
        return;
    t->serving = true;
    oracle.serving[t->cluster]++;
    if (c->max_requests && oracle.serving[t->cluster] > c->max_requests)
        sim_violation("breaker: backends have %u calls of c%u, limit %u", oracle.serving[t->cluster], t->cluster,
                      c->max_requests);
}

/* A50 counts the statuses of RPCs: a try that was refused may count as failed, though its call goes on. By A6 the
 * client sends a refused call again by itself once; each further time is one of the call's tries. */
void oracle_call_refused(uint64_t id, unsigned host, uint64_t now_ms)
{
    struct tracked *t = &oracle.calls[id];
    const struct oracle_call *c = &t->call;
    oracle.ends[c->runtime][c->service][host].may_have_failed_ms = now_ms;
    t->n_refused++;
    if (oracle_settled(t->began_ms) && c->routed &&
        t->n_refused + t->n_seen > 2 + oracle.mesh.services[c->service].retries)
        sim_violation("refused: backends refused call %llu %u times and took it %u times, s%u allows %u retries",
                      (unsigned long long)id, t->n_refused, t->n_seen, c->service,
                      oracle.mesh.services[c->service].retries);
}

void oracle_call_message(uint64_t id, const struct oracle_message *m)
{
    struct tracked *t = &oracle.calls[id];
    unsigned expected = t->call.kind == SIM_CLIENT_STREAM ? t->call.n_messages : t->n_received;
    bool other_host = t->n_received > 0 && t->from != m->from;
    if (!m->whole || m->id != id || other_host || m->index != expected || t->ended || t->call.freed)
        sim_violation("stream: call %llu got message %u of call %llu from host %d as number %u%s",
                      (unsigned long long)id, m->index, (unsigned long long)m->id, m->from, t->n_received,
                      m->whole ? "" : ", damaged");
    t->from = m->from;
    t->n_received++;
}

void oracle_call_ends(uint64_t id, const struct oracle_outcome *r, uint64_t now_ms)
{
    struct tracked *t = &oracle.calls[id];
    int host = -1;
    if (t->ended || t->call.freed)
        sim_violation("once: call %llu ends %s", (unsigned long long)id, t->ended ? "twice" : "after it was freed");
    t->ended = true;
    t->ended_ms = now_ms;
    serving_over(t);
    count_outcome(&t->call, r);
    count_load(t, r);
    judge_time(id, t, r, now_ms);
    judge_layer(id, t, r);
    if (r->code == TORC_STATUS_OK)
        host = t->call.kind == SIM_UNARY ? judge_answer(id, t, r) : judge_stream(id, t, r);
    if (host >= 0) {
        judge_member(id, t, host);
        oracle_count_report(t, host, now_ms);
    }
    if (t->may_be_aborted && oracle_aborted(r))
        oracle_count_chosen(ORACLE_ABORTS);
    if (t->may_be_dropped && oracle_dropped(r))
        oracle_count_chosen(ORACLE_DROPS);
    if (r->seen > r->attempts)
        sim_violation("attempts: backends saw call %llu %u times, the result says %u", (unsigned long long)id, r->seen,
                      r->attempts);
    if (oracle_settled(t->began_ms) && !t->call.cancelled)
        oracle_judge_settled(id, r, host, now_ms);
    count_ends(t, r, now_ms); /* last: a call is judged by the ends of earlier calls alone */
}

/* Returns the record of the runtime's attempts at the host, a new one if there is none. NULL: other runtimes have all
 * RUNTIMES records. */
static struct dialled *dialled_of(const void *runtime, unsigned host)
{
    for (unsigned r = 0; r < RUNTIMES; r++) {
        struct dialled *d = &oracle.dialled[r][host];
        if (!d->runtime)
            d->runtime = runtime;
        if (d->runtime == runtime)
            return d;
    }
    return NULL;
}

/* connection-backoff.md: after the begin of an attempt that failed, the next one begins no earlier than the backoff,
 * less its jitter. docs/internals/subchannel.md: the channels of a runtime share connections, and a backoff binds every
 * policy that comes back to the address, also when none held the connection meanwhile. */
void oracle_connect_begins(const void *runtime, unsigned host, uint64_t now_ms)
{
    struct dialled *d = dialled_of(runtime, host);
    if (!d)
        return;
    if (d->failed && now_ms + SLACK_MS < d->began_ms + ORACLE_BACKOFF_MS * 8 / 10)
        sim_violation("backoff: host %u is connected %llu ms after the begin of an attempt that was refused", host,
                      (unsigned long long)(now_ms - d->began_ms));
    d->began_ms = now_ms;
    d->failed = false;
}

void oracle_connect_refused(const void *runtime, unsigned host)
{
    struct dialled *d = dialled_of(runtime, host);
    if (d)
        d->failed = true;
}

void oracle_attempts(unsigned host, uint64_t attempts, uint64_t period_ms, unsigned channels)
{
    uint64_t most = channels * (1 + period_ms * 10 / (ORACLE_BACKOFF_MAX_MS * 8));
    if (attempts > most)
        sim_violation("quiet: %llu attempts to connect to host %u in %llu ms", (unsigned long long)attempts, host,
                      (unsigned long long)period_ms);
}

void oracle_fallback(size_t connections)
{
    if (connections > 0)
        sim_violation("fallback: the first control plane serves again, and %zu connections to the second are left",
                      connections);
}

void oracle_no_fallback(size_t connections)
{
    if (connections == 0)
        sim_violation("fallback: the first control plane is lost, a listener was never accepted, and nobody is "
                      "connected to the second");
}

void oracle_end(void)
{
    for (size_t i = 0; i < oracle.n_calls; i++)
        if (!oracle.calls[i].ended && !oracle.calls[i].call.freed)
            sim_violation("once: call %zu never ended", i);
    oracle_judge_shares();
    free(oracle.calls);
    oracle.calls = NULL;
}
