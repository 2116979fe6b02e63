/* Fault injection (A33): delays RPCs and fails them, as the filter's settings say. Settings may leave delay and status
 * to the RPC's metadata. RPCs: loop thread only; the parsing of settings: any thread. */
#ifndef TC_XDS_FILTER_FAULT_FILTER_H
#define TC_XDS_FILTER_FAULT_FILTER_H

#include "xds/filter/filter_chain.h"

extern const struct tc_http_filter_type tc_http_filter_fault;

#endif
