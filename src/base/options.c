/* Options structs of applications: a table of each struct's fields, with the defaults and ranges that include/torc
 * has, and one reader for all structs. A default that depends on the process (ring_size_cap, a server's
 * max_connections) or on another struct (a call's max_receive_message_bytes) is 0 in the table.
 *
 * A struct is read by its size (base/sized.h), then each field is checked against its row in the table.
 * tc_options_complete also replaces 0 and -1 by what they stand for. api/call.c uses a valid torc_call_options of this
 * version without the table. Bindings set fields by name through the same table (torc/options.h).
 *
 * FIELD is a field of struct OF; it takes the type from the declaration. test/unit/base/options_test.c checks that the
 * tables cover every byte of the structs behind `size`. To add a field: append it to the struct, and to its table. */
#include "base/options.h"

#include <torc/torc.h>

#include "base/common.h"
#include "base/sized.h"

#define TYPE_OF(value)                                                                                                 \
    _Generic((value), int64_t                                                                                          \
             : TC_OPTION_INTEGER, int32_t                                                                              \
             : TC_OPTION_SWITCH, double                                                                                \
             : TC_OPTION_NUMBER, const char *                                                                          \
             : TC_OPTION_TEXT, default                                                                                 \
             : TC_OPTION_POINTER)
#define FIELD(field) .name = #field, .offset = offsetof(struct OF, field), .type = TYPE_OF(((struct OF *)0)->field)
/* An integer of least..most, or 0, which stands for the default `standard`. */
#define RANGE(standard, least, most) .of.range = {standard, least, most, 0, false}
/* An integer as RANGE has it, or -1, which stands for minus_one. */
#define OR_MINUS_ONE(standard, least, most, minus_one) .of.range = {standard, least, most, minus_one, true}
#define NO_LIMIT INT64_MAX
#define ANY INT64_MAX
#define ON .of.on = true

#define OF torc_runtime_options
static const struct tc_option runtime_fields[] = {
    {FIELD(mode), RANGE(TORC_RUNTIME_THREAD, TORC_RUNTIME_THREAD, TORC_RUNTIME_CALLER)},
    {FIELD(idle_connection_ms), OR_MINUS_ONE(30000, 1, ANY, 0)},
    {FIELD(max_idle_connections), OR_MINUS_ONE(1000, 1, UINT32_MAX, UINT32_MAX)},
    {FIELD(csds_answer_bytes), OR_MINUS_ONE(33554432, 1, ANY, NO_LIMIT)},
    {FIELD(memory_limit_bytes), OR_MINUS_ONE(0, 1, ANY, 0)},
    {FIELD(xds_domain)},
    {FIELD(log_sink)},
};
#undef OF

#define OF torc_channel_options
static const struct tc_option channel_fields[] = {
    {FIELD(credentials)},
    {FIELD(authority)},
    {FIELD(user_agent)},
    {FIELD(service_config_json)},
    {FIELD(xds_bootstrap_json)},
    {FIELD(http_proxy)},
    {FIELD(resolvers)},
    {FIELD(lb_policies)},
    {FIELD(service_config_lookup), ON},
    {FIELD(retries), ON},
    {FIELD(gzip)},
    {FIELD(keepalive_without_calls)},
    {FIELD(keepalive_time_ms), OR_MINUS_ONE(0, 1, ANY, 0)},
    {FIELD(keepalive_timeout_ms), RANGE(20000, 1, ANY)},
    {FIELD(connect_timeout_ms), RANGE(20000, 1, ANY)},
    {FIELD(idle_timeout_ms), OR_MINUS_ONE(1800000, 1, ANY, NO_LIMIT)},
    {FIELD(backoff_initial_ms), RANGE(1000, 1, ANY)},
    {FIELD(backoff_max_ms), RANGE(120000, 1, ANY)},
    {FIELD(backoff_multiplier), .of.interval = {1.6, 1, 1000, 0, false}},
    {FIELD(backoff_jitter), .of.interval = {0.2, 0, 1, 0, true}},
    {FIELD(dns_min_interval_ms), OR_MINUS_ONE(30000, 1, ANY, 0)},
    {FIELD(xds_resource_timeout_ms), RANGE(15000, 1, ANY)},
    {FIELD(max_receive_message_bytes), OR_MINUS_ONE(4194304, 1, ANY, NO_LIMIT)},
    {FIELD(max_send_message_bytes), OR_MINUS_ONE(NO_LIMIT, 1, ANY, NO_LIMIT)},
    {FIELD(max_header_list_bytes), RANGE(16384, 1, ANY)},
    {FIELD(max_request_header_bytes), RANGE(1048576, 1, 268435456)},
    {FIELD(retry_buffer_bytes), OR_MINUS_ONE(262144, 1, ANY, 0)},
    {FIELD(channel_retry_buffer_bytes), OR_MINUS_ONE(16777216, 1, ANY, 0)},
    {FIELD(ring_size_cap), RANGE(0, 1, 8388608)},
    {FIELD(interceptors)},
    {FIELD(dialer)},
    {FIELD(health_checks), OR_MINUS_ONE(1, 1, 1, 0)},
    {FIELD(max_connections_per_subchannel), RANGE(10, 1, 1000)},
};
#undef OF

