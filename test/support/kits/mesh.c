/* A mesh in one process: control plane and backends on a thread with its own loop.
 *
 * While that thread runs, the test's thread does not touch servers: it fills a struct job and waits until the loop has
 * run the job (do_job). mesh_internal.h says which thread has which members. A node is a server with its listener and
 * its service (backend or control plane), all owned by the kit. A node always has a server, also while it is stopped:
 * that server does not listen. A node keeps its port over stop and start. The LRS server is on the control plane's
 * server.
 *
 * Resources are YAML, put together from the short forms of kits/mesh.h, and pushed at once. The client's side is in
 * mesh_client.c, clusters other than EDS in mesh_clusters.c. */
#include "support/kits/mesh.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "base/mem.h"
#include "base/parse.h"
#include "support/kits/mesh_internal.h"
#include "support/net/port.h"

/* --- work on the servers' thread --- */

/* On the stack of the test's thread, which waits for the job. Which members are used depends on fn. */
struct job {
    struct tc_task task;
    struct kit_mesh *kit;
    void (*fn)(struct job *job);
    size_t i;                /* the backend's number */
    const char *text, *name; /* arguments; after requests_job `text` is the result, for tc_free */
    uint64_t count;          /* the result; of serve_again_job an argument */
    char *why;               /* set by fn: why the job failed; NULL: it did not */
    void (*user)(struct tc_control_plane *cp, void *arg);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t done_cond;
    bool done; /* under the lock */
};

static void run_job(struct tc_task *task)
{
    struct job *job = TC_CONTAINER_OF(task, struct job, task);
    job->fn(job);
    pthread_mutex_lock(&job->lock);
    job->done = true;
    pthread_cond_signal(&job->done_cond);
    pthread_mutex_unlock(&job->lock);
}

/* Runs fn with the job on the servers' thread and waits until it returns. Fails the test if the job has failed. */
static void do_job(struct kit_mesh *k, struct job *job, void (*fn)(struct job *job))
{
    job->kit = k;
    job->fn = fn;
    tc_task_init(&job->task, run_job);
    pthread_mutex_init(&job->lock, NULL);
    pthread_cond_init(&job->done_cond, NULL);
    tc_loop_post(k->loop, &job->task);
    pthread_mutex_lock(&job->lock);
    while (!job->done)
        pthread_cond_wait(&job->done_cond, &job->lock);
    pthread_mutex_unlock(&job->lock);
    pthread_mutex_destroy(&job->lock);
    pthread_cond_destroy(&job->done_cond);
    if (job->why)
        fail_msg("%s", job->why);
}

/* --- servers --- */

/* Listens on the node's address. Returns NULL, or the reason of a failure, for tc_free. */
static char *node_listen(struct kit_mesh_node *n)
{
    struct tc_status error = {0};
    struct tc_addr bound;
    char *why = NULL;
    if (tc_server_listen(n->server, &n->addr, &bound, &error) == 0) {
        tc_addr_fini(&n->addr);
        n->addr = bound;
        tc_free(n->text);
        n->text = tc_addr_text(&n->addr);
    } else {
        why = tc_strdup(tc_status_text(&error));
    }
    tc_status_fini(&error);
    return why;
}

/* Makes the node's server, which does not listen yet. backend: NULL for the control plane. tls: NULL for plaintext.
 * Options are borrowed for the call. Returns NULL, or the reason of a failure, for tc_free; the server is then one
 * for plaintext. */
static char *node_serve(struct kit_mesh *k, struct kit_mesh_node *n, const struct kit_echo_opts *backend,
                        const struct tc_tls_opts *tls)
{
    struct tc_server_opts opts;
    struct tc_status error = {0};
    char *why = NULL;
    tc_server_opts_init(&opts);
    opts.http2.limits.max_concurrent_streams = 1000;
    opts.tls = tls ? tc_tls_context_new(tls, &error) : NULL;
    if (tls && !opts.tls)
        why = tc_strdup(tc_status_text(&error));
    tc_status_fini(&error);
    n->server = tc_server_new(k->loop, &opts);
    tc_tls_context_unref(opts.tls);
    n->taken = 0;
    if (backend)
        n->backend = kit_echo_new(n->server, backend);
    return why;
}

/* Makes the node on a free port of 127.0.0.1, with its server, which listens. On the test's thread, before the servers'
 * thread is started. */
