/* The oracle's table, in plain steps:
 *
 * A host's part is its weight over the sum of all hosts' weights in the priority. With locality_weights the part is the
 * locality's weight over the sum of the weights of the priority's localities that have hosts, times the host's weight
 * over the sum of the hosts' weights in the locality.
 *
 * Hosts take turns in the order of their addresses as text. A slot costs the largest part of all. In round N, from 1
 * on, a host claims a slot if N times its part is at least what it has paid so far. Its way through the table begins at
 * XXH64(address, 0) modulo the size and goes on in strides of XXH64(address, 1) modulo (size - 1), plus 1. It claims
 * the first slot of its way that is free.
 *
 * The last four tables are kept, in static memory, since a table takes a while to fill. */
#include "sim/maglev_model.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { DEFAULT_SIZE = 65537, TABLES = 4, HOSTS_MAX = SIM_LOCALITIES * SIM_ENDPOINTS };

struct taker {
    unsigned host;
    double part, paid;
    uint64_t place, stride;
};

struct table {
    size_t n;
    unsigned size;
    struct taker takers[HOSTS_MAX]; /* as they were before the first round */
    signed char slots[DEFAULT_SIZE];
};

static int taker_order(const void *a, const void *b)
{
    return strcmp(sim_host_address(((const struct taker *)a)->host), sim_host_address(((const struct taker *)b)->host));
}

static unsigned weight_of(const struct sim_locality *l)
{
    unsigned sum = 0;
    for (size_t k = 0; k < l->n_endpoints; k++)
        sum += l->endpoints[k].weight;
    return sum;
}

/* Fills in the hosts of the priority, sorted by address. Returns how many. */
static size_t takers_of(const struct sim_cluster *c, unsigned priority, unsigned size, struct taker *takers)
{
    double all = 0, localities = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->n_localities; i++)
        if (c->localities[i].priority == priority && c->localities[i].n_endpoints > 0) {
            all += weight_of(&c->localities[i]);
            localities += c->localities[i].weight;
        }
    for (size_t i = 0; i < c->n_localities; i++) {
        const struct sim_locality *l = &c->localities[i];
        double part = l->weight / localities;
        for (size_t k = 0; l->priority == priority && k < l->n_endpoints; k++) {
            const char *address = sim_host_address(l->endpoints[k].host);
            struct taker *t = memset(&takers[n++], 0, sizeof(*t));
            t->host = l->endpoints[k].host;
            t->part = c->locality_weights ? l->endpoints[k].weight * part / weight_of(l) : l->endpoints[k].weight / all;
            t->place = XXH64(address, strlen(address), 0) % size;
            t->stride = XXH64(address, strlen(address), 1) % (size - 1) + 1;
        }
    }
    qsort(takers, n, sizeof(*takers), taker_order);
    return n;
}

static void table_fill(struct table *table)
{
    struct taker takers[HOSTS_MAX];
    double price = 0;
    unsigned free_slots = table->size;
    memcpy(takers, table->takers, sizeof(takers));
    memset(table->slots, -1, sizeof(table->slots));
    for (size_t i = 0; i < table->n; i++)
        price = takers[i].part > price ? takers[i].part : price;
    for (unsigned number = 1; free_slots > 0 && table->n > 0; number++)
        for (size_t i = 0; i < table->n && free_slots > 0; i++) {
            struct taker *t = &takers[i];
            if (number * t->part < t->paid)
                continue;
            while (table->slots[t->place] >= 0)
                t->place = (t->place + t->stride) % table->size;
            table->slots[t->place] = (signed char)t->host;
            t->paid += price;
            free_slots--;
        }
}

static const struct table *table_of(const struct sim_cluster *c, unsigned priority)
{
    static struct table tables[TABLES];
    static unsigned oldest;
    struct taker takers[HOSTS_MAX];
    unsigned size = c->table_size ? c->table_size : DEFAULT_SIZE;
    memset(takers, 0, sizeof(takers));
    size_t n = takers_of(c, priority, size, takers);
    for (unsigned i = 0; i < TABLES; i++)
        if (tables[i].size == size && tables[i].n == n && memcmp(tables[i].takers, takers, sizeof(takers)) == 0)
            return &tables[i];
    struct table *table = &tables[oldest++ % TABLES];
    table->n = n;
    table->size = size;
    memcpy(table->takers, takers, sizeof(takers));
    table_fill(table);
    return table;
}

int maglev_model_host(const struct sim_cluster *cluster, unsigned priority, const char *value,
                      const bool reachable[SIM_HOSTS])
{
    const struct table *table = table_of(cluster, priority);
    uint64_t slot = XXH64(value, strlen(value), 0) % table->size;
    for (unsigned k = 0; k < table->size && table->n > 0; k++) {
        int host = table->slots[(slot + k) % table->size];
        if (reachable[host])
            return host;
    }
    return -1;
}
