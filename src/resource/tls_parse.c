#include "resource/tls_parse.h"

#include "pb/envoy/extensions/transport_sockets/http_11_proxy/v3/upstream_http_11_connect.pb-c.h"
#include "pb/envoy/extensions/transport_sockets/tls/v3/tls.pb-c.h"

typedef Envoy__Extensions__TransportSockets__Tls__V3__UpstreamTlsContext UpstreamTlsContext;
typedef Envoy__Extensions__TransportSockets__Tls__V3__CommonTlsContext CommonTlsContext;
typedef Envoy__Extensions__TransportSockets__Tls__V3__CertificateValidationContext ValidationContext;

#define MAX_SNI_BYTES 255u
typedef Envoy__Extensions__TransportSockets__Http11Proxy__V3__Http11ProxyUpstreamTransport Http11Proxy;

#define HTTP_CONNECT "envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport"
#define UPSTREAM "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
#define VALIDATION(x) ENVOY__EXTENSIONS__TRANSPORT_SOCKETS__TLS__V3__COMMON_TLS_CONTEXT__VALIDATION_CONTEXT_TYPE_##x

/* A certificate provider instance, of which there are two messages with the same two fields. */
static struct tc_rstr *read_instance(struct tc_reading *p, const char *field, const char *instance,
                                     const char *certificate, struct tc_slice *certificate_name)
{
    const struct tc_xds_bootstrap *b = p->ctx ? p->ctx->bootstrap : NULL;
    const json_t *entry = b && b->certificate_providers ? json_object_get(b->certificate_providers, instance) : NULL;
    const char *plugin = entry ? json_string_value(json_object_get(entry, "plugin_name")) : NULL;
    tc_faults_push(p->faults, "%s", field);
    if (!entry)
        tc_faults_add_at(p->faults, ".instance_name", "unrecognized certificate provider instance name \"%s\"",
                         tc_read_clip(p, tc_slice_str(instance)));
    else if (p->reg->cert_plugin_known && !(plugin && p->reg->cert_plugin_known(p->reg->arg, plugin)))
        tc_faults_add_at(p->faults, ".instance_name",
                         "certificate provider instance \"%s\" has the plugin \"%s\", which is not supported",
                         tc_read_clip(p, tc_slice_str(instance)), plugin ? plugin : "");
    tc_faults_pop(p->faults);
    *certificate_name = tc_store_text(p->store, certificate);
    return tc_store_rstr(p->store, instance);
}

/* A29: what gRPC does not do must not be ignored, since the checks would be weaker than asked for. */
static void refuse_if(struct tc_reading *p, bool present, const char *field)
{
    if (present)
        tc_faults_add_at(p->faults, field, "feature unsupported");
}

static void read_sans(struct tc_reading *p, const ValidationContext *m, struct tc_upstream_tls *out)
{
    struct tc_string_matcher *sans = TC_STORE_ARRAY(p->store, m->n_match_subject_alt_names, struct tc_string_matcher);
    for (size_t i = 0; i < m->n_match_subject_alt_names; i++) {
        tc_faults_push(p->faults, ".match_subject_alt_names[%zu]", i);
        tc_read_string_matcher(p, m->match_subject_alt_names[i], &sans[i]);
        tc_faults_pop(p->faults);
    }
    out->n_san_matchers = m->n_match_subject_alt_names;
    out->san_matchers = sans;
}

static void read_validation(struct tc_reading *p, const ValidationContext *m, struct tc_upstream_tls *out)
{
    refuse_if(p, m->n_verify_certificate_spki != 0, ".verify_certificate_spki");
    refuse_if(p, m->n_verify_certificate_hash != 0, ".verify_certificate_hash");
    refuse_if(p, m->require_signed_certificate_timestamp && m->require_signed_certificate_timestamp->value,
              ".require_signed_certificate_timestamp");
    refuse_if(p, m->crl != NULL, ".crl");
    refuse_if(p, m->custom_validator_config != NULL, ".custom_validator_config");
    refuse_if(p, m->n_match_typed_subject_alt_names != 0, ".match_typed_subject_alt_names");
    read_sans(p, m, out);
    if (m->ca_certificate_provider_instance)
        out->ca_instance =
            read_instance(p, ".ca_certificate_provider_instance", m->ca_certificate_provider_instance->instance_name,
                          m->ca_certificate_provider_instance->certificate_name, &out->ca_cert_name);
    out->system_root_certs = !out->ca_instance && m->system_root_certs;
}

static void read_combined(
    struct tc_reading *p,
    const Envoy__Extensions__TransportSockets__Tls__V3__CommonTlsContext__CombinedCertificateValidationContext *m,
    struct tc_upstream_tls *out)
{
    tc_faults_push(p->faults, ".combined_validation_context");
    refuse_if(p, m->validation_context_sds_secret_config != NULL, ".validation_context_sds_secret_config");
    if (m->default_validation_context) {
        tc_faults_push(p->faults, ".default_validation_context");
        read_validation(p, m->default_validation_context, out);
        tc_faults_pop(p->faults);
    }
    /* The older place of the instance, which control planes still fill in. */
    if (!out->ca_instance && m->validation_context_certificate_provider_instance) {
        out->ca_instance =
            read_instance(p, ".validation_context_certificate_provider_instance",
                          m->validation_context_certificate_provider_instance->instance_name,
                          m->validation_context_certificate_provider_instance->certificate_name, &out->ca_cert_name);
        out->system_root_certs = false;
    }
    tc_faults_pop(p->faults);
}

