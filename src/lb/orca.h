/* ORCA (A51): the reports in which a backend says how loaded it is, with the end of an RPC or out of band. They are
 * messages of xds.data.orca.v3.OrcaLoadReport, read from the wire as they stand. Reading is for any thread, watches for
 * the loop's. */
#ifndef TC_LB_ORCA_H
#define TC_LB_ORCA_H

#include "base/headers.h"
#include "lb/side_stream.h"

/* The fields of a report. Named fields are maps; a name may come twice, and then its last value counts. */
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
    uint64_t field;       /* enum tc_orca_field, or the number of another field of doubles */
    struct tc_slice name; /* empty for fields without names; valid UTF-8 */
    double value;
};

/* Takes the next value off the front of a report. Returns false with rest->len 0 at the end of the report. Returns
 * false with bytes left where the report is malformed: then none of its values count, the earlier ones neither. */
bool tc_orca_next(struct tc_slice *rest, struct tc_orca_value *out);

/* Returns the report in an RPC's trailers (NULL: there are none), borrowed. The slice's data is NULL if the trailers
 * have no report, or more than one. */
struct tc_slice tc_orca_of_trailers(const struct tc_headers *trailers);

/* Reports out of band: the stream xds.service.orca.v3.OpenRcaService/StreamCoreMetrics of a subchannel's connection,
 * whose interval is the shortest of its watches. The owner sets side.kind to tc_orca_reports, and interval_ms. */
struct tc_orca_watch {
    struct tc_side_watch side;
    uint64_t interval_ms; /* 0: as often as the server has it */
};

extern const struct tc_side_kind tc_orca_reports;

#endif
