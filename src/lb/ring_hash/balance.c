/* Bounded loads, in Envoy's arithmetic (BL01 to BL13 of test/cases.md):
 *
 *     bound of all  = ((RPCs of all endpoints + 1) * factor + 99) / 100, in whole numbers
 *     slots         = ceil(bound of all * part of the weight), at least 1
 *     load          = RPCs of the endpoint / slots
 *
 * An endpoint whose load is at most 1 takes an RPC, so it may reach slots + 1 RPCs. The walk of an RPC whose endpoint
 * has a load above 1 is a shuffle of the list by the numbers of mt19937, with the low 32 bits of the hash as seed: RPCs
 * of one key overflow to the same endpoints in the same order. The shuffle is made as far as it is needed, and undone.
 *
 * Envoy's list holds healthy endpoints. Here endpoints in TRANSIENT_FAILURE or without an entry on the ring count as
 * absent: an endpoint's part of the weight is its part among the endpoints that are left. An RPC with a random hash
 * goes to READY endpoints alone (A76). For such an RPC the parts are those among the READY endpoints, of which at least
 * one is within its bound then. */
#include "lb/ring_hash/balance.h"

#include <math.h>

#include "base/mem.h"

enum { WORDS = 624, FAR = 397 };

/* mt19937 (Matsumoto and Nishimura, 1998), as the C++ library has it. */
struct twister {
    uint32_t words[WORDS];
    unsigned at;
};

static void twister_seed(struct twister *t, uint32_t seed)
{
    t->at = 0;
    t->words[0] = seed;
    for (unsigned i = 1; i < WORDS; i++)
        t->words[i] = UINT32_C(1812433253) * (t->words[i - 1] ^ t->words[i - 1] >> 30) + i;
}

static uint32_t twister_next(struct twister *t)
{
    uint32_t *w = t->words;
    unsigned i = t->at, next = (i + 1) % WORDS;
    uint32_t y = (w[i] & UINT32_C(0x80000000)) | (w[next] & UINT32_C(0x7fffffff));
    y = w[i] = w[(i + FAR) % WORDS] ^ y >> 1 ^ (y & 1 ? UINT32_C(0x9908b0df) : 0);
    t->at = next;
    y ^= y >> 11;
    y ^= y << 7 & UINT32_C(0x9d2c5680);
    y ^= y << 15 & UINT32_C(0xefc60000);
    return y ^ y >> 18;
}

/* Returns a uniform number below n: repeats draws that would favour some numbers. */
static uint32_t twister_below(struct twister *t, uint32_t n)
{
    uint64_t step = ((uint64_t)1 << 32) / n, x;
    do
        x = twister_next(t) / step;
    while (x >= n);
    return (uint32_t)x;
}

static bool endpoint_counts(const struct tc_rh_set *set, uint32_t i, bool ready)
{
    return ready ? set->at[i].state == TORC_CONNECTIVITY_READY
                 : set->at[i].state != TORC_CONNECTIVITY_TRANSIENT_FAILURE && tc_ring_count_of(set->ring, i) > 0;
}

/* The sum of all RPCs changed. After the end of an RPC, picks are tried again if one waits that was passed on. */
static void on_total(struct tc_active_requests *total)
{
    struct tc_rh_set *set = total->arg;
    struct tc_rh_balance *b = set->balance;
    bool ended = total->n < b->seen;
    b->seen = total->n;
    if (!ended || !b->waiting || !set->owner)
        return;
    b->waiting = false;
    b->retry = true;
    tc_loop_defer(set->loop, &set->want_task);
}

void tc_rh_balance_start(struct tc_rh_set *set, const struct tc_rh_set *old, const uint32_t *was)
{
    if (!set->config->balance_factor)
        return;
    const struct tc_rh_balance *before = old ? old->balance : NULL;
    struct tc_rh_balance *b = TC_NEW(struct tc_rh_balance);
    b->total = before ? tc_active_requests_ref(before->total) : tc_active_requests_new(NULL);
    b->total->on_change = on_total;
    b->total->arg = set;
    b->seen = b->total->n;
    b->active = tc_calloc(set->n, sizeof(struct tc_active_requests *));
    b->weights = tc_reallocarray(NULL, set->n, sizeof(*b->weights));
    b->order = tc_reallocarray(NULL, set->n, 2 * sizeof(*b->order));
    b->swaps = b->order + set->n;
    for (uint32_t i = 0; i < set->n; i++) {
        b->active[i] = before && was[i] != TC_RING_ADDED ? tc_active_requests_ref(before->active[was[i]])
                                                         : tc_active_requests_new(b->total);
        b->order[i] = i;
    }
    tc_rh_set_weights(set, b->weights);
    for (uint32_t i = 0; i < 2 * set->n; i++)
        b->serving[i % 2] += endpoint_counts(set, i / 2, i % 2) ? b->weights[i / 2] : 0;
    set->balance = b;
    tc_rh_set_round_serving(set);
}

/* Returns the load of endpoint i among the endpoints that a pick may choose. */
static double endpoint_load(const struct tc_rh_set *set, uint32_t i, bool ready)
{
    const struct tc_rh_balance *b = set->balance;
    /* 64 bits: Envoy's 32 would wrap at large factors. */
    uint64_t all = (((uint64_t)b->total->n + 1) * set->config->balance_factor + 99) / 100;
    double whole = b->serving[ready], part = b->weights[i];
    part = whole == 1 ? part : part < whole ? part / whole : 1;
    return b->active[i]->n / fmax(ceil((double)all * part), 1);
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t was = *a;
    *a = *b;
    *b = was;
}

uint32_t tc_rh_balance_choose(const struct tc_rh_set *set, uint32_t i, uint64_t hash, bool ready)
{
    double least = endpoint_load(set, i, ready), load;
    if (least <= 1)
        return i;
    struct twister t;
    uint32_t *order = set->balance->order, *swaps = set->balance->swaps, chosen = i, step = 0;
    twister_seed(&t, (uint32_t)hash);
    for (; step < set->n && least > 1; step++) {
        swaps[step] = step + twister_below(&t, set->n - step);
        swap(&order[step], &order[swaps[step]]);
        uint32_t candidate = order[step];
        if (candidate == i || !endpoint_counts(set, candidate, ready))
            continue;
        if ((load = endpoint_load(set, candidate, ready)) < least) {
            least = load;
            chosen = candidate;
        }
    }
    while (step-- > 0)
        swap(&order[step], &order[swaps[step]]);
    return chosen;
}
