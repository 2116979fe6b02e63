#include "lb/resolution_note.h"

#include "base/buf.h"

struct tc_status tc_lb_status_because(const char *text, const struct tc_rstr *resolution_note)
{
    bool any = resolution_note && resolution_note->len;
    return tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "%s%s%s", text, any ? ": " : "",
                          tc_rstr_cstr(resolution_note));
}

struct tc_status tc_lb_status_with_resolution_note(const char *text, const struct tc_status *detail,
                                                   const struct tc_rstr *resolution_note)
{
    const char *why = tc_status_text(detail);
    bool any = resolution_note && resolution_note->len;
    return tc_status_make(TORC_STATUS_UNAVAILABLE, detail->layer ? detail->layer : TORC_LAYER_LB, "%s%s%s%s%s%s", text,
                          *why && *text ? " " : "", why, any ? " (" : "", tc_rstr_cstr(resolution_note),
                          any ? ")" : "");
}
