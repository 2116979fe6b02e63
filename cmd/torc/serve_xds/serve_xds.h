/* torc serve-xds: its log, and the checks of --strict. */
#ifndef TORC_SERVE_XDS_H
#define TORC_SERVE_XDS_H

#include "base/vec.h"
#include "controlplane/control_plane.h"
#include "controlplane/lrs.h"
#include "xds/bootstrap/bootstrap.h"
#include "xds/client/resource_type.h"

/* Callbacks (tc_control_plane_request_fn, tc_lrs_report_fn) that print one line of JSON on standard output. arg is not
 * used. The thread of the server's loop. */
void serve_log_ads(void *arg, const struct tc_ads_request *request);
void serve_log_lrs(void *arg, const struct tc_lrs_report *report);

/* The resources of a set, and the names that they have of one another. */
struct reference {
    const char *type; /* short_name */
    char *name;
    char *from; /* the resource that has the name; NULL: this is the resource itself */
};
struct references {
    TC_VEC(struct reference) names;
    TC_VEC(char *) unweighted; /* texts of warnings about localities */
};

/* Adds a resource of a set, and what it names. */
void references_add(struct references *r, const struct tc_xds_resource_type *type, struct tc_slice name,
                    struct tc_xds_resource *resource);
/* Prints a warning for each name of a resource that is not in the set, and for each resource with localities that
 * clients leave out. */
void references_report(struct references *r, const char *command);
/* Leaves none; more may be added. */
void references_fini(struct references *r);

/* Reads resources as the client would. Names of certificate providers come from the environment's bootstrap, if there
 * is one. */
struct strict {
    struct tc_xds_bootstrap *bootstrap; /* NULL: no bootstrap */
    struct references references;       /* of the set that is being read */
};

/* Reads the bootstrap that the environment names, if it does. Returns 0, or an exit status with the error printed as
 * `command`'s. */
int strict_init(struct strict *s, const char *command);
void strict_fini(struct strict *s);
/* A tc_set_check_fn. arg: a struct strict. */
void strict_check(void *arg, struct tc_slice type_url, struct tc_slice name, struct tc_slice value,
                  struct tc_validation_errors *errors);

#endif