#define OF torc_call_options
static const struct tc_option call_fields[] = {
    {FIELD(timeout_ms), RANGE(0, INT64_MIN, ANY)},
    {FIELD(metadata)},
    {FIELD(credentials)},
    {FIELD(max_receive_message_bytes), OR_MINUS_ONE(0, 1, ANY, NO_LIMIT)},
    {FIELD(wait_for_ready)},
    {FIELD(gzip)},
    {FIELD(explain)},
    {FIELD(lend_request)},
};
#undef OF

#define OF torc_tls_options
static const struct tc_option tls_fields[] = {
    {FIELD(roots_pem)},      {FIELD(certificate_pem)}, {FIELD(private_key_pem)}, {FIELD(verify)},
    {FIELD(verify_release)}, {FIELD(verify_arg)},      {FIELD(skip_verify)},     {FIELD(skip_name)},
};
#undef OF

#define OF torc_tls_files
static const struct tc_option tls_files_fields[] = {
    {FIELD(ca_certificate_file)},
    {FIELD(certificate_file)},
    {FIELD(private_key_file)},
    {FIELD(refresh_interval_ms), OR_MINUS_ONE(600000, 1, ANY, NO_LIMIT)},
    {FIELD(verify)},
    {FIELD(verify_release)},
    {FIELD(verify_arg)},
    {FIELD(skip_verify)},
    {FIELD(skip_name)},
};
#undef OF

#define OF torc_google_options
static const struct tc_option google_fields[] = {{FIELD(roots_pem)}, {FIELD(credentials_file)}, {FIELD(metadata_host)}};
#undef OF

#define OF torc_server_options
static const struct tc_option server_fields[] = {
    {FIELD(runtime)},
    {FIELD(max_receive_message_bytes), OR_MINUS_ONE(4194304, 1, ANY, NO_LIMIT)},
    {FIELD(max_send_message_bytes), OR_MINUS_ONE(NO_LIMIT, 1, ANY, NO_LIMIT)},
    {FIELD(max_header_list_bytes), RANGE(8192, 1, ANY)},
    {FIELD(send_buffer_bytes), RANGE(65536, 1, ANY)},
    {FIELD(unsent_bytes), OR_MINUS_ONE(536870912, 1, ANY, NO_LIMIT)},
    {FIELD(max_concurrent_streams), RANGE(100, 1, INT32_MAX)},
    {FIELD(max_connections), OR_MINUS_ONE(0, 1, ANY, NO_LIMIT)},
    {FIELD(handshake_timeout_ms), RANGE(20000, 1, ANY)},
    {FIELD(keepalive_time_ms), OR_MINUS_ONE(7200000, 1, ANY, NO_LIMIT)},
    {FIELD(keepalive_timeout_ms), RANGE(20000, 1, ANY)},
    {FIELD(min_ping_interval_ms), OR_MINUS_ONE(300000, 1, ANY, 0)},
    {FIELD(max_connection_idle_ms), OR_MINUS_ONE(NO_LIMIT, 1, ANY, NO_LIMIT)},
    {FIELD(max_connection_age_ms), OR_MINUS_ONE(NO_LIMIT, 1, ANY, NO_LIMIT)},
    {FIELD(max_connection_age_grace_ms), OR_MINUS_ONE(NO_LIMIT, 1, ANY, NO_LIMIT)},
    {FIELD(pings_without_calls)},
    {FIELD(gzip)},
    {FIELD(interceptors)},
    {FIELD(max_cancels), OR_MINUS_ONE(1000, 1, INT32_MAX, INT32_MAX)},
    {FIELD(runtimes)},
    {FIELD(listen_mode), RANGE(0, 0, TORC_LISTEN_REUSE_PORT)},
    {FIELD(unread_bytes), OR_MINUS_ONE(536870912, 1, ANY, NO_LIMIT)},
};
#undef OF

