/* The interface of a resource type: how to decode a resource, and when two resources are equal. src/xds/resource
 * implements it for each type; the client itself knows no resource's content. Resources are immutable and counted, for
 * any thread; decode runs on the loop's thread, or on any thread if `any_thread` is set. */
#ifndef TC_XDS_CLIENT_RESOURCE_TYPE_H
#define TC_XDS_CLIENT_RESOURCE_TYPE_H

#include "base/ref.h"
#include "base/rstr.h"
#include "base/validation_errors.h"
#include "xds/bootstrap/bootstrap.h"

struct tc_xds_resource_type;

/* A decoded resource: immutable, shared, may cross runtimes. Implementations embed it first. */
struct tc_xds_resource {
    struct tc_ref ref;
    const struct tc_xds_resource_type *type;
};

/* The context of a decoder. All but the count of *regex_bytes is constant. */
struct tc_xds_decode_context {
    const struct tc_xds_bootstrap *bootstrap; /* NULL: default limits, and no certificate providers */
    const struct tc_xds_server *server;       /* that sent the resource; NULL: none did */
    /* LB policies, HTTP filters and certificate provider plugins: struct tc_xds_registries, which only src/xds/resource
     * and src/xds/domain look into. NULL: the defaults. */
    const void *registries;
    size_t *regex_bytes; /* bytes that the response's regexes took so far; NULL: each resource is counted by itself */
};

struct tc_xds_resource_type {
    const char *type_url;                /* "type.googleapis.com/envoy.config.cluster.v3.Cluster" */
    const char *short_name;              /* "Cluster", for texts */
    bool any_thread;                     /* decode may be called by any thread */
    bool all_resources_required_in_sotw; /* Listener and Cluster: absence from a response means deletion */
    /* Decodes the bytes of a resource message. Stores a new reference to the resource's name in *name, also on failure;
     * NULL if there is no readable name. Returns a resource with one reference; NULL with errors if it is invalid. */
    struct tc_xds_resource *(*decode)(const struct tc_xds_resource_type *type, const struct tc_xds_decode_context *ctx,
                                      struct tc_slice bytes, struct tc_rstr **name,
                                      struct tc_validation_errors *errors);
    /* Returns the name that `decode` would find, without decoding; empty: the name is not found this way. Borrowed from
     * the bytes. Serves to find the resource in use, which is not decoded again if its bytes are unchanged (a
     * state-of-the-world server may send all resources of a type when one changes). */
    struct tc_slice (*peek_name)(struct tc_slice bytes);
    /* Returns whether decoding may take long even if the bytes are few; NULL: never. */
    bool (*slow)(struct tc_slice bytes);
    /* Returns whether two resources of this type have the same meaning. Two resources of equal bytes may differ: the
     * meaning may depend on the server that sent the bytes. */
    bool (*equal)(const struct tc_xds_resource *a, const struct tc_xds_resource *b);
    void (*free)(struct tc_xds_resource *r); /* called when the last reference goes, on any thread */
};

static inline struct tc_xds_resource *tc_xds_resource_ref(struct tc_xds_resource *r)
{
    if (r)
        tc_ref_inc(&r->ref);
    return r;
}

static inline void tc_xds_resource_unref(struct tc_xds_resource *r)
{
    if (r && tc_ref_dec(&r->ref))
        r->type->free(r);
}

#endif
