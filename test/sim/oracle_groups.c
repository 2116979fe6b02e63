/* The endpoints that may serve, by the texts: the groups of a service are the priorities of its leaf clusters, in the
 * order of A37. */
#include "sim/oracle_internal.h"

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
    return group->ring && (two_failed || too_slow);
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