#define OF torc_dialer
static const struct tc_option dialer_fields[] = {{FIELD(dial)}, {FIELD(cancel)}, {FIELD(release)}, {FIELD(arg)}};
#undef OF

#define OF torc_log_sink
static const struct tc_option log_sink_fields[] = {{FIELD(write)}, {FIELD(release)}, {FIELD(arg)}, {FIELD(levels)}};
#undef OF

#define OF torc_interceptor
static const struct tc_option interceptor_fields[] = {
    {FIELD(state_size), RANGE(0, 1, 65536)},
    {FIELD(name)},
    {FIELD(on_start)},
    {FIELD(on_attempt)},
    {FIELD(on_message)},
    {FIELD(on_status)},
    {FIELD(on_pick)},
    {FIELD(on_wire)},
    {FIELD(on_end)},
    {FIELD(release)},
    {FIELD(arg)},
};
#undef OF

#define OF torc_method_options
static const struct tc_option method_fields[] = {
    {FIELD(pool)},
    {FIELD(max_receive_message_bytes), OR_MINUS_ONE(0, 1, ANY, NO_LIMIT)},
    {FIELD(max_calls), OR_MINUS_ONE(0, 1, ANY, 0)},
    {FIELD(max_timeout_ms), OR_MINUS_ONE(0, 1, ANY, 0)},
};
#undef OF

#define OF torc_server_tls_options
static const struct tc_option server_tls_fields[] = {
    {FIELD(certificate_pem)},  {FIELD(private_key_pem)},
    {FIELD(client_roots_pem)}, {FIELD(client_certificates), RANGE(0, 0, TORC_CLIENT_CERTIFICATES_OPTIONAL)},
    {FIELD(verify)},           {FIELD(verify_release)},
    {FIELD(verify_arg)},
};
#undef OF

#define OF torc_server_tls_files
static const struct tc_option server_tls_files_fields[] = {
    {FIELD(certificate_file)},
    {FIELD(private_key_file)},
    {FIELD(client_ca_certificate_file)},
    {FIELD(client_certificates), RANGE(0, 0, TORC_CLIENT_CERTIFICATES_OPTIONAL)},
    {FIELD(refresh_interval_ms), OR_MINUS_ONE(600000, 1, ANY, NO_LIMIT)},
    {FIELD(verify)},
    {FIELD(verify_release)},
    {FIELD(verify_arg)},
};
#undef OF

#define STRUCT(tag, title, fields)                                                                                     \
    {                                                                                                                  \
#tag, title, sizeof(struct tag), fields, TC_ARRAY_LEN(fields)                                                  \
    }

const struct tc_options_struct tc_options_structs[TC_OPTIONS_KINDS] = {
    [TC_OPTIONS_RUNTIME] = STRUCT(torc_runtime_options, "options", runtime_fields),
    [TC_OPTIONS_CHANNEL] = STRUCT(torc_channel_options, "options", channel_fields),
    [TC_OPTIONS_CALL] = STRUCT(torc_call_options, "options", call_fields),
    [TC_OPTIONS_TLS] = STRUCT(torc_tls_options, "options", tls_fields),
    [TC_OPTIONS_TLS_FILES] = STRUCT(torc_tls_files, "files", tls_files_fields),
    [TC_OPTIONS_GOOGLE] = STRUCT(torc_google_options, "options", google_fields),
    [TC_OPTIONS_SERVER] = STRUCT(torc_server_options, "options", server_fields),
    [TC_OPTIONS_LOG_SINK] = STRUCT(torc_log_sink, "log_sink", log_sink_fields),
    [TC_OPTIONS_INTERCEPTOR] = STRUCT(torc_interceptor, "interceptor", interceptor_fields),
    [TC_OPTIONS_METHOD] = STRUCT(torc_method_options, "options", method_fields),
    [TC_OPTIONS_SERVER_TLS] = STRUCT(torc_server_tls_options, "options", server_tls_fields),
    [TC_OPTIONS_SERVER_TLS_FILES] = STRUCT(torc_server_tls_files, "files", server_tls_files_fields),
    [TC_OPTIONS_DIALER] = STRUCT(torc_dialer, "dialer", dialer_fields),
};

/* --- the reader --- */

