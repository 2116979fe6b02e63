/* The hash policies of a route (A42), or of a cluster's LB policy: data and computation. The resource's
 * arena owns the policies. Immutable. Any thread. */
#ifndef TC_XDS_RESOURCE_HASH_POLICY_H
#define TC_XDS_RESOURCE_HASH_POLICY_H

#include "base/headers.h"
#include "regex/regex.h"

/* The most policies in one list, since each costs time for each RPC. */
enum { TC_HASH_POLICIES_MAX = 1024 };

enum tc_hash_policy_kind {
    TC_HASH_HEADER,
    TC_HASH_CHANNEL_ID, /* filter_state io.grpc.channel_id */
    TC_HASH_NOTHING,    /* a kind that gRPC does not support: no result */
};

/* One entry of hash_policy. A42 ignores cookie, connection_properties, query_parameter and other filter_state keys. The
 * decoder keeps such an entry, as TC_HASH_NOTHING, only if it is terminal: it then ends the walk once there is a
 * hash. */
struct tc_hash_policy {
    enum tc_hash_policy_kind kind;
    bool terminal;
    struct tc_slice header;  /* HEADER: lower case */
    struct tc_regex *regex;  /* HEADER with regex_rewrite: the pattern; NULL: none */
    struct tc_slice rewrite; /* its substitution */
};

/* Stores the RPC's hash: the first result, then rotl(hash, 1) ^ result for each further one. A terminal policy ends the
 * walk once there is a hash. The rewrites take steps from one budget, TC_REGEX_REPLACE_STEPS, in their order; a value
 * for which the steps that are left do not suffice is hashed with only its first matches replaced. Returns false, and
 * leaves *hash, if no policy has a result; the caller then takes a random number. `channel_id` is random and fixed for
 * the channel. */
bool tc_hash_policies_compute(const struct tc_hash_policy *policies, size_t n, const struct tc_headers *headers,
                              uint64_t channel_id, uint64_t *hash);

#endif
