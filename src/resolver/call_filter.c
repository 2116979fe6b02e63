/* Notes of HTTP filters, for `torc call --explain`. */
#include "resolver/call_filter.h"

#include <stdarg.h>

void tc_filter_note(const struct tc_call_filter *f, struct tc_filter_call *call, const char *fmt, ...)
{
    struct tc_buf text = {0};
    va_list args;
    va_start(args, fmt);
    tc_buf_vprintf(&text, fmt, args);
    va_end(args);
    struct tc_filter_note *note = tc_arena_alloc(call->arena, sizeof(*note));
    *note = (struct tc_filter_note){
        .filter = tc_slice_of(tc_arena_dup(call->arena, f->name), f->name.len),
        .text = tc_slice_of(tc_arena_dup(call->arena, tc_buf_slice(&text)), text.len),
    };
    tc_buf_fini(&text);
    struct tc_filter_note **at = &call->notes;
    while (*at)
        at = &(*at)->next;
    *at = note;
}
