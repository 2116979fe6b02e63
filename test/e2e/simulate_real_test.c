/* torc simulate against reality: ring_hash, maglev, ring_hash with bounded loads and weighted_round_robin, each with 40
 * clients, 40 backends and at least 100,000 RPCs over sockets.
 *
 * The cluster and its endpoints are one YAML text. `torc simulate --resources` reads it from a file, the clients get it
 * from a control plane. A client is a channel on a runtime of its own: connections and ADS streams are not shared.
 * Backends are servers of the public API on one runtime, which record their load with each answer. The test's thread
 * drives these runtimes; the control plane has a thread.
 *
 * `torc simulate --calls` says which client begins an RPC with which key, and when. The test begins and answers the
 * RPCs in the order of these times; an answer comes when the time of service has passed since the begin. The times are
 * only compared with one another: the test waits until a backend has each RPC, and a client has seen the ends of its
 * answered RPCs before it begins the next one. So the speed of the machine does not matter. The clients decide where an
 * RPC goes.
 *
 * With ring_hash and maglev every backend must get exactly as many RPCs as torc simulate says. Two things are left to
 * chance: with bounded loads, the order of one client's events in one microsecond; and where the schedule of each
 * client's weighted_round_robin begins. There a backend's RPCs may differ by 5 %; differences seen are below 1 %. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <torc/torc.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"
#include "support/net/port.h"
#include "support/sanitizer.h"

/* A backend takes SERVICE_MS for an RPC. In an example with `slow`, every second backend takes SLOWNESS times as long.
 * In an example with `dies`, backend DYING dies DEATH_MS after the moment at which torc simulate begins to count
 * calls. */
enum { CLIENTS = 40, BACKENDS = 40, SERVICE_MS = 100, SLOWNESS = 3, DYING = 17, DEATH_MS = 1250, LEAST_CALLS = 100000 };
enum { DESCRIPTORS = 6000, WARM_UP_CALLS = 80 }; /* files that the process may need; RPCs of a round of warm_up */

struct backend {
    torc_server *server; /* NULL: the backend has died */
    char address[32];
    int port_fd;               /* holds the port, also while nobody listens there */
    uint64_t calls, simulated; /* RPCs that it got, and that it gets by torc simulate */
    uint64_t ended, busy; /* the load that it reports: RPCs that it answered; the sum of their times, in SERVICE_MS */
    bool slow;
};

struct client {
    torc_runtime *runtime;
    torc_channel *channel;
    unsigned answered; /* RPCs that backends have answered and the client has not seen end */
};

struct call {
    uint64_t at_us; /* when it begins */
    struct client *client;
    unsigned key;
    struct backend *backend;      /* NULL: no backend has the RPC yet */
    torc_server_call *served;     /* the backend's handle, until call_end */
    bool arrived, answered, done; /* at the backend; by the backend; at the client */
    int code;
};

struct calls {
    TC_VEC(struct call *) at;
    size_t first; /* index of the first call that end_until has not ended */
};

struct example {
    const char *cluster;    /* fields of the Cluster */
    const char *simulate;   /* options of torc simulate */
    bool slow, dies, exact; /* exact: no backend's RPCs may differ */
};

static struct kit_mesh *mesh;
static torc_runtime *servers;
static struct backend backends[BACKENDS];
static struct client clients[CLIENTS];
static char calls_path[] = "/tmp/torc-simulate-XXXXXX", mesh_path[] = "/tmp/torc-simulate-XXXXXX.yaml";

/* --- RPCs --- */

/* The request is the address of the RPC's struct call. */
static void on_call(torc_server_call *served, const torc_message *request, void *arg)
{
    struct call *call;
    assert_int_equal(torc_message_size(request), sizeof(call));
    memcpy(&call, torc_message_data(request), sizeof(call));
    call->backend = arg;
    call->backend->calls++;
    call->served = served;
    call->arrived = true;
}

static void on_result(const torc_result *result, void *arg)
{
    struct call *call = arg;
    call->done = true;
    call->code = torc_result_code(result);
    call->client->answered -= call->answered;
    if (!call->arrived)
        fail_msg("no backend has the RPC: %s", torc_result_text(result));
}

/* Turns the client, then the backends. Waits for the client, at most a millisecond, if neither had work. */
static void turn(const struct client *c)
{
    int turned = torc_runtime_poll(c->runtime, 0);
    turned |= torc_runtime_poll(servers, 0);
    if (!turned)
        torc_runtime_poll(c->runtime, 1);
}

