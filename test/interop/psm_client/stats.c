/* The counts of the interop client, and the driver's questions about them.
 *
 * psm_stats_accumulated answers with all counts at once. psm_stats_watch opens a watch over a block of RPCs, by their
 * numbers: each RPC of the block that ends is counted in the watch, by backend, and when `left` is 0, or the timer
 * fires, the answer is made and the watch is freed.
 *
 * RPCs end on the runtime's thread, questions come on the loop of the stats port; `lock` guards the counts and the
 * list of watches. A watch that is complete leaves the list under the lock and goes to the loop by a post. */
#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/table.h"
#include "psm.h"

#define CODES 17 /* gRPC's status codes */

static const char *const names[PSM_RPCS] = {"EMPTY_CALL", "UNARY_CALL"};      /* in accumulated stats */
static const char *const method_names[PSM_RPCS] = {"EmptyCall", "UnaryCall"}; /* in distributions */

struct psm_stats {
    pthread_mutex_t lock; /* guards everything below, and the watches in the list */
    struct tc_loop *loop;
    uint64_t next;
    struct {
        int32_t started, results[CODES];
    } rpcs[PSM_RPCS];
    struct tc_link watches;
};

/* The requested metadata of one RPC; in the watch's arena. */
struct rpc_metadata {
    struct rpc_metadata *next;
    size_t n;
    Grpc__Testing__LoadBalancerStatsResponse__MetadataEntry *entries;
};

struct peer {
    UT_hash_handle hh;
    const char *name; /* in the watch's arena */
    int32_t counts[PSM_RPCS];
    struct rpc_metadata *metadata;
    size_t n_metadata;
};

/* A question that waits for its block of RPCs. While in the list it belongs to both threads under the lock; afterwards
 * to the loop. */
struct watch {
    struct tc_link link;
    struct psm_stats *stats;
    struct tc_server_call *call; /* NULL if the driver gave up */
    uint64_t first, end, left;
    int32_t failures;
    struct peer *peers;
    char **keys;
    size_t n_keys;
    struct tc_arena arena;
    struct tc_timer timer;
    struct tc_task complete;
};

struct psm_stats *psm_stats_new(struct tc_loop *loop)
{
    struct psm_stats *s = TC_NEW(struct psm_stats);
    pthread_mutex_init(&s->lock, NULL);
    s->loop = loop;
    tc_list_init(&s->watches);
    return s;
}

static void watch_free(struct watch *w)
{
    tc_timer_stop(&w->timer);
    HASH_CLEAR(hh, w->peers);
    tc_arena_fini(&w->arena);
    tc_free(w);
}

void psm_stats_free(struct psm_stats *s)
{
    tc_loop_turn(s->loop, 0); /* posted answers */
    while (!tc_list_empty(&s->watches)) {
        struct watch *w = TC_CONTAINER_OF(s->watches.next, struct watch, link);
        tc_list_remove(&w->link);
        watch_free(w);
    }
    pthread_mutex_destroy(&s->lock);
    tc_free(s);
}

uint64_t psm_stats_started(struct psm_stats *s, enum psm_rpc rpc)
{
    pthread_mutex_lock(&s->lock);
    uint64_t number = s->next++;
    s->rpcs[rpc].started++;
    pthread_mutex_unlock(&s->lock);
    return number;
}

/* --- one RPC into the watches that want it --- */

static struct peer *peer_of(struct watch *w, const char *name)
{
    struct peer *p = NULL;
    HASH_FIND_STR(w->peers, name, p);
    if (!p) {
        p = tc_arena_calloc(&w->arena, 1, sizeof(*p));
        p->name = tc_arena_dup(&w->arena, tc_slice_str(name));
        HASH_ADD_KEYPTR(hh, w->peers, p->name, strlen(p->name), p);
    }
    return p;
}

static bool is_wanted(const struct watch *w, const char *name)
{
    for (size_t i = 0; i < w->n_keys; i++)
        if (strcmp(w->keys[i], "*") == 0 || strcasecmp(w->keys[i], name) == 0)
            return true;
    return false;
}

static void take_metadata(struct watch *w, struct rpc_metadata *m, const torc_metadata *from,
                          Grpc__Testing__LoadBalancerStatsResponse__MetadataType type)
{
    for (size_t i = 0; i < torc_metadata_count(from); i++) {
        const char *name;
        const void *value;
        size_t len;
        torc_metadata_at(from, i, &name, &value, &len);
        if (!is_wanted(w, name))
            continue;
        Grpc__Testing__LoadBalancerStatsResponse__MetadataEntry *e = &m->entries[m->n++];
        grpc__testing__load_balancer_stats_response__metadata_entry__init(e);
        e->key = tc_arena_dup(&w->arena, tc_slice_str(name));
        e->value = tc_arena_dup(&w->arena, tc_slice_of(value, len));
        e->type = type;
    }
}

