/* Pairs of blocks that live in one mapping of five pages: a small one of up to TC_TWIN_SMALL bytes, and a large one of
 * up to TC_TWIN_LARGE bytes of which little more than the start is ever touched. The large one starts at the end of the
 * page that the small one fills, so that both cost one page of memory in place of two or three. An HTTP/2 session is
 * such a pair: its state, and the buffer for a whole frame of which idle connections use the first bytes. One thread.
 */
#ifndef TC_BASE_TWIN_H
#define TC_BASE_TWIN_H

#include "base/common.h"

/* What is asked for lies between these, or it is not worth a mapping. */
#define TC_TWIN_SMALL_LEAST 2500u
#define TC_TWIN_SMALL 3328u
#define TC_TWIN_LARGE_LEAST 16384u
#define TC_TWIN_LARGE 16624u

struct tc_twins {
    struct tc_twin *no_small, *no_large; /* mappings of which the one or the other is free */
};

/* Zeroed, aligned to 16 bytes; NULL when the system refuses. */
void *tc_twin_take_small(struct tc_twins *t);
/* Holds anything, aligned likewise. */
void *tc_twin_take_large(struct tc_twins *t);
/* Each goes back as what it is. When both are back the mapping goes back to the system. */
void tc_twin_give_small(struct tc_twins *t, void *block);
void tc_twin_give_large(struct tc_twins *t, void *block);

#endif
