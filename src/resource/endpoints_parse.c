#include <stdlib.h>

#include "base/headers.h"
#include "base/mem.h"
#include "pb/envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "resource/endpoints.h"
#include "resource/endpoints_lift.h"
#include "resource/reading.h"

typedef Envoy__Config__Endpoint__V3__ClusterLoadAssignment Assignment;
typedef Envoy__Config__Endpoint__V3__LocalityLbEndpoints Locality;
typedef Envoy__Config__Endpoint__V3__LbEndpoint LbEndpoint;
typedef Envoy__Config__Endpoint__V3__ClusterLoadAssignment__Policy__DropOverload Drop;

#define ENDPOINTS_OF_SCAN 262144 /* that the scan's own bound on elements has room for */
#define HEALTH(x) ENVOY__CONFIG__CORE__V3__HEALTH_STATUS__##x

/* A locality with its priority, before they are grouped. */
struct placed {
    uint32_t priority;
    struct tc_eds_locality locality;
};

struct eds_reading {
    struct tc_reading r; /* its scratch is one endpoint's */
    struct tc_lifted_endpoints lifted;
    struct tc_rstr *empty;
    TC_VEC(struct placed) placed;
    TC_VEC(const struct tc_addr *) seen; /* all addresses, to find duplicates */
};

static bool read_address(struct tc_reading *p, const Envoy__Config__Core__V3__Address *a, struct tc_addr *out)
{
    struct tc_faults *f = p->faults;
    if (!a) {
        tc_faults_add(f, "field not present");
        return false;
    }
    if (a->address_case != ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS) {
        tc_faults_add_at(f, ".socket_address", "field not present");
        return false;
    }
    const Envoy__Config__Core__V3__SocketAddress *s = a->socket_address;
    if (s->port_specifier_case == ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_NAMED_PORT ||
        s->port_value > 65535) {
        tc_faults_add_at(f, ".socket_address.port_value", "invalid port");
        return false;
    }
    if (tc_addr_from_ip(out, tc_slice_str(s->address), (uint16_t)s->port_value) != 0) {
        tc_faults_add_at(f, ".socket_address.address", "\"%s\" is not an IP address",
                         tc_read_clip(p, tc_slice_str(s->address)));
        return false;
    }
    return true;
}

/* A76: filter_metadata["envoy.lb"].fields["hash_key"], when it is a string that is not empty. */
static struct tc_rstr *hash_key(struct tc_reading *p, const Envoy__Config__Core__V3__Metadata *m)
{
    if (!m || p->reg->hash_key_ignored)
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
    return tc_store_rstr(p->store, key->value->string_value);
}

#define ADDRESS_TYPE "/envoy.config.core.v3.Address"
#define PROXY_KEY "envoy.http11_proxy_transport_socket.proxy_address"

/* One value of typed_filter_metadata that is an Address (A86): faults where it is none that a proxy can have. */
static const struct tc_addr *metadata_address(struct tc_reading *p, struct tc_slice bytes)
{
    const Envoy__Config__Core__V3__Address *a =
        TC_READ(p, &envoy__config__core__v3__address__descriptor, Envoy__Config__Core__V3__Address, bytes);
    struct tc_addr *out = TC_STORE_NEW(p->store, struct tc_addr);
    if (!a || !read_address(p, a, out))
        return NULL;
    if (a->socket_address->port_specifier_case == ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_PORT_VALUE)
        return out;
    tc_faults_add_at(p->faults, ".socket_address.port_value", "field not present");
    return NULL;
}

