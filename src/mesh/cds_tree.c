#include "mesh/cds_tree.h"

#include <uthash.h>

#include "base/mem.h"
#include "base/vec.h"
#include "io/proxy.h"
#include "lb/endpoint_map.h"
#include "lb/pick_first.h"

static void priority_fini(struct tc_cds_priority *p)
{
    for (size_t i = 0; i < p->n; i++) {
        tc_rstr_unref(p->localities[i].name);
        tc_locality_unref(p->localities[i].locality);
        tc_endpoints_unref(p->localities[i].list);
    }
    tc_free(p->localities);
    tc_rstr_unref(p->name);
    tc_endpoints_unref(p->node);
}

static void priorities_free(struct tc_cds_priority *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        priority_fini(&p[i]);
    tc_free(p);
}

/* --- the last tree, by locality --- */

struct place {
    const struct tc_cds_locality *locality;
    size_t priority;
    struct place *next; /* the same locality in another priority */
    UT_hash_handle hh;
};

struct past {
    const struct tc_cds_tree *tree;
    bool *claimed; /* by priority: its name is in use again */
    struct place *places;
    struct place *all;
};

static void past_init(struct past *past, const struct tc_cds_tree *tree)
{
    size_t n = 0;
    for (size_t p = 0; p < tree->n; p++)
        n += tree->priorities[p].n;
    *past = (struct past){.tree = tree};
    past->claimed = tc_calloc(tree->n, sizeof(bool));
    struct place *at = past->all = tc_calloc(n, sizeof(*at));
    for (size_t p = tree->n; p-- > 0;)
        for (size_t i = 0; i < tree->priorities[p].n; i++, at++) {
            struct place *first = NULL;
            at->locality = &tree->priorities[p].localities[i];
            at->priority = p;
            HASH_FIND(hh, past->places, at->locality->name->data, at->locality->name->len, first);
            if (first) {
                HASH_DEL(past->places, first);
                at->next = first;
            }
            HASH_ADD_KEYPTR(hh, past->places, at->locality->name->data, at->locality->name->len, at);
        }
}

static void past_fini(struct past *past)
{
    HASH_CLEAR(hh, past->places);
    tc_free(past->all);
    tc_free(past->claimed);
}

static const struct place *past_find(const struct past *past, const struct tc_rstr *locality)
{
    struct place *place = NULL;
    HASH_FIND(hh, past->places, locality->data, locality->len, place);
    return place;
}

/* The priority of the last tree whose name a new one with these localities goes on with; SIZE_MAX: none. */
static size_t claim(struct past *past, const struct tc_cds_locality *localities, size_t n)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < n && found == SIZE_MAX; i++)
        for (const struct place *p = past_find(past, localities[i].name); p && found == SIZE_MAX; p = p->next)
            if (!past->claimed[p->priority])
                found = p->priority;
    for (size_t p = 0; n == 0 && p < past->tree->n && found == SIZE_MAX; p++)
        if (past->tree->priorities[p].n == 0 && !past->claimed[p])
            found = p;
    if (found != SIZE_MAX)
        past->claimed[found] = true;
    return found;
}

/* --- endpoints --- */

/* Weights as ring_hash sees them: locality x endpoint, raw (A42), or as shares in UQ1.31 (A113). */
struct weights {
    bool shares;
    uint64_t locality_sum; /* of the priority */
    uint64_t endpoint_sum; /* of the locality */
    uint32_t locality;
    bool http_connect; /* not of weight, but of all that are made with them */
};

static uint64_t share(uint64_t weight, uint64_t sum)
{
    return sum ? (weight << 31) / sum : 0;
}

static uint64_t product(const struct weights *w, uint32_t endpoint)
{
    if (!w->shares)
        return (uint64_t)w->locality * endpoint;
    uint64_t value = share(w->locality, w->locality_sum) * share(endpoint, w->endpoint_sum) >> 31;
    return value ? value : 1;
}

/* The address as the resource has it, and as it is reached (A86). */
static bool same_addr(const struct tc_addr *a, const struct tc_addr *from, const struct tc_addr *proxy)
{
    struct tc_addr direct = *a;
    direct.via = NULL;
    if (!tc_addr_eq(&direct, from))
        return false;
    return a->via ? proxy && tc_addr_eq(&a->via->proxy, proxy) : !proxy;
}

static const struct tc_addr *proxy_of(const struct tc_eds_endpoint *from, const struct weights *w)
{
    return w->http_connect ? from->proxy : NULL;
}

