/* Builds the tree of endpoint lists from an EDS resource, or around the list of a DNS name.
 *
 *      root                     draining endpoints
 *        "priority-0"           all usable endpoints of the priority
 *          {region="r", ...}    the usable endpoints of one locality
 *
 * An update builds the new tree from the bottom and reuses what it can of the last one:
 *
 *   endpoint   Looked for in the last list of its locality (`struct former_list`): first right behind the last hit,
 *              where it usually is; then in the whole list, and after a few such searches through a map. An equal
 *              endpoint is reused.
 *   list       Reused if it holds the same pointers.
 *   priority   Its localities are looked for in the last tree, in order (`struct past_tree`). The first one that is in
 *              a priority whose name is still free gives the name; else the name gets a new number. The list is reused
 *              if the name and the lists of localities are the same.
 *
 * So if the address of one endpoint of 50,000 changed, an update makes one endpoint, its locality's list, its
 * priority's list and the root. Weights: A113's shares, or A42's products (see `struct locality_weights`).
 *
 * The tree holds a reference of each object; so may the policies that got the lists. What the file calls `past` and
 * `former` borrows from the last tree, which tree_replace frees at the end of the update. Loop thread only. Read
 * tc_eds_tree_update_eds first. */
#include "xds/lb/eds_tree.h"

#include "base/mem.h"
#include "base/table.h"
#include "base/vec.h"
#include "io/addr.h"
#include "lb/endpoint_map.h"
#include "lb/policies/pick_first.h"

static void priority_fini(struct tc_eds_tree_priority *p)
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

static void priorities_free(struct tc_eds_tree_priority *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        priority_fini(&p[i]);
    tc_free(p);
}

/* --- the last tree, by locality --- */

/* A locality of the last tree. */
struct past_place {
    const struct tc_eds_tree_locality *locality;
    size_t priority;         /* its index in the last tree */
    struct past_place *next; /* the same locality in a later priority */
    UT_hash_handle hh;
};

struct past_tree {
    const struct tc_eds_tree *tree;
    bool *claimed;             /* by priority: its name is in use again */
    struct past_place *places; /* uthash by locality name: the first place of each chain */
    struct past_place *all;    /* the array of all places */
};

/* Indexes the last tree by locality. Goes from the last priority to the first, so that each chain is in the order of
 * priorities. */
