/* The servers of bench/update, on one thread, and the resource sets that are pushed.
 *
 * The caller's thread makes a set, and a task on the servers' thread pushes it. The clock starts in the task, so making
 * the set is not measured. Only one push may be under way at a time, since its task is a member of the world. Resources
 * are written as YAML. A change writes the resources of c0 again and shares the rest of the set. */
#include "update_world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "controlplane/control_plane.h"
#include "controlplane/resource_load.h"
#include "controlplane/yaml.h"
#include "measure.h"
#include "support/kits/echo.h"

struct push {
    struct tc_task task;
    struct world *world;
    const char *node; /* id; a literal */
    struct tc_resource_set *set;
    _Atomic uint64_t *pushed_ns;
};

/* A backend and its port. */
struct answerer {
    struct tc_server *server;
    struct kit_echo *backend;
    unsigned port;
};

struct world {
    pthread_t thread;
    struct tc_loop *loop;
    struct tc_server *server;
    struct tc_control_plane *cp;
    struct answerer old, new;
    char *address; /* the control plane's, "127.0.0.1:PORT" */
    unsigned made; /* number of new addresses so far */
    struct push push;
    struct tc_task stop_task;
    bool stop; /* for the servers' thread alone */
};

static void *serve(void *arg)
{
    struct world *w = arg;
    while (!w->stop)
        tc_loop_turn(w->loop, -1);
    return NULL;
}

/* Listens and returns the port that the system chose, or 0, with a message, if the server cannot listen. */
static unsigned listen_at(struct tc_server *s, const char *address)
{
    struct tc_status error = {0};
    struct tc_addr addr, bound;
    unsigned port = 0;
    if (tc_addr_parse(&addr, tc_slice_str(address)) != 0)
        return 0;
    if (tc_server_listen(s, &addr, &bound, &error) == 0) {
        char *text = tc_addr_text(&bound);
        port = (unsigned)strtoul(strrchr(text, ':') + 1, NULL, 10);
        tc_free(text);
        tc_addr_fini(&bound);
    } else {
        fprintf(stderr, "bench/update: %s\n", tc_status_text(&error));
    }
    tc_status_fini(&error);
    tc_addr_fini(&addr);
    return port;
}

static void answerer_init(struct answerer *a, struct tc_loop *loop, const char *name)
{
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    a->server = tc_server_new(loop, &opts);
    a->backend = kit_echo_new(a->server, &(struct kit_echo_opts){.name = name});
    a->port = listen_at(a->server, "0.0.0.0:0");
}

static void answerer_fini(struct answerer *a)
{
    tc_server_free(a->server);
    kit_echo_free(a->backend);
}

struct world *world_new(void)
{
    struct world *w = TC_NEW(struct world);
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    w->loop = tc_loop_new(NULL);
    if (!w->loop) {
        tc_free(w);
        return NULL;
    }
    w->server = tc_server_new(w->loop, &opts);
    w->cp = tc_control_plane_new(w->server);
    w->address = tc_asprintf("127.0.0.1:%u", listen_at(w->server, "127.0.0.1:0"));
    answerer_init(&w->old, w->loop, "old");
    answerer_init(&w->new, w->loop, "new");
    if (pthread_create(&w->thread, NULL, serve, w) != 0) {
        fprintf(stderr, "bench/update: cannot start a thread\n");
        return NULL;
    }
    return w;
}

static void on_stop(struct tc_task *task)
{
    TC_CONTAINER_OF(task, struct world, stop_task)->stop = true;
}

void world_free(struct world *w)
{
    tc_task_init(&w->stop_task, on_stop);
    tc_loop_post(w->loop, &w->stop_task);
    pthread_join(w->thread, NULL);
    tc_server_free(w->server);
    tc_control_plane_free(w->cp);
    answerer_fini(&w->old);
    answerer_fini(&w->new);
    tc_loop_free(w->loop);
    tc_free(w->address);
    tc_free(w);
}

const char *world_control_plane(const struct world *w)
{
    return w->address;
}

void world_new_address(struct world *w, char *text, size_t size)
{
    unsigned n = w->made++;
    snprintf(text, size, "127.2.%u.%u:%u", n >> 8 & 255, n & 255, w->new.port);
}

/* The listener, up to its routes. Resources are YAML, with long lists in flow style, which parses faster. */
static const char listener[] = "resources:\n"
                               "- '@type': type.googleapis.com/envoy.config.listener.v3.Listener\n"
                               "  name: svc\n"
                               "  api_listener:\n"
                               "    api_listener:\n"
                               "      '@type': type.googleapis.com/"
                               "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager\n"
                               "      http_filters:\n"
                               "      - name: router\n"
                               "        typed_config: {'@type': type.googleapis.com/"
                               "envoy.extensions.filters.http.router.v3.Router}\n"
                               "      route_config:\n"
                               "        name: r\n"
                               "        virtual_hosts:\n"
                               "        - name: v\n"
                               "          domains: ['*']\n"
                               "          routes:\n";

