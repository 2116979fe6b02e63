/* The rules of a settled world that are judged when a call ends (oracle_judge_settled), and the rule `waiting`
 * (oracle_judge_waiting). The second half of the list in oracle.c describes them. Shares are in oracle_shares.c. Of the
 * rest of that half, oracle.c has the rules member, refused, quiet, look-up and fallback, and the parts of breaker,
 * retries and hedging that are judged when a backend takes a call.
 *
 * A call that succeeds is judged by its endpoint: the session's, one of the right group, not ejected, the one that the
 * ring or table names; and by its cookie. For a call that fails there must be an explanation: the backend was asked to
 * fail it or is sick, a circuit breaker, the fault filter, a drop, an ejection, two refusals, a group that may be
 * passed over, a deadline, or nothing can be reached. Where the explanation implies a layer, the layer is judged, too.
 * While nothing routes the calls of a service, judge_unrouted alone judges them.
 *
 * All functions run on the world's one thread and read the one `oracle` (oracle_internal.h). Of it this file writes
 * key_answered_ms and doomed_ms. A `struct group` is on the stack of its judge. Read oracle_judge_settled first, then
 * judge_ok and judge_failure. */
#include <stdio.h>
#include <string.h>

#include <torc/error.h>
#include <torc/status.h>

#include "sim/maglev_model.h"
#include "sim/oracle_internal.h"
#include "sim/ring_model.h"
#include "sim/trace.h"

typedef unsigned long long ull;

/* --- calls that succeed --- */

/* Returns how many other calls of the channel may have been at the host while call `id` ran. */
static unsigned calls_beside(uint64_t id, const struct tracked *t, int host)
{
    unsigned n = 0;
    for (size_t i = 0; i < oracle.n_calls; i++) {
        const struct tracked *other = &oracle.calls[i];
        bool elsewhere = other->n_seen == 1 && other->ended && other->seen_host != host;
        n += i != id && other->call.runtime == t->call.runtime && other->call.service == t->call.service &&
             !elsewhere && other->began_ms <= t->ended_ms &&
             (!other->ended || other->ended_ms + SLACK_MS >= t->began_ms);
    }
    return n;
}

/* With bounded loads a host may always have two calls; a third call may go to another host. */
static void judge_key(uint64_t id, const struct tracked *t, int host, const struct group *group)
{
    bool reachable[SIM_HOSTS], table = group->cluster->policy == SIM_MAGLEV;
    char value[16];
    if (t->call.key < 0 || !group->ring)
        return;
    for (unsigned h = 0; h < SIM_HOSTS; h++)
        reachable[h] = oracle.hosts[h].up;
    snprintf(value, sizeof(value), "key-%d", t->call.key);
    int expected = (table ? maglev_model_host : ring_model_host)(group->cluster, group->priority, value, reachable);
    if (expected != host && group->cluster->balance && calls_beside(id, t, expected) >= 2) {
        sim_count(SIM_COUNT_CALLS_PASSED_ON);
        return;
    }
    sim_count(table ? SIM_COUNT_CALLS_TABLE : SIM_COUNT_CALLS_KEYED);
    if (group->cluster->balance)
        sim_count(SIM_COUNT_CALLS_BOUNDED);
    if (expected != host)
        sim_violation("%s: call %llu with key %d went to host %d, expected host %d", table ? "table" : "ring", (ull)id,
                      t->call.key, host, expected);
}

/* Returns whether a cookie may name several hosts: a LOGICAL_DNS cluster is one endpoint with all addresses of its name
 * (A61). */
static bool names_more_addresses(const struct sim_service *service)
{
    const struct sim_cluster *c = &oracle.mesh.clusters[service->cluster];
    bool any = c->dns;
    for (size_t i = 0; c->is_aggregate && i < c->n_children; i++)
        any = any || oracle.mesh.clusters[c->children[i]].dns;
    return any;
}

