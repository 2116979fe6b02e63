/* Decodes a Cluster's transport_socket: UpstreamTlsContext, alone or in Http11ProxyUpstreamTransport (A29, A82, A86,
 * A101).
 *
 * A29: security settings of CommonTlsContext that gRPC does not implement (each add_error_if) are errors. If they were
 * ignored, the checks would be weaker than the control plane asked for. All else that is not read here is ignored:
 * alpn_protocols and trusted_ca, for example, and other sources of a certificate beside a provider instance.
 *
 * Certificates come from instances of the bootstrap's certificate_providers; roots may be the system's (A82). An
 * unknown instance or plugin is an error here, not at the first handshake. The resource's arena keeps the settings.
 * Runs on any thread. */
#include "xds/resource/cluster_decoder.h"

#include "pb/envoy/extensions/transport_sockets/http_11_proxy/v3/upstream_http_11_connect.pb-c.h"
#include "pb/envoy/extensions/transport_sockets/tls/v3/tls.pb-c.h"

typedef Envoy__Extensions__TransportSockets__Tls__V3__UpstreamTlsContext UpstreamTlsContext;
typedef Envoy__Extensions__TransportSockets__Tls__V3__CommonTlsContext CommonTlsContext;
typedef Envoy__Extensions__TransportSockets__Tls__V3__CertificateValidationContext ValidationContext;

enum { MAX_SNI_BYTES = 255 };
typedef Envoy__Extensions__TransportSockets__Http11Proxy__V3__Http11ProxyUpstreamTransport Http11Proxy;

#define HTTP_CONNECT "envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport"
#define UPSTREAM "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
#define VALIDATION(x) ENVOY__EXTENSIONS__TRANSPORT_SOCKETS__TLS__V3__COMMON_TLS_CONTEXT__VALIDATION_CONTEXT_TYPE_##x

/* Returns the name of a certificate provider instance, and stores the certificate's name; the arena keeps both. Adds an
 * error if the bootstrap does not have the instance, or if its plugin is not supported; returns the name also then.
 * Takes the message's two fields, because messages of two types have them. */
static struct tc_rstr *decode_instance(struct tc_decoder *dec, const char *field, const char *instance,
                                       const char *certificate, struct tc_slice *certificate_name)
{
    const struct tc_xds_bootstrap *b = dec->ctx ? dec->ctx->bootstrap : NULL;
    const json_t *entry = b && b->certificate_providers ? json_object_get(b->certificate_providers, instance) : NULL;
    const char *plugin = entry ? json_string_value(json_object_get(entry, "plugin_name")) : NULL;
    tc_validation_push(dec->errors, "%s", field);
    if (!entry)
        tc_validation_add_at(dec->errors, ".instance_name", "unrecognized certificate provider instance name \"%s\"",
                             tc_decode_clip(dec, tc_slice_str(instance)));
    else if (dec->reg->cert_plugin_known && !(plugin && dec->reg->cert_plugin_known(dec->reg->arg, plugin)))
        tc_validation_add_at(dec->errors, ".instance_name",
                             "certificate provider instance \"%s\" has the plugin \"%s\", which is not supported",
                             tc_decode_clip(dec, tc_slice_str(instance)), plugin ? plugin : "");
    tc_validation_pop(dec->errors);
    *certificate_name = tc_resource_arena_text(dec->arena, certificate);
    return tc_resource_arena_rstr(dec->arena, instance);
}

static void add_error_if(struct tc_decoder *dec, bool present, const char *field)
{
    if (present)
        tc_validation_add_at(dec->errors, field, "feature unsupported");
}

static void decode_sans(struct tc_decoder *dec, const ValidationContext *m, struct tc_upstream_tls *out)
{
    struct tc_string_matcher *sans =
        TC_RESOURCE_ARRAY(dec->arena, m->n_match_subject_alt_names, struct tc_string_matcher);
    for (size_t i = 0; i < m->n_match_subject_alt_names; i++) {
        tc_validation_push(dec->errors, ".match_subject_alt_names[%zu]", i);
        tc_decode_string_matcher(dec, m->match_subject_alt_names[i], &sans[i]);
        tc_validation_pop(dec->errors);
    }
    out->n_san_matchers = m->n_match_subject_alt_names;
    out->san_matchers = sans;
}

