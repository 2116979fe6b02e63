/* Responses of a control plane that are as large as the limits let them be, made of whatever there is: the process of
 * `torc call` refuses each, takes less than 2 s of the processor, and its RPCs to another backend, 100 a second, go on.
 * By the limits of docs/limits.md for who doubts the control plane it grows by less than 32 MB at its peak; by the
 * default limits a response has up to 64 MiB, and what it takes is that and what it is decoded to. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "support/call_process.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/mesh_kit.h"

#include "base/clock.h"
#include "base/mem.h"

#define URL(type) "type.googleapis.com/envoy.config." type
#define LDS URL("listener.v3.Listener")
#define RDS URL("route.v3.RouteConfiguration")
#define CDS URL("cluster.v3.Cluster")
#define EDS URL("endpoint.v3.ClusterLoadAssignment")

#define STRICT "{\"ads_message_bytes\": 8388608, \"decode_bytes\": 12582912, \"held_bytes\": 67108864}"
#define AROUND 4096 /* what is around resources */
#define GROWN_KB_MAX (32 * 1000)
#define GROWN_KB_MAX_BY_DEFAULT (200 * 1000)
#define MOST_ENDPOINTS_KB (42 * 1000) /* what 262,144 endpoints are, with their bytes: no more than that */
#define CPU_MS_MAX 2000
#define LONGEST_MS_MAX 1500 /* of a busy machine, which takes several times the CPU time */

static struct mesh_kit *k;
static struct call_process *client;
static size_t room; /* of a response, for resources */

/* --- messages --- */

static void varint(struct tc_buf *b, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        tc_buf_append_char(b, (char)(v | 0x80));
    tc_buf_append_char(b, (char)v);
}

static void begin_bytes(struct tc_buf *b, unsigned field, size_t len)
{
    varint(b, field << 3 | 2);
    varint(b, len);
}

static void add_bytes(struct tc_buf *b, unsigned field, const void *data, size_t len)
{
    begin_bytes(b, field, len);
    tc_buf_append(b, data, len);
}

static void add_text(struct tc_buf *b, unsigned field, const char *text)
{
    add_bytes(b, field, text, strlen(text));
}

static void add_message(struct tc_buf *b, unsigned field, struct tc_buf *inner)
{
    add_bytes(b, field, inner->data, inner->len);
    tc_buf_fini(inner);
}

static void fill(struct tc_buf *b, char with, size_t n)
{
    memset(tc_buf_reserve(b, n), with, n);
    b->len += n;
}

/* A field of nothing but these two bytes, as often as there is room for. */
static void add_empty(struct tc_buf *b, unsigned field, size_t n)
{
    for (size_t i = 0; i < n; i++)
        begin_bytes(b, field, 0);
}

/* {a {b {c ...}}}, `depth` levels of message fields, the innermost first. */
static struct tc_buf nested(const unsigned *fields, size_t n_fields, size_t depth)
{
    struct tc_buf inner = {0};
    for (size_t i = 0; i < depth; i++) {
        struct tc_buf outer = {0};
        add_message(&outer, fields[i % n_fields], &inner);
        inner = outer;
    }
    return inner;
}

/* --- rows: each makes one resource of its type, or many --- */

typedef void make_fn(struct tc_buf *out);

/* ClusterLoadAssignment */
enum { CLUSTER_NAME = 1, ENDPOINTS = 2 };
enum { LOCALITY = 1, LB_ENDPOINTS = 2, WEIGHT = 3, LOCALITY_METADATA = 9 };

static void unknown_fields(struct tc_buf *b)
{
    add_text(b, CLUSTER_NAME, "victim");
    while (b->len < room)
        add_bytes(b, 1000, "\0", 1);
}

static void one_unknown_field(struct tc_buf *b)
{
    add_text(b, CLUSTER_NAME, "victim");
    begin_bytes(b, 1000, room);
    fill(b, 0, room);
}

