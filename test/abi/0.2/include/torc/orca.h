/* Reports of a server's load to its clients: ORCA, gRFC A51. SPDX-License-Identifier: Apache-2.0
 *
 *     torc_orca *orca = torc_orca_new(server, 0, &error); // before torc_server_start
 *     torc_orca_set(orca, TORC_ORCA_CPU, NULL, 0.7);      // now and then, from any thread
 *     ...
 *     torc_orca_record(call, TORC_ORCA_REQUEST_COST, "rows", 1200); // in a handler, before the call is finished
 *     ...
 *     torc_orca_free(orca);
 *
 * Clients get reports in two ways. With the end of each RPC for which a value was recorded: the trailer
 * endpoint-load-metrics-bin has the RPC's values and the server's. And out of band: the service
 * xds.service.orca.v3.OpenRcaService sends all values of the server at the interval that a client asks for.
 * weighted_round_robin uses the reports, and clients pass them on to control planes (LRS). Any thread. In a child of a
 * fork the handle is the parent's: torc_orca_set and torc_orca_clear return TORC_EFORK, and torc_orca_free does
 * nothing. In a library that was built without servers (TORC_SERVERS=off) the functions of this header are missing. */
#ifndef TORC_ORCA_H
#define TORC_ORCA_H

#include <torc/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The load of one server. */
typedef struct torc_orca torc_orca;

/* The values that a report may have, by the numbers of the fields of xds.data.orca.v3.OrcaLoadReport. Later versions
 * may add numbers. */
enum torc_orca_metric {
    TORC_ORCA_CPU = 1,          /* a share of what there is; above 1: more than is allotted */
    TORC_ORCA_MEMORY = 2,       /* a share, 0 to 1 */
    TORC_ORCA_REQUEST_COST = 4, /* by name, of one RPC alone: any unit */
    TORC_ORCA_UTILIZATION = 5,  /* by name: a share of a resource, 0 to 1 */
    TORC_ORCA_RPS = 6,          /* requests a second */
    TORC_ORCA_EPS = 7,          /* errors a second */
    TORC_ORCA_NAMED = 8,        /* by name: any unit */
    TORC_ORCA_APPLICATION = 9,  /* what the application counts as its load; above 1: overloaded */
};

/* Begins the reports of a server, which has no values yet. min_interval_ms: the shortest interval of reports out of
 * band; 0: 30000; -1: the service is not added, and reports come only with RPCs (torc_orca_record). Returns NULL with
 * an error: TORC_EINVAL (an interval below -1), TORC_EEXIST (the server has reports), and those of
 * torc_server_add_method. The caller frees the handle, before or after the server.
 *
 * When the server begins to stop, the streams of the service end with UNAVAILABLE. Limits of "*" and of
 * "xds.service.orca.v3.OpenRcaService" hold for the service, except their pool, which is not used; a request has 4 KiB
 * at most unless the limits set another size. A client that asks for an interval above 1,000,000 s (eleven days)
 * gets a report every 1,000,000 s. With an error nothing of the service is added. */
TORC_API torc_orca *torc_orca_new(torc_server *server, int64_t min_interval_ms, torc_error **error);

/* Sets a value of the server, which replaces an earlier one of the same metric and name. `name` is copied; NULL for
 * metrics without names. Returns 0; or an error, and nothing changes: TORC_EINVAL (a metric that is unknown or of one
 * RPC alone, a name that is missing, not UTF-8 or above 256 bytes, a name for a metric without names, a value that is
 * negative, infinite, not a number, or above 1 for a metric of 0 to 1), TORC_ELIMIT (more than 256 values),
 * TORC_EFORK. */
TORC_API int torc_orca_set(torc_orca *orca, int metric, const char *name, double value);

/* Drops a value of the server. Returns 0; TORC_EINVAL and TORC_EFORK as torc_orca_set; TORC_ENOTFOUND if the value is
 * not set. */
TORC_API int torc_orca_clear(torc_orca *orca, int metric, const char *name);

/* Records a value of one RPC, for the report at its end. That report has the values of the RPC, and those of the server
 * that the RPC has not recorded itself. An RPC without a recorded value has no report. Trailers of the application with
 * an "endpoint-load-metrics-bin" stay as they are. A server without a torc_orca reports recorded values, too. Any
 * metric may be recorded. Returns 0, the errors of torc_orca_set, TORC_ESTATE (the call was finished), TORC_ECANCELED,
 * or TORC_ECLOSED. */
TORC_API int torc_orca_record(torc_server_call *call, int metric, const char *name, double value);

/* Gives the handle up; the server goes on reporting the values that it has. NULL is allowed. */
TORC_API void torc_orca_free(torc_orca *orca);

#ifdef __cplusplus
}
#endif
#endif
