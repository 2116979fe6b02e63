/* torc demo: keys that stay on their backends through a mesh, shown with real RPCs.
 *
 * The steps (keys, a stopped backend, an added one, a route split, an explained and a failed RPC, counts) use
 * xds:///shop.demo. Each claim is checked before it is printed. The owners of keys are compared with a ring that
 * ring_owner computes without the channel. At the end, the number of RPCs that each backend answered, as the client
 * saw it, is compared with the backend's own count. The exit status is 0 only if every claim held.
 *
 * The servers (world.h) run on a thread of their own. The channel's runtime has no thread: the main thread, which runs
 * everything in this file, drives it while waiting for an RPC. cmd_demo frees what setup made, also after a failure.
 * Functions with `why` return false with a text in *why (tc_free) after a failure. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include <torc/torc.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "cli.h"
#include "cli_options.h"
#include "commands.h"
#include "ring/ring.h"
#include "world.h"

#define NAME "demo"
#define KEYS 100
#define SPLIT_CALLS 2000
#define WAIT_NS (30 * TC_NS_PER_S) /* deadline of each RPC, and limit of each wait; far more than a step takes */

static const char help[] =
    "usage: torc demo [options]\n\n"
    "Starts an embedded control plane and five backends, opens xds:///shop.demo and shows with real\n"
    "RPCs: keys that stay on their backend, a backend that dies, one that is added, a split route, and\n"
    "a failed RPC explained. Exits 0 only if every claim that it prints held.\n\n"
    "  -o text|json   form of the output (text): json has the figures that were measured\n"
    "  -v, -vv        log to standard error\n\n"
    "Example:\n"
    "  torc demo\n";

struct demo {
    bool json;
    struct world *world;
    torc_runtime *runtime;
    torc_channel *channel;
    int owner[KEYS];               /* each key's backend when all backends ran; -1: its RPC failed */
    uint64_t sent[WORLD_BACKENDS]; /* RPCs that the client saw each backend answer */
    int claims, held;
    struct tc_buf figures; /* for -o json: members of an object */
};

/* Prints a text for people; nothing with -o json. */
static void say(struct demo *d, const char *fmt, ...) TC_PRINTF(2, 3);
static void say(struct demo *d, const char *fmt, ...)
{
    va_list ap;
    if (d->json)
        return;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    cli_flush();
}

/* Counts a claim, and prints it. With -o json, prints only a claim that did not hold, on standard error. */
static void claim(struct demo *d, bool held, const char *fmt, ...) TC_PRINTF(3, 4);
static void claim(struct demo *d, bool held, const char *fmt, ...)
{
    struct tc_buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    d->claims++;
    d->held += held;
    const char *colour = held ? "\033[32m" : "\033[31m";
    bool coloured = cli_colour();
    say(d, "  %s%s%s %s\n", coloured ? colour : "", held ? "ok  " : "FAIL", coloured ? "\033[0m" : "", tc_buf_cstr(&b));
    if (!held && d->json)
        cli_fail(NAME, "claim did not hold: %s", tc_buf_cstr(&b));
    tc_buf_fini(&b);
}

static int backend_of(const struct demo *d, const char *peer)
{
    for (int i = 0; i < WORLD_BACKENDS; i++)
        if (strcmp(world_backend(d->world, i), peer) == 0)
            return i;
    return -1;
}

/* Makes one RPC. Returns the index of the backend that answered, or -1 if the RPC failed. `user`: the value of the
 * header that is hashed; NULL: no header. `result` may be NULL; then a failure is printed. Otherwise the caller frees
 * *result (torc_result_free). */
static int call(struct demo *d, const char *method, const char *user, bool explain, torc_result **result)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = WAIT_NS / TC_NS_PER_MS,
                                  .explain = explain};
    torc_metadata *md = torc_metadata_new();
    if (user)
        torc_metadata_add_string(md, "user", user);
    o.metadata = md;
    torc_result *r = torc_unary(d->channel, method, "hello", 5, &o);
    torc_metadata_free(md);
    int who = torc_result_code(r) == TORC_STATUS_OK ? backend_of(d, torc_result_peer(r)) : -1;
    if (who >= 0)
        d->sent[who]++;
    if (torc_result_code(r) != TORC_STATUS_OK && !result)
        say(d, "       %s: %s\n", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    if (result)
        *result = r;
    else
        torc_result_free(r);
    return who;
}

static int call_key(struct demo *d, int key)
{
    char user[16];
    snprintf(user, sizeof(user), "user-%d", key);
    return call(d, "shop.Orders/Get", user, false, NULL);
}

