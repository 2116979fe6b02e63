/* The LB policy of a Cluster as a loadBalancingConfig list in JSON (A52), which the LB registry parses as it parses a
 * service config's.
 *
 *   load_balancing_policy   the first policy of its list that is known; converters[] has a row for each message.
 *                           Unknown policies before it are skipped, an invalid one is an error.
 *   lb_policy               ROUND_ROBIN, LEAST_REQUEST, RING_HASH, MAGLEV, or an aggregate's CLUSTER_PROVIDED, when
 *                           load_balancing_policy is absent
 *
 * tc_decode_cluster_lb drops the result if there were errors. The LB policies themselves check the finished list
 * (registries.lb_check), so that a config which a policy would refuse is NACKed here. lb_depth limits the nesting.
 *
 * Here an entry is the JSON {"name": config}, and a list is [entry]. A function that returns an entry or a list returns
 * a new reference, or NULL. A function that takes an entry takes over its reference. Runs on any thread. */
#include "xds/resource/lb_config.h"
#include "xds/resource/registry.h"

#include <float.h>
#include <math.h>

#include "pb/envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3/client_side_weighted_round_robin.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/least_request/v3/least_request.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/maglev/v3/maglev.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/pick_first/v3/pick_first.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/random_subsetting/v3/random_subsetting.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.pb-c.h"
#include "pb/xds/type/v3/typed_struct.pb-c.h"
#include "proto/wire.h"
#include "ring/maglev.h"
#include "xds/resource/route_config_decoder.h"

typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Config__Cluster__V3__LoadBalancingPolicy LbPolicy;

#define LB(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__LB_POLICY__##x
#define COMMON_LB(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__COMMON_LB_CONFIG__LOCALITY_CONFIG_SPECIFIER_##x
enum {
    MAX_NAMES = 8, /* of unsupported policies in an error */
};

static json_t *decode_policies(struct tc_decoder *dec, const LbPolicy *m, size_t depth);

/* Returns an entry. Takes over `config`; NULL stays NULL. */
static json_t *policy_named(const char *name, json_t *config)
{
    return config ? json_pack("{s:o}", name, config) : NULL;
}

/* Returns the list of one entry. NULL stays NULL. */
static json_t *policy_list(json_t *entry)
{
    return entry ? json_pack("[o]", entry) : NULL;
}

static bool lb_known(struct tc_decoder *dec, const char *name)
{
    static const char *const hashing[] = {"ring_hash_experimental", "ring_hash", "maglev_experimental", "maglev"};
    for (size_t i = 0; dec->reg->ring_hash_off && i < TC_ARRAY_LEN(hashing); i++)
        if (strcmp(name, hashing[i]) == 0)
            return false;
    return tc_xds_registries_lb_known(dec->reg, name);
}

/* Returns the value, or `unset` if `v` is NULL. Adds an error if the value is out of range. */
static uint64_t ring_size(struct tc_decoder *dec, const Google__Protobuf__UInt64Value *v, const char *field,
                          uint64_t unset)
{
    if (v && (v->value == 0 || v->value > TC_XDS_RING_SIZE_MAX))
        tc_validation_add_at(dec->errors, field, "must be in the range of 1 to %u", TC_XDS_RING_SIZE_MAX);
    return v ? v->value : unset;
}

/* A48, with two settings of Envoy: full scan, and a bias for weighted endpoints. The bias is a RuntimeDouble, of which
 * only the default_value counts. `choices` and `bias` may be NULL. Returns an entry, or NULL with an error. */
