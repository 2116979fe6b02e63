/* Decodes ClusterLoadAssignment resources (EDS) into struct tc_eds: priorities, localities, endpoints; and
 * LbEndpointCollection resources (LEDS) into struct tc_eds_collection: endpoints alone.
 *
 * No other resource is as large: 262,144 endpoints by default. So each endpoint is unpacked by itself, into a scratch
 * arena that is reset before each endpoint. In a ClusterLoadAssignment, the endpoints' bytes are lifted out of the
 * message first (endpoints_split.h). Order of work for a ClusterLoadAssignment that has passed tc_scan:
 *
 *   within_limits      counts localities and addresses without memory
 *   decode_locality    decodes each locality with a weight, and its endpoints (A27: health, weight; A61: additional
 *                      addresses)
 *   group_priorities   sorts by priority and name; refuses a gap between priorities, a locality that occurs twice in
 *                      a priority, and a priority whose localities' weights add up to more than UINT32_MAX
 *   check_duplicates   refuses an address that occurs twice among the endpoints that are kept
 *   decode_drops       decodes the drop categories
 *
 * Endpoints without a port and hostnames that cannot be used are left out, and counted for a line in the log: an error
 * for one endpoint would cost all of them. What is kept of a message lives in the resource's arena. Runs on any
 * thread. */
#include <stdlib.h>

#include "base/headers.h"
#include "base/log.h"
#include "base/mem.h"
#include "pb/envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "proto/wire.h"
#include "xds/resource/decoded.h"
#include "xds/resource/endpoints.h"
#include "xds/resource/endpoints_split.h"

typedef Envoy__Config__Endpoint__V3__ClusterLoadAssignment Assignment;
typedef Envoy__Config__Endpoint__V3__LocalityLbEndpoints Locality;
typedef Envoy__Config__Endpoint__V3__LbEndpoint LbEndpoint;
typedef Envoy__Config__Endpoint__V3__ClusterLoadAssignment__Policy__DropOverload Drop;

enum {
    ENDPOINTS_OF_SCAN = 262144, /* the scan's default of max_elements is 16 times this number */
};
#define LB_CONFIG(x) ENVOY__CONFIG__ENDPOINT__V3__LOCALITY_LB_ENDPOINTS__LB_CONFIG_##x
#define HEALTH(x) ENVOY__CONFIG__CORE__V3__HEALTH_STATUS__##x

/* A locality with its priority, before localities are grouped by priority. */
struct placed {
    uint32_t priority;
    struct tc_eds_locality locality;
};

struct eds_decoder {
    struct tc_decoder r; /* r.scratch: messages of an endpoint or of localities' proxies, until the next endpoint */
    struct tc_lifted_endpoints lifted;
    struct tc_rstr *empty;
    TC_VEC(struct placed) placed;
    TC_VEC(const struct tc_addr *) seen; /* addresses of the endpoints that are kept, to find duplicates */
    size_t portless, bad_hostnames;      /* endpoints left out, hostnames left out */
};

/* The outcome of an address, the worst first: of several, decode_addresses takes the worst. REFUSED comes with an
 * error. */
enum address { REFUSED, PORTLESS, USABLE };

static enum address decode_socket_address(struct tc_decoder *dec, const Envoy__Config__Core__V3__Address *a,
                                          struct tc_addr *out)
{
    struct tc_validation_errors *f = dec->errors;
    if (a->address_case != ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS) {
        tc_validation_add_at(f, ".socket_address", "field not present");
        return REFUSED;
    }
    const Envoy__Config__Core__V3__SocketAddress *s = a->socket_address;
    bool has_port = s->port_specifier_case == ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_PORT_VALUE;
    uint32_t port = has_port ? s->port_value : 0;
    if (port > 65535) {
        tc_validation_add_at(f, ".socket_address.port_value", "invalid port");
        return REFUSED;
    }
    if (tc_addr_from_ip(out, tc_slice_str(s->address), (uint16_t)port) != 0) {
        tc_validation_add_at(f, ".socket_address.address", "\"%s\" is not an IP address",
                             tc_decode_clip(dec, tc_slice_str(s->address)));
        return REFUSED;
    }
    return port ? USABLE : PORTLESS;
}

