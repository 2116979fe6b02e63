/* Sorted by full name, as tc_proto_type searches it by halves; lint's proto_fields holds it against proto/. */
#include "proto/types.h"

#include <stdlib.h>

#include "pb/envoy/admin/v3/config_dump_shared.pb-c.h"
#include "pb/envoy/config/cluster/v3/circuit_breaker.pb-c.h"
#include "pb/envoy/config/cluster/v3/cluster.pb-c.h"
#include "pb/envoy/config/cluster/v3/outlier_detection.pb-c.h"
#include "pb/envoy/config/core/v3/address.pb-c.h"
#include "pb/envoy/config/core/v3/base.pb-c.h"
#include "pb/envoy/config/core/v3/config_source.pb-c.h"
#include "pb/envoy/config/core/v3/extension.pb-c.h"
#include "pb/envoy/config/core/v3/health_check.pb-c.h"
#include "pb/envoy/config/core/v3/protocol.pb-c.h"
#include "pb/envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "pb/envoy/config/endpoint/v3/endpoint_components.pb-c.h"
#include "pb/envoy/config/endpoint/v3/load_report.pb-c.h"
#include "pb/envoy/config/listener/v3/api_listener.pb-c.h"
#include "pb/envoy/config/listener/v3/listener.pb-c.h"
#include "pb/envoy/config/route/v3/route.pb-c.h"
#include "pb/envoy/config/route/v3/route_components.pb-c.h"
#include "pb/envoy/extensions/clusters/aggregate/v3/cluster.pb-c.h"
#include "pb/envoy/extensions/filters/common/fault/v3/fault.pb-c.h"
#include "pb/envoy/extensions/filters/http/fault/v3/fault.pb-c.h"
#include "pb/envoy/extensions/filters/http/router/v3/router.pb-c.h"
#include "pb/envoy/extensions/filters/http/stateful_session/v3/stateful_session.pb-c.h"
#include "pb/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb-c.h"
#include "pb/envoy/extensions/http/stateful_session/cookie/v3/cookie.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3/client_side_weighted_round_robin.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/common/v3/common.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/least_request/v3/least_request.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/override_host/v3/override_host.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/pick_first/v3/pick_first.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/round_robin/v3/round_robin.pb-c.h"
#include "pb/envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.pb-c.h"
#include "pb/envoy/extensions/transport_sockets/http_11_proxy/v3/upstream_http_11_connect.pb-c.h"
#include "pb/envoy/extensions/transport_sockets/tls/v3/common.pb-c.h"
#include "pb/envoy/extensions/transport_sockets/tls/v3/secret.pb-c.h"
#include "pb/envoy/extensions/transport_sockets/tls/v3/tls.pb-c.h"
#include "pb/envoy/extensions/upstreams/http/v3/http_protocol_options.pb-c.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"
#include "pb/envoy/service/load_stats/v3/lrs.pb-c.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "pb/envoy/type/http/v3/cookie.pb-c.h"
#include "pb/envoy/type/matcher/v3/node.pb-c.h"
#include "pb/envoy/type/matcher/v3/regex.pb-c.h"
#include "pb/envoy/type/matcher/v3/string.pb-c.h"
#include "pb/envoy/type/metadata/v3/metadata.pb-c.h"
#include "pb/envoy/type/v3/percent.pb-c.h"
#include "pb/envoy/type/v3/range.pb-c.h"
#include "pb/google/protobuf/any.pb-c.h"
#include "pb/google/protobuf/duration.pb-c.h"
#include "pb/google/protobuf/empty.pb-c.h"
#include "pb/google/protobuf/struct.pb-c.h"
#include "pb/google/protobuf/timestamp.pb-c.h"
#include "pb/google/protobuf/wrappers.pb-c.h"
#include "pb/google/rpc/status.pb-c.h"
#include "pb/udpa/type/v1/typed_struct.pb-c.h"
#include "pb/xds/data/orca/v3/orca_load_report.pb-c.h"
#include "pb/xds/type/v3/typed_struct.pb-c.h"

