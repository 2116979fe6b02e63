/* The endpoints of a ring or a table, and their states. A set is filled (endpoints_update.c), gets its ring, takes over
 * children of the set that it replaces, and is in use until the next set replaces it. Then it keeps its states while a
 * picker holds it. Invariants between calls, once the set has its ring:
 *
 * - counts[] adds up to on_ring, and counts endpoints with an entry alone; `idle` holds those of them that are IDLE.
 * - ready[i] is the picker of endpoint i if its state is READY and loads do not count, else NULL.
 * - An endpoint without an entry is IDLE, and has neither child nor picker.
 * - If the set has `balance`, balance->serving holds the sums of `weights`, up to rounding errors. */
#include "lb/ring_hash/endpoints.h"

#include <stdlib.h>

#include "base/mem.h"

/* One block: the set, its endpoints, and `ready` behind them, so that the pointers that picks read are close together.
 */
struct tc_rh_set *tc_rh_set_new(size_t capacity, struct tc_ring_hash_config *config)
{
    struct tc_rh_set *set =
        tc_calloc(1, sizeof(*set) + capacity * (sizeof(struct tc_rh_endpoint) + sizeof(struct tc_picker *)));
    set->ready = (struct tc_picker **)(void *)&set->at[capacity];
    set->config = (struct tc_ring_hash_config *)tc_lb_config_ref(&config->base);
    tc_lref_init(&set->ref);
    return set;
}

static void balance_free(struct tc_rh_set *set)
{
    struct tc_rh_balance *b = set->balance;
    if (!b)
        return;
    for (uint32_t i = 0; i < set->n; i++)
        tc_active_requests_unref(b->active[i]);
    if (b->total->arg == set)
        b->total->on_change = NULL;
    tc_active_requests_unref(b->total);
    tc_free(b->active);
    tc_free(b->weights);
    tc_free(b->order);
    tc_free(b);
}

void tc_rh_set_unref(struct tc_rh_set *set)
{
    if (!set || !tc_lref_dec(&set->ref))
        return;
    for (uint32_t i = 0; i < set->n; i++) {
        tc_picker_unref(set->at[i].picker);
        tc_endpoint_unref(set->at[i].endpoint);
    }
    tc_index_set_fini(&set->idle);
    tc_vec_fini(&set->wanted);
    tc_ring_unref(set->ring);
    balance_free(set);
    tc_lb_config_unref(&set->config->base);
    tc_rstr_unref(set->resolution_note);
    tc_free(set);
}

void tc_rh_set_add(struct tc_rh_set *set, struct tc_endpoint *endpoint, uint64_t weight)
{
    struct tc_rh_endpoint *e = &set->at[set->n];
    e->endpoint = tc_endpoint_ref(endpoint);
    e->weight = weight;
    e->state = TORC_CONNECTIVITY_IDLE;
    set->n++;
}

void tc_rh_set_take_ring(struct tc_rh_set *set, struct tc_ring *ring)
{
    set->ring = ring;
    set->on_ring = set->counts[TORC_CONNECTIVITY_IDLE] = set->n - tc_ring_absent(ring);
    tc_index_set_init(&set->idle, set->n);
    for (uint32_t i = 0; i < set->n; i++)
        if (tc_ring_count_of(ring, i) > 0)
            tc_index_set_add(&set->idle, i);
}

static void set_ready(struct tc_rh_set *set, uint32_t i)
{
    const struct tc_rh_endpoint *e = &set->at[i];
    set->ready[i] = e->state == TORC_CONNECTIVITY_READY && !set->config->balance_factor ? e->picker : NULL;
}

void tc_rh_set_move(struct tc_rh_set *set, uint32_t i, struct tc_rh_endpoint *from)
{
    struct tc_rh_endpoint *e = &set->at[i];
    e->picker = from->picker ? tc_picker_ref(from->picker) : NULL;
    if (from->state != TORC_CONNECTIVITY_IDLE) {
        tc_index_set_remove(&set->idle, i);
        set->counts[TORC_CONNECTIVITY_IDLE]--;
        set->counts[from->state]++;
        e->state = from->state;
    }
    set_ready(set, i);
    e->child = from->child;
    from->child = NULL;
    if (e->child) {
        e->child->index = i;
        e->changed = !tc_endpoint_eq(e->endpoint, from->endpoint);
    }
}

bool tc_rh_same_key(const struct tc_endpoint *a, const struct tc_endpoint *b)
{
    return a == b || (tc_rstr_eq(a->hash_key, b->hash_key) && tc_rstr_eq(a->hostname, b->hostname) &&
                      tc_addr_eq(&a->addrs[0], &b->addrs[0]));
}

bool tc_rh_set_same_keys(const struct tc_rh_set *a, const struct tc_rh_set *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct tc_endpoint *of_a = a->at[i].endpoint, *of_b = b->at[i].endpoint;
        if (a->at[i].weight != b->at[i].weight || !tc_rh_same_key(of_a, of_b) ||
            of_a->locality_weight != of_b->locality_weight || tc_locality_cmp(of_a->locality, of_b->locality) != 0)
            return false;
    }
    return true;
}