static json_t *least_request(struct tc_decoder *dec, const Google__Protobuf__UInt32Value *choices,
                             const Envoy__Config__Core__V3__RuntimeDouble *bias, bool full_scan)
{
    if (choices && choices->value < 2) {
        tc_validation_add_at(dec->errors, ".choice_count", "value must be greater than or equal to 2");
        return NULL;
    }
    json_t *config = json_pack("{s:I}", "choiceCount", (json_int_t)(choices ? choices->value : 2));
    if (full_scan)
        json_object_set_new(config, "selectionMethod", json_string("FULL_SCAN"));
    if (bias) /* a negative bias, or NaN, means 1, as in Envoy */
        json_object_set_new(config, "activeRequestBias",
                            json_real(bias->default_value >= 0 ? fmin(bias->default_value, DBL_MAX) : 1));
    return policy_named("least_request_experimental", config);
}

/* Returns an entry, or NULL with errors. `min` and `max` may be NULL: the defaults. */
static json_t *ring_hash(struct tc_decoder *dec, const Google__Protobuf__UInt64Value *min,
                         const Google__Protobuf__UInt64Value *max)
{
    size_t errors = dec->errors->count;
    uint64_t max_size = ring_size(dec, max, ".maximum_ring_size", TC_XDS_RING_SIZE_MAX);
    uint64_t min_size = ring_size(dec, min, ".minimum_ring_size", TC_XDS_RING_SIZE_MIN_DEFAULT);
    if (min_size > max_size)
        tc_validation_add_at(dec->errors, ".minimum_ring_size", "cannot be greater than maximum_ring_size");
    if (dec->errors->count != errors)
        return NULL;
    return policy_named("ring_hash_experimental", json_pack("{s:I,s:I}", "minRingSize", (json_int_t)min_size,
                                                            "maxRingSize", (json_int_t)max_size));
}

/* Returns an entry, or NULL with an error. `size` may be NULL: the default. */
static json_t *maglev(struct tc_decoder *dec, const Google__Protobuf__UInt64Value *size, bool locality_weighted)
{
    if (size && !tc_maglev_size_valid(size->value)) {
        tc_validation_add_at(dec->errors, ".table_size", TC_MAGLEV_SIZE_REFUSED);
        return NULL;
    }
    json_t *config = json_pack("{s:I}", "tableSize", (json_int_t)(size ? size->value : TC_MAGLEV_SIZE_DEFAULT));
    if (locality_weighted)
        json_object_set_new(config, "localityWeighted", json_true());
    return policy_named("maglev_experimental", config);
}

/* Adds to the config in `entry` the settings that Envoy's policies of consistent hashing have in common. `entry` and
 * `factor` may be NULL. Returns `entry`; or drops it and returns NULL with an error. */
static json_t *hashing(struct tc_decoder *dec, json_t *entry, bool use_hostname,
                       const Google__Protobuf__UInt32Value *factor)
{
    if (factor && factor->value < 100) {
        tc_validation_add_at(dec->errors, ".hash_balance_factor", "value must be greater than or equal to 100");
        json_decref(entry);
        return NULL;
    }
    json_t *config = entry ? json_object_iter_value(json_object_iter(entry)) : NULL;
    if (config && use_hostname)
        json_object_set_new(config, "useHostnameForHashing", json_true());
    if (config && factor)
        json_object_set_new(config, "hashBalanceFactor", json_integer(factor->value));
    return entry;
}

typedef Envoy__Extensions__LoadBalancingPolicies__Common__V3__ConsistentHashingLbConfig ExtensionHashing;
typedef Envoy__Config__Cluster__V3__Cluster__CommonLbConfig__ConsistentHashingLbConfig ClusterHashing;

/* Adds the settings of `c` to the entry (see `hashing`). Stores the hash policies of `c` in `dec`: for the cluster's
 * RPCs they replace the route's. */
static json_t *hashing_of_extension(struct tc_decoder *dec, json_t *entry, const ExtensionHashing *c)
{
    tc_validation_push(dec->errors, ".consistent_hashing_lb_config");
    if (c->n_hash_policy)
        dec->n_hash_policies = tc_decode_hash_policies(dec, c->n_hash_policy, c->hash_policy, &dec->hash_policies);
    entry = hashing(dec, entry, c->use_hostname_for_hashing, c->hash_balance_factor);
    tc_validation_pop(dec->errors);
    return entry;
}