/* Waits until the client has seen the end of its answered RPCs, begins the RPC, and waits until a backend has it. */
static void call_begin(struct call *call)
{
    char key[32];
    torc_metadata *headers = torc_metadata_new();
    const struct torc_call_options o = {TORC_SIZE(torc_call_options), .metadata = headers};
    while (call->client->answered)
        turn(call->client);
    torc_metadata_add(headers, "key", key, (size_t)snprintf(key, sizeof(key), "key-%u", call->key));
    assert_int_equal(
        torc_unary_async(call->client->channel, "a.B/C", &call, sizeof(call), &o, on_result, call, NULL, NULL), 0);
    torc_metadata_free(headers);
    while (!call->arrived)
        turn(call->client);
}

/* Answers the RPC. If the RPC is done already, its backend has died, and only the backend's handle is given up. */
static void call_end(struct call *call)
{
    struct backend *b = call->backend;
    if (!call->done) {
        call->answered = true;
        call->client->answered++;
        b->ended++;
        b->busy += b->slow ? SLOWNESS : 1;
        assert_int_equal(torc_orca_record(call->served, TORC_ORCA_RPS, NULL, (double)b->ended), 0);
        assert_int_equal(torc_orca_record(call->served, TORC_ORCA_CPU, NULL, (double)b->busy / 1e6), 0);
    }
    torc_server_call_reply(call->served, "", 0);
}

/* Returns when the time of service is over. */
static uint64_t call_end_us(const struct call *call)
{
    return call->at_us + 1000 * SERVICE_MS * (call->backend->slow ? SLOWNESS : UINT64_C(1));
}

/* --- the run --- */

/* Ends the calls whose time of service is over at until_us, in the order of their ends. under_way: the calls of fast
 * backends, and those of slow ones, each list in the order of the ends. */
static void end_until(struct calls under_way[2], uint64_t until_us)
{
    for (;;) {
        struct calls *next = NULL;
        for (int i = 0; i < 2; i++) {
            struct calls *c = &under_way[i];
            if (c->first < c->at.len &&
                (!next || call_end_us(c->at.data[c->first]) < call_end_us(next->at.data[next->first])))
                next = c;
        }
        if (!next || call_end_us(next->at.data[next->first]) > until_us)
            return;
        call_end(next->at.data[next->first++]);
    }
}

/* Frees the backend's server, which closes its connections, and waits until the RPCs under way there have failed.
 * Then turns each client until the client has nothing to do, and so has seen its connection close. */
static void die(struct backend *b, const struct calls under_way[2])
{
    torc_server_free(b->server);
    b->server = NULL;
    for (int i = 0; i < 2; i++) {
        for (size_t k = under_way[i].first; k < under_way[i].at.len; k++) {
            const struct call *call = under_way[i].at.data[k];
            while (call->backend == b && !call->done)
                turn(call->client);
        }
    }
    for (int i = 0; i < CLIENTS; i++)
        while (torc_runtime_poll(clients[i].runtime, 0) == 1)
            continue;
}

/* Makes the n calls, which are in the order of their begins. Returns how many RPCs failed. */
static uint64_t replay(const struct example *e, struct call *calls, size_t n)
{
    struct calls under_way[2] = {0};
    uint64_t failed = 0;
    bool dies = e->dies;
    for (size_t i = 0; i < n; i++) {
        if (dies && calls[i].at_us >= 1000 * DEATH_MS) {
            end_until(under_way, 1000 * DEATH_MS);
            die(&backends[DYING], under_way);
            dies = false;
        }
        end_until(under_way, calls[i].at_us);
        call_begin(&calls[i]);
        *tc_vec_push(&under_way[calls[i].backend->slow].at) = &calls[i];
    }
    end_until(under_way, UINT64_MAX);
    for (int i = 0; i < CLIENTS; i++)
        while (clients[i].answered)
            turn(&clients[i]);
    for (size_t i = 0; i < n; i++)
        failed += calls[i].code != TORC_STATUS_OK;
    tc_vec_fini(&under_way[0].at);
    tc_vec_fini(&under_way[1].at);
    return failed;
}

/* Makes rounds of RPCs until slow backends get at most about a quarter of a round: the client then has the weights of
 * all backends. */
static void warm_up(struct client *c)
{
    unsigned to_slow;
    do {
        to_slow = 0;
        for (unsigned i = 0; i < WARM_UP_CALLS; i++) {
            struct call call = {.client = c, .key = i};
            call_begin(&call);
            call_end(&call);
            while (!call.done)
                turn(c);
            to_slow += call.backend->slow;
        }
    } while (to_slow > WARM_UP_CALLS / (SLOWNESS + 1) + 2);
}

