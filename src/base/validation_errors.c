/* A parser pushes a segment for each level that it enters, and most messages have no error. So a segment is kept as a
 * literal and an index, and becomes text only when the path is needed: `shown` segments of the path are text, the rest
 * are not. A segment that is pushed in printf form is text at once, and so are the segments before it.
 *
 * Without `report`, the text of all errors together is cut at max_text_bytes; the count goes on. */
#include "base/validation_errors.h"

enum { DEFAULT_MAX_TEXT = 8192 };

void tc_validation_fini(struct tc_validation_errors *e)
{
    tc_buf_fini(&e->path);
    tc_buf_fini(&e->text);
    tc_vec_fini(&e->segments);
}

/* Called when a segment was appended to the path at `mark`: counts it as shown, and drops a '.' at the very start. */
static void segment_shown(struct tc_validation_errors *e, size_t mark)
{
    if (mark == 0 && e->path.len && e->path.data[0] == '.')
        tc_buf_consume(&e->path, 1);
    e->shown++;
}

struct tc_slice tc_validation_path(struct tc_validation_errors *e)
{
    while (e->shown < e->segments.len) {
        struct tc_validation_segment *s = &e->segments.data[e->shown];
        s->mark = e->path.len;
        tc_buf_append_str(&e->path, s->field);
        if (s->index != SIZE_MAX)
            tc_buf_printf(&e->path, "[%zu]", s->index);
        segment_shown(e, s->mark);
    }
    return tc_buf_slice(&e->path);
}

void tc_validation_push_index(struct tc_validation_errors *e, const char *field, size_t index)
{
    *tc_vec_push(&e->segments) = (struct tc_validation_segment){.field = field, .index = index};
}

void tc_validation_push_field(struct tc_validation_errors *e, const char *field)
{
    tc_validation_push_index(e, field, SIZE_MAX);
}

static void path_push_v(struct tc_validation_errors *e, const char *fmt, va_list ap)
{
    size_t mark = tc_validation_path(e).len;
    *tc_vec_push(&e->segments) = (struct tc_validation_segment){.mark = mark};
    tc_buf_vprintf(&e->path, fmt, ap);
    segment_shown(e, mark);
}

void tc_validation_push(struct tc_validation_errors *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    path_push_v(e, fmt, ap);
    va_end(ap);
}

void tc_validation_push_key(struct tc_validation_errors *e, const char *field, const char *key)
{
    struct tc_buf b = {0};
    for (; *key; key++) {
        if (*key == '"' || *key == '\\')
            tc_buf_append_char(&b, '\\');
        if ((unsigned char)*key < ' ')
            tc_buf_printf(&b, "\\u%04x", (unsigned)*key);
        else
            tc_buf_append_char(&b, *key);
    }
    tc_validation_push(e, "%s[\"%s\"]", field, tc_buf_cstr(&b));
    tc_buf_fini(&b);
}

void tc_validation_pop(struct tc_validation_errors *e)
{
    e->segments.len--;
    if (e->shown <= e->segments.len)
        return;
    e->shown--;
    e->path.len = e->segments.data[e->segments.len].mark;
}

static void error_add_v(struct tc_validation_errors *e, const char *fmt, va_list ap)
{
    size_t max = e->max_text_bytes ? e->max_text_bytes : DEFAULT_MAX_TEXT;
    e->count++;
    if (e->report) {
        tc_buf_vprintf(&e->text, fmt, ap);
        e->report(e->arg, tc_validation_path(e), tc_buf_slice(&e->text));
        tc_buf_clear(&e->text);
        return;
    }
    if (e->cut)
        return;
    if (e->text.len)
        tc_buf_append_str(&e->text, "; ");
    struct tc_slice path = tc_validation_path(e);
    if (path.len) {
        tc_buf_append_str(&e->text, "field ");
        tc_buf_append_slice(&e->text, path);
        tc_buf_append_str(&e->text, ": ");
    }
    tc_buf_vprintf(&e->text, fmt, ap);
    if (e->text.len > max) {
        /* Cut before a UTF-8 character, not inside of it. */
        size_t cut = max, least = max > 3 ? max - 3 : 0;
        while (cut > least && ((unsigned char)e->text.data[cut] & 0xc0) == 0x80)
            cut--;
        e->text.len = cut;
        tc_buf_append_str(&e->text, "...");
        e->cut = true;
    }
}

void tc_validation_add(struct tc_validation_errors *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    error_add_v(e, fmt, ap);
    va_end(ap);
}

void tc_validation_add_at(struct tc_validation_errors *e, const char *field, const char *fmt, ...)
{
    tc_validation_push(e, "%s", field);
    va_list ap;
    va_start(ap, fmt);
    error_add_v(e, fmt, ap);
    va_end(ap);
    tc_validation_pop(e);
}

bool tc_validation_add_member(struct tc_validation_errors *e, const char *key, const char *fmt, ...)
{
    tc_validation_push(e, ".%s", key);
    va_list ap;
    va_start(ap, fmt);
    error_add_v(e, fmt, ap);
    va_end(ap);
    tc_validation_pop(e);
    return false;
}

const char *tc_validation_text(struct tc_validation_errors *e)
{
    return tc_buf_cstr(&e->text);
}
