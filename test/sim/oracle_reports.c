/* Rules for what others see of a client.
 *
 *   loads   each sum of load reports exceeds what is known by at most what is unknown (judge_sum) and, if no report was
 *           lost, is not less than what is known (A27)
 *   csds    each resource that a service needs is shown as the control plane serves it (A40) */
#include "sim/oracle_internal.h"
#include "sim/trace.h"

typedef unsigned long long ull;

/* envoy.admin.v3.ClientResourceStatus */
enum { DOES_NOT_EXIST = 2, ACKED = 3, NACKED = 4 };

/* Judges one sum: it exceeds `known` by `unknown` at most and, if no report was lost, is not less than `known`. What is
 * unknown: An attempt that a connection lost before a byte of it was sent counts as issued and failed in reports, as in
 * other clients, but not among the attempts of a result. Calls that were freed, or given up while their answer was on
 * its way, may have any outcome. */
static void judge_sum(const char *what, uint64_t reported, uint64_t known, uint64_t unknown, bool whole)
{
    if (reported > known + unknown || (whole && reported < known))
        sim_violation("loads: reports say that %llu RPCs %s, and %llu did (%llu are not known)%s", (ull)reported, what,
                      (ull)known, (ull)unknown, whole ? "" : ", reports may be lost");
}

void oracle_loads(const struct oracle_loads *l)
{
    judge_sum("were issued", l->issued, oracle.attempts, oracle.unknown + oracle.unsent, l->whole);
    judge_sum("succeeded", l->succeeded, oracle.succeeded, oracle.unknown, l->whole);
    judge_sum("were dropped", l->dropped, oracle.dropped, oracle.unknown, l->whole);
    if (!l->whole)
        return;
    sim_count(SIM_COUNT_LOADS_WHOLE);
    if (l->issued != l->succeeded + l->failed)
        sim_violation("loads: of %llu issued RPCs %llu succeeded and %llu failed, and none is under way",
                      (ull)l->issued, (ull)l->succeeded, (ull)l->failed);
}

/* A40: a good resource is shown as ACKED, a bad one as NACKED with the reason. A listener or cluster that the control
 * plane leaves out is shown as DOES_NOT_EXIST with an error, though the client may go on using the last version (A88).
 * Endpoints that it leaves out stay ACKED, unless ADS is incremental: only then is the client told. */
void oracle_resource(const struct oracle_resource *r)
{
    static const char prefixes[SIM_RESOURCES] = {'s', 'c', 'e'};
    bool unheard = r->kind == SIM_ENDPOINTS_OF && r->served == SIM_SERVED_DELETED && !r->incremental;
    int expected = r->served == SIM_SERVED_GOOD || unheard ? ACKED
                   : r->served == SIM_SERVED_BAD           ? NACKED
                                                           : DOES_NOT_EXIST;
    sim_count(SIM_COUNT_RESOURCES_SHOWN);
    if (r->client_status != expected || r->has_error != (expected != ACKED))
        sim_violation("csds: %c%u is shown with status %d%s, expected %d", prefixes[r->kind], r->which,
                      r->client_status, r->has_error ? " and an error" : "", expected);
}