/* Returns the index of the backend, of the first n, that owns a key on a ring that is computed here. Passes over the
 * entries of backend `skip`, as if this backend were unreachable; -1: passes over none. */
static int ring_owner(const struct demo *d, int n, int key, int skip)
{
    struct tc_ring_item items[WORLD_BACKENDS];
    char user[16];
    for (int i = 0; i < n; i++)
        items[i] = (struct tc_ring_item){tc_slice_str(world_backend(d->world, i)), 1};
    struct tc_ring *ring = tc_ring_new(items, (size_t)n, 1024, 4096, 4096);
    snprintf(user, sizeof(user), "user-%d", key);
    uint32_t at = tc_ring_find(ring, tc_xxh64(user, strlen(user)));
    while ((int)tc_ring_item_at(ring, at) == skip)
        at = (at + 1) % tc_ring_size(ring);
    int owner = (int)tc_ring_item_at(ring, at);
    tc_ring_unref(ring);
    return owner;
}

/* Sets the endpoints of the cluster orders: the first n backends. */
static bool put_endpoints(struct demo *d, int n, char **why)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "resources:\n"
                          "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                          "  cluster_name: orders\n"
                          "  endpoints:\n"
                          "  - locality: {region: demo}\n"
                          "    load_balancing_weight: 1\n"
                          "    lb_endpoints:\n");
    for (int i = 0; i < n; i++)
        tc_buf_printf(&b, "    - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}\n",
                      strrchr(world_backend(d->world, i), ':') + 1);
    bool ok = world_put(d->world, tc_buf_cstr(&b), why);
    tc_buf_fini(&b);
    return ok;
}

static const char mesh[] =
    "version_info: \"1\"\n"
    "resources:\n"
    "- \"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\n"
    "  name: shop.demo\n"
    "  api_listener:\n"
    "    api_listener:\n"
    "      \"@type\": "
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager\n"
    "      rds: {route_config_name: shop-routes, config_source: {ads: {}}}\n"
    "      http_filters:\n"
    "      - name: router\n"
    "        typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}\n"
    "- \"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n"
    "  name: shop-routes\n"
    "  virtual_hosts:\n"
    "  - name: shop\n"
    "    domains: [\"*\"]\n"
    "    routes:\n"
    "    - match: {prefix: /shop.Orders/}\n"
    "      route: {cluster: orders, hash_policy: [{header: {header_name: user}}]}\n"
    "    - match: {prefix: /shop.Checkout/}\n"
    "      route:\n"
    "        weighted_clusters:\n"
    "          clusters: [{name: checkout-a, weight: 80}, {name: checkout-b, weight: 20}]\n"
    "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
    "  name: orders\n"
    "  type: EDS\n"
    "  eds_cluster_config: {eds_config: {ads: {}}}\n"
    "  lb_policy: RING_HASH\n";

/* Adds a cluster of this name, and its one endpoint: the backend with this index. */
static bool put_single(struct demo *d, const char *name, int backend, char **why)
{
    struct tc_buf b = {0};
    tc_buf_printf(&b,
                  "resources:\n"
                  "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                  "  name: %s\n"
                  "  type: EDS\n"
                  "  eds_cluster_config: {eds_config: {ads: {}}}\n"
                  "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                  "  cluster_name: %s\n"
                  "  endpoints:\n"
                  "  - locality: {region: demo}\n"
                  "    load_balancing_weight: 1\n"
                  "    lb_endpoints:\n"
                  "    - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}\n",
                  name, name, strrchr(world_backend(d->world, backend), ':') + 1);
    bool ok = world_put(d->world, tc_buf_cstr(&b), why);
    tc_buf_fini(&b);
    return ok;
}

static bool setup(struct demo *d, char **why)
{
    d->world = world_new(why);
    if (!d->world || !put_endpoints(d, 4, why) || !put_single(d, "checkout-a", 3, why) ||
        !put_single(d, "checkout-b", 4, why) || !world_put(d->world, mesh, why))
        return false;
    struct torc_runtime_options ro = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_error *error = NULL;
    d->runtime = torc_runtime_new(&ro, &error);
    struct torc_channel_options co = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    char *bootstrap =
        tc_asprintf("{\"xds_servers\":[{\"server_uri\":\"%s\",\"channel_creds\":[{\"type\":\"insecure\"}]}],"
                    "\"node\":{\"id\":\"torc-demo\"}}",
                    world_control_plane(d->world));
    co.xds_bootstrap_json = bootstrap;
    if (d->runtime)
        d->channel = torc_channel_new(d->runtime, "xds:///shop.demo", &co, &error);
    tc_free(bootstrap);
    if (!d->channel)
        *why = tc_strdup(torc_error_text(error));
    torc_error_free(error);
    return d->channel != NULL;
}