static void record(struct watch *w, enum psm_rpc rpc, const torc_result *result, const char *hostname)
{
    if (!hostname) {
        w->failures++;
        return;
    }
    struct peer *p = peer_of(w, hostname);
    p->counts[rpc]++;
    if (w->n_keys == 0)
        return;
    size_t most = torc_metadata_count(torc_result_headers(result)) + torc_metadata_count(torc_result_trailers(result));
    struct rpc_metadata *m = tc_arena_calloc(&w->arena, 1, sizeof(*m));
    m->entries = tc_arena_calloc(&w->arena, most + 1, sizeof(*m->entries));
    take_metadata(w, m, torc_result_headers(result),
                  GRPC__TESTING__LOAD_BALANCER_STATS_RESPONSE__METADATA_TYPE__INITIAL);
    take_metadata(w, m, torc_result_trailers(result),
                  GRPC__TESTING__LOAD_BALANCER_STATS_RESPONSE__METADATA_TYPE__TRAILING);
    m->next = p->metadata;
    p->metadata = m;
    p->n_metadata++;
}

void psm_stats_ended(struct psm_stats *s, uint64_t number, enum psm_rpc rpc, const torc_result *result,
                     const char *hostname)
{
    struct tc_link *link, *next;
    pthread_mutex_lock(&s->lock);
    if (torc_result_code(result) >= 0 && torc_result_code(result) < CODES)
        s->rpcs[rpc].results[torc_result_code(result)]++;
    for (link = s->watches.next; link != &s->watches; link = next) {
        struct watch *w = TC_CONTAINER_OF(link, struct watch, link);
        next = link->next;
        if (number < w->first || number >= w->end)
            continue;
        record(w, rpc, result, hostname);
        if (--w->left == 0) {
            tc_list_remove(&w->link);
            tc_loop_post(s->loop, &w->complete);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

/* --- answers --- */

typedef Grpc__Testing__LoadBalancerStatsResponse__RpcsByPeerEntry count_entry;
typedef Grpc__Testing__LoadBalancerStatsResponse__RpcsByPeer__RpcsByPeerEntry method_count_entry;
typedef Grpc__Testing__LoadBalancerStatsResponse__RpcsByPeer by_peer;
typedef Grpc__Testing__LoadBalancerStatsResponse__RpcsByMethodEntry method_entry;
typedef Grpc__Testing__LoadBalancerStatsResponse__MetadataByPeer metadata_by_peer;
typedef Grpc__Testing__LoadBalancerStatsResponse__RpcMetadata packed_metadata;
typedef Grpc__Testing__LoadBalancerStatsResponse__MetadatasByPeerEntry metadata_entry;

/* n pointers to n messages, in the arena. */
static void *make(struct tc_arena *a, size_t n, size_t size, const void *initial, void *pointers)
{
    char *messages = tc_arena_calloc(a, n + 1, size);
    void **out = pointers;
    for (size_t i = 0; i < n; i++) {
        out[i] = messages + i * size;
        memcpy(out[i], initial, size);
    }
    return out;
}

#define MAKE(arena, n, type, INIT)                                                                                     \
    make(arena, n, sizeof(type), &(type)INIT, tc_arena_calloc(arena, (n) + 1, sizeof(void *)))

static void put_method(struct watch *w, method_entry *out, unsigned rpc)
{
    size_t n = HASH_COUNT(w->peers), i = 0;
    out->key = (char *)method_names[rpc];
    out->value = tc_arena_calloc(&w->arena, 1, sizeof(*out->value));
    grpc__testing__load_balancer_stats_response__rpcs_by_peer__init(out->value);
    out->value->rpcs_by_peer =
        MAKE(&w->arena, n, method_count_entry,
             GRPC__TESTING__LOAD_BALANCER_STATS_RESPONSE__RPCS_BY_PEER__RPCS_BY_PEER_ENTRY__INIT);
    for (struct peer *p = w->peers; p; p = p->hh.next) {
        if (p->counts[rpc] == 0)
            continue;
        out->value->rpcs_by_peer[i]->key = (char *)p->name;
        out->value->rpcs_by_peer[i++]->value = p->counts[rpc];
    }
    out->value->n_rpcs_by_peer = i;
}

static void put_metadata(struct watch *w, metadata_entry *out, const struct peer *p)
{
    size_t i = 0;
    out->key = (char *)p->name;
    out->value = tc_arena_calloc(&w->arena, 1, sizeof(*out->value));
    grpc__testing__load_balancer_stats_response__metadata_by_peer__init(out->value);
    out->value->n_rpc_metadata = p->n_metadata;
    out->value->rpc_metadata = MAKE(&w->arena, p->n_metadata, packed_metadata,
                                    GRPC__TESTING__LOAD_BALANCER_STATS_RESPONSE__RPC_METADATA__INIT);
    for (const struct rpc_metadata *m = p->metadata; m; m = m->next) {
        packed_metadata *rpc = out->value->rpc_metadata[i++];
        rpc->n_metadata = m->n;
        rpc->metadata = tc_arena_calloc(&w->arena, m->n + 1, sizeof(*rpc->metadata));
        for (size_t e = 0; e < m->n; e++)
            rpc->metadata[e] = &m->entries[e];
    }
}

static void answer(struct watch *w)
{
    Grpc__Testing__LoadBalancerStatsResponse r = GRPC__TESTING__LOAD_BALANCER_STATS_RESPONSE__INIT;
    size_t n = HASH_COUNT(w->peers), i = 0;
    r.num_failures = w->failures;
    r.n_rpcs_by_peer = n;
    r.rpcs_by_peer =
        MAKE(&w->arena, n, count_entry, GRPC__TESTING__LOAD_BALANCER_STATS_RESPONSE__RPCS_BY_PEER_ENTRY__INIT);
    r.n_rpcs_by_method = PSM_RPCS;
    r.rpcs_by_method = MAKE(&w->arena, PSM_RPCS, method_entry,
                            GRPC__TESTING__LOAD_BALANCER_STATS_RESPONSE__RPCS_BY_METHOD_ENTRY__INIT);
    r.n_metadatas_by_peer = w->n_keys ? n : 0;
    r.metadatas_by_peer =
        MAKE(&w->arena, n, metadata_entry, GRPC__TESTING__LOAD_BALANCER_STATS_RESPONSE__METADATAS_BY_PEER_ENTRY__INIT);
    for (unsigned rpc = 0; rpc < PSM_RPCS; rpc++)
        put_method(w, r.rpcs_by_method[rpc], rpc);
    for (struct peer *p = w->peers; p; p = p->hh.next, i++) {
        r.rpcs_by_peer[i]->key = (char *)p->name;
        r.rpcs_by_peer[i]->value = p->counts[PSM_EMPTY_CALL] + p->counts[PSM_UNARY_CALL];
        if (w->n_keys)
            put_metadata(w, r.metadatas_by_peer[i], p);
    }
    psm_reply(w->call, &r.base);
}

static void finish(struct watch *w)
{
    static const struct tc_server_call_events none;
    if (w->call) {
        tc_server_call_set_events(w->call, &none, NULL);
        answer(w);
    }
    watch_free(w);
}

static void on_complete(struct tc_task *task)
{
    finish(TC_CONTAINER_OF(task, struct watch, complete));
}

/* Returns true if the watch was still waiting; otherwise its completion is posted and will come. */
static bool take_out(struct watch *w)
{
    pthread_mutex_lock(&w->stats->lock);
    bool waiting = tc_list_linked(&w->link);
    if (waiting)
        tc_list_remove(&w->link);
    pthread_mutex_unlock(&w->stats->lock);
    return waiting;
}

static void on_timeout(struct tc_timer *timer)
{
    struct watch *w = TC_CONTAINER_OF(timer, struct watch, timer);
    if (take_out(w))
        finish(w);
}

static void on_call_end(void *arg, const struct tc_status *why)
{
    struct watch *w = arg;
    (void)why;
    w->call = NULL;
    if (take_out(w))
        finish(w);
}

void psm_stats_watch(struct psm_stats *s, struct tc_server_call *call,
                     const Grpc__Testing__LoadBalancerStatsRequest *request)
{
    static const struct tc_server_call_events events = {.on_end = on_call_end};
    struct watch *w = TC_NEW(struct watch);
    w->stats = s;
    w->call = call;
    w->left = (uint64_t)request->num_rpcs;
    tc_arena_init(&w->arena, 4096, SIZE_MAX);
    w->n_keys = request->n_metadata_keys;
    w->keys = tc_arena_calloc(&w->arena, w->n_keys + 1, sizeof(*w->keys));
    for (size_t i = 0; i < w->n_keys; i++)
        w->keys[i] = tc_arena_dup(&w->arena, tc_slice_str(request->metadata_keys[i]));
    tc_task_init(&w->complete, on_complete);
    tc_timer_init(&w->timer, s->loop, on_timeout);
    tc_timer_start(&w->timer, (uint64_t)request->timeout_sec * 1000);
    tc_server_call_set_events(call, &events, w);
    pthread_mutex_lock(&s->lock);
    w->first = s->next;
    w->end = w->first + w->left;
    tc_list_append(&s->watches, &w->link);
    pthread_mutex_unlock(&s->lock);
}

typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__NumRpcsStartedByMethodEntry started_entry;
typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__NumRpcsSucceededByMethodEntry succeeded_entry;
typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__NumRpcsFailedByMethodEntry failed_entry;
typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__StatsPerMethodEntry stats_entry;
typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__MethodStats method_stats;
typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__MethodStats__ResultEntry result_entry;

/* Returns how many succeeded; *failed counts the others. */
static int32_t put_results(struct tc_arena *a, method_stats *out, const int32_t *results, int32_t *failed)
{
    out->result = MAKE(a, CODES, result_entry,
                       GRPC__TESTING__LOAD_BALANCER_ACCUMULATED_STATS_RESPONSE__METHOD_STATS__RESULT_ENTRY__INIT);
    for (int code = 0; code < CODES; code++) {
        if (results[code] == 0)
            continue;
        out->result[out->n_result]->key = code;
        out->result[out->n_result++]->value = results[code];
        *failed += code == TORC_STATUS_OK ? 0 : results[code];
    }
    return results[TORC_STATUS_OK];
}

void psm_stats_accumulated(struct psm_stats *s, struct tc_server_call *call)
{
    Grpc__Testing__LoadBalancerAccumulatedStatsResponse r =
        GRPC__TESTING__LOAD_BALANCER_ACCUMULATED_STATS_RESPONSE__INIT;
    struct tc_arena a;
    tc_arena_init(&a, 4096, SIZE_MAX);
    r.n_num_rpcs_started_by_method = r.n_num_rpcs_succeeded_by_method = r.n_num_rpcs_failed_by_method =
        r.n_stats_per_method = PSM_RPCS;
    r.num_rpcs_started_by_method =
        MAKE(&a, PSM_RPCS, started_entry,
             GRPC__TESTING__LOAD_BALANCER_ACCUMULATED_STATS_RESPONSE__NUM_RPCS_STARTED_BY_METHOD_ENTRY__INIT);
    r.num_rpcs_succeeded_by_method =
        MAKE(&a, PSM_RPCS, succeeded_entry,
             GRPC__TESTING__LOAD_BALANCER_ACCUMULATED_STATS_RESPONSE__NUM_RPCS_SUCCEEDED_BY_METHOD_ENTRY__INIT);
    r.num_rpcs_failed_by_method =
        MAKE(&a, PSM_RPCS, failed_entry,
             GRPC__TESTING__LOAD_BALANCER_ACCUMULATED_STATS_RESPONSE__NUM_RPCS_FAILED_BY_METHOD_ENTRY__INIT);
    r.stats_per_method = MAKE(&a, PSM_RPCS, stats_entry,
                              GRPC__TESTING__LOAD_BALANCER_ACCUMULATED_STATS_RESPONSE__STATS_PER_METHOD_ENTRY__INIT);
    pthread_mutex_lock(&s->lock);
    for (unsigned rpc = 0; rpc < PSM_RPCS; rpc++) {
        method_stats *m = tc_arena_calloc(&a, 1, sizeof(*m));
        grpc__testing__load_balancer_accumulated_stats_response__method_stats__init(m);
        m->rpcs_started = s->rpcs[rpc].started;
        r.num_rpcs_started_by_method[rpc]->value = m->rpcs_started;
        r.num_rpcs_succeeded_by_method[rpc]->value =
            put_results(&a, m, s->rpcs[rpc].results, &r.num_rpcs_failed_by_method[rpc]->value);
        r.stats_per_method[rpc]->value = m;
        r.num_rpcs_started_by_method[rpc]->key = r.num_rpcs_succeeded_by_method[rpc]->key =
            r.num_rpcs_failed_by_method[rpc]->key = r.stats_per_method[rpc]->key = (char *)names[rpc];
    }
    pthread_mutex_unlock(&s->lock);
    psm_reply(call, &r.base);
    tc_arena_fini(&a);
}
