/* Resources as large as the limits allow, as a hostile control plane sends them.
 *
 * Each row has one kind of content (unknown fields, strings, endpoints, metadata, regexes, ...). Some rows fill the
 * room of a response. The others have a fixed amount, up to 7.9 MB: as much as reaches another limit, or as costs the
 * client much CPU time. Each row names a part of the NACK that it must get.
 *
 * Messages are written field by field, without protobuf-c, which would need more memory than the client; numbers of
 * fields are those of Envoy's protos. A function appends to the buffer of its caller; message_within frees the buffers
 * of the parts. Only one thread may use the file: `room` is its state. */
#include "support/hostile/resources.h"

#include <stdio.h>
#include <string.h>

#include "support/messages.h"

#include "base/mem.h"
#include "proto/wire.h"

static size_t room; /* bytes available for resources in a response; the same for all rows */

void hostile_resources_room(size_t bytes)
{
    room = bytes;
}

/* --- parts of the resources --- */

static void fill(struct tc_buf *b, char with, size_t n)
{
    memset(tc_buf_reserve(b, n), with, n);
    b->len += n;
}

/* Appends n empty fields of this number. */
static void add_empty(struct tc_buf *b, unsigned field, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tc_wire_append_head(b, field, 0);
}

/* Returns {a {b {c ...}}}: `depth` levels of message fields, built from the innermost, whose number is fields[0]. The
 * caller frees the buffer. */
static struct tc_buf nested(const unsigned *fields, size_t n_fields, size_t depth)
{
    struct tc_buf inner = {0};
    for (size_t i = 0; i < depth; i++) {
        struct tc_buf outer = {0};
        message_within(&outer, fields[i % n_fields], &inner);
        inner = outer;
    }
    return inner;
}

/* Fields of ClusterLoadAssignment, and of its LocalityLbEndpoints. */
enum { CLUSTER_NAME = 1, ENDPOINTS = 2 };
enum { LOCALITY = 1, LB_ENDPOINTS = 2, WEIGHT = 3, LOCALITY_METADATA = 9 };

static void unknown_fields(struct tc_buf *b)
{
    message_text(b, CLUSTER_NAME, "victim");
    while (b->len < room)
        message_bytes(b, 1000, "\0", 1);
}

static void one_unknown_field(struct tc_buf *b)
{
    message_text(b, CLUSTER_NAME, "victim");
    tc_wire_append_head(b, 1000, room);
    fill(b, 0, room);
}

/* Appends a locality whose region has n letters. */
static void add_region(struct tc_buf *b, size_t n)
{
    struct tc_buf locality = {0}, at = {0};
    tc_wire_append_head(&locality, 1, n);
    fill(&locality, 'a', n);
    message_within(&at, LOCALITY, &locality);
    message_bytes(&at, WEIGHT, "\x08\x01", 2);
    message_within(b, ENDPOINTS, &at);
}

void hostile_half_unknown_fields(struct tc_buf *b)
{
    message_text(b, CLUSTER_NAME, "victim");
    tc_wire_append_head(b, 1000, 4000000);
    fill(b, 0, 4000000);
    while (b->len < room - 1000100)
        add_region(b, 1000000);
}

static void one_string(struct tc_buf *b)
{
    tc_wire_append_head(b, CLUSTER_NAME, room);
    fill(b, 'a', room);
}

/* Makes regions of 1 MiB, the largest string that is allowed. The client copies each. */
static void large_strings(struct tc_buf *b)
{
    message_text(b, CLUSTER_NAME, "victim");
    while (b->len + (1u << 20) + 20 < room)
        add_region(b, 1u << 20);
}

static void empty_endpoints(struct tc_buf *b)
{
    message_text(b, CLUSTER_NAME, "victim");
    while (b->len < room - 400100) {
        struct tc_buf locality = {0};
        message_bytes(&locality, WEIGHT, "\x08\x01", 2);
        add_empty(&locality, LB_ENDPOINTS, 200000);
        message_within(b, ENDPOINTS, &locality);
    }
}

