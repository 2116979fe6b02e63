/* Writes JSON text, compact or indented. For one thread at a time. */
#ifndef TC_JSON_WRITER_H
#define TC_JSON_WRITER_H

#include "base/buf.h"

struct tc_json_writer {
    struct tc_buf *out; /* borrowed */
    unsigned indent;    /* spaces for each level; 0: compact */
    unsigned level;     /* objects and lists that are open */
};

/* Open and close an object or a list. `bracket` is its brace or bracket; `empty`: nothing was written in between. */
void tc_json_writer_open(struct tc_json_writer *w, char bracket);
void tc_json_writer_close(struct tc_json_writer *w, char bracket, bool empty);
/* Begins the next element of a list or member of an object. The caller sets *first to true before the first call. */
void tc_json_writer_next(struct tc_json_writer *w, bool *first);
/* Begins the next member of an object and writes its key, which must be UTF-8, and the colon; *first as for
 * tc_json_writer_next. */
void tc_json_writer_member(struct tc_json_writer *w, bool *first, struct tc_slice key);
/* Writes a string, with quotes and escapes; the text must be UTF-8. */
void tc_json_writer_string(struct tc_json_writer *w, struct tc_slice text);
/* Appends the text as it is. */
void tc_json_writer_text(struct tc_json_writer *w, const char *text);

#endif
