/* The xDS domain (torc/xds_domain.h) as the library sees it: a runtime of its own, counted by those that share it, and
 * a slot for what mesh keeps of it. */
#ifndef TC_CHANNEL_XDS_DOMAIN_H
#define TC_CHANNEL_XDS_DOMAIN_H

#include <torc/runtime.h>
#include <torc/xds_domain.h>

#include "base/common.h"

/* The domain of a runtime, borrowed; NULL: none is shared. Any thread. */
torc_xds_domain *tc_runtime_xds_domain(const torc_runtime *rt);
/* The runtime on which the domain's own things run. */
torc_runtime *tc_xds_domain_runtime(const torc_xds_domain *d);

/* What another module keeps with a domain; made on first use, by any thread. */
struct tc_xds_domain_part {
    /* Makes it; called once, by whichever runtime comes first. */
    void *(*make)(torc_xds_domain *d);
    /* On the domain's loop, as the last thing that it does before it ends. */
    void (*end)(void *value);
    /* After the loop has ended. */
    void (*release)(void *value);
};
void *tc_xds_domain_get(torc_xds_domain *d, const struct tc_xds_domain_part *part);

/* Inside src/channel. False: it cannot be used here (a child of the process that made it). */
bool tc_xds_domain_hold(torc_xds_domain *d);
void tc_xds_domain_drop(torc_xds_domain *d);

#endif
