/* Text of JSON, compact or indented. For one thread at a time. */
#ifndef TC_JSON_WRITER_H
#define TC_JSON_WRITER_H

#include "base/buf.h"

struct tc_json_writer {
    struct tc_buf *out;
    unsigned indent; /* spaces for each level; 0: compact */
    unsigned level;
};

/* Open and close an object or a list. `empty`: nothing was written in it. */
void tc_json_writer_open(struct tc_json_writer *w, char bracket);
void tc_json_writer_close(struct tc_json_writer *w, char bracket, bool empty);
/* Begins the next element of a list or member of an object; the caller has set *first to true before the first one. */
void tc_json_writer_next(struct tc_json_writer *w, bool *first);
/* Begins the next member of an object, with its key. */
void tc_json_writer_member(struct tc_json_writer *w, bool *first, struct tc_slice key);
/* Writes a string; the text must be UTF-8. tc_json_writer_text appends the text as it is. */
void tc_json_writer_string(struct tc_json_writer *w, struct tc_slice text);
void tc_json_writer_text(struct tc_json_writer *w, const char *text);

#endif
