/* The rules.
 *
 * Always:
 *   once        a call ends once, and not after it was freed
 *   deadline    DEADLINE_EXCEEDED comes at the deadline, and no call outlives its own
 *   cancelled   CANCELLED comes to calls that the application cancelled
 *   echo        an OK has the answer of the backend that the result names, to this call
 *   attempts    no backend saw a call more often than the result says
 *
 * Settled, when nothing has disturbed the world for ORACLE_SETTLED_MS and the whole time of the call (bad resources and
 * deletions disturb nothing: A88 keeps the last good one):
 *   reachable   with a reachable endpoint in any group (a priority of a leaf cluster, in the order of A37 and A56), a
 *               call that has time enough succeeds; without one it does not
 *   member      an endpoint that answers is one of the service
 *   group       and goes to the first group that has a reachable endpoint
 *   ring        calls of a key go to the endpoint that the ring has for it (ring_model.c)
 *   quiet       nobody connects more often than backoff allows
 *
 * Two exceptions, by the texts, for rings that have another group behind them. A ring with two endpoints that cannot be
 * reached may be in TRANSIENT_FAILURE while a third connects (A42's aggregation, rule 2): A56 turns to the next group
 * meanwhile, even to one that fails. And a ring connects one endpoint after the other (A42): while a silent one takes
 * longer than A56's failover timer, the ring is in CONNECTING, and A56 passes it over. */
#include "sim/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/status.h>

#include "sim/ring_model.h"
#include "sim/trace.h"

enum {
    KEYS = 16,
    RUNTIMES = 2,
    SLACK_MS = 5,
    FAST_MS = 5000,
    FAILOVER_MS = 10000,
    MAX_GROUPS = SIM_CHILDREN * SIM_LOCALITIES
};

struct tracked {
    struct oracle_call call;
    uint64_t began_ms;
    bool ended;
};

struct group {
    bool member[SIM_HOSTS];
    size_t members, reachable, silent, sick;
    bool ring;
    const struct sim_cluster *cluster;
    unsigned priority;
};

static struct {
    struct sim_mesh mesh;
    struct {
        bool up, silent;
        int sick;
    } hosts[SIM_HOSTS];
    /* When a host was last an endpoint of the service; UINT64_MAX: it is one. 0: it never was. */
    uint64_t member_ms[SIM_SERVICES][SIM_HOSTS];
    bool key_answered[RUNTIMES][SIM_SERVICES][KEYS]; /* to a call that began settled, since disturbed_ms */
    uint64_t disturbed_ms, connect_timeout_ms;
    struct tracked *calls;
    size_t n_calls, room;
} o;

/* --- the model --- */

static size_t leaf_groups(const struct sim_cluster *c, struct group *groups, size_t n)
{
    unsigned priorities = 0;
    for (size_t i = 0; i < c->n_localities; i++)
        if (c->localities[i].priority >= priorities)
            priorities = c->localities[i].priority + 1;
    for (unsigned p = 0; p < priorities; p++, n++) {
        groups[n] = (struct group){.ring = c->policy == SIM_RING_HASH, .cluster = c, .priority = p};
        for (size_t i = 0; i < c->n_localities; i++)
            for (size_t k = 0; c->localities[i].priority == p && k < c->localities[i].n_endpoints; k++)
                groups[n].member[c->localities[i].endpoints[k].host] = true;
        for (unsigned h = 0; h < SIM_HOSTS; h++) {
            groups[n].members += groups[n].member[h];
            groups[n].reachable += groups[n].member[h] && o.hosts[h].up;
            groups[n].silent += groups[n].member[h] && o.hosts[h].silent;
            groups[n].sick += groups[n].member[h] && o.hosts[h].sick;
        }
    }
    return n;
}

static size_t service_groups(unsigned service, struct group groups[MAX_GROUPS])
{
    const struct sim_cluster *c = &o.mesh.clusters[o.mesh.services[service].cluster];
    size_t n = 0;
    if (!c->is_aggregate)
        return leaf_groups(c, groups, 0);
    for (size_t i = 0; i < c->n_children; i++)
        n = leaf_groups(&o.mesh.clusters[c->children[i]], groups, n);
    return n;
}