/* Returns whether the session's cookie names an endpoint of the service's cluster; false for a LOGICAL_DNS cluster,
 * whose cookies may name several hosts. Sets *must to whether the call must go to the endpoint: the endpoint can be
 * reached, and no reachable endpoint of its group may be ejected. Below an aggregate cluster the priorities choose the
 * leaf cluster first (A75), so *must is false there. */
static bool session_counts(const struct tracked *t, const struct group *groups, size_t n, bool *must)
{
    const struct sim_service *service = &oracle.mesh.services[t->call.service];
    *must = false;
    if (!service->sessions || t->call.session < 0 || oracle.mesh.clusters[service->cluster].dns ||
        t->call.session_cluster != (int)service->cluster)
        return false;
    for (size_t g = 0; g < n; g++)
        if (groups[g].member[t->call.session]) {
            *must = groups[g].unsure == 0 && oracle.hosts[t->call.session].up &&
                    !oracle.mesh.clusters[service->cluster].is_aggregate;
            return true;
        }
    return false;
}

/* A55: the response's cookie names the endpoint that served, unless the request's cookie did. */
static void judge_cookie(uint64_t id, const struct tracked *t, const struct oracle_outcome *r, int host, bool counts)
{
    const struct sim_service *service = &oracle.mesh.services[t->call.service];
    bool known = counts && host == t->call.session;
    int expected = service->sessions && !known ? host : -1;
    if (names_more_addresses(service))
        return;
    if (r->session != expected || (expected >= 0 && r->session_cluster != (int)service->cluster))
        sim_violation("cookie: call %llu, which host %d of c%u answered, got the session of host %d, c%d", (ull)id,
                      host, service->cluster, r->session, r->session_cluster);
}

/* A50: an endpoint whose calls all failed gets none until its ejection is over. Returns true, with a violation, if this
 * call went to such an endpoint. Not judged: a pick_first that is not an endpoint's child, which ignores ejections
 * (A61), and names, whose addresses are one endpoint. */
static bool judge_ejected(uint64_t id, const struct tracked *t, int host, const struct group *group)
{
    bool any = false;
    if (!group->cluster->outliers || group->cluster->dns || group->cluster->policy == SIM_PICK_FIRST)
        return false;
    for (unsigned h = 0; h < SIM_HOSTS; h++)
        any = any || (group->member[h] && oracle.hosts[h].up && oracle_must_be_ejected(t, h));
    if (any)
        sim_count(SIM_COUNT_CALLS_EJECTED);
    if (!oracle_must_be_ejected(t, (unsigned)host))
        return false;
    sim_violation("ejected: call %llu went to host %d, which outlier detection had to eject", (ull)id, host);
    return true;
}

static void judge_ok(uint64_t id, const struct tracked *t, const struct oracle_outcome *r, int host,
                     const struct group *groups, size_t n)
{
    const struct group *serving = NULL;
    size_t last = oracle_last_group(groups, n), n_serving = 0;
    bool must, counts = session_counts(t, groups, n, &must);
    judge_cookie(id, t, r, host, counts);
    if (must) {
        sim_count(SIM_COUNT_CALLS_SESSION);
        if (host != t->call.session)
            sim_violation("session: call %llu of the session of host %d went to host %d", (ull)id, t->call.session,
                          host);
        return;
    }
    if (last == n) {
        sim_violation("reachable: call %llu succeeded, and no endpoint of s%u is reachable", (ull)id, t->call.service);
        return;
    }
    for (size_t g = 0; g <= last; g++)
        if (groups[g].member[host]) {
            serving = &groups[g];
            n_serving++;
        }
    if (counts && host == t->call.session)
        return;
    if (n_serving == 1 && judge_ejected(id, t, host, serving))
        return;
    if (n_serving == 0)
        sim_violation("group: call %llu of s%u went to host %d, which is not in the groups up to %zu", (ull)id,
                      t->call.service, host, last);
    else if (n_serving == 1 && serving->unsure == 0) {
        judge_key(id, t, host, serving);
        oracle_count_share(t, host, serving);
    }
}

/* --- calls that fail --- */

