#include "resource/lb_config.h"

#include "pb/envoy/extensions/load_balancing_policies/pick_first/v3/pick_first.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.pb-c.h"
#include "pb/udpa/type/v1/typed_struct.pb-c.h"
#include "pb/xds/type/v3/typed_struct.pb-c.h"
#include "proto/wire.h"

typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Config__Cluster__V3__LoadBalancingPolicy LbPolicy;

#define LB(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__LB_POLICY__##x
#define STRUCT_DEPTH 100u
#define MAX_NAMES 8 /* in a text */

static json_t *read_policies(struct tc_reading *p, const LbPolicy *m, size_t depth);

/* {"name": config}; takes over config, and NULL stays NULL. */
static json_t *named(const char *name, json_t *config)
{
    return config ? json_pack("{s:o}", name, config) : NULL;
}

static json_t *list_of(json_t *entry)
{
    return entry ? json_pack("[o]", entry) : NULL;
}

static bool lb_known(struct tc_reading *p, const char *name)
{
    return tc_xds_registries_lb_known(p->reg, name);
}

static uint64_t ring_size(struct tc_reading *p, const Google__Protobuf__UInt64Value *v, const char *field,
                          uint64_t unset)
{
    if (v && (v->value == 0 || v->value > TC_XDS_RING_SIZE_MAX))
        tc_faults_add_at(p->faults, field, "must be in the range of 1 to %u", TC_XDS_RING_SIZE_MAX);
    return v ? v->value : unset;
}

static json_t *ring_hash(struct tc_reading *p, const Google__Protobuf__UInt64Value *min,
                         const Google__Protobuf__UInt64Value *max)
{
    size_t faults = p->faults->count;
    uint64_t max_size = ring_size(p, max, ".maximum_ring_size", TC_XDS_RING_SIZE_MAX);
    uint64_t min_size = ring_size(p, min, ".minimum_ring_size", TC_XDS_RING_SIZE_MIN_DEFAULT);
    if (min_size > max_size)
        tc_faults_add_at(p->faults, ".minimum_ring_size", "cannot be greater than maximum_ring_size");
    if (p->faults->count != faults)
        return NULL;
    return named("ring_hash_experimental",
                 json_pack("{s:I,s:I}", "minRingSize", (json_int_t)min_size, "maxRingSize", (json_int_t)max_size));
}

/* The converters of extension messages (A52). Each gives an entry, or NULL: with faults, or without when it is to be
 * skipped. */

static json_t *from_ring_hash(struct tc_reading *p, struct tc_slice bytes, size_t depth)
{
    typedef Envoy__Extensions__LoadBalancingPolicies__RingHash__V3__RingHash RingHash;
    (void)depth;
    if (p->reg->ring_hash_off)
        return NULL;
    const RingHash *m =
        TC_READ(p, &envoy__extensions__load_balancing_policies__ring_hash__v3__ring_hash__descriptor, RingHash, bytes);
    if (!m)
        return NULL;
    size_t faults = p->faults->count;
    if (m->hash_function !=
            ENVOY__EXTENSIONS__LOAD_BALANCING_POLICIES__RING_HASH__V3__RING_HASH__HASH_FUNCTION__XX_HASH &&
        m->hash_function !=
            ENVOY__EXTENSIONS__LOAD_BALANCING_POLICIES__RING_HASH__V3__RING_HASH__HASH_FUNCTION__DEFAULT_HASH)
        tc_faults_add_at(p->faults, ".hash_function", "must be XX_HASH");
    json_t *entry = ring_hash(p, m->minimum_ring_size, m->maximum_ring_size);
    if (p->faults->count == faults)
        return entry;
    json_decref(entry);
    return NULL;
}

static json_t *from_round_robin(struct tc_reading *p, struct tc_slice bytes, size_t depth)
{
    (void)p;
    (void)bytes;
    (void)depth;
    return named("round_robin", json_object());
}

static json_t *from_pick_first(struct tc_reading *p, struct tc_slice bytes, size_t depth)
{
    typedef Envoy__Extensions__LoadBalancingPolicies__PickFirst__V3__PickFirst PickFirst;
    (void)depth;
    const PickFirst *m = TC_READ(p, &envoy__extensions__load_balancing_policies__pick_first__v3__pick_first__descriptor,
                                 PickFirst, bytes);
    return m ? named("pick_first", json_pack("{s:b}", "shuffleAddressList", m->shuffle_address_list)) : NULL;
}

