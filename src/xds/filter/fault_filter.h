/* Fault injection (A33): delays RPCs and ends them, by settings or as the RPC's own metadata asks. Loop thread only. */
#ifndef TC_XDS_FILTER_FAULT_FILTER_H
#define TC_XDS_FILTER_FAULT_FILTER_H

#include "xds/filter/filter_chain.h"

extern const struct tc_http_filter_type tc_http_filter_fault;

#endif
