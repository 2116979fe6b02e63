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
 *   ring        calls of one key go to one endpoint (A42)
 *   quiet       nobody connects more often than backoff allows */
#include "sim/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/status.h>

#include "sim/trace.h"

enum { KEYS = 16, SLACK_MS = 5, FAST_MS = 5000, MAX_GROUPS = SIM_CHILDREN * SIM_LOCALITIES };

struct tracked {
    struct oracle_call call;
    uint64_t began_ms;
    bool ended;
};

struct group {
    bool member[SIM_HOSTS];
    size_t reachable, silent, sick;
};

static struct {
    struct sim_mesh mesh;
    struct {
        bool up, silent;
        int sick;
    } hosts[SIM_HOSTS];
    /* When a host was last an endpoint of the service; UINT64_MAX: it is one. 0: it never was. */
    uint64_t member_ms[SIM_SERVICES][SIM_HOSTS];
    int key_host[SIM_SERVICES][KEYS]; /* since disturbed_ms; -1: not known */
    uint64_t disturbed_ms;
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
        groups[n] = (struct group){0};
        for (size_t i = 0; i < c->n_localities; i++)
            for (size_t k = 0; c->localities[i].priority == p && k < c->localities[i].n_endpoints; k++)
                groups[n].member[c->localities[i].endpoints[k].host] = true;
        for (unsigned h = 0; h < SIM_HOSTS; h++) {
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

/* The policy of the leaf that has the group; of an aggregate whose leaves differ, the ring is not judged. */
static bool service_has_ring(unsigned service)
{
    const struct sim_cluster *c = &o.mesh.clusters[o.mesh.services[service].cluster];
    if (!c->is_aggregate)
        return c->policy == SIM_RING_HASH;
    for (size_t i = 0; i < c->n_children; i++)
        if (o.mesh.clusters[c->children[i]].policy != SIM_RING_HASH)
            return false;
    return true;
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

/* --- what happens --- */

void oracle_disturbed(uint64_t now_ms)
{
    if (now_ms <= o.disturbed_ms && now_ms != UINT64_MAX)
        return;
    o.disturbed_ms = now_ms;
    memset(o.key_host, 0xff, sizeof(o.key_host));
}

void oracle_begin(const struct sim_mesh *mesh, uint64_t now_ms)
{
    memset(&o, 0, sizeof(o));
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

static void judge_ring(uint64_t id, const struct tracked *t, int host)
{
    if (t->call.key < 0 || !service_has_ring(t->call.service))
        return;
    int *known = &o.key_host[t->call.service][t->call.key];
    sim_count(SIM_COUNT_CALLS_KEYED);
    if (*known >= 0 && *known != host)
        sim_violation("ring: call %llu with key %d went to host %d, earlier ones to host %d", (unsigned long long)id,
                      t->call.key, host, *known);
    *known = host;
}

static void judge_settled_ok(uint64_t id, const struct tracked *t, int host, const struct group *groups, size_t n)
{
    size_t g = 0;
    while (g < n && groups[g].reachable == 0)
        g++;
    if (g == n)
        sim_violation("reachable: call %llu succeeded, and no endpoint of s%u is reachable", (unsigned long long)id,
                      t->call.service);
    else if (!groups[g].member[host])
        sim_violation("group: call %llu of s%u went to host %d, which is not in the group %zu", (unsigned long long)id,
                      t->call.service, host, g);
    else
        judge_ring(id, t, host);
}

static void judge_settled_failure(uint64_t id, const struct tracked *t, const struct oracle_outcome *r,
                                  const struct group *groups, size_t n)
{
    size_t reachable = 0, silent = 0, sick = 0;
    for (size_t g = 0; g < n; g++) {
        reachable += groups[g].reachable;
        silent += groups[g].silent;
        sick += groups[g].sick;
    }
    if (reachable == 0) {
        sim_count(SIM_COUNT_CALLS_DOOMED);
        return;
    }
    if (t->call.asked_code != 0 && r->code == t->call.asked_code)
        return;
    if (sick > 0 && r->code == TORC_STATUS_UNAVAILABLE && strstr(r->message, "sick"))
        return;
    int64_t enough_ms = silent > 0 ? ORACLE_SETTLED_MS : FAST_MS;
    if (r->code == TORC_STATUS_DEADLINE_EXCEEDED && t->call.timeout_ms >= 0 && t->call.timeout_ms < enough_ms)
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
    else if (host >= 0)
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
