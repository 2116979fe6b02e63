/* Targets that share one ADS stream. The control plane keeps one stream for all its clients, as istio-agent does: a new
 * stream ends the earlier one. So targets that did not share a stream would end each other's, and `opened` would count
 * more than one. two_clients is the exception: there two runtimes share nothing and do end each other's streams.
 *
 * For the figures (a_thousand_targets) the control plane keeps every stream. A row of figures is a process of its own:
 * the program starts itself, with the row's number as its argument. A row prints time, CPU time and memory, and asserts
 * the number of streams. Each row, and each other test, has a mesh of its own (kits/mesh.h). The test's thread makes
 * all RPCs; keep_one and count_opened run on the servers' thread. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/kits/mesh.h"

#include "base/clock.h"
#include "base/mem.h"

enum { TARGETS = 5, MANY = 1000, CONTROL = 200 };

#define WAIT_NS (60 * TC_NS_PER_S)

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

/* --- the control plane --- */

static void keep_one(struct tc_control_plane *cp, void *arg)
{
    (void)arg;
    tc_control_plane_set_one_stream(cp, true);
}

static void count_opened(struct tc_control_plane *cp, void *arg)
{
    *(uint64_t *)arg = tc_control_plane_opened(cp);
}

/* Returns how many ADS streams were opened so far. */
static uint64_t opened(struct kit_mesh *k)
{
    uint64_t n = 0;
    kit_mesh_do(k, count_opened, &n);
    return n;
}

/* Makes a mesh with targets s0, s1, ..., n of them. Each has a cluster of its own, at backend 0. */
static struct kit_mesh *mesh_of(size_t n)
{
    struct kit_mesh *k = kit_mesh_new(2);
    struct tc_buf text = {0};
    tc_buf_append_str(&text, "resources:\n");
    for (size_t i = 0; i < n; i++) {
        tc_buf_printf(&text,
                      "- {\"@type\": type.googleapis.com/envoy.config.listener.v3.Listener, name: s%zu, "
                      "api_listener: {api_listener: {\"@type\": type.googleapis.com/envoy.extensions.filters.network."
                      "http_connection_manager.v3.HttpConnectionManager, route_config: {name: r, virtual_hosts: "
                      "[{name: v, domains: [\"*\"], routes: [{match: {prefix: \"\"}, route: {cluster: s%zu}}]}]}, "
                      "http_filters: [{name: router, typed_config: {\"@type\": type.googleapis.com/envoy.extensions."
                      "filters.http.router.v3.Router}}]}}}\n",
                      i, i);
        tc_buf_printf(&text,
                      "- {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: s%zu, type: EDS, "
                      "eds_cluster_config: {eds_config: {ads: {}}}}\n",
                      i);
        tc_buf_printf(&text,
                      "- {\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment, cluster_name: "
                      "s%zu, endpoints: [{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: "
                      "[{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]}\n",
                      i, strrchr(kit_mesh_address(k, 0), ':') + 1);
    }
    kit_mesh_put(k, "%s", tc_buf_cstr(&text));
    tc_buf_fini(&text);
    return k;
}

/* Makes a channel to target i. */
static torc_channel *channel_on(torc_runtime *rt, const char *bootstrap, size_t i)
{
    char *target = tc_asprintf("xds:///s%zu", i);
    torc_error *error = NULL;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = bootstrap, .xds_resource_timeout_ms = 60000};
    torc_channel *ch = torc_channel_new(rt, target, &o, &error);
    if (!ch)
        fail_msg("%s", torc_error_text(error));
    tc_free(target);
    return ch;
}

static torc_runtime *runtime_in(torc_xds_domain *domain)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .xds_domain = domain};
    torc_runtime *rt = torc_runtime_new(&o, NULL);
    assert_non_null(rt);
    return rt;
}

/* --- tests --- */