static void release_path(void *path)
{
    tc_rstr_unref(path);
}

/* A path that begins with '@' is a name in Linux's abstract namespace, as in Envoy. */
static enum address decode_pipe(struct tc_decoder *dec, const Envoy__Config__Core__V3__Pipe *from, struct tc_addr *out)
{
    bool abstract = from->path[0] == '@';
    struct tc_slice path = tc_slice_str(from->path + abstract);
    if (tc_addr_from_unix(out, path, abstract) != 0) {
        tc_validation_add_at(dec->errors, ".pipe.path", path.len ? "too long for a Unix socket" : "must be non-empty");
        return REFUSED;
    }
    tc_resource_arena_keep(dec->arena, release_path, out->unix_path);
    return USABLE;
}

static enum address decode_address(struct tc_decoder *dec, const Envoy__Config__Core__V3__Address *a,
                                   struct tc_addr *out)
{
    if (!a) {
        tc_validation_add(dec->errors, "field not present");
        return REFUSED;
    }
    return a->address_case == ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_PIPE ? decode_pipe(dec, a->pipe, out)
                                                                             : decode_socket_address(dec, a, out);
}

/* A76: filter_metadata["envoy.lb"].fields["hash_key"], when it is a string that is not empty. */
static struct tc_rstr *metadata_hash_key(struct tc_decoder *dec, const Envoy__Config__Core__V3__Metadata *m)
{
    if (!m || dec->reg->hash_key_ignored)
        return NULL;
    Envoy__Config__Core__V3__Metadata__FilterMetadataEntry *lb =
        tc_proto_map_get((void *const *)m->filter_metadata, m->n_filter_metadata, "envoy.lb");
    if (!lb || !lb->value)
        return NULL;
    Google__Protobuf__Struct__FieldsEntry *key =
        tc_proto_map_get((void *const *)lb->value->fields, lb->value->n_fields, "hash_key");
    if (!key || !key->value || key->value->kind_case != GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE ||
        !*key->value->string_value)
        return NULL;
    return tc_resource_arena_rstr(dec->arena, key->value->string_value);
}

#define ADDRESS_TYPE "/envoy.config.core.v3.Address"
#define PROXY_KEY "envoy.http11_proxy_transport_socket.proxy_address"

/* Decodes a value of typed_filter_metadata that is an Address (A86). Returns NULL with an error if a proxy cannot have
 * that address. */
static const struct tc_addr *metadata_address(struct tc_decoder *dec, struct tc_slice bytes)
{
    const Envoy__Config__Core__V3__Address *a =
        TC_DECODE(dec, &envoy__config__core__v3__address__descriptor, Envoy__Config__Core__V3__Address, bytes);
    struct tc_addr *out = TC_RESOURCE_NEW(dec->arena, struct tc_addr);
    enum address found = a ? decode_socket_address(dec, a, out) : REFUSED;
    if (found == PORTLESS)
        tc_validation_add_at(dec->errors, ".socket_address.port_value", "field not present");
    return found == USABLE ? out : NULL;
}

/* Returns the value of the last entry under the proxy's key (A86); NULL if there is none, or if its value is not a
 * usable Address. Adds an error for each Address in the metadata, under any key, that a proxy cannot have. */