static void decode_validation(struct tc_decoder *dec, const ValidationContext *m, struct tc_upstream_tls *out)
{
    add_error_if(dec, m->n_verify_certificate_spki != 0, ".verify_certificate_spki");
    add_error_if(dec, m->n_verify_certificate_hash != 0, ".verify_certificate_hash");
    add_error_if(dec, m->require_signed_certificate_timestamp && m->require_signed_certificate_timestamp->value,
                 ".require_signed_certificate_timestamp");
    add_error_if(dec, m->crl != NULL, ".crl");
    add_error_if(dec, m->custom_validator_config != NULL, ".custom_validator_config");
    add_error_if(dec, m->n_match_typed_subject_alt_names != 0, ".match_typed_subject_alt_names");
    decode_sans(dec, m, out);
    if (m->ca_certificate_provider_instance)
        out->ca_instance = decode_instance(dec, ".ca_certificate_provider_instance",
                                           m->ca_certificate_provider_instance->instance_name,
                                           m->ca_certificate_provider_instance->certificate_name, &out->ca_cert_name);
    out->system_root_certs = !out->ca_instance && m->system_root_certs;
}

static void decode_combined(
    struct tc_decoder *dec,
    const Envoy__Extensions__TransportSockets__Tls__V3__CommonTlsContext__CombinedCertificateValidationContext *m,
    struct tc_upstream_tls *out)
{
    tc_validation_push(dec->errors, ".combined_validation_context");
    add_error_if(dec, m->validation_context_sds_secret_config != NULL, ".validation_context_sds_secret_config");
    if (m->default_validation_context) {
        tc_validation_push(dec->errors, ".default_validation_context");
        decode_validation(dec, m->default_validation_context, out);
        tc_validation_pop(dec->errors);
    }
    /* The older place of the instance, which control planes still fill in. */
    if (!out->ca_instance && m->validation_context_certificate_provider_instance) {
        out->ca_instance =
            decode_instance(dec, ".validation_context_certificate_provider_instance",
                            m->validation_context_certificate_provider_instance->instance_name,
                            m->validation_context_certificate_provider_instance->certificate_name, &out->ca_cert_name);
        out->system_root_certs = false;
    }
    tc_validation_pop(dec->errors);
}

static void decode_identity(struct tc_decoder *dec, const CommonTlsContext *m, struct tc_upstream_tls *out)
{
    if (m->tls_certificate_provider_instance)
        out->identity_instance = decode_instance(
            dec, ".tls_certificate_provider_instance", m->tls_certificate_provider_instance->instance_name,
            m->tls_certificate_provider_instance->certificate_name, &out->identity_cert_name);
    else if (m->tls_certificate_certificate_provider_instance)
        out->identity_instance = decode_instance(dec, ".tls_certificate_certificate_provider_instance",
                                                 m->tls_certificate_certificate_provider_instance->instance_name,
                                                 m->tls_certificate_certificate_provider_instance->certificate_name,
                                                 &out->identity_cert_name);
    /* A29: beside a provider instance, other sources of the certificate are ignored. */
    add_error_if(dec, !out->identity_instance && m->n_tls_certificates != 0, ".tls_certificates");
    add_error_if(dec, !out->identity_instance && m->n_tls_certificate_sds_secret_configs != 0,
                 ".tls_certificate_sds_secret_configs");
}

/* A101: which name the handshake asks for, and whether the certificate must have it. RFC 1035: at most 255 bytes. */
static void decode_sni(struct tc_decoder *dec, const UpstreamTlsContext *m, struct tc_upstream_tls *out)
{
    if (strlen(m->sni) > MAX_SNI_BYTES)
        tc_validation_add_at(dec->errors, ".sni", "is longer than %u bytes", MAX_SNI_BYTES);
    else
        out->sni = tc_resource_arena_text(dec->arena, m->sni);
    out->auto_host_sni = m->auto_host_sni;
    out->auto_sni_san_validation = m->auto_sni_san_validation;
}