/* Every Address in the metadata is checked; the last one under the proxy's key is given. */
static const struct tc_addr *proxy_of(struct tc_reading *p, const Envoy__Config__Core__V3__Metadata *m)
{
    const struct tc_addr *proxy = NULL;
    for (size_t i = 0; m && i < m->n_typed_filter_metadata; i++) {
        const Envoy__Config__Core__V3__Metadata__TypedFilterMetadataEntry *entry = m->typed_filter_metadata[i];
        const struct tc_addr *found = NULL;
        /* Other types, and what is of none, are nothing to us. */
        if (entry->value && tc_slice_ends(tc_slice_str(entry->value->type_url), tc_slice_str(ADDRESS_TYPE))) {
            tc_faults_push(p->faults, ".metadata.typed_filter_metadata[\"%s\"]",
                           tc_read_clip(p, tc_slice_str(entry->key)));
            found = metadata_address(p, tc_slice_of(entry->value->value.data, entry->value->value.len));
            tc_faults_pop(p->faults);
        }
        if (strcmp(entry->key, PROXY_KEY) == 0)
            proxy = found;
    }
    return proxy;
}

static bool health_used(int health)
{
    return health == HEALTH(UNKNOWN) || health == HEALTH(HEALTHY) || health == HEALTH(DRAINING);
}

static bool read_addresses(struct eds_reading *e, const Envoy__Config__Endpoint__V3__Endpoint *from,
                           struct tc_eds_endpoint *out)
{
    struct tc_faults *f = e->r.faults;
    size_t n = 1 + from->n_additional_addresses;
    struct tc_addr *addrs = TC_STORE_ARRAY(e->r.store, n, struct tc_addr);
    tc_faults_push_field(f, ".address");
    bool ok = read_address(&e->r, from->address, &addrs[0]);
    tc_faults_pop(f);
    for (size_t i = 1; i < n; i++) {
        tc_faults_push_index(f, ".additional_addresses", i - 1);
        tc_faults_push_field(f, ".address");
        ok = read_address(&e->r, from->additional_addresses[i - 1]->address, &addrs[i]) && ok;
        tc_faults_pop(f);
        tc_faults_pop(f);
    }
    for (size_t i = 0; ok && i < n; i++)
        *tc_vec_push(&e->seen) = &addrs[i];
    out->n_addrs = n;
    out->addrs = addrs;
    return ok;
}

/* It may become an :authority (A81). */
static bool read_hostname(struct eds_reading *e, const char *name, struct tc_eds_endpoint *out)
{
    struct tc_slice s = tc_slice_str(name);
    if (!tc_header_value_valid(s) || strchr(name, ' ')) {
        tc_faults_add_at(e->r.faults, ".hostname", "has bytes that no authority has");
        return false;
    }
    if (s.len)
        out->hostname = tc_store_text(e->r.store, name);
    return true;
}

/* False when the endpoint is left out: for its health, or for a fault. */
static bool read_endpoint(struct eds_reading *e, const LbEndpoint *from, const struct tc_addr *locality_proxy,
                          struct tc_eds_endpoint *out)
{
    struct tc_faults *f = e->r.faults;
    if (!health_used((int)from->health_status))
        return false;
    *out = (struct tc_eds_endpoint){.weight = 1, .health = (enum tc_eds_health)from->health_status};
    bool ok = true;
    if (from->load_balancing_weight) {
        out->weight = from->load_balancing_weight->value;
        if (out->weight == 0) {
            tc_faults_add_at(f, ".load_balancing_weight", "must be greater than 0");
            ok = false;
        }
    }
    out->hash_key = hash_key(&e->r, from->metadata);
    out->proxy = proxy_of(&e->r, from->metadata);
    if (!out->proxy)
        out->proxy = locality_proxy;
    if (from->host_identifier_case != ENVOY__CONFIG__ENDPOINT__V3__LB_ENDPOINT__HOST_IDENTIFIER_ENDPOINT) {
        tc_faults_add_at(f, ".endpoint", "field not present");
        return false;
    }
    tc_faults_push_field(f, ".endpoint");
    ok = read_addresses(e, from->endpoint, out) && ok;
    ok = read_hostname(e, from->endpoint->hostname, out) && ok;
    tc_faults_pop(f);
    return ok;
}

static struct tc_rstr *name_of(struct eds_reading *e, const char *text)
{
    return *text ? tc_store_rstr(e->r.store, text) : e->empty;
}

static bool has_weight(const Locality *from)
{
    return from->load_balancing_weight && from->load_balancing_weight->value != 0;
}