static void append_route(struct tc_buf *b, size_t i)
{
    tc_buf_printf(b,
                  "          - {match: {prefix: /c%zu/}, route: {cluster: c%zu, hash_policy: "
                  "[{header: {header_name: k}}]}}\n",
                  i, i);
}

static void append_cluster(struct tc_buf *b, size_t i, uint64_t min_ring, bool shut)
{
    tc_buf_printf(b,
                  "- {'@type': type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c%zu, type: EDS, "
                  "eds_cluster_config: {eds_config: {ads: {}}}, lb_policy: RING_HASH, ring_hash_lb_config: "
                  "{minimum_ring_size: %llu}, circuit_breakers: {thresholds: [{max_requests: %d}]}}\n",
                  i, (unsigned long long)min_ring, shut ? 0 : 1024);
}

static void append_endpoint(struct tc_buf *b, const char *ip, unsigned port)
{
    tc_buf_printf(b, "{endpoint: {address: {socket_address: {address: %s, port_value: %u}}}},\n", ip, port);
}

static void append_assignment(struct tc_buf *b, const struct world *w, size_t i, size_t endpoints, const char *extra)
{
    char ip[32];
    tc_buf_printf(b,
                  "- {'@type': type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: c%zu, "
                  "endpoints: [{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [\n",
                  i);
    for (size_t k = 0; k < endpoints; k++) {
        snprintf(ip, sizeof(ip), "127.1.%zu.%zu", k >> 8, k & 255);
        append_endpoint(b, ip, w->old.port);
    }
    if (extra) {
        snprintf(ip, sizeof(ip), "%.*s", (int)strcspn(extra, ":"), extra);
        append_endpoint(b, ip, w->new.port);
    }
    tc_buf_append_str(b, "]}]}\n");
}

/* Adds the resources of the YAML text, which replace resources of the same name. Returns false with a message if they
 * are not valid. */
static bool add(struct tc_resource_set *set, const struct tc_buf *text)
{
    struct tc_validation_errors errors = {0};
    char *why = NULL;
    json_t *doc = tc_yaml_parse(tc_buf_slice(text), &why);
    if (doc)
        tc_resource_set_add_json(set, doc, &errors);
    bool ok = doc && !tc_validation_any(&errors);
    if (!ok)
        fprintf(stderr, "bench/update: %s\n", doc ? tc_validation_text(&errors) : why);
    tc_validation_fini(&errors);
    tc_free(why);
    json_decref(doc);
    return ok;
}

/* Takes ownership of both. Returns the set, or NULL if the text is not valid. */
static struct tc_resource_set *add_or_free(struct tc_resource_set *set, struct tc_buf *text)
{
    bool ok = add(set, text);
    tc_buf_fini(text);
    if (ok)
        return set;
    tc_resource_set_free(set);
    return NULL;
}

struct tc_resource_set *world_resources(const struct world *w, const struct world_shape *shape)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, listener);
    for (size_t i = 0; i < shape->clusters; i++)
        append_route(&b, i);
    for (size_t i = 0; i < shape->clusters; i++)
        append_cluster(&b, i, shape->min_ring, false);
    for (size_t i = 0; i < shape->clusters; i++)
        append_assignment(&b, w, i, shape->endpoints, NULL);
    return add_or_free(tc_resource_set_new(), &b);
}

struct tc_resource_set *world_change(const struct world *w, const struct tc_resource_set *base,
                                     const struct world_shape *shape, const struct world_state *state)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "resources:\n");
    append_cluster(&b, 0, shape->min_ring, state->shut);
    append_assignment(&b, w, 0, shape->endpoints, state->extra);
    return add_or_free(tc_resource_set_copy(base), &b);
}

static void on_push(struct tc_task *task)
{
    struct push *p = TC_CONTAINER_OF(task, struct push, task);
    atomic_store(p->pushed_ns, measure_wall_ns());
    tc_control_plane_set(p->world->cp, p->node, p->set);
}

void world_push(struct world *w, const char *node, struct tc_resource_set *set, _Atomic uint64_t *pushed_ns)
{
    w->push = (struct push){.world = w, .node = node, .set = set, .pushed_ns = pushed_ns};
    tc_task_init(&w->push.task, on_push);
    tc_loop_post(w->loop, &w->push.task);
}
