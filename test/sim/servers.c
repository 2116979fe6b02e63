/* Backends and the control planes.
 *
 * A backend is a server with a method of each kind. A call waits for its delay on a timer of the server's loop; then
 * the backend answers it, or begins to read the client's stream. A call that ends before that gets no answer. The
 * control planes are embedded ones (controlplane/control_plane.h), fed with YAML that is written from the mesh. A
 * server that cannot listen, or a resource that a control plane does not take, aborts the program.
 *
 * A call that a backend takes has a struct answer, in the backend's list; a call that it refuses has none. on_end frees
 * the answer or, for calls that are open when the backend closes, backend_close does. Servers, loops and control planes
 * live from servers_begin to servers_end; the sums of load reports are the process's, which performs one run. All on
 * the world's one thread, which turns the loops. Read answer_begin and answer_on_timer first, then servers_put. */
#include "sim/servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "controlplane/control_plane.h"
#include "controlplane/lrs.h"
#include "http2/connection_internal.h"
#include "pb/xds/data/orca/v3/orca_load_report.pb-c.h"
#include "server/server_internal.h"
#include "sim/message.h"
#include "sim/names.h"
#include "sim/trace.h"
#include "testing/net.h"
#include "testing/world.h"

struct backend {
    unsigned host;
    struct tc_loop *loop;
    struct tc_server *server;
    struct tc_link calls; /* struct answer, owned */
    int sick;             /* the code that every call ends with; 0: the backend is well */
};

/* A call that a backend has. */
struct answer {
    struct tc_link link;
    struct backend *backend;
    struct tc_server_call *call;
    struct tc_timer timer;
    enum sim_kind kind;
    uint64_t id;
    int code, pushback_ms; /* that the request asks for (servers.h) */
    unsigned n_messages;   /* of the answer to a server stream */
    size_t message_size;   /* of the messages to send: as asked for, then that of the client's last message */
    unsigned n_received;   /* messages of the client's stream */
};

static struct backend backends[SIM_HOSTS];
static size_t n_backends;
/* The control plane, and the one to fall back to. */
enum { CONTROLS = 2 };
static struct control {
    struct tc_loop *loop;
    struct tc_server *server;
    struct tc_control_plane *plane;
    struct tc_lrs *lrs;
} controls[CONTROLS];
static struct servers_loads loads;
static TC_VEC(unsigned) seen;                                  /* by id of the call */
static TC_VEC(unsigned) refused;                               /* how often, by id of the call */
static void (*on_seen)(const struct servers_request *request); /* NULL: nobody is told */

/* --- backends --- */

static void answer_free(struct answer *a)
{
    tc_timer_stop(&a->timer);
    tc_list_remove(&a->link);
    tc_free(a);
}

/* The call is over, with its status or without: the last event. */
static void answer_on_end(void *arg, const struct tc_status *why)
{
    struct answer *a = arg;
    sim_detail("host %u loses call %llu: %s", a->backend->host, (unsigned long long)a->id, tc_status_text(why));
    answer_free(a);
}

static void answer_fail(struct answer *a)
{
    int code = a->backend->sick ? a->backend->sick : a->code;
    bool pushes_back = a->backend->sick && a->pushback_ms != SIM_NO_PUSHBACK;
    char text[16];
    int n = snprintf(text, sizeof(text), "%d", a->pushback_ms);
    struct tc_header pushback = {tc_slice_str("grpc-retry-pushback-ms"), tc_slice_of(text, (size_t)n)};
    const struct tc_headers trailers = {.data = &pushback, .len = pushes_back};
    sim_detail("host %u answers call %llu with %d", a->backend->host, (unsigned long long)a->id, code);
    tc_server_call_finish(a->call, code, a->backend->sick ? "the backend is sick" : "as the request says", &trailers);
}