static void decode_common(struct tc_decoder *dec, const CommonTlsContext *m, struct tc_upstream_tls *out)
{
    size_t errors = dec->errors->count;
    add_error_if(dec, m->tls_params != NULL, ".tls_params");
    add_error_if(dec, m->custom_handshaker != NULL, ".custom_handshaker");
    switch (m->validation_context_type_case) {
    case VALIDATION(VALIDATION_CONTEXT):
        tc_validation_push(dec->errors, ".validation_context");
        decode_validation(dec, m->validation_context, out);
        tc_validation_pop(dec->errors);
        break;
    case VALIDATION(COMBINED_VALIDATION_CONTEXT):
        decode_combined(dec, m->combined_validation_context, out);
        break;
    case VALIDATION(VALIDATION_CONTEXT_SDS_SECRET_CONFIG):
        add_error_if(dec, true, ".validation_context_sds_secret_config");
        break;
    case VALIDATION(VALIDATION_CONTEXT_CERTIFICATE_PROVIDER_INSTANCE):
        add_error_if(dec, true, ".validation_context_certificate_provider_instance");
        break;
    default:
        break;
    }
    decode_identity(dec, m, out);
    if (dec->errors->count == errors && !out->ca_instance && !out->system_root_certs)
        tc_validation_add(dec->errors, "no CA certificate provider instance configured");
}

static void decode_tls(struct tc_decoder *dec, struct tc_slice bytes, struct tc_upstream_tls *out)
{
    const UpstreamTlsContext *tls =
        TC_DECODE(dec, &envoy__extensions__transport_sockets__tls__v3__upstream_tls_context__descriptor,
                  UpstreamTlsContext, bytes);
    if (tls)
        decode_sni(dec, tls, out);
    tc_validation_push(dec->errors, ".common_tls_context");
    if (tls && tls->common_tls_context)
        decode_common(dec, tls->common_tls_context, out);
    else if (tls)
        tc_validation_add(dec->errors, "field not present");
    tc_validation_pop(dec->errors);
}

/* Returns false with errors, or if there is no TLS. `http_connect` is NULL inside of a proxy transport. */
static bool decode_socket(struct tc_decoder *dec, const Envoy__Config__Core__V3__TransportSocket *m,
                          struct tc_upstream_tls *out, bool *http_connect)
{
    struct tc_any any;
    size_t errors = dec->errors->count;
    bool tls = true;
    tc_validation_push(dec->errors, ".transport_socket.typed_config");
    if (m->config_type_case != ENVOY__CONFIG__CORE__V3__TRANSPORT_SOCKET__CONFIG_TYPE_TYPED_CONFIG) {
        tc_validation_add(dec->errors, "field not present");
    } else if (tc_decode_any(dec, m->typed_config, &any)) {
        if (tc_slice_eq_str(any.name, UPSTREAM)) {
            decode_tls(dec, any.bytes, out);
        } else if (http_connect && tc_slice_eq_str(any.name, HTTP_CONNECT)) {
            const Http11Proxy *proxy = TC_DECODE(
                dec,
                &envoy__extensions__transport_sockets__http_11_proxy__v3__http11_proxy_upstream_transport__descriptor,
                Http11Proxy, any.bytes);
            *http_connect = proxy != NULL;
            /* A proxy transport inside of another is an error: without http_connect its type is unsupported. */
            tls = proxy && proxy->transport_socket && decode_socket(dec, proxy->transport_socket, out, NULL);
        } else {
            tc_validation_add(dec->errors, "unsupported transport socket type %s", tc_decode_clip(dec, any.name));
        }
    }
    tc_validation_pop(dec->errors);
    return tls && dec->errors->count == errors;
}

const struct tc_upstream_tls *tc_decode_transport_socket(struct tc_decoder *dec,
                                                         const Envoy__Config__Core__V3__TransportSocket *m,
                                                         bool *http_connect)
{
    struct tc_upstream_tls *out = TC_RESOURCE_NEW(dec->arena, struct tc_upstream_tls);
    return decode_socket(dec, m, out, http_connect) ? out : NULL;
}