static bool any_unsure(const struct group *groups, size_t n)
{
    bool any = false;
    for (size_t g = 0; g < n; g++)
        any = any || groups[g].unsure > 0;
    return any;
}

/* Returns how long a call may wait for a stream on its connection, while other calls of its runtime are served. */
static int64_t stream_wait_ms(const struct tracked *t)
{
    const unsigned longest_ms = 900; /* that a backend and the network take for a call */
    unsigned n = 0;
    for (size_t i = 0; i < oracle.n_calls; i++) {
        const struct tracked *other = &oracle.calls[i];
        n += other->call.runtime == t->call.runtime && (!other->ended || other->ended_ms >= t->began_ms);
    }
    return (int64_t)(n / oracle.mesh.max_streams) * longest_ms;
}

/* Returns how long a call may take: FAST_MS, the wait for a stream, and the pushback of each try. In addition
 *   - the failover timer of each group before `last`
 *   - for each group up to `last` that has a reachable endpoint: the connect timeout of each silent endpoint and, if an
 *     endpoint may be ejected, the longest ejection and two intervals of outlier detection
 *   - for each try, the connect timeout of the session's endpoint, if that is silent.
 * Each refusal counts as one more try (A6). A call whose key was answered before it, since the last disturbance, gets
 * no additional time, if it has no session and no endpoint of the groups up to `last` may be ejected. */
static int64_t time_enough_ms(const struct tracked *t, const struct group *groups, size_t last)
{
    const struct oracle_call *c = &t->call;
    uint64_t answered_ms = c->key >= 0 ? oracle.key_answered_ms[c->runtime][c->service][c->key] : 0;
    unsigned tries = 1 + oracle.mesh.services[c->service].retries + c->refusals;
    int64_t fast_ms = FAST_MS + stream_wait_ms(t) + (c->pushback_ms > 0 ? (int64_t)tries * c->pushback_ms : 0);
    int64_t enough_ms = fast_ms + (int64_t)last * FAILOVER_MS;
    bool session_waits = c->session >= 0 && oracle.hosts[c->session].silent;
    if (answered_ms > 0 && answered_ms < t->began_ms && c->session < 0 && !any_unsure(groups, last + 1))
        return fast_ms;
    for (size_t g = 0; g <= last; g++)
        if (groups[g].reachable > 0)
            enough_ms += (int64_t)(groups[g].silent * oracle.connect_timeout_ms) +
                         (groups[g].unsure > 0 ? SIM_EJECTION_MAX_MS + 2 * SIM_OUTLIER_INTERVAL_MS : 0);
    for (; session_waits && tries > 0; tries--)
        enough_ms += (int64_t)oracle.connect_timeout_ms;
    return enough_ms;
}

/* Returns how many calls other than `id` may be under way in the cluster now. */
static unsigned calls_under_way(uint64_t id, unsigned cluster, uint64_t now_ms)
{
    unsigned n = 0;
    for (size_t i = 0; i < oracle.n_calls; i++) {
        const struct tracked *t = &oracle.calls[i];
        const struct sim_cluster *c = &oracle.mesh.clusters[t->cluster];
        bool may = t->cluster == cluster;
        for (size_t k = 0; c->is_aggregate && k < c->n_children; k++)
            may = may || c->children[k] == cluster;
        n += i != id && may && (!t->ended || t->ended_ms + SLACK_MS >= now_ms);
    }
    return n;
}

/* Returns true if a circuit breaker dropped the call. */
static bool judge_breaker(uint64_t id, const struct oracle_outcome *r, uint64_t now_ms)
{
    unsigned cluster, limit;
    if (r->code != TORC_STATUS_UNAVAILABLE ||
        sscanf(r->message, "circuit breaker drop: cluster \"c%u\" is at its limit of %u", &cluster, &limit) != 2)
        return false;
    sim_count(SIM_COUNT_CALLS_BREAKER);
    if (cluster >= SIM_CLUSTERS || limit != oracle.mesh.clusters[cluster].max_requests)
        sim_violation("breaker: call %llu was dropped for a limit that is not there: %s", (ull)id, r->message);
    else if (calls_under_way(id, cluster, now_ms) < limit)
        sim_violation("breaker: call %llu was dropped with %u calls under way in c%u, limit %u", (ull)id,
                      calls_under_way(id, cluster, now_ms), cluster, limit);
    if (r->layer != TORC_LAYER_LIMIT)
        sim_violation("layer: call %llu was dropped by a circuit breaker, layer %d", (ull)id, r->layer);
    return true;
}