/* Ends the call with OK and the host's load. A58: the weight is rps / utilization. */
static void answer_finish(struct answer *a)
{
    Xds__Data__Orca__V3__OrcaLoadReport report = XDS__DATA__ORCA__V3__ORCA_LOAD_REPORT__INIT;
    uint8_t bytes[64];
    report.cpu_utilization = 0.5;
    report.rps_fractional = 100.0 * sim_host_weight(a->backend->host);
    size_t n = xds__data__orca__v3__orca_load_report__pack(&report, bytes);
    struct tc_header load = {tc_slice_str("endpoint-load-metrics-bin"), tc_slice_of(bytes, n)};
    tc_server_call_finish(a->call, TORC_STATUS_OK, "", &(struct tc_headers){.data = &load, .len = 1});
}

static void answer_send(struct answer *a, unsigned index)
{
    size_t size;
    const void *bytes =
        sim_message_write(&(struct sim_message){a->backend->host, a->id, index}, a->message_size, &size);
    tc_server_call_send(a->call, tc_slice_of(bytes, size));
}

/* The call's delay is over. A server stream that fails with its request's code sends half of its messages first. */
static void answer_on_timer(struct tc_timer *timer)
{
    struct answer *a = TC_CONTAINER_OF(timer, struct answer, timer);
    char text[64];
    if (!a->backend->sick && a->kind == SIM_SERVER_STREAM)
        for (unsigned i = 0; i < (a->code ? a->n_messages / 2 : a->n_messages); i++)
            answer_send(a, i);
    if (a->backend->sick || a->code) {
        answer_fail(a);
    } else if (a->kind == SIM_SERVER_STREAM) {
        answer_finish(a);
    } else if (a->kind == SIM_UNARY) {
        int n = snprintf(text, sizeof(text), "%u %llu", a->backend->host, (unsigned long long)a->id);
        tc_server_call_send(a->call, tc_slice_of(text, (size_t)n));
        answer_finish(a);
    } else {
        tc_server_call_read(a->call);
    }
}

/* Checks a message of the client's stream; answers it in a stream both ways. */
static void answer_on_message(void *arg, struct tc_rstr *message)
{
    struct answer *a = arg;
    struct tc_slice bytes = tc_rstr_slice(message);
    struct sim_message m;
    if (!sim_message_read(&m, bytes.data, bytes.len) || m.from != SIM_HOSTS || m.id != a->id ||
        m.index != a->n_received)
        sim_violation("stream: host %u got something else as message %u of call %llu", a->backend->host, a->n_received,
                      (unsigned long long)a->id);
    a->message_size = bytes.len;
    if (a->kind == SIM_BIDI_STREAM)
        answer_send(a, a->n_received);
    a->n_received++;
    tc_rstr_unref(message);
    tc_server_call_read(a->call);
}

static void answer_on_half_close(void *arg)
{
    struct answer *a = arg;
    if (a->kind == SIM_CLIENT_STREAM)
        answer_send(a, a->n_received);
    answer_finish(a);
}

static void seen_add(uint64_t id)
{
    while (seen.len <= id)
        *tc_vec_push(&seen) = 0;
    seen.data[id]++;
}

unsigned servers_seen(uint64_t id)
{
    return id < seen.len ? seen.data[id] : 0;
}

/* Writes the value of a request header, cut to fit; "" if the request has none. */
static void header_text(const struct tc_server_call *call, const char *name, char *text, size_t size)
{
    const struct tc_header *h = tc_headers_find(tc_server_call_metadata(call), tc_slice_str(name));
    snprintf(text, size, "%.*s", h ? (int)h->value.len : 0, h ? (const char *)h->value.data : "");
}

static void seen_tell(const struct answer *a)
{
    struct servers_request r = {.id = a->id, .host = a->backend->host};
    uint64_t deadline_ns = tc_server_call_deadline_ns(a->call);
    char previous[16];
    r.has_timeout = deadline_ns != UINT64_MAX;
    r.left_ns = (int64_t)(deadline_ns - tc_loop_now_ns(a->backend->loop));
    header_text(a->call, "grpc-previous-rpc-attempts", previous, sizeof(previous));
    header_text(a->call, ":authority", r.authority, sizeof(r.authority));
    header_text(a->call, "x-key", r.key, sizeof(r.key));
    r.previous_attempts = (unsigned)strtoul(previous, NULL, 10);
    seen_add(a->id);
    if (on_seen)
        on_seen(&r);
}

