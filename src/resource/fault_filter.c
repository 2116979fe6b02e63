#include "resource/fault_filter.h"

#include <torc/status.h>

#include "pb/envoy/extensions/filters/http/fault/v3/fault.pb-c.h"
#include "resource/reading.h"

typedef Envoy__Extensions__Filters__Http__Fault__V3__HTTPFault HttpFault;
typedef Envoy__Extensions__Filters__Http__Fault__V3__FaultAbort FaultAbort;
typedef Envoy__Extensions__Filters__Common__Fault__V3__FaultDelay FaultDelay;

#define DELAY(x) ENVOY__EXTENSIONS__FILTERS__COMMON__FAULT__V3__FAULT_DELAY__FAULT_DELAY_SECIFIER_##x
#define ABORT(x) ENVOY__EXTENSIONS__FILTERS__HTTP__FAULT__V3__FAULT_ABORT__ERROR_TYPE_##x

/* Absent: no RPC. */
static void read_share(struct tc_reading *p, const Envoy__Type__V3__FractionalPercent *f, struct tc_fault_share *out)
{
    Envoy__Type__V3__FractionalPercent one = ENVOY__TYPE__V3__FRACTIONAL_PERCENT__INIT;
    if (!f)
        return;
    tc_faults_push(p->faults, ".percentage");
    one.numerator = 1;
    one.denominator = f->denominator;
    if (tc_read_fraction(p, &one, &out->unit))
        out->numerator = f->numerator;
    tc_faults_pop(p->faults);
}

static void read_delay(struct tc_reading *p, const FaultDelay *m, struct tc_fault_config *out)
{
    if (!m)
        return;
    tc_faults_push(p->faults, ".delay");
    if (m->fault_delay_secifier_case == DELAY(FIXED_DELAY)) {
        out->delay = TC_FAULT_FIXED_DELAY;
        tc_faults_push(p->faults, ".fixed_delay");
        tc_read_duration_ns(p, m->fixed_delay, &out->delay_ns);
        tc_faults_pop(p->faults);
    } else if (m->fault_delay_secifier_case == DELAY(HEADER_DELAY)) {
        out->delay = TC_FAULT_HEADER_DELAY;
    }
    read_share(p, m->percentage, &out->delay_share);
    tc_faults_pop(p->faults);
}

static void read_abort(struct tc_reading *p, const FaultAbort *m, struct tc_fault_config *out)
{
    if (!m)
        return;
    tc_faults_push(p->faults, ".abort");
    if (m->error_type_case == ABORT(GRPC_STATUS)) {
        out->abort = TC_FAULT_GRPC_ABORT;
        out->abort_status = m->grpc_status;
        if (m->grpc_status > TORC_STATUS_UNAUTHENTICATED)
            tc_faults_add_at(p->faults, ".grpc_status", "invalid gRPC status code: %u", m->grpc_status);
    } else if (m->error_type_case == ABORT(HTTP_STATUS)) {
        out->abort = TC_FAULT_HTTP_ABORT;
        out->abort_status = m->http_status;
    } else if (m->error_type_case == ABORT(HEADER_ABORT)) {
        out->abort = TC_FAULT_HEADER_ABORT;
    }
    read_share(p, m->percentage, &out->abort_share);
    tc_faults_pop(p->faults);
}

static const void *parse(const struct tc_http_filter_type *type, struct tc_slice config, struct tc_reading *p)
{
    (void)type;
    size_t faults = p->faults->count;
    const HttpFault *m =
        TC_READ(p, &envoy__extensions__filters__http__fault__v3__httpfault__descriptor, HttpFault, config);
    if (!m)
        return NULL;
    struct tc_fault_config *out = TC_STORE_NEW(p->store, struct tc_fault_config);
    out->max_active = m->max_active_faults ? m->max_active_faults->value : UINT32_MAX;
    read_delay(p, m->delay, out);
    read_abort(p, m->abort, out);
    return p->faults->count == faults ? out : NULL;
}

const struct tc_http_filter_type tc_http_filter_fault = {
    .config_name = "envoy.extensions.filters.http.fault.v3.HTTPFault",
    .override_name = "envoy.extensions.filters.http.fault.v3.HTTPFault",
    .on_clients = true,
    .parse = parse,
    .parse_override = parse,
};