static void five_targets(void **state)
{
    (void)state;
    struct kit_mesh *k = mesh_of(TARGETS);
    torc_channel *ch[TARGETS];
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    o.xds_resource_timeout_ms = 3600000; /* the Cluster is awaited to the end of the test */
    kit_mesh_do(k, keep_one, NULL);
    /* A target whose Cluster never comes does not block the others. */
    kit_mesh_put_listener(k, "waits", "gone", NULL);
    torc_channel *waits = kit_mesh_channel(k, "waits", &o);
    torc_channel_state(waits, true);
    for (size_t i = 0; i < TARGETS; i++)
        ch[i] = kit_mesh_channel(k, (const char *const[]){"s0", "s1", "s2", "s3", "s4"}[i], &o);
    for (size_t round = 0; round < 40; round++)
        for (size_t i = 0; i < TARGETS; i++)
            kit_mesh_calls(ch[i], NULL, 1);
    assert_int_equal(opened(k), 1);
    /* Updates of two targets reach them over the one stream, and leave a third target as it was. */
    kit_mesh_put_endpoints(k, "moved", "0/a: 1", NULL);
    kit_mesh_put_cluster(k, "moved", NULL);
    kit_mesh_put_listener(k, "s4", "moved", NULL);
    kit_mesh_put_listener(k, "s0", "moved", NULL);
    kit_mesh_wait_backend(k, ch[0], NULL, 1);
    kit_mesh_wait_backend(k, ch[4], NULL, 1);
    kit_mesh_take(k, 1);
    kit_mesh_calls(ch[2], NULL, 10);
    assert_int_equal(kit_mesh_take(k, 1), 0);
    assert_int_equal(opened(k), 1);
    assert_int_equal(torc_channel_state(waits, false), TORC_CONNECTIVITY_CONNECTING);
    torc_channel_free(waits);
    for (size_t i = 0; i < TARGETS; i++)
        torc_channel_free(ch[i]);
    kit_mesh_free(k);
}

/* Targets on two runtimes of one xDS domain; some targets are the same. */
static void targets_of_a_domain(void **state)
{
    (void)state;
    struct kit_mesh *k = mesh_of(TARGETS);
    torc_xds_domain *domain = torc_xds_domain_new(NULL);
    torc_runtime *rt[2] = {runtime_in(domain), runtime_in(domain)};
    torc_channel *ch[2 * (TARGETS - 1)];
    torc_xds_domain_free(domain);
    kit_mesh_do(k, keep_one, NULL);
    for (size_t i = 0; i < TC_ARRAY_LEN(ch); i++)
        ch[i] = channel_on(rt[i % 2], kit_mesh_bootstrap(k), i / 2 + i % 2);
    for (size_t round = 0; round < 40; round++)
        for (size_t i = 0; i < TC_ARRAY_LEN(ch); i++)
            kit_mesh_calls(ch[i], NULL, 1);
    assert_int_equal(opened(k), 1);
    for (size_t i = 0; i < TC_ARRAY_LEN(ch); i++)
        torc_channel_free(ch[i]);
    torc_runtime_free(rt[0]);
    torc_runtime_free(rt[1]);
    kit_mesh_free(k);
}

/* Two runtimes that share nothing stand for two processes of a pod. Both get their resources, and together they open at
 * most four streams, and one more for each second. */
static void two_clients(void **state)
{
    (void)state;
    struct kit_mesh *k = mesh_of(2);
    torc_runtime *other = torc_runtime_new(NULL, NULL);
    kit_mesh_do(k, keep_one, NULL);
    uint64_t began_ns = now_ns();
    torc_channel *one = channel_on(kit_mesh_runtime(k), kit_mesh_bootstrap(k), 0);
    kit_mesh_calls(one, NULL, 1);
    torc_channel *two = channel_on(other, kit_mesh_bootstrap(k), 1);
    while (now_ns() - began_ns < 4 * TC_NS_PER_S) {
        kit_mesh_wait_backend(k, one, NULL, 0);
        kit_mesh_wait_backend(k, two, NULL, 0);
    }
    uint64_t n = opened(k), ms = (now_ns() - began_ns) / TC_NS_PER_MS;
    printf("two clients: %llu streams in %llu ms\n", (unsigned long long)n, (unsigned long long)ms);
    assert_in_range(n, 2, 4 + ms / 1000);
    torc_channel_free(one);
    torc_channel_free(two);
    torc_runtime_free(other);
    kit_mesh_free(k);
}