/* Returns true if the fault filter failed the call (A33), or a drop of the endpoints' resource did. */
static bool judge_injected(uint64_t id, const struct tracked *t, const struct oracle_outcome *r)
{
    const struct sim_service *service = &oracle.mesh.services[t->call.service];
    const struct sim_cluster *c = &oracle.mesh.clusters[service->cluster];
    bool aborted = oracle_aborted(r), drops = c->drop_percent > 0 && !c->dns;
    for (size_t i = 0; c->is_aggregate && i < c->n_children; i++)
        drops = drops ||
                (oracle.mesh.clusters[c->children[i]].drop_percent > 0 && !oracle.mesh.clusters[c->children[i]].dns);
    if (!aborted && !oracle_dropped(r))
        return false;
    sim_count(aborted ? SIM_COUNT_CALLS_ABORTED : SIM_COUNT_CALLS_DROPPED);
    if (!(aborted ? service->abort_percent > 0 : drops) || (aborted && (r->seen > 0 || r->attempts > 0)))
        sim_violation("injected: call %llu of s%u, which %u backends saw, was failed by the client: %s", (ull)id,
                      t->call.service, r->seen, r->message);
    return true;
}

/* Returns whether a pick may fail: in every group all reachable endpoints may be ejected, or the group is one of
 * several and may be passed over (oracle_may_pass_over). */
static bool picks_may_fail(const struct group *groups, size_t n)
{
    for (size_t g = 0; g < n; g++)
        if (groups[g].reachable > groups[g].unsure && (n == 1 || !oracle_may_pass_over(&groups[g])))
            return false;
    return true;
}

/* Returns whether servers may have refused the call twice, with RST_STREAM or GOAWAY. A6: the client sends a refused
 * call again by itself once; the second refusal counts as a try. */
static bool refused_twice(const struct tracked *t)
{
    return t->call.refusals + oracle_goaways(t) > 1;
}

/* A44: a call that fails because its backends are sick has been tried as often as the route allows, unless a pushback
 * stopped it. By A6 a pick that fails "will be handled by the configured retry policy": such a pick is a try that no
 * backend sees (`unseen`: such picks are possible). The picks of a call that waits for ready do not fail. `sick`: the
 * call failed because its backend is sick. Otherwise it ended with the code that it asked for, which is not a code to
 * retry: it was tried once, unless a host is sick or the call is hedged. */
static void judge_tries(uint64_t id, const struct tracked *t, const struct oracle_outcome *r, bool sick, bool unseen)
{
    bool any_sick = false;
    for (unsigned h = 0; h < SIM_HOSTS; h++)
        any_sick = any_sick || oracle.hosts[h].sick;
    bool stop = t->call.pushback_ms == -1, hedged = oracle.mesh.services[t->call.service].hedged;
    unsigned most = sick && stop && !hedged ? 1 : 1 + oracle.mesh.services[t->call.service].retries;
    if (r->layer != TORC_LAYER_PEER)
        sim_violation("layer: a backend failed call %llu, layer %d: %s", (ull)id, r->layer, r->message);
    bool other_end = hedged && (t->call.asked_code || stop);
    if (!sick && r->seen > 1 && !any_sick && !hedged)
        sim_violation("retries: call %llu was tried %u times, and its status is not one to retry: %s", (ull)id, r->seen,
                      r->message);
    if (sick && r->seen != most && !other_end && !refused_twice(t) && (!unseen || t->call.wait_for_ready))
        sim_violation("retries: call %llu failed for good after %u of %u tries: %s", (ull)id, r->seen, most,
                      r->message);
}

