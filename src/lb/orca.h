/* ORCA (A51): the reports in which a backend says how loaded it is, with the end of an RPC or out of band. They are
 * messages of xds.data.orca.v3.OrcaLoadReport, read field by field from their bytes. Reading: any thread. Watches: loop
 * thread only. */
#ifndef TC_LB_ORCA_H
#define TC_LB_ORCA_H

#include "base/headers.h"
#include "lb/side_stream.h"

/* The numbers of the fields of a report. Named fields are maps: tc_orca_next takes one entry at a time. A field or a
 * name may come twice: the last value counts. */
enum tc_orca_field {
    TC_ORCA_CPU = 1,
    TC_ORCA_MEM = 2,
    TC_ORCA_REQUEST_COST = 4, /* named */
    TC_ORCA_UTILIZATION = 5,  /* named */
    TC_ORCA_QPS = 6,
    TC_ORCA_EPS = 7,
    TC_ORCA_NAMED = 8, /* named */
    TC_ORCA_APPLICATION = 9,
};

struct tc_orca_value {
    uint64_t field;       /* enum tc_orca_field, or the number of an unknown field of 64 bits */
    struct tc_slice name; /* points into the report; empty for fields without names; UTF-8 without NUL */
    double value;         /* the backend's: any double, NaN included; 0 for a map's entry without a value */
};

/* Takes the next value off the front of a report. Returns false with rest->len 0 at the end of the report. Returns
 * false with bytes left where the report is malformed: the caller must then ignore the earlier values, too. */
bool tc_orca_next(struct tc_slice *rest, struct tc_orca_value *out);

/* Returns the report in an RPC's trailers (NULL: there are none), borrowed. The slice's data is NULL if the trailers
 * have no report, or more than one. */
struct tc_slice tc_orca_of_trailers(const struct tc_headers *trailers);

/* A watch of the reports out of band, from the stream xds.service.orca.v3.OpenRcaService/StreamCoreMetrics on a
 * subchannel's connection. The stream asks for the shortest interval of its watches. The owner sets interval_ms, and
 * `side` as lb/side_stream.h says, with the kind tc_orca_reports. */
struct tc_orca_watch {
    struct tc_side_watch side;
    uint64_t interval_ms; /* 0: as often as the server likes */
};

extern const struct tc_side_kind tc_orca_reports;

#endif
