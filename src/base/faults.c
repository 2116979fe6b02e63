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
    tc_vec_fini(&f->marks);
}

static void push_v(struct tc_faults *f, const char *fmt, va_list ap)
{
    size_t mark = f->path.len;
    *tc_vec_push(&f->marks) = mark;
    tc_buf_vprintf(&f->path, fmt, ap);
    if (mark == 0 && f->path.len && f->path.data[0] == '.')
        tc_buf_consume(&f->path, 1);
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
    f->path.len = f->marks.data[--f->marks.len];
}

static void add_v(struct tc_faults *f, const char *fmt, va_list ap)
{
    size_t max = f->max_text_bytes ? f->max_text_bytes : DEFAULT_MAX_TEXT;
    f->count++;
    if (f->text.len >= max)
        return;
    if (f->text.len)
        tc_buf_append_str(&f->text, "; ");
    if (f->path.len) {
        tc_buf_append_str(&f->text, "field ");
        tc_buf_append_slice(&f->text, tc_buf_slice(&f->path));
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
