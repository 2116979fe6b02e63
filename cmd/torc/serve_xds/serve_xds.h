/* torc serve-xds: the log of --log json (log.c) and the checks of --strict (strict.c, references.c). Everything runs on
 * the command's one thread, which turns the server's loop. */
#ifndef TORC_SERVE_XDS_H
#define TORC_SERVE_XDS_H

#include "base/vec.h"
#include "controlplane/control_plane.h"
#include "controlplane/lrs.h"
#include "xds/bootstrap/bootstrap.h"
#include "xds/client/resource_type.h"

/* A tc_control_plane_request_fn and a tc_lrs_report_fn. Each prints one line of JSON on standard output. A line that
 * cannot be written is dropped. arg is not used. */
void serve_log_ads(void *arg, const struct tc_ads_request *request);
void serve_log_lrs(void *arg, const struct tc_lrs_report *report);

/* A resource of a set, or a reference to one. */
struct reference {
    const char *type; /* short_name of the type of `name` */
    char *name;       /* owned */
    char *from;       /* the resource that refers to `name`, as text, owned: Cluster "a"; NULL: `name` is in the set */
};
/* The resources of a set and the references between them. Zero-initialised: empty. */
struct references {
    TC_VEC(struct reference) names;
    TC_VEC(char *) unweighted; /* texts of warnings about localities; owned */
};

/* Adds a resource of a set, and a reference for each resource that it names, whether the set has that resource or not.
 * Names of an authority (xdstp:) are left out. All arguments are borrowed for the call. */
void references_add(struct references *r, const struct tc_xds_resource_type *type, struct tc_slice name,
                    struct tc_xds_resource *resource);
/* Prints a warning for each name that is referred to and is not in the set, and for each resource with localities
 * that clients leave out. Sorts `names`. */
void references_report(struct references *r, const char *command);
/* Frees all entries. The struct is empty then, and may be used again. */
void references_fini(struct references *r);

/* Decodes resources as a client does. The environment's bootstrap, if any, says which certificate providers exist. */
struct strict {
    struct tc_xds_bootstrap *bootstrap; /* a reference; NULL: no bootstrap */
    struct references references;       /* of the set that is being loaded */
};

/* Reads the bootstrap of the environment, if there is one. *s must be zeroed. Returns 0, or an exit status with the
 * error printed. */
int strict_init(struct strict *s, const char *command);
void strict_fini(struct strict *s);
/* A tc_set_check_fn: adds a valid resource to `references`. arg: the struct strict. */
void strict_check(void *arg, struct tc_slice type_url, struct tc_slice name, struct tc_slice value,
                  struct tc_validation_errors *errors);

#endif
