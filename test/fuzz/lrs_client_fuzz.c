/* The client's side of load reports (LRS) with a server that sends arbitrary bytes. The input is a script: clusters
 * come and go, RPCs start, end and are dropped, responses arrive as bytes or by fields, streams and connections end,
 * time passes. Reports never add up to more RPCs than there were: no RPC is reported twice.
 *
 * Each step takes a byte, whose lower three bits choose what happens, and its arguments behind it. Then the loop is
 * drained, and the messages that the client has sent are read (take). A report counts once the server is connected. A
 * report that still waits when its stream ends does not count.
 *
 * struct run owns the client, the fake server and the references of clusters and RPCs. One thread, on a manual loop.
 * Read step and take first. */
#include "base/mem.h"
#include "fuzz.h"
#include "pb/envoy/service/load_stats/v3/lrs.pb-c.h"
#include "support/fakes/xds.h"
#include "xds/client/local_client.h"
#include "xds/load/load_store.h"

#define CLUSTERS 4
#define MAX_OPEN 64
#define FEATURE "envoy.lrs.supports_send_all_clusters"

typedef Envoy__Service__LoadStats__V3__LoadStatsRequest load_request;
typedef Envoy__Service__LoadStats__V3__LoadStatsResponse load_response;

static const char bootstrap_text[] =
    "{\"xds_servers\":[{\"server_uri\":\"s\",\"channel_creds\":[{\"type\":\"insecure\"}]}],\"node\":{\"id\":\"n\"}}";
static const char *const names[CLUSTERS] = {"a", "b", "", "xdstp://x/y"};

struct cluster {
    struct tc_load_cluster *load; /* NULL: not in use */
    struct tc_load_locality *locality;
    size_t open;                              /* RPCs that have not ended */
    struct tc_load_locality *calls[MAX_OPEN]; /* what each open RPC counts for; one reference each */
};

struct counts {
    uint64_t issued, ended, dropped;
};

struct run {
    struct tc_fuzz_input in;
    struct tc_loop *loop;
    struct fake_xds *fake;
    struct fake_xds_server *server;
    struct tc_xds_client *client;
    const struct tc_rstr *key; /* of the server, borrowed from the bootstrap */
    struct cluster clusters[CLUSTERS];
    unsigned stream; /* how many streams have sent their first message */
    /* all: the counts so far. told: of delivered reports. waiting: of reports that wait for a connection. */
    struct counts all, told, waiting;
};

static bool supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)type;
    (void)config;
    return true;
}

/* Ends the newest RPC of the cluster, if there is one. */
static void finish(struct run *r, struct cluster *c, bool good)
{
    if (!c->load || !c->open)
        return;
    struct tc_load_locality *l = c->calls[--c->open];
    tc_load_locality_finished(l, good);
    tc_load_locality_unref(l);
    r->all.ended++;
}

/* Ends the RPCs and the use of the cluster. Does nothing if it is not in use. */
static void leave(struct run *r, struct cluster *c)
{
    while (c->load && c->open)
        finish(r, c, true);
    if (!c->load)
        return;
    tc_load_locality_unref(c->locality);
    tc_load_cluster_unuse(c->load);
    tc_load_cluster_unref(c->load);
    c->load = NULL;
}

static void enter(struct run *r, size_t i)
{
    struct cluster *c = &r->clusters[i];
    struct tc_rstr *name = tc_rstr_str(names[i]), *service = tc_rstr_str("");
    leave(r, c);
    c->load = tc_xds_client_load(r->client, r->key, name, service);
    TC_FUZZ_CHECK(c->load);
    c->locality = tc_load_locality_get(c->load, tc_slice_str("r"), tc_slice_str("z"), tc_slice_str(""));
    tc_rstr_unref(name);
    tc_rstr_unref(service);
}