/* What is just not too much of it is taken out by a copy. */
static void half_unknown_fields(struct tc_buf *b)
{
    add_text(b, CLUSTER_NAME, "victim");
    begin_bytes(b, 1000, 4000000);
    fill(b, 0, 4000000);
    while (b->len < room - 1000100) {
        begin_bytes(b, ENDPOINTS, 1000000);
        begin_bytes(b, LB_ENDPOINTS, 999996);
        fill(b, 0x22, 999996); /* load_balancing_weight, of 34 bytes */
    }
}

static void one_string(struct tc_buf *b)
{
    begin_bytes(b, CLUSTER_NAME, room);
    fill(b, 'a', room);
}

/* Strings of 1 MiB are just let pass: each is copied. */
static void large_strings(struct tc_buf *b)
{
    add_text(b, CLUSTER_NAME, "victim");
    while (b->len + (1u << 20) + 20 < room) {
        struct tc_buf locality = {0}, at = {0};
        begin_bytes(&locality, 1, 1u << 20);
        fill(&locality, 'a', 1u << 20);
        add_message(&at, LOCALITY, &locality);
        add_bytes(&at, WEIGHT, "\x08\x01", 2);
        add_message(b, ENDPOINTS, &at);
    }
}

static void empty_endpoints(struct tc_buf *b)
{
    add_text(b, CLUSTER_NAME, "victim");
    while (b->len < room - 400100) {
        struct tc_buf locality = {0};
        add_bytes(&locality, WEIGHT, "\x08\x01", 2);
        add_empty(&locality, LB_ENDPOINTS, 200000);
        add_message(b, ENDPOINTS, &locality);
    }
}

static void empty_localities(struct tc_buf *b)
{
    add_text(b, CLUSTER_NAME, "victim");
    add_empty(b, ENDPOINTS, 262144);
}

static void add_endpoint(struct tc_buf *locality, uint32_t i, const char *more, size_t more_len)
{
    struct tc_buf socket = {0}, address = {0}, endpoint = {0}, lb = {0};
    char text[32];
    snprintf(text, sizeof(text), "10.%u.%u.%u", i >> 16 & 255, i >> 8 & 255, i & 255);
    add_text(&socket, 2, text);
    varint(&socket, 3 << 3);
    varint(&socket, 80);
    add_message(&address, 1, &socket);
    add_message(&endpoint, 1, &address);
    if (more_len == 0 && more)
        add_text(&endpoint, 3, more);
    add_message(&lb, 1, &endpoint);
    tc_buf_append(&lb, more, more_len);
    add_message(locality, LB_ENDPOINTS, &lb);
}

static void endpoints(struct tc_buf *b, const char *more, size_t more_len, size_t most, bool twice)
{
    struct tc_buf locality = {0}, name = {0};
    add_text(b, CLUSTER_NAME, "victim");
    add_message(&locality, LOCALITY, &name);
    add_bytes(&locality, WEIGHT, "\x08\x01", 2);
    for (uint32_t i = 0; i < most && locality.len < room - 4096; i++)
        add_endpoint(&locality, i, more, more_len);
    if (twice)
        add_endpoint(&locality, 0, NULL, 0);
    add_message(b, ENDPOINTS, &locality);
}

/* A good assignment but for one endpoint, the first again: it is read to the end, and given up. */
static void endpoints_with(struct tc_buf *b, const char *more, size_t more_len, size_t most)
{
    endpoints(b, more, more_len, most, true);
}