/* NULL with a fault: protobuf-c cannot take it apart. */
static const LbEndpoint *unpack_endpoint(struct eds_reading *e, struct tc_slice bytes)
{
    ProtobufCMessage *m = NULL;
    tc_arena_reset(&e->r.scratch);
    (void)tc_unpack_scanned(&envoy__config__endpoint__v3__lb_endpoint__descriptor, bytes, &e->r.scratch, &m,
                            e->r.faults);
    return (const LbEndpoint *)m;
}

/* `lifted` has its endpoints. */
static void read_locality(struct eds_reading *e, const Locality *from, struct tc_slice lifted)
{
    struct tc_slice bytes;
    struct tc_faults *f = e->r.faults;
    if (!has_weight(from))
        return; /* A27: gets no traffic */
    if (from->priority >= e->r.limits.eds_priorities) {
        tc_faults_add_at(f, ".priority", "%u is beyond the limit of %zu priorities", from->priority,
                         e->r.limits.eds_priorities);
        return;
    }
    if (!from->locality)
        tc_faults_add_at(f, ".locality", "field not present");
    struct placed *at = tc_vec_push(&e->placed);
    struct tc_eds_locality *out = &at->locality;
    at->priority = from->priority;
    out->weight = from->load_balancing_weight->value;
    out->region = name_of(e, from->locality ? from->locality->region : "");
    out->zone = name_of(e, from->locality ? from->locality->zone : "");
    out->sub_zone = name_of(e, from->locality ? from->locality->sub_zone : "");
    const struct tc_addr *proxy = proxy_of(&e->r, from->metadata);
    struct tc_eds_endpoint *endpoints = TC_STORE_ARRAY(e->r.store, tc_endpoints_of(lifted), struct tc_eds_endpoint);
    for (size_t i = 0; tc_endpoints_next(&lifted, &bytes); i++) {
        tc_faults_push_index(f, ".lb_endpoints", i);
        const LbEndpoint *endpoint = unpack_endpoint(e, bytes);
        if (endpoint && read_endpoint(e, endpoint, proxy, &endpoints[out->n]))
            out->n++;
        tc_faults_pop(f);
    }
    out->endpoints = endpoints;
}

static int cmp_names(const struct tc_rstr *a, const struct tc_rstr *b)
{
    int c = memcmp(a->data, b->data, TC_MIN(a->len, b->len));
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

static int cmp_localities(const struct tc_eds_locality *a, const struct tc_eds_locality *b)
{
    int c = cmp_names(a->region, b->region);
    c = c ? c : cmp_names(a->zone, b->zone);
    return c ? c : cmp_names(a->sub_zone, b->sub_zone);
}

static int cmp_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    return cmp_localities(&x->locality, &y->locality);
}

void tc_eds_locality_format(const struct tc_eds_locality *l, struct tc_buf *out)
{
    tc_buf_printf(out, "{region=\"%s\", zone=\"%s\", sub_zone=\"%s\"}", l->region->data, l->zone->data,
                  l->sub_zone->data);
}

/* One priority out of the sorted run of its localities. */
static void check_priority(struct eds_reading *e, const struct placed *run, size_t n)
{
    uint64_t weights = run[0].locality.weight;
    for (size_t i = 1; i < n; i++) {
        weights += run[i].locality.weight;
        if (cmp_localities(&run[i - 1].locality, &run[i].locality) != 0)
            continue;
        struct tc_buf text = {0};
        tc_eds_locality_format(&run[i].locality, &text);
        tc_faults_add(e->r.faults, "duplicate locality %s found in priority %u", tc_buf_cstr(&text), run[i].priority);
        tc_buf_fini(&text);
    }
    if (weights > UINT32_MAX)
        tc_faults_add(e->r.faults, "sum of locality weights for priority %u exceeds uint32 max", run[0].priority);
}

