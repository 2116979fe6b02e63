/* Indented text has a line for each member and element; an empty object or list stays on its line. */
#include "json/writer.h"

static void new_line(struct tc_json_writer *w)
{
    if (w->indent == 0)
        return;
    size_t n = (size_t)w->indent * w->level;
    tc_buf_append_char(w->out, '\n');
    memset(tc_buf_reserve(w->out, n + 1), ' ', n);
    w->out->len += n;
}

void tc_json_writer_open(struct tc_json_writer *w, char bracket)
{
    tc_buf_append_char(w->out, bracket);
    w->level++;
}

void tc_json_writer_close(struct tc_json_writer *w, char bracket, bool empty)
{
    w->level--;
    if (!empty)
        new_line(w);
    tc_buf_append_char(w->out, bracket);
}

void tc_json_writer_next(struct tc_json_writer *w, bool *first)
{
    if (!*first)
        tc_buf_append_char(w->out, ',');
    *first = false;
    new_line(w);
}

void tc_json_writer_member(struct tc_json_writer *w, bool *first, struct tc_slice key)
{
    tc_json_writer_next(w, first);
    tc_json_writer_string(w, key);
    tc_buf_append_str(w->out, w->indent ? ": " : ":");
}

void tc_json_writer_string(struct tc_json_writer *w, struct tc_slice text)
{
    static const char names[] = "btnvfr"; /* of the bytes 8 to 13; JSON has no \v */
    tc_buf_append_char(w->out, '"');
    for (size_t i = 0, run = 0; i <= text.len; i++) {
        unsigned char c = i < text.len ? (unsigned char)text.data[i] : '"';
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        if (i > run)
            tc_buf_append(w->out, text.data + run, i - run);
        run = i + 1;
        if (i == text.len)
            break;
        if (c >= 0x20)
            tc_buf_printf(w->out, "\\%c", c);
        else if (c >= 8 && c <= 13 && c != 11)
            tc_buf_printf(w->out, "\\%c", names[c - 8]);
        else
            tc_buf_printf(w->out, "\\u%04x", c);
    }
    tc_buf_append_char(w->out, '"');
}

void tc_json_writer_text(struct tc_json_writer *w, const char *text)
{
    tc_buf_append_str(w->out, text);
}