static void read_identity(struct tc_reading *p, const CommonTlsContext *m, struct tc_upstream_tls *out)
{
    if (m->tls_certificate_provider_instance)
        out->identity_instance =
            read_instance(p, ".tls_certificate_provider_instance", m->tls_certificate_provider_instance->instance_name,
                          m->tls_certificate_provider_instance->certificate_name, &out->identity_cert_name);
    else if (m->tls_certificate_certificate_provider_instance)
        out->identity_instance =
            read_instance(p, ".tls_certificate_certificate_provider_instance",
                          m->tls_certificate_certificate_provider_instance->instance_name,
                          m->tls_certificate_certificate_provider_instance->certificate_name, &out->identity_cert_name);
    /* A29: they are in the way only where there is nothing else to go by. */
    refuse_if(p, !out->identity_instance && m->n_tls_certificates != 0, ".tls_certificates");
    refuse_if(p, !out->identity_instance && m->n_tls_certificate_sds_secret_configs != 0,
              ".tls_certificate_sds_secret_configs");
}

/* A101 */
static void read_sni(struct tc_reading *p, const UpstreamTlsContext *m, struct tc_upstream_tls *out)
{
    if (strlen(m->sni) > MAX_SNI_BYTES)
        tc_faults_add_at(p->faults, ".sni", "is longer than %u bytes", MAX_SNI_BYTES);
    else
        out->sni = tc_store_text(p->store, m->sni);
    out->auto_host_sni = m->auto_host_sni;
    out->auto_sni_san_validation = m->auto_sni_san_validation;
}

static void read_common(struct tc_reading *p, const CommonTlsContext *m, struct tc_upstream_tls *out)
{
    size_t faults = p->faults->count;
    refuse_if(p, m->tls_params != NULL, ".tls_params");
    refuse_if(p, m->custom_handshaker != NULL, ".custom_handshaker");
    switch (m->validation_context_type_case) {
    case VALIDATION(VALIDATION_CONTEXT):
        tc_faults_push(p->faults, ".validation_context");
        read_validation(p, m->validation_context, out);
        tc_faults_pop(p->faults);
        break;
    case VALIDATION(COMBINED_VALIDATION_CONTEXT):
        read_combined(p, m->combined_validation_context, out);
        break;
    case VALIDATION(VALIDATION_CONTEXT_SDS_SECRET_CONFIG):
        refuse_if(p, true, ".validation_context_sds_secret_config");
        break;
    case VALIDATION(VALIDATION_CONTEXT_CERTIFICATE_PROVIDER_INSTANCE):
        refuse_if(p, true, ".validation_context_certificate_provider_instance");
        break;
    default:
        break;
    }
    read_identity(p, m, out);
    if (p->faults->count == faults && !out->ca_instance && !out->system_root_certs)
        tc_faults_add(p->faults, "no CA certificate provider instance configured");
}

static void read_tls(struct tc_reading *p, struct tc_slice bytes, struct tc_upstream_tls *out)
{
    const UpstreamTlsContext *tls = TC_READ(
        p, &envoy__extensions__transport_sockets__tls__v3__upstream_tls_context__descriptor, UpstreamTlsContext, bytes);
    if (tls)
        read_sni(p, tls, out);
    tc_faults_push(p->faults, ".common_tls_context");
    if (tls && tls->common_tls_context)
        read_common(p, tls->common_tls_context, out);
    else if (tls)
        tc_faults_add(p->faults, "field not present");
    tc_faults_pop(p->faults);
}

/* False where there is no TLS, or with faults. */
static bool read_socket(struct tc_reading *p, const Envoy__Config__Core__V3__TransportSocket *m,
                        struct tc_upstream_tls *out, bool *http_connect)
{
    struct tc_any any;
    size_t faults = p->faults->count;
    bool tls = true;
    tc_faults_push(p->faults, ".transport_socket.typed_config");
    if (m->config_type_case != ENVOY__CONFIG__CORE__V3__TRANSPORT_SOCKET__CONFIG_TYPE_TYPED_CONFIG) {
        tc_faults_add(p->faults, "field not present");
    } else if (tc_read_any(p, m->typed_config, &any)) {
        if (tc_slice_eq_str(any.name, UPSTREAM)) {
            read_tls(p, any.bytes, out);
        } else if (http_connect && tc_slice_eq_str(any.name, HTTP_CONNECT)) {
            const Http11Proxy *proxy = TC_READ(
                p,
                &envoy__extensions__transport_sockets__http_11_proxy__v3__http11_proxy_upstream_transport__descriptor,
                Http11Proxy, any.bytes);
            *http_connect = proxy != NULL;
            /* One of them inside of another is refused: NULL asks for that. */
            tls = proxy && proxy->transport_socket && read_socket(p, proxy->transport_socket, out, NULL);
        } else {
            tc_faults_add(p->faults, "unsupported transport socket type %s", tc_read_clip(p, any.name));
        }
    }
    tc_faults_pop(p->faults);
    return tls && p->faults->count == faults;
}

const struct tc_upstream_tls *tc_read_transport_socket(struct tc_reading *p,
                                                       const Envoy__Config__Core__V3__TransportSocket *m,
                                                       bool *http_connect)
{
    struct tc_upstream_tls *out = TC_STORE_NEW(p->store, struct tc_upstream_tls);
    return read_socket(p, m, out, http_connect) ? out : NULL;
}
