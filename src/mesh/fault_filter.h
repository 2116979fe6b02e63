/* Fault injection (A33): delays RPCs and ends them, by settings or as the RPC's own metadata asks. */
#ifndef TC_MESH_FAULT_FILTER_H
#define TC_MESH_FAULT_FILTER_H

#include "mesh/http_filters.h"

extern const struct tc_http_filter_class tc_fault_filter_class;

#endif
