/* CSDS in an application with 2,001 clusters, and clients that ask for too much: how much memory that takes, and how
 * late the application's calls become. For comparison a second runtime of the process, without xDS and CSDS, calls the
 * same backend at the same rate: delays of its calls are the machine's. The control plane and the backend, which share
 * a thread, and the application's runtime are those of kits/mesh.h.
 *
 * Two loads, one on the application's runtime and one on the second, start calls all the time, on threads of their own.
 * A phase lasts from `begin` to `finish`, which looks at the growth of memory and at the longest calls of both loads.
 * Greedy clients are sockets without a runtime, which the test's thread or the thread of read_all uses. A good client
 * (fetch), on a third runtime, asks while greedy clients do. Every runtime has a thread of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"
#include "support/footprint.h"
#include "support/kits/load.h"
#include "support/kits/mesh.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"

#include "pb/envoy/service/status/v3/csds.pb-c.h"

#define SERVICE "/envoy.service.status.v3.ClientStatusDiscoveryService/"
#define REQUEST                                                                                                        \
    ":method: POST\n:scheme: http\n:path: " SERVICE                                                                    \
    "StreamClientStatus\n:authority: a\nte: trailers\ncontent-type: application/grpc\n"
#define CLUSTERS 2000
#define CLIENTS 64
#define RPS 200
#define CALLS 800 /* how many each go_on waits for */
#define GROWN_KB_MAX (64 * 1024)
#define LATE_MS_MAX 50

struct world {
    struct kit_mesh *k;
    torc_channel *ch, *beside; /* the application's, to the listener svc; for comparison, to backend 0 without xDS */
    torc_runtime *other;       /* used by `beside` */
    torc_csds *csds;
    torc_runtime *asker;                 /* used by `ask` */
    torc_channel *ask;                   /* the good client's, to `csds` */
    struct kit_load *load, *load_beside; /* on `ch` and on `beside` */
    size_t status_bytes;                 /* of one answer of `csds` */
};

/* --- the application --- */

static void put_clusters(struct kit_mesh *k)
{
    struct tc_buf text = {0}, routes = {0};
    tc_buf_append_str(&text, "resources:\n");
    for (int i = 0; i < CLUSTERS; i++) {
        tc_buf_printf(&text,
                      "- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c%d, type: EDS, "
                      "eds_cluster_config: {eds_config: {ads: {}}, service_name: e}, lb_policy: ROUND_ROBIN, "
                      "metadata: {filter_metadata: {about: {text: \"%0250d\"}}}}\n",
                      i, i);
        tc_buf_printf(&routes, "%s{match: {prefix: \"/%d/\"}, route: {cluster: c%d}}", i ? ", " : "", i, i);
    }
    kit_mesh_put_endpoints(k, "e", "0/a: 0", NULL);
    kit_mesh_put(k, "%s", tc_buf_cstr(&text));
    kit_mesh_put_cluster(k, "c", NULL);
    kit_mesh_put_endpoints(k, "c", "0/a: 0", NULL);
    tc_buf_append_str(&routes, ", {match: {prefix: \"\"}, route: {cluster: c}}");
    kit_mesh_put_routes(k, "svc", tc_buf_cstr(&routes));
    tc_buf_fini(&routes);
    tc_buf_fini(&text);
}

/* Asks as a good client would, and checks the answer. Returns the answer's size in bytes. After UNAVAILABLE asks again,
 * for up to `patience_ms`, because the server may close the good client's connection to make room for others. */
static size_t fetch(struct world *w, uint64_t patience_ms)
{
    uint64_t began_ms = tc_system_clock.monotonic_ns(NULL) / TC_NS_PER_MS;
    torc_result *r;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .max_receive_message_bytes = 64u << 20,
                                  .timeout_ms = 60000, .wait_for_ready = TORC_ON};
    r = torc_unary(w->ask, SERVICE "FetchClientStatus", "", 0, &o);
    while (torc_result_code(r) == TORC_STATUS_UNAVAILABLE &&
           tc_system_clock.monotonic_ns(NULL) / TC_NS_PER_MS - began_ms < patience_ms) {
        torc_result_free(r);
        r = torc_unary(w->ask, SERVICE "FetchClientStatus", "", 0, &o);
    }
    if (torc_result_code(r) != TORC_STATUS_OK)
        fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    size_t size = torc_message_size(torc_result_response(r));
    Envoy__Service__Status__V3__ClientStatusResponse *m = envoy__service__status__v3__client_status_response__unpack(
        NULL, size, torc_message_data(torc_result_response(r)));
    assert_non_null(m);
    assert_int_equal(m->n_config, 1);
    assert_true(m->config[0]->n_generic_xds_configs > CLUSTERS);
    envoy__service__status__v3__client_status_response__free_unpacked(m, NULL);
    torc_result_free(r);
    return size;
}

