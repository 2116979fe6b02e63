/* torc ring --add, --remove, --reweight: which part of the hash space changes its owner.
 *
 * Builds the ring after the changes, and sums up a struct move for each pair of old and new owner that differ. compare
 * goes over the hashes of the entries of both rings: between two neighbouring hashes both owners are constant.
 * compare_tables goes over the slots of two Maglev tables. ring_show_change frees all that is made here. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/table.h"
#include "cli.h"
#include "ring_command.h"

/* The endpoints of both rings, numbered together. */
struct names {
    struct ring_list all;      /* copies of the endpoints of the ring before, followed by new ones */
    TC_VEC(uint32_t) after_id; /* after_id[i]: the index in `all` of endpoint i of the ring after */
};

/* The share of the hash space that one endpoint loses to another, in [0, 1]. `from` and `to` are indexes in
 * names.all. */
struct move {
    struct {
        uint32_t from, to;
    } pair;
    double share;
    UT_hash_handle hh;
};

/* Applies a change to a list that copy_list made. Returns 0, or CLI_USAGE with the error printed. */
static int apply(const struct ring_change *c, struct ring_list *l)
{
    size_t i = ring_list_find(l, c->endpoint.key);
    bool known = i < l->at.len;
    if (known == (c->kind == RING_ADD))
        return cli_usage(RING_COMMAND,
                         known ? "--add: '%s' is there already; --reweight changes it"
                               : "there is no endpoint '%s' to change",
                         c->endpoint.key);
    if (c->kind == RING_ADD) {
        *tc_vec_push(&l->at) = (struct ring_endpoint){.key = tc_strdup(c->endpoint.key), .weight = c->endpoint.weight};
    } else if (c->kind == RING_REWEIGHT) {
        l->at.data[i].weight = c->endpoint.weight;
    } else {
        tc_free(l->at.data[i].key);
        tc_vec_remove(&l->at, i);
    }
    return 0;
}

/* Appends copies of keys and weights with `origin`, without the rest of the endpoints. */
static void copy_list(const struct ring_list *from, struct ring_list *to)
{
    for (size_t i = 0; i < from->at.len; i++)
        *tc_vec_push(&to->at) = (struct ring_endpoint){
            .key = tc_strdup(from->at.data[i].key), .weight = from->at.data[i].weight, .origin = i + 1};
}

/* Numbers the endpoints of both lists. `after` is `before` without removed endpoints and with new ones at the end. */
static void number(struct names *names, const struct ring_list *before, const struct ring_list *after)
{
    copy_list(before, &names->all);
    for (size_t i = 0; i < after->at.len; i++) {
        const struct ring_endpoint *e = &after->at.data[i];
        /* Without an origin the endpoint is new, or was removed and added again. */
        size_t id = e->origin ? e->origin - 1 : ring_list_find(&names->all, e->key);
        if (id == names->all.at.len)
            *tc_vec_push(&names->all.at) = (struct ring_endpoint){.key = tc_strdup(e->key), .weight = e->weight};
        *tc_vec_push(&names->after_id) = (uint32_t)id;
    }
}

static void add_move(struct move **moves, uint32_t from, uint32_t to, double share)
{
    struct move key = {.pair = {from, to}}, *m;
    HASH_FIND(hh, *moves, &key.pair, sizeof(key.pair), m);
    if (!m) {
        m = TC_NEW(struct move);
        m->pair = key.pair;
        HASH_ADD(hh, *moves, pair, sizeof(m->pair), m);
    }
    m->share += share;
}

/* Returns the moves between two Maglev tables of the same size, as a uthash table; NULL: none. Each slot counts as the
 * same part of the hash space. */
static struct move *compare_tables(const struct tc_ring *before, const struct tc_ring *after, const struct names *names)
{
    struct move *moves = NULL;
    for (uint32_t e = 0; e < tc_ring_size(before); e++) {
        uint32_t from = tc_ring_item_at(before, e), to = names->after_id.data[tc_ring_item_at(after, e)];
        if (from != to)
            add_move(&moves, from, to, 1.0 / tc_ring_size(before));
    }
    return moves;
}

/* Returns the moves between two rings, as a uthash table; NULL: none. The interval that ends at an entry belongs to the
 * entry. */