static json_t *from_wrr_locality(struct tc_reading *p, struct tc_slice bytes, size_t depth)
{
    typedef Envoy__Extensions__LoadBalancingPolicies__WrrLocality__V3__WrrLocality WrrLocality;
    const WrrLocality *m = TC_READ(
        p, &envoy__extensions__load_balancing_policies__wrr_locality__v3__wrr_locality__descriptor, WrrLocality, bytes);
    if (!m)
        return NULL;
    tc_faults_push(p->faults, ".endpoint_picking_policy");
    json_t *child = read_policies(p, m->endpoint_picking_policy, depth + 1);
    tc_faults_pop(p->faults);
    return child ? named("xds_wrr_locality_experimental", json_pack("{s:o}", "childPolicy", child)) : NULL;
}

/* A policy by its own name with its config as a Struct (A52). */
static json_t *from_struct(struct tc_reading *p, const char *type_url, const Google__Protobuf__Struct *value)
{
    const char *slash = strrchr(type_url, '/');
    if (!slash || !slash[1]) {
        tc_faults_add_at(p->faults, ".type_url", "invalid value \"%s\"", tc_read_clip(p, tc_slice_str(type_url)));
        return NULL;
    }
    if (!lb_known(p, slash + 1))
        return NULL;
    tc_faults_push(p->faults, ".value");
    json_t *config = tc_read_struct(p, value, STRUCT_DEPTH);
    tc_faults_pop(p->faults);
    return named(slash + 1, config);
}

static json_t *from_xds_struct(struct tc_reading *p, struct tc_slice bytes, size_t depth)
{
    (void)depth;
    const Xds__Type__V3__TypedStruct *m =
        TC_READ(p, &xds__type__v3__typed_struct__descriptor, Xds__Type__V3__TypedStruct, bytes);
    return m ? from_struct(p, m->type_url, m->value) : NULL;
}

static json_t *from_udpa_struct(struct tc_reading *p, struct tc_slice bytes, size_t depth)
{
    (void)depth;
    const Udpa__Type__V1__TypedStruct *m =
        TC_READ(p, &udpa__type__v1__typed_struct__descriptor, Udpa__Type__V1__TypedStruct, bytes);
    return m ? from_struct(p, m->type_url, m->value) : NULL;
}

static const struct {
    const char *message;
    const char *policy; /* that must be known; NULL: the message says */
    json_t *(*convert)(struct tc_reading *p, struct tc_slice bytes, size_t depth);
} converters[] = {
    {"envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash", "ring_hash_experimental", from_ring_hash},
    {"envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin", "round_robin", from_round_robin},
    {"envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst", "pick_first", from_pick_first},
    {"envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality", "xds_wrr_locality_experimental",
     from_wrr_locality},
    {"xds.type.v3.TypedStruct", NULL, from_xds_struct},
    {"udpa.type.v1.TypedStruct", NULL, from_udpa_struct},
};

static json_t *convert(struct tc_reading *p, const struct tc_any *any, size_t depth)
{
    for (size_t i = 0; i < TC_ARRAY_LEN(converters); i++)
        if (tc_slice_eq_str(any->name, converters[i].message) &&
            (!converters[i].policy || lb_known(p, converters[i].policy)))
            return converters[i].convert(p, any->bytes, depth);
    return NULL;
}

static json_t *read_policy(struct tc_reading *p, const Envoy__Config__Cluster__V3__LoadBalancingPolicy__Policy *m,
                           size_t depth)
{
    json_t *entry = NULL;
    struct tc_any any;
    tc_faults_push(p->faults, ".typed_extension_config");
    if (!m->typed_extension_config) {
        tc_faults_add(p->faults, "field not present");
    } else {
        tc_faults_push(p->faults, ".typed_config");
        if (tc_read_any(p, m->typed_extension_config->typed_config, &any))
            entry = convert(p, &any, depth);
        tc_faults_pop(p->faults);
    }
    tc_faults_pop(p->faults);
    return entry;
}

