/* Errors of this folder, and the place in a message to which they belong. Any thread. */
#ifndef TC_JSON_FAIL_H
#define TC_JSON_FAIL_H

#include "base/buf.h"

/* One step of the way from the outermost message down to a value. The steps lie on the stack of the functions that
 * convert. */
struct tc_json_step {
    const struct tc_json_step *up; /* NULL: this step begins at the outermost message */
    const char *field;             /* the name of a field; NULL: the step is a key or an index */
    struct tc_slice key;           /* of a map or an object, if `field` is NULL; data NULL: an index */
    size_t index;                  /* of a list */
};

/* Store an error of TORC_LAYER_CODEC (TORC_LAYER_API for TORC_EINVAL and TORC_ESTATE), with '?' for control characters;
 * nothing if `error` is NULL or has an error already. Return false. */
bool tc_json_fail(torc_error **error, int code, const char *fmt, ...) TC_PRINTF(3, 4);
bool tc_json_fail_with(torc_error **error, int code, const char *text);

/* Appends the way to a step, as in "items[2].price". Only the 16 innermost steps are named. With `step` NULL appends
 * nothing. */
void tc_json_append_way(struct tc_buf *text, const struct tc_json_step *step);

#endif
