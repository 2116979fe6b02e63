/* Decodes the fault injection filter's config (A33). xds/filter/fault_filter.c applies it to RPCs.
 *
 * A percentage stays split into numerator and unit: headers of an RPC may lower the numerator alone. An absent
 * max_active_faults means no limit, 0 means no faults. */
#include "xds/resource/fault_filter.h"

#include <torc/status.h>

#include "pb/envoy/extensions/filters/http/fault/v3/fault.pb-c.h"
#include "xds/resource/decoder.h"

typedef Envoy__Extensions__Filters__Http__Fault__V3__HTTPFault HttpFault;
typedef Envoy__Extensions__Filters__Http__Fault__V3__FaultAbort FaultAbort;
typedef Envoy__Extensions__Filters__Common__Fault__V3__FaultDelay FaultDelay;

#define DELAY(x) ENVOY__EXTENSIONS__FILTERS__COMMON__FAULT__V3__FAULT_DELAY__FAULT_DELAY_SECIFIER_##x
#define ABORT(x) ENVOY__EXTENSIONS__FILTERS__HTTP__FAULT__V3__FAULT_ABORT__ERROR_TYPE_##x

/* A33: an absent percentage means 0. */
static void decode_share(struct tc_decoder *dec, const Envoy__Type__V3__FractionalPercent *f,
                         struct tc_fault_share *out)
{
    Envoy__Type__V3__FractionalPercent one = ENVOY__TYPE__V3__FRACTIONAL_PERCENT__INIT;
    if (!f)
        return;
    one.numerator = 1;
    one.denominator = f->denominator;
    if (tc_decode_fraction(dec, ".percentage", &one, &out->unit))
        out->numerator = f->numerator;
}

static void decode_delay(struct tc_decoder *dec, const FaultDelay *m, struct tc_fault_config *out)
{
    if (!m)
        return;
    tc_validation_push(dec->errors, ".delay");
    if (m->fault_delay_secifier_case == DELAY(FIXED_DELAY)) {
        out->delay = TC_FAULT_FIXED_DELAY;
        tc_decode_duration_ns(dec, ".fixed_delay", m->fixed_delay, &out->delay_ns);
    } else if (m->fault_delay_secifier_case == DELAY(HEADER_DELAY)) {
        out->delay = TC_FAULT_HEADER_DELAY;
    }
    decode_share(dec, m->percentage, &out->delay_share);
    tc_validation_pop(dec->errors);
}

static void decode_abort(struct tc_decoder *dec, const FaultAbort *m, struct tc_fault_config *out)
{
    if (!m)
        return;
    tc_validation_push(dec->errors, ".abort");
    if (m->error_type_case == ABORT(GRPC_STATUS)) {
        out->abort = TC_FAULT_GRPC_ABORT;
        out->abort_status = m->grpc_status;
        if (m->grpc_status > TORC_STATUS_UNAUTHENTICATED)
            tc_validation_add_at(dec->errors, ".grpc_status", "invalid gRPC status code: %u", m->grpc_status);
    } else if (m->error_type_case == ABORT(HTTP_STATUS)) {
        out->abort = TC_FAULT_HTTP_ABORT;
        out->abort_status = m->http_status;
    } else if (m->error_type_case == ABORT(HEADER_ABORT)) {
        out->abort = TC_FAULT_HEADER_ABORT;
    }
    decode_share(dec, m->percentage, &out->abort_share);
    tc_validation_pop(dec->errors);
}

const void *tc_fault_config_parse(const struct tc_http_filter_type *type, struct tc_slice config,
                                  struct tc_decoder *dec)
{
    (void)type;
    size_t errors = dec->errors->count;
    const HttpFault *m =
        TC_DECODE(dec, &envoy__extensions__filters__http__fault__v3__httpfault__descriptor, HttpFault, config);
    if (!m)
        return NULL;
    struct tc_fault_config *out = TC_RESOURCE_NEW(dec->arena, struct tc_fault_config);
    out->max_active = m->max_active_faults ? m->max_active_faults->value : UINT32_MAX;
    decode_delay(dec, m->delay, out);
    decode_abort(dec, m->abort, out);
    return dec->errors->count == errors ? out : NULL;
}
