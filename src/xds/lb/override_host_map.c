/* Each list of endpoints gets a new set. Entries of the old set whose address is in the new list move to the new set
 * and keep their state; the others are freed. The root's own endpoints (below cds: the draining ones) are added before
 * those of priorities: if both have an address, its entry is the draining endpoint's.
 *
 * A cookie names an address and not the proxy that leads there (A86), so the keys have no proxy. */
#include "xds/lb/override_host_map.h"

#include "base/mem.h"
#include "lb/session_affinity.h"

/* Returns the address without its proxy; the result borrows from `addr`. */
static struct tc_addr override_key(const struct tc_addr *addr)
{
    struct tc_addr key = *addr;
    key.proxy_hop = NULL;
    return key;
}

static bool override_set_has(const struct tc_override_set *set, const struct tc_addr *addr, uint32_t *at)
{
    struct tc_addr key = override_key(addr);
    return set->by_addr.slots && tc_addr_map_find(&set->by_addr, &key, at);
}

struct tc_override_entry *tc_override_set_find(const struct tc_override_set *set, const struct tc_addr *addr)
{
    uint32_t at;
    return override_set_has(set, addr, &at) ? set->all[at] : NULL;
}

static size_t endpoint_list_count_addrs(const struct tc_endpoints *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        n += list->at[i]->n_addrs;
    for (size_t i = 0; i < list->n_children; i++)
        n += endpoint_list_count_addrs(list->children[i].list);
    return n;
}

/* Moves the entry of this address out of `before`, which keeps NULL instead. Returns NULL if `before` lacks it. */
static struct tc_override_entry *override_set_take(struct tc_override_set *before, const struct tc_addr *addr)
{
    uint32_t at;
    if (!override_set_has(before, addr, &at))
        return NULL;
    struct tc_override_entry *e = before->all[at];
    before->all[at] = NULL;
    return e;
}

static struct tc_override_entry *override_entry_new(void)
{
    struct tc_override_entry *e = TC_NEW(struct tc_override_entry);
    tc_list_init(&e->subchannels);
    tc_list_init(&e->wanted);
    return e;
}

static void override_set_add_endpoint(struct tc_override_set *set, struct tc_override_set *before,
                                      struct tc_endpoint *endpoint)
{
    for (size_t i = 0; i < endpoint->n_addrs; i++) {
        const struct tc_addr *addr = &endpoint->addrs[i];
        if (tc_override_set_find(set, addr))
            continue;
        struct tc_override_entry *e = override_set_take(before, addr);
        if (!e)
            e = override_entry_new();
        e->endpoint = endpoint;
        e->addr = addr;
        e->key = override_key(addr);
        tc_addr_map_add(&set->by_addr, &e->key, (uint32_t)set->n);
        set->all[set->n++] = e;
    }
}

/* Adds the list, then the lists below it. Lists of localities repeat the endpoints of their priority's list. */
static void override_set_add_list(struct tc_override_set *set, struct tc_override_set *before,
                                  const struct tc_endpoints *list)
{
    for (size_t i = 0; i < list->n; i++)
        override_set_add_endpoint(set, before, list->at[i]);
    for (size_t i = 0; i < list->n_children; i++)
        override_set_add_list(set, before, list->children[i].list);
}

void tc_override_set_init(struct tc_override_set *set, const struct tc_endpoints *list, struct tc_override_set *before)
{
    *set = (struct tc_override_set){0};
    size_t n = list ? endpoint_list_count_addrs(list) : 0;
    if (n == 0)
        return;
    set->all = tc_calloc(n, sizeof(*set->all));
    tc_addr_map_init(&set->by_addr, n);
    override_set_add_list(set, before, list);
}

void tc_override_set_fini(struct tc_override_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        if (set->all[i])
            tc_list_remove(&set->all[i]->wanted);
        tc_free(set->all[i]);
    }
    tc_free(set->all);
    tc_addr_map_fini(&set->by_addr);
    *set = (struct tc_override_set){0};
}

/* Appends an IP address, behind a comma if it is not the first. Returns how many addresses were appended: none for a
 * Unix socket, which cookies do not name, since its path could hold the separators. */
static size_t append_address(struct tc_buf *text, const struct tc_addr *addr)
{
    if (tc_addr_family(addr) == AF_UNIX)
        return 0;
    if (text->len)
        tc_buf_append_char(text, ',');
    tc_addr_format(addr, text);
    return 1;
}

struct tc_slice tc_override_endpoint_text(const struct tc_endpoint *endpoint, const struct tc_addr *first,
                                          struct tc_arena *arena)
{
    struct tc_buf text = {0};
    size_t n = append_address(&text, first);
    for (size_t i = 0; i < endpoint->n_addrs && n < TC_SESSION_ADDRS_MAX; i++)
        if (!tc_addr_eq(&endpoint->addrs[i], first))
            n += append_address(&text, &endpoint->addrs[i]);
    struct tc_slice out = tc_arena_copy(arena, tc_buf_slice(&text));
    tc_buf_fini(&text);
    return out;
}
