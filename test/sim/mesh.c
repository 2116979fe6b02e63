#include "sim/mesh.h"

#include <stdio.h>
#include <string.h>

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