/* Drops an RPC (bit 6 of `how`), or starts one unless MAX_OPEN are open; with bit 7 then ends one. */
static void count(struct run *r, struct cluster *c, uint8_t how)
{
    if (!c->load)
        return;
    if (how & 0x40) {
        tc_load_cluster_drop(c->load, NULL, 1);
        r->all.dropped++;
    } else if (c->open < MAX_OPEN) {
        static const char *const addresses[] = {"10.0.0.1:80", "[::1]:80", "unix:/x", "unix-abstract:x"};
        struct tc_load_locality *l =
            c->load->by_endpoint
                ? tc_load_endpoint_get(c->load, c->locality, tc_slice_str(addresses[(how >> 3 & 1) | (r->in.len & 2)]))
                : tc_load_locality_ref(c->locality);
        tc_load_locality_started(l);
        c->calls[c->open++] = l;
        r->all.issued++;
        tc_load_locality_metric(l, TC_LOAD_NAMED, tc_slice_str("m"), 1, 1);
    }
    if (how & 0x80)
        finish(r, c, how & 8);
}

/* Sends a response whose fields the script chooses. */
static void respond(struct run *r, uint8_t how)
{
    load_response m = ENVOY__SERVICE__LOAD_STATS__V3__LOAD_STATS_RESPONSE__INIT;
    Google__Protobuf__Duration interval = GOOGLE__PROTOBUF__DURATION__INIT;
    char *wanted[CLUSTERS];
    uint8_t which = tc_fuzz_u8(&r->in);
    struct tc_buf bytes = {0};
    interval.seconds = (int64_t)tc_fuzz_uint(&r->in, how & 0x40 ? 8 : 1);
    interval.nanos = (int32_t)tc_fuzz_uint(&r->in, how & 0x80 ? 4 : 1);
    m.load_reporting_interval = how & 8 ? NULL : &interval;
    m.send_all_clusters = how & 0x10;
    m.report_endpoint_granularity = which & 0x10;
    m.clusters = wanted;
    for (size_t i = 0; i < CLUSTERS; i++)
        if (which & (1u << i))
            wanted[m.n_clusters++] = (char *)(uintptr_t)names[i];
    size_t n = envoy__service__load_stats__v3__load_stats_response__get_packed_size(&m);
    envoy__service__load_stats__v3__load_stats_response__pack(&m, (uint8_t *)tc_buf_reserve(&bytes, n));
    fake_xds_lrs_send(r->server, tc_slice_of(bytes.data, n));
    tc_buf_fini(&bytes);
}