static bool same(const struct tc_endpoint *e, const struct tc_eds_endpoint *from, const struct weights *w)
{
    if (e->n_addrs != from->n_addrs || e->lb_weight != from->weight || e->health != (enum tc_health)from->health ||
        e->locality_weight != w->locality || e->weight != product(w, from->weight) ||
        !tc_rstr_eq(e->hash_key, from->hash_key) || !tc_slice_eq(tc_rstr_slice(e->hostname), from->hostname))
        return false;
    for (size_t i = 0; i < e->n_addrs; i++)
        if (!same_addr(&e->addrs[i], &from->addrs[i], proxy_of(from, w)))
            return false;
    return true;
}

static struct tc_endpoint *make(const struct tc_eds_endpoint *from, struct tc_locality *locality,
                                const struct weights *w)
{
    struct tc_endpoint *e = tc_endpoint_new(from->addrs, from->n_addrs);
    e->weight = product(w, from->weight);
    e->lb_weight = from->weight;
    e->locality_weight = w->locality;
    e->health = (enum tc_health)from->health;
    e->hash_key = tc_rstr_ref(from->hash_key);
    e->hostname = from->hostname.len ? tc_rstr_new(from->hostname.data, from->hostname.len) : NULL;
    e->locality = tc_locality_ref(locality);
    for (size_t i = 0; proxy_of(from, w) && i < e->n_addrs; i++)
        e->addrs[i].via = tc_via_new(from->proxy, NULL, NULL);
    return e;
}

enum { LOOK_AHEAD = 4, SOUGHT_ONE_BY_ONE = 4 };

/* Finds endpoints of the last list, wherever they stood in it. Most stand where the last one that was found makes
 * expect them; a few others are sought one by one, more with a map. */
struct former {
    const struct tc_endpoints *list; /* may be NULL */
    size_t next;                     /* where the next one is expected */
    unsigned sought;
    bool mapped;
    struct tc_endpoint_map map;
};

static void former_fini(struct former *f)
{
    if (f->mapped)
        tc_endpoint_map_fini(&f->map);
}

static bool find_mapped(struct former *f, const struct tc_endpoint *e, size_t *at)
{
    uint32_t found;
    if (!f->mapped) {
        tc_endpoint_map_init(&f->map, f->list->n);
        for (size_t k = 0; k < f->list->n; k++)
            tc_endpoint_map_add(&f->map, f->list->at[k], (uint32_t)k);
        f->mapped = true;
    }
    if (!tc_endpoint_map_find(&f->map, e, &found))
        return false;
    *at = found;
    return true;
}

static bool seek(struct former *f, const struct tc_endpoint *e, size_t *at)
{
    if (f->sought++ >= SOUGHT_ONE_BY_ONE)
        return find_mapped(f, e, at);
    for (size_t k = 0; k < f->list->n; k++)
        if (tc_endpoint_same_addrs(f->list->at[k], e)) {
            *at = k;
            return true;
        }
    return false;
}

static struct tc_endpoint *reuse(struct former *f, const struct tc_eds_endpoint *from, struct tc_locality *locality,
                                 const struct weights *w)
{
    size_t n = f->list ? f->list->n : 0, at;
    for (size_t k = f->next; k < n && k < f->next + LOOK_AHEAD; k++)
        if (same(f->list->at[k], from, w)) {
            f->next = k + 1;
            return tc_endpoint_ref(f->list->at[k]);
        }
    struct tc_endpoint *made = make(from, locality, w);
    if (!n || !seek(f, made, &at))
        return made;
    f->next = at + 1;
    if (!tc_endpoint_eq(f->list->at[at], made))
        return made;
    tc_endpoint_unref(made);
    return tc_endpoint_ref(f->list->at[at]);
}

static bool same_pointers(struct tc_endpoint **at, size_t n, const struct tc_endpoints *list)
{
    return list && list->n == n && (n == 0 || memcmp(at, list->at, n * sizeof(struct tc_endpoint *)) == 0);
}

/* A55: draining endpoints are for xds_override_host alone, and stand in the root. */
static bool usable(const struct tc_eds_endpoint *e)
{
    return e->health != TC_EDS_DRAINING;
}