/* The converters of extension messages (A52). Each returns an entry; NULL without errors if the message is to be
 * skipped; NULL or an entry, with errors, if the message is invalid. `depth` is the number of policies around the
 * message. */

static json_t *from_ring_hash(struct tc_decoder *dec, struct tc_slice bytes, size_t depth)
{
    typedef Envoy__Extensions__LoadBalancingPolicies__RingHash__V3__RingHash RingHash;
    (void)depth;
    const RingHash *m = TC_DECODE(
        dec, &envoy__extensions__load_balancing_policies__ring_hash__v3__ring_hash__descriptor, RingHash, bytes);
    if (!m)
        return NULL;
    size_t errors = dec->errors->count;
    if (m->hash_function !=
            ENVOY__EXTENSIONS__LOAD_BALANCING_POLICIES__RING_HASH__V3__RING_HASH__HASH_FUNCTION__XX_HASH &&
        m->hash_function !=
            ENVOY__EXTENSIONS__LOAD_BALANCING_POLICIES__RING_HASH__V3__RING_HASH__HASH_FUNCTION__DEFAULT_HASH)
        tc_validation_add_at(dec->errors, ".hash_function", "must be XX_HASH");
    json_t *entry = ring_hash(dec, m->minimum_ring_size, m->maximum_ring_size);
    if (m->consistent_hashing_lb_config)
        entry = hashing_of_extension(dec, entry, m->consistent_hashing_lb_config);
    else /* the deprecated fields */
        entry = hashing(dec, entry, m->use_hostname_for_hashing, m->hash_balance_factor);
    if (dec->errors->count == errors)
        return entry;
    json_decref(entry);
    return NULL;
}

static json_t *from_maglev(struct tc_decoder *dec, struct tc_slice bytes, size_t depth)
{
    typedef Envoy__Extensions__LoadBalancingPolicies__Maglev__V3__Maglev Maglev;
    (void)depth;
    const Maglev *m =
        TC_DECODE(dec, &envoy__extensions__load_balancing_policies__maglev__v3__maglev__descriptor, Maglev, bytes);
    if (!m)
        return NULL;
    json_t *entry = maglev(dec, m->table_size, m->locality_weighted_lb_config != NULL);
    return m->consistent_hashing_lb_config ? hashing_of_extension(dec, entry, m->consistent_hashing_lb_config) : entry;
}

static json_t *from_round_robin(struct tc_decoder *dec, struct tc_slice bytes, size_t depth)
{
    (void)dec;
    (void)bytes;
    (void)depth;
    return policy_named("round_robin", json_object());
}

static json_t *from_least_request(struct tc_decoder *dec, struct tc_slice bytes, size_t depth)
{
    typedef Envoy__Extensions__LoadBalancingPolicies__LeastRequest__V3__LeastRequest LeastRequest;
    (void)depth;
    const LeastRequest *m =
        TC_DECODE(dec, &envoy__extensions__load_balancing_policies__least_request__v3__least_request__descriptor,
                  LeastRequest, bytes);
    if (!m)
        return NULL;
    bool full_scan =
        m->selection_method ==
        ENVOY__EXTENSIONS__LOAD_BALANCING_POLICIES__LEAST_REQUEST__V3__LEAST_REQUEST__SELECTION_METHOD__FULL_SCAN;
    if (full_scan ||
        m->selection_method ==
            ENVOY__EXTENSIONS__LOAD_BALANCING_POLICIES__LEAST_REQUEST__V3__LEAST_REQUEST__SELECTION_METHOD__N_CHOICES)
        return least_request(dec, m->choice_count, m->active_request_bias, full_scan);
    tc_validation_add_at(dec->errors, ".selection_method", "must be N_CHOICES or FULL_SCAN");
    return NULL;
}