/* Refuses the call, unless it was refused as often as it asks for. Returns whether it did. */
static bool refuse(struct backend *b, struct tc_server_call *call, uint64_t id, unsigned asked)
{
    const uint32_t refused_stream = 7; /* RFC 9113, section 7 */
    while (refused.len <= id)
        *tc_vec_push(&refused) = 0;
    if (refused.data[id] >= asked)
        return false;
    refused.data[id]++;
    sim_story("host %u refuses call %llu", b->host, (unsigned long long)id);
    sim_count(SIM_COUNT_CALLS_REFUSED);
    if (on_seen)
        on_seen(&(struct servers_request){.id = id, .host = b->host, .refused = true});
    tc_server_call_reset(call, refused_stream);
    return true;
}

/* request: "ID DELAY_MS CODE N SIZE REFUSALS PUSHBACK" (servers.h) */
static void answer_begin(struct backend *b, struct tc_server_call *call, enum sim_kind kind, struct tc_slice request)
{
    static const struct tc_server_call_events events = {
        .on_message = answer_on_message, .on_half_close = answer_on_half_close, .on_end = answer_on_end};
    char text[64], *rest = text;
    size_t n = TC_MIN(request.len, sizeof(text) - 1);
    memcpy(text, request.data, n);
    text[n] = 0;
    struct answer asked = {.backend = b, .call = call, .kind = kind, .id = strtoull(rest, &rest, 10)};
    uint64_t delay_ms = strtoull(rest, &rest, 10);
    asked.code = (int)strtol(rest, &rest, 10);
    asked.n_messages = (unsigned)strtoul(rest, &rest, 10);
    asked.message_size = (size_t)strtoul(rest, &rest, 10);
    unsigned refusals = (unsigned)strtoul(rest, &rest, 10);
    asked.pushback_ms = (int)strtol(rest, &rest, 10);
    if (refuse(b, call, asked.id, refusals))
        return;
    struct answer *a = TC_NEW(struct answer);
    *a = asked;
    tc_list_append(&b->calls, &a->link);
    tc_timer_init(&a->timer, b->loop, answer_on_timer);
    tc_server_call_set_events(call, &events, a);
    sim_detail("host %u has call %llu", b->host, (unsigned long long)a->id);
    seen_tell(a);
    tc_timer_start(&a->timer, delay_ms);
}

static void backend_on_unary(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    answer_begin(arg, call, SIM_UNARY, tc_rstr_slice(request));
}

static void backend_on_stream(struct backend *b, struct tc_server_call *call, enum sim_kind kind)
{
    const struct tc_header *h = tc_headers_find(tc_server_call_metadata(call), tc_slice_str("x-call"));
    answer_begin(b, call, kind, h ? h->value : tc_slice_str(""));
}

static void backend_on_client_stream(void *arg, struct tc_server_call *call)
{
    backend_on_stream(arg, call, SIM_CLIENT_STREAM);
}

static void backend_on_server_stream(void *arg, struct tc_server_call *call)
{
    backend_on_stream(arg, call, SIM_SERVER_STREAM);
}

static void backend_on_bidi_stream(void *arg, struct tc_server_call *call)
{
    backend_on_stream(arg, call, SIM_BIDI_STREAM);
}

/* Returns a server that listens on the address, whose host is up from then on. The caller frees it with
 * tc_server_free. */
static struct tc_server *server_open(struct tc_loop *loop, const char *address, unsigned max_streams)
{
    struct tc_server_opts opts;
    struct tc_addr addr;
    struct tc_status error = {0};
    tc_server_opts_init(&opts);
    opts.http2.limits.max_concurrent_streams = max_streams;
    opts.http2.keepalive.min_interval_ms = 10000; /* the keepalive time of the clients (workload.c) */
    struct tc_server *server = tc_server_new(loop, &opts);
    tc_host_set(address, TC_HOST_UP);
    tc_addr_parse(&addr, tc_slice_str(address));
    if (tc_server_listen(server, &addr, NULL, &error) != 0) {
        fprintf(stderr, "sim: %s\n", tc_status_text(&error));
        abort();
    }
    tc_addr_fini(&addr);
    return server;
}

