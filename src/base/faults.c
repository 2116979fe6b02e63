#include "base/faults.h"

#define DEFAULT_MAX_TEXT 8192u

void tc_faults_init(struct tc_faults *f)
{
    *f = (struct tc_faults){.max_text_bytes = DEFAULT_MAX_TEXT};
}

void tc_faults_fini(struct tc_faults *f)
{
    tc_buf_fini(&f->path);
    tc_buf_fini(&f->text);
    tc_vec_fini(&f->segments);
}

/* What was appended to the path from `mark` on is a segment of it. */
static void show(struct tc_faults *f, size_t mark)
{
    if (mark == 0 && f->path.len && f->path.data[0] == '.')
        tc_buf_consume(&f->path, 1);
    f->shown++;
}

struct tc_slice tc_faults_path(struct tc_faults *f)
{
    while (f->shown < f->segments.len) {
        struct tc_faults_segment *s = &f->segments.data[f->shown];
        s->mark = f->path.len;
        tc_buf_append_str(&f->path, s->field);
        if (s->index != SIZE_MAX)
            tc_buf_printf(&f->path, "[%zu]", s->index);
        show(f, s->mark);
    }
    return tc_buf_slice(&f->path);
}

void tc_faults_push_index(struct tc_faults *f, const char *field, size_t index)
{
    *tc_vec_push(&f->segments) = (struct tc_faults_segment){.field = field, .index = index};
}

void tc_faults_push_field(struct tc_faults *f, const char *field)
{
    tc_faults_push_index(f, field, SIZE_MAX);
}

static void push_v(struct tc_faults *f, const char *fmt, va_list ap)
{
    size_t mark = tc_faults_path(f).len;
    *tc_vec_push(&f->segments) = (struct tc_faults_segment){.mark = mark};
    tc_buf_vprintf(&f->path, fmt, ap);
    show(f, mark);
}

void tc_faults_push(struct tc_faults *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    push_v(f, fmt, ap);
    va_end(ap);
}

void tc_faults_pop(struct tc_faults *f)
{
    f->segments.len--;
    if (f->shown <= f->segments.len)
        return;
    f->shown--;
    f->path.len = f->segments.data[f->segments.len].mark;
}

static void add_v(struct tc_faults *f, const char *fmt, va_list ap)
{
    size_t max = f->max_text_bytes ? f->max_text_bytes : DEFAULT_MAX_TEXT;
    f->count++;
    if (f->text.len >= max)
        return;
    if (f->text.len)
        tc_buf_append_str(&f->text, "; ");
    struct tc_slice path = tc_faults_path(f);
    if (path.len) {
        tc_buf_append_str(&f->text, "field ");
        tc_buf_append_slice(&f->text, path);
        tc_buf_append_str(&f->text, ": ");
    }
    tc_buf_vprintf(&f->text, fmt, ap);
    if (f->text.len > max) {
        /* Cut before a character, not inside one. */
        size_t cut = max;
        while (cut && ((unsigned char)f->text.data[cut] & 0xc0) == 0x80)
            cut--;
        f->text.len = cut;
        tc_buf_append_str(&f->text, "...");
    }
}

void tc_faults_add(struct tc_faults *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_v(f, fmt, ap);
    va_end(ap);
}

void tc_faults_add_at(struct tc_faults *f, const char *field, const char *fmt, ...)
{
    tc_faults_push(f, "%s", field);
    va_list ap;
    va_start(ap, fmt);
    add_v(f, fmt, ap);
    va_end(ap);
    tc_faults_pop(f);
}

const char *tc_faults_text(struct tc_faults *f)
{
    return tc_buf_cstr(&f->text);
}
