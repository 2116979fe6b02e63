/* JSON text, value by value (RFC 8259), for one thread at a time. Errors name line, column and the way to the value. */
#ifndef TC_JSON_READER_H
#define TC_JSON_READER_H

#include "json/fail.h"

/* How deep objects and lists may be nested in a value that is skipped: twice the most messages that a conversion takes,
 * since each message may be in a list. */
enum { TC_READER_MAX_SKIPPED = 200 };

struct tc_json_reader {
    const char *begin, *at, *end;
    const struct tc_json_step *step; /* the value that is read, for errors; NULL: the outermost one */
    torc_error **error;
};

/* Stores an error at a place of the text. Returns false. */
bool tc_json_reader_fail_at(struct tc_json_reader *r, const char *at, int code, const char *fmt, ...) TC_PRINTF(4, 5);
/* Stores the error that the next value must be `what`. Returns false. */
bool tc_json_reader_want(struct tc_json_reader *r, const char *what);

/* Skips white space and returns the next byte, which stays; 0 at the end. */
char tc_json_reader_peek(struct tc_json_reader *r);
/* Takes one byte of punctuation. Returns false, with an error, when something else is next. */
bool tc_json_reader_take(struct tc_json_reader *r, char c);
/* Takes null, true or false if it is next. Returns whether it was; there is no error. */
bool tc_json_reader_word(struct tc_json_reader *r, const char *word);
/* The functions that follow return false with an error, unless said otherwise. */

/* Takes a number and stores its text. */
bool tc_json_reader_number(struct tc_json_reader *r, struct tc_slice *out);
/* Takes a string and appends its characters, decoded, which are UTF-8. `raw`, unless NULL, is the text between the
 * quotes. */
bool tc_json_reader_string(struct tc_json_reader *r, struct tc_buf *out, struct tc_slice *raw);
/* Takes any value. */
bool tc_json_reader_skip(struct tc_json_reader *r);

/* Take the next key of an object with its colon (`key` is cleared first), or get to the next element of a list; the
 * caller has taken the opening brace or bracket and set *first to true. Return 1; 0: the object or list has ended, and
 * its end was taken; -1: an error. */
int tc_json_reader_member(struct tc_json_reader *r, bool *first, struct tc_buf *key, struct tc_slice *raw);
int tc_json_reader_element(struct tc_json_reader *r, bool *first);

#endif
