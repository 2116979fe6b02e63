/* The parts of the bootstrap's parser: bootstrap.c reads the outermost object and calls the functions below for some of
 * its members. Each adds its errors with their paths and goes on, so that one read shows all errors. Any thread. */
#ifndef TC_XDS_BOOTSTRAP_BOOTSTRAP_INTERNAL_H
#define TC_XDS_BOOTSTRAP_BOOTSTRAP_INTERNAL_H

#include "xds/bootstrap/bootstrap.h"

/* A list with more servers is refused: cache entries have 32-bit masks with a bit for each server (xds/client). */
enum { TC_XDS_MAX_SERVERS = 32 };

struct tc_xds_creds_check {
    tc_xds_creds_supported_fn supported;
    void *arg;
};

/* Returns member "xds_servers" of `obj`, *n servers, for tc_xds_servers_free. Returns NULL with *n 0 if the list is
 * absent, empty, too long or not a list. After errors the servers may be incomplete, with NULL members. */
struct tc_xds_server *tc_xds_servers_parse(const json_t *obj, const struct tc_xds_creds_check *creds, size_t *n,
                                           struct tc_validation_errors *f);
void tc_xds_servers_free(struct tc_xds_server *servers, size_t n);

/* Returns member "node" of `obj` as a serialised Node with the client's own fields filled in (A27), and its id in *id:
 * a reference each for the caller. A missing member is an empty Node. Returns NULL, and leaves *id, if there were
 * errors. */
struct tc_rstr *tc_xds_node_parse(const json_t *obj, struct tc_rstr **id, struct tc_validation_errors *f);

#endif
