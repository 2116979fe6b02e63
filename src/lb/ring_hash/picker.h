/* The picker of ring_hash. Loop thread only. */
#ifndef TC_LB_RING_HASH_PICKER_H
#define TC_LB_RING_HASH_PICKER_H

#include "lb/ring_hash/endpoints.h"

/* Returns a picker over the set, of which it takes a reference. The set must have its ring. */
struct tc_picker *tc_rh_picker_new(struct tc_rh_set *set);

#endif
