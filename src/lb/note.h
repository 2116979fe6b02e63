/* Texts of failures that the resolution note belongs to (A74, A88). */
#ifndef TC_LB_NOTE_H
#define TC_LB_NOTE_H

#include "base/status.h"

/* UNAVAILABLE "text: note", or "text" when there is no note. The caller owns it. */
struct tc_status tc_lb_status_because(const char *text, const struct tc_rstr *note);
/* UNAVAILABLE "text detail (note)", or without what is NULL. */
struct tc_status tc_lb_status_with_note(const char *text, const char *detail, const struct tc_rstr *note);

#endif
