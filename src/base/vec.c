#include "base/vec.h"

void *tc_vec_grow(void *data, size_t len, size_t *cap, size_t size)
{
    if (len == *cap) {
        *cap = *cap ? *cap * 2 : 4;
        data = tc_reallocarray(data, *cap, size);
    }
    memset((char *)data + len * size, 0, size);
    return data;
}