static json_t *from_pick_first(struct tc_decoder *dec, struct tc_slice bytes, size_t depth)
{
    typedef Envoy__Extensions__LoadBalancingPolicies__PickFirst__V3__PickFirst PickFirst;
    (void)depth;
    const PickFirst *m = TC_DECODE(
        dec, &envoy__extensions__load_balancing_policies__pick_first__v3__pick_first__descriptor, PickFirst, bytes);
    return m ? policy_named("pick_first", json_pack("{s:b}", "shuffleAddressList", m->shuffle_address_list)) : NULL;
}

/* Adds a duration to the config as JSON text, "1.500s", rounded up to milliseconds. A duration that is NULL is not
 * added: the policy has a default. An invalid duration adds an error at `field`. */
static void put_duration(struct tc_decoder *dec, json_t *config, const char *key, const char *field,
                         const Google__Protobuf__Duration *d)
{
    uint64_t ms;
    if (d && tc_decode_duration_ms(dec, field, d, &ms))
        json_object_set_new(config, key,
                            json_sprintf("%llu.%03us", (unsigned long long)(ms / 1000), (unsigned)(ms % 1000)));
}

/* A58, A114. */
static json_t *from_client_side_wrr(struct tc_decoder *dec, struct tc_slice bytes, size_t depth)
{
    typedef Envoy__Extensions__LoadBalancingPolicies__ClientSideWeightedRoundRobin__V3__ClientSideWeightedRoundRobin
        ClientSideWrr;
    (void)depth;
    const ClientSideWrr *m = TC_DECODE(
        dec,
        &envoy__extensions__load_balancing_policies__client_side_weighted_round_robin__v3__client_side_weighted_round_robin__descriptor,
        ClientSideWrr, bytes);
    if (!m)
        return NULL;
    size_t errors = dec->errors->count;
    json_t *config = json_object(), *names = json_array();
    if (m->enable_oob_load_report)
        json_object_set_new(config, "enableOobLoadReport", json_boolean(m->enable_oob_load_report->value));
    put_duration(dec, config, "oobReportingPeriod", ".oob_reporting_period", m->oob_reporting_period);
    put_duration(dec, config, "blackoutPeriod", ".blackout_period", m->blackout_period);
    put_duration(dec, config, "weightExpirationPeriod", ".weight_expiration_period", m->weight_expiration_period);
    put_duration(dec, config, "weightUpdatePeriod", ".weight_update_period", m->weight_update_period);
    const Google__Protobuf__FloatValue *penalty = m->error_utilization_penalty;
    if (penalty && isfinite(penalty->value) && penalty->value >= 0)
        json_object_set_new(config, "errorUtilizationPenalty", json_real((double)penalty->value));
    else if (penalty)
        tc_validation_add_at(dec->errors, ".error_utilization_penalty.value", "must be non-negative");
    for (size_t i = 0; i < m->n_metric_names_for_computing_utilization; i++)
        json_array_append_new(names, json_string(m->metric_names_for_computing_utilization[i]));
    json_object_set_new(config, "metricNamesForComputingUtilization", names);
    if (dec->errors->count == errors)
        return policy_named("weighted_round_robin", config);
    json_decref(config);
    return NULL;
}

static json_t *from_wrr_locality(struct tc_decoder *dec, struct tc_slice bytes, size_t depth)
{
    typedef Envoy__Extensions__LoadBalancingPolicies__WrrLocality__V3__WrrLocality WrrLocality;
    const WrrLocality *m =
        TC_DECODE(dec, &envoy__extensions__load_balancing_policies__wrr_locality__v3__wrr_locality__descriptor,
                  WrrLocality, bytes);
    if (!m)
        return NULL;
    tc_validation_push(dec->errors, ".endpoint_picking_policy");
    json_t *child = decode_policies(dec, m->endpoint_picking_policy, depth + 1);
    tc_validation_pop(dec->errors);
    return child ? policy_named("xds_wrr_locality_experimental", json_pack("{s:o}", "childPolicy", child)) : NULL;
}