/* --- figures --- */

struct figures {
    const char *name, *bootstrap;
    size_t n;         /* targets */
    bool in_turn;     /* each target has its config before the next one begins */
    uint64_t streams; /* how many all targets together must open */
};

/* Makes all channels of the row, calls on each, prints the figures and asserts the number of streams. */
static void connect_all(struct kit_mesh *k, const struct figures *f)
{
    torc_channel **ch = tc_calloc(f->n, sizeof(*ch));
    torc_runtime *rt = torc_runtime_new(NULL, NULL);
    uint64_t before = opened(k), began_ns = now_ns();
    struct footprint begin = footprint_begin();
    for (size_t i = 0; i < f->n; i++) {
        ch[i] = channel_on(rt, f->bootstrap, i);
        if (f->in_turn)
            kit_mesh_calls(ch[i], NULL, 1);
        else
            torc_channel_state(ch[i], true);
    }
    for (size_t i = 0; i < f->n; i++)
        kit_mesh_calls(ch[i], NULL, 1);
    uint64_t ms = (now_ns() - began_ns) / TC_NS_PER_MS;
    struct footprint used = footprint_since(&begin);
    uint64_t streams = opened(k) - before;
    printf("%s: %zu targets, %llu streams, %llu ms, of the processor %llu ms, memory %ld kB (the control plane's "
           "included)\n",
           f->name, f->n, (unsigned long long)streams, (unsigned long long)ms, (unsigned long long)used.cpu_ms,
           used.kb);
    assert_int_equal(streams, f->streams);
    assert_true(now_ns() - began_ns < WAIT_NS);
    for (size_t i = 0; i < f->n; i++)
        torc_channel_free(ch[i]);
    torc_runtime_free(rt);
    tc_free(ch);
}

/* Returns the bootstrap with incremental ADS. The caller frees the text with tc_free. */
static char *with_incremental(const char *bootstrap)
{
    static const char feature[] = "\"xds_v3\"";
    const char *at = strstr(bootstrap, feature);
    assert_non_null(at);
    return tc_asprintf("%.*s\"torc.incremental_ads\"%s", (int)(at - bootstrap), bootstrap, at + strlen(feature));
}

/* Plays one row of figures, in a process of its own, so that the memory measured is that row's alone. */
static void play(size_t row)
{
    struct kit_mesh *k = mesh_of(MANY);
    const char *shared = kit_mesh_bootstrap(k);
    char *alone = tc_asprintf("{\"torc.share_client\": false, %s", shared + 1);
    char *incremental = with_incremental(shared);
    const struct figures all[] = {
        {"one client each", alone, CONTROL, false, CONTROL},
        {"shared", shared, CONTROL, false, 1},
        {"shared", shared, MANY, false, 1},
        {"shared, one after another", shared, CONTROL, true, 1},
        {"shared, one after another, incremental", incremental, CONTROL, true, 1},
    };
    if (row < TC_ARRAY_LEN(all))
        connect_all(k, &all[row]);
    tc_free(incremental);
    tc_free(alone);
    kit_mesh_free(k);
}

static char row_text[2]; /* the program's argument: the number of the row to play, "0" to "4" */

static void one_row(void **state)
{
    (void)state;
    play((size_t)(row_text[0] - '0'));
}

static void a_thousand_targets(void **state)
{
    (void)state;
    for (char row = '0'; row < '5'; row++) {
        int status = -1;
        char text[] = {row, '\0'};
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            execl("/proc/self/exe", "xds_one_stream", text, (char *)NULL);
            _exit(127);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest row[] = {cmocka_unit_test(one_row)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_targets),
        cmocka_unit_test(targets_of_a_domain),
        cmocka_unit_test(two_clients),
        cmocka_unit_test(a_thousand_targets),
    };
    if (argc < 2)
        return cmocka_run_group_tests(tests, NULL, NULL);
    row_text[0] = argv[1][0];
    return cmocka_run_group_tests(row, NULL, NULL);
}
