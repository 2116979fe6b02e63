/* The table of Maglev as Envoy builds it, written from its description: a vector of places, a remainder of a division
 * for each step of a permutation, a look at each host in each round. */
#ifndef TORC_BENCH_MODULO_MAGLEV_H
#define TORC_BENCH_MODULO_MAGLEV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills table[0..size) with the indexes of n hosts; key_len[i] bytes of keys[i] and the part weights[i]. */
void modulo_maglev(const char *const *keys, const size_t *key_len, const double *weights, size_t n, uint32_t *table,
                   uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
