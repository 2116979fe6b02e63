/* Each input is decoded as a ClusterLoadAssignment, and as an LbEndpointCollection. Each endpoint of an accepted
 * resource has a weight and an address. The localities of a priority are in order, each once, and the sum of their
 * weights fits 32 bits. */
#include "resource.h"
#include "xds/resource/endpoints.h"

static void check_endpoints(const struct tc_eds_endpoint *list, size_t n)
{
    struct tc_buf text = {0};
    for (size_t i = 0; i < n; i++) {
        const struct tc_eds_endpoint *e = &list[i];
        TC_FUZZ_CHECK(e->weight > 0 && e->n_addrs > 0);
        for (size_t k = 0; k < e->n_addrs; k++)
            tc_addr_format(&e->addrs[k], &text);
    }
    tc_buf_fini(&text);
}

static void check_locality(const struct tc_eds_locality *l)
{
    struct tc_buf text = {0};
    TC_FUZZ_CHECK(l->weight > 0);
    tc_eds_locality_format(l, &text);
    TC_FUZZ_CHECK(text.len > 0);
    TC_FUZZ_CHECK(!l->collection || (l->n == 0 && l->collection->len > 0));
    check_endpoints(l->endpoints, l->n);
    tc_buf_fini(&text);
}

static void check_collection(const uint8_t *data, size_t size)
{
    struct tc_buf bytes = {0};
    struct tc_xds_resource *r = tc_fuzz_decode(&tc_eds_collection_type, data, size, &bytes);
    if (r) {
        const struct tc_eds_collection *c = tc_eds_collection_of(r);
        TC_FUZZ_CHECK(c->n <= c->n_addrs);
        check_endpoints(c->endpoints, c->n);
    }
    tc_xds_resource_unref(r);
    tc_buf_fini(&bytes);
}

static int compare(const struct tc_rstr *a, const struct tc_rstr *b)
{
    return strcmp(a->data, b->data);
}

static bool ordered(const struct tc_eds_locality *a, const struct tc_eds_locality *b)
{
    int c = compare(a->region, b->region);
    c = c ? c : compare(a->zone, b->zone);
    c = c ? c : compare(a->sub_zone, b->sub_zone);
    return c < 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_buf bytes = {0};
    struct tc_xds_resource *r = tc_fuzz_decode(&tc_eds_type, data, size, &bytes);
    const struct tc_eds *e = r ? tc_eds_of(r) : NULL;
    for (size_t i = 0; e && i < e->n_priorities; i++) {
        const struct tc_eds_priority *p = &e->priorities[i];
        uint64_t sum = 0;
        TC_FUZZ_CHECK(p->n > 0);
        for (size_t k = 0; k < p->n; k++) {
            check_locality(&p->localities[k]);
            sum += p->localities[k].weight;
            TC_FUZZ_CHECK(k == 0 || ordered(&p->localities[k - 1], &p->localities[k]));
        }
        TC_FUZZ_CHECK(sum <= UINT32_MAX); /* A27 */
    }
    for (size_t i = 0; e && i < e->n_drops; i++)
        TC_FUZZ_CHECK(e->drops[i].category && e->drops[i].millionths <= 1000000);
    tc_xds_resource_unref(r);
    tc_buf_fini(&bytes);
    check_collection(data, size);
    return 0;
}