/* What is asked for and not supported: the message, or the name that a TypedStruct has in it. */
static void add_name(struct tc_reading *p, struct tc_buf *list, size_t i, const Google__Protobuf__Any *any)
{
    const char *slash = strrchr(any->type_url, '/');
    struct tc_slice name = tc_slice_str(slash ? slash + 1 : any->type_url);
    struct tc_slice inner = {0};
    if (tc_slice_eq_str(name, "xds.type.v3.TypedStruct") || tc_slice_eq_str(name, "udpa.type.v1.TypedStruct"))
        inner = tc_wire_find(tc_proto_bytes(any->value), 1); /* its type_url; it was read before, so it is text */
    for (size_t k = inner.len; k > 0; k--)
        if (inner.data[k - 1] == '/') {
            name = tc_slice_of(inner.data + k, inner.len - k);
            break;
        }
    if (i <= MAX_NAMES)
        tc_buf_printf(list, "%s%s", i ? ", " : "", i == MAX_NAMES ? "..." : tc_read_clip(p, name));
}

/* The first policy that is supported, as a list of one. */
static json_t *read_policies(struct tc_reading *p, const LbPolicy *m, size_t depth)
{
    size_t faults = p->faults->count;
    json_t *entry = NULL;
    struct tc_buf asked = {0};
    if (depth >= p->limits.lb_depth) {
        tc_faults_add(p->faults, "exceeded max recursion depth of %zu", p->limits.lb_depth);
        return NULL;
    }
    for (size_t i = 0; m && i < m->n_policies && !entry && p->faults->count == faults; i++) {
        tc_faults_push(p->faults, ".policies[%zu]", i);
        entry = read_policy(p, m->policies[i], depth);
        tc_faults_pop(p->faults);
        if (!entry && p->faults->count == faults)
            add_name(p, &asked, i, m->policies[i]->typed_extension_config->typed_config);
    }
    if (!entry && p->faults->count == faults)
        tc_faults_add(p->faults, "no supported load balancing policy config found%s%s", asked.len ? ": " : "",
                      tc_buf_cstr(&asked));
    tc_buf_fini(&asked);
    return list_of(entry);
}

static json_t *round_robin_of_localities(void)
{
    return list_of(named("xds_wrr_locality_experimental", json_pack("{s:[{s:{}}]}", "childPolicy", "round_robin")));
}

static json_t *ring_hash_of_cluster(struct tc_reading *p, const Cluster *m)
{
    if (m->lb_config_case != ENVOY__CONFIG__CLUSTER__V3__CLUSTER__LB_CONFIG_RING_HASH_LB_CONFIG)
        return list_of(ring_hash(p, NULL, NULL));
    const Envoy__Config__Cluster__V3__Cluster__RingHashLbConfig *c = m->ring_hash_lb_config;
    tc_faults_push(p->faults, ".ring_hash_lb_config");
    if (c->hash_function != ENVOY__CONFIG__CLUSTER__V3__CLUSTER__RING_HASH_LB_CONFIG__HASH_FUNCTION__XX_HASH)
        tc_faults_add_at(p->faults, ".hash_function", "must be XX_HASH");
    json_t *entry = ring_hash(p, c->minimum_ring_size, c->maximum_ring_size);
    tc_faults_pop(p->faults);
    return list_of(entry);
}

static json_t *read_lb_policy(struct tc_reading *p, const Cluster *m, bool aggregate)
{
    if (m->lb_policy == LB(ROUND_ROBIN) || (m->lb_policy == LB(CLUSTER_PROVIDED) && aggregate))
        return round_robin_of_localities();
    if (m->lb_policy == LB(RING_HASH) && !p->reg->ring_hash_off)
        return ring_hash_of_cluster(p, m);
    tc_faults_add_at(
        p->faults, ".lb_policy", "unsupported value %s",
        tc_read_enum_name(p, &envoy__config__cluster__v3__cluster__lb_policy__descriptor, (int)m->lb_policy));
    return NULL;
}

json_t *tc_read_cluster_lb(struct tc_reading *p, const Cluster *m, bool aggregate)
{
    size_t faults = p->faults->count;
    json_t *list;
    tc_faults_push(p->faults, "%s", m->load_balancing_policy ? ".load_balancing_policy" : "");
    list = m->load_balancing_policy ? read_policies(p, m->load_balancing_policy, 0) : read_lb_policy(p, m, aggregate);
    if (list && p->faults->count == faults && p->reg->lb_check)
        p->reg->lb_check(p->reg->arg, list, p->faults);
    tc_faults_pop(p->faults);
    if (p->faults->count == faults)
        return list;
    json_decref(list);
    return NULL;
}
