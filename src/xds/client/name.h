/* Names of resources: plain names, and A47's xdstp://authority/type/id?key=value with its canonical form. Pure
 * functions, any thread. */
#ifndef TC_XDS_CLIENT_NAME_H
#define TC_XDS_CLIENT_NAME_H

#include "xds/client/resource_type.h"

struct tc_xds_name {
    bool federated;            /* an xdstp: name */
    struct tc_rstr *authority; /* decoded; NULL for a plain name, "" for an xdstp: name without authority */
    struct tc_rstr *text;      /* canonical: equal for equal names; requests have this text */
};

/* Parses a name into *out, which tc_xds_name_fini frees. Returns false with the reason in *why (tc_free), and leaves
 * *out untouched, if the name is an xdstp: name that is malformed or of another type, or "*". */
bool tc_xds_name_parse(const struct tc_xds_resource_type *type, struct tc_slice text, struct tc_xds_name *out,
                       char **why);
void tc_xds_name_fini(struct tc_xds_name *n);

#endif
