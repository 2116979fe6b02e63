/* A call on its way through the HTTP filters that the config selector chose for it. Inside src/channel. */
#ifndef TC_CHANNEL_CALL_FILTERS_H
#define TC_CHANNEL_CALL_FILTERS_H

#include "channel/call.h"
#include "resolver/call_filter.h"

struct tc_call_filters;

/* Takes the call through its chain, which it has: true when it may go on to the pick now. Else it waits, and
 * tc_call_pick follows, or it has failed. */
bool tc_call_filters_start(struct tc_call *c);
/* The headers of the response as the filters leave them, last filter first. */
const struct tc_headers *tc_call_filters_response(struct tc_call *c, const struct tc_headers *headers);
/* Tells those that started that the call is over. */
void tc_call_filters_end(struct tc_call *c);
/* For a deadline that comes while a filter waits: its name. */
const char *tc_call_filters_waiting(const struct tc_call *c);
const struct tc_filter_note *tc_call_filters_notes(const struct tc_call *c);

#endif
