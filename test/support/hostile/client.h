/* A client of hostile servers, each of which plays a row. It asserts that the RPC has the outcome of the row, mostly a
 * status that names the cause; that the connections end; that memory, CPU time and the number of connections stay
 * bounded; and that calls to another backend over the same loop are not affected. */
#ifndef TC_SUPPORT_HOSTILE_CLIENT_H
#define TC_SUPPORT_HOSTILE_CLIENT_H

#include "support/hostile/rows.h"

/* The main function of a test: plays all rows, over plaintext or TLS (then also the rows that break TLS). If
 * $HOSTILE_ONLY is set, only rows whose name contains it are played. Returns the number of failed tests. */
int hostile_client_run(bool tls);

#endif
