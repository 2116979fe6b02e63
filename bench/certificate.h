/* A certificate made on the spot, for TLS servers of benchmarks. Any thread. */
#ifndef TORC_BENCH_CERTIFICATE_H
#define TORC_BENCH_CERTIFICATE_H

#include <stdbool.h>
#include <stdio.h>

/* Writes a self-signed P-256 certificate for 127.0.0.1 and localhost, valid from an hour ago until a day from now, and
 * then its key, both in PEM. Flushes `to`, which stays open. Returns false if that fails, with OpenSSL's errors, if
 * any, on stderr; `to` may have a part then. */
bool certificate_write(FILE *to);

#endif