static void empty_localities(struct tc_buf *b)
{
    message_text(b, CLUSTER_NAME, "victim");
    add_empty(b, ENDPOINTS, 262144);
}

/* Appends an endpoint, whose address is made of i. more: with more_len 0 a hostname (NULL: none), otherwise serialised
 * fields of the LbEndpoint. */
static void add_endpoint(struct tc_buf *locality, uint32_t i, const char *more, size_t more_len)
{
    struct tc_buf socket = {0}, address = {0}, endpoint = {0}, lb = {0};
    char text[32];
    snprintf(text, sizeof(text), "10.%u.%u.%u", i >> 16 & 255, i >> 8 & 255, i & 255);
    message_text(&socket, 2, text);
    message_number(&socket, 3, 80);
    message_within(&address, 1, &socket);
    message_within(&endpoint, 1, &address);
    if (more_len == 0 && more)
        message_text(&endpoint, 3, more);
    message_within(&lb, 1, &endpoint);
    tc_buf_append(&lb, more, more_len);
    message_within(locality, LB_ENDPOINTS, &lb);
}

/* Makes an assignment of "victim" with one locality of `most` endpoints, or as many as fit; `twice` adds the first
 * address again. more, more_len: as for add_endpoint. */
static void endpoints(struct tc_buf *b, const char *more, size_t more_len, size_t most, bool twice)
{
    struct tc_buf locality = {0}, name = {0};
    message_text(b, CLUSTER_NAME, "victim");
    message_within(&locality, LOCALITY, &name);
    message_bytes(&locality, WEIGHT, "\x08\x01", 2);
    for (uint32_t i = 0; i < most && locality.len < room - 4096; i++)
        add_endpoint(&locality, i, more, more_len);
    if (twice)
        add_endpoint(&locality, 0, NULL, 0);
    message_within(b, ENDPOINTS, &locality);
}

/* Makes an assignment that is good but for its last endpoint, a duplicate of the first: the client reads it to the end,
 * and rejects it. */
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

void hostile_good_endpoints(struct tc_buf *b, size_t n)
{
    endpoints(b, NULL, 0, n, false);
}

static void many_endpoints(struct tc_buf *b)
{
    endpoints_with(b, NULL, 0, 262143);
}

/* Gives each endpoint metadata {filter_metadata {key: "envoy.lb" value {fields {key: "hash_key" value {string_value:
 * "k"}}}}}. */
static void endpoints_with_metadata(struct tc_buf *b)
{
    struct tc_buf value = {0}, field = {0}, fields = {0}, entry = {0}, metadata = {0}, more = {0};
    message_text(&value, 3, "k");
    message_text(&field, 1, "hash_key");
    message_within(&field, 2, &value);
    message_within(&fields, 1, &field);
    message_text(&entry, 1, "envoy.lb");
    message_within(&entry, 2, &fields);
    message_within(&metadata, 1, &entry);
    message_within(&more, 3, &metadata);
    endpoints_with(b, more.data, more.len, SIZE_MAX);
    tc_buf_fini(&more);
}

/* Makes one endpoint with huge metadata: 50 Structs of 65,536 empty fields each. */
static void wide_metadata(struct tc_buf *b)
{
    struct tc_buf locality = {0}, lb = {0}, metadata = {0}, fields = {0}, entry = {0};
    message_text(b, CLUSTER_NAME, "victim");
    for (int i = 0; i < 50; i++) {
        add_empty(&fields, 1, 65536);
        message_within(&entry, 2, &fields);
        message_within(&metadata, 1, &entry);
    }
    message_within(&lb, 3, &metadata);
    message_within(&locality, LB_ENDPOINTS, &lb);
    message_bytes(&locality, WEIGHT, "\x08\x01", 2);
    message_within(b, ENDPOINTS, &locality);
}