static struct tc_endpoints *make_list(const struct tc_eds_locality *from, struct tc_locality *locality,
                                      struct tc_endpoints *last, struct weights w)
{
    struct former former = {.list = last};
    struct tc_endpoint **at = from->n ? tc_calloc(from->n, sizeof(struct tc_endpoint *)) : NULL;
    size_t n = 0;
    w.endpoint_sum = 0;
    for (size_t i = 0; i < from->n; i++)
        w.endpoint_sum += usable(&from->endpoints[i]) ? from->endpoints[i].weight : 0;
    for (size_t i = 0; i < from->n; i++)
        if (usable(&from->endpoints[i]))
            at[n++] = reuse(&former, &from->endpoints[i], locality, &w);
    former_fini(&former);
    struct tc_endpoints *list = tc_endpoints_take(at, n);
    if (!same_pointers(at, n, last))
        return list;
    tc_endpoints_unref(list);
    return tc_endpoints_ref(last);
}

/* --- priorities --- */

static void name_localities(struct tc_cds_priority *p, const struct tc_eds_priority *from)
{
    struct tc_buf text = {0};
    p->n = from->n;
    p->localities = tc_calloc(p->n, sizeof(*p->localities));
    for (size_t i = 0; i < p->n; i++) {
        tc_buf_clear(&text);
        const struct tc_eds_locality *l = &from->localities[i];
        tc_eds_locality_format(l, &text);
        /* Quotes inside of names must not make two localities one. */
        if (memchr(l->region->data, '"', l->region->len) || memchr(l->zone->data, '"', l->zone->len))
            tc_buf_printf(&text, "#%zu,%zu", l->region->len, l->zone->len);
        p->localities[i].name = tc_rstr_new(text.data, text.len);
    }
    tc_buf_fini(&text);
}

/* The same locality in the last tree, best the one in the priority that this one goes on with. */
static const struct tc_cds_locality *last_of(const struct past *past, const struct tc_rstr *name, size_t priority)
{
    const struct place *first = past_find(past, name);
    for (const struct place *p = first; p; p = p->next)
        if (p->priority == priority)
            return p->locality;
    return first ? first->locality : NULL;
}

static void fill_localities(struct tc_cds_priority *p, const struct tc_eds_priority *from, const struct past *past,
                            size_t claimed)
{
    struct weights w = {.shares = tc_pick_first_weighted_shuffling(), .http_connect = past->tree->http_connect};
    for (size_t i = 0; i < p->n; i++)
        w.locality_sum += from->localities[i].weight;
    for (size_t i = 0; i < p->n; i++) {
        const struct tc_eds_locality *l = &from->localities[i];
        const struct tc_cds_locality *last = last_of(past, p->localities[i].name, claimed);
        w.locality = l->weight;
        p->localities[i].locality =
            last ? tc_locality_ref(last->locality)
                 : tc_locality_new(tc_rstr_slice(l->region), tc_rstr_slice(l->zone), tc_rstr_slice(l->sub_zone));
        p->localities[i].list = make_list(l, p->localities[i].locality, last ? last->list : NULL, w);
    }
}

/* The endpoints of all localities in order, and below them the localities' own lists. */
static struct tc_endpoints *make_node(const struct tc_cds_priority *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += p->localities[i].list->n;
    struct tc_endpoint **at = n ? tc_calloc(n, sizeof(struct tc_endpoint *)) : NULL;
    struct tc_endpoints_child *children = p->n ? tc_calloc(p->n, sizeof(*children)) : NULL;
    size_t k = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct tc_endpoints *list = p->localities[i].list;
        for (size_t j = 0; j < list->n; j++)
            at[k++] = tc_endpoint_ref(list->at[j]);
        children[i].name = tc_rstr_ref(p->localities[i].name);
        children[i].list = tc_endpoints_ref(p->localities[i].list);
    }
    struct tc_endpoints *node = tc_endpoints_take_children(children, p->n);
    node->at = at;
    node->n = n;
    return node;
}

static bool same_lists(const struct tc_cds_priority *a, const struct tc_cds_priority *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->localities[i].list != b->localities[i].list || !tc_rstr_eq(a->localities[i].name, b->localities[i].name))
            return false;
    return true;
}

static void finish_priority(struct tc_cds_tree *tree, struct tc_cds_priority *p, size_t claimed)
{
    const struct tc_cds_priority *last = claimed == SIZE_MAX ? NULL : &tree->priorities[claimed];
    p->name = last ? tc_rstr_ref(last->name) : tc_rstr_printf("priority-%llu", (unsigned long long)tree->next_number++);
    p->node = last && same_lists(p, last) ? tc_endpoints_ref(last->node) : make_node(p);
}

/* --- the root --- */