static void group_priorities(struct eds_reading *e, struct tc_eds *eds)
{
    size_t n = e->placed.len;
    struct placed *all = e->placed.data;
    if (n == 0)
        return;
    qsort(all, n, sizeof(*all), cmp_placed);
    size_t n_priorities = (size_t)all[n - 1].priority + 1;
    struct tc_eds_priority *priorities = TC_STORE_ARRAY(e->r.store, n_priorities, struct tc_eds_priority);
    struct tc_eds_locality *localities = TC_STORE_ARRAY(e->r.store, n, struct tc_eds_locality);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && all[end].priority == all[i].priority) {
            localities[end] = all[end].locality;
            end++;
        }
        check_priority(e, &all[i], end - i);
        priorities[all[i].priority] = (struct tc_eds_priority){.n = end - i, .localities = &localities[i]};
        i = end;
    }
    for (size_t i = 0; i < n_priorities; i++)
        if (priorities[i].n == 0)
            tc_faults_add(e->r.faults, "priority %zu empty", i);
    eds->n_priorities = n_priorities;
    eds->priorities = priorities;
}

/* An open table of places in e->seen, counted from 1. Its multiplier is another one each time, so that nobody can
 * choose addresses that all meet in one place. */
static void check_duplicates(struct eds_reading *e)
{
    const struct tc_addr *const *all = e->seen.data;
    size_t slots = 8;
    while (slots < e->seen.len * 2)
        slots *= 2;
    uint32_t *table = tc_calloc(slots, sizeof(*table));
    uint64_t mixer = (uint64_t)(uintptr_t)table * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (size_t i = 0; i < e->seen.len; i++) {
        size_t at = (size_t)(tc_addr_hash(all[i]) * mixer >> 32) & (slots - 1);
        while (table[at] && !tc_addr_eq(all[table[at] - 1], all[i]))
            at = (at + 1) & (slots - 1);
        if (!table[at]) {
            table[at] = (uint32_t)i + 1;
            continue;
        }
        char *text = tc_addr_text(all[i]);
        tc_faults_add(e->r.faults, "duplicate endpoint address \"%s\"", text);
        tc_free(text);
    }
    tc_free(table);
}

/* The caps of the whole resource, before anything is built. */
static bool within_limits(struct eds_reading *e, struct tc_slice bytes)
{
    const struct tc_resource_limits *limits = &e->r.limits;
    const struct tc_endpoint_counts n = tc_endpoints_count(bytes);
    if (n.localities > limits->eds_localities)
        tc_faults_add_at(e->r.faults, ".endpoints", "%zu localities, more than %zu", n.localities,
                         limits->eds_localities);
    if (n.addresses > limits->eds_endpoints)
        tc_faults_add_at(e->r.faults, ".endpoints", "%zu endpoints and additional addresses, more than %zu",
                         n.addresses, limits->eds_endpoints);
    return n.localities <= limits->eds_localities && n.addresses <= limits->eds_endpoints;
}

static void read_drops(struct tc_reading *p, const Assignment *m, struct tc_eds *eds)
{
    size_t n = m->policy ? m->policy->n_drop_overloads : 0;
    if (n > p->limits.eds_drops) {
        tc_faults_add_at(p->faults, ".policy.drop_overloads", "%zu categories, more than %zu", n, p->limits.eds_drops);
        return;
    }
    struct tc_eds_drop *drops = TC_STORE_ARRAY(p->store, n, struct tc_eds_drop);
    for (size_t i = 0; i < n; i++) {
        const Drop *d = m->policy->drop_overloads[i];
        tc_faults_push(p->faults, ".policy.drop_overloads[%zu]", i);
        if (!*d->category)
            tc_faults_add_at(p->faults, ".category", "empty drop category name");
        drops[i].category = tc_store_rstr(p->store, d->category);
        tc_faults_push(p->faults, ".drop_percentage");
        if (tc_read_fraction(p, d->drop_percentage, &drops[i].millionths) && drops[i].millionths == TC_FRACTION_ONE)
            eds->drops_all = true;
        tc_faults_pop(p->faults);
        tc_faults_pop(p->faults);
    }
    eds->n_drops = n;
    eds->drops = drops;
}

