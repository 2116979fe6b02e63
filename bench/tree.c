/* Builds the trees from configs and endpoint lists in memory.
 *
 * The kinds before TREE_CLUSTER get a config and an endpoint list, as from a parent policy; the other kinds get an
 * XdsConfig, as from the resolver. From TREE_LOADS on, an xDS client keeps the counts of RPCs, without a server. A ring
 * makes an endpoint's subchannel when a pick asks for the endpoint, so the newest subchannel is that endpoint's. Other
 * policies make all of their subchannels while the loop turns.
 *
 * A tree owns its fake channel and, from TREE_LOADS on, the xDS client. One thread calls all functions. The fake's loop
 * turns only when that thread turns it, and its time is virtual. Read tree_new and tree_pick first. */
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "lb/child_configs.h"
#include "lb/orca.h"
#include "lb/policies/priority.h"
#include "lb/ring_hash/policy.h"
#include "support/kits/config.h"
#include "support/kits/xds.h"
#include "xds/lb/policies.h"

enum { LOCALITIES = 3, RING_LEAST = 1024, RING_MOST = 65536 };

struct tree {
    struct fake_lb *f;
    size_t n;
    bool lrs; /* the cluster reports its loads */
    enum tree_kind kind;
    unsigned reports;   /* TREE_WEIGHTED: the number of load reports so far */
    struct kit_xds xds; /* with lrs: the xDS client that keeps the counts */
};

size_t tree_address(char out[TREE_ADDRESS_MAX], size_t i)
{
    return (size_t)snprintf(out, TREE_ADDRESS_MAX, "10.%zu.%zu.%zu:80", i >> 16 & 255, i >> 8 & 255, i & 255);
}

uint64_t tree_hash_of(size_t i)
{
    char text[TREE_ADDRESS_MAX + 2];
    size_t len = tree_address(text, i);
    memcpy(text + len, "_0", 2);
    return tc_xxh64(text, len + 2);
}

struct tree_ring_size tree_ring_size(size_t n)
{
    return (struct tree_ring_size){(unsigned)TC_MIN(TC_MAX(2 * n, (size_t)RING_LEAST), (size_t)RING_MOST), RING_MOST};
}

static struct tc_lb_config *ring_config(size_t n)
{
    struct tree_ring_size size = tree_ring_size(n);
    return tc_ring_hash_config_new(size.least, size.most, tc_slice_of(NULL, 0));
}

/* Makes the endpoint list for policies without an XdsConfig. */
static struct tc_endpoints *endpoints(size_t n)
{
    struct tc_buf b = {0};
    char text[TREE_ADDRESS_MAX];
    for (size_t i = 0; i < n; i++) {
        tree_address(text, i);
        tc_buf_printf(&b, "%s@%zu ", text, i % LOCALITIES);
    }
    struct tc_endpoints *list = fake_lb_endpoints(tc_buf_cstr(&b));
    tc_buf_fini(&b);
    return list;
}

/* Makes the tree of endpoint lists of a single priority, "p0". */
static struct tc_endpoints *first_priority(size_t n)
{
    struct tc_endpoints_child *child = tc_reallocarray(NULL, 1, sizeof(*child));
    *child = (struct tc_endpoints_child){tc_rstr_str("p0"), endpoints(n)};
    return tc_endpoints_take_children(child, 1);
}

/* Makes the EDS resource of n endpoints in LOCALITIES localities, all of priority 0. */
static const struct tc_eds *eds(size_t n)
{
    struct tc_buf b = {0};
    char text[TREE_ADDRESS_MAX];
    for (size_t l = 0; l < LOCALITIES; l++) {
        tc_buf_printf(&b, "%s0/%zu:", l ? ";" : "", l);
        for (size_t i = l; i < n; i += LOCALITIES) {
            tree_address(text, i);
            tc_buf_printf(&b, " %s", text);
        }
    }
    const struct tc_eds *e = kit_config_eds(tc_buf_cstr(&b), NULL);
    tc_buf_fini(&b);
    return e;
}

static struct tc_cluster_config *cluster(struct tree *t, enum tree_kind kind)
{
    struct tree_ring_size size = tree_ring_size(t->n);
    char *ring =
        tc_asprintf(", 'lbPolicy': 'RING_HASH', 'ringHashLbConfig': {'minimumRingSize': %u, 'maximumRingSize': %u}",
                    size.least, size.most);
    char *more =
        tc_asprintf("%s%s%s", kind == TREE_ROUND_ROBIN ? "" : ring, t->lrs ? ", 'lrsServer': {'self': {}}" : "",
                    kind == TREE_OUTLIERS ? ", 'outlierDetection': {}" : "");
    tc_free(ring);
    struct tc_cluster_config *c = kit_config_cluster("c", more, eds(t->n));
    if (t->lrs)
        ((struct tc_cluster *)(uintptr_t)c->cluster)->lrs_server = t->xds.bootstrap->servers[0].key;
    tc_free(more);
    return c;
}

static struct tc_lb_config *cds_config(bool manager)
{
    struct tc_rstr *name = tc_rstr_str("c");
    struct tc_lb_config *config = tc_child_config_single(&tc_cds_factory, name, NULL);
    if (manager) {
        const struct tc_child_config child = {.name = name, .config = config};
        struct tc_lb_config *whole = tc_child_configs_new(&tc_cluster_manager_factory, &child, 1);
        tc_lb_config_unref(config);
        config = whole;
    }
    tc_rstr_unref(name);
    return config;
}

static struct tc_lb_config *priority_config(size_t n)
{
    struct tc_child_config child = {.name = tc_rstr_str("p0"), .config = ring_config(n)};
    struct tc_lb_config *config = tc_child_configs_new(&tc_priority_factory, &child, 1);
    tc_rstr_unref(child.name);
    tc_lb_config_unref(child.config);
    return config;
}