/* Returns whether a group with a reachable endpoint may be passed over: see the exceptions above. */
static bool group_may_be_passed_over(const struct group *group)
{
    bool two_failed = group->members >= group->reachable + 2;
    bool too_slow = group->silent > 0 && group->members > 1 && o.connect_timeout_ms + SLACK_MS >= FAILOVER_MS;
    return group->ring && (two_failed || too_slow);
}

/* Returns the group behind which no call goes: the first with a reachable endpoint that may not be passed over, else
 * the last; n: no endpoint can be reached. */
static size_t groups_last(const struct group *groups, size_t n)
{
    bool any = false;
    for (size_t g = 0; g < n; g++) {
        any = any || groups[g].reachable > 0;
        if (groups[g].reachable > 0 && (n == 1 || !group_may_be_passed_over(&groups[g])))
            return g;
    }
    return any ? n - 1 : n;
}

static void note_members(uint64_t now_ms)
{
    for (unsigned s = 0; s < o.mesh.n_services; s++) {
        struct group groups[MAX_GROUPS];
        size_t n = service_groups(s, groups);
        for (unsigned h = 0; h < SIM_HOSTS; h++) {
            bool member = false;
            for (size_t g = 0; g < n; g++)
                member = member || groups[g].member[h];
            if (member)
                o.member_ms[s][h] = UINT64_MAX;
            else if (o.member_ms[s][h] == UINT64_MAX)
                o.member_ms[s][h] = now_ms;
        }
    }
}

/* --- events --- */

void oracle_disturbed(uint64_t now_ms)
{
    if (now_ms <= o.disturbed_ms && now_ms != UINT64_MAX)
        return;
    o.disturbed_ms = now_ms;
    memset(o.key_answered, 0, sizeof(o.key_answered));
}

void oracle_begin(const struct sim_mesh *mesh, uint64_t connect_timeout_ms, uint64_t now_ms)
{
    memset(&o, 0, sizeof(o));
    o.connect_timeout_ms = connect_timeout_ms;
    for (unsigned h = 0; h < SIM_HOSTS; h++)
        o.hosts[h].up = true;
    oracle_changed(mesh, now_ms);
}

void oracle_changed(const struct sim_mesh *mesh, uint64_t now_ms)
{
    o.mesh = *mesh;
    note_members(now_ms);
    oracle_disturbed(now_ms);
}

void oracle_host(unsigned host, bool up, bool silent, uint64_t now_ms)
{
    o.hosts[host].up = up;
    o.hosts[host].silent = silent;
    oracle_disturbed(now_ms);
}

void oracle_sick(unsigned host, int code, uint64_t now_ms)
{
    o.hosts[host].sick = code;
    oracle_disturbed(now_ms);
}

/* --- calls --- */

uint64_t oracle_call_begins(const struct oracle_call *call, uint64_t now_ms)
{
    if (o.n_calls == o.room) {
        o.room = o.room ? o.room * 2 : 256;
        o.calls = realloc(o.calls, o.room * sizeof(*o.calls));
        if (!o.calls)
            abort();
    }
    o.calls[o.n_calls] = (struct tracked){*call, now_ms, false};
    return o.n_calls++;
}

void oracle_call_cancelled(uint64_t id)
{
    o.calls[id].call.cancelled = true;
}

void oracle_call_freed(uint64_t id)
{
    o.calls[id].call.freed = true;
}

bool oracle_settled(uint64_t now_ms)
{
    return o.disturbed_ms != UINT64_MAX && o.disturbed_ms + ORACLE_SETTLED_MS <= now_ms;
}