static void read_assignment(struct eds_reading *e, const Assignment *m, struct tc_eds *eds)
{
    tc_read_nonempty(&e->r, m->cluster_name, ".cluster_name");
    e->empty = tc_store_rstr(e->r.store, "");
    for (size_t i = 0; i < m->n_endpoints; i++) {
        tc_faults_push_index(e->r.faults, ".endpoints", i);
        eds->n_unweighted += !has_weight(m->endpoints[i]);
        read_locality(e, m->endpoints[i], e->lifted.localities.data[i]);
        tc_faults_pop(e->r.faults);
    }
    tc_faults_push_field(e->r.faults, ".endpoints");
    group_priorities(e, eds);
    check_duplicates(e);
    tc_faults_pop(e->r.faults);
    read_drops(&e->r, m, eds);
}

/* Into `arena` what is not endpoints. NULL with a fault. */
static const Assignment *unpack_assignment(struct eds_reading *e, struct tc_slice bytes, struct tc_arena *arena)
{
    ProtobufCMessage *m = NULL;
    if (!within_limits(e, bytes))
        return NULL;
    tc_endpoints_lift(bytes, &e->lifted);
    (void)tc_unpack_scanned(&envoy__config__endpoint__v3__cluster_load_assignment__descriptor,
                            tc_buf_slice(&e->lifted.rest), arena, &m, e->r.faults);
    return (const Assignment *)m;
}

static void eds_free(struct tc_xds_resource *r)
{
    struct tc_eds *eds = (struct tc_eds *)(void *)r;
    tc_store_fini(&eds->store);
    tc_free(eds);
}

static bool eds_equal(const struct tc_xds_resource *a, const struct tc_xds_resource *b)
{
    return tc_slice_eq(tc_eds_of(a)->store.bytes, tc_eds_of(b)->store.bytes);
}

static struct tc_xds_resource *eds_decode(const struct tc_xds_resource_type *type,
                                          const struct tc_xds_decode_context *ctx, struct tc_slice bytes,
                                          struct tc_rstr **name, struct tc_faults *faults)
{
    size_t before = faults->count;
    struct tc_eds *eds = TC_NEW(struct tc_eds);
    tc_ref_init(&eds->head.ref);
    eds->head.type = type;
    tc_store_init(&eds->store);
    struct eds_reading e = {0};
    tc_read_init(&e.r, ctx, &eds->store, bytes.len, faults);
    e.r.scan.max_repeated = TC_MAX(e.r.limits.eds_endpoints, e.r.limits.eds_localities);
    if (e.r.limits.eds_endpoints > ENDPOINTS_OF_SCAN) /* each has some messages and fields */
        e.r.scan.max_elements = 16 * e.r.limits.eds_endpoints;
    struct tc_slice clean_bytes = bytes;
    struct tc_buf clean = {0};
    struct tc_arena arena;
    tc_arena_init(&arena, 0, e.r.scratch.budget);
    const Assignment *m = NULL;
    if (tc_scan(&envoy__config__endpoint__v3__cluster_load_assignment__descriptor, bytes, &e.r.scan, &clean,
                &clean_bytes, faults) == 0)
        m = unpack_assignment(&e, clean_bytes, &arena);
    if (m) {
        eds->name = tc_store_rstr(&eds->store, m->cluster_name);
        *name = tc_rstr_ref(eds->name);
        read_assignment(&e, m, eds);
    } else {
        *name = tc_read_name(bytes);
    }
    tc_vec_fini(&e.placed);
    tc_vec_fini(&e.seen);
    tc_lifted_endpoints_fini(&e.lifted);
    tc_arena_fini(&arena);
    tc_buf_fini(&clean);
    tc_read_fini(&e.r);
    if (faults->count == before) {
        tc_store_set_bytes(&eds->store, bytes);
        return &eds->head;
    }
    eds_free(&eds->head);
    return NULL;
}

const struct tc_xds_resource_type tc_eds_type = {
    .type_url = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
    .short_name = "ClusterLoadAssignment",
    .any_thread = true,
    .all_resources_required_in_sotw = false,
    .decode = eds_decode,
    .peek_name = tc_read_peek_name,
    .equal = eds_equal,
    .free = eds_free,
};
