/* Localities, endpoints and lists of endpoints.
 *
 * All of them are immutable once made, counted, and shared between the resolver's snapshots and the policies. The
 * counts are atomic: any thread may take and give up references. An endpoint has references of its strings, its
 * locality, its security, and the path and proxy hop of each address; a list has references of its endpoints, and of
 * the names and lists of its children. An object gives up its references when it is freed, with its own last reference.
 *
 * Comparisons look at the pointers first: what an EDS update did not change is the same object afterwards
 * (xds/lb/eds_tree.c). Name resolution makes new objects each time. Only tc_endpoint_same_addrs is quadratic, in the
 * addresses of one endpoint, and only for sets of one hash that are not the same addresses in the same order. */
#include "lb/endpoint.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

struct tc_locality *tc_locality_new(struct tc_slice region, struct tc_slice zone, struct tc_slice sub_zone)
{
    struct tc_locality *l = TC_NEW(struct tc_locality);
    tc_ref_init(&l->ref);
    l->region = tc_rstr_new(region.data, region.len);
    l->zone = tc_rstr_new(zone.data, zone.len);
    l->sub_zone = tc_rstr_new(sub_zone.data, sub_zone.len);
    return l;
}

struct tc_locality *tc_locality_ref(struct tc_locality *l)
{
    if (l)
        tc_ref_inc(&l->ref);
    return l;
}

void tc_locality_unref(struct tc_locality *l)
{
    if (!l || !tc_ref_dec(&l->ref))
        return;
    tc_rstr_unref(l->region);
    tc_rstr_unref(l->zone);
    tc_rstr_unref(l->sub_zone);
    tc_free(l);
}

int tc_locality_cmp(const struct tc_locality *a, const struct tc_locality *b)
{
    if (a == b)
        return 0;
    int c = tc_slice_cmp(tc_rstr_slice(a ? a->region : NULL), tc_rstr_slice(b ? b->region : NULL));
    if (!c)
        c = tc_slice_cmp(tc_rstr_slice(a ? a->zone : NULL), tc_rstr_slice(b ? b->zone : NULL));
    if (!c)
        c = tc_slice_cmp(tc_rstr_slice(a ? a->sub_zone : NULL), tc_rstr_slice(b ? b->sub_zone : NULL));
    return c;
}

void tc_locality_format(const struct tc_locality *l, struct tc_buf *out)
{
    tc_buf_append_str(out, "{region=\"");
    tc_buf_append_slice(out, tc_rstr_slice(l ? l->region : NULL));
    tc_buf_append_str(out, "\", zone=\"");
    tc_buf_append_slice(out, tc_rstr_slice(l ? l->zone : NULL));
    tc_buf_append_str(out, "\", sub_zone=\"");
    tc_buf_append_slice(out, tc_rstr_slice(l ? l->sub_zone : NULL));
    tc_buf_append_str(out, "\"}");
}

static void endpoint_extra_unref(struct tc_endpoint_extra *x)
{
    if (x && tc_ref_dec(&x->ref))
        x->free(x);
}

struct tc_endpoint *tc_endpoint_new(const struct tc_addr *addrs, size_t n)
{
    /* The size cannot overflow: an array of n addresses exists already. */
    struct tc_endpoint *e = tc_calloc(1, sizeof(*e) + n * sizeof(struct tc_addr));
    tc_ref_init(&e->ref);
    e->weight = 1;
    e->lb_weight = 1;
    e->n_addrs = n;
    for (size_t i = 0; i < n; i++)
        e->addrs[i] = tc_addr_ref(&addrs[i]);
    return e;
}

struct tc_endpoint *tc_endpoint_secured(const struct tc_endpoint *e, struct tc_endpoint_extra *security)
{
    struct tc_endpoint *out = tc_endpoint_new(e->addrs, e->n_addrs);
    out->weight = e->weight;
    out->hash_key = tc_rstr_ref(e->hash_key);
    out->locality = tc_locality_ref(e->locality);
    out->hostname = tc_rstr_ref(e->hostname);
    out->security = security;
    out->health = e->health;
    out->lb_weight = e->lb_weight;
    out->locality_weight = e->locality_weight;
    return out;
}

struct tc_endpoint *tc_endpoint_ref(struct tc_endpoint *e)
{
    tc_ref_inc(&e->ref);
    return e;
}

void tc_endpoint_unref(struct tc_endpoint *e)
{
    if (!e || !tc_ref_dec(&e->ref))
        return;
    for (size_t i = 0; i < e->n_addrs; i++)
        tc_addr_fini(&e->addrs[i]);
    tc_rstr_unref(e->hash_key);
    tc_locality_unref(e->locality);
    tc_rstr_unref(e->hostname);
    endpoint_extra_unref(e->security);
    tc_free(e);
}

static bool endpoint_has_addr(const struct tc_endpoint *e, const struct tc_addr *a)
{
    for (size_t i = 0; i < e->n_addrs; i++)
        if (tc_addr_eq(&e->addrs[i], a))
            return true;
    return false;
}

/* Returns true if b has every address of a. Equal sets need both directions: an endpoint may list an address twice. */
static bool endpoint_addrs_subset(const struct tc_endpoint *a, const struct tc_endpoint *b)
{
    for (size_t i = 0; i < a->n_addrs; i++)
        if (!endpoint_has_addr(b, &a->addrs[i]))
            return false;
    return true;
}

