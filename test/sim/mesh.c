/* Names, addresses and texts of a simulated mesh. */
#include "sim/mesh.h"

#include <stdio.h>
#include <string.h>

const char *const sim_policy_names[SIM_POLICIES] = {"round_robin",   "ring_hash", "maglev", "pick_first",
                                                    "least_request", "full scan", "biased", "weighted_round_robin"};

const char *sim_host_address(unsigned host)
{
    static char texts[SIM_HOSTS][24];
    if (!texts[host][0])
        snprintf(texts[host], sizeof(texts[host]), "10.1.0.%u:8080", host + 1);
    return texts[host];
}

int sim_host_of(const char *address)
{
    for (unsigned i = 0; i < SIM_HOSTS; i++)
        if (strcmp(sim_host_address(i), address) == 0)
            return (int)i;
    return -1;
}

void sim_endpoints_name(const struct sim_cluster *c, unsigned which, char *name, size_t size)
{
    snprintf(name, size, "%s%u", c->moved ? "moved-e" : "e", which);
}

void sim_cluster_text(const struct sim_cluster *c, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "%s", c->is_aggregate ? "of" : sim_policy_names[c->policy]);
    if (!c->is_aggregate && n < size)
        n += (size_t)snprintf(text + n, size - n, "%s%s", c->dns ? " by DNS" : "",
                              c->outliers ? " with outlier detection" : "");
    if (sim_hashes(c) && c->policy == SIM_MAGLEV && c->table_size && n < size)
        n += (size_t)snprintf(text + n, size - n, " of %u", c->table_size);
    if (sim_hashes(c) && c->policy == SIM_MAGLEV && c->locality_weights && n < size)
        n += (size_t)snprintf(text + n, size - n, " by localities");
    if (sim_hashes(c) && c->balance && n < size)
        n += (size_t)snprintf(text + n, size - n, " balanced at %u", c->balance);
    if (c->max_requests && n < size)
        n += (size_t)snprintf(text + n, size - n, " limit %u", c->max_requests);
    if (c->drop_percent && n < size)
        n += (size_t)snprintf(text + n, size - n, " drops %u%%", c->drop_percent);
    for (size_t i = 0; c->is_aggregate && i < c->n_children && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, " c%u", c->children[i]);
    for (size_t i = 0; !c->is_aggregate && i < c->n_localities; i++) {
        const struct sim_locality *l = &c->localities[i];
        if (n < size)
            n += (size_t)snprintf(text + n, size - n, " %u/", l->priority);
        for (size_t k = 0; k < l->n_endpoints && n < size; k++)
            n += (size_t)snprintf(text + n, size - n, "%s%u*%u", k ? "," : "", l->endpoints[k].host,
                                  l->endpoints[k].weight);
    }
}
