#include "resource/endpoints_lift.h"

#include "proto/wire.h"

/* Fields of ClusterLoadAssignment, LocalityLbEndpoints, LbEndpoint and Endpoint. */
enum { ENDPOINTS = 2, LB_ENDPOINTS = 2, ENDPOINT = 1, ADDITIONAL_ADDRESSES = 4 };

/* The next message of that number; what stands before it goes to `others`, which may be NULL. */
static bool next(struct tc_slice *rest, uint64_t number, struct tc_slice *message, struct tc_buf *others)
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

static size_t count(struct tc_slice rest, uint64_t number)
{
    struct tc_slice message;
    size_t n = 0;
    while (next(&rest, number, &message, NULL))
        n++;
    return n;
}

struct tc_endpoint_counts tc_endpoints_count(struct tc_slice assignment)
{
    struct tc_endpoint_counts n = {0};
    struct tc_slice locality, lb, endpoint;
    while (next(&assignment, ENDPOINTS, &locality, NULL)) {
        n.localities++;
        while (next(&locality, LB_ENDPOINTS, &lb, NULL)) {
            n.addresses++;
            while (next(&lb, ENDPOINT, &endpoint, NULL))
                n.addresses += count(endpoint, ADDITIONAL_ADDRESSES);
        }
    }
    return n;
}

void tc_endpoints_lift(struct tc_slice assignment, struct tc_lifted_endpoints *out)
{
    struct tc_slice locality, lb;
    struct tc_buf others = {0};
    while (next(&assignment, ENDPOINTS, &locality, &out->rest)) {
        *tc_vec_push(&out->localities) = locality;
        others.len = 0;
        while (next(&locality, LB_ENDPOINTS, &lb, &others))
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
    return next(locality, LB_ENDPOINTS, endpoint, NULL);
}

size_t tc_endpoints_of(struct tc_slice locality)
{
    return count(locality, LB_ENDPOINTS);
}
