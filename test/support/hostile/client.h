/* A client of hostile servers, each of which plays a row of hostile/rows.h. Asserts that RPCs have the outcome of the
 * row, mostly a status that names the cause; that the connections end and are few; that memory and CPU time stay
 * bounded, where FOOTPRINT_MEASURED; and that calls to a good backend on the same runtime are not affected. */
#ifndef TC_SUPPORT_HOSTILE_CLIENT_H
#define TC_SUPPORT_HOSTILE_CLIENT_H

#include "support/hostile/rows.h"

/* The body of a test's main: plays all rows, over plaintext or over TLS, with TLS also the rows that break TLS. If
 * $HOSTILE_ONLY is set, plays only rows whose name contains it. Returns the number of failed tests. Forks: call it
 * once, before the process has threads. */
int hostile_client_run(bool tls);

#endif