static void endpoints_with_hostnames(struct tc_buf *b)
{
    char name[129];
    memset(name, 'h', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    endpoints_with(b, name, 0, SIZE_MAX);
}

static void many_endpoints(struct tc_buf *b)
{
    endpoints_with(b, NULL, 0, 262143);
}

/* metadata {filter_metadata {key: "envoy.lb" value {fields {key: "hash_key" value {string_value: "k"}}}}} */
static void endpoints_with_metadata(struct tc_buf *b)
{
    struct tc_buf value = {0}, field = {0}, fields = {0}, entry = {0}, metadata = {0}, more = {0};
    add_text(&value, 3, "k");
    add_text(&field, 1, "hash_key");
    add_message(&field, 2, &value);
    add_message(&fields, 1, &field);
    add_text(&entry, 1, "envoy.lb");
    add_message(&entry, 2, &fields);
    add_message(&metadata, 1, &entry);
    add_message(&more, 3, &metadata);
    endpoints_with(b, more.data, more.len, SIZE_MAX);
    tc_buf_fini(&more);
}

/* One endpoint whose metadata is everything: Structs of empty fields. */
static void wide_metadata(struct tc_buf *b)
{
    struct tc_buf locality = {0}, lb = {0}, metadata = {0}, fields = {0}, entry = {0};
    add_text(b, CLUSTER_NAME, "victim");
    for (int i = 0; i < 50; i++) {
        add_empty(&fields, 1, 65536);
        add_message(&entry, 2, &fields);
        add_message(&metadata, 1, &entry);
    }
    add_message(&lb, 3, &metadata);
    add_message(&locality, LB_ENDPOINTS, &lb);
    add_bytes(&locality, WEIGHT, "\x08\x01", 2);
    add_message(b, ENDPOINTS, &locality);
}

/* Lists within lists in a Struct, 120 deep, as often as there is room for. */
static void deep_metadata(struct tc_buf *b)
{
    static const unsigned list[] = {6, 1}; /* list_value of Value, values of ListValue */
    struct tc_buf deep = nested(list, 2, 240), locality = {0}, metadata = {0};
    add_text(b, CLUSTER_NAME, "victim");
    while (metadata.len < room - 4096) {
        struct tc_buf entry = {0}, fields = {0}, field = {0};
        add_bytes(&field, 2, deep.data, deep.len);
        add_message(&fields, 1, &field);
        add_message(&entry, 2, &fields);
        add_message(&metadata, 1, &entry);
    }
    add_message(&locality, LOCALITY_METADATA, &metadata);
    add_message(b, ENDPOINTS, &locality);
    tc_buf_fini(&deep);
}

/* Cluster */
static void empty_cluster_metadata(struct tc_buf *b)
{
    struct tc_buf entry = {0}, metadata = {0};
    add_text(b, 1, "victim");
    for (int i = 0; i < 60; i++)
        add_empty(&entry, 1, 65536);
    add_message(&metadata, 2, &entry);
    add_message(b, 25, &metadata);
}

/* A RouteConfiguration in a Listener: through the Any of its HttpConnectionManager. */
static void as_listener(struct tc_buf *out, struct tc_buf *routes)
{
    struct tc_buf hcm = {0}, any = {0}, api = {0};
    add_message(&hcm, 4, routes);
    add_text(&any, 1,
             "type.googleapis.com/"
             "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager");
    add_message(&any, 2, &hcm);
    add_message(&api, 1, &any);
    add_text(out, 1, "svc");
    add_message(out, 19, &api);
}

static void empty_routes(struct tc_buf *b)
{
    struct tc_buf routes = {0};
    while (routes.len < room - 131200) {
        struct tc_buf host = {0};
        add_empty(&host, 3, 65536);
        add_message(&routes, 2, &host);
    }
    as_listener(b, &routes);
}

/* One virtual host of routes {match {safe_regex {regex}} route {cluster: "good"}}, as many as there is room for. */
static void routes_by(struct tc_buf *b, const char *pattern, size_t n)
{
    struct tc_buf routes = {0}, host = {0};
    add_text(&host, 1, "v");
    add_text(&host, 2, "*");
    for (size_t i = 0; i < n; i++) {
        struct tc_buf regex = {0}, match = {0}, action = {0}, route = {0};
        add_text(&regex, 2, pattern);
        add_message(&match, 10, &regex);
        add_text(&action, 1, "good");
        add_message(&route, 1, &match);
        add_message(&route, 2, &action);
        if (host.len + route.len > room - 1000) {
            tc_buf_fini(&route);
            break;
        }
        add_message(&host, 3, &route);
    }
    add_message(&routes, 2, &host);
    as_listener(b, &routes);
}

static char *repeated(const char *unit, size_t bytes)
{
    struct tc_buf b = {0};
    while (b.len + strlen(unit) <= bytes)
        tc_buf_append_str(&b, unit);
    char *text = tc_strdup(tc_buf_cstr(&b));
    tc_buf_fini(&b);
    return text;
}

static void routes_by_one(struct tc_buf *b, const char *unit, size_t bytes)
{
    char *text = repeated(unit, bytes);
    routes_by(b, text, TC_MIN(((size_t)2 << 20) / bytes, (size_t)12000));
    tc_free(text);
}

static void regexes_too_large(struct tc_buf *b)
{
    routes_by_one(b, "(?:\\pL{30}){30}", 15);
}

static void regexes_of_classes(struct tc_buf *b)
{
    routes_by_one(b, "\\pL", 8190);
}

static void regexes_of_fewer_classes(struct tc_buf *b)
{
    routes_by_one(b, "\\pL", 3 * 85);
}

static void regexes_of_folded_classes(struct tc_buf *b)
{
    routes_by_one(b, "(?i:\\pL)", 64);
}

static void regexes_of_nothing(struct tc_buf *b)
{
    routes_by_one(b, "(?i:\\PL){0}", 55);
}

static void regexes_of_repetitions(struct tc_buf *b)
{
    routes_by_one(b, "(?:(?:\\W{5}){5}){39}", 20);
}

static void regexes_of_options(struct tc_buf *b)
{
    routes_by_one(b, "a?", 8192);
}

static void regexes_of_negated_classes(struct tc_buf *b)
{
    routes_by_one(b, "\\W", 64);
}

static void regexes_that_are_none(struct tc_buf *b)
{
    routes_by_one(b, "(", 1);
}

/* The names that a server's certificate may have, by UpstreamTlsContext. */
static void regexes_of_names(struct tc_buf *b)
{
    struct tc_buf validation = {0}, common = {0}, context = {0}, any = {0}, socket = {0};
    for (int i = 0; i < 12000; i++) {
        struct tc_buf regex = {0}, matcher = {0};
        add_text(&regex, 2, "(?:(?:\\W{5}){5}){39}");
        add_message(&matcher, 5, &regex);
        add_message(&validation, 9, &matcher);
    }
    add_message(&common, 3, &validation);
    add_message(&context, 1, &common);
    add_text(&any, 1, "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext");
    add_message(&any, 2, &context);
    add_text(&socket, 1, "envoy.transport_sockets.tls");
    add_message(&socket, 3, &any);
    add_text(b, 1, "victim");
    add_message(b, 24, &socket);
}

/* The thread sanitizer takes twenty times as long: what needs much of the processor is left out under it. */
#if defined(__SANITIZE_THREAD__)
#define SLOW_ROWS false
#else
#define SLOW_ROWS true
#endif

struct row {
    const char *name, *url;
    make_fn *make;
    const char *nack;
    bool slow;
};

static const struct row rows[] = {
    {"unknown fields", EDS, unknown_fields, "unknown", false},
    {"one unknown field", EDS, one_unknown_field, "unknown", false},
    {"half of it unknown fields", EDS, half_unknown_fields, "NACK", false},
    {"one string", EDS, one_string, "cluster_name", false},
    {"strings of 1 MiB", EDS, large_strings, "duplicate locality", false},
    {"empty endpoints", EDS, empty_endpoints, "NACK", true},
    {"empty localities", EDS, empty_localities, "more than 16384", false},
    {"endpoints with hostnames", EDS, endpoints_with_hostnames, "duplicate endpoint address", false},
    {"as many endpoints as there may be", EDS, many_endpoints, "duplicate endpoint address", true},
    {"endpoints with metadata", EDS, endpoints_with_metadata, "duplicate endpoint address", false},
    {"metadata of empty fields", EDS, wide_metadata, "NACK", true},
    {"metadata of lists in lists", EDS, deep_metadata, "NACK", false},
    {"a cluster of empty metadata", CDS, empty_cluster_metadata, "NACK", false},
    {"empty routes", LDS, empty_routes, "NACK", true},
    {"regexes that are too large", LDS, regexes_too_large, "regexes_total_bytes", true},
    {"regexes of letters", LDS, regexes_of_classes, "regexes_total_bytes", false},
    {"regexes of fewer letters", LDS, regexes_of_fewer_classes, "regexes_total_bytes", true},
    {"regexes of letters of both cases", LDS, regexes_of_folded_classes, "regexes_total_bytes", true},
    {"regexes that come to nothing", LDS, regexes_of_nothing, "regexes_total_bytes", true},
    {"regexes with nested repetitions", LDS, regexes_of_repetitions, "regexes_total_bytes", true},
    {"regexes of options", LDS, regexes_of_options, "regexes_total_bytes", true},
    {"regexes of negated classes", LDS, regexes_of_negated_classes, "regexes_total_bytes", false},
    {"regexes that are none", LDS, regexes_that_are_none, "regexes_total_bytes", false},
    {"regexes of names", CDS, regexes_of_names, "regexes_total_bytes", true},
};

/* --- the test --- */

struct sending {
    const char *url, *version;
    const struct tc_slice *resources;
    size_t n;
};

static void send_it(struct tc_control_plane *cp, void *arg)
{
    const struct sending *s = arg;
    tc_control_plane_send(cp, s->url, s->version, s->resources, s->n);
}

/* Sends it, waits for the NACK with this text, and adds to `wrong` what should not be. */
static void play(const struct sending *s, const char *nack, long most_kb, struct tc_buf *wrong)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->n; i++)
        bytes += s->resources[i].len;
    tc_free(mesh_kit_requests(k));
    call_process_longest_ms(client);
    call_process_reset_peak(client);
    long before_kb = call_process_resident_kb(client);
    double cpu = call_process_cpu_ms(client);
    mesh_kit_do(k, send_it, (void *)s);
    mesh_kit_wait_request(k, nack);
    call_process_go_on(client, 10);
    cpu = call_process_cpu_ms(client) - cpu;
    long grown_kb = call_process_peak_kb(client) - before_kb;
    double longest = call_process_longest_ms(client);
    print_message("%s: %zu resources, %zu bytes: %.0f ms of CPU, %ld kB at the peak, the longest call %.0f ms\n",
                  s->version, s->n, bytes, cpu, grown_kb, longest);
    if (FOOTPRINT_MEASURED && (cpu > CPU_MS_MAX || grown_kb > most_kb || longest > LONGEST_MS_MAX))
        tc_buf_printf(wrong, "%s: %.0f ms of CPU, %ld kB, the longest call %.0f ms\n", s->version, cpu, grown_kb,
                      longest);
}

