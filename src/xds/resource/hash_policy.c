/* The hash of an RPC (A42). The policies are computed in order, and each result is combined with the hash so far. A
 * terminal policy ends the walk once there is a hash, even one from an earlier policy. The regex rewrites of one list
 * share a budget of steps. */
#include "xds/resource/hash_policy.h"

#include "base/hash.h"
#include "xds/resource/matchers.h"

/* Hashes the header's value, rewritten if the policy has a regex. Returns false if the RPC does not have the header. */
static bool hash_header(const struct tc_hash_policy *p, const struct tc_headers *headers, uint64_t *steps,
                        uint64_t *hash)
{
    struct tc_buf joined = {0}, rewritten = {0};
    struct tc_slice value;
    bool found = tc_route_header_value(headers, p->header, &joined, &value);
    if (found && p->regex) {
        tc_regex_replace_all(p->regex, value, p->rewrite, steps, &rewritten);
        value = tc_buf_slice(&rewritten);
    }
    if (found)
        *hash = tc_xxh64_slice(value);
    tc_buf_fini(&joined);
    tc_buf_fini(&rewritten);
    return found;
}

/* Returns false if the policy has no result for this RPC. */
static bool hash_policy_compute(const struct tc_hash_policy *p, const struct tc_headers *headers, uint64_t channel_id,
                                uint64_t *steps, uint64_t *hash)
{
    switch (p->kind) {
    case TC_HASH_HEADER:
        return hash_header(p, headers, steps, hash);
    case TC_HASH_CHANNEL_ID:
        *hash = channel_id;
        return true;
    case TC_HASH_NOTHING:
        break;
    }
    return false;
}

bool tc_hash_policies_compute(const struct tc_hash_policy *policies, size_t n, const struct tc_headers *headers,
                              uint64_t channel_id, uint64_t *hash)
{
    bool has = false;
    uint64_t combined = 0, steps = TC_REGEX_REPLACE_STEPS;
    for (size_t i = 0; i < n; i++) {
        uint64_t one = 0;
        if (hash_policy_compute(&policies[i], headers, channel_id, &steps, &one)) {
            /* A42: rotate, so that two equal results do not cancel each other. */
            combined = has ? ((combined << 1) | (combined >> 63)) ^ one : one;
            has = true;
        }
        if (policies[i].terminal && has)
            break;
    }
    if (has)
        *hash = combined;
    return has;
}