struct tree *tree_new(enum tree_kind kind, size_t n)
{
    static const char *const roots[] = {
        [TREE_WEIGHTED] = "weighted_round_robin",
        [TREE_LEAST] = "least_request_experimental",
        [TREE_SCAN] = "least_request_experimental",
        [TREE_RING] = "ring_hash_experimental",
        [TREE_PRIORITY] = "priority_experimental",
        [TREE_CLUSTER] = "cds_experimental",
        [TREE_LOADS] = "cds_experimental",
        [TREE_MANAGER] = "xds_cluster_manager_experimental",
        [TREE_OUTLIERS] = "xds_cluster_manager_experimental",
        [TREE_ROUND_ROBIN] = "xds_cluster_manager_experimental",
    };
    struct tree *t = TC_NEW(struct tree);
    t->f = kit_config_lb(roots[kind]);
    t->n = n;
    t->lrs = kind >= TREE_LOADS;
    t->f->env.ring_size_cap = t->f->env.ring_inline_entries = RING_MOST;
    t->f->args.cluster = tc_slice_str("c");
    t->f->args.has_hash = true;
    t->kind = kind;
    if (kind < TREE_RING) {
        const char *config = kind == TREE_WEIGHTED ? "{'blackoutPeriod': '0s'}"
                             : kind == TREE_SCAN   ? "{'selectionMethod': 'FULL_SCAN'}"
                                                   : "{}";
        fake_lb_update(t->f, endpoints(n), fake_lb_config(t->f, roots[kind], config, NULL), NULL);
        return t;
    }
    if (kind == TREE_RING) {
        fake_lb_update(t->f, endpoints(n), ring_config(n), NULL);
        return t;
    }
    if (kind == TREE_PRIORITY) {
        fake_lb_update(t->f, first_priority(n), priority_config(n), NULL);
        return t;
    }
    if (t->lrs)
        kit_xds_init(&t->xds, NULL);
    struct tc_xds_config *config = kit_config_config(cluster(t, kind), NULL);
    config->client = t->lrs ? t->xds.client : NULL;
    kit_config_update(t->f, cds_config(kind >= TREE_MANAGER), config);
    return t;
}

void tree_free(struct tree *t)
{
    kit_config_lb_free(t->f);
    if (t->lrs)
        kit_xds_fini(&t->xds);
    tc_free(t);
}

struct fake_lb *tree_lb(struct tree *t)
{
    return t->f;
}

/* Tells the trackers (NULL: none) that the RPC ended with OK and these trailers, which may be NULL. */
static inline void end_rpc(struct tc_call_tracker *trackers, const struct tc_headers *trailers)
{
    static const struct tc_status ok = {0};
    for (struct tc_call_tracker *at = trackers, *next; at; at = next) {
        next = at->next;
        at->on_done(at, &ok, trailers);
    }
}

/* Ends an RPC whose trailers have a load report: a utilization of 1 and a QPS of 1 to 7. */
static void end_with_report(struct tree *t, struct tc_call_tracker *trackers)
{
    char report[18] = {TC_ORCA_APPLICATION << 3 | 1, [9] = TC_ORCA_QPS << 3 | 1};
    struct tc_header field = {tc_slice_of("endpoint-load-metrics-bin", 25), tc_slice_of(report, sizeof(report))};
    memcpy(report + 1, &(double){1}, sizeof(double));
    memcpy(report + 10, &(double){1 + t->reports++ % 7}, sizeof(double));
    end_rpc(trackers, &(struct tc_headers){.data = &field, .len = 1});
}

struct tc_subchannel *tree_pick(struct tree *t, uint64_t hash)
{
    struct fake_lb *f = t->f;
    struct tc_pick out = {0};
    f->args.hash = hash;
    f->args.random = hash;
    enum tc_pick_kind kind = tc_picker_pick(f->picker, &f->args, &out);
    if (kind == TC_PICK_QUEUE)
        return NULL;
    if (kind != TC_PICK_COMPLETE) {
        fprintf(stderr, "bench: a pick failed: %s\n", tc_status_text(&out.status));
        exit(1);
    }
    if (t->kind == TREE_WEIGHTED)
        end_with_report(t, out.trackers);
    else
        end_rpc(out.trackers, NULL);
    tc_arena_reset(&f->arena);
    return out.subchannel;
}

bool tree_connect(struct tree *t, size_t i)
{
    struct fake_lb *f = t->f;
    uint64_t hash = tree_hash_of(i);
    if (tree_pick(t, hash))
        return false;
    tc_loop_drain(f->loop);
    fake_lb_set_at(f, f->subchannels.len - 1, TORC_CONNECTIVITY_READY);
    return tree_pick(t, hash) != NULL;
}

/* For policies that connect to all endpoints without a pick. */
static bool connect_at_once(struct tree *t)
{
    bool good = true;
    while (t->f->subchannels.len < t->n)
        tc_loop_advance(t->f->loop, 1);
    for (size_t i = 0; i < t->n; i++)
        fake_lb_set_at(t->f, i, TORC_CONNECTIVITY_READY);
    for (size_t i = 0; i < t->n; i++)
        good = good && tree_pick(t, i);
    tc_loop_advance(t->f->loop, 1000); /* the policy takes the reported weights */
    return good;
}

bool tree_connect_all(struct tree *t)
{
    bool good = true;
    if (t->kind < TREE_RING || t->kind == TREE_ROUND_ROBIN)
        return connect_at_once(t);
    for (size_t i = 0; good && i < t->n; i++)
        good = tree_connect(t, i);
    return good;
}