/* A68. */
static json_t *from_random_subsetting(struct tc_decoder *dec, struct tc_slice bytes, size_t depth)
{
    typedef Envoy__Extensions__LoadBalancingPolicies__RandomSubsetting__V3__RandomSubsetting RandomSubsetting;
    const RandomSubsetting *m = TC_DECODE(
        dec, &envoy__extensions__load_balancing_policies__random_subsetting__v3__random_subsetting__descriptor,
        RandomSubsetting, bytes);
    if (!m)
        return NULL;
    uint32_t size = m->subset_size ? m->subset_size->value : 0;
    if (size == 0)
        tc_validation_add_at(dec->errors, ".subset_size", "must be greater than 0");
    tc_validation_push(dec->errors, ".child_policy");
    json_t *child = decode_policies(dec, m->child_policy, depth + 1);
    tc_validation_pop(dec->errors);
    return policy_named("random_subsetting_experimental",
                        child ? json_pack("{s:I,s:o}", "subsetSize", (json_int_t)size, "childPolicy", child) : NULL);
}

static json_t *from_struct(struct tc_decoder *dec, struct tc_slice bytes, size_t depth)
{
    (void)depth;
    const Xds__Type__V3__TypedStruct *m =
        TC_DECODE(dec, &xds__type__v3__typed_struct__descriptor, Xds__Type__V3__TypedStruct, bytes);
    const char *name = m ? tc_decode_type_name(dec, m->type_url) : NULL;
    if (!name || !lb_known(dec, name))
        return NULL;
    tc_validation_push(dec->errors, ".value");
    json_t *config = tc_decode_struct(dec, m->value);
    tc_validation_pop(dec->errors);
    return policy_named(name, config);
}

static const struct {
    const char *message;
    const char *policy; /* the message is skipped unless this LB policy is known; NULL: `convert` checks */
    json_t *(*convert)(struct tc_decoder *dec, struct tc_slice bytes, size_t depth);
} converters[] = {
    {"envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash", "ring_hash_experimental", from_ring_hash},
    {"envoy.extensions.load_balancing_policies.maglev.v3.Maglev", "maglev_experimental", from_maglev},
    {"envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin", "round_robin", from_round_robin},
    {"envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest", "least_request_experimental",
     from_least_request},
    {"envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst", "pick_first", from_pick_first},
    {"envoy.extensions.load_balancing_policies.wrr_locality.v3.WrrLocality", "xds_wrr_locality_experimental",
     from_wrr_locality},
    {"envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin",
     "weighted_round_robin", from_client_side_wrr},
    {"envoy.extensions.load_balancing_policies.random_subsetting.v3.RandomSubsetting", "random_subsetting_experimental",
     from_random_subsetting},
    {"xds.type.v3.TypedStruct", NULL, from_struct},
    {"udpa.type.v1.TypedStruct", NULL, from_struct},
};

/* Returns what the converter of the message returns; NULL without errors if no converter fits. */
static json_t *policy_convert(struct tc_decoder *dec, const struct tc_any *any, size_t depth)
{
    for (size_t i = 0; i < TC_ARRAY_LEN(converters); i++)
        if (tc_slice_eq_str(any->name, converters[i].message) &&
            (!converters[i].policy || lb_known(dec, converters[i].policy)))
            return converters[i].convert(dec, any->bytes, depth);
    return NULL;
}

/* Returns what policy_convert returns for the config of a policy. Returns NULL with an error if the policy has no
 * config, so NULL without errors means that typed_extension_config and typed_config are there. */
static json_t *decode_policy(struct tc_decoder *dec, const Envoy__Config__Cluster__V3__LoadBalancingPolicy__Policy *m,
                             size_t depth)
{
    json_t *entry = NULL;
    struct tc_any any;
    tc_validation_push(dec->errors, ".typed_extension_config");
    if (!m->typed_extension_config) {
        tc_validation_add(dec->errors, "field not present");
    } else {
        tc_validation_push(dec->errors, ".typed_config");
        if (tc_decode_any(dec, m->typed_extension_config->typed_config, &any))
            entry = policy_convert(dec, &any, depth);
        tc_validation_pop(dec->errors);
    }
    tc_validation_pop(dec->errors);
    return entry;
}

