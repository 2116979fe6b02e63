/* A typed growable array, for one thread at a time. The macros evaluate their arguments several times.
 *     TC_VEC(int) v = {0};  *tc_vec_push(&v) = 7;  for (size_t i = 0; i < v.len; i++) use(v.data[i]);  tc_vec_fini(&v);
 */
#ifndef TC_BASE_VEC_H
#define TC_BASE_VEC_H

#include <string.h>

#include "base/mem.h"

#define TC_VEC(type)                                                                                                   \
    struct {                                                                                                           \
        type *data;                                                                                                    \
        size_t len, cap;                                                                                               \
    }

/* Adds a zeroed element at the end. Gives the element's address, which is good until the array changes again. */
#define tc_vec_push(v)                                                                                                 \
    ((v)->data = tc_vec_grow((v)->data, (v)->len, &(v)->cap, sizeof(*(v)->data)), &(v)->data[(v)->len++])

#define tc_vec_fini(v) (tc_free((v)->data), (v)->data = NULL, (v)->len = (v)->cap = 0)

/* Removes element i, keeping the order of the rest. */
#define tc_vec_remove(v, i)                                                                                            \
    (memmove(&(v)->data[i], &(v)->data[(i) + 1], ((v)->len - (i)-1) * sizeof(*(v)->data)), (v)->len--)

/* For tc_vec_push: makes room for one more element of `size` bytes, and zeroes the element. Returns `data`, or its new
 * place. */
void *tc_vec_grow(void *data, size_t len, size_t *cap, size_t size);

#endif
