/* A call on its way through the HTTP filters that the config selector chose for it (A39). Loop thread only. */
#ifndef TC_CHANNEL_CALL_FILTERS_H
#define TC_CHANNEL_CALL_FILTERS_H

#include "resolver/call_filter.h"

/* Lives in the call's arena. */
struct tc_call_filters;

/* Prepares the walk, in call->arena. `call` is copied; its arena, path, metadata and config are borrowed for the walk's
 * life, `chain` until tc_call_filters_end. `dry`: the call is explained and not sent, so that nothing waits. `resumed`
 * comes when a call that had to wait has passed all filters (NEXT) or was refused (FAIL). */
struct tc_call_filters *tc_call_filters_new(struct tc_filter_chain *chain, const struct tc_filter_call *call, bool dry,
                                            void (*resumed)(void *arg, enum tc_filter_verdict verdict), void *arg);
/* Takes the call through the chain, once. Returns NEXT if the call has passed; WAIT if `resumed` follows; FAIL if
 * tc_call_filters_take_status says why. */
enum tc_filter_verdict tc_call_filters_start(struct tc_call_filters *f);
/* Returns the status of FAIL, which the caller takes over. */
struct tc_status tc_call_filters_take_status(struct tc_call_filters *f);
/* Returns the headers of the response as the filters leave them, last filter first: `headers`, or others in the arena.
 * `peer`: text of the backend's address, borrowed for the walk's life. */
const struct tc_headers *tc_call_filters_response(struct tc_call_filters *f, const struct tc_headers *headers,
                                                  struct tc_rstr *peer);
/* Tells the filters that started that the call is over, once. Only tc_call_filters_notes may be called after it. */
void tc_call_filters_end(struct tc_call_filters *f);
/* Returns the name of the filter that has the call wait, copied to the call's arena. */
const char *tc_call_filters_waiting(const struct tc_call_filters *f);
/* Returns the list of the filters' actions, for `torc call --explain`. NULL is allowed. */
const struct tc_filter_note *tc_call_filters_notes(const struct tc_call_filters *f);

#endif
