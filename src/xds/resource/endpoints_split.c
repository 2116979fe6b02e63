/* Walks the wire format of a ClusterLoadAssignment without unpacking. Only for bytes that tc_scan has checked: a field
 * that cannot be read would end a walk early, and endpoints would be missing without an error.
 *
 * The caller counts first, which takes no memory: limits are checked before an endpoint costs anything. Slices point
 * into the caller's bytes. Pure functions, any thread. */
#include "xds/resource/endpoints_split.h"

#include "proto/wire.h"

/* Fields of ClusterLoadAssignment, LocalityLbEndpoints, LbEndpoint and Endpoint. */
enum { ENDPOINTS = 2, LB_ENDPOINTS = 2, ENDPOINT = 1, ADDITIONAL_ADDRESSES = 4 };

/* Stores the next message with that field number, and moves the start of `rest` behind it. Appends the fields before
 * it to `others`, which may be NULL. Returns false if there is no such message; `rest` is empty then. */
static bool split_next(struct tc_slice *rest, uint64_t number, struct tc_slice *message, struct tc_buf *others)
{
    struct tc_wire_field f;
    for (const char *start = rest->data; tc_wire_next(rest, &f); start = rest->data) {
        if (f.is_bytes && f.number == number) {
            *message = f.value;
            return true;
        }
        if (others)
            tc_buf_append(others, start, (size_t)(rest->data - start));
    }
    return false;
}

static size_t split_count(struct tc_slice rest, uint64_t number)
{
    struct tc_slice message;
    size_t n = 0;
    while (split_next(&rest, number, &message, NULL))
        n++;
    return n;
}

struct tc_endpoint_counts tc_endpoints_count(struct tc_slice assignment)
{
    struct tc_endpoint_counts n = {0};
    struct tc_slice locality, lb, endpoint;
    while (split_next(&assignment, ENDPOINTS, &locality, NULL)) {
        n.localities++;
        while (split_next(&locality, LB_ENDPOINTS, &lb, NULL)) {
            n.addresses++;
            while (split_next(&lb, ENDPOINT, &endpoint, NULL))
                n.addresses += split_count(endpoint, ADDITIONAL_ADDRESSES);
        }
    }
    return n;
}

/* The localities keep their order and number in `rest`, so that localities[i] has the endpoints of locality i. */
void tc_endpoints_lift(struct tc_slice assignment, struct tc_lifted_endpoints *out)
{
    struct tc_slice locality, lb;
    struct tc_buf others = {0};
    while (split_next(&assignment, ENDPOINTS, &locality, &out->rest)) {
        *tc_vec_push(&out->localities) = locality;
        others.len = 0;
        while (split_next(&locality, LB_ENDPOINTS, &lb, &others))
            ;
        tc_wire_append(&out->rest, ENDPOINTS, tc_buf_slice(&others));
    }
    tc_buf_fini(&others);
}

void tc_lifted_endpoints_fini(struct tc_lifted_endpoints *l)
{
    tc_buf_fini(&l->rest);
    tc_vec_fini(&l->localities);
}

bool tc_endpoints_next(struct tc_slice *locality, struct tc_slice *endpoint)
{
    return split_next(locality, LB_ENDPOINTS, endpoint, NULL);
}

size_t tc_endpoints_of(struct tc_slice locality)
{
    return split_count(locality, LB_ENDPOINTS);
}
