/* Numbers of JSON: integers without loss, and the fewest digits of a float. Pure functions, any thread. */
#ifndef TC_JSON_NUMBER_H
#define TC_JSON_NUMBER_H

#include "base/buf.h"

/* Returns the bytes of the number at the front of the text, by the grammar of JSON; 0 if there is none. */
size_t tc_number_length(struct tc_slice text);
/* Store the integer that a number stands for, also of 1.0 or 1e3. `number` is as tc_number_length takes it. Return
 * false if its value is not an integer, or is out of range. */
bool tc_number_i64(struct tc_slice number, int64_t min, int64_t max, int64_t *out);
bool tc_number_u64(struct tc_slice number, uint64_t max, uint64_t *out);
/* Stores a finite double. Returns false if the number is too large, or has 1,100 bytes or more. */
bool tc_number_double(struct tc_slice number, double *out);

/* Append the fewest digits that read back as the same number, which must be finite. */
void tc_number_append_double(struct tc_buf *out, double v);
void tc_number_append_float(struct tc_buf *out, float v);

#endif