static void show_keys(struct demo *d)
{
    int per[WORLD_BACKENDS] = {0};
    bool ok = true, as_ring = true;
    say(d, "A hundred keys through xds:///shop.demo, ring_hash over four backends, three RPCs each\n");
    for (int key = 0; key < KEYS; key++) {
        int who = call_key(d, key);
        ok = ok && who >= 0 && call_key(d, key) == who && call_key(d, key) == who;
        d->owner[key] = who;
        if (who >= 0)
            per[who]++;
        as_ring = as_ring && who == ring_owner(d, 4, key, -1);
    }
    claim(d, ok, "each key has one backend: b1 %d, b2 %d, b3 %d, b4 %d keys", per[0], per[1], per[2], per[3]);
    claim(d, as_ring, "each is the backend that the ring, computed apart from the channel, names");
    tc_buf_printf(&d->figures, "\"keys\":%d,\"keys_per_backend\":[%d,%d,%d,%d]", KEYS, per[0], per[1], per[2], per[3]);
}

static void show_death(struct demo *d)
{
    int victim = d->owner[0] < 0 ? 0 : d->owner[0];
    int moved = 0, others_moved = 0, failed = 0, off_walk = 0;
    char *why = NULL;
    say(d, "Backend b%d is stopped\n", victim + 1);
    world_stop_backend(d->world, victim);
    for (int key = 0; key < KEYS; key++) {
        int who = call_key(d, key);
        failed += who < 0;
        moved += d->owner[key] == victim && who != victim;
        others_moved += d->owner[key] != victim && who != d->owner[key];
        off_walk += d->owner[key] == victim && who != ring_owner(d, 4, key, victim);
    }
    claim(d, failed == 0, "no RPC failed");
    claim(d, moved > 0 && others_moved == 0, "only its %d keys moved", moved);
    claim(d, off_walk == 0, "each went to the next backend on the ring");
    tc_buf_printf(&d->figures, ",\"stopped\":\"b%d\",\"moved\":%d,\"others_moved\":%d,\"failed\":%d", victim + 1, moved,
                  others_moved, failed);

    uint64_t end = tc_system_clock.monotonic_ns(NULL) + WAIT_NS;
    int back = 0;
    bool started = world_start_backend(d->world, victim, &why);
    if (!started)
        cli_fail(NAME, "b%d does not start again: %s", victim + 1, why);
    while (started && tc_system_clock.monotonic_ns(NULL) < end && call_key(d, 0) != victim)
        ;
    for (int key = 0; key < KEYS; key++)
        back += call_key(d, key) == d->owner[key];
    claim(d, back == KEYS, "started again, it has its keys back: %d of %d keys where they were", back, KEYS);
    tc_buf_printf(&d->figures, ",\"back\":%d", back);
    tc_free(why);
}

static void show_growth(struct demo *d)
{
    char *why = NULL;
    int witness = -1, moved = 0, elsewhere = 0, off_ring = 0;
    say(d, "The control plane adds backend b5\n");
    for (int key = 0; key < KEYS && witness < 0; key++)
        if (ring_owner(d, 5, key, -1) == 4)
            witness = key;
    bool ok = put_endpoints(d, 5, &why);
    if (!ok)
        cli_fail(NAME, "b5 is not added: %s", why);
    uint64_t end = tc_system_clock.monotonic_ns(NULL) + WAIT_NS;
    while (ok && witness >= 0 && tc_system_clock.monotonic_ns(NULL) < end && call_key(d, witness) != 4)
        ;
    for (int key = 0; key < KEYS; key++) {
        int who = call_key(d, key);
        moved += who != d->owner[key] && who == 4;
        elsewhere += who != d->owner[key] && who != 4;
        off_ring += who != ring_owner(d, 5, key, -1);
        d->owner[key] = who;
    }
    claim(d, off_ring == 0, "each key is where the ring of five, computed apart from the channel, puts it");
    /* On the ring of five each old backend has fewer entries than on the ring of four: by A42 both rings have about
     * 1024 entries, which the endpoints share. So some keys also move among old backends. */
    claim(d, moved > 0 && moved + elsewhere < KEYS / 2,
          "%d of %d keys moved to b5 (a fifth is %d), %d among the others", moved, KEYS, KEYS / 5, elsewhere);
    tc_buf_printf(&d->figures, ",\"added\":\"b5\",\"moved_to_new\":%d,\"moved_elsewhere\":%d", moved, elsewhere);
    tc_free(why);
}