/* Fills a locality's metadata with Structs whose values are lists in lists, 240 messages deep, until the room is used
 * up. */
static void deep_metadata(struct tc_buf *b)
{
    static const unsigned list[] = {1, 6}; /* values of ListValue, list_value of Value */
    struct tc_buf deep = nested(list, 2, 240), locality = {0}, metadata = {0};
    message_text(b, CLUSTER_NAME, "victim");
    while (metadata.len < room - 4096) {
        struct tc_buf entry = {0}, fields = {0}, field = {0};
        message_bytes(&field, 2, deep.data, deep.len);
        message_within(&fields, 1, &field);
        message_within(&entry, 2, &fields);
        message_within(&metadata, 1, &entry);
    }
    message_within(&locality, LOCALITY_METADATA, &metadata);
    message_within(b, ENDPOINTS, &locality);
    tc_buf_fini(&deep);
}

/* Makes a Cluster whose metadata has one entry with 60 * 65,536 empty keys. */
static void empty_cluster_metadata(struct tc_buf *b)
{
    struct tc_buf entry = {0}, metadata = {0};
    message_text(b, 1, "victim");
    for (int i = 0; i < 60; i++)
        add_empty(&entry, 1, 65536);
    message_within(&metadata, 2, &entry);
    message_within(b, 25, &metadata);
}

/* Appends a Listener that has the RouteConfiguration `routes` within the Any of its HttpConnectionManager. Frees the
 * memory of `routes`. */
static void as_listener(struct tc_buf *out, struct tc_buf *routes)
{
    struct tc_buf hcm = {0}, any = {0}, api = {0};
    message_within(&hcm, 4, routes);
    message_text(&any, 1,
                 "type.googleapis.com/"
                 "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager");
    message_within(&any, 2, &hcm);
    message_within(&api, 1, &any);
    message_text(out, 1, "svc");
    message_within(out, 19, &api);
}

static void empty_routes(struct tc_buf *b)
{
    struct tc_buf routes = {0};
    while (routes.len < room - 131200) {
        struct tc_buf host = {0};
        add_empty(&host, 3, 65536);
        message_within(&routes, 2, &host);
    }
    as_listener(b, &routes);
}

/* Makes one virtual host with n routes {match {safe_regex {regex}} route {cluster: "good"}}, or as many as fit. */
static void routes_by(struct tc_buf *b, const char *pattern, size_t n)
{
    struct tc_buf routes = {0}, host = {0};
    message_text(&host, 1, "v");
    message_text(&host, 2, "*");
    for (size_t i = 0; i < n; i++) {
        struct tc_buf regex = {0}, match = {0}, action = {0}, route = {0};
        message_text(&regex, 2, pattern);
        message_within(&match, 10, &regex);
        message_text(&action, 1, "good");
        message_within(&route, 1, &match);
        message_within(&route, 2, &action);
        if (host.len + route.len > room - 1000) {
            tc_buf_fini(&route);
            break;
        }
        message_within(&host, 3, &route);
    }
    message_within(&routes, 2, &host);
    as_listener(b, &routes);
}

/* Returns `unit` as often as it fits into `bytes`, for tc_free. */
static char *repeated(const char *unit, size_t bytes)
{
    struct tc_buf b = {0};
    while (b.len + strlen(unit) <= bytes)
        tc_buf_append_str(&b, unit);
    char *text = tc_strdup(tc_buf_cstr(&b));
    tc_buf_fini(&b);
    return text;
}

/* Makes routes that all have the same regex, `unit` as often as it fits into `bytes`: at most 12,000 routes, whose
 * regexes have at most 2 MiB together. */
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

static void regexes_that_are_invalid(struct tc_buf *b)
{
    routes_by_one(b, "(", 1);
}

