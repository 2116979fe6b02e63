/* Shares: of the calls that the localities of a priority may serve, each locality gets as many as its weight says
 * (A42's wrr_locality), but for chance. Counted over a run, for the first locality of a cluster, the second, and so on;
 * a share that is off by more than six standard deviations and three calls is a fault. */
#include <math.h>

#include "sim/oracle_internal.h"
#include "sim/trace.h"

enum { LEAST_CALLS = 30, DEVIATIONS = 6 };

static struct share {
    double expected, variance;
    uint64_t got;
} shares[SIM_LOCALITIES];

static bool locality_has(const struct sim_locality *l, int host)
{
    bool any = false;
    for (size_t i = 0; i < l->n_endpoints; i++)
        any = any || (int)l->endpoints[i].host == host;
    return any;
}

/* Returns the weight of a locality that can serve the group, else 0. */
static unsigned locality_weight(const struct sim_locality *l, const struct group *group)
{
    bool any = false;
    for (size_t i = 0; i < l->n_endpoints; i++)
        any = any || oracle.hosts[l->endpoints[i].host].up;
    return any && l->priority == group->priority ? l->weight : 0;
}

void oracle_count_share(const struct tracked *t, int host, const struct group *group)
{
    const struct sim_cluster *c = group->cluster;
    double sum = 0;
    /* Short deadlines prefer near endpoints, and a retry is another draw. */
    bool fast = t->call.timeout_ms >= 0 && t->call.timeout_ms < FAST_MS;
    if (c->dns || group->ring || fast || group->sick > 0 || t->call.session >= 0)
        return;
    for (size_t i = 0; i < c->n_localities; i++)
        sum += locality_weight(&c->localities[i], group);
    for (size_t i = 0; i < c->n_localities; i++) {
        double part = locality_weight(&c->localities[i], group) / sum;
        shares[i].expected += part;
        shares[i].variance += part * (1 - part);
        shares[i].got += part > 0 && locality_has(&c->localities[i], host);
    }
}

void oracle_judge_shares(void)
{
    for (size_t i = 0; i < SIM_LOCALITIES; i++) {
        const struct share *s = &shares[i];
        if (s->variance * 4 < LEAST_CALLS)
            continue;
        sim_count(SIM_COUNT_SHARES);
        if (fabs((double)s->got - s->expected) > DEVIATIONS * sqrt(s->variance) + 3)
            sim_violation("shares: locality %zu of the clusters has %llu calls, its weight says %.1f, deviation %.1f",
                          i, (unsigned long long)s->got, s->expected, sqrt(s->variance));
    }
}