/* A88: the text of a policy's failure has the resolution note. Judged here: the note has the node ID, unless the
 * channel has no xDS client, and the name of the last group, if that is a name that nobody knows. */
static void judge_note(uint64_t id, const struct tracked *t, const struct oracle_outcome *r, const struct group *last)
{
    char name[16] = "";
    if (last->cluster->dns && last->members == 0)
        snprintf(name, sizeof(name), "d%u", (unsigned)(last->cluster - oracle.mesh.clusters));
    bool node = oracle.mesh.services[t->call.service].hedged || strstr(r->message, "node ID:sim");
    if (!node || !strstr(r->message, name))
        sim_violation("note: call %llu failed without saying why of %s: %s", (ull)id, name[0] ? name : "the node",
                      r->message);
}

/* A61, A62: a policy that has failed stays in TRANSIENT_FAILURE until it is READY, even while its endpoints connect. So
 * only calls that began before the channel's first failure may wait for attempts to connect, and only if an endpoint is
 * silent: an endpoint that refuses fails calls at once. A new policy that comes to a connection in its backoff hears
 * that the last attempt failed (docs/internals/subchannel.md). A call of a session waits while its endpoint connects
 * (A55). */
static void judge_speed(uint64_t id, const struct tracked *t, const struct oracle_outcome *r, size_t silent)
{
    uint64_t *first_ms = &oracle.doomed_ms[t->call.runtime][t->call.service];
    if (*first_ms == 0 && r->code == TORC_STATUS_UNAVAILABLE)
        *first_ms = t->ended_ms;
    bool is_first = *first_ms == 0 || *first_ms >= t->began_ms;
    if (t->call.wait_for_ready || t->call.session >= 0 || (is_first && silent > 0))
        return;
    sim_count(SIM_COUNT_CALLS_DOOMED_AT_ONCE);
    if (t->ended_ms - t->began_ms > FAST_MS)
        sim_violation("doomed: call %llu of s%u took %llu ms to fail: %s", (ull)id, t->call.service,
                      (ull)(t->ended_ms - t->began_ms), r->message);
}

/* Judges a call when nothing can be reached. The last group answers once every group has failed (A56): with the error
 * of a connection or, if it has no endpoint, with its policy's own error. The failed look-up of a LOGICAL_DNS cluster
 * comes down as a resolution note (A74: "endpoints will be null and resolution_note will be set"), so it is the
 * policy's error as well. A plain DNS channel that never had a result fails with the resolver's error. */
static void judge_doomed(uint64_t id, const struct tracked *t, const struct oracle_outcome *r,
                         const struct group *groups, size_t n)
{
    const struct group *last = &groups[n - 1];
    size_t silent = 0;
    for (size_t g = 0; g < n; g++)
        silent += groups[g].silent;
    bool hedged = oracle.mesh.services[t->call.service].hedged; /* a plain DNS channel */
    judge_speed(id, t, r, silent);
    int expected = last->members > 0 ? TORC_LAYER_CONNECT : hedged ? TORC_LAYER_RESOLVER : TORC_LAYER_LB;
    if (last->cluster->dns && last->members == 0)
        sim_count(SIM_COUNT_CALLS_UNRESOLVED);
    sim_count(SIM_COUNT_CALLS_DOOMED);
    if (r->code == TORC_STATUS_UNAVAILABLE)
        judge_note(id, t, r, last);
    if (r->code == TORC_STATUS_UNAVAILABLE && r->layer != expected)
        sim_violation("layer: no endpoint of s%u can be reached, and call %llu failed in layer %d, expected %d: %s",
                      t->call.service, (ull)id, r->layer, expected, r->message);
    if (r->code != TORC_STATUS_UNAVAILABLE && r->code != TORC_STATUS_DEADLINE_EXCEEDED)
        sim_violation("reachable: no endpoint of s%u can be reached, and call %llu failed with %s: %s", t->call.service,
                      (ull)id, torc_status_code_name(r->code), r->message);
}

