/* torc ring: the table, the dump, keys and walks of a ring, or of a Maglev table.
 *
 * cmd_ring builds one ring with the policy's code (src/ring), and shows it as the options say: print_table, dump,
 * show_key or show_walk here, ring_show_change in change.c, ring_write_svg in svg.c. ring_command.h names the other
 * files.
 *
 * Endpoint i of o->endpoints is item i of the ring. cmd_ring owns the options and the ring. */
#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cli.h"
#include "commands.h"
#include "ring_command.h"

struct tc_ring *ring_build(const struct ring_list *l, const struct ring_opts *o)
{
    struct tc_ring_item *items = tc_reallocarray(NULL, l->at.len + 1, sizeof(*items));
    double *weights = tc_reallocarray(NULL, l->at.len + 1, sizeof(*weights)), sum = 0;
    for (size_t i = 0; i < l->at.len; i++) {
        items[i] = (struct tc_ring_item){tc_slice_str(l->at.data[i].key), l->at.data[i].weight};
        sum += (double)l->at.data[i].weight;
    }
    for (size_t i = 0; i < l->at.len; i++)
        weights[i] = l->at.data[i].part > 0 ? l->at.data[i].part : (double)l->at.data[i].weight / sum;
    struct tc_ring *r = o->maglev ? tc_maglev_new(items, weights, l->at.len, (uint32_t)o->table_size)
                                  : tc_ring_new(items, l->at.len, o->min, o->max, o->cap);
    tc_free(items);
    tc_free(weights);
    return r;
}

double *ring_shares(const struct tc_ring *r, size_t n)
{
    double *shares = tc_calloc(n + 1, sizeof(*shares));
    for (uint32_t e = 0; e < tc_ring_size(r); e++)
        shares[tc_ring_item_at(r, e)] +=
            tc_ring_is_table(r) ? 1.0 / tc_ring_size(r) : (double)ring_width(r, e) * 0x1p-64;
    if (!tc_ring_is_table(r) && tc_ring_hash_at(r, 0) == tc_ring_hash_at(r, tc_ring_size(r) - 1))
        shares[tc_ring_item_at(r, 0)] = 1;
    return shares;
}

struct balance {
    double over_mean; /* the largest share of the hash space, divided by the mean share */
    double over_fair; /* the largest quotient of a share and the share that the weight asks for */
};

static struct balance balance_of(const struct ring_opts *o, const double *shares)
{
    struct balance b = {0, 0};
    double total = 0;
    size_t n = o->endpoints.at.len;
    for (size_t i = 0; i < n; i++)
        total += (double)o->endpoints.at.data[i].weight;
    for (size_t i = 0; i < n; i++) {
        const struct ring_endpoint *e = &o->endpoints.at.data[i];
        b.over_mean = TC_MAX(b.over_mean, shares[i] * (double)n);
        b.over_fair = TC_MAX(b.over_fair, shares[i] / (e->part > 0 ? e->part : (double)e->weight / total));
    }
    return b;
}

/* Appends the address and locality of an endpoint as members of JSON; nothing if the endpoint came from the command
 * line. */
static void append_origin(struct tc_buf *b, const struct ring_endpoint *e)
{
    if (!e->address)
        return;
    tc_buf_append_str(b, ",\"address\":");
    cli_json_string(b, e->address, strlen(e->address));
    tc_buf_append_str(b, ",\"locality\":");
    cli_json_string(b, e->locality, strlen(e->locality));
}

static void print_table_json(const struct ring_opts *o, const struct tc_ring *r, const double *shares)
{
    struct tc_buf b = {0};
    struct balance balance = balance_of(o, shares);
    tc_buf_append_str(&b, "{\"endpoints\":[");
    for (size_t i = 0; i < o->endpoints.at.len; i++) {
        const struct ring_endpoint *e = &o->endpoints.at.data[i];
        uint32_t entries = tc_ring_count_of(r, (uint32_t)i);
        tc_buf_append_str(&b, i ? ",{\"key\":" : "{\"key\":");
        cli_json_string(&b, e->key, strlen(e->key));
        append_origin(&b, e);
        tc_buf_printf(&b, ",\"weight\":%llu,\"entries\":%u,\"entry_share\":%.9g,\"hash_share\":%.9g}",
                      (unsigned long long)e->weight, entries, (double)entries / tc_ring_size(r), shares[i]);
    }
    tc_buf_printf(&b, "],\"entries\":%u,\"absent\":%u,", tc_ring_size(r), tc_ring_absent(r));
    if (o->maglev)
        tc_buf_printf(&b, "\"table_size\":%llu,", (unsigned long long)o->table_size);
    else
        tc_buf_printf(&b, "\"min\":%llu,\"max\":%llu,\"cap\":%llu,", (unsigned long long)o->min,
                      (unsigned long long)o->max, (unsigned long long)o->cap);
    tc_buf_printf(&b, "\"largest_over_mean\":%.9g,\"largest_over_fair\":%.9g,\"fingerprint\":\"%016llx\"}\n",
                  balance.over_mean, balance.over_fair, (unsigned long long)tc_ring_fingerprint(r));
    fwrite(b.data, 1, b.len, stdout);
    tc_buf_fini(&b);
}