static int by_locality(const void *pa, const void *pb)
{
    const struct tc_rh_endpoint *const *a = pa, *const *b = pb;
    return tc_locality_cmp((*a)->endpoint->locality, (*b)->endpoint->locality);
}

/* Envoy's operations, in its order. Sums of weights are whole numbers, so the order of additions does not matter as
 * long as doubles hold the sums exactly (up to 2^53, which A42's products may exceed). The sort is for
 * random_subsetting, whose subset does not keep the endpoints of a locality together. */
void tc_rh_set_weights(const struct tc_rh_set *set, double *weights)
{
    bool localities = set->config->locality_weighted;
    double sum_of_localities = 0;
    const struct tc_rh_endpoint **order = tc_reallocarray(NULL, set->n, sizeof(*order));
    for (uint32_t i = 0; i < set->n; i++)
        order[i] = &set->at[i];
    if (localities)
        qsort(order, set->n, sizeof(*order), by_locality);
    for (uint32_t i = 0; i < set->n; i++)
        if (i == 0 || by_locality(&order[i - 1], &order[i]) != 0)
            sum_of_localities += TC_MAX(order[i]->endpoint->locality_weight, 1);
    for (uint32_t first = 0, end; first < set->n; first = end) {
        double sum = 0, part = localities ? TC_MAX(order[first]->endpoint->locality_weight, 1) / sum_of_localities : 1;
        for (end = first; end < set->n && (!localities || by_locality(&order[first], &order[end]) == 0); end++)
            sum += (double)order[end]->weight;
        for (uint32_t i = first; i < end; i++)
            weights[order[i] - set->at] = (double)order[i]->weight * part / sum;
    }
    tc_free(order);
}

void tc_rh_set_state(struct tc_rh_set *set, uint32_t i, enum torc_connectivity state, struct tc_picker *picker)
{
    struct tc_rh_endpoint *e = &set->at[i];
    tc_picker_unref(e->picker);
    e->picker = picker;
    if (e->state == state) {
        set_ready(set, i);
        return;
    }
    if (set->balance) {
        double *serving = set->balance->serving, weight = set->balance->weights[i];
        serving[0] += weight * ((e->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE) -
                                (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE));
        serving[1] += weight * ((state == TORC_CONNECTIVITY_READY) - (e->state == TORC_CONNECTIVITY_READY));
    }
    if (e->state == TORC_CONNECTIVITY_IDLE)
        tc_index_set_remove(&set->idle, i);
    if (state == TORC_CONNECTIVITY_IDLE)
        tc_index_set_add(&set->idle, i);
    set->counts[e->state]--;
    set->counts[state]++;
    e->state = (uint8_t)state;
    set_ready(set, i);
    if (set->balance)
        tc_rh_set_round_serving(set);
}

void tc_rh_set_round_serving(struct tc_rh_set *set)
{
    if (!set->counts[TORC_CONNECTIVITY_TRANSIENT_FAILURE] && set->on_ring == set->n)
        set->balance->serving[0] = 1;
    if (set->counts[TORC_CONNECTIVITY_READY] == set->n)
        set->balance->serving[1] = 1;
}

/* A42 with A61: one endpoint in TRANSIENT_FAILURE does not fail a policy that has others to try. */
enum torc_connectivity tc_rh_set_aggregate(const struct tc_rh_set *set)
{
    if (set->counts[TORC_CONNECTIVITY_READY])
        return TORC_CONNECTIVITY_READY;
    if (set->counts[TORC_CONNECTIVITY_TRANSIENT_FAILURE] >= 2)
        return TORC_CONNECTIVITY_TRANSIENT_FAILURE;
    if (set->counts[TORC_CONNECTIVITY_CONNECTING])
        return TORC_CONNECTIVITY_CONNECTING;
    if (set->counts[TORC_CONNECTIVITY_TRANSIENT_FAILURE] == 1 && set->on_ring > 1)
        return TORC_CONNECTIVITY_CONNECTING;
    if (set->counts[TORC_CONNECTIVITY_IDLE])
        return TORC_CONNECTIVITY_IDLE;
    return TORC_CONNECTIVITY_TRANSIENT_FAILURE;
}

uint32_t tc_rh_set_any_idle(const struct tc_rh_set *set, struct tc_rng *rng)
{
    uint32_t i = tc_index_set_next(&set->idle, (uint32_t)tc_rng_below(rng, set->n));
    return i == TC_INDEX_NONE ? tc_index_set_next(&set->idle, 0) : i;
}

void tc_rh_set_want(struct tc_rh_set *set, uint32_t i)
{
    if (!set->owner || set->at[i].wanted)
        return;
    set->at[i].wanted = true;
    *tc_vec_push(&set->wanted) = i;
    tc_loop_defer(set->loop, &set->want_task);
}
