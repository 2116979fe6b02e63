#include "update_world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "measure.h"
#include "server/backend.h"
#include "server/control_plane.h"
#include "server/yaml.h"

struct push {
    struct tc_task task;
    struct world *world;
    struct tc_resource_set *set;
    _Atomic uint64_t *pushed_ns;
};

struct world {
    pthread_t thread;
    struct tc_loop *loop;
    struct tc_server *server, *backends;
    struct tc_control_plane *cp;
    struct tc_backend *backend;
    char *address;
    unsigned port;
    struct push push;
    struct tc_task stop_task;
    bool stop;
};

static void *serve(void *arg)
{
    struct world *w = arg;
    while (!w->stop)
        tc_loop_turn(w->loop, -1);
    return NULL;
}

/* The port that the system gave. */
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
    w->backends = tc_server_new(w->loop, &opts);
    w->cp = tc_control_plane_new(w->server);
    w->backend = tc_backend_new(w->backends, &(struct tc_backend_opts){.name = "all"});
    w->address = tc_asprintf("127.0.0.1:%u", listen_at(w->server, "127.0.0.1:0"));
    w->port = listen_at(w->backends, "0.0.0.0:0");
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
    tc_server_free(w->backends);
    tc_control_plane_free(w->cp);
    tc_backend_free(w->backend);
    tc_loop_free(w->loop);
    tc_free(w->address);
    tc_free(w);
}

const char *world_control_plane(const struct world *w)
{
    return w->address;
}

unsigned world_backend_port(const struct world *w)
{
    return w->port;
}

/* YAML: what comes before the endpoints. */
static const char mesh[] = "resources:\n"
                           "- '@type': type.googleapis.com/envoy.config.listener.v3.Listener\n"
                           "  name: svc\n"
                           "  api_listener:\n"
                           "    api_listener:\n"
                           "      '@type': type.googleapis.com/"
                           "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager\n"
                           "      http_filters:\n"
                           "      - name: router\n"
                           "        typed_config:\n"
                           "          '@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router\n"
                           "      route_config:\n"
                           "        name: r\n"
                           "        virtual_hosts:\n"
                           "        - name: v\n"
                           "          domains: ['*']\n"
                           "          routes:\n"
                           "          - match: {prefix: ''}\n"
                           "            route: {cluster: c, hash_policy: [{header: {header_name: k}}]}\n"
                           "- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                           "  name: c\n"
                           "  type: EDS\n"
                           "  eds_cluster_config: {eds_config: {ads: {}}}\n"
                           "  lb_policy: RING_HASH\n"
                           "  ring_hash_lb_config: {minimum_ring_size: %llu}\n"
                           "- '@type': type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                           "  cluster_name: c\n"
                           "  endpoints:\n"
                           "  - locality: {region: r}\n"
                           "    load_balancing_weight: 1\n"
                           "    lb_endpoints:\n";

static void append_endpoint(struct tc_buf *b, const char *address, unsigned port)
{
    tc_buf_printf(b, "    - endpoint: {address: {socket_address: {address: %s, port_value: %u}}}\n", address, port);
}

struct tc_resource_set *world_resources(const struct world *w, size_t endpoints, uint64_t min_ring, const char *extra)
{
    struct tc_resource_set *set = tc_resource_set_new();
    struct tc_buf b = {0};
    struct tc_faults faults;
    char *why = NULL;
    tc_buf_printf(&b, mesh, (unsigned long long)min_ring);
    for (size_t i = 0; i < endpoints; i++) {
        char ip[32];
        snprintf(ip, sizeof(ip), "127.1.%zu.%zu", i >> 8, i & 255);
        append_endpoint(&b, ip, w->port);
    }
    if (extra)
        append_endpoint(&b, extra, w->port);
    json_t *doc = tc_yaml_parse(tc_buf_slice(&b), &why);
    tc_faults_init(&faults);
    if (doc)
        tc_resource_set_add_json(set, doc, &faults);
    if (!doc || tc_faults_any(&faults)) {
        fprintf(stderr, "bench/update: %s\n", doc ? tc_faults_text(&faults) : why);
        tc_resource_set_free(set);
        set = NULL;
    }
    tc_faults_fini(&faults);
    tc_free(why);
    json_decref(doc);
    tc_buf_fini(&b);
    return set;
}

static void on_push(struct tc_task *task)
{
    struct push *p = TC_CONTAINER_OF(task, struct push, task);
    atomic_store(p->pushed_ns, measure_wall_ns());
    tc_control_plane_set(p->world->cp, NULL, p->set);
}

void world_push(struct world *w, struct tc_resource_set *set, _Atomic uint64_t *pushed_ns)
{
    w->push = (struct push){.world = w, .set = set, .pushed_ns = pushed_ns};
    tc_task_init(&w->push.task, on_push);
    tc_loop_post(w->loop, &w->push.task);
}