static const struct tc_addr *metadata_proxy(struct tc_decoder *dec, const Envoy__Config__Core__V3__Metadata *m)
{
    const struct tc_addr *proxy = NULL;
    for (size_t i = 0; m && i < m->n_typed_filter_metadata; i++) {
        const Envoy__Config__Core__V3__Metadata__TypedFilterMetadataEntry *entry = m->typed_filter_metadata[i];
        const struct tc_addr *found = NULL;
        /* Entries of other types, or without a type, are skipped. */
        if (entry->value && tc_slice_ends(tc_slice_str(entry->value->type_url), tc_slice_str(ADDRESS_TYPE))) {
            tc_validation_push_key(dec->errors, ".metadata.typed_filter_metadata",
                                   tc_decode_clip(dec, tc_slice_str(entry->key)));
            found = metadata_address(dec, tc_slice_of(entry->value->value.data, entry->value->value.len));
            tc_validation_pop(dec->errors);
        }
        if (strcmp(entry->key, PROXY_KEY) == 0)
            proxy = found;
    }
    return proxy;
}

static bool health_is_used(int health)
{
    return health == HEALTH(UNKNOWN) || health == HEALTH(HEALTHY) || health == HEALTH(DRAINING);
}

/* Returns false when the endpoint is left out: an address is refused with an error, or has no port_value, or has port
 * 0. Other gRPC implementations accept such a port, and fail to connect to it. */
static bool decode_addresses(struct eds_decoder *e, const Envoy__Config__Endpoint__V3__Endpoint *from,
                             struct tc_eds_endpoint *out)
{
    struct tc_validation_errors *f = e->r.errors;
    size_t n = 1 + from->n_additional_addresses;
    struct tc_addr *addrs = TC_RESOURCE_ARRAY(e->r.arena, n, struct tc_addr);
    tc_validation_push_field(f, ".address");
    enum address worst = decode_address(&e->r, from->address, &addrs[0]);
    tc_validation_pop(f);
    for (size_t i = 1; i < n; i++) {
        tc_validation_push_index(f, ".additional_addresses", i - 1);
        tc_validation_push_field(f, ".address");
        enum address found = decode_address(&e->r, from->additional_addresses[i - 1]->address, &addrs[i]);
        worst = TC_MIN(worst, found);
        tc_validation_pop(f);
        tc_validation_pop(f);
    }
    for (size_t i = 0; worst == USABLE && i < n; i++) {
        *tc_vec_push(&e->seen) = &addrs[i];
        if (tc_addr_family(&addrs[i]) == AF_UNIX)
            out->proxy = NULL; /* A86: a proxy connects to a host and a port */
    }
    e->portless += worst == PORTLESS;
    out->n_addrs = n;
    out->addrs = addrs;
    return worst == USABLE;
}

/* A81: the hostname may become an :authority. A hostname that cannot become one is left out without an error, so that
 * RPCs keep their authority; other gRPC implementations accept such a resource, too. */
static void decode_hostname(struct eds_decoder *e, const char *name, struct tc_eds_endpoint *out)
{
    struct tc_slice s = tc_slice_str(name);
    if (!tc_header_value_valid(s) || strchr(name, ' '))
        e->bad_hostnames++;
    else if (s.len)
        out->hostname = tc_resource_arena_text(e->r.arena, name);
}

/* Returns false when the endpoint is left out: for its health, for an address without a port, or for an error. */
static bool decode_endpoint(struct eds_decoder *e, const LbEndpoint *from, const struct tc_addr *locality_proxy,
                            struct tc_eds_endpoint *out)
{
    struct tc_validation_errors *f = e->r.errors;
    if (!health_is_used((int)from->health_status))
        return false;
    *out = (struct tc_eds_endpoint){.weight = 1, .health = (enum tc_eds_health)from->health_status};
    bool ok = true;
    if (from->load_balancing_weight) {
        out->weight = from->load_balancing_weight->value;
        if (out->weight == 0) {
            tc_validation_add_at(f, ".load_balancing_weight", "must be greater than 0");
            ok = false;
        }
    }
    out->hash_key = metadata_hash_key(&e->r, from->metadata);
    out->proxy = metadata_proxy(&e->r, from->metadata);
    if (!out->proxy)
        out->proxy = locality_proxy;
    if (from->host_identifier_case != ENVOY__CONFIG__ENDPOINT__V3__LB_ENDPOINT__HOST_IDENTIFIER_ENDPOINT) {
        tc_validation_add_at(f, ".endpoint", "field not present");
        return false;
    }
    tc_validation_push_field(f, ".endpoint");
    ok = decode_addresses(e, from->endpoint, out) && ok;
    decode_hostname(e, from->endpoint->hostname, out);
    tc_validation_pop(f);
    return ok;
}

