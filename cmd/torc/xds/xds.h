/* torc xds: the xDS client's cache at the last look (view.c), and how it is printed (print.c). Called on the thread of
 * the client's loop. */
#ifndef TORC_XDS_H
#define TORC_XDS_H

#include "base/table.h"
#include "base/vec.h"
#include "xds/client/client.h"
#include "xds/domain/client_pool.h"

/* A resource as last seen. Owns its strings. Times are wall-clock. */
struct xds_seen {
    UT_hash_handle hh;
    struct tc_rstr *key; /* type URL and name */
    const struct tc_xds_resource_type *type;
    struct tc_rstr *name;
    enum tc_xds_state state;
    struct tc_rstr *version;        /* of the value in use; NULL: none */
    int64_t updated_ns;             /* of the value in use; 0: none */
    struct tc_rstr *bytes;          /* NULL: no content */
    bool new_bytes;                 /* the last look found that the content changed */
    struct tc_rstr *error;          /* NULL: no error */
    struct tc_rstr *failed_version; /* that `error` is about; NULL: none */
    int64_t failed_ns;              /* of `error`; 0: none */
    uint64_t mark;                  /* number of the last look that found it */
    bool gone;                      /* no longer requested */
};

typedef TC_VEC(struct xds_seen *) xds_list;

/* Zero-initialised: empty. The view owns every xds_seen, in `table` or in `gone`. The entries of a list may be used
 * until the next look. */
struct xds_view {
    struct xds_seen *table;
    uint64_t mark;    /* number of looks */
    size_t pending;   /* number of resources in state REQUESTED */
    xds_list changed; /* resources that the last look found new, changed or gone; sorted by type, then name */
    xds_list gone;    /* resources that the last look found gone, no longer in `table`; the next look frees them */
    struct tc_buf scratch;
};

/* Reads the caches of the pool's clients into the view, and stores in `changed` what changed since the last look. */
void xds_view_look(struct xds_view *v, const struct tc_xds_client_pool *pool);
/* Appends all resources of the last look to *out, and sorts *out by type, then name. */
void xds_view_all(const struct xds_view *v, xds_list *out);
void xds_view_fini(struct xds_view *v);

/* Formats a wall-clock time as the local time of day, "13:04:05.678"; "-" for 0. */
void xds_format_time(int64_t ns, char out[static 32]);
/* Prints a table with errors, then the content of each resource that has one. Prints nothing for an empty list. */
void xds_print_all(const xds_list *list);
/* Prints a line for each resource, with the time `now_ns`; below it the error, and the content if that changed. For a
 * gone resource, prints the line alone. */
void xds_print_changes(const xds_list *list, int64_t now_ns);
/* Prints one line: envoy.service.status.v3.ClientConfig as proto3 JSON, with the bootstrap's node and `target` as
 * client_scope. A gone resource has only its type and name. */
void xds_print_json(const xds_list *list, const struct tc_xds_bootstrap *bootstrap, const char *target);

#endif
