/* What must hold in a ring and cannot be seen from outside. */
#ifndef TC_SUPPORT_RING_CHECK_H
#define TC_SUPPORT_RING_CHECK_H

#include "lb/ring_impl.h"

/* True when the ring has no margin, or one as ring_impl.h says; the ring is of those items. */
bool tc_ring_margin_right(const struct tc_ring *r, const struct tc_ring_item *items);

#endif
