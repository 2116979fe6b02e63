/* The parts of torc serve-xds: its log, and what --strict checks. */
#ifndef TORC_SERVE_XDS_H
#define TORC_SERVE_XDS_H

#include "server/control_plane.h"
#include "server/lrs.h"
#include "xds/bootstrap.h"

/* One line of JSON on standard output for each; tc_control_plane_request_fn and tc_lrs_report_fn. */
void serve_log_ads(void *arg, const struct tc_ads_request *request);
void serve_log_lrs(void *arg, const struct tc_lrs_report *report);

/* Reads resources as the client would, with the bootstrap of the environment if there is one (for the names of
 * certificate providers). */
struct strict {
    struct tc_xds_bootstrap *bootstrap; /* NULL: none */
};

/* The error of a bootstrap that cannot be read is printed; returns the exit status. */
int strict_init(struct strict *s, const char *command);
void strict_fini(struct strict *s);
/* tc_set_check_fn; arg is a struct strict. */
void strict_check(void *arg, struct tc_slice type_url, struct tc_slice name, struct tc_slice value,
                  struct tc_faults *faults);

#endif