static void judge_time(uint64_t id, const struct tracked *t, const struct oracle_outcome *r, uint64_t now_ms)
{
    uint64_t took_ms = now_ms - t->began_ms;
    const struct oracle_call *c = &t->call;
    if (c->timeout_ms >= 0 && took_ms > (uint64_t)c->timeout_ms + SLACK_MS)
        sim_violation("deadline: call %llu took %llu ms with a deadline of %lld ms", (unsigned long long)id,
                      (unsigned long long)took_ms, (long long)c->timeout_ms);
    if (r->code == TORC_STATUS_DEADLINE_EXCEEDED && (c->timeout_ms < 0 || took_ms + SLACK_MS < (uint64_t)c->timeout_ms))
        sim_violation("deadline: call %llu ended with DEADLINE_EXCEEDED after %llu ms, deadline %lld ms: %s",
                      (unsigned long long)id, (unsigned long long)took_ms, (long long)c->timeout_ms, r->message);
    if (r->code == TORC_STATUS_CANCELLED && !c->cancelled)
        sim_violation("cancelled: nobody cancelled call %llu: %s", (unsigned long long)id, r->message);
}

/* Returns the host that answered, -1 if the answer is wrong. */
static int judge_answer(uint64_t id, const struct tracked *t, const struct oracle_outcome *r)
{
    int host = sim_host_of(r->peer);
    char expected[64];
    snprintf(expected, sizeof(expected), "%d %llu", host, (unsigned long long)id);
    if (host < 0 || !r->response || strcmp(expected, r->response) != 0) {
        sim_violation("echo: call %llu has the answer \"%s\" of %s", (unsigned long long)id,
                      r->response ? r->response : "", r->peer);
        return -1;
    }
    uint64_t member_ms = o.member_ms[t->call.service][host];
    if (oracle_settled(t->began_ms) && member_ms < t->began_ms - ORACLE_SETTLED_MS)
        sim_violation("member: call %llu went to %s, which is not an endpoint of s%u", (unsigned long long)id, r->peer,
                      t->call.service);
    if (t->call.asked_code != 0)
        sim_violation("echo: call %llu is OK and should have been failed by the backend", (unsigned long long)id);
    return host;
}

static void judge_ring(uint64_t id, const struct tracked *t, int host, const struct group *group)
{
    bool reachable[SIM_HOSTS];
    char value[16];
    if (t->call.key < 0 || !group->ring)
        return;
    for (unsigned h = 0; h < SIM_HOSTS; h++)
        reachable[h] = o.hosts[h].up;
    snprintf(value, sizeof(value), "key-%d", t->call.key);
    int expected = ring_model_host(group->cluster, group->priority, value, reachable);
    sim_count(SIM_COUNT_CALLS_KEYED);
    if (expected != host)
        sim_violation("ring: call %llu with key %d went to host %d, the ring has host %d", (unsigned long long)id,
                      t->call.key, host, expected);
}

static void judge_settled_ok(uint64_t id, const struct tracked *t, int host, const struct group *groups, size_t n)
{
    const struct group *serving = NULL;
    size_t last = groups_last(groups, n), n_serving = 0;
    if (last == n) {
        sim_violation("reachable: call %llu succeeded, and no endpoint of s%u is reachable", (unsigned long long)id,
                      t->call.service);
        return;
    }
    for (size_t g = 0; g <= last; g++)
        if (groups[g].member[host]) {
            serving = &groups[g];
            n_serving++;
        }
    if (n_serving == 0)
        sim_violation("group: call %llu of s%u went to host %d, which is not in the groups up to %zu",
                      (unsigned long long)id, t->call.service, host, last);
    else if (n_serving == 1)
        judge_ring(id, t, host, serving);
}

/* How long a call may wait for its endpoint: the failover timer of each group before, and a connection to each silent
 * endpoint of the groups that may serve. A key that was answered since the last disturbance waits for nobody. */
static int64_t time_enough_ms(const struct oracle_call *c, const struct group *groups, size_t last)
{
    int64_t enough_ms = FAST_MS + (int64_t)last * FAILOVER_MS;
    if (c->key >= 0 && o.key_answered[c->runtime][c->service][c->key])
        return FAST_MS;
    for (size_t g = 0; g <= last; g++)
        if (groups[g].reachable > 0)
            enough_ms += (int64_t)(groups[g].silent * o.connect_timeout_ms);
    return enough_ms;
}