static void backend_open(unsigned host, unsigned max_streams)
{
    struct backend *b = &backends[host];
    *b = (struct backend){.host = host, .loop = tc_loop_new(NULL)};
    tc_list_init(&b->calls);
    b->server = server_open(b->loop, sim_host_address(host), max_streams);
    tc_server_add_unary(b->server, "/sim.Service/Unary", backend_on_unary, b);
    tc_server_add_method(b->server, "/sim.Service/Client", backend_on_client_stream, b);
    tc_server_add_method(b->server, "/sim.Service/Server", backend_on_server_stream, b);
    tc_server_add_method(b->server, "/sim.Service/Both", backend_on_bidi_stream, b);
}

static void backend_close(struct backend *b)
{
    tc_server_free(b->server);
    while (!tc_list_empty(&b->calls))
        answer_free(TC_CONTAINER_OF(b->calls.next, struct answer, link));
    tc_loop_free(b->loop);
}

/* --- loads --- */

static void on_report(void *arg TC_UNUSED, const struct tc_lrs_report *report)
{
    for (size_t i = 0; i < report->request->n_cluster_stats; i++) {
        const Envoy__Config__Endpoint__V3__ClusterStats *c = report->request->cluster_stats[i];
        loads.dropped += c->total_dropped_requests;
        for (size_t k = 0; k < c->n_upstream_locality_stats; k++) {
            const Envoy__Config__Endpoint__V3__UpstreamLocalityStats *l = c->upstream_locality_stats[k];
            loads.issued += l->total_issued_requests;
            loads.succeeded += l->total_successful_requests;
            loads.failed += l->total_error_requests;
        }
    }
    sim_count(SIM_COUNT_LOAD_REPORTS);
    sim_story("a load report of %zu clusters: %llu issued, %llu succeeded, %llu failed, %llu dropped so far",
              report->request->n_cluster_stats, (unsigned long long)loads.issued, (unsigned long long)loads.succeeded,
              (unsigned long long)loads.failed, (unsigned long long)loads.dropped);
}

struct servers_loads servers_loads(void)
{
    struct servers_loads now = loads;
    size_t open = 0;
    uint64_t so_far = 0;
    for (int i = 0; i < CONTROLS; i++) {
        open += tc_lrs_streams(controls[i].lrs);
        so_far += tc_lrs_streams_so_far(controls[i].lrs);
    }
    now.whole = open > 0 && open == so_far;
    return now;
}

static void control_open(struct control *c, const char *address)
{
    c->loop = tc_loop_new(NULL);
    c->server = server_open(c->loop, address, SIM_MANY_STREAMS);
    c->plane = tc_control_plane_new(c->server);
    c->lrs = tc_lrs_new(c->server);
    tc_lrs_observe(c->lrs, on_report, NULL);
    tc_lrs_set(c->lrs, &(struct tc_lrs_config){.interval_ms = 30000, .send_all_clusters = true});
}

static void control_close(struct control *c)
{
    tc_server_free(c->server);
    tc_control_plane_free(c->plane);
    tc_lrs_free(c->lrs);
    tc_loop_free(c->loop);
}

void servers_begin(const struct sim_mesh *mesh, void (*seen_fn)(const struct servers_request *request))
{
    on_seen = seen_fn;
    control_open(&controls[0], SIM_CONTROL_PLANE);
    control_open(&controls[1], SIM_FALLBACK);
    for (n_backends = 0; n_backends < mesh->n_hosts; n_backends++)
        backend_open((unsigned)n_backends, mesh->max_streams);
}

void servers_end(void)
{
    for (size_t i = 0; i < n_backends; i++)
        backend_close(&backends[i]);
    for (int i = 0; i < CONTROLS; i++)
        control_close(&controls[i]);
    tc_vec_fini(&seen);
    tc_vec_fini(&refused);
}

void servers_goaway(unsigned host, bool hasty)
{
    struct tc_server *s = backends[host].server;
    tc_server_goaway(s);
    TC_LIST_FOREACH(it, &s->conns)
    {
        struct tc_server_conn *conn = TC_CONTAINER_OF(it, struct tc_server_conn, link);
        if (hasty && conn->h2)
            tc_h2_conn_send_last_goaway(conn->h2);
    }
}