/* Judges by `ejected` the endpoint of a call that the backend failed. A session's call is not judged: it may go to an
 * ejected endpoint. */
static void judge_ejected_failure(uint64_t id, const struct tracked *t, const struct oracle_outcome *r,
                                  const struct group *groups, size_t n)
{
    int host = sim_host_of(r->peer);
    size_t n_member = 0, serving = 0;
    for (size_t g = 0; host >= 0 && g < n; g++)
        if (groups[g].member[host]) {
            n_member++;
            serving = g;
        }
    if (n_member == 1 && t->call.session < 0)
        judge_ejected(id, t, host, &groups[serving]);
}

/* Returns whether the policies may have failed the call because every reachable endpoint was ejected. */
static bool ejection_explains(const struct oracle_outcome *r, const struct group *groups, size_t n)
{
    bool unsure = false, sure = false;
    for (size_t g = 0; g < n; g++) {
        unsure = unsure || groups[g].unsure > 0;
        sure = sure || groups[g].reachable > groups[g].unsure;
    }
    return unsure && !sure && r->code == TORC_STATUS_UNAVAILABLE;
}

static void judge_failure(uint64_t id, const struct tracked *t, const struct oracle_outcome *r,
                          const struct group *groups, size_t n, uint64_t now_ms)
{
    size_t sick = 0, last = oracle_last_group(groups, n);
    bool must, is_sick = r->code == TORC_STATUS_UNAVAILABLE && strstr(r->message, "sick");
    for (size_t g = 0; g < n; g++)
        sick += groups[g].sick;
    if (judge_breaker(id, r, now_ms) || judge_injected(id, t, r))
        return;
    if ((t->call.asked_code != 0 && r->code == t->call.asked_code) || (sick > 0 && is_sick)) {
        judge_tries(id, t, r, is_sick, picks_may_fail(groups, n));
        judge_ejected_failure(id, t, r, groups, n);
        return;
    }
    session_counts(t, groups, n, &must);
    if (ejection_explains(r, groups, n) || (r->code == TORC_STATUS_UNAVAILABLE && r->attempts > 1 && refused_twice(t)))
        return;
    if (last == n && !must) {
        judge_doomed(id, t, r, groups, n);
        return;
    }
    if (r->code == TORC_STATUS_UNAVAILABLE && n > 1 &&
        (last == n || groups[last].reachable == 0 || oracle_may_pass_over(&groups[last])))
        return;
    if (r->code == TORC_STATUS_DEADLINE_EXCEEDED && t->timeout_ms >= 0 &&
        t->timeout_ms < time_enough_ms(t, groups, last == n ? n - 1 : last))
        return;
    sim_violation("reachable: call %llu of s%u failed with %s: %s", (ull)id, t->call.service,
                  torc_status_code_name(r->code), r->message);
}

/* Judges a call that has not ended. Its time is what a call may take (time_enough_ms) plus ORACLE_SETTLED_MS, from its
 * begin or the last disturbance on, whichever is later. Not judged: a call that perhaps no endpoint can serve now (no
 * route, nothing reachable in the last group that it may go to, an endpoint that may be ejected); and a call whose
 * route may have changed since it began, because a call keeps the cluster that it began with. */
static void judge_waiting(uint64_t id, const struct tracked *t, uint64_t now_ms)
{
    struct group groups[MAX_GROUPS];
    struct tracked as_new = *t;
    size_t n = oracle_groups(t->call.service, groups), last = oracle_last_group(groups, n);
    uint64_t since_ms = t->began_ms > oracle.disturbed_ms ? t->began_ms : oracle.disturbed_ms;
    as_new.began_ms = now_ms;
    oracle_groups_eject(groups, n, &as_new);
    if (oracle.mesh.services[t->call.service].unrouted || last == n || any_unsure(groups, n) ||
        groups[last].reachable == 0 || !t->call.routed || oracle.routed_ms[t->call.service] >= t->began_ms)
        return;
    if (since_ms + (uint64_t)time_enough_ms(t, groups, last) + ORACLE_SETTLED_MS < now_ms)
        sim_violation("waiting: call %llu of s%u, which endpoints could serve, has not ended for %llu ms", (ull)id,
                      t->call.service, (ull)(now_ms - since_ms));
}

