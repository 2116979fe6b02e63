/* Statuses whose texts end with the resolution note: the resolver's remark about the endpoints that it found (A74,
 * A88). Any thread. */
#ifndef TC_LB_RESOLUTION_NOTE_H
#define TC_LB_RESOLUTION_NOTE_H

#include "base/status.h"

/* Returns UNAVAILABLE "text: note" of LB's layer, or "text" when the note is NULL or empty. The caller ends the
 * status. */
struct tc_status tc_lb_status_because(const char *text, const struct tc_rstr *resolution_note);
/* Returns UNAVAILABLE "text detail (note)", without the parts that are empty. The note may be NULL, `detail` may not.
 * The layer is that of `detail`, or LB's if `detail` has none. The caller ends the status. */
struct tc_status tc_lb_status_with_resolution_note(const char *text, const struct tc_status *detail,
                                                   const struct tc_rstr *resolution_note);

#endif