static struct tc_rstr *locality_name(struct eds_decoder *e, const char *text)
{
    return *text ? tc_resource_arena_rstr(e->r.arena, text) : e->empty;
}

static bool locality_has_weight(const Locality *from)
{
    return from->load_balancing_weight && from->load_balancing_weight->value != 0;
}

/* Frees the messages of the last endpoint, and unpacks an endpoint into e->r.scratch. Returns NULL with an error. */
static const LbEndpoint *unpack_endpoint(struct eds_decoder *e, struct tc_slice bytes)
{
    ProtobufCMessage *m = NULL;
    tc_arena_reset(&e->r.scratch);
    (void)tc_unpack_scanned(&envoy__config__endpoint__v3__lb_endpoint__descriptor, bytes, &e->r.scratch, &m,
                            e->r.errors);
    return (const LbEndpoint *)m;
}

/* Returns the name of a list collection (A95), kept by the arena. Adds an error if the collection is not to be asked
 * for on the same stream (self), or if its name is empty or a glob. */
static struct tc_rstr *decode_collection_name(struct tc_decoder *dec,
                                              const Envoy__Config__Endpoint__V3__LedsClusterLocalityConfig *m)
{
    struct tc_slice name = tc_slice_str(m->leds_collection_name), rest = name, path;
    bool more = true;
    tc_validation_push_field(dec->errors, ".leds_cluster_locality_config");
    if (!m->leds_config || m->leds_config->config_source_specifier_case !=
                               ENVOY__CONFIG__CORE__V3__CONFIG_SOURCE__CONFIG_SOURCE_SPECIFIER_SELF)
        tc_validation_add_at(dec->errors, ".leds_config", "must be self");
    tc_slice_split(&rest, &more, '?', &path); /* context parameters follow the path */
    if (tc_decode_nonempty(dec, name.data, ".leds_collection_name") && tc_slice_ends(path, tc_slice_str("/*")))
        tc_validation_add_at(dec->errors, ".leds_collection_name", "glob collection \"%s\" unsupported",
                             tc_decode_clip(dec, name));
    tc_validation_pop(dec->errors);
    return tc_resource_arena_rstr(dec->arena, name.data);
}

/* Decodes a locality. `from` lacks its endpoints, which are in `lifted`, the bytes of the locality. */
static void decode_locality(struct eds_decoder *e, const Locality *from, struct tc_slice lifted)
{
    struct tc_slice bytes;
    struct tc_validation_errors *f = e->r.errors;
    if (!locality_has_weight(from))
        return; /* A27: gets no traffic */
    if (from->priority >= e->r.limits.eds_priorities) {
        tc_validation_add_at(f, ".priority", "%u is beyond the limit of %zu priorities", from->priority,
                             e->r.limits.eds_priorities);
        return;
    }
    if (!from->locality)
        tc_validation_add_at(f, ".locality", "field not present");
    struct placed *at = tc_vec_push(&e->placed);
    struct tc_eds_locality *out = &at->locality;
    at->priority = from->priority;
    out->weight = from->load_balancing_weight->value;
    out->region = locality_name(e, from->locality ? from->locality->region : "");
    out->zone = locality_name(e, from->locality ? from->locality->zone : "");
    out->sub_zone = locality_name(e, from->locality ? from->locality->sub_zone : "");
    out->proxy = metadata_proxy(&e->r, from->metadata);
    if (from->lb_config_case == LB_CONFIG(LEDS_CLUSTER_LOCALITY_CONFIG)) {
        out->collection = decode_collection_name(&e->r, from->leds_cluster_locality_config);
        return;
    }
    struct tc_eds_endpoint *endpoints = TC_RESOURCE_ARRAY(e->r.arena, tc_endpoints_of(lifted), struct tc_eds_endpoint);
    for (size_t i = 0; tc_endpoints_next(&lifted, &bytes); i++) {
        tc_validation_push_index(f, ".lb_endpoints", i);
        const LbEndpoint *endpoint = unpack_endpoint(e, bytes);
        if (endpoint && decode_endpoint(e, endpoint, out->proxy, &endpoints[out->n]))
            out->n++;
        tc_validation_pop(f);
    }
    out->endpoints = endpoints;
}