static void node_init(struct kit_mesh *k, struct kit_mesh_node *n, const struct kit_echo_opts *backend,
                      const struct tc_tls_opts *tls)
{
    uint16_t port;
    n->hole = -1;
    n->port = port_hold(&port);
    char *why = node_serve(k, n, backend, tls);
    tc_addr_parse(&n->addr, tc_slice_str("127.0.0.1:0"));
    n->addr.sa.in.sin_port = htons(port);
    if (!why)
        why = node_listen(n);
    if (why)
        fail_msg("%s", why);
}

static void node_fini(struct kit_mesh_node *n)
{
    if (n->hole >= 0)
        close(n->hole);
    close(n->port);
    tc_server_free(n->server);
    kit_echo_free(n->backend);
    tc_addr_fini(&n->addr);
    tc_free(n->text);
}

static void *serve(void *arg)
{
    struct kit_mesh *k = arg;
    while (!k->stop)
        tc_loop_turn(k->loop, -1);
    return NULL;
}

static void on_request(void *arg, const struct tc_ads_request *r)
{
    struct kit_mesh *k = arg;
    struct tc_slice type = r->type_url;
    for (size_t i = type.len; i-- > 0;)
        if (type.data[i] == '.') {
            type = tc_slice_of(type.data + i + 1, type.len - i - 1);
            break;
        }
    tc_buf_append_slice(&k->requests, type);
    tc_buf_printf(&k->requests, " %.*s", (int)r->version.len, r->version.data ? r->version.data : "");
    for (size_t i = 0; i < r->n_names; i++)
        tc_buf_printf(&k->requests, " %.*s", (int)r->names[i].len, r->names[i].data);
    if (r->n_initial)
        tc_buf_printf(&k->requests, " initial %zu", r->n_initial);
    if (r->has_error)
        tc_buf_printf(&k->requests, " NACK %d %.*s", r->error_code, (int)r->error_text.len, r->error_text.data);
    tc_buf_append_char(&k->requests, '\n');
}

static void make_bootstrap(struct kit_mesh *k)
{
    k->bootstrap =
        tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": \"insecure\"}], "
                    "\"server_features\": [\"xds_v3\"]}], \"node\": {\"id\": \"" KIT_MESH_NODE "\"}}",
                    k->control_plane.text);
}

/* Stores "b0", "b1", and so on. i: below 10. */
static void backend_name(size_t i, char name[3])
{
    name[0] = 'b';
    name[1] = (char)('0' + i);
    name[2] = '\0';
}

static struct kit_mesh *kit_new(size_t n, uint64_t delay_ms, const struct tc_tls_opts *control_plane)
{
    struct kit_mesh *k = TC_NEW(struct kit_mesh);
    assert_in_range(n, 0, KIT_MESH_MAX);
    k->loop = tc_loop_new(NULL);
    assert_non_null(k->loop);
    node_init(k, &k->control_plane, NULL, control_plane);
    k->cp = tc_control_plane_new(k->control_plane.server);
    tc_control_plane_observe(k->cp, on_request, k);
    k->lrs = tc_lrs_new(k->control_plane.server);
    for (k->n = 0; k->n < n; k->n++) {
        char name[3];
        backend_name(k->n, name);
        node_init(k, &k->backends[k->n], &(struct kit_echo_opts){.name = name, .delay_ms = delay_ms}, NULL);
    }
    assert_int_equal(pthread_create(&k->thread, NULL, serve, k), 0);
    make_bootstrap(k);
    k->runtime = torc_runtime_new(NULL, NULL);
    assert_non_null(k->runtime);
    return k;
}

struct kit_mesh *kit_mesh_new(size_t n)
{
    return kit_new(n, 0, NULL);
}

struct kit_mesh *kit_mesh_new_slow(size_t n, uint64_t delay_ms)
{
    return kit_new(n, delay_ms, NULL);
}

struct kit_mesh *kit_mesh_new_secure(size_t n, const struct tc_tls_opts *control_plane)
{
    return kit_new(n, 0, control_plane);
}

static void stop_job(struct job *job)
{
    job->kit->stop = true;
}

void kit_mesh_free(struct kit_mesh *k)
{
    struct job job = {0};
    assert_int_equal(torc_runtime_free(k->runtime), 0);
    do_job(k, &job, stop_job);
    pthread_join(k->thread, NULL);
    for (size_t i = 0; i < k->n; i++)
        node_fini(&k->backends[i]);
    node_fini(&k->control_plane);
    tc_control_plane_free(k->cp);
    tc_lrs_free(k->lrs);
    tc_loop_free(k->loop);
    tc_buf_fini(&k->requests);
    tc_free(k->bootstrap);
    tc_free(k);
}

const char *kit_mesh_address(const struct kit_mesh *k, size_t i)
{
    return k->backends[i].text;
}