static void open_client(const char *limits, size_t response_bytes)
{
    room = response_bytes - AROUND;
    client = call_process_new(k, limits);
    call_process_go_on(client, 20);
}

static int open_world(void **state)
{
    (void)state;
    k = mesh_kit_new(2);
    mesh_kit_put_endpoints(k, "good", "0/a: 0", NULL);
    mesh_kit_put_endpoints(k, "victim", "0/a: 1", NULL);
    mesh_kit_put_cluster(k, "good", NULL);
    mesh_kit_put_cluster(k, "victim", NULL);
    mesh_kit_put_routes(k, "svc",
                        "{match: {prefix: \"/good\"}, route: {cluster: good}}, "
                        "{match: {prefix: \"/\"}, route: {cluster: victim}}");
    open_client(STRICT, (size_t)8 << 20);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    call_process_free(client);
    mesh_kit_free(k);
    return 0;
}

static void one_resource(void **state)
{
    (void)state;
    struct tc_buf wrong = {0};
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct tc_buf b = {0};
        if (rows[i].slow && !SLOW_ROWS)
            continue;
        rows[i].make(&b);
        struct tc_slice resource = tc_buf_slice(&b);
        play(&(struct sending){rows[i].url, rows[i].name, &resource, 1}, rows[i].nack,
             rows[i].make == many_endpoints ? MOST_ENDPOINTS_KB : GROWN_KB_MAX, &wrong);
        tc_buf_fini(&b);
    }
    if (wrong.len)
        fail_msg("%s", tc_buf_cstr(&wrong));
}

