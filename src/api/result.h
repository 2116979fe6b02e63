/* Outcomes of calls as torc_result. Loop thread. */
#ifndef TC_API_RESULT_H
#define TC_API_RESULT_H

#include "api/call_object.h"

/* The outcome in memory that torc_result_fini frees. Takes over the response. */
void tc_result_own(struct torc_result *r, torc_call *call, const struct tc_call_end *end, struct tc_rstr *response);
/* The outcome in the call's arena, for the length of a callback. */
void tc_result_borrow(struct torc_result *r, torc_call *call, const struct tc_call_end *end, struct tc_rstr *response);

#endif