/* --- torc simulate --- */

/* Reads a line of `torc simulate -o csv`, which may hold the number of a backend's calls. */
static void read_backend(const char *line)
{
    for (int i = 0; i < BACKENDS; i++) {
        char *name = tc_asprintf(",backend,\"%s\",", backends[i].address);
        const char *found = strstr(line, name);
        if (found)
            backends[i].simulated = strtoull(found + strlen(name), NULL, 10);
        tc_free(name);
    }
}

/* Runs torc simulate, which writes the calls to calls_path, and sets `simulated` of each backend. */
static void simulate(const struct example *e)
{
    struct tc_buf command = {0};
    char *line = NULL;
    size_t room = 0;
    tc_buf_printf(&command,
                  "%s/torc simulate --resources %s --cluster c --clients %d --rate 1010 --duration 2500ms --service "
                  "%dms --calls %s -o csv %s",
                  getenv("TORC_BINARY_DIR"), mesh_path, CLIENTS, SERVICE_MS, calls_path, e->simulate);
    for (int i = 0; i < BACKENDS; i++)
        if (backends[i].slow)
            tc_buf_printf(&command, " --slow %s=%d", backends[i].address, SLOWNESS);
    if (e->dies)
        tc_buf_printf(&command, " --kill %s@%dms", backends[DYING].address, DEATH_MS);
    FILE *out = popen(tc_buf_cstr(&command), "r");
    assert_non_null(out);
    while (getline(&line, &room, out) > 0)
        read_backend(line);
    assert_int_equal(pclose(out), 0);
    free(line);
    tc_buf_fini(&command);
}

/* Returns the *n calls that --calls wrote; the caller frees them with tc_free. */
static struct call *read_calls(size_t *n)
{
    TC_VEC(struct call) calls = {0};
    unsigned long long at_us;
    unsigned client, key;
    FILE *in = fopen(calls_path, "r");
    assert_non_null(in);
    while (fscanf(in, "%llu,%u,key-%u,%*s", &at_us, &client, &key) == 3) {
        assert_in_range(client, 0, CLIENTS - 1);
        *tc_vec_push(&calls) = (struct call){.at_us = at_us, .client = &clients[client], .key = key};
    }
    assert_true(feof(in));
    fclose(in);
    *n = calls.len;
    return calls.data;
}

/* --- examples --- */

static torc_runtime *new_runtime(void)
{
    const struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_runtime *rt = torc_runtime_new(&o, NULL);
    assert_non_null(rt);
    return rt;
}

static void start_backend(struct backend *b)
{
    const struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = servers};
    const struct torc_handler h = {TORC_SIZE(torc_handler), .unary = on_call, .arg = b};
    uint16_t port;
    b->port_fd = port_hold(&port);
    snprintf(b->address, sizeof(b->address), "127.0.0.1:%u", port);
    b->server = torc_server_new(&o, NULL);
    assert_int_equal(torc_server_add_method(b->server, "a.B/C", &h, NULL), 0);
    assert_int_equal(torc_server_listen(b->server, b->address, torc_credentials_insecure(), NULL, NULL), 0);
    assert_int_equal(torc_server_start(b->server, NULL), 0);
}

/* Gives the cluster and its endpoints to the control plane and, by a file, to torc simulate. The control plane also
 * gets the listener "svc", whose route hashes the header "key". */
static void put_mesh(const char *cluster)
{
    struct tc_buf text = {0};
    tc_buf_printf(&text,
                  "resources:\n"
                  "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                  "  name: c\n"
                  "  type: EDS\n"
                  "  eds_cluster_config: {eds_config: {ads: {}}}\n"
                  "  circuit_breakers: {thresholds: [{max_requests: 1000000}]}\n"
                  "  %s\n"
                  "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                  "  cluster_name: c\n"
                  "  endpoints:\n"
                  "  - load_balancing_weight: 1\n"
                  "    locality: {sub_zone: a}\n"
                  "    lb_endpoints:\n",
                  cluster);
    for (int i = 0; i < BACKENDS; i++)
        tc_buf_printf(&text, "    - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}\n",
                      strchr(backends[i].address, ':') + 1);
    kit_mesh_put(mesh, "%s", tc_buf_cstr(&text));
    kit_mesh_put_listener(mesh, "svc", "c", "[{header: {header_name: key}}]");
    FILE *out = fopen(mesh_path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(text.data, 1, text.len, out), text.len);
    assert_int_equal(fclose(out), 0);
    tc_buf_fini(&text);
}

