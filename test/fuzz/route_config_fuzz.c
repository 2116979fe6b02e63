/* RouteConfigurations (resource.h), and what the config selector does with the valid ones: virtual hosts, routes, hash
 * policies, weighted clusters. */
#include "base/headers.h"
#include "resource.h"
#include "xds/resource/route_config.h"
#include "xds/resource/route_match.h"

static const char *const fields[][2] = {{"a", "1"}, {"a", "-2"}, {"key", "value"}, {"b-bin", "\xff"}, {"x", ""}};

static void check_route(const struct tc_route *r, const struct tc_headers *headers)
{
    struct tc_buf text = {0};
    uint64_t hash;
    tc_route_format(r, &text);
    TC_FUZZ_CHECK(text.len > 0);
    tc_buf_fini(&text);
    (void)tc_hash_policies_compute(r->hash_policies, r->n_hash_policies, headers, 7, &hash);
    if (r->kind == TC_ROUTE_CLUSTER)
        TC_FUZZ_CHECK(r->cluster && r->cluster->len > 0);
    if (r->kind == TC_ROUTE_WEIGHTED) {
        uint64_t sum = 0;
        for (size_t i = 0; i < r->n_weighted; i++)
            sum += r->weighted[i].weight;
        TC_FUZZ_CHECK(sum == r->total_weight && sum > 0);
        TC_FUZZ_CHECK(tc_route_weighted_pick(r, 0) == &r->weighted[0]);
        TC_FUZZ_CHECK(tc_route_weighted_pick(r, UINT64_MAX));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_buf bytes = {0};
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    struct tc_arena arena;
    struct tc_headers headers;
    struct tc_rng rng;
    struct tc_xds_resource *resource = tc_fuzz_decode(&tc_route_config_type, data, size, &bytes);
    tc_arena_init(&arena, 0, 0);
    tc_headers_init(&headers, &arena);
    tc_rng_init_seed(&rng, size);
    for (size_t i = 0; i < TC_ARRAY_LEN(fields); i++)
        tc_headers_add(&headers, tc_slice_str(fields[i][0]), tc_slice_str(fields[i][1]));
    const struct tc_route_table *t = resource ? &tc_route_config_of(resource)->table : NULL;
    for (size_t i = 0; t && i < t->n_vhosts; i++) {
        const struct tc_virtual_host *v = &t->vhosts[i];
        for (size_t k = 0; k < v->n_routes; k++)
            check_route(&v->routes[k], &headers);
        for (size_t k = 0; k < v->n_domains; k++) /* finds this virtual host, or a more specific one */
            TC_FUZZ_CHECK(tc_route_table_find(t, v->domains[k]));
        (void)tc_virtual_host_route(v, tc_slice_str("/pkg.Service/Method"), &headers, &rng, &steps);
        (void)tc_virtual_host_route(v, tc_slice_of(data, TC_MIN(size, 64)), &headers, &rng, &steps);
    }
    if (t)
        (void)tc_route_table_find(t, tc_slice_of(data, TC_MIN(size, 64)));
    tc_xds_resource_unref(resource);
    tc_arena_fini(&arena);
    tc_buf_fini(&bytes);
    return 0;
}