void servers_set_sick(unsigned host, int code)
{
    backends[host].sick = code;
}

/* --- resources --- */

/* Puts the YAML into both control planes and ends the buffer. */
static void put(struct tc_buf *text)
{
    char *why = NULL;
    for (int i = 0; i < CONTROLS; i++)
        if (tc_control_plane_put(controls[i].plane, tc_buf_cstr(text), &why) != 0) {
            fprintf(stderr, "sim: %s\n%s\n", why, tc_buf_cstr(text));
            abort();
        }
    tc_buf_fini(text);
}

/* Sessions by the cookie "sid" (A55). */
#define SESSION_FILTER                                                                                                 \
    "{name: session, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3." \
    "StatefulSession, session_state: {name: cookie, typed_config: {\"@type\": type.googleapis.com/"                    \
    "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState, cookie: {name: sid, ttl: 3600s}}}}}, "

/* Fails calls before they are sent to a backend (A33). Arguments: status, percentage. */
#define FAULT_FILTER                                                                                                   \
    "{name: fault, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, "   \
    "abort: {grpc_status: %d, percentage: {numerator: %u, denominator: HUNDRED}}}}, "

/* Appends the line with the virtual hosts. */
static void append_hosts(struct tc_buf *b, const struct sim_service *service)
{
    tc_buf_printf(b,
                  "virtual_hosts: [{name: all, domains: [\"%s\"], routes: [{match: {prefix: \"\"}, route: {cluster: "
                  "c%u, hash_policy: [{header: {header_name: x-key}}]",
                  service->unrouted ? "elsewhere.test" : "*", service->cluster);
    if (service->limit_ms)
        tc_buf_printf(b, ", max_stream_duration: {max_stream_duration: %u.%03us}", service->limit_ms / 1000,
                      service->limit_ms % 1000);
    if (service->retries)
        tc_buf_printf(b, ", retry_policy: {retry_on: unavailable, num_retries: %u}", service->retries);
    tc_buf_append_str(b, "}}]}]\n");
}

static void put_routes(const struct sim_service *service, unsigned which)
{
    struct tc_buf b = {0};
    tc_buf_printf(&b,
                  "resources:\n"
                  "- \"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n"
                  "  name: r%u\n"
                  "  ",
                  which);
    append_hosts(&b, service);
    put(&b);
}

static void put_listener(const struct sim_mesh *mesh, unsigned which, bool good)
{
    const struct sim_service *service = &mesh->services[which];
    struct tc_buf b = {0};
    char fault[512] = "";
    if (service->abort_percent)
        snprintf(fault, sizeof(fault), FAULT_FILTER, SIM_ABORT_CODE, service->abort_percent);
    tc_buf_printf(&b,
                  "resources:\n"
                  "- \"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\n"
                  "  name: s%u\n"
                  "  api_listener:\n"
                  "    api_listener:\n"
                  "      \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3."
                  "HttpConnectionManager\n"
                  "      http_filters: [%s%s{name: router, typed_config: {\"@type\": type.googleapis.com/"
                  "envoy.extensions.filters.http.router.v3.Router}}]\n"
                  "      stat_prefix: revision%u\n"
                  "      %s\n",
                  which, fault, service->sessions ? SESSION_FILTER : "", service->revision,
                  good ? "" : "xff_num_trusted_hops: 1");
    if (service->rds) {
        tc_buf_printf(&b, "      rds: {route_config_name: r%u, config_source: {ads: {}}}\n", which);
        put_routes(service, which);
    } else {
        tc_buf_printf(&b,
                      "      route_config:\n"
                      "        name: r%u\n"
                      "        ",
                      which);
        append_hosts(&b, service);
    }
    put(&b);
}