/* Appends the message name of the unsupported policy i, or the name inside its TypedStruct. Appends "..." for the
 * policy of index MAX_NAMES, and nothing for those after it. */
static void names_append(struct tc_decoder *dec, struct tc_buf *list, size_t i, const Google__Protobuf__Any *any)
{
    const char *slash = strrchr(any->type_url, '/');
    struct tc_slice name = tc_slice_str(slash ? slash + 1 : any->type_url);
    struct tc_slice inner = {0};
    if (tc_decode_is_typed_struct(name))
        inner = tc_wire_find(tc_proto_bytes(any->value), 1); /* type_url; from_struct unpacked it, so it is UTF-8 */
    for (size_t k = inner.len; k > 0; k--)
        if (inner.data[k - 1] == '/') {
            name = tc_slice_of(inner.data + k, inner.len - k);
            break;
        }
    if (i <= MAX_NAMES)
        tc_buf_printf(list, "%s%s", i ? ", " : "", i == MAX_NAMES ? "..." : tc_decode_clip(dec, name));
}

/* Returns a list with the first policy that is supported as its one entry, or NULL. NULL comes with errors; a list may
 * come with errors, too. `m` may be NULL, which is an error. `depth` is the number of policies around the list. */
static json_t *decode_policies(struct tc_decoder *dec, const LbPolicy *m, size_t depth)
{
    size_t errors = dec->errors->count;
    json_t *entry = NULL;
    struct tc_buf asked = {0};
    if (depth >= dec->limits.lb_depth) {
        tc_validation_add(dec->errors, "exceeded max recursion depth of %zu", dec->limits.lb_depth);
        return NULL;
    }
    for (size_t i = 0; m && i < m->n_policies && !entry && dec->errors->count == errors; i++) {
        tc_validation_push(dec->errors, ".policies[%zu]", i);
        entry = decode_policy(dec, m->policies[i], depth);
        tc_validation_pop(dec->errors);
        if (!entry && dec->errors->count == errors)
            names_append(dec, &asked, i, m->policies[i]->typed_extension_config->typed_config);
    }
    if (!entry && dec->errors->count == errors)
        tc_validation_add(dec->errors, "no supported load balancing policy config found%s%s", asked.len ? ": " : "",
                          tc_buf_cstr(&asked));
    tc_buf_fini(&asked);
    return policy_list(entry);
}

/* Returns a list with wrr_locality, whose child policy is `entry`. NULL stays NULL. */
static json_t *in_localities(json_t *entry)
{
    json_t *config = entry ? json_pack("{s:[o]}", "childPolicy", entry) : NULL;
    return policy_list(policy_named("xds_wrr_locality_experimental", config));
}

static json_t *least_request_of_cluster(struct tc_decoder *dec, const Cluster *m)
{
    const Envoy__Config__Cluster__V3__Cluster__LeastRequestLbConfig *c =
        m->lb_config_case == ENVOY__CONFIG__CLUSTER__V3__CLUSTER__LB_CONFIG_LEAST_REQUEST_LB_CONFIG
            ? m->least_request_lb_config
            : NULL;
    tc_validation_push(dec->errors, ".least_request_lb_config");
    json_t *entry = least_request(dec, c ? c->choice_count : NULL, c ? c->active_request_bias : NULL, false);
    tc_validation_pop(dec->errors);
    return in_localities(entry);
}

/* Returns the list of `entry` with the cluster's settings of consistent hashing. NULL stays NULL. Returns NULL with an
 * error if the settings are invalid. */
