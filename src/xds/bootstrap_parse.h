/* The parts of the bootstrap's parser, inside src/xds. */
#ifndef TC_XDS_BOOTSTRAP_PARSE_H
#define TC_XDS_BOOTSTRAP_PARSE_H

#include "xds/bootstrap.h"

/* More servers in one list than this are refused: the client keeps a bit for each. */
#define TC_XDS_MAX_SERVERS 32

struct tc_xds_creds_check {
    tc_xds_creds_supported_fn supported;
    void *arg;
};

/* Member "xds_servers" of `obj`: a list of servers, *n of them; NULL with *n 0 when it is absent. Faults are added with
 * their paths; what was read is returned also then. */
struct tc_xds_server *tc_xds_servers_parse(const json_t *obj, const struct tc_xds_creds_check *creds, size_t *n,
                                           struct tc_faults *f);
void tc_xds_servers_free(struct tc_xds_server *servers, size_t n);

/* Member "node" of `obj` as a serialised Node with the client's own fields filled in (A27), and its id. NULL when there
 * were faults. */
struct tc_rstr *tc_xds_node_parse(const json_t *obj, struct tc_rstr **id, struct tc_faults *f);

#endif