static int compare_localities(const struct tc_eds_locality *a, const struct tc_eds_locality *b)
{
    int c = tc_slice_cmp(tc_rstr_slice(a->region), tc_rstr_slice(b->region));
    c = c ? c : tc_slice_cmp(tc_rstr_slice(a->zone), tc_rstr_slice(b->zone));
    return c ? c : tc_slice_cmp(tc_rstr_slice(a->sub_zone), tc_rstr_slice(b->sub_zone));
}

static int compare_placed_localities(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    return compare_localities(&x->locality, &y->locality);
}

/* Checks a priority, given as the sorted run of its localities. */
static void priority_check(struct eds_decoder *e, const struct placed *run, size_t n)
{
    uint64_t weights = run[0].locality.weight;
    for (size_t i = 1; i < n; i++) {
        weights += run[i].locality.weight;
        if (compare_localities(&run[i - 1].locality, &run[i].locality) != 0)
            continue;
        struct tc_buf text = {0};
        tc_eds_locality_format(&run[i].locality, &text);
        tc_validation_add(e->r.errors, "duplicate locality %s found in priority %u", tc_buf_cstr(&text),
                          run[i].priority);
        tc_buf_fini(&text);
    }
    if (weights > UINT32_MAX)
        tc_validation_add(e->r.errors, "sum of locality weights for priority %u exceeds uint32 max", run[0].priority);
}

static void group_priorities(struct eds_decoder *e, struct tc_eds *eds)
{
    size_t n = e->placed.len;
    struct placed *all = e->placed.data;
    if (n == 0)
        return;
    qsort(all, n, sizeof(*all), compare_placed_localities);
    size_t n_priorities = (size_t)all[n - 1].priority + 1;
    struct tc_eds_priority *priorities = TC_RESOURCE_ARRAY(e->r.arena, n_priorities, struct tc_eds_priority);
    struct tc_eds_locality *localities = TC_RESOURCE_ARRAY(e->r.arena, n, struct tc_eds_locality);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && all[end].priority == all[i].priority) {
            localities[end] = all[end].locality;
            eds->n_collections += all[end].locality.collection != NULL;
            end++;
        }
        priority_check(e, &all[i], end - i);
        priorities[all[i].priority] = (struct tc_eds_priority){.n = end - i, .localities = &localities[i]};
        i = end;
    }
    for (size_t i = 0; i < n_priorities; i++)
        if (priorities[i].n == 0)
            tc_validation_add(e->r.errors, "priority %zu empty", i);
    eds->n_priorities = n_priorities;
    eds->priorities = priorities;
}

/* Adds an error for each repetition of an address. The hash table has open addressing; a slot holds an index in e->seen
 * plus 1, or 0. The hash is seeded (tc_addr_hash), so no server can choose addresses that all collide. */
