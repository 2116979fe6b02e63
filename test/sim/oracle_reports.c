/* Rules for what others see of a client.
 *
 *   loads   what reports say in all is what happened, but for calls whose end nobody saw; it is never more, and never
 *           less while no stream of reports broke (A27)
 *   csds    each resource that a service needs is shown as the control plane serves it (A40) */
#include "sim/oracle_internal.h"
#include "sim/trace.h"

typedef unsigned long long ull;

/* envoy.admin.v3.ClientResourceStatus */
enum { DOES_NOT_EXIST = 2, ACKED = 3, NACKED = 4 };

/* An attempt that a connection lost before a byte of it was sent counts as issued and failed in reports (as A27's other
 * clients have it), and not among the attempts of a result. Freed calls, and calls that were given up when their answer
 * may have been there, may have any outcome. */
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

/* A40: a good resource is accepted, a bad one shows the NACK and its reason. A cluster or listener that the control
 * plane leaves out does not exist, which is an error of data that the client goes on to use (A88); endpoints that it
 * leaves out stay as they were, unless ADS is incremental, which tells of them. */
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