static void past_init(struct past_tree *past, const struct tc_eds_tree *tree)
{
    size_t n = 0;
    for (size_t p = 0; p < tree->n; p++)
        n += tree->priorities[p].n;
    *past = (struct past_tree){.tree = tree};
    past->claimed = tc_calloc(tree->n, sizeof(bool));
    struct past_place *at = past->all = tc_calloc(n, sizeof(*at));
    for (size_t p = tree->n; p-- > 0;)
        for (size_t i = 0; i < tree->priorities[p].n; i++, at++) {
            struct past_place *first = NULL;
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

static void past_fini(struct past_tree *past)
{
    HASH_CLEAR(hh, past->places);
    tc_free(past->all);
    tc_free(past->claimed);
}

/* Returns the locality's place in the first priority that has it, or NULL. */
static const struct past_place *past_find_place(const struct past_tree *past, const struct tc_rstr *locality)
{
    struct past_place *place = NULL;
    HASH_FIND(hh, past->places, locality->data, locality->len, place);
    return place;
}

/* Returns the index of the priority of the last tree whose name a new priority with these localities takes, and marks
 * the name as claimed. Returns SIZE_MAX if there is none. A priority without localities takes the name of a priority
 * without localities. */
static size_t past_claim_priority(struct past_tree *past, const struct tc_eds_tree_locality *localities, size_t n)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < n && found == SIZE_MAX; i++)
        for (const struct past_place *p = past_find_place(past, localities[i].name); p && found == SIZE_MAX;
             p = p->next)
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

/* The weights of the endpoints of one locality (tc_endpoint.weight). */
struct locality_weights {
    enum {
        WEIGHTS_RAW,    /* A42: locality x endpoint */
        WEIGHTS_SHARES, /* A113: the locality's share of the priority x the endpoint's of the locality, in UQ1.31 */
        WEIGHTS_EQUAL,  /* A113, when all endpoints of the priority have the same share: 1 each. The proportions are the
                           same, and one endpoint more or less leaves the other objects as they are. */
    } kind;
    uint32_t locality;       /* as the resource has it */
    uint64_t locality_share; /* the locality's share of the priority, UQ1.31 */
    uint64_t endpoint_sum;   /* the sum of the weights of the locality's usable endpoints */
    bool http_connect;       /* A86: endpoints may have a proxy */
};

/* Returns weight / sum in UQ1.31 (A113), or 0 if `sum` is 0. */
static uint64_t weight_share(uint64_t weight, uint64_t sum)
{
    return sum ? (weight << 31) / sum : 0;
}

/* Returns tc_endpoint.weight for an endpoint that has the weight `endpoint` in the resource. */
static uint64_t endpoint_weight(const struct locality_weights *w, uint32_t endpoint)
{
    if (w->kind == WEIGHTS_RAW)
        return (uint64_t)w->locality * endpoint;
    if (w->kind == WEIGHTS_EQUAL)
        return 1;
    uint64_t value = w->locality_share * weight_share(endpoint, w->endpoint_sum) >> 31;
    return value ? value : 1;
}

/* A55: draining endpoints are for xds_override_host alone. */
static bool endpoint_is_usable(const struct tc_eds_endpoint *e)
{
    return e->health != TC_EDS_DRAINING;
}

/* Sets `locality`, locality_share and endpoint_sum to those of one locality. locality_sum: the sum of the weights of
 * the priority's localities. */
static void weights_of_locality(struct locality_weights *w, const struct tc_eds_locality *from, uint64_t locality_sum)
{
    w->locality = from->weight;
    w->locality_share = weight_share(from->weight, locality_sum);
    w->endpoint_sum = 0;
    for (size_t i = 0; i < from->n; i++)
        w->endpoint_sum += endpoint_is_usable(&from->endpoints[i]) ? from->endpoints[i].weight : 0;
}

/* Returns whether all usable endpoints of the priority have the same share. Within a locality compares the resource's
 * weights, which saves a division for each endpoint. */
static bool priority_has_equal_shares(const struct tc_eds_priority *from, uint64_t locality_sum)
{
    uint64_t common = 0;
    for (size_t i = 0; i < from->n; i++) {
        struct locality_weights w = {.kind = WEIGHTS_SHARES};
        uint32_t first = 0;
        for (size_t k = 0; k < from->localities[i].n; k++) {
            const struct tc_eds_endpoint *e = &from->localities[i].endpoints[k];
            if (endpoint_is_usable(e) && first && e->weight != first)
                return false;
            if (endpoint_is_usable(e))
                first = e->weight;
        }
        if (!first)
            continue;
        weights_of_locality(&w, &from->localities[i], locality_sum);
        if (common && endpoint_weight(&w, first) != common)
            return false;
        common = endpoint_weight(&w, first);
    }
    return true;
}

/* Returns whether `a` is the resource's address `from`, reached through `proxy` (A86; NULL: directly). */
static bool addr_is_same(const struct tc_addr *a, const struct tc_addr *from, const struct tc_addr *proxy)
{
    struct tc_addr direct = *a;
    direct.proxy_hop = NULL;
    if (!tc_addr_eq(&direct, from))
        return false;
    return a->proxy_hop ? proxy && tc_addr_eq(&a->proxy_hop->proxy, proxy) : !proxy;
}

/* Returns the proxy through which the endpoint is reached, borrowed; NULL: none. */
static const struct tc_addr *endpoint_proxy(const struct tc_eds_endpoint *from, const struct locality_weights *w)
{
    return w->http_connect ? from->proxy : NULL;
}

/* Returns whether endpoint_make would make an endpoint equal to `e`. */
static bool endpoint_is_same(const struct tc_endpoint *e, const struct tc_eds_endpoint *from,
                             const struct tc_locality *locality, const struct locality_weights *w)
{
    if (e->n_addrs != from->n_addrs || e->lb_weight != from->weight || e->health != (enum tc_health)from->health ||
        e->locality_weight != w->locality || e->weight != endpoint_weight(w, from->weight) ||
        !tc_rstr_eq(e->hash_key, from->hash_key) || !tc_slice_eq(tc_rstr_slice(e->hostname), from->hostname) ||
        tc_locality_cmp(e->locality, locality) != 0)
        return false;
    for (size_t i = 0; i < e->n_addrs; i++)
        if (!addr_is_same(&e->addrs[i], &from->addrs[i], endpoint_proxy(from, w)))
            return false;
    return true;
}

/* Returns a new endpoint with one reference. */
static struct tc_endpoint *endpoint_make(const struct tc_eds_endpoint *from, struct tc_locality *locality,
                                         const struct locality_weights *w)
{
    struct tc_endpoint *e = tc_endpoint_new(from->addrs, from->n_addrs);
    e->weight = endpoint_weight(w, from->weight);
    e->lb_weight = from->weight;
    e->locality_weight = w->locality;
    e->health = (enum tc_health)from->health;
    e->hash_key = tc_rstr_ref(from->hash_key);
    e->hostname = from->hostname.len ? tc_rstr_new(from->hostname.data, from->hostname.len) : NULL;
    e->locality = tc_locality_ref(locality);
    for (size_t i = 0; endpoint_proxy(from, w) && i < e->n_addrs; i++)
        e->addrs[i].proxy_hop = tc_proxy_hop_new(from->proxy, NULL, NULL);
    return e;
}

enum {
    LOOK_AHEAD = 4,       /* endpoints that are compared behind the last hit */
    SOUGHT_ONE_BY_ONE = 4 /* searches through the whole list before a map is made */
};

/* Finds endpoints of the last list. */
struct former_list {
    const struct tc_endpoints *list; /* borrowed; may be NULL */
    size_t next;                     /* where the next endpoint is expected: behind the last hit */
    unsigned sought;                 /* searches beyond LOOK_AHEAD so far */
    bool mapped;                     /* `map` was made */
    struct tc_endpoint_map map;
};

static void former_fini(struct former_list *f)
{
    if (f->mapped)
        tc_endpoint_map_fini(&f->map);
}

/* Does former_seek's search through the map, which the first call makes. */
static bool former_find_mapped(struct former_list *f, const struct tc_endpoint *e, size_t *at)
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

/* Stores the index of the endpoint that has the addresses of `e` in the last list. Returns false if there is none. */
static bool former_seek(struct former_list *f, const struct tc_endpoint *e, size_t *at)
{
    if (f->sought++ >= SOUGHT_ONE_BY_ONE)
        return former_find_mapped(f, e, at);
    for (size_t k = 0; k < f->list->n; k++)
        if (tc_endpoint_same_addrs(f->list->at[k], e)) {
            *at = k;
            return true;
        }
    return false;
}

/* Returns the endpoint, a reference: the last list's if that is equal, else a new one. */
static struct tc_endpoint *former_reuse_endpoint(struct former_list *f, const struct tc_eds_endpoint *from,
                                                 struct tc_locality *locality, const struct locality_weights *w)
{
    size_t n = f->list ? f->list->n : 0, at;
    for (size_t k = f->next; k < n && k < f->next + LOOK_AHEAD; k++)
        if (endpoint_is_same(f->list->at[k], from, locality, w)) {
            f->next = k + 1;
            return tc_endpoint_ref(f->list->at[k]);
        }
    struct tc_endpoint *made = endpoint_make(from, locality, w);
    if (!n || !former_seek(f, made, &at))
        return made;
    f->next = at + 1;
    if (!tc_endpoint_eq(f->list->at[at], made))
        return made;
    tc_endpoint_unref(made);
    return tc_endpoint_ref(f->list->at[at]);
}

static bool endpoints_are_same_pointers(struct tc_endpoint **at, size_t n, const struct tc_endpoints *list)
{
    return list && list->n == n && (n == 0 || memcmp(at, list->at, n * sizeof(struct tc_endpoint *)) == 0);
}

/* Returns the list of one locality's usable endpoints, a reference: `last`, which may be NULL, if that has the same
 * pointers. */
static struct tc_endpoints *locality_list_make(const struct tc_eds_locality *from, struct tc_locality *locality,
                                               struct tc_endpoints *last, const struct locality_weights *w)
{
    struct former_list former = {.list = last};
    struct tc_endpoint **at = from->n ? tc_calloc(from->n, sizeof(struct tc_endpoint *)) : NULL;
    size_t n = 0;
    for (size_t i = 0; i < from->n; i++)
        if (endpoint_is_usable(&from->endpoints[i]))
            at[n++] = former_reuse_endpoint(&former, &from->endpoints[i], locality, w);
    former_fini(&former);
    struct tc_endpoints *list = tc_endpoints_take(at, n);
    if (!endpoints_are_same_pointers(at, n, last))
        return list;
    tc_endpoints_unref(list);
    return tc_endpoints_ref(last);
}

/* --- priorities --- */

/* Makes the array of the priority's localities, with their names. */
static void priority_name_localities(struct tc_eds_tree_priority *p, const struct tc_eds_priority *from)
{
    struct tc_buf text = {0};
    p->n = from->n;
    p->localities = tc_calloc(p->n, sizeof(*p->localities));
    for (size_t i = 0; i < p->n; i++) {
        tc_buf_clear(&text);
        const struct tc_eds_locality *l = &from->localities[i];
        tc_eds_locality_format(l, &text);
        /* Names with quotes must not give two localities the same text. */
        if (memchr(l->region->data, '"', l->region->len) || memchr(l->zone->data, '"', l->zone->len))
            tc_buf_printf(&text, "#%zu,%zu", l->region->len, l->zone->len);
        p->localities[i].name = tc_rstr_new(text.data, text.len);
    }
    tc_buf_fini(&text);
}

/* Returns the locality of this name in the last tree, or NULL. Prefers the one in the priority with this index. */
static const struct tc_eds_tree_locality *past_locality(const struct past_tree *past, const struct tc_rstr *name,
                                                        size_t priority)
{
    const struct past_place *first = past_find_place(past, name);
    for (const struct past_place *p = first; p; p = p->next)
        if (p->priority == priority)
            return p->locality;
    return first ? first->locality : NULL;
}

/* Fills in the named localities: weights, `locality` and `list`. `claimed`: the priority of the last tree whose name
 * the priority takes, or SIZE_MAX. */
static void priority_fill_localities(struct tc_eds_tree_priority *p, const struct tc_eds_priority *from,
                                     const struct past_tree *past, size_t claimed)
{
    struct locality_weights w = {.kind = WEIGHTS_RAW, .http_connect = past->tree->http_connect};
    uint64_t locality_sum = 0;
    for (size_t i = 0; i < p->n; i++)
        locality_sum += from->localities[i].weight;
    if (tc_pick_first_weighted_shuffling())
        w.kind = priority_has_equal_shares(from, locality_sum) ? WEIGHTS_EQUAL : WEIGHTS_SHARES;
    for (size_t i = 0; i < p->n; i++) {
        const struct tc_eds_locality *l = &from->localities[i];
        const struct tc_eds_tree_locality *last = past_locality(past, p->localities[i].name, claimed);
        weights_of_locality(&w, l, locality_sum);
        p->localities[i].locality =
            last ? tc_locality_ref(last->locality)
                 : tc_locality_new(tc_rstr_slice(l->region), tc_rstr_slice(l->zone), tc_rstr_slice(l->sub_zone));
        p->localities[i].list = locality_list_make(l, p->localities[i].locality, last ? last->list : NULL, &w);
    }
}

/* Returns the list of a priority, a reference: the endpoints of all localities in order, and the localities' lists as
 * children. */
static struct tc_endpoints *priority_make_node(const struct tc_eds_tree_priority *p)
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

static bool priority_has_same_lists(const struct tc_eds_tree_priority *a, const struct tc_eds_tree_priority *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->localities[i].list != b->localities[i].list || !tc_rstr_eq(a->localities[i].name, b->localities[i].name))
            return false;
    return true;
}

