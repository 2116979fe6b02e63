/* The names of the clusters. A name that begins with "d" and the number C, such as dC.test and dCvVERSION.test, has the
 * addresses of cluster C. It is not found while its look-ups fail, and no other name is found. The oracle is told of
 * each look-up of a cluster's name. */
#include "sim/names.h"

#include <stdio.h>
#include <string.h>

#include "sim/oracle.h"
#include "testing/names.h"
#include "testing/world.h"

enum { DELAY_MAX_MS = 200, ADDRESSES_MAX = SIM_LOCALITIES * SIM_ENDPOINTS };
_Static_assert((int)ADDRESSES_MAX <= (int)TC_NAME_ADDRESSES, "the endpoints of a cluster have room");

struct name {
    bool fails;
    size_t n;
    unsigned hosts[ADDRESSES_MAX];
};

static struct name names[SIM_CLUSTERS];

static size_t name_addresses(const char *host, uint16_t port, struct tc_addr addrs[TC_NAME_ADDRESSES])
{
    unsigned cluster;
    size_t n = 0;
    if (sscanf(host, "d%u", &cluster) != 1 || cluster >= SIM_CLUSTERS)
        return 0;
    oracle_name_asked(cluster, tc_world_now_ms());
    if (names[cluster].fails)
        return 0;
    for (; n < names[cluster].n; n++) {
        const char *address = sim_host_address(names[cluster].hosts[n]);
        tc_addr_from_ip(&addrs[n], tc_slice_of(address, strcspn(address, ":")), port);
    }
    return n;
}

void sim_names_begin(void)
{
    tc_names_look_up_in(name_addresses, DELAY_MAX_MS);
}

void sim_name_set(unsigned cluster, const struct sim_cluster *c)
{
    struct name *name = &names[cluster];
    name->n = 0;
    for (size_t i = 0; i < c->n_localities; i++)
        for (size_t k = 0; k < c->localities[i].n_endpoints; k++)
            name->hosts[name->n++] = c->localities[i].endpoints[k].host;
}

void sim_name_fail(unsigned cluster, bool fail)
{
    names[cluster].fails = fail;
}
