/* The outcome of an RPC (torc/result.h): reference-counted, for any thread. Immutable once the application has it,
 * except for the decoded response (api/typed.h). */
#ifndef TC_API_RESULT_H
#define TC_API_RESULT_H

#include "api/call_object.h"

/* Returns the result of a call that ended, with one reference for the caller. Takes a reference of its own to the
 * response (NULL: none). Never NULL: without memory, a static result of RESOURCE_EXHAUSTED. Loop thread. */
torc_result *tc_result_make(torc_stream *call, const struct tc_call_end *end, struct tc_rstr *response);
/* Returns the result of an RPC that could not start, never NULL. Takes over the error. Any thread. */
torc_result *tc_result_refused(torc_error *error);
/* tc_result_refused with an error of this code: "WHAT: the reason that the code stands for" (tc_error_set_code). */
torc_result *tc_result_refused_code(int code, const char *what);

#endif
