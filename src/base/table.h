/* Hash tables: uthash, with the memory of base/mem.h. The one place that includes uthash.h. A table is for one thread
 * at a time. */
#ifndef TC_BASE_TABLE_H
#define TC_BASE_TABLE_H

#include "base/mem.h"

#define uthash_malloc(size) tc_malloc(size)
#define uthash_free(ptr, size) tc_free(ptr)
#include <uthash.h>

#endif