/* Makes 12,000 regexes for the names in a server's certificate, in the cluster's UpstreamTlsContext. */
static void regexes_of_names(struct tc_buf *b)
{
    struct tc_buf validation = {0}, common = {0}, context = {0}, any = {0}, socket = {0};
    for (int i = 0; i < 12000; i++) {
        struct tc_buf regex = {0}, matcher = {0};
        message_text(&regex, 2, "(?:(?:\\W{5}){5}){39}");
        message_within(&matcher, 5, &regex);
        message_within(&validation, 9, &matcher);
    }
    message_within(&common, 3, &validation);
    message_within(&context, 1, &common);
    message_text(&any, 1, "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext");
    message_within(&any, 2, &context);
    message_text(&socket, 1, "envoy.transport_sockets.tls");
    message_within(&socket, 3, &any);
    message_text(b, 1, "victim");
    message_within(b, 24, &socket);
}

static const struct hostile_resource resources[] = {
    {"unknown fields", EDS, unknown_fields, "unknown", 0},
    {"one unknown field", EDS, one_unknown_field, "unknown", 0},
    {"half of it unknown fields", EDS, hostile_half_unknown_fields, "duplicate locality", HOSTILE_COPIED},
    {"one string", EDS, one_string, "cluster_name", 0},
    {"strings of 1 MiB", EDS, large_strings, "duplicate locality", 0},
    {"empty endpoints", EDS, empty_endpoints, "NACK", HOSTILE_SLOW},
    {"empty localities", EDS, empty_localities, "more than 16384", 0},
    {"endpoints with hostnames", EDS, endpoints_with_hostnames, "duplicate endpoint address", 0},
    {"as many endpoints as there may be", EDS, many_endpoints, "duplicate endpoint address",
     HOSTILE_SLOW | HOSTILE_MOST_ENDPOINTS},
    {"endpoints with metadata", EDS, endpoints_with_metadata, "duplicate endpoint address", 0},
    {"metadata of empty fields", EDS, wide_metadata, "NACK", HOSTILE_SLOW},
    {"metadata of lists in lists", EDS, deep_metadata, "list_value.values[0].list_value", 0},
    {"a cluster of empty metadata", CDS, empty_cluster_metadata, "NACK", 0},
    {"empty routes", LDS, empty_routes, "NACK", HOSTILE_SLOW},
    {"regexes that are too large", LDS, regexes_too_large, "regexes_total_bytes", HOSTILE_SLOW | HOSTILE_REGEXES},
    {"regexes of letters", LDS, regexes_of_classes, "regexes_total_bytes", HOSTILE_REGEXES},
    {"regexes of fewer letters", LDS, regexes_of_fewer_classes, "regexes_total_bytes", HOSTILE_SLOW | HOSTILE_REGEXES},
    {"regexes of letters of both cases", LDS, regexes_of_folded_classes, "regexes_total_bytes",
     HOSTILE_SLOW | HOSTILE_REGEXES},
    {"regexes that come to nothing", LDS, regexes_of_nothing, "regexes_total_bytes", HOSTILE_SLOW | HOSTILE_REGEXES},
    {"regexes with nested repetitions", LDS, regexes_of_repetitions, "regexes_total_bytes",
     HOSTILE_SLOW | HOSTILE_REGEXES},
    {"regexes of options", LDS, regexes_of_options, "regexes_total_bytes", HOSTILE_SLOW | HOSTILE_REGEXES},
    {"regexes of negated classes", LDS, regexes_of_negated_classes, "regexes_total_bytes", HOSTILE_REGEXES},
    {"regexes that are none", LDS, regexes_that_are_invalid, "regexes_total_bytes", HOSTILE_REGEXES},
    {"regexes of names", CDS, regexes_of_names, "regexes_total_bytes", HOSTILE_SLOW | HOSTILE_REGEXES},
};

const struct hostile_resource *hostile_resources(size_t *n)
{
    *n = TC_ARRAY_LEN(resources);
    return resources;
}
