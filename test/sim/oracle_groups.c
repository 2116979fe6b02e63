/* The endpoints that may serve a service, by the texts. The groups of a service are the priorities of its leaf
 * clusters, in the order of A37. */
#include "sim/oracle_internal.h"

static size_t leaf_groups(const struct sim_cluster *c, struct group *groups, size_t n)
{
    unsigned priorities = 0;
    for (size_t i = 0; i < c->n_localities; i++)
        if (c->localities[i].priority >= priorities)
            priorities = c->localities[i].priority + 1;
    if (c->dns) /* one priority: all endpoints, or none while nobody knows the name */
        priorities = 1;
    for (unsigned p = 0; p < priorities; p++, n++) {
        bool empty = c->dns && oracle.name_unknown[c - oracle.mesh.clusters];
        groups[n] = (struct group){.ring = sim_hashes(c), .cluster = c, .priority = p};
        for (size_t i = 0; !empty && i < c->n_localities; i++)
            for (size_t k = 0; (c->dns || c->localities[i].priority == p) && k < c->localities[i].n_endpoints; k++)
                groups[n].member[c->localities[i].endpoints[k].host] = true;
        for (unsigned h = 0; h < SIM_HOSTS; h++) {
            groups[n].members += groups[n].member[h];
            groups[n].reachable += groups[n].member[h] && oracle.hosts[h].up;
            groups[n].silent += groups[n].member[h] && oracle.hosts[h].silent;
            groups[n].sick += groups[n].member[h] && oracle.hosts[h].sick;
        }
    }
    return n;
}

size_t oracle_groups(unsigned service, struct group groups[MAX_GROUPS])
{
    const struct sim_cluster *c = &oracle.mesh.clusters[oracle.mesh.services[service].cluster];
    size_t n = 0;
    if (!c->is_aggregate)
        return leaf_groups(c, groups, 0);
    for (size_t i = 0; i < c->n_children; i++)
        n = leaf_groups(&oracle.mesh.clusters[c->children[i]], groups, n);
    return n;
}

bool oracle_may_pass_over(const struct group *group)
{
    bool two_failed = group->members >= group->reachable + 2;
    bool too_slow = group->silent > 0 && group->members > 1 && oracle.connect_timeout_ms + SLACK_MS >= FAILOVER_MS;
    return group->unsure == group->reachable || (group->ring && (two_failed || too_slow || group->unsure > 0));
}

/* A50: a failure counts in its interval, at whose end the endpoint is ejected. The endpoint returns at the first end of
 * an interval after the ejection time, which is SIM_EJECTION_MAX_MS at most. */
bool oracle_had_failures(const struct tracked *t, unsigned host, uint64_t now_ms)
{
    uint64_t failed_ms = oracle.ends[t->call.runtime][t->call.service][host].may_have_failed_ms;
    return failed_ms > 0 && now_ms < failed_ms + SIM_EJECTION_MAX_MS + 2 * SIM_OUTLIER_INTERVAL_MS + SLACK_MS;
}

bool oracle_may_be_ejected(const struct tracked *t, unsigned host)
{
    return oracle.hosts[host].sick || oracle_had_failures(t, host, t->began_ms);
}

bool oracle_must_be_ejected(const struct tracked *t, unsigned host)
{
    const struct ends *e = &oracle.ends[t->call.runtime][t->call.service][host];
    uint64_t failed_ms = e->failed_ms, succeeded_ms = e->succeeded_ms;
    return failed_ms > 0 && t->began_ms > failed_ms + SIM_OUTLIER_INTERVAL_MS + SLACK_MS &&
           t->ended_ms + SLACK_MS < e->ejected_ms + (uint64_t)SIM_EJECTION_MS * e->times &&
           (succeeded_ms == 0 || succeeded_ms + SIM_OUTLIER_INTERVAL_MS + SLACK_MS < failed_ms);
}

/* The addresses of a name are one endpoint (A61), which is ejected as a whole. */
void oracle_groups_eject(struct group *groups, size_t n, const struct tracked *t)
{
    for (size_t g = 0; g < n; g++) {
        struct group *group = &groups[g];
        if (!group->cluster->outliers)
            continue;
        for (unsigned h = 0; h < SIM_HOSTS; h++)
            group->unsure += group->member[h] && oracle.hosts[h].up && oracle_may_be_ejected(t, h);
        if (group->cluster->dns && group->unsure > 0)
            group->unsure = group->reachable;
    }
}

size_t oracle_last_group(const struct group *groups, size_t n)
{
    bool any = false;
    for (size_t g = 0; g < n; g++) {
        any = any || groups[g].reachable > 0;
        if (groups[g].reachable > 0 && (n == 1 || !oracle_may_pass_over(&groups[g])))
            return g;
    }
    return any ? n - 1 : n;
}
