/* The parts of torc xds: what the client's cache held when it was last looked at, and how that is shown. */
#ifndef TORC_XDS_H
#define TORC_XDS_H

#include <uthash.h>

#include "base/vec.h"
#include "xds/client.h"

/* One resource as last seen. */
struct xds_seen {
    UT_hash_handle hh;
    struct tc_rstr *key; /* type and name */
    const struct tc_xds_resource_type *type;
    struct tc_rstr *name;
    enum tc_xds_state state;
    struct tc_rstr *version;
    int64_t updated_ns;
    struct tc_rstr *bytes; /* NULL: none */
    bool new_bytes;        /* at the last look */
    struct tc_rstr *error; /* NULL: none */
    struct tc_rstr *failed_version;
    int64_t failed_ns;
    uint64_t mark;
    bool gone; /* nobody asks for it any more */
};

typedef TC_VEC(struct xds_seen *) xds_list;

/* Zero-initialised is empty. */
struct xds_view {
    struct xds_seen *table;
    uint64_t mark;
    size_t pending;   /* requested, and nothing known yet */
    xds_list changed; /* by the last look, those that are gone among them; by type, then name */
    xds_list gone;
    struct tc_buf scratch;
};

void xds_view_look(struct xds_view *v, const struct tc_xds_client *client);
/* All that are there, in the same order. */
void xds_view_all(const struct xds_view *v, xds_list *out);
void xds_view_fini(struct xds_view *v);

/* The time of day; "-" for 0. */
void xds_format_time(int64_t ns, char out[static 32]);
/* A table, then the content of each. */
void xds_print_all(const xds_list *list);
/* A line for each, with error and content below it. */
void xds_print_changes(const xds_list *list, int64_t now_ns);
/* A line: envoy.service.status.v3.ClientConfig as proto3 JSON. */
void xds_print_json(const xds_list *list, const struct tc_xds_bootstrap *bootstrap, const char *target);

#endif