void oracle_judge_waiting(uint64_t now_ms)
{
    for (size_t i = 0; oracle_settled(now_ms) && i < oracle.n_calls; i++)
        if (!oracle.calls[i].ended && !oracle.calls[i].call.freed)
            judge_waiting(i, &oracle.calls[i], now_ms);
}

/* A6: while no attempt has answered, one more begins after each delay, unless a backend's pushback says otherwise. The
 * number in the result is judged: on a busy network an attempt may be cancelled before its backend sees it. That number
 * lacks attempts that wait for a stream, so meshes with few streams are not judged. */
static void judge_hedging(uint64_t id, const struct tracked *t, const struct oracle_outcome *r)
{
    const struct sim_service *s = &oracle.mesh.services[t->call.service];
    if (!s->hedged || r->code != TORC_STATUS_OK || t->call.pushback_ms != SIM_NO_PUSHBACK ||
        oracle.mesh.max_streams < SIM_MANY_STREAMS || t->call.delay_ms < (s->retries + 1) * SIM_HEDGING_DELAY_MS)
        return;
    sim_count(SIM_COUNT_CALLS_HEDGED);
    if (r->attempts < s->retries + 1)
        sim_violation("hedging: the backend takes %u ms for call %llu, which made %u attempts, expected %u",
                      t->call.delay_ms, (ull)id, r->attempts, s->retries + 1);
}

/* Judges a call while the service has no route: its listener was removed and that is a data error (A88 with
 * fail_on_data_errors), has been bad since the start, or has no virtual host that matches (A74). */
static void judge_unrouted(uint64_t id, const struct tracked *t, const struct oracle_outcome *r)
{
    bool waits = t->call.wait_for_ready && r->code == TORC_STATUS_DEADLINE_EXCEEDED;
    bool late = t->timeout_ms >= 0 && t->timeout_ms < FAST_MS && r->code == TORC_STATUS_DEADLINE_EXCEEDED;
    sim_count(SIM_COUNT_CALLS_UNROUTED);
    if (r->seen > 0 || (r->code != TORC_STATUS_UNAVAILABLE && !waits && !late))
        sim_violation("route: nothing routes calls of s%u, and call %llu, which %u backends saw, ended with %s: %s",
                      t->call.service, (ull)id, r->seen, torc_status_code_name(r->code), r->message);
    else if (r->code == TORC_STATUS_UNAVAILABLE && r->layer != TORC_LAYER_XDS)
        sim_violation("layer: nothing routes calls of s%u, and call %llu failed in layer %d: %s", t->call.service,
                      (ull)id, r->layer, r->message);
}

void oracle_judge_settled(uint64_t id, const struct oracle_outcome *r, int host, uint64_t now_ms)
{
    const struct tracked *t = &oracle.calls[id];
    struct group groups[MAX_GROUPS];
    size_t n = oracle_groups(t->call.service, groups);
    if (oracle.mesh.services[t->call.service].unrouted) {
        judge_unrouted(id, t, r);
        return;
    }
    oracle_groups_eject(groups, n, t);
    judge_hedging(id, t, r);
    sim_count(SIM_COUNT_CALLS_CERTAIN);
    if (r->seen > 1 + oracle.mesh.services[t->call.service].retries)
        sim_violation("retries: backends saw call %llu %u times, s%u allows %u retries", (ull)id, r->seen,
                      t->call.service, oracle.mesh.services[t->call.service].retries);
    if (r->code != TORC_STATUS_OK)
        judge_failure(id, t, r, groups, n, now_ms);
    else if (host >= 0 && t->call.key >= 0 && t->call.session < 0)
        oracle.key_answered_ms[t->call.runtime][t->call.service][t->call.key] = now_ms;
    if (r->code == TORC_STATUS_OK && host >= 0)
        judge_ok(id, t, r, host, groups, n);
}
