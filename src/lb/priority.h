/* priority (A56, A115): the highest of several children that works. Child `name` gets the endpoint list of that name.
 */
#ifndef TC_LB_PRIORITY_H
#define TC_LB_PRIORITY_H

#include "lb/policy.h"

extern const struct tc_lb_class tc_priority_class;

struct tc_priority_child {
    struct tc_rstr *name;
    struct tc_lb_config *config;
    bool ignore_reresolution_requests; /* A37 */
};

/* A config with one reference, children in decreasing priority; takes references of its own to names and configs. Names
 * must differ. n may be 0: RPCs then fail. */
struct tc_lb_config *tc_priority_config_new(const struct tc_priority_child *children, size_t n);

#endif