/* The endpoints that drain, the same objects as in the last tree where they are the same. NULL: none. */
static struct tc_endpoints *draining(const struct tc_cds_tree *tree, const struct tc_cds_priority *priorities,
                                     const struct tc_eds_priority *from, size_t n_priorities)
{
    TC_VEC(struct tc_endpoint *) list = {0};
    struct former former = {.list = tree->root};
    for (size_t p = 0; p < n_priorities; p++)
        for (size_t i = 0; i < from[p].n; i++) {
            const struct tc_eds_locality *l = &from[p].localities[i];
            struct weights w = {.locality = l->weight, .http_connect = tree->http_connect};
            for (size_t k = 0; k < l->n; k++)
                if (!usable(&l->endpoints[k])) {
                    struct tc_locality *locality = priorities[p].localities[i].locality;
                    struct tc_endpoint *e = reuse(&former, &l->endpoints[k], locality, &w);
                    *tc_vec_push(&list) = e;
                }
        }
    former_fini(&former);
    return list.len ? tc_endpoints_take(list.data, list.len) : NULL;
}

static struct tc_endpoints *make_root(const struct tc_cds_priority *priorities, size_t n,
                                      const struct tc_endpoints *own)
{
    struct tc_endpoints_child *children = tc_calloc(n, sizeof(*children));
    for (size_t i = 0; i < n; i++) {
        children[i].name = tc_rstr_ref(priorities[i].name);
        children[i].list = tc_endpoints_ref(priorities[i].node);
    }
    struct tc_endpoints *root = tc_endpoints_take_children(children, n);
    root->n = own ? own->n : 0;
    root->at = root->n ? tc_calloc(root->n, sizeof(struct tc_endpoint *)) : NULL;
    for (size_t i = 0; i < root->n; i++)
        root->at[i] = tc_endpoint_ref(own->at[i]);
    return root;
}

/* Puts the new priorities in the place of the old ones. Takes over `own`, the root's endpoints (NULL: none). */
static void replace(struct tc_cds_tree *tree, struct tc_cds_priority *priorities, size_t n, struct tc_endpoints *own)
{
    bool equal = tree->root && tree->n == n && same_pointers(own ? own->at : NULL, own ? own->n : 0, tree->root);
    for (size_t i = 0; equal && i < n; i++)
        equal =
            tree->priorities[i].node == priorities[i].node && tc_rstr_eq(tree->priorities[i].name, priorities[i].name);
    if (!equal) {
        tc_endpoints_unref(tree->root);
        tree->root = make_root(priorities, n, own);
    }
    tc_endpoints_unref(own);
    priorities_free(tree->priorities, tree->n);
    tree->priorities = priorities;
    tree->n = n;
}

void tc_cds_tree_update_eds(struct tc_cds_tree *tree, const struct tc_eds *eds)
{
    static const struct tc_eds_priority nothing = {0};
    bool none = !eds || eds->n_priorities == 0;
    const struct tc_eds_priority *from = none ? &nothing : eds->priorities;
    size_t n = none ? 1 : eds->n_priorities;
    struct tc_cds_priority *priorities = tc_calloc(n, sizeof(*priorities));
    struct past past;
    past_init(&past, tree);
    for (size_t i = 0; i < n; i++) {
        name_localities(&priorities[i], &from[i]);
        size_t claimed = claim(&past, priorities[i].localities, priorities[i].n);
        fill_localities(&priorities[i], &from[i], &past, claimed);
        finish_priority(tree, &priorities[i], claimed);
    }
    past_fini(&past);
    replace(tree, priorities, n, none ? NULL : draining(tree, priorities, from, n));
}

void tc_cds_tree_update_dns(struct tc_cds_tree *tree, struct tc_endpoints *list)
{
    struct tc_cds_priority *p = tc_calloc(1, sizeof(*p));
    struct past past;
    past_init(&past, tree);
    p->n = 1;
    p->localities = tc_calloc(1, sizeof(*p->localities));
    p->localities[0].name = tc_rstr_str("{region=\"\", zone=\"\", sub_zone=\"\"}");
    p->localities[0].list = list ? tc_endpoints_ref(list) : tc_endpoints_empty();
    finish_priority(tree, p, claim(&past, p->localities, 1));
    past_fini(&past);
    replace(tree, p, 1, NULL);
}

void tc_cds_tree_fini(struct tc_cds_tree *tree)
{
    priorities_free(tree->priorities, tree->n);
    tc_endpoints_unref(tree->root);
    *tree = (struct tc_cds_tree){0};
}
