/* Names of resources: plain ones, and A47's xdstp://authority/type/id?key=value names with their canonical form. Pure
 * functions, any thread. */
#ifndef TC_XDS_CLIENT_NAME_H
#define TC_XDS_CLIENT_NAME_H

#include "xds/client/resource_type.h"

struct tc_xds_name {
    bool federated;            /* an xdstp: name */
    struct tc_rstr *authority; /* decoded; NULL for plain names, "" when an xdstp: name has none */
    struct tc_rstr *text;      /* canonical: equal for equal names, and what requests send */
};

/* Takes a name apart into *out, for tc_xds_name_fini. Returns false with a reason in *why (tc_free), and leaves *out,
 * for an xdstp: name that is malformed or of another type. */
bool tc_xds_name_parse(const struct tc_xds_resource_type *type, struct tc_slice text, struct tc_xds_name *out,
                       char **why);
void tc_xds_name_fini(struct tc_xds_name *n);

#endif
