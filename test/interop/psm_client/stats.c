/* The counts of the PSM client, and the driver's questions about them.
 *
 * RPCs are numbered as they start, on the main thread. Each RPC is counted by its status code when it ends, on the
 * runtime's thread. A watch, which is a GetClientStats call, also counts the ended RPCs of one block of numbers, by
 * backend or as failed. The call's handler waits in psm_stats_watch, on a thread of the pool, until all RPCs of the
 * block have ended, the time is over, or the stats are closed. The watch collects its counts as parts of the answer, in
 * the arena of its call; `lock` guards them while the watch is in the list. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "psm.h"

#define CODES 17 /* gRPC's status codes */

static const char *const names[PSM_RPCS] = {"EMPTY_CALL", "UNARY_CALL"};      /* in GetClientAccumulatedStats */
static const char *const method_names[PSM_RPCS] = {"EmptyCall", "UnaryCall"}; /* in GetClientStats */

typedef Grpc__Testing__LoadBalancerStatsResponse response;
typedef Grpc__Testing__LoadBalancerStatsResponse__RpcsByPeerEntry count_entry;
typedef Grpc__Testing__LoadBalancerStatsResponse__RpcsByPeer__RpcsByPeerEntry method_count_entry;
typedef Grpc__Testing__LoadBalancerStatsResponse__RpcsByPeer by_peer;
typedef Grpc__Testing__LoadBalancerStatsResponse__RpcsByMethodEntry method_entry;
typedef Grpc__Testing__LoadBalancerStatsResponse__MetadataByPeer metadata_by_peer;
typedef Grpc__Testing__LoadBalancerStatsResponse__RpcMetadata rpc_metadata;
typedef Grpc__Testing__LoadBalancerStatsResponse__MetadatasByPeerEntry metadatas_entry;
typedef Grpc__Testing__LoadBalancerStatsResponse__MetadataEntry metadata_entry;

/* A GetClientStats that waits for its block of RPCs. On the stack of psm_stats_watch; arena and request are of its
 * call. */
struct watch {
    struct watch *next;
    torc_arena *arena;
    const Grpc__Testing__LoadBalancerStatsRequest *request;
    uint64_t first, left; /* the number of the block's first RPC; how many of the block have not ended */
    response answer;
};

struct psm_stats {
    pthread_mutex_t lock;   /* guards everything below, and the watches in the list */
    pthread_cond_t changed; /* a watch's block has ended, or `closed` is set */
    bool closed;
    uint64_t next; /* the number of the next RPC to start */
    struct {
        int32_t started, results[CODES];
    } rpcs[PSM_RPCS];
    struct watch *watches;
};

struct psm_stats *psm_stats_new(void)
{
    struct psm_stats *s = calloc(1, sizeof(*s));
    pthread_condattr_t attributes;
    if (!s)
        abort();
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return s;
}