static const ProtobufCMessageDescriptor *const types[] = {
    &envoy__admin__v3__update_failure_state__descriptor,
    &envoy__config__cluster__v3__circuit_breakers__descriptor,
    &envoy__config__cluster__v3__cluster__descriptor,
    &envoy__config__cluster__v3__load_balancing_policy__descriptor,
    &envoy__config__cluster__v3__outlier_detection__descriptor,
    &envoy__config__core__v3__address__descriptor,
    &envoy__config__core__v3__aggregated_config_source__descriptor,
    &envoy__config__core__v3__api_config_source__descriptor,
    &envoy__config__core__v3__config_source__descriptor,
    &envoy__config__core__v3__control_plane__descriptor,
    &envoy__config__core__v3__data_source__descriptor,
    &envoy__config__core__v3__envoy_internal_address__descriptor,
    &envoy__config__core__v3__header_value__descriptor,
    &envoy__config__core__v3__health_status_set__descriptor,
    &envoy__config__core__v3__http_protocol_options__descriptor,
    &envoy__config__core__v3__locality__descriptor,
    &envoy__config__core__v3__metadata__descriptor,
    &envoy__config__core__v3__node__descriptor,
    &envoy__config__core__v3__pipe__descriptor,
    &envoy__config__core__v3__runtime_fractional_percent__descriptor,
    &envoy__config__core__v3__self_config_source__descriptor,
    &envoy__config__core__v3__socket_address__descriptor,
    &envoy__config__core__v3__transport_socket__descriptor,
    &envoy__config__core__v3__typed_extension_config__descriptor,
    &envoy__config__core__v3__upstream_http_protocol_options__descriptor,
    &envoy__config__endpoint__v3__cluster_load_assignment__descriptor,
    &envoy__config__endpoint__v3__cluster_stats__descriptor,
    &envoy__config__endpoint__v3__endpoint__descriptor,
    &envoy__config__endpoint__v3__endpoint_load_metric_stats__descriptor,
    &envoy__config__endpoint__v3__lb_endpoint__descriptor,
    &envoy__config__endpoint__v3__locality_lb_endpoints__descriptor,
    &envoy__config__endpoint__v3__unnamed_endpoint_load_metric_stats__descriptor,
    &envoy__config__endpoint__v3__upstream_locality_stats__descriptor,
    &envoy__config__listener__v3__api_listener__descriptor,
    &envoy__config__listener__v3__listener__descriptor,
    &envoy__config__route__v3__cluster_specifier_plugin__descriptor,
    &envoy__config__route__v3__direct_response_action__descriptor,
    &envoy__config__route__v3__filter_action__descriptor,
    &envoy__config__route__v3__filter_config__descriptor,
    &envoy__config__route__v3__header_matcher__descriptor,
    &envoy__config__route__v3__non_forwarding_action__descriptor,
    &envoy__config__route__v3__query_parameter_matcher__descriptor,
    &envoy__config__route__v3__redirect_action__descriptor,
    &envoy__config__route__v3__retry_policy__descriptor,
    &envoy__config__route__v3__route__descriptor,
    &envoy__config__route__v3__route_action__descriptor,
    &envoy__config__route__v3__route_configuration__descriptor,
    &envoy__config__route__v3__route_match__descriptor,
    &envoy__config__route__v3__virtual_host__descriptor,
    &envoy__config__route__v3__weighted_cluster__descriptor,
    &envoy__extensions__clusters__aggregate__v3__cluster_config__descriptor,
    &envoy__extensions__filters__common__fault__v3__fault_delay__descriptor,
    &envoy__extensions__filters__http__fault__v3__fault_abort__descriptor,
    &envoy__extensions__filters__http__fault__v3__httpfault__descriptor,
    &envoy__extensions__filters__http__router__v3__router__descriptor,
    &envoy__extensions__filters__http__stateful_session__v3__stateful_session__descriptor,
    &envoy__extensions__filters__http__stateful_session__v3__stateful_session_per_route__descriptor,
    &envoy__extensions__filters__network__http_connection_manager__v3__http_connection_manager__descriptor,
    &envoy__extensions__filters__network__http_connection_manager__v3__http_filter__descriptor,
    &envoy__extensions__filters__network__http_connection_manager__v3__rds__descriptor,
    &envoy__extensions__filters__network__http_connection_manager__v3__scoped_routes__descriptor,
    &envoy__extensions__http__stateful_session__cookie__v3__cookie_based_session_state__descriptor,
    &envoy__extensions__load_balancing_policies__client_side_weighted_round_robin__v3__client_side_weighted_round_robin__descriptor,
    &envoy__extensions__load_balancing_policies__common__v3__consistent_hashing_lb_config__descriptor,
    &envoy__extensions__load_balancing_policies__common__v3__locality_lb_config__descriptor,
    &envoy__extensions__load_balancing_policies__least_request__v3__least_request__descriptor,
    &envoy__extensions__load_balancing_policies__override_host__v3__override_host__descriptor,
    &envoy__extensions__load_balancing_policies__pick_first__v3__pick_first__descriptor,
    &envoy__extensions__load_balancing_policies__ring_hash__v3__ring_hash__descriptor,
    &envoy__extensions__load_balancing_policies__round_robin__v3__round_robin__descriptor,
    &envoy__extensions__load_balancing_policies__wrr_locality__v3__wrr_locality__descriptor,
    &envoy__extensions__transport_sockets__http_11_proxy__v3__http11_proxy_upstream_transport__descriptor,
    &envoy__extensions__transport_sockets__tls__v3__certificate_provider_plugin_instance__descriptor,
    &envoy__extensions__transport_sockets__tls__v3__certificate_validation_context__descriptor,
    &envoy__extensions__transport_sockets__tls__v3__common_tls_context__descriptor,
    &envoy__extensions__transport_sockets__tls__v3__sds_secret_config__descriptor,
    &envoy__extensions__transport_sockets__tls__v3__subject_alt_name_matcher__descriptor,
    &envoy__extensions__transport_sockets__tls__v3__tls_certificate__descriptor,
    &envoy__extensions__transport_sockets__tls__v3__tls_parameters__descriptor,
    &envoy__extensions__transport_sockets__tls__v3__upstream_tls_context__descriptor,
    &envoy__extensions__upstreams__http__v3__http_protocol_options__descriptor,
    &envoy__service__discovery__v3__delta_discovery_request__descriptor,
    &envoy__service__discovery__v3__delta_discovery_response__descriptor,
    &envoy__service__discovery__v3__discovery_request__descriptor,
    &envoy__service__discovery__v3__discovery_response__descriptor,
    &envoy__service__discovery__v3__resource__descriptor,
    &envoy__service__discovery__v3__resource_error__descriptor,
    &envoy__service__discovery__v3__resource_name__descriptor,
    &envoy__service__load_stats__v3__load_stats_request__descriptor,
    &envoy__service__load_stats__v3__load_stats_response__descriptor,
    &envoy__service__status__v3__client_config__descriptor,
    &envoy__service__status__v3__client_status_request__descriptor,
    &envoy__service__status__v3__client_status_response__descriptor,
    &envoy__type__http__v3__cookie__descriptor,
    &envoy__type__matcher__v3__node_matcher__descriptor,
    &envoy__type__matcher__v3__regex_match_and_substitute__descriptor,
    &envoy__type__matcher__v3__regex_matcher__descriptor,
    &envoy__type__matcher__v3__string_matcher__descriptor,
    &envoy__type__metadata__v3__metadata_key__descriptor,
    &envoy__type__v3__fractional_percent__descriptor,
    &envoy__type__v3__int64_range__descriptor,
    &envoy__type__v3__percent__descriptor,
    &google__protobuf__any__descriptor,
    &google__protobuf__bool_value__descriptor,
    &google__protobuf__bytes_value__descriptor,
    &google__protobuf__double_value__descriptor,
    &google__protobuf__duration__descriptor,
    &google__protobuf__empty__descriptor,
    &google__protobuf__float_value__descriptor,
    &google__protobuf__int32_value__descriptor,
    &google__protobuf__int64_value__descriptor,
    &google__protobuf__list_value__descriptor,
    &google__protobuf__string_value__descriptor,
    &google__protobuf__struct__descriptor,
    &google__protobuf__timestamp__descriptor,
    &google__protobuf__uint32_value__descriptor,
    &google__protobuf__uint64_value__descriptor,
    &google__protobuf__value__descriptor,
    &google__rpc__status__descriptor,
    &udpa__type__v1__typed_struct__descriptor,
    &xds__data__orca__v3__orca_load_report__descriptor,
    &xds__type__v3__typed_struct__descriptor,
};

static int compare(const void *key, const void *element)
{
    const struct tc_slice *name = key;
    const ProtobufCMessageDescriptor *type = *(const ProtobufCMessageDescriptor *const *)element;
    size_t len = strlen(type->name);
    int order = memcmp(name->data, type->name, TC_MIN(name->len, len));
    return order ? order : (name->len > len) - (name->len < len);
}

const ProtobufCMessageDescriptor *tc_proto_type(struct tc_slice full_name)
{
    if (full_name.len == 0)
        return NULL;
    const ProtobufCMessageDescriptor *const *found =
        bsearch(&full_name, types, TC_ARRAY_LEN(types), sizeof(types[0]), compare);
    return found ? *found : NULL;
}

const ProtobufCMessageDescriptor *tc_proto_type_of_url(struct tc_slice url)
{
    for (size_t i = url.len; i-- > 0;)
        if (url.data[i] == '/')
            return tc_proto_type(tc_slice_of(url.data + i + 1, url.len - i - 1));
    return NULL;
}

const ProtobufCMessageDescriptor *tc_proto_type_at(size_t i)
{
    return i < TC_ARRAY_LEN(types) ? types[i] : NULL;
}