static bool known(const char *name)
{
    for (size_t i = 0; i < CLUSTERS; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Adds the counts of a cluster in a report to `waiting`. Checks that the endpoints of a locality do not add
 * up to more than the locality. */
static void add_cluster(struct run *r, const Envoy__Config__Endpoint__V3__ClusterStats *c)
{
    TC_FUZZ_CHECK(known(c->cluster_name) && c->load_report_interval && c->load_report_interval->seconds >= 0);
    r->waiting.dropped += c->total_dropped_requests;
    for (size_t i = 0; i < c->n_upstream_locality_stats; i++) {
        const Envoy__Config__Endpoint__V3__UpstreamLocalityStats *l = c->upstream_locality_stats[i];
        r->waiting.issued += l->total_issued_requests;
        r->waiting.ended += l->total_successful_requests + l->total_error_requests;
        TC_FUZZ_CHECK(strcmp(l->locality->region, "r") == 0 && strcmp(l->locality->zone, "z") == 0);
        struct counts by_endpoint = {0};
        uint64_t open = 0;
        for (size_t k = 0; k < l->n_upstream_endpoint_stats; k++) {
            const Envoy__Config__Endpoint__V3__UpstreamEndpointStats *e = l->upstream_endpoint_stats[k];
            by_endpoint.issued += e->total_issued_requests;
            by_endpoint.ended += e->total_successful_requests + e->total_error_requests;
            open += e->total_requests_in_progress;
            TC_FUZZ_CHECK(e->address->address_case);
        }
        TC_FUZZ_CHECK(by_endpoint.issued <= l->total_issued_requests && open <= l->total_requests_in_progress &&
                      by_endpoint.ended <= l->total_successful_requests + l->total_error_requests);
    }
}

/* Takes the client's messages. The first message of a stream has the node and no report; later messages report. */
static void take(struct run *r)
{
    struct tc_rstr *message;
    while ((message = fake_xds_lrs_take(r->server))) {
        load_request *m = envoy__service__load_stats__v3__load_stats_request__unpack(NULL, message->len,
                                                                                     (const uint8_t *)message->data);
        TC_FUZZ_CHECK(m);
        if (m->node) {
            TC_FUZZ_CHECK(strcmp(m->node->id, "n") == 0 && m->n_cluster_stats == 0);
            TC_FUZZ_CHECK(m->node->n_client_features > 0 &&
                          strcmp(m->node->client_features[m->node->n_client_features - 1], FEATURE) == 0);
            r->stream++;
            r->waiting = (struct counts){0}; /* the previous stream is gone, with the report that waited */
        }
        TC_FUZZ_CHECK(r->stream > 0 && r->stream <= r->server->lrs_streams);
        for (size_t i = 0; i < m->n_cluster_stats; i++)
            add_cluster(r, m->cluster_stats[i]);
        envoy__service__load_stats__v3__load_stats_request__free_unpacked(m, NULL);
        tc_rstr_unref(message);
    }
    if (r->server->connected) {
        r->told.issued += r->waiting.issued;
        r->told.ended += r->waiting.ended;
        r->told.dropped += r->waiting.dropped;
    }
    if (r->server->connected || !fake_xds_lrs_streaming(r->server))
        r->waiting = (struct counts){0};
    TC_FUZZ_CHECK(r->told.issued <= r->all.issued && r->told.ended <= r->all.ended &&
                  r->told.dropped <= r->all.dropped);
}

static void step(struct run *r, uint8_t op)
{
    size_t i = op >> 4 & 3;
    bool streaming = fake_xds_lrs_streaming(r->server);
    switch (op & 7) {
    case 0:
        enter(r, i);
        break;
    case 1:
        leave(r, &r->clusters[i]);
        break;
    case 2:
        count(r, &r->clusters[i], op);
        break;
    case 3:
        if (streaming)
            respond(r, op);
        break;
    case 4:
        if (streaming)
            fake_xds_lrs_send(r->server, tc_fuzz_short(&r->in));
        break;
    case 5:
        if (streaming)
            fake_xds_lrs_end(r->server, op & 0x10 ? TORC_STATUS_UNAVAILABLE : TORC_STATUS_OK, "over");
        break;
    case 6:
        if (op & 0x10)
            fake_xds_connect(r->server);
        else if (r->server->open)
            fake_xds_fail(r->server, "refused");
        break;
    default:
        tc_loop_advance(r->loop, (uint64_t)(op >> 3) * 200);
        break;
    }
    tc_loop_drain(r->loop);
    take(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *r = TC_NEW(struct run);
    struct tc_xds_client_opts opts;
    struct tc_status error = {0};
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_parse(tc_slice_str(bootstrap_text), supported, NULL, &error);
    TC_FUZZ_CHECK(b);
    r->in = (struct tc_fuzz_input){data, size};
    r->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    r->fake = fake_xds_new(r->loop);
    r->server = fake_xds_server(r->fake, "s");
    tc_xds_client_opts_init(&opts);
    r->client = tc_xds_local_client_new(r->loop, b, fake_xds_factory(r->fake), &opts);
    r->key = b->servers[0].key;
    while (r->in.len)
        step(r, tc_fuzz_u8(&r->in));
    for (size_t i = 0; i < CLUSTERS; i++)
        leave(r, &r->clusters[i]);
    tc_loop_drain(r->loop);
    take(r);
    tc_xds_client_unref(r->client);
    tc_loop_drain(r->loop);
    fake_xds_free(r->fake);
    tc_xds_bootstrap_unref(b);
    tc_loop_free(r->loop);
    tc_free(r);
    return 0;
}