/* Sets the priority's name and list. `claimed`: the priority of the last tree whose name it takes, and whose list it
 * reuses if the lists of localities are the same; SIZE_MAX: none. */
static void priority_finish(struct tc_eds_tree *tree, struct tc_eds_tree_priority *p, size_t claimed)
{
    const struct tc_eds_tree_priority *last = claimed == SIZE_MAX ? NULL : &tree->priorities[claimed];
    p->name = last ? tc_rstr_ref(last->name) : tc_rstr_printf("priority-%llu", (unsigned long long)tree->next_number++);
    p->node = last && priority_has_same_lists(p, last) ? tc_endpoints_ref(last->node) : priority_make_node(p);
}

/* --- the root --- */

/* Returns the draining endpoints of all priorities, a reference; reuses equal ones of the last root. NULL if no
 * endpoint is draining. */
static struct tc_endpoints *draining_endpoints(const struct tc_eds_tree *tree,
                                               const struct tc_eds_tree_priority *priorities,
                                               const struct tc_eds_priority *from, size_t n_priorities)
{
    TC_VEC(struct tc_endpoint *) list = {0};
    struct former_list former = {.list = tree->root};
    for (size_t p = 0; p < n_priorities; p++)
        for (size_t i = 0; i < from[p].n; i++) {
            const struct tc_eds_locality *l = &from[p].localities[i];
            struct locality_weights w = {
                .kind = WEIGHTS_EQUAL, .locality = l->weight, .http_connect = tree->http_connect};
            for (size_t k = 0; k < l->n; k++)
                if (!endpoint_is_usable(&l->endpoints[k])) {
                    struct tc_locality *locality = priorities[p].localities[i].locality;
                    struct tc_endpoint *e = former_reuse_endpoint(&former, &l->endpoints[k], locality, &w);
                    *tc_vec_push(&list) = e;
                }
        }
    former_fini(&former);
    return list.len ? tc_endpoints_take(list.data, list.len) : NULL;
}

