/* Load reports of backends (ORCA) as bytes, packed by protobuf-c. */
#ifndef TC_SUPPORT_KITS_ORCA_H
#define TC_SUPPORT_KITS_ORCA_H

#include "base/buf.h"
#include "base/mem.h"
#include "pb/xds/data/orca/v3/orca_load_report.pb-c.h"

/* The values of a report; qps goes into rps_fractional. The report has one entry, `name` with the value `named`: in
 * utilization if is_utilization is set, otherwise in named_metrics. Without a name (NULL) it has no entry. */
struct kit_orca {
    double cpu, mem, app, qps, eps;
    const char *name;
    double named;
    bool is_utilization;
};

/* Replaces the content of `out` by the report's bytes, and returns them, borrowed from `out`. */
static inline struct tc_slice kit_orca_pack(const struct kit_orca *in, struct tc_buf *out)
{
    Xds__Data__Orca__V3__OrcaLoadReport m = XDS__DATA__ORCA__V3__ORCA_LOAD_REPORT__INIT;
    Xds__Data__Orca__V3__OrcaLoadReport__NamedMetricsEntry
        named = XDS__DATA__ORCA__V3__ORCA_LOAD_REPORT__NAMED_METRICS_ENTRY__INIT,
        *nameds = &named;
    Xds__Data__Orca__V3__OrcaLoadReport__UtilizationEntry
        use = XDS__DATA__ORCA__V3__ORCA_LOAD_REPORT__UTILIZATION_ENTRY__INIT,
        *uses = &use;
    m.cpu_utilization = in->cpu;
    m.mem_utilization = in->mem;
    m.application_utilization = in->app;
    m.rps_fractional = in->qps;
    m.eps = in->eps;
    named.key = use.key = (char *)(uintptr_t)in->name;
    named.value = use.value = in->named;
    if (in->name && in->is_utilization) {
        m.n_utilization = 1;
        m.utilization = &uses;
    } else if (in->name) {
        m.n_named_metrics = 1;
        m.named_metrics = &nameds;
    }
    size_t n = xds__data__orca__v3__orca_load_report__get_packed_size(&m);
    uint8_t *bytes = tc_malloc(n + 1);
    xds__data__orca__v3__orca_load_report__pack(&m, bytes);
    tc_buf_clear(out);
    tc_buf_append(out, bytes, n);
    tc_free(bytes);
    return tc_buf_slice(out);
}

#endif