static struct world open_world(void)
{
    struct world w = {.k = kit_mesh_new(1)};
    torc_error *error = NULL;
    put_clusters(w.k);
    w.csds = torc_csds_serve(kit_mesh_runtime(w.k), "127.0.0.1:0", &error);
    assert_null(error);
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    kit_mesh_calls(w.ch, NULL, 10);
    w.other = torc_runtime_new(NULL, NULL);
    w.beside = torc_channel_new(w.other, kit_mesh_address(w.k, 0), NULL, NULL);
    kit_mesh_calls(w.beside, NULL, 10);
    w.asker = torc_runtime_new(NULL, NULL);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .backoff_initial_ms = 20, .backoff_max_ms = 100};
    w.ask = torc_channel_new(w.asker, torc_csds_address(w.csds), &o, NULL);
    w.status_bytes = fetch(&w, 0);
    w.load = kit_load_new(w.ch, RPS, 1);
    w.load_beside = kit_load_new(w.beside, RPS, 1);
    return w;
}

static void close_world(struct world *w)
{
    struct kit_load_report of, beside;
    kit_load_free(w->load, &of);
    kit_load_free(w->load_beside, &beside);
    assert_string_equal(of.first, "");
    assert_string_equal(beside.first, "");
    torc_channel_free(w->ask);
    torc_runtime_free(w->asker);
    torc_channel_free(w->beside);
    torc_runtime_free(w->other);
    torc_csds_free(w->csds);
    torc_channel_free(w->ch);
    kit_mesh_free(w->k);
}

/* --- greedy clients --- */

/* Returns a blocking socket that is connected to `address`, "127.0.0.1:PORT". */
static int connect_raw(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint64_t port;
    CHECK(tc_parse_u64(tc_slice_str(strrchr(address, ':') + 1), UINT16_MAX, &port) == 0);
    to.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    return fd;
}

/* Opens a connection with the largest windows, and `streams` streams on it with `requests` requests each. Returns the
 * socket. */
static int ask_for_much(const char *address, unsigned streams, unsigned requests)
{
    struct fake_h2 *peer = fake_h2_new_raw(false);
    int fd = connect_raw(address);
    fake_h2_start(peer);
    fake_h2_setting(peer, 4 /* INITIAL_WINDOW_SIZE */, INT32_MAX);
    fake_h2_window(peer, 0, INT32_MAX - 65535);
    for (unsigned i = 0; i < streams; i++) {
        fake_h2_headers(peer, 2 * i + 1, REQUEST, false);
        for (unsigned k = 0; k < requests; k++)
            fake_h2_message(peer, 2 * i + 1, "", 0, false);
    }
    const struct tc_buf *out = fake_h2_take(peer);
    for (size_t at = 0; at < out->len;) {
        ssize_t n = send(fd, out->data + at, out->len - at, MSG_NOSIGNAL);
        if (n <= 0)
            break; /* closed meanwhile */
        at += (size_t)n;
    }
    fake_h2_free(peer);
    return fd;
}

/* Greedy clients that read, on a thread of their own (read_all). `bytes` and `connections` are for the test once that
 * thread has ended. */
struct readers {
    const char *address;
    unsigned streams, requests;
    pthread_t thread;
    atomic_bool stop;
    uint64_t bytes, connections;
};

/* Asks on CLIENTS connections at once and reads as fast as it can. Replaces connections that the server closes. */
static void *read_all(void *arg)
{
    struct readers *r = arg;
    static char room[1 << 20];
    struct pollfd p[CLIENTS];
    for (size_t i = 0; i < CLIENTS; i++)
        p[i] = (struct pollfd){.fd = ask_for_much(r->address, r->streams, r->requests), .events = POLLIN};
    r->connections = CLIENTS;
    while (!r->stop) {
        poll(p, CLIENTS, 20);
        for (size_t i = 0; i < CLIENTS; i++) {
            ssize_t n = p[i].revents ? recv(p[i].fd, room, sizeof(room), MSG_DONTWAIT) : 1;
            if (p[i].revents && n > 0)
                r->bytes += (uint64_t)n;
            if (n > 0 || (n < 0 && errno == EAGAIN))
                continue;
            close(p[i].fd);
            p[i].fd = ask_for_much(r->address, r->streams, r->requests);
            r->connections++;
        }
    }
    for (size_t i = 0; i < CLIENTS; i++)
        close(p[i].fd);
    return NULL;
}

/* --- results --- */

struct phase {
    const char *name;
    struct footprint before;
};

static struct phase begin(struct world *w, const char *name)
{
    kit_load_lap(w->load);
    kit_load_lap(w->load_beside);
    return (struct phase){name, footprint_begin()};
}

/* Asserts that the peak of memory is at most GROWN_KB_MAX above the memory at `begin`. Returns false if the longest
 * call of the phase took over LATE_MS_MAX longer than the longest call of the second runtime. Where nothing can be
 * measured (support/footprint.h), checks neither and returns true. */