static void check_duplicates(struct eds_decoder *e)
{
    const struct tc_addr *const *all = e->seen.data;
    size_t slots = 8;
    while (slots < e->seen.len * 2)
        slots *= 2;
    uint32_t *table = tc_calloc(slots, sizeof(*table));
    for (size_t i = 0; i < e->seen.len; i++) {
        size_t at = (size_t)tc_addr_hash(all[i]) & (slots - 1);
        while (table[at] && !tc_addr_eq(all[table[at] - 1], all[i]))
            at = (at + 1) & (slots - 1);
        if (!table[at]) {
            table[at] = (uint32_t)i + 1;
            continue;
        }
        char *text = tc_addr_text(all[i]);
        tc_validation_add(e->r.errors, "duplicate endpoint address \"%s\"", text);
        tc_free(text);
    }
    tc_free(table);
}

/* Returns whether the numbers of localities and addresses are within the limits, before anything is built. Adds an
 * error for each limit that is exceeded. */
static bool within_limits(struct eds_decoder *e, struct tc_slice bytes)
{
    const struct tc_resource_limits *limits = &e->r.limits;
    const struct tc_endpoint_counts n = tc_endpoints_count(bytes);
    if (n.localities > limits->eds_localities)
        tc_validation_add_at(e->r.errors, ".endpoints", "%zu localities, more than %zu", n.localities,
                             limits->eds_localities);
    if (n.addresses > limits->eds_endpoints)
        tc_validation_add_at(e->r.errors, ".endpoints", "%zu endpoints and additional addresses, more than %zu",
                             n.addresses, limits->eds_endpoints);
    return n.localities <= limits->eds_localities && n.addresses <= limits->eds_endpoints;
}

static void decode_drops(struct tc_decoder *dec, const Assignment *m, struct tc_eds *eds)
{
    size_t n = m->policy ? m->policy->n_drop_overloads : 0;
    if (n > dec->limits.eds_drops) {
        tc_validation_add_at(dec->errors, ".policy.drop_overloads", "%zu categories, more than %zu", n,
                             dec->limits.eds_drops);
        return;
    }
    struct tc_eds_drop *drops = TC_RESOURCE_ARRAY(dec->arena, n, struct tc_eds_drop);
    for (size_t i = 0; i < n; i++) {
        const Drop *d = m->policy->drop_overloads[i];
        tc_validation_push(dec->errors, ".policy.drop_overloads[%zu]", i);
        if (!*d->category)
            tc_validation_add_at(dec->errors, ".category", "empty drop category name");
        drops[i].category = tc_resource_arena_rstr(dec->arena, d->category);
        if (tc_decode_fraction(dec, ".drop_percentage", d->drop_percentage, &drops[i].millionths) &&
            drops[i].millionths == TC_FRACTION_ONE)
            eds->drops_all = true;
        tc_validation_pop(dec->errors);
    }
    eds->n_drops = n;
    eds->drops = drops;
}

/* Logs one line for each kind of fault that does not refuse the resource. */
static void warn_of_faulty_endpoints(const struct eds_decoder *e, const char *type, const char *name)
{
    if (e->portless)
        TC_LOG(TC_LOG_RESOURCE, TORC_LOG_WARN, "%s \"" TC_SHOWN "\": %zu endpoints without port_value left out", type,
               TC_SHOW(name), e->portless);
    if (e->bad_hostnames)
        TC_LOG(TC_LOG_RESOURCE, TORC_LOG_WARN,
               "%s \"" TC_SHOWN "\": %zu endpoints with a hostname that no :authority can have: the hostname is "
               "ignored",
               type, TC_SHOW(name), e->bad_hostnames);
}

static void decode_assignment(struct eds_decoder *e, const Assignment *m, struct tc_eds *eds)
{
    tc_decode_nonempty(&e->r, m->cluster_name, ".cluster_name");
    e->empty = tc_resource_arena_rstr(e->r.arena, "");
    for (size_t i = 0; i < m->n_endpoints; i++) {
        tc_validation_push_index(e->r.errors, ".endpoints", i);
        eds->n_unweighted += !locality_has_weight(m->endpoints[i]);
        decode_locality(e, m->endpoints[i], e->lifted.localities.data[i]);
        tc_validation_pop(e->r.errors);
    }
    tc_validation_push_field(e->r.errors, ".endpoints");
    group_priorities(e, eds);
    check_duplicates(e);
    tc_validation_pop(e->r.errors);
    eds->room = e->r.limits.eds_endpoints - TC_MIN(e->seen.len, e->r.limits.eds_endpoints);
    decode_drops(&e->r, m, eds);
    warn_of_faulty_endpoints(e, "ClusterLoadAssignment", m->cluster_name);
}