/* An endpoint whose RPCs all failed in an interval is ejected, the second time in a row for twice as long. */
#define OUTLIERS                                                                                                       \
    "  outlier_detection: {interval: 10s, base_ejection_time: 18s, max_ejection_time: 36s, max_ejection_percent: "     \
    "100, "                                                                                                            \
    "enforcing_success_rate: 0, enforcing_failure_percentage: 100, failure_percentage_threshold: 99, "                 \
    "failure_percentage_minimum_hosts: 1, failure_percentage_request_volume: 1}\n"

#define LB "type.googleapis.com/envoy.extensions.load_balancing_policies."
#define IN_LOCALITIES                                                                                                  \
    "  load_balancing_policy: {policies: [{typed_extension_config: {name: wrr, typed_config: {\"@type\": " LB          \
    "wrr_locality.v3.WrrLocality, endpoint_picking_policy: {policies: [{typed_extension_config: {name: x, "            \
    "typed_config: {\"@type\": " LB "%s}}}]}}}}]}\n"

/* NULL: lb_policy names the policy (append_policy). */
static const char *const extensions[SIM_POLICIES] = {
    [SIM_PICK_FIRST] = "pick_first.v3.PickFirst",
    [SIM_LEAST_REQUEST] = "least_request.v3.LeastRequest",
    [SIM_FULL_SCAN] = "least_request.v3.LeastRequest, selection_method: FULL_SCAN",
    [SIM_BIASED] = "least_request.v3.LeastRequest, active_request_bias: {default_value: 1}",
    [SIM_WEIGHTED] = "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin"};

/* Appends lb_policy, with the settings of policies that hash, and the LRS server. */
static void append_policy(struct tc_buf *b, const struct sim_cluster *c)
{
    const char *name = !sim_hashes(c) ? "ROUND_ROBIN" : c->policy == SIM_MAGLEV ? "MAGLEV" : "RING_HASH";
    tc_buf_printf(b, "  lb_policy: %s\n  lrs_server: {self: {}}\n", name);
    if (!sim_hashes(c))
        return;
    if (c->policy == SIM_MAGLEV && c->table_size)
        tc_buf_printf(b, "  maglev_lb_config: {table_size: %u}\n", c->table_size);
    tc_buf_printf(b, "  common_lb_config: {%sconsistent_hashing_lb_config: {",
                  c->policy == SIM_MAGLEV && c->locality_weights ? "locality_weighted_lb_config: {}, " : "");
    if (c->balance)
        tc_buf_printf(b, "hash_balance_factor: %u", c->balance);
    tc_buf_append_str(b, "}}\n");
}

/* A bad LOGICAL_DNS cluster has no endpoint, a bad EDS cluster a source of its endpoints that is not ADS. */
static void append_leaf(struct tc_buf *b, const struct sim_cluster *c, unsigned which, bool good)
{
    char name[16];
    sim_endpoints_name(c, which, name, sizeof(name));
    if (c->dns) {
        tc_buf_append_str(b, "  type: LOGICAL_DNS\n  load_assignment: {endpoints: [{lb_endpoints: [");
        if (good)
            tc_buf_printf(b, "{endpoint: {address: {socket_address: {address: d%uv%u.test, port_value: 8080}}}}", which,
                          c->version);
        tc_buf_append_str(b, "]}]}\n");
    } else {
        tc_buf_printf(b, "  type: EDS\n  eds_cluster_config: {service_name: %s, eds_config: {%s}}\n", name,
                      good ? "ads: {}" : "path: /none");
    }
    append_policy(b, c);
    if (extensions[c->policy])
        tc_buf_printf(b, IN_LOCALITIES, extensions[c->policy]);
    if (c->max_requests)
        tc_buf_printf(b, "  circuit_breakers: {thresholds: [{max_requests: %u}]}\n", c->max_requests);
    if (c->outliers)
        tc_buf_append_str(b, OUTLIERS);
}

