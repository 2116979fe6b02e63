/* A certificate made on the spot, for servers of benchmarks that speak TLS. */
#ifndef TORC_BENCH_CERTIFICATE_H
#define TORC_BENCH_CERTIFICATE_H

#include <stdbool.h>
#include <stdio.h>

/* Writes in PEM form a certificate of 127.0.0.1 and localhost, P-256, signed by itself and good for a day, and its key.
 * False with a message on stderr. */
bool certificate_write(FILE *to);

#endif