bool tc_endpoint_same_addrs(const struct tc_endpoint *a, const struct tc_endpoint *b)
{
    if (a == b)
        return true;
    if (a->n_addrs == 1 && b->n_addrs == 1)
        return tc_addr_eq(&a->addrs[0], &b->addrs[0]);
    /* The common case: the same addresses in the same order. */
    if (a->n_addrs == b->n_addrs) {
        size_t i = 0;
        while (i < a->n_addrs && tc_addr_eq(&a->addrs[i], &b->addrs[i]))
            i++;
        if (i == a->n_addrs)
            return true;
    }
    return tc_endpoint_addrs_hash(a) == tc_endpoint_addrs_hash(b) && endpoint_addrs_subset(a, b) &&
           endpoint_addrs_subset(b, a);
}

static int cmp_u64(const void *pa, const void *pb)
{
    uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return a < b ? -1 : a > b;
}

uint64_t tc_endpoint_addrs_hash(const struct tc_endpoint *e)
{
    if (e->n_addrs == 1)
        return tc_addr_hash(&e->addrs[0]);
    /* A hash of the set: the addresses' hashes sorted, without duplicates. */
    uint64_t inline_hashes[8], *h = inline_hashes;
    if (e->n_addrs > TC_ARRAY_LEN(inline_hashes))
        h = tc_reallocarray(NULL, e->n_addrs, sizeof(*h));
    for (size_t i = 0; i < e->n_addrs; i++)
        h[i] = tc_addr_hash(&e->addrs[i]);
    qsort(h, e->n_addrs, sizeof(*h), cmp_u64);
    size_t n = 0;
    for (size_t i = 0; i < e->n_addrs; i++)
        if (n == 0 || h[n - 1] != h[i])
            h[n++] = h[i];
    uint64_t hash = n == 1 ? h[0] : tc_xxh64(h, n * sizeof(*h));
    if (h != inline_hashes)
        tc_free(h);
    return hash;
}

bool tc_endpoint_eq(const struct tc_endpoint *a, const struct tc_endpoint *b)
{
    if (a == b)
        return true;
    if (a->n_addrs != b->n_addrs || a->weight != b->weight || a->health != b->health || a->lb_weight != b->lb_weight ||
        a->locality_weight != b->locality_weight || !tc_rstr_eq(a->hash_key, b->hash_key) ||
        !tc_rstr_eq(a->hostname, b->hostname) || a->security != b->security ||
        tc_locality_cmp(a->locality, b->locality) != 0)
        return false;
    for (size_t i = 0; i < a->n_addrs; i++)
        if (!tc_addr_eq(&a->addrs[i], &b->addrs[i]))
            return false;
    return true;
}

/* --- lists --- */

static struct tc_endpoints *endpoints_new(void)
{
    struct tc_endpoints *e = TC_NEW(struct tc_endpoints);
    tc_ref_init(&e->ref);
    return e;
}

struct tc_endpoints *tc_endpoints_take(struct tc_endpoint **at, size_t n)
{
    struct tc_endpoints *e = endpoints_new();
    e->at = at;
    e->n = n;
    return e;
}

static int endpoints_child_cmp(const void *pa, const void *pb)
{
    const struct tc_endpoints_child *a = pa, *b = pb;
    return tc_slice_cmp(tc_rstr_slice(a->name), tc_rstr_slice(b->name));
}

struct tc_endpoints *tc_endpoints_take_children(struct tc_endpoints_child *children, size_t n)
{
    struct tc_endpoints *e = endpoints_new();
    e->children = children;
    e->n_children = n;
    if (n > 1)
        qsort(children, n, sizeof(*children), endpoints_child_cmp);
    return e;
}

struct tc_endpoints *tc_endpoints_ref(struct tc_endpoints *e)
{
    if (e)
        tc_ref_inc(&e->ref);
    return e;
}

void tc_endpoints_unref(struct tc_endpoints *e)
{
    if (!e || !tc_ref_dec(&e->ref))
        return;
    for (size_t i = 0; i < e->n; i++)
        tc_endpoint_unref(e->at[i]);
    for (size_t i = 0; i < e->n_children; i++) {
        tc_rstr_unref(e->children[i].name);
        tc_endpoints_unref(e->children[i].list);
    }
    tc_free(e->at);
    tc_free(e->children);
    tc_free(e);
}

/* The first reference of the list is never given up. */
static struct tc_endpoints empty_list = {.ref = {1}};

struct tc_endpoints *tc_endpoints_empty(void)
{
    return tc_endpoints_ref(&empty_list);
}

struct tc_endpoints *tc_endpoints_child(const struct tc_endpoints *e, struct tc_slice name)
{
    size_t lo = 0, hi = e ? e->n_children : 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = tc_slice_cmp(tc_rstr_slice(e->children[mid].name), name);
        if (c == 0)
            return e->children[mid].list;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return &empty_list;
}

bool tc_endpoints_eq(const struct tc_endpoints *a, const struct tc_endpoints *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->n != b->n || a->n_children != b->n_children)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!tc_endpoint_eq(a->at[i], b->at[i]))
            return false;
    for (size_t i = 0; i < a->n_children; i++)
        if (!tc_rstr_eq(a->children[i].name, b->children[i].name) ||
            !tc_endpoints_eq(a->children[i].list, b->children[i].list))
            return false;
    return true;
}