/* The regexes of a response take what they take whatever its size. Sanitizers have seen the same in smaller ones, and
 * there are no figures of theirs. */
static void one_resource_by_default(void **state)
{
    (void)state;
    struct tc_buf wrong = {0};
    if (!FOOTPRINT_MEASURED)
        skip();
    call_process_free(client);
    open_client(NULL, (size_t)64 << 20);
    for (size_t i = 0; i < TC_ARRAY_LEN(rows) && rows[i].make != regexes_too_large; i++) {
        struct tc_buf b = {0};
        rows[i].make(&b);
        struct tc_slice resource = tc_buf_slice(&b);
        play(&(struct sending){rows[i].url, rows[i].name, &resource, 1}, "NACK", GROWN_KB_MAX_BY_DEFAULT, &wrong);
        tc_buf_fini(&b);
    }
    if (wrong.len)
        fail_msg("%s", tc_buf_cstr(&wrong));
}

static void many_resources(void **state)
{
    (void)state;
    enum { N = 65536 };
    static struct tc_slice resources[N + 1];
    struct tc_buf wrong = {0}, b = {0};
    for (size_t i = 0; i < N + 1; i++)
        resources[i] = tc_slice_str("\x0a\x01x");
    play(&(struct sending){CDS, "65,537 resources", resources, N + 1}, "NACK", GROWN_KB_MAX, &wrong);
    play(&(struct sending){CDS, "65,536 resources", resources, N}, "NACK", GROWN_KB_MAX, &wrong);
    /* And one among them that is large. */
    half_unknown_fields(&b);
    resources[0] = tc_slice_of(b.data, b.len / 8);
    play(&(struct sending){EDS, "65,536 resources, one of them large", resources, N}, "NACK", GROWN_KB_MAX, &wrong);
    tc_buf_fini(&b);
    if (wrong.len)
        fail_msg("%s", tc_buf_cstr(&wrong));
}