static void show_split(struct demo *d)
{
    int n[WORLD_BACKENDS] = {0}, failed = 0;
    say(d, "A route split 80 to 20 between two clusters, %d RPCs\n", SPLIT_CALLS);
    for (int i = 0; i < SPLIT_CALLS; i++) {
        int who = call(d, "shop.Checkout/Pay", NULL, false, NULL);
        if (who >= 0)
            n[who]++;
        else
            failed++;
    }
    double share = 100.0 * n[4] / SPLIT_CALLS;
    claim(d, failed == 0 && n[3] + n[4] == SPLIT_CALLS && share > 15 && share < 25,
          "checkout-a answered %.1f %%, checkout-b %.1f %%", 100.0 * n[3] / SPLIT_CALLS, share);
    tc_buf_printf(&d->figures, ",\"split_percent\":[%.1f,%.1f]", 100.0 * n[3] / SPLIT_CALLS, share);
}

static void show_explanation(struct demo *d)
{
    torc_result *r = NULL;
    say(d, "Why did that RPC go there?\n");
    call(d, "shop.Orders/Get", "user-7", true, &r);
    claim(d,
          torc_result_code(r) == TORC_STATUS_OK && torc_result_explain(r) &&
              strstr(torc_result_explain(r), "ring_index"),
          "user-7: %s", torc_result_explain(r) ? torc_result_explain(r) : "no explanation");
    tc_buf_printf(&d->figures, ",\"explained\":%s", torc_result_explain(r) ? torc_result_explain(r) : "null");
    torc_result_free(r);
    r = NULL;
    say(d, "And why did this one fail?\n");
    call(d, "shop.Returns/Send", "user-7", false, &r);
    claim(d,
          torc_result_code(r) == TORC_STATUS_UNAVAILABLE && torc_result_text(r) && strstr(torc_result_text(r), "oute"),
          "%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r) ? torc_result_text(r) : "");
    tc_buf_append_str(&d->figures, ",\"failure\":");
    cli_json_string(&d->figures, torc_result_text(r) ? torc_result_text(r) : "",
                    torc_result_text(r) ? strlen(torc_result_text(r)) : 0);
    torc_result_free(r);
}

static void check_counts(struct demo *d)
{
    bool same = true;
    uint64_t all = 0;
    tc_buf_append_str(&d->figures, ",\"requests_counted\":[");
    for (int i = 0; i < WORLD_BACKENDS; i++) {
        uint64_t counted = world_requests(d->world, i);
        same = same && counted == d->sent[i];
        all += counted;
        tc_buf_printf(&d->figures, i ? ",%llu" : "%llu", (unsigned long long)counted);
    }
    tc_buf_append_char(&d->figures, ']');
    say(d, "What the backends counted\n");
    claim(d, same, "%llu RPCs, on each backend exactly those that the client saw there", (unsigned long long)all);
}

static int run(struct demo *d)
{
    char *why = NULL;
    uint64_t begin = tc_system_clock.monotonic_ns(NULL);
    if (!setup(d, &why)) {
        int rc = cli_fail(NAME, "%s", why);
        tc_free(why);
        return rc;
    }
    show_keys(d);
    show_death(d);
    show_growth(d);
    show_split(d);
    show_explanation(d);
    check_counts(d);
    double seconds = (double)(tc_system_clock.monotonic_ns(NULL) - begin) / 1e9;
    if (d->json)
        printf("{\"demo\":{%s,\"claims\":%d,\"held\":%d,\"seconds\":%.3f}}\n", tc_buf_cstr(&d->figures), d->claims,
               d->held, seconds);
    else
        printf("%d of %d claims held, %.2f s\n", d->held, d->claims, seconds);
    return d->held == d->claims ? CLI_OK : CLI_FAILED;
}

int cmd_demo(int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct demo d = {0};
    int c, rc, verbose = 0;
    if ((rc = cli_long_options(NAME, argc, argv, ":o:vh", options, NULL)) != 0)
        return rc;
    while ((c = getopt_long(argc, argv, ":o:vh", options, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return CLI_OK;
        }
        if (c == 'v')
            verbose++;
        else if (c != 'o')
            return cli_bad_option(NAME, c, argv);
        else if ((rc = cli_output(NAME, optarg, &d.json)) != 0)
            return rc;
    }
    if (optind != argc)
        return cli_usage(NAME, "unexpected argument '%s'", argv[optind]);
    cli_verbose(verbose);
    rc = run(&d);
    torc_channel_free(d.channel);
    torc_runtime_free(d.runtime);
    world_free(d.world);
    tc_buf_fini(&d.figures);
    return rc;
}