/* Fails if a backend got other RPCs than torc simulate says: by more than 5 %, or, with `exact`, at all. */
static void compare(const struct example *e)
{
    double worst = 0;
    for (int i = 0; i < BACKENDS; i++) {
        double real = (double)backends[i].calls, simulated = (double)backends[i].simulated;
        double off = real > simulated ? real - simulated : simulated - real;
        if (off > (e->exact ? 0 : 0.05 * simulated))
            fail_msg("%s: %.0f RPCs in reality, and %.0f simulated", backends[i].address, real, simulated);
        if (off > 0)
            worst = TC_MAX(worst, off / simulated);
    }
    print_message("the largest difference of a backend's RPCs: %.3f %%\n", 100 * worst);
}

static void run(void **state)
{
    const struct example *e = *state;
    size_t n;
    uint64_t failed, simulated = 0;
    servers = new_runtime();
    mesh = kit_mesh_new(0);
    for (int i = 0; i < BACKENDS; i++) {
        backends[i] = (struct backend){.slow = e->slow && i % 2 == 0};
        start_backend(&backends[i]);
    }
    put_mesh(e->cluster);
    simulate(e);
    struct call *calls = read_calls(&n);
    const struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                           .xds_bootstrap_json = kit_mesh_bootstrap(mesh),
                                           .xds_resource_timeout_ms = 60000};
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].runtime = new_runtime();
        clients[i].channel = torc_channel_new(clients[i].runtime, "xds:///svc", &o, NULL);
        assert_non_null(clients[i].channel);
        if (e->slow)
            warm_up(&clients[i]);
    }
    for (int i = 0; i < BACKENDS; i++) {
        backends[i].calls = 0;
        simulated += backends[i].simulated;
    }
    assert_true(n >= LEAST_CALLS && simulated == n);
    failed = replay(e, calls, n);
    assert_true(e->dies ? failed > 0 : failed == 0);
    compare(e);
    for (int i = 0; i < CLIENTS; i++) {
        torc_channel_free(clients[i].channel);
        assert_int_equal(torc_runtime_free(clients[i].runtime), 0);
    }
    for (int i = 0; i < BACKENDS; i++) {
        torc_server_free(backends[i].server);
        close(backends[i].port_fd);
    }
    assert_int_equal(torc_runtime_free(servers), 0);
    kit_mesh_free(mesh);
    tc_free(calls);
}

#define LB "type.googleapis.com/envoy.extensions.load_balancing_policies."
#define POLICIES(of) "{policies: [{typed_extension_config: {name: x, typed_config: {\"@type\": " LB of "}}}]}"
#define BOUNDED ", consistent_hashing_lb_config: {hash_balance_factor: 125}"
#define WEIGHTED                                                                                                       \
    "wrr_locality.v3.WrrLocality, endpoint_picking_policy: " POLICIES(                                                 \
        "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin, blackout_period: 0s, "                      \
        "weight_update_period: 0.1s")

static struct example ring_hash = {"lb_policy: RING_HASH", "--zipf 0.9", .dies = true, .exact = true};
static struct example maglev = {"lb_policy: MAGLEV", "--zipf 0.9", .exact = true};
static struct example bounded = {"load_balancing_policy: " POLICIES("ring_hash.v3.RingHash" BOUNDED), "--hot 20",
                                 .exact = false};
static struct example weighted = {"load_balancing_policy: " POLICIES(WEIGHTED), "--warm-up 5s", .slow = true,
                                  .dies = true};

#define TEST(example)                                                                                                  \
    {                                                                                                                  \
#example, run, NULL, NULL, &(example)                                                                          \
    }

int main(void)
{
#if SANITIZER_ADDRESS || SANITIZER_THREAD
    print_message("skipped: with a sanitizer it takes minutes\n");
    return 77;
#endif
    const struct CMUnitTest tests[] = {TEST(ring_hash), TEST(maglev), TEST(bounded), TEST(weighted)};
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < DESCRIPTORS) {
        print_message("skipped: it needs %d descriptors\n", DESCRIPTORS);
        return 77;
    }
    limit.rlim_cur = TC_MAX(limit.rlim_cur, (rlim_t)DESCRIPTORS);
    setrlimit(RLIMIT_NOFILE, &limit);
    int calls_fd = mkstemp(calls_path), mesh_fd = mkstemps(mesh_path, 5);
    if (calls_fd < 0 || mesh_fd < 0)
        return 1;
    close(calls_fd);
    close(mesh_fd);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(calls_path);
    unlink(mesh_path);
    return rc;
}
