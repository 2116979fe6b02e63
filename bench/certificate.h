/* A certificate made on the spot, for TLS servers of benchmarks. */
#ifndef TORC_BENCH_CERTIFICATE_H
#define TORC_BENCH_CERTIFICATE_H

#include <stdbool.h>
#include <stdio.h>

/* Writes a self-signed P-256 certificate for 127.0.0.1 and localhost, valid for a day, and its key, both PEM. Returns
 * false with a message on stderr. */
bool certificate_write(FILE *to);

#endif