static void put_cluster(const struct sim_mesh *mesh, unsigned which, bool good)
{
    const struct sim_cluster *c = &mesh->clusters[which];
    struct tc_buf b = {0};
    tc_buf_printf(&b,
                  "resources:\n"
                  "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                  "  name: c%u\n"
                  "  connect_timeout: %us\n",
                  which, 1 + c->revisions[0]); /* which clients of gRPC ignore */
    if (c->is_aggregate) {
        tc_buf_append_str(&b, "  cluster_type: {name: envoy.clusters.aggregate, typed_config: {\"@type\": "
                              "type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [");
        for (size_t i = 0; good && i < c->n_children; i++)
            tc_buf_printf(&b, "%sc%u", i ? ", " : "", c->children[i]);
        tc_buf_append_str(&b, "]}}\n");
    } else {
        append_leaf(&b, c, which, good);
    }
    put(&b);
}

static void append_locality(struct tc_buf *b, const struct sim_locality *l, size_t number, bool good)
{
    tc_buf_printf(b,
                  "  - priority: %u\n"
                  "    load_balancing_weight: %u\n"
                  "    locality: {sub_zone: l%zu}\n"
                  "    lb_endpoints: [",
                  good ? l->priority : l->priority + 1, l->weight, number);
    for (size_t i = 0; i < l->n_endpoints; i++) {
        const char *address = sim_host_address(l->endpoints[i].host);
        int host_len = (int)(strchr(address, ':') - address);
        tc_buf_printf(b,
                      "%s{endpoint: {address: {socket_address: {address: %.*s, port_value: %s}}}, "
                      "load_balancing_weight: %u}",
                      i ? ", " : "", host_len, address, address + host_len + 1, l->endpoints[i].weight);
    }
    tc_buf_append_str(b, "]\n");
}

/* Bad endpoints lack priority 0. */
static void put_endpoints(const struct sim_mesh *mesh, unsigned which, bool good)
{
    const struct sim_cluster *c = &mesh->clusters[which];
    struct tc_buf b = {0};
    char name[16];
    sim_endpoints_name(c, which, name, sizeof(name));
    tc_buf_printf(&b,
                  "resources:\n"
                  "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                  "  cluster_name: %s\n"
                  "  endpoints:%s\n",
                  name, c->n_localities == 0 ? " []" : "");
    for (size_t i = 0; i < c->n_localities; i++)
        append_locality(&b, &c->localities[i], i, good);
    tc_buf_printf(&b,
                  "  policy: {drop_overloads: [{category: c%u, drop_percentage: {numerator: %u, "
                  "denominator: HUNDRED}}, {category: revision%u, drop_percentage: {numerator: 0}}]}\n",
                  which, c->drop_percent, c->revisions[1]);
    put(&b);
}

static void put_any(const struct sim_mesh *mesh, enum sim_resource kind, unsigned which, bool good)
{
    if (kind == SIM_LISTENER)
        put_listener(mesh, which, good);
    else if (kind == SIM_CLUSTER)
        put_cluster(mesh, which, good);
    else
        put_endpoints(mesh, which, good);
}

void servers_put(const struct sim_mesh *mesh, enum sim_resource kind, unsigned which)
{
    if (kind == SIM_CLUSTER)
        sim_name_set(which, &mesh->clusters[which]);
    put_any(mesh, kind, which, true);
}

void servers_put_bad(const struct sim_mesh *mesh, enum sim_resource kind, unsigned which)
{
    put_any(mesh, kind, which, false);
}

void servers_remove(const struct sim_mesh *mesh, enum sim_resource kind, unsigned which)
{
    static const char *const types[SIM_RESOURCES] = {
        "type.googleapis.com/envoy.config.listener.v3.Listener",
        "type.googleapis.com/envoy.config.cluster.v3.Cluster",
        "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
    };
    static const char prefixes[SIM_RESOURCES] = {'s', 'c', 'e'};
    char name[16];
    if (kind == SIM_ENDPOINTS_OF)
        sim_endpoints_name(&mesh->clusters[which], which, name, sizeof(name));
    else
        snprintf(name, sizeof(name), "%c%u", prefixes[kind], which);
    for (int i = 0; i < CONTROLS; i++)
        tc_control_plane_remove(controls[i].plane, types[kind], name);
}

void servers_end_streams(void)
{
    for (int i = 0; i < CONTROLS; i++)
        tc_control_plane_end_streams(controls[i].plane, TORC_STATUS_UNAVAILABLE, "the control plane ends its streams");
}