static json_t *hashing_of_cluster(struct tc_decoder *dec, const Cluster *m, json_t *entry)
{
    const ClusterHashing *c = m->common_lb_config ? m->common_lb_config->consistent_hashing_lb_config : NULL;
    if (!c)
        return policy_list(entry);
    tc_validation_push(dec->errors, ".common_lb_config.consistent_hashing_lb_config");
    entry = hashing(dec, entry, c->use_hostname_for_hashing, c->hash_balance_factor);
    tc_validation_pop(dec->errors);
    return policy_list(entry);
}

static json_t *ring_hash_of_cluster(struct tc_decoder *dec, const Cluster *m)
{
    if (m->lb_config_case != ENVOY__CONFIG__CLUSTER__V3__CLUSTER__LB_CONFIG_RING_HASH_LB_CONFIG)
        return hashing_of_cluster(dec, m, ring_hash(dec, NULL, NULL));
    const Envoy__Config__Cluster__V3__Cluster__RingHashLbConfig *c = m->ring_hash_lb_config;
    tc_validation_push(dec->errors, ".ring_hash_lb_config");
    if (c->hash_function != ENVOY__CONFIG__CLUSTER__V3__CLUSTER__RING_HASH_LB_CONFIG__HASH_FUNCTION__XX_HASH)
        tc_validation_add_at(dec->errors, ".hash_function", "must be XX_HASH");
    json_t *entry = ring_hash(dec, c->minimum_ring_size, c->maximum_ring_size);
    tc_validation_pop(dec->errors);
    return hashing_of_cluster(dec, m, entry);
}

static json_t *maglev_of_cluster(struct tc_decoder *dec, const Cluster *m)
{
    bool sized = m->lb_config_case == ENVOY__CONFIG__CLUSTER__V3__CLUSTER__LB_CONFIG_MAGLEV_LB_CONFIG;
    bool weighted = m->common_lb_config &&
                    m->common_lb_config->locality_config_specifier_case == COMMON_LB(LOCALITY_WEIGHTED_LB_CONFIG);
    tc_validation_push(dec->errors, ".maglev_lb_config");
    json_t *entry = maglev(dec, sized ? m->maglev_lb_config->table_size : NULL, weighted);
    tc_validation_pop(dec->errors);
    return hashing_of_cluster(dec, m, entry);
}

/* Returns a list, or NULL with an error; a list may come with errors, too. */
static json_t *decode_lb_policy(struct tc_decoder *dec, const Cluster *m, bool aggregate)
{
    if (m->lb_policy == LB(ROUND_ROBIN) || (m->lb_policy == LB(CLUSTER_PROVIDED) && aggregate))
        return in_localities(policy_named("round_robin", json_object()));
    if (m->lb_policy == LB(LEAST_REQUEST))
        return least_request_of_cluster(dec, m);
    if (m->lb_policy == LB(RING_HASH) && !dec->reg->ring_hash_off)
        return ring_hash_of_cluster(dec, m);
    if (m->lb_policy == LB(MAGLEV) && !dec->reg->ring_hash_off)
        return maglev_of_cluster(dec, m);
    tc_validation_add_at(
        dec->errors, ".lb_policy", "unsupported value %s",
        tc_decode_enum_name(dec, &envoy__config__cluster__v3__cluster__lb_policy__descriptor, (int)m->lb_policy));
    return NULL;
}

json_t *tc_decode_cluster_lb(struct tc_decoder *dec, const Cluster *m, bool aggregate)
{
    size_t errors = dec->errors->count;
    json_t *list;
    tc_validation_push(dec->errors, "%s", m->load_balancing_policy ? ".load_balancing_policy" : "");
    list = m->load_balancing_policy ? decode_policies(dec, m->load_balancing_policy, 0)
                                    : decode_lb_policy(dec, m, aggregate);
    if (list && dec->errors->count == errors && dec->reg->lb_check)
        dec->reg->lb_check(dec->reg->arg, list, dec->errors);
    tc_validation_pop(dec->errors);
    if (dec->errors->count == errors)
        return list;
    json_decref(list);
    return NULL;
}