bool tc_sized_read(void *to, size_t known, const void *given, const char *title, const char *tag, torc_error **error)
{
    uint64_t size;
    int rc = tc_sized_take(to, known, given);
    if (rc == 0)
        return true;
    memcpy(&size, given, sizeof(size));
    if (rc == TORC_EINVAL)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                            "%s: size is %llu: initialise the struct with TORC_SIZE(%s)", title,
                            (unsigned long long)size, tag);
    return tc_error_set(error, TORC_EUNSUPPORTED, TORC_LAYER_API,
                        "%s: fields are set that this library, Torc %s, does not know: the program was built with the "
                        "headers of a newer version (struct %s has %llu bytes there, %zu here)",
                        title, TORC_VERSION, tag, (unsigned long long)size, known);
}

static bool integer_check(const struct tc_options_struct *s, const struct tc_option *f, int64_t value,
                          torc_error **error)
{
    const struct tc_option_range *r = &f->of.range;
    if (value == 0 || (value >= r->least && value <= r->most) || (value == -1 && r->has_minus_one))
        return true;
    const char *others = r->has_minus_one ? "0, -1 or " : r->least > 0 ? "0 or " : "";
    if (r->most == INT64_MAX)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: %s: is %lld, must be %sat least %lld", s->title,
                            f->name, (long long)value, others, (long long)r->least);
    if (r->most == r->least)
        return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: %s: is %lld, must be %s%lld", s->title, f->name,
                            (long long)value, others, (long long)r->least);
    return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: %s: is %lld, must be %sin %lld..%lld", s->title,
                        f->name, (long long)value, others, (long long)r->least, (long long)r->most);
}

static bool number_check(const struct tc_options_struct *s, const struct tc_option *f, double value, torc_error **error)
{
    const struct tc_option_interval *r = &f->of.interval;
    if (value == 0 || (value >= r->least && value <= r->most) || (value == -1 && r->has_minus_one))
        return true;
    return tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: %s: is %g, must be %s or in %g..%g", s->title, f->name,
                        value, r->has_minus_one ? "0, -1" : "0", r->least, r->most);
}

bool tc_option_check(const struct tc_options_struct *s, const struct tc_option *f, const void *options,
                     torc_error **error)
{
    const void *at = (const char *)options + f->offset;
    switch (f->type) {
    case TC_OPTION_INTEGER:
        return integer_check(s, f, *(const int64_t *)at, error);
    case TC_OPTION_NUMBER:
        return number_check(s, f, *(const double *)at, error);
    case TC_OPTION_SWITCH: {
        int32_t value = *(const int32_t *)at;
        return (value >= TORC_OFF && value <= TORC_ON) ||
               tc_error_set(error, TORC_EINVAL, TORC_LAYER_API,
                            "%s: %s: is %d, must be 0, TORC_ON (1) or TORC_OFF (-1)", s->title, f->name, (int)value);
    }
    case TC_OPTION_TEXT:
    case TC_OPTION_POINTER:
        break;
    }
    return true;
}

bool tc_options_take(enum tc_options_kind kind, void *to, const void *given, torc_error **error)
{
    const struct tc_options_struct *s = &tc_options_structs[kind];
    uint64_t size = s->size;
    if (!given) {
        memset(to, 0, s->size);
        memcpy(to, &size, sizeof(size));
        return true;
    }
    if (!tc_sized_read(to, s->size, given, s->title, s->tag, error))
        return false;
    memcpy(to, &size, sizeof(size));
    for (size_t i = 0; i < s->n_fields; i++)
        if (!tc_option_check(s, &s->fields[i], to, error))
            return false;
    return true;
}

static void field_complete(const struct tc_option *f, void *options)
{
    void *at = (char *)options + f->offset;
    const struct tc_option_range *r = &f->of.range;
    const struct tc_option_interval *d = &f->of.interval;
    if (f->type == TC_OPTION_INTEGER) {
        int64_t *value = at;
        *value = *value == 0 ? r->standard : *value == -1 && r->has_minus_one ? r->minus_one : *value;
    } else if (f->type == TC_OPTION_NUMBER) {
        double *value = at;
        *value = *value == 0 ? d->standard : *value == -1 && d->has_minus_one ? d->minus_one : *value;
    } else if (f->type == TC_OPTION_SWITCH) {
        int32_t *value = at;
        *value = *value == 0 ? f->of.on : *value > 0;
    }
}

bool tc_options_complete(enum tc_options_kind kind, void *to, const void *given, torc_error **error)
{
    const struct tc_options_struct *s = &tc_options_structs[kind];
    if (!tc_options_take(kind, to, given, error))
        return false;
    for (size_t i = 0; i < s->n_fields; i++)
        field_complete(&s->fields[i], to);
    return true;
}