/* One after the other, as fast as they are answered: the loop is others' for most of the time. */
static void without_end(void **state)
{
    (void)state;
    struct tc_buf b = {0};
    regexes_of_options(&b);
    struct tc_slice resource = tc_buf_slice(&b);
    struct sending s = {LDS, "again and again", &resource, 1};
    tc_free(mesh_kit_requests(k));
    uint64_t began_ns = tc_system_clock.monotonic_ns(NULL);
    double cpu = call_process_cpu_ms(client);
    for (int i = 0; i < 4; i++) {
        mesh_kit_do(k, send_it, &s);
        mesh_kit_wait_request(k, "regexes_total_bytes");
    }
    cpu = call_process_cpu_ms(client) - cpu;
    double took = (double)(tc_system_clock.monotonic_ns(NULL) - began_ns) / (double)TC_NS_PER_MS;
    print_message("4 responses: %.0f ms of CPU in %.0f ms\n", cpu, took);
    tc_buf_fini(&b);
    /* A pause of four times what a response takes, or 2 s; the last has none behind it. */
    assert_true(took >= 3 * TC_MIN(cpu / 4 * 3, 2000.0));
    call_process_go_on(client, 10);
}

/* What is good is taken: these are the mesh's, and cost what they are. RPCs to others go on meanwhile. */
static void good_endpoints(void **state)
{
    (void)state;
    static const size_t sizes[] = {50000, 262144, 1};
    struct tc_buf wrong = {0};
    for (size_t i = 0; i < TC_ARRAY_LEN(sizes); i++) {
        struct tc_buf b = {0};
        char version[64], acked[128];
        snprintf(version, sizeof(version), "%zu-endpoints", sizes[i]);
        snprintf(acked, sizeof(acked), "ClusterLoadAssignment %s ", version);
        endpoints(&b, NULL, 0, sizes[i], false);
        struct tc_slice resource = tc_buf_slice(&b);
        play(&(struct sending){EDS, version, &resource, 1}, acked, LONG_MAX, &wrong);
        tc_buf_fini(&b);
    }
    if (wrong.len)
        fail_msg("%s", tc_buf_cstr(&wrong));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_resource),   cmocka_unit_test(many_resources),          cmocka_unit_test(without_end),
        cmocka_unit_test(good_endpoints), cmocka_unit_test(one_resource_by_default),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