const char *kit_mesh_control_plane(const struct kit_mesh *k)
{
    return k->control_plane.text;
}

/* Closes listener and hole at once. The connections close when the loop runs on. */
static void node_stop(struct kit_mesh_node *n)
{
    if (n->hole >= 0)
        close(n->hole);
    n->hole = -1;
    tc_server_stop_listening(n->server);
    tc_server_close_connections(n->server);
}

static void stop_backend_job(struct job *job)
{
    node_stop(&job->kit->backends[job->i]);
}

void kit_mesh_stop(struct kit_mesh *k, size_t i)
{
    do_job(k, &(struct job){.i = i}, stop_backend_job);
}

static void start_backend_job(struct job *job)
{
    node_stop(&job->kit->backends[job->i]);
    job->why = node_listen(&job->kit->backends[job->i]);
}

void kit_mesh_start(struct kit_mesh *k, size_t i)
{
    do_job(k, &(struct job){.i = i}, start_backend_job);
}

/* Makes the server of the job's backend again, and listens. job->arg: the TLS options (NULL: plaintext). job->count:
 * the status code of all echoes (0: they do not fail). */
static void serve_again_job(struct job *job)
{
    struct kit_mesh_node *n = &job->kit->backends[job->i];
    char name[3];
    backend_name(job->i, name);
    node_stop(n);
    tc_server_free(n->server);
    kit_echo_free(n->backend);
    const struct kit_echo_opts backend = {.name = name, .fail_code = (int)job->count, .fail_percent = 100};
    job->why = node_serve(job->kit, n, &backend, job->arg);
    if (!job->why)
        job->why = node_listen(n);
}

void kit_mesh_secure(struct kit_mesh *k, size_t i, const struct tc_tls_opts *tls)
{
    do_job(k, &(struct job){.i = i, .arg = (void *)(uintptr_t)tls}, serve_again_job);
}

void kit_mesh_fail(struct kit_mesh *k, size_t i, int code)
{
    do_job(k, &(struct job){.i = i, .count = (uint64_t)code}, serve_again_job);
}

static void stop_control_plane_job(struct job *job)
{
    node_stop(&job->kit->control_plane);
}

void kit_mesh_stop_control_plane(struct kit_mesh *k)
{
    do_job(k, &(struct job){0}, stop_control_plane_job);
}

static void start_control_plane_job(struct job *job)
{
    job->why = node_listen(&job->kit->control_plane);
}

void kit_mesh_start_control_plane(struct kit_mesh *k)
{
    do_job(k, &(struct job){0}, start_control_plane_job);
}

static void goaway_job(struct job *job)
{
    tc_server_goaway(job->kit->backends[job->i].server);
}

void kit_mesh_goaway(struct kit_mesh *k, size_t i)
{
    do_job(k, &(struct job){.i = i}, goaway_job);
}

static void spread_job(struct job *job)
{
    struct kit_mesh_node *n = &job->kit->backends[job->i];
    n->addr.sa.in.sin_addr.s_addr = htonl(INADDR_ANY);
    start_backend_job(job);
}

void kit_mesh_spread(struct kit_mesh *k, size_t i)
{
    do_job(k, &(struct job){.i = i}, spread_job);
}

