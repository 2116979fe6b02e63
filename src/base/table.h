/* Hash tables: uthash, with the memory of base/mem.h. The one place that includes uthash.h. A table is for one thread
 * at a time. Keys may be a peer's: the hash has a seed that the process draws at random, so that nobody outside can
 * choose keys of one bucket. A file whose keys no peer chooses may define HASH_FUNCTION before it includes
 * this one. */
#ifndef TC_BASE_TABLE_H
#define TC_BASE_TABLE_H

#include "base/hash.h"
#include "base/mem.h"

#ifndef HASH_FUNCTION
#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)tc_table_hash((key), (len)))
#endif
#define uthash_malloc(size) tc_malloc(size)
#define uthash_free(ptr, size) tc_free(ptr)
#include <uthash.h>

#endif
