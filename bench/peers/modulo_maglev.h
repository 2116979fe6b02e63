/* Maglev's table as Envoy builds it, written from its description: a vector of slots. Each round goes over all hosts,
 * and each step of a host's permutation takes the remainder of a division. */
#ifndef TORC_BENCH_MODULO_MAGLEV_H
#define TORC_BENCH_MODULO_MAGLEV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills table[0..size) with the indexes of n hosts. Host i has the key of key_len[i] bytes at keys[i], which needs no
 * NUL, and the weight weights[i], which is above 0. n must not be 0; size must be a prime. Keeps no argument. */
void modulo_maglev(const char *const *keys, const size_t *key_len, const double *weights, size_t n, uint32_t *table,
                   uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
