/* Errors of this folder, and where in a message they are. Any thread. */
#ifndef TC_JSON_FAIL_H
#define TC_JSON_FAIL_H

#include "base/buf.h"

/* One step of the way from the message down to a value: the steps are on the stack of the functions that convert. */
struct tc_json_step {
    const struct tc_json_step *up; /* NULL: the message itself */
    const char *field;             /* name of a field, or NULL */
    struct tc_slice key;           /* of a map or an object; counts if there is no field and its data is not NULL */
    size_t index;                  /* of a list; counts if there is neither field nor key */
};

/* Store an error of TORC_LAYER_CODEC (TORC_LAYER_API for TORC_EINVAL and TORC_ESTATE), unless `error` is NULL or has
 * one already. Return false. */
bool tc_json_fail(torc_error **error, int code, const char *fmt, ...) TC_PRINTF(3, 4);
bool tc_json_fail_with(torc_error **error, int code, const char *text);

/* Appends the way to a step as "items[2].price". The outermost steps of a long way are cut; NULL appends nothing. */
void tc_json_append_way(struct tc_buf *text, const struct tc_json_step *step);

#endif