/* Unpacks into `arena` everything but the endpoints: e->lifted borrows their bytes. Returns NULL with an error. */
static const Assignment *unpack_assignment(struct eds_decoder *e, struct tc_slice bytes, struct tc_arena *arena)
{
    ProtobufCMessage *m = NULL;
    if (!within_limits(e, bytes))
        return NULL;
    tc_endpoints_lift(bytes, &e->lifted);
    (void)tc_unpack_scanned(&envoy__config__endpoint__v3__cluster_load_assignment__descriptor,
                            tc_buf_slice(&e->lifted.rest), arena, &m, e->r.errors);
    return (const Assignment *)m;
}

/* Sets the scan's bounds, so that as many endpoints pass as the limits allow. */
static void scan_bounds(struct tc_decoder *dec)
{
    dec->scan.max_repeated = TC_MAX(dec->limits.eds_endpoints, dec->limits.eds_localities);
    if (dec->limits.eds_endpoints > ENDPOINTS_OF_SCAN) /* an endpoint has several messages and fields */
        dec->scan.max_elements = 16 * dec->limits.eds_endpoints;
}

static struct tc_xds_resource *eds_decode(const struct tc_xds_resource_type *type,
                                          const struct tc_xds_decode_context *ctx, struct tc_slice bytes,
                                          struct tc_rstr **name, struct tc_validation_errors *errors)
{
    struct tc_eds *eds = TC_NEW(struct tc_eds);
    struct eds_decoder e = {0};
    tc_decode_begin(&e.r, &eds->base, type, ctx, bytes, errors);
    scan_bounds(&e.r);
    struct tc_slice clean_bytes = bytes;
    struct tc_buf clean = {0};
    struct tc_arena arena;
    tc_arena_init(&arena, 0, e.r.scratch.budget);
    const Assignment *m = NULL;
    if (tc_scan(&envoy__config__endpoint__v3__cluster_load_assignment__descriptor, bytes, &e.r.scan, &clean,
                &clean_bytes, errors) == 0)
        m = unpack_assignment(&e, clean_bytes, &arena);
    eds->name = tc_decode_take_name(&e.r, m ? m->cluster_name : NULL, bytes, name);
    if (m)
        decode_assignment(&e, m, eds);
    tc_vec_fini(&e.placed);
    tc_vec_fini(&e.seen);
    tc_lifted_endpoints_fini(&e.lifted);
    tc_arena_fini(&arena);
    tc_buf_fini(&clean);
    return tc_decode_end(&e.r, &eds->base, bytes);
}

const struct tc_xds_resource_type tc_eds_type = {
    .type_url = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
    .short_name = "ClusterLoadAssignment",
    .any_thread = true,
    .all_resources_required_in_sotw = false,
    .decode = eds_decode,
    .peek_name = tc_decode_peek_name,
    .equal = tc_decoded_equal,
    .free = tc_decoded_free,
};

/* --- LbEndpointCollection (A95) --- */

/* Decodes the entry of a collection in `bytes`. Stores its endpoint in *out and counts it in c->n, unless it is left
 * out. The next call frees the messages. */