static void print_table(const struct ring_opts *o, const struct tc_ring *r)
{
    size_t n = o->endpoints.at.len;
    double *shares = ring_shares(r, n);
    int width = (int)strlen("endpoint");
    struct tc_buf shown = {0};
    if (o->json) {
        print_table_json(o, r, shares);
        tc_free(shares);
        return;
    }
    for (size_t i = 0; i < n; i++)
        width = TC_MAX(width, (int)TC_MIN(strlen(cli_shown(&shown, o->endpoints.at.data[i].key)), 60));
    printf("%-*s  %10s  %8s  %10s  %10s\n", width, "endpoint", "weight", "entries", "of entries", "of hashes");
    for (size_t i = 0; i < n; i++) {
        uint32_t entries = tc_ring_count_of(r, (uint32_t)i);
        const struct ring_endpoint *e = &o->endpoints.at.data[i];
        printf("%-*s  %10llu  %8u  %9.3f%%  %9.3f%%%s", width, cli_shown(&shown, e->key), (unsigned long long)e->weight,
               entries, 100.0 * entries / tc_ring_size(r), 100.0 * shares[i], entries ? "" : "  absent: gets no RPCs");
        if (e->address && strcmp(e->key, e->address) != 0)
            printf("  %s", cli_shown(&shown, e->address));
        if (e->address)
            printf("%s%s", strcmp(e->key, e->address) ? " " : "  ", cli_shown(&shown, e->locality));
        putchar('\n');
    }
    tc_buf_fini(&shown);
    if (o->maglev)
        printf("\n%zu endpoints, a Maglev table of %u slots\n", n, tc_ring_size(r));
    else
        printf("\n%zu endpoints, %u entries (min %llu, max %llu, cap %llu)\n", n, tc_ring_size(r),
               (unsigned long long)o->min, (unsigned long long)o->max, (unsigned long long)o->cap);
    if (tc_ring_absent(r))
        printf("%u endpoints have no entry: the %s is too small for them\n", tc_ring_absent(r),
               o->maglev ? "table" : "ring");
    struct balance balance = balance_of(o, shares);
    printf("largest part of the hashes over the mean: %.3f; over what its weight asks for: %.3f\n", balance.over_mean,
           balance.over_fair);
    printf("fingerprint %016llx\n", (unsigned long long)tc_ring_fingerprint(r));
    tc_free(shares);
}

static void dump(const struct ring_opts *o, const struct tc_ring *r)
{
    struct tc_buf b = {0};
    for (uint32_t e = 0; e < tc_ring_size(r); e++) {
        const char *key = o->endpoints.at.data[tc_ring_item_at(r, e)].key;
        unsigned long long hash = tc_ring_hash_at(r, e);
        if (o->json) {
            tc_buf_printf(&b, "{\"hash\":\"%llu\",\"endpoint\":", hash);
            cli_json_string(&b, key, strlen(key));
            tc_buf_append_str(&b, "}\n");
        } else {
            tc_buf_printf(&b, "%llu ", hash);
            cli_append_shown(&b, key, strlen(key));
            tc_buf_append_char(&b, '\n');
        }
        if (b.len > 65536 || e + 1 == tc_ring_size(r)) {
            fwrite(b.data, 1, b.len, stdout);
            tc_buf_clear(&b);
        }
    }
    tc_buf_fini(&b);
}

typedef void (*show_fn)(const struct ring_opts *o, const struct tc_ring *r, struct tc_slice key);

static void show_key(const struct ring_opts *o, const struct tc_ring *r, struct tc_slice key)
{
    uint64_t hash = tc_xxh64_slice(key);
    uint32_t entry = tc_ring_find(r, hash);
    const struct ring_endpoint *e = &o->endpoints.at.data[tc_ring_item_at(r, entry)];
    const char *endpoint = e->key;
    struct tc_buf b = {0};
    if (o->json) {
        tc_buf_append_str(&b, "{\"key\":");
        cli_json_string(&b, key.data, key.len);
        tc_buf_printf(&b, ",\"hash\":\"0x%016llx\",\"ring_index\":%u,\"endpoint\":", (unsigned long long)hash, entry);
        cli_json_string(&b, endpoint, strlen(endpoint));
        append_origin(&b, e);
        tc_buf_append_str(&b, "}\n");
    } else {
        cli_append_shown(&b, key.data, key.len);
        tc_buf_printf(&b, " 0x%016llx ", (unsigned long long)hash);
        cli_append_shown(&b, endpoint, strlen(endpoint));
        tc_buf_append_char(&b, '\n');
    }
    fwrite(b.data, 1, b.len, stdout);
    tc_buf_fini(&b);
}

