/* Routing: the virtual host for a channel's authority; for an RPC the first route that matches, and one of the route's
 * weighted clusters.
 *
 * A27 ranks domain patterns: exact, longest suffix, longest prefix, "*". Routes are tried in the control plane's order,
 * and the first match wins. Random numbers come from the caller. `steps` bounds what regexes and values of headers may
 * cost. */
#include "xds/resource/route_match.h"

/* How well a domain pattern fits an authority, from worst to best. Among patterns that fit equally well the longer one
 * wins (A27). */
enum { FIT_NONE, FIT_ANY, FIT_PREFIX, FIT_SUFFIX, FIT_EXACT };

static int domain_fit(struct tc_slice pattern, struct tc_slice authority)
{
    if (pattern.len == 0)
        return FIT_NONE;
    if (tc_slice_eq_str(pattern, "*"))
        return FIT_ANY;
    struct tc_slice rest;
    if (pattern.data[0] == '*') {
        rest = tc_slice_of(pattern.data + 1, pattern.len - 1);
        return authority.len > rest.len && tc_slice_iends(authority, rest) ? FIT_SUFFIX : FIT_NONE;
    }
    if (pattern.data[pattern.len - 1] == '*') {
        rest = tc_slice_of(pattern.data, pattern.len - 1);
        return authority.len > rest.len && tc_slice_istarts(authority, rest) ? FIT_PREFIX : FIT_NONE;
    }
    return tc_slice_ieq(pattern, authority) ? FIT_EXACT : FIT_NONE;
}

const struct tc_virtual_host *tc_route_table_find(const struct tc_route_table *t, struct tc_slice authority)
{
    const struct tc_virtual_host *best = NULL;
    int best_fit = FIT_NONE;
    size_t best_len = 0;
    for (size_t i = 0; i < t->n_vhosts; i++) {
        const struct tc_virtual_host *v = &t->vhosts[i];
        for (size_t j = 0; j < v->n_domains; j++) {
            int fit = domain_fit(v->domains[j], authority);
            if (fit > best_fit || (fit == best_fit && fit != FIT_NONE && v->domains[j].len > best_len)) {
                best = v;
                best_fit = fit;
                best_len = v->domains[j].len;
            }
        }
    }
    return best;
}

bool tc_route_match(const struct tc_route *r, struct tc_slice path, const struct tc_headers *headers, uint64_t random,
                    uint64_t *steps)
{
    if (!tc_string_matcher_match(&r->path, path, steps))
        return false;
    struct tc_buf scratch = {0};
    bool match = true;
    for (size_t i = 0; i < r->n_headers && match; i++) {
        tc_buf_clear(&scratch);
        match = tc_header_matcher_match(&r->headers[i], headers, &scratch, steps);
    }
    tc_buf_fini(&scratch);
    return match && (!r->has_fraction || tc_fraction_match(r->fraction_millionths, random));
}

const struct tc_route *tc_virtual_host_route(const struct tc_virtual_host *v, struct tc_slice path,
                                             const struct tc_headers *headers, struct tc_rng *rng, uint64_t *steps)
{
    for (size_t i = 0; i < v->n_routes && *steps; i++) {
        const struct tc_route *r = &v->routes[i];
        if (tc_route_match(r, path, headers, r->has_fraction ? tc_rng_u64(rng) : 0, steps))
            return r;
    }
    return NULL;
}

const struct tc_weighted_cluster *tc_route_weighted_pick(const struct tc_route *r, uint64_t random)
{
    uint64_t at = random % r->total_weight;
    for (size_t i = 0; i + 1 < r->n_weighted; i++) {
        if (at < r->weighted[i].weight)
            return &r->weighted[i];
        at -= r->weighted[i].weight;
    }
    return &r->weighted[r->n_weighted - 1];
}

void tc_route_format(const struct tc_route *r, struct tc_buf *out)
{
    tc_string_matcher_format(&r->path, out);
    for (size_t i = 0; i < r->n_headers; i++) {
        tc_buf_append_str(out, " and ");
        tc_header_matcher_format(&r->headers[i], out);
    }
    if (r->has_fraction)
        tc_buf_printf(out, " and %u of 1000000", r->fraction_millionths);
}
