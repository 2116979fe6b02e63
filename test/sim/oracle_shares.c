/* Shares, counted over a run. A share is a violation if it is off by more than six standard deviations and a slack:
 * three calls or, where weights are summed, the heaviest weight.
 *
 * Localities: of the calls that the localities of a priority may serve, each locality gets as many as its weight says
 * (A52's xds_wrr_locality), but for chance. Counts are summed over all clusters by the locality's place in its cluster:
 * one share for all first localities, one for all second ones, and so on.
 *
 * Weights: of the calls that went to a locality which weighted_round_robin balances, each endpoint gets as many as its
 * reports say (A58), once all reachable ones have reported for longer than the blackout period. Each such call adds the
 * weight of its endpoint; the sum over all calls is compared with the expected sum.
 *
 * Chances: the fault filter and drops fail as many calls as their percentages say.
 *
 * The sums below are the process's, which performs one run: they are never reset. All on the world's one thread. */
#include <math.h>

#include "sim/oracle_internal.h"
#include "sim/trace.h"

enum {
    LEAST_CALLS = 30, /* a locality's share is judged once its variance is that of so many calls with even chances */
    DEVIATIONS = 6,
    WEIGHED_MS = 12000,  /* from the first report on: A58's blackout period 10 s, its update period 1 s, 1 s to spare */
    EXPIRES_MS = 170000, /* a bit less than A58's 3 minutes */
    HEAVIEST = 8,        /* sim_host_weight, at most */
};

/* A sum as expected, and as it came: of calls or, in `weights`, of the weight of each call's endpoint. */
struct share {
    double expected, variance;
    uint64_t got;
};
static struct share shares[SIM_LOCALITIES], chances[ORACLE_CHANCES], weights;

static bool locality_has(const struct sim_locality *l, int host)
{
    bool any = false;
    for (size_t i = 0; i < l->n_endpoints; i++)
        any = any || (int)l->endpoints[i].host == host;
    return any;
}

/* Returns the locality's weight if it is of the group's priority and has a reachable endpoint, else 0. */
static unsigned locality_weight(const struct sim_locality *l, const struct group *group)
{
    bool any = false;
    for (size_t i = 0; i < l->n_endpoints; i++)
        any = any || oracle.hosts[l->endpoints[i].host].up;
    return any && l->priority == group->priority ? l->weight : 0;
}

void oracle_count_chance(enum oracle_chance which, double probability)
{
    chances[which].expected += probability;
    chances[which].variance += probability * (1 - probability);
}

void oracle_count_chosen(enum oracle_chance which)
{
    chances[which].got++;
}

/* A session's call is not counted: its pick bypasses the policy, which gets no report from it. */
void oracle_count_report(const struct tracked *t, int host, uint64_t now_ms)
{
    struct reported *r = &oracle.reported[t->call.runtime][t->call.service][host];
    if (!oracle_settled(t->began_ms) || t->call.session >= 0 || oracle_goaways(t) > 0)
        return;
    if (r->last_ms == 0 || now_ms > r->last_ms + EXPIRES_MS)
        r->first_ms = now_ms;
    r->last_ms = now_ms;
}

/* Returns whether the host had a weight from its reports when the call began. */
static bool is_weighed(const struct tracked *t, unsigned host)
{
    const struct reported *r = &oracle.reported[t->call.runtime][t->call.service][host];
    return r->first_ms > 0 && t->began_ms > r->first_ms + WEIGHED_MS && t->began_ms < r->last_ms + EXPIRES_MS;
}

/* Counts a call that went to the host, if the locality has at least two reachable endpoints, and all of these have
 * weights from their reports. */
static void count_weight(const struct tracked *t, int host, const struct sim_locality *l)
{
    double sum = 0, squares = 0, cubes = 0;
    unsigned n = 0;
    for (size_t i = 0; i < l->n_endpoints; i++) {
        unsigned of = l->endpoints[i].host;
        double weight = sim_host_weight(of);
        if (!oracle.hosts[of].up)
            continue;
        if (!is_weighed(t, of))
            return;
        sum += weight;
        squares += weight * weight;
        cubes += weight * weight * weight;
        n++;
    }
    if (n < 2)
        return;
    sim_count(SIM_COUNT_CALLS_WEIGHED);
    weights.expected += squares / sum;
    weights.variance += cubes / sum - squares / sum * (squares / sum);
    weights.got += sim_host_weight((unsigned)host);
}

void oracle_count_share(const struct tracked *t, int host, const struct group *group)
{
    const struct sim_cluster *c = group->cluster;
    double sum = 0;
    /* Not counted: names, rings and sessions, which draw no locality by weight; calls with short deadlines, since more
     * of them succeed at endpoints with short delays; and groups with a sick host, since a retry draws again. */
    bool fast = t->timeout_ms >= 0 && t->timeout_ms < FAST_MS;
    if (c->dns || group->ring || fast || group->sick > 0 || t->call.session >= 0)
        return;
    for (size_t i = 0; i < c->n_localities; i++)
        sum += locality_weight(&c->localities[i], group);
    for (size_t i = 0; i < c->n_localities; i++) {
        double part = locality_weight(&c->localities[i], group) / sum;
        shares[i].expected += part;
        shares[i].variance += part * (1 - part);
        shares[i].got += part > 0 && locality_has(&c->localities[i], host);
        bool alone = !oracle.mesh.clusters[oracle.mesh.services[t->call.service].cluster].is_aggregate;
        if (part > 0 && locality_has(&c->localities[i], host) && c->policy == SIM_WEIGHTED && !c->outliers && alone)
            count_weight(t, host, &c->localities[i]);
    }
}

static bool share_is_off(const struct share *s, double slack)
{
    return fabs((double)s->got - s->expected) > DEVIATIONS * sqrt(s->variance) + slack;
}

static void judge_chances(void)
{
    static const char *const texts[ORACLE_CHANCES] = {"the fault filter", "drops"};
    for (size_t i = 0; i < ORACLE_CHANCES; i++)
        if (share_is_off(&chances[i], 3))
            sim_violation("shares: %s failed %llu calls, the percentages say %.1f, deviation %.1f", texts[i],
                          (unsigned long long)chances[i].got, chances[i].expected, sqrt(chances[i].variance));
    if (share_is_off(&weights, HEAVIEST))
        sim_violation("shares: the endpoints of weighed calls weigh %llu, reports say %.1f, deviation %.1f",
                      (unsigned long long)weights.got, weights.expected, sqrt(weights.variance));
}

void oracle_judge_shares(void)
{
    for (size_t i = 0; i < SIM_LOCALITIES; i++) {
        const struct share *s = &shares[i];
        if (s->variance * 4 < LEAST_CALLS)
            continue;
        sim_count(SIM_COUNT_SHARES);
        if (share_is_off(s, 3))
            sim_violation("shares: locality %zu of the clusters has %llu calls, its weight says %.1f, deviation %.1f",
                          i, (unsigned long long)s->got, s->expected, sqrt(s->variance));
    }
    judge_chances();
}