static bool finish(struct world *w, const struct phase *p)
{
    struct footprint grown = footprint_since(&p->before);
    uint64_t longest_ms = kit_load_lap(w->load), beside_ms = kit_load_lap(w->load_beside);
    print_message("%s: a status of %zu bytes; %ld kB more; longest call %llu ms, of a runtime beside it %llu ms\n",
                  p->name, w->status_bytes, grown.kb, (unsigned long long)longest_ms, (unsigned long long)beside_ms);
    if (!FOOTPRINT_MEASURED)
        return true;
    assert_true(grown.kb <= GROWN_KB_MAX);
    return longest_ms <= beside_ms + LATE_MS_MAX;
}

/* Runs the phase until calls are not late, at most three times. Fails the test if they are late each time: a stall of
 * the machine does not repeat. */
static void not_late(struct world *w, bool (*phase)(struct world *w))
{
    for (int i = 0; !phase(w); i++)
        if (i == 2)
            fail_msg("calls are more than %d ms late each time", LATE_MS_MAX);
}

/* Waits until the load on `ch` has started CALLS calls more than it has started by now. */
static void go_on(struct world *w)
{
    kit_load_wait_more(w->load, CALLS);
}

static bool nobody_asks(struct world *w)
{
    struct phase p = begin(w, "nobody asks");
    go_on(w);
    return finish(w, &p);
}

static bool nobody_reads(struct world *w, unsigned streams)
{
    int fds[CLIENTS];
    struct phase p = begin(w, streams > 2 ? "100 streams each that nobody reads" : "2 streams each that nobody reads");
    for (size_t i = 0; i < CLIENTS; i++)
        fds[i] = ask_for_much(torc_csds_address(w->csds), streams, 10);
    go_on(w);
    fetch(w, 60000); /* a good client is served nevertheless */
    bool ok = finish(w, &p);
    for (size_t i = 0; i < CLIENTS; i++)
        close(fds[i]);
    return ok;
}

static bool nobody_reads_few(struct world *w)
{
    return nobody_reads(w, 2);
}

static bool nobody_reads_many(struct world *w)
{
    return nobody_reads(w, 100);
}

static bool all_read(struct world *w)
{
    struct readers r = {.address = torc_csds_address(w->csds), .streams = 2, .requests = 1000};
    struct phase p = begin(w, "as much as can be read");
    assert_int_equal(pthread_create(&r.thread, NULL, read_all, &r), 0);
    go_on(w);
    fetch(w, 60000);
    r.stop = true;
    pthread_join(r.thread, NULL);
    bool ok = finish(w, &p);
    print_message("%llu MB in %llu answers were read over %llu connections\n", (unsigned long long)(r.bytes >> 20),
                  (unsigned long long)(r.bytes / w->status_bytes), (unsigned long long)r.connections);
    assert_true(r.bytes / w->status_bytes > CLIENTS);
    return ok;
}

/* CLIENTS connections fall silent before their first request is complete. A good client is served nevertheless. One
 * round for each of five points at which they fall silent. */
static void silent_ones(struct world *w)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct fake_h2 *peer = fake_h2_new_raw(false);
    struct tc_buf block = {0}, started = {0};
    int fds[CLIENTS];
    fake_h2_hpack(&block, REQUEST);
    fake_h2_start(peer);
    tc_buf_append_slice(&started, tc_buf_slice(fake_h2_take(peer)));
    fake_h2_frame(peer, FAKE_H2_HEADERS, 0, 1, block.data, block.len); /* END_HEADERS is missing */
    const struct tc_slice said[] = {tc_slice_of("", 0), tc_slice_of(preface, 10), tc_slice_of(preface, 24),
                                    tc_buf_slice(&started), tc_buf_slice(fake_h2_take(peer))};
    for (size_t kind = 0; kind < TC_ARRAY_LEN(said); kind++) {
        for (size_t i = 0; i < CLIENTS; i++) {
            fds[i] = connect_raw(torc_csds_address(w->csds));
            send(fds[i], said[kind].data, said[kind].len, MSG_NOSIGNAL);
        }
        assert_int_equal(fetch(w, 60000), w->status_bytes);
        for (size_t i = 0; i < CLIENTS; i++)
            close(fds[i]);
    }
    tc_buf_fini(&started);
    tc_buf_fini(&block);
    fake_h2_free(peer);
}

static void greedy_clients(void **state)
{
    (void)state;
    struct world w = open_world();
    go_on(&w); /* no phase measures the calls of the start */
    not_late(&w, nobody_asks);
    not_late(&w, nobody_reads_few);
    not_late(&w, nobody_reads_many);
    not_late(&w, all_read);
    silent_ones(&w);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(greedy_clients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