/* Returns a root with the lists of the priorities and the endpoints of `own` (NULL: none), a reference. */
static struct tc_endpoints *tree_make_root(const struct tc_eds_tree_priority *priorities, size_t n,
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

/* Replaces the priorities, and the root unless it would be the same. Takes ownership of `priorities` and of `own`, the
 * root's own endpoints (NULL: none). */
static void tree_replace(struct tc_eds_tree *tree, struct tc_eds_tree_priority *priorities, size_t n,
                         struct tc_endpoints *own)
{
    bool equal =
        tree->root && tree->n == n && endpoints_are_same_pointers(own ? own->at : NULL, own ? own->n : 0, tree->root);
    for (size_t i = 0; equal && i < n; i++)
        equal =
            tree->priorities[i].node == priorities[i].node && tc_rstr_eq(tree->priorities[i].name, priorities[i].name);
    if (!equal) {
        tc_endpoints_unref(tree->root);
        tree->root = tree_make_root(priorities, n, own);
    }
    tc_endpoints_unref(own);
    priorities_free(tree->priorities, tree->n);
    tree->priorities = priorities;
    tree->n = n;
}

void tc_eds_tree_update_eds(struct tc_eds_tree *tree, const struct tc_eds *eds)
{
    static const struct tc_eds_priority nothing = {0};
    bool none = !eds || eds->n_priorities == 0;
    const struct tc_eds_priority *from = none ? &nothing : eds->priorities;
    size_t n = none ? 1 : eds->n_priorities;
    struct tc_eds_tree_priority *priorities = tc_calloc(n, sizeof(*priorities));
    struct past_tree past;
    past_init(&past, tree);
    for (size_t i = 0; i < n; i++) {
        priority_name_localities(&priorities[i], &from[i]);
        size_t claimed = past_claim_priority(&past, priorities[i].localities, priorities[i].n);
        priority_fill_localities(&priorities[i], &from[i], &past, claimed);
        priority_finish(tree, &priorities[i], claimed);
    }
    past_fini(&past);
    tree_replace(tree, priorities, n, none ? NULL : draining_endpoints(tree, priorities, from, n));
}

void tc_eds_tree_update_dns(struct tc_eds_tree *tree, struct tc_endpoints *list)
{
    struct tc_eds_tree_priority *p = tc_calloc(1, sizeof(*p));
    struct past_tree past;
    past_init(&past, tree);
    p->n = 1;
    p->localities = tc_calloc(1, sizeof(*p->localities));
    p->localities[0].name = tc_rstr_str("{region=\"\", zone=\"\", sub_zone=\"\"}");
    p->localities[0].list = list ? tc_endpoints_ref(list) : tc_endpoints_empty();
    priority_finish(tree, p, past_claim_priority(&past, p->localities, 1));
    past_fini(&past);
    tree_replace(tree, p, 1, NULL);
}

void tc_eds_tree_fini(struct tc_eds_tree *tree)
{
    priorities_free(tree->priorities, tree->n);
    tc_endpoints_unref(tree->root);
    *tree = (struct tc_eds_tree){0};
}
