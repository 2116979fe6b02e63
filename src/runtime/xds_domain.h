/* The xDS domain (torc/xds_domain.h) as the library sees it: a runtime of its own, a count of references (one of the
 * handle, and one of each runtime that shares the domain), and a slot for the value that xds/domain keeps in it. Any
 * thread. */
#ifndef TC_RUNTIME_XDS_DOMAIN_H
#define TC_RUNTIME_XDS_DOMAIN_H

#include <torc/runtime.h>
#include <torc/xds_domain.h>

#include "base/common.h"

/* Returns the runtime of the domain, whose loop drives the xDS clients. Borrowed. */
torc_runtime *tc_xds_domain_runtime(const torc_xds_domain *d);

/* A value that a module keeps with a domain; made on first use, by any thread. */
struct tc_xds_domain_part {
    /* Makes the value. Called once, by the thread that asks first, under the domain's lock. */
    void *(*make)(torc_xds_domain *d);
    /* Called on the domain's loop, behind everything that was posted to it before; then the loop is ended. */
    void (*end)(void *value);
    /* Called after the loop has ended, by the thread that dropped the last reference. Not called if the process is
     * exiting; `end` may not be called then either. */
    void (*release)(void *value);
};
/* Returns the domain's value, made at the first call. A domain has one value: all callers pass the same `part`, which
 * must outlive the domain. Borrowed from the domain. */
void *tc_xds_domain_get(torc_xds_domain *d, const struct tc_xds_domain_part *part);

/* Takes a reference for a runtime. Returns false in a child of the process that made the domain, and when the process
 * is exiting. */
bool tc_xds_domain_hold(torc_xds_domain *d);
/* Gives the reference back; the last one ends the domain, and waits for the domain's loop. Not on the domain's loop.
 * NULL is allowed. */
void tc_xds_domain_drop(torc_xds_domain *d);

#endif