static void hold_job(struct job *job)
{
    struct kit_mesh_node *n = &job->kit->backends[job->i];
    int on = 1;
    node_stop(n);
    n->hole = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (setsockopt(n->hole, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(n->hole, &n->addr.sa.any, n->addr.len) != 0 || listen(n->hole, 16) != 0)
        job->why = tc_strdup("cannot hold the port");
}

void kit_mesh_hold(struct kit_mesh *k, size_t i)
{
    do_job(k, &(struct job){.i = i}, hold_job);
}

static void take_job(struct job *job)
{
    struct kit_mesh_node *n = &job->kit->backends[job->i];
    uint64_t now = kit_echo_requests(n->backend);
    job->count = now - n->taken;
    n->taken = now;
}

uint64_t kit_mesh_take(struct kit_mesh *k, size_t i)
{
    struct job job = {.i = i};
    do_job(k, &job, take_job);
    return job.count;
}

static void handled_job(struct job *job)
{
    job->count = kit_echo_requests(job->kit->backends[job->i].backend);
}

uint64_t kit_mesh_handled(struct kit_mesh *k, size_t i)
{
    struct job job = {.i = i};
    do_job(k, &job, handled_job);
    return job.count;
}

static void connections_job(struct job *job)
{
    struct tc_server_counts counts;
    tc_server_counts(job->kit->backends[job->i].server, &counts);
    job->count = counts.connections;
}

uint64_t kit_mesh_connections(struct kit_mesh *k, size_t i)
{
    struct job job = {.i = i};
    do_job(k, &job, connections_job);
    return job.count;
}

static void open_connections_job(struct job *job)
{
    struct tc_server_counts counts;
    tc_server_counts(job->kit->backends[job->i].server, &counts);
    job->count = counts.open_connections;
}

static void open_control_connections_job(struct job *job)
{
    struct tc_server_counts counts;
    tc_server_counts(job->kit->control_plane.server, &counts);
    job->count = counts.open_connections;
}

uint64_t kit_mesh_open_control_connections(struct kit_mesh *k)
{
    struct job job = {0};
    do_job(k, &job, open_control_connections_job);
    return job.count;
}

uint64_t kit_mesh_open_connections(struct kit_mesh *k, size_t i)
{
    struct job job = {.i = i};
    do_job(k, &job, open_connections_job);
    return job.count;
}

static void user_job(struct job *job)
{
    job->user(job->kit->cp, job->arg);
}

void kit_mesh_do(struct kit_mesh *k, void (*fn)(struct tc_control_plane *cp, void *arg), void *arg)
{
    do_job(k, &(struct job){.user = fn, .arg = arg}, user_job);
}

struct tc_lrs *kit_mesh_lrs(struct kit_mesh *k)
{
    return k->lrs;
}

static void requests_job(struct job *job)
{
    job->text = tc_buf_take(&job->kit->requests);
}

char *kit_mesh_requests(struct kit_mesh *k)
{
    struct job job = {0};
    do_job(k, &job, requests_job);
    return (char *)(uintptr_t)job.text;
}

/* --- resources --- */

static void put_job(struct job *job)
{
    tc_control_plane_put(job->kit->cp, job->text, &job->why);
}

void kit_mesh_put(struct kit_mesh *k, const char *fmt, ...)
{
    struct tc_buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    do_job(k, &(struct job){.text = tc_buf_cstr(&b)}, put_job);
    tc_buf_fini(&b);
}

static void remove_job(struct job *job)
{
    if (tc_control_plane_remove(job->kit->cp, job->text, job->name) != 0)
        job->why = tc_asprintf("no resource %s", job->name);
}

void kit_mesh_remove(struct kit_mesh *k, const char *type, const char *name)
{
    static const char *const packages[][2] = {{"Listener", "listener"},
                                              {"RouteConfiguration", "route"},
                                              {"Cluster", "cluster"},
                                              {"ClusterLoadAssignment", "endpoint"}};
    char *url = NULL;
    for (size_t i = 0; i < TC_ARRAY_LEN(packages); i++)
        if (strcmp(type, packages[i][0]) == 0)
            url = tc_asprintf("type.googleapis.com/envoy.config.%s.v3.%s", packages[i][1], type);
    assert_non_null(url);
    do_job(k, &(struct job){.text = url, .name = name}, remove_job);
    tc_free(url);
}

void kit_mesh_put_filtered(struct kit_mesh *k, const char *name, const char *filters, const char *routes)
{
    kit_mesh_put(k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\n"
                 "  name: %s\n"
                 "  api_listener:\n"
                 "    api_listener:\n"
                 "      \"@type\": type.googleapis.com/"
                 "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager\n"
                 "      http_filters: [%s {name: router, typed_config: {\"@type\": "
                 "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]\n"
                 "      route_config:\n"
                 "        name: %s-routes\n"
                 "        virtual_hosts:\n"
                 "        - name: all\n"
                 "          domains: [\"*\"]\n"
                 "          routes: [%s]\n",
                 name, filters, name, routes);
}

void kit_mesh_put_routes(struct kit_mesh *k, const char *name, const char *routes)
{
    kit_mesh_put_filtered(k, name, "", routes);
}

void kit_mesh_put_listener(struct kit_mesh *k, const char *name, const char *cluster, const char *hash_policy)
{
    char *routes = tc_asprintf("{match: {prefix: \"\"}, route: {cluster: %s%s%s}}", cluster,
                               hash_policy ? ", hash_policy: " : "", hash_policy ? hash_policy : "");
    kit_mesh_put_routes(k, name, routes);
    tc_free(routes);
}

void kit_mesh_put_cluster(struct kit_mesh *k, const char *name, const char *more)
{
    kit_mesh_put(k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                 "  name: %s\n"
                 "  type: EDS\n"
                 "  eds_cluster_config: {eds_config: {ads: {}}}\n"
                 "  %s\n",
                 name, more ? more : "lb_policy: RING_HASH");
}

/* Cuts the number off the front of *s and returns it. Fails the test if there is none. */
static uint64_t take_number(struct tc_slice *s)
{
    size_t n = 0;
    uint64_t value = 0;
    while (n < s->len && s->data[n] >= '0' && s->data[n] <= '9')
        n++;
    assert_int_equal(tc_parse_u64(tc_slice_of(s->data, n), UINT64_MAX, &value), 0);
    *s = tc_slice_of(s->data + n, s->len - n);
    return value;
}

static void append_address(const struct kit_mesh *k, struct tc_buf *b, uint64_t i)
{
    struct tc_slice text, ip = {0}, port = {0};
    bool more = true;
    assert_in_range(i, 0, k->n - 1);
    text = tc_slice_str(kit_mesh_address(k, i));
    tc_slice_split(&text, &more, ':', &ip);
    tc_slice_split(&text, &more, ':', &port);
    tc_buf_printf(b, "{address: {socket_address: {address: \"%.*s\", port_value: %.*s}}}", (int)ip.len, ip.data,
                  (int)port.len, port.data);
}

static void append_endpoint(const struct kit_mesh *k, struct tc_buf *b, struct tc_slice text)
{
    struct tc_buf additional = {0}, more = {0};
    struct tc_buf first = {0};
    append_address(k, &first, take_number(&text));
    while (text.len) {
        char kind = text.data[0];
        text = tc_slice_of(text.data + 1, text.len - 1);
        if (kind == '+') {
            tc_buf_append_str(&additional, additional.len ? ", " : "");
            append_address(k, &additional, take_number(&text));
        } else if (kind == '*') {
            tc_buf_printf(&more, ", load_balancing_weight: %llu", (unsigned long long)take_number(&text));
        } else if (kind == '!') {
            tc_buf_printf(&more, ", health_status: %.*s", (int)text.len, text.data);
            text.len = 0;
        } else {
            assert_int_equal(kind, '#');
            tc_buf_printf(&more, ", metadata: {filter_metadata: {envoy.lb: {hash_key: \"%.*s\"}}}", (int)text.len,
                          text.data);
            text.len = 0;
        }
    }
    /* `first` without its closing brace, as additional_addresses stand beside the address. */
    tc_buf_printf(b, "{endpoint: %.*s", (int)first.len - 1, first.data);
    if (additional.len)
        tc_buf_printf(b, ", additional_addresses: [%s]", tc_buf_cstr(&additional));
    tc_buf_printf(b, "}%s}", tc_buf_cstr(&more));
    tc_buf_fini(&first);
    tc_buf_fini(&additional);
    tc_buf_fini(&more);
}

static void append_locality(const struct kit_mesh *k, struct tc_buf *b, struct tc_slice text)
{
    struct tc_slice head, sub_zone, part;
    bool more = true, more_names = true;
    uint64_t weight = 1, priority = take_number(&text);
    text = tc_slice_of(text.data + 1, text.len - 1);
    tc_slice_split(&text, &more, ':', &head);
    tc_slice_split(&head, &more_names, '=', &sub_zone);
    if (more_names)
        weight = take_number(&head);
    tc_buf_printf(b,
                  "  - priority: %llu\n    load_balancing_weight: %llu\n"
                  "    locality: {region: r, zone: z, sub_zone: \"%.*s\"}\n    lb_endpoints: [",
                  (unsigned long long)priority, (unsigned long long)weight, (int)sub_zone.len, sub_zone.data);
    bool first = true;
    while (tc_slice_split(&text, &more, ',', &part)) {
        part = tc_slice_trim(part);
        if (!part.len)
            continue;
        tc_buf_append_str(b, first ? "" : ", ");
        append_endpoint(k, b, part);
        first = false;
    }
    tc_buf_append_str(b, "]\n");
}

void kit_mesh_put_endpoints(struct kit_mesh *k, const char *name, const char *localities, const char *more)
{
    struct tc_buf b = {0};
    struct tc_slice rest = tc_slice_str(localities), part;
    bool left = true;
    while (tc_slice_split(&rest, &left, ';', &part)) {
        part = tc_slice_trim(part);
        if (part.len)
            append_locality(k, &b, part);
    }
    kit_mesh_put(k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                 "  cluster_name: %s\n"
                 "  endpoints:%s\n%s"
                 "  %s\n",
                 name, b.len ? "" : " []", tc_buf_cstr(&b), more ? more : "");
    tc_buf_fini(&b);
}