static void judge_settled_failure(uint64_t id, const struct tracked *t, const struct oracle_outcome *r,
                                  const struct group *groups, size_t n)
{
    size_t sick = 0, last = groups_last(groups, n);
    for (size_t g = 0; g < n; g++)
        sick += groups[g].sick;
    if (last == n) {
        sim_count(SIM_COUNT_CALLS_DOOMED);
        return;
    }
    if (t->call.asked_code != 0 && r->code == t->call.asked_code)
        return;
    if (r->code == TORC_STATUS_UNAVAILABLE && n > 1 &&
        (groups[last].reachable == 0 || group_may_be_passed_over(&groups[last])))
        return;
    if (sick > 0 && r->code == TORC_STATUS_UNAVAILABLE && strstr(r->message, "sick"))
        return;
    if (r->code == TORC_STATUS_DEADLINE_EXCEEDED && t->call.timeout_ms >= 0 &&
        t->call.timeout_ms < time_enough_ms(&t->call, groups, last))
        return;
    sim_violation("reachable: call %llu of s%u failed with %s: %s", (unsigned long long)id, t->call.service,
                  torc_status_code_name(r->code), r->message);
}

static void judge_settled(uint64_t id, const struct tracked *t, const struct oracle_outcome *r, int host)
{
    struct group groups[MAX_GROUPS];
    size_t n = service_groups(t->call.service, groups);
    sim_count(SIM_COUNT_CALLS_CERTAIN);
    if (r->code != TORC_STATUS_OK)
        judge_settled_failure(id, t, r, groups, n);
    else if (host >= 0 && t->call.key >= 0)
        o.key_answered[t->call.runtime][t->call.service][t->call.key] = true;
    if (r->code == TORC_STATUS_OK && host >= 0)
        judge_settled_ok(id, t, host, groups, n);
}

static void count_outcome(const struct oracle_call *call, int code)
{
    const struct sim_cluster *c = &o.mesh.clusters[o.mesh.services[call->service].cluster];
    sim_count(c->is_aggregate              ? SIM_COUNT_POLICY_AGGREGATE
              : c->policy == SIM_RING_HASH ? SIM_COUNT_POLICY_RING_HASH
                                           : SIM_COUNT_POLICY_ROUND_ROBIN);
    sim_count(code == TORC_STATUS_OK                  ? SIM_COUNT_CALLS_OK
              : code == TORC_STATUS_CANCELLED         ? SIM_COUNT_CALLS_CANCELLED
              : code == TORC_STATUS_DEADLINE_EXCEEDED ? SIM_COUNT_CALLS_DEADLINE
              : code == TORC_STATUS_UNAVAILABLE       ? SIM_COUNT_CALLS_UNAVAILABLE
                                                      : SIM_COUNT_CALLS_OTHER);
}

void oracle_call_ends(uint64_t id, const struct oracle_outcome *r, uint64_t now_ms)
{
    struct tracked *t = &o.calls[id];
    int host = -1;
    if (t->ended || t->call.freed)
        sim_violation("once: call %llu ends %s", (unsigned long long)id, t->ended ? "twice" : "after it was freed");
    t->ended = true;
    count_outcome(&t->call, r->code);
    judge_time(id, t, r, now_ms);
    if (r->code == TORC_STATUS_OK)
        host = judge_answer(id, t, r);
    if (r->seen > r->attempts)
        sim_violation("attempts: backends saw call %llu %u times, the result says %u", (unsigned long long)id, r->seen,
                      r->attempts);
    if (oracle_settled(t->began_ms) && !t->call.cancelled)
        judge_settled(id, t, r, host);
}

void oracle_attempts(unsigned host, uint64_t attempts, uint64_t period_ms, unsigned runtimes)
{
    uint64_t most = runtimes * (10 + period_ms / 1000);
    if (attempts > most)
        sim_violation("quiet: %llu attempts to connect to host %u in %llu ms", (unsigned long long)attempts, host,
                      (unsigned long long)period_ms);
}

void oracle_end(void)
{
    for (size_t i = 0; i < o.n_calls; i++)
        if (!o.calls[i].ended && !o.calls[i].call.freed)
            sim_violation("once: call %zu never ended", i);
    free(o.calls);
    o.calls = NULL;
}
