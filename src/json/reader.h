/* Reads JSON text value by value (RFC 8259). Errors name line, column and field. For one thread at a time. */
#ifndef TC_JSON_READER_H
#define TC_JSON_READER_H

#include "json/fail.h"

/* How deep objects and lists may be nested in a value that is skipped: twice the 100 messages that a conversion takes
 * at most, since each message may be in a list. */
enum { TC_READER_MAX_SKIPPED = 200 };

struct tc_json_reader {
    const char *begin, *at, *end;    /* the text, borrowed, and the byte that is read next */
    const struct tc_json_step *step; /* the way to the value that is read, for errors; NULL: the outermost value */
    torc_error **error;
};

/* Stores an error about the place `at` of the text. Returns false. */
bool tc_json_reader_fail_at(struct tc_json_reader *r, const char *at, int code, const char *fmt, ...) TC_PRINTF(4, 5);
/* Stores the error that the next value must be `what`. Returns false. */
bool tc_json_reader_want(struct tc_json_reader *r, const char *what);

/* Skips white space and returns the next byte without taking it. Returns 0 at the end, and for a NUL in the text. */
char tc_json_reader_peek(struct tc_json_reader *r);
/* Skips white space and takes the byte `c`. Returns false, with an error, if `c` is not next. */
bool tc_json_reader_take(struct tc_json_reader *r, char c);
/* Skips white space and takes `word` if the text goes on with it; what follows the word is not checked. Returns whether
 * the word was taken; stores no error. */
bool tc_json_reader_word(struct tc_json_reader *r, const char *word);

/* The three functions below skip white space first, and return false with an error. */

/* Takes a number and stores its text, borrowed. */
bool tc_json_reader_number(struct tc_json_reader *r, struct tc_slice *out);
/* Takes a string and appends its decoded text, which is UTF-8. Stores the text between the quotes, borrowed, in *raw
 * unless `raw` is NULL. */
bool tc_json_reader_string(struct tc_json_reader *r, struct tc_buf *out, struct tc_slice *raw);
/* Takes any value and drops it. */
bool tc_json_reader_skip(struct tc_json_reader *r);

/* Go to the next value of an object or list. The caller has taken the opening brace or bracket, and has set *first to
 * true before the first call. `member` takes the key and its colon: it stores the decoded key in `key`, instead of what
 * was there, and *raw as tc_json_reader_string does. Return 1; 0 when the closing brace or bracket was taken; -1 with
 * an error. */
int tc_json_reader_member(struct tc_json_reader *r, bool *first, struct tc_buf *key, struct tc_slice *raw);
int tc_json_reader_element(struct tc_json_reader *r, bool *first);

#endif