static struct move *compare(const struct tc_ring *before, const struct tc_ring *after, const struct names *names)
{
    struct move *moves = NULL;
    uint32_t i = 0, k = 0, n = tc_ring_size(before), m = tc_ring_size(after);
    uint64_t last_before = tc_ring_hash_at(before, n - 1), last_after = tc_ring_hash_at(after, m - 1);
    uint64_t previous = TC_MAX(last_before, last_after);
    bool first = true;
    while (i < n || k < m) {
        uint64_t end = i == n   ? tc_ring_hash_at(after, k)
                       : k == m ? tc_ring_hash_at(before, i)
                                : TC_MIN(tc_ring_hash_at(before, i), tc_ring_hash_at(after, k));
        uint32_t from = tc_ring_item_at(before, i == n ? 0 : i);
        uint32_t to = names->after_id.data[tc_ring_item_at(after, k == m ? 0 : k)];
        uint64_t width = end - previous;
        if (from != to)
            add_move(&moves, from, to, first && width == 0 ? 1 : (double)width * 0x1p-64);
        first = false;
        previous = end;
        while (i < n && tc_ring_hash_at(before, i) == end)
            i++;
        while (k < m && tc_ring_hash_at(after, k) == end)
            k++;
    }
    return moves;
}

static int by_share(struct move *a, struct move *b)
{
    return a->share > b->share ? -1 : a->share < b->share;
}

static void print_json(const struct tc_ring *before, const struct tc_ring *after, const struct names *names,
                       const struct move *moves, double moved)
{
    struct tc_buf b = {0};
    tc_buf_printf(&b, "{\"moved\":%.9g,\"moves\":[", moved);
    for (const struct move *m = moves; m; m = m->hh.next) {
        const char *from = names->all.at.data[m->pair.from].key, *to = names->all.at.data[m->pair.to].key;
        tc_buf_append_str(&b, m == moves ? "{\"from\":" : ",{\"from\":");
        cli_json_string(&b, from, strlen(from));
        tc_buf_append_str(&b, ",\"to\":");
        cli_json_string(&b, to, strlen(to));
        tc_buf_printf(&b, ",\"share\":%.9g}", m->share);
    }
    tc_buf_printf(&b, "],\"before\":{\"entries\":%u,\"absent\":%u},\"after\":{\"entries\":%u,\"absent\":%u}}\n",
                  tc_ring_size(before), tc_ring_absent(before), tc_ring_size(after), tc_ring_absent(after));
    fwrite(b.data, 1, b.len, stdout);
    tc_buf_fini(&b);
}

static void print_text(const struct tc_ring *before, const struct tc_ring *after, const struct names *names,
                       const struct move *moves, double moved)
{
    int width = 4;
    struct tc_buf from = {0}, to = {0};
    for (const struct move *m = moves; m; m = m->hh.next)
        width = TC_MAX(width, (int)TC_MIN(strlen(cli_shown(&from, names->all.at.data[m->pair.from].key)), 60));
    printf("%.3f%% of the hash space moves; entries %u -> %u\n", 100 * moved, tc_ring_size(before),
           tc_ring_size(after));
    if (moves)
        printf("\n%-*s  %9s  to\n", width, "from", "moves");
    for (const struct move *m = moves; m; m = m->hh.next)
        printf("%-*s  %8.3f%%  %s\n", width, cli_shown(&from, names->all.at.data[m->pair.from].key), 100 * m->share,
               cli_shown(&to, names->all.at.data[m->pair.to].key));
    if (tc_ring_absent(after))
        printf("\n%u endpoints have no entry afterwards\n", tc_ring_absent(after));
    tc_buf_fini(&from);
    tc_buf_fini(&to);
}

int ring_show_change(const struct ring_opts *o, const struct tc_ring *before)
{
    struct ring_list list = {0};
    struct names names = {0};
    struct move *moves = NULL, *m, *next;
    struct tc_ring *after = NULL;
    double moved = 0;
    int rc = 0;
    if (o->maglev && o->endpoints.at.data[0].part > 0)
        return cli_usage(RING_COMMAND, "changes of a Maglev table with weights of localities cannot be shown");
    copy_list(&o->endpoints, &list);
    for (size_t i = 0; i < o->changes.len && rc == 0; i++)
        rc = apply(&o->changes.data[i], &list);
    if (rc == 0 && list.at.len == 0)
        rc = cli_usage(RING_COMMAND, "no endpoint is left");
    if (rc)
        goto done;
    number(&names, &o->endpoints, &list);
    after = ring_build(&list, o);
    moves = (o->maglev ? compare_tables : compare)(before, after, &names);
    HASH_SRT(hh, moves, by_share);
    for (m = moves; m; m = m->hh.next)
        moved += m->share;
    if (o->json)
        print_json(before, after, &names, moves, moved);
    else
        print_text(before, after, &names, moves, moved);
done:
    HASH_ITER(hh, moves, m, next)
    {
        HASH_DEL(moves, m);
        tc_free(m);
    }
    tc_ring_unref(after);
    ring_list_fini(&list);
    ring_list_fini(&names.all);
    tc_vec_fini(&names.after_id);
    return rc;
}