void psm_stats_free(struct psm_stats *s)
{
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void psm_stats_close(struct psm_stats *s)
{
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

uint64_t psm_stats_started(struct psm_stats *s, enum psm_rpc rpc)
{
    pthread_mutex_lock(&s->lock);
    uint64_t number = s->next++;
    s->rpcs[rpc].started++;
    pthread_mutex_unlock(&s->lock);
    return number;
}

/* --- parts of an answer, in its call's arena --- */

static void *alloc(torc_arena *arena, size_t n)
{
    void *p = torc_arena_alloc(arena, n);
    if (!p)
        abort();
    return p;
}

/* Returns a copy with a NUL behind it. */
static char *copy_of(torc_arena *arena, const void *bytes, size_t n)
{
    char *copy = alloc(arena, n + 1);
    memcpy(copy, bytes, n);
    copy[n] = '\0';
    return copy;
}

/* Appends a pointer to a list of n pointers. Returns the list, which may have moved. */
static void *append(torc_arena *arena, void *list, size_t *n, void *added)
{
    size_t old = *n * sizeof(void *);
    if ((*n & (*n - 1)) == 0) { /* full: 0, or a power of two */
        void *grown = alloc(arena, (*n ? 2 * *n : 1) * sizeof(void *));
        if (old)
            memcpy(grown, list, old);
        list = grown;
    }
    memcpy((char *)list + old, &added, sizeof(added));
    ++*n;
    return list;
}

/* Makes a message of the type in the arena, stores it in `added`, and appends it to the repeated field of `to`. */
#define ADD(arena, to, field, added, type, init)                                                                       \
    do {                                                                                                               \
        (added) = alloc(arena, sizeof(type));                                                                          \
        init(added);                                                                                                   \
        (to)->field = append(arena, (to)->field, &(to)->n_##field, added);                                             \
    } while (0)

/* --- one RPC into the watches that want it --- */

/* Adds the fields of `from` (NULL: none) whose names the request asks for; "*" asks for all. */
static void add_metadata(struct watch *w, rpc_metadata *to, const torc_metadata *from,
                         Grpc__Testing__LoadBalancerStatsResponse__MetadataType type)
{
    const char *name;
    const void *value;
    size_t len;
    for (size_t i = 0; torc_metadata_at(from, i, &name, &value, &len) == 0; i++) {
        bool wanted = false;
        for (size_t k = 0; k < w->request->n_metadata_keys; k++)
            wanted = wanted || strcmp(w->request->metadata_keys[k], "*") == 0 ||
                     strcasecmp(w->request->metadata_keys[k], name) == 0;
        if (!wanted)
            continue;
        metadata_entry *e;
        ADD(w->arena, to, metadata, e, metadata_entry,
            grpc__testing__load_balancer_stats_response__metadata_entry__init);
        e->key = copy_of(w->arena, name, strlen(name));
        e->value = copy_of(w->arena, value, len);
        e->type = type;
    }
}

/* Adds the metadata of an RPC to the answer's entry for its backend. `hostname` is in the arena. */
static void add_metadatas(struct watch *w, char *hostname, const torc_result *result)
{
    response *r = &w->answer;
    metadatas_entry *peer = NULL;
    rpc_metadata *rpc;
    for (size_t i = 0; i < r->n_metadatas_by_peer && !peer; i++)
        if (strcmp(r->metadatas_by_peer[i]->key, hostname) == 0)
            peer = r->metadatas_by_peer[i];
    if (!peer) {
        ADD(w->arena, r, metadatas_by_peer, peer, metadatas_entry,
            grpc__testing__load_balancer_stats_response__metadatas_by_peer_entry__init);
        peer->key = hostname;
        peer->value = alloc(w->arena, sizeof(metadata_by_peer));
        grpc__testing__load_balancer_stats_response__metadata_by_peer__init(peer->value);
    }
    ADD(w->arena, peer->value, rpc_metadata, rpc, rpc_metadata,
        grpc__testing__load_balancer_stats_response__rpc_metadata__init);
    add_metadata(w, rpc, torc_result_headers(result),
                 GRPC__TESTING__LOAD_BALANCER_STATS_RESPONSE__METADATA_TYPE__INITIAL);
    add_metadata(w, rpc, torc_result_trailers(result),
                 GRPC__TESTING__LOAD_BALANCER_STATS_RESPONSE__METADATA_TYPE__TRAILING);
}

/* Adds an RPC, now ended, to the watch's answer: to the count of its backend, both among all RPCs and among those of
 * its method; or to the failures if `hostname` is NULL. The caller holds the lock. */
static void record(struct watch *w, enum psm_rpc rpc, const torc_result *result, const char *hostname)
{
    response *r = &w->answer;
    by_peer *method = r->rpcs_by_method[rpc]->value;
    count_entry *peer = NULL;
    method_count_entry *of_method = NULL;
    if (!hostname) {
        r->num_failures++;
        return;
    }
    for (size_t i = 0; i < r->n_rpcs_by_peer && !peer; i++)
        if (strcmp(r->rpcs_by_peer[i]->key, hostname) == 0)
            peer = r->rpcs_by_peer[i];
    if (!peer) {
        ADD(w->arena, r, rpcs_by_peer, peer, count_entry,
            grpc__testing__load_balancer_stats_response__rpcs_by_peer_entry__init);
        peer->key = copy_of(w->arena, hostname, strlen(hostname));
    }
    for (size_t i = 0; i < method->n_rpcs_by_peer && !of_method; i++)
        if (method->rpcs_by_peer[i]->key == peer->key)
            of_method = method->rpcs_by_peer[i];
    if (!of_method) {
        ADD(w->arena, method, rpcs_by_peer, of_method, method_count_entry,
            grpc__testing__load_balancer_stats_response__rpcs_by_peer__rpcs_by_peer_entry__init);
        of_method->key = peer->key;
    }
    peer->value++;
    of_method->value++;
    if (w->request->n_metadata_keys > 0)
        add_metadatas(w, peer->key, result);
}

void psm_stats_ended(struct psm_stats *s, uint64_t number, enum psm_rpc rpc, const torc_result *result,
                     const char *hostname)
{
    pthread_mutex_lock(&s->lock);
    if (torc_result_code(result) >= 0 && torc_result_code(result) < CODES)
        s->rpcs[rpc].results[torc_result_code(result)]++;
    for (struct watch *w = s->watches; w; w = w->next) {
        if (number < w->first || number - w->first >= (uint64_t)w->request->num_rpcs)
            continue;
        record(w, rpc, result, hostname);
        if (--w->left == 0)
            pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
}

/* --- answers --- */

static void watch_init(struct watch *w, torc_server_call *call, const Grpc__Testing__LoadBalancerStatsRequest *request)
{
    *w = (struct watch){.arena = torc_server_call_arena(call),
                        .request = request,
                        .left = (uint64_t)request->num_rpcs,
                        .answer = GRPC__TESTING__LOAD_BALANCER_STATS_RESPONSE__INIT};
    for (unsigned rpc = 0; rpc < PSM_RPCS; rpc++) {
        method_entry *method;
        ADD(w->arena, &w->answer, rpcs_by_method, method, method_entry,
            grpc__testing__load_balancer_stats_response__rpcs_by_method_entry__init);
        method->key = (char *)method_names[rpc];
        method->value = alloc(w->arena, sizeof(by_peer));
        grpc__testing__load_balancer_stats_response__rpcs_by_peer__init(method->value);
    }
}

void psm_stats_watch(struct psm_stats *s, torc_server_call *call,
                     const Grpc__Testing__LoadBalancerStatsRequest *request)
{
    struct watch w, **link;
    struct timespec end;
    watch_init(&w, call, request);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += request->timeout_sec;
    pthread_mutex_lock(&s->lock);
    w.first = s->next;
    w.next = s->watches;
    s->watches = &w;
    while (w.left > 0 && !s->closed && pthread_cond_timedwait(&s->changed, &s->lock, &end) != ETIMEDOUT)
        continue;
    for (link = &s->watches; *link != &w; link = &(*link)->next)
        continue;
    *link = w.next;
    pthread_mutex_unlock(&s->lock);
    grpc__testing__load_balancer_stats_service__get_client_stats__reply(call, &w.answer);
}

typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse accumulated;
typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__NumRpcsStartedByMethodEntry started_entry;
typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__NumRpcsSucceededByMethodEntry succeeded_entry;
typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__NumRpcsFailedByMethodEntry failed_entry;
typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__StatsPerMethodEntry stats_entry;
typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__MethodStats method_stats;
typedef Grpc__Testing__LoadBalancerAccumulatedStatsResponse__MethodStats__ResultEntry result_entry;

/* Adds the counts of one kind of RPC to the response: `all` have started, results[code] have ended with each status
 * code. */
static void put_accumulated(torc_arena *arena, accumulated *r, unsigned rpc, int32_t all, const int32_t *results)
{
    started_entry *started;
    succeeded_entry *succeeded;
    failed_entry *failed;
    stats_entry *stats;
    ADD(arena, r, num_rpcs_started_by_method, started, started_entry,
        grpc__testing__load_balancer_accumulated_stats_response__num_rpcs_started_by_method_entry__init);
    ADD(arena, r, num_rpcs_succeeded_by_method, succeeded, succeeded_entry,
        grpc__testing__load_balancer_accumulated_stats_response__num_rpcs_succeeded_by_method_entry__init);
    ADD(arena, r, num_rpcs_failed_by_method, failed, failed_entry,
        grpc__testing__load_balancer_accumulated_stats_response__num_rpcs_failed_by_method_entry__init);
    ADD(arena, r, stats_per_method, stats, stats_entry,
        grpc__testing__load_balancer_accumulated_stats_response__stats_per_method_entry__init);
    stats->value = alloc(arena, sizeof(method_stats));
    grpc__testing__load_balancer_accumulated_stats_response__method_stats__init(stats->value);
    started->key = succeeded->key = failed->key = stats->key = (char *)names[rpc];
    started->value = stats->value->rpcs_started = all;
    for (int code = 0; code < CODES; code++) {
        result_entry *e;
        if (results[code] == 0)
            continue;
        ADD(arena, stats->value, result, e, result_entry,
            grpc__testing__load_balancer_accumulated_stats_response__method_stats__result_entry__init);
        e->key = code;
        e->value = results[code];
        if (code == TORC_STATUS_OK)
            succeeded->value = results[code];
        else
            failed->value += results[code];
    }
}

void psm_stats_accumulated(struct psm_stats *s, torc_server_call *call)
{
    accumulated r = GRPC__TESTING__LOAD_BALANCER_ACCUMULATED_STATS_RESPONSE__INIT;
    pthread_mutex_lock(&s->lock);
    for (unsigned rpc = 0; rpc < PSM_RPCS; rpc++)
        put_accumulated(torc_server_call_arena(call), &r, rpc, s->rpcs[rpc].started, s->rpcs[rpc].results);
    pthread_mutex_unlock(&s->lock);
    grpc__testing__load_balancer_stats_service__get_client_accumulated_stats__reply(call, &r);
}