/* Stores the indexes of endpoints in the order in which the walk (tc_ring_walk) first reaches them, without those that
 * have no entry. `order` has room for all endpoints. Returns how many are stored. */
static size_t walk_order(const struct ring_opts *o, const struct tc_ring *r, uint64_t hash, uint32_t *order)
{
    bool *seen = tc_calloc(o->endpoints.at.len, sizeof(*seen));
    uint32_t first = tc_ring_find(r, hash);
    size_t n = 0, present = o->endpoints.at.len - tc_ring_absent(r);
    for (uint32_t k = 0; n < present; k++) {
        uint32_t i = tc_ring_walk(r, first, k);
        if (!seen[i])
            order[n++] = i;
        seen[i] = true;
    }
    tc_free(seen);
    return n;
}

static void show_walk(const struct ring_opts *o, const struct tc_ring *r, struct tc_slice key)
{
    uint64_t hash = tc_xxh64_slice(key);
    uint32_t *order = tc_calloc(o->endpoints.at.len, sizeof(*order));
    size_t n = walk_order(o, r, hash, order);
    struct tc_buf b = {0};
    if (o->json) {
        tc_buf_append_str(&b, "{\"key\":");
        cli_json_string(&b, key.data, key.len);
        tc_buf_printf(&b, ",\"hash\":\"0x%016llx\",\"walk\":[", (unsigned long long)hash);
        for (size_t i = 0; i < n; i++) {
            const char *endpoint = o->endpoints.at.data[order[i]].key;
            tc_buf_append_str(&b, i ? "," : "");
            cli_json_string(&b, endpoint, strlen(endpoint));
        }
        tc_buf_append_str(&b, "]}\n");
    } else {
        if (o->keys.len > 1) {
            cli_append_shown(&b, key.data, key.len);
            tc_buf_printf(&b, " 0x%016llx\n", (unsigned long long)hash);
        }
        for (size_t i = 0; i < n; i++) {
            const char *endpoint = o->endpoints.at.data[order[i]].key;
            tc_buf_append_str(&b, o->keys.len > 1 ? "  " : "");
            cli_append_shown(&b, endpoint, strlen(endpoint));
            tc_buf_append_char(&b, '\n');
        }
    }
    fwrite(b.data, 1, b.len, stdout);
    tc_buf_fini(&b);
    tc_free(order);
}

static int for_each_key(const struct ring_opts *o, const struct tc_ring *r, show_fn show)
{
    for (size_t i = 0; i < o->keys.len; i++) {
        if (strcmp(o->keys.data[i], "-") != 0) {
            show(o, r, tc_slice_str(o->keys.data[i]));
            continue;
        }
        struct tc_buf text = {0};
        int rc = cli_read_file(RING_COMMAND, "-", &text);
        struct tc_slice rest = tc_buf_slice(&text), line;
        if (rest.len && rest.data[rest.len - 1] == '\n')
            rest.len--;
        bool more = rest.len > 0;
        while (rc == 0 && tc_slice_split(&rest, &more, '\n', &line)) {
            if (line.len && line.data[line.len - 1] == '\r')
                line.len--;
            show(o, r, line);
        }
        tc_buf_fini(&text);
        if (rc)
            return rc;
    }
    return 0;
}

static int show(const struct ring_opts *o, const struct tc_ring *r)
{
    if (o->svg) {
        int rc = ring_write_svg(o, r);
        if (rc || strcmp(o->svg, "-") == 0)
            return rc;
    }
    switch (o->mode) {
    case RING_TABLE:
        print_table(o, r);
        return 0;
    case RING_DUMP:
        dump(o, r);
        return 0;
    case RING_KEYS:
        return for_each_key(o, r, show_key);
    case RING_WALK:
        return for_each_key(o, r, show_walk);
    case RING_CHANGE:
        return ring_show_change(o, r);
    }
    return 0;
}

int cmd_ring(int argc, char **argv)
{
    struct ring_opts o = {0};
    int rc = ring_parse(argc, argv, &o);
    if (rc == 0 && !o.help) {
        struct tc_ring *r = ring_build(&o.endpoints, &o);
        rc = show(&o, r);
        tc_ring_unref(r);
    }
    ring_opts_fini(&o);
    return rc;
}
