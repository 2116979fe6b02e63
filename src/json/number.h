/* Numbers of JSON: reads integers exactly, writes floats with the fewest digits. Pure functions, any thread. */
#ifndef TC_JSON_NUMBER_H
#define TC_JSON_NUMBER_H

#include "base/buf.h"

/* Returns the length in bytes of the JSON number at the front of the text. Returns 0 if there is none, or if digits are
 * missing after its point or its "e". */
size_t tc_number_length(struct tc_slice text);
/* Store the value of a number that tc_number_length has accepted; 1.0 and 1e3 are integers, too. Return false if the
 * value is not an integer, or is out of range. `min` must be 0 or less, `max` 0 or more. */
bool tc_number_i64(struct tc_slice number, int64_t min, int64_t max, int64_t *out);
bool tc_number_u64(struct tc_slice number, uint64_t max, uint64_t *out);
/* Stores the value as a double. Returns false if the value is too large for a double, or if the text has 1,100 bytes or
 * more. */
bool tc_number_double(struct tc_slice number, double *out);

/* Append the fewest digits that read back as the same number; -0.0 for minus zero. `v` must be finite. */
void tc_number_append_double(struct tc_buf *out, double v);
void tc_number_append_float(struct tc_buf *out, float v);

#endif
