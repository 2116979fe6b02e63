/* The fault injection filter's settings (A33): envoy.extensions.filters.http.fault.v3.HTTPFault. Any thread. */
#ifndef TC_XDS_RESOURCE_FAULT_FILTER_H
#define TC_XDS_RESOURCE_FAULT_FILTER_H

#include "xds/resource/http_filter.h"

/* A share of the RPCs: numerator * unit millionths, at most all RPCs. The numerator is any number, so the product needs
 * 64 bits. A header of an RPC may lower the numerator alone. */
struct tc_fault_share {
    uint32_t numerator;
    uint32_t unit; /* 10000 for hundredths, 100 for ten-thousandths, 1 for millionths; 0: no share given */
};

enum tc_fault_delay { TC_FAULT_NO_DELAY, TC_FAULT_FIXED_DELAY, TC_FAULT_HEADER_DELAY };
enum tc_fault_abort { TC_FAULT_NO_ABORT, TC_FAULT_GRPC_ABORT, TC_FAULT_HTTP_ABORT, TC_FAULT_HEADER_ABORT };

struct tc_fault_config {
    enum tc_fault_delay delay;
    uint64_t delay_ns; /* FIXED */
    struct tc_fault_share delay_share;
    enum tc_fault_abort abort;
    uint32_t abort_status; /* GRPC: 0 to 16; HTTP: any number */
    struct tc_fault_share abort_share;
    uint32_t max_active; /* faults at a time in the process; 0: none; UINT32_MAX: any number */
};

/* Both `parse` and `parse_override` of struct tc_http_filter_type, since config and override are the same message.
 * Returns a struct tc_fault_config, kept by the decoder's arena; NULL with errors. */
const void *tc_fault_config_parse(const struct tc_http_filter_type *type, struct tc_slice config,
                                  struct tc_decoder *dec);

#endif