static void decode_entry(struct eds_decoder *e, struct tc_slice bytes, struct tc_eds_collection *c,
                         struct tc_eds_endpoint *out)
{
    tc_arena_reset(&e->r.scratch);
    const Xds__Core__V3__CollectionEntry *entry =
        TC_DECODE(&e->r, &xds__core__v3__collection_entry__descriptor, Xds__Core__V3__CollectionEntry, bytes);
    if (!entry)
        return;
    tc_validation_push_field(e->r.errors, ".inline_entry");
    if (entry->resource_specifier_case != XDS__CORE__V3__COLLECTION_ENTRY__RESOURCE_SPECIFIER_INLINE_ENTRY) {
        tc_validation_add(e->r.errors, "field not present");
    } else {
        tc_validation_push_field(e->r.errors, ".resource");
        const LbEndpoint *endpoint =
            TC_DECODE_ANY(&e->r, entry->inline_entry->resource, &envoy__config__endpoint__v3__lb_endpoint__descriptor,
                          LbEndpoint, "unsupported type");
        if (endpoint && decode_endpoint(e, endpoint, NULL, out))
            c->n++;
        tc_validation_pop(e->r.errors);
    }
    tc_validation_pop(e->r.errors);
}

static void decode_collection(struct eds_decoder *e, struct tc_slice bytes, struct tc_eds_collection *c)
{
    enum { ENTRIES = 1 };
    struct tc_slice rest = bytes;
    struct tc_wire_field f;
    size_t n = 0;
    while (tc_wire_next(&rest, &f))
        n += f.is_bytes && f.number == ENTRIES;
    if (n > e->r.limits.eds_endpoints) {
        tc_validation_add_at(e->r.errors, ".entries", "%zu endpoints, more than %zu", n, e->r.limits.eds_endpoints);
        return;
    }
    struct tc_eds_endpoint *endpoints = TC_RESOURCE_ARRAY(e->r.arena, n, struct tc_eds_endpoint);
    for (size_t i = 0; tc_wire_next(&bytes, &f);) {
        if (!f.is_bytes || f.number != ENTRIES)
            continue;
        tc_validation_push_index(e->r.errors, ".entries", i++);
        decode_entry(e, f.value, c, &endpoints[c->n]);
        tc_validation_pop(e->r.errors);
    }
    c->endpoints = endpoints;
    c->n_addrs = e->seen.len;
    if (c->n_addrs > e->r.limits.eds_endpoints)
        tc_validation_add_at(e->r.errors, ".entries", "%zu endpoints and additional addresses, more than %zu",
                             c->n_addrs, e->r.limits.eds_endpoints);
    check_duplicates(e);
    warn_of_faulty_endpoints(e, "LbEndpointCollection", "");
}

static struct tc_xds_resource *collection_decode(const struct tc_xds_resource_type *type,
                                                 const struct tc_xds_decode_context *ctx, struct tc_slice bytes,
                                                 struct tc_rstr **name, struct tc_validation_errors *errors)
{
    struct tc_eds_collection *c = TC_NEW(struct tc_eds_collection);
    struct eds_decoder e = {0};
    tc_decode_begin(&e.r, &c->base, type, ctx, bytes, errors);
    *name = NULL;
    scan_bounds(&e.r);
    struct tc_slice clean_bytes = bytes;
    struct tc_buf clean = {0};
    if (tc_scan(&envoy__config__endpoint__v3__lb_endpoint_collection__descriptor, bytes, &e.r.scan, &clean,
                &clean_bytes, errors) == 0)
        decode_collection(&e, clean_bytes, c);
    tc_vec_fini(&e.seen);
    tc_buf_fini(&clean);
    return tc_decode_end(&e.r, &c->base, bytes);
}

static struct tc_slice collection_peek_name(struct tc_slice bytes)
{
    (void)bytes;
    return tc_slice_of(NULL, 0);
}

const struct tc_xds_resource_type tc_eds_collection_type = {
    .type_url = "type.googleapis.com/envoy.config.endpoint.v3.LbEndpointCollection",
    .short_name = "LbEndpointCollection",
    .any_thread = true,
    .all_resources_required_in_sotw = false,
    .decode = collection_decode,
    .peek_name = collection_peek_name,
    .equal = tc_decoded_equal,
    .free = tc_decoded_free,
};
