/* Errors of this folder, and where in a message they are. Any thread. */
#ifndef TC_JSON_FAIL_H
#define TC_JSON_FAIL_H

#include "base/buf.h"

/* One step of the way from the message down to a value: the steps are on the stack of the functions that convert. */
struct tc_json_step {
    const struct tc_json_step *up; /* NULL: the message itself */
    const char *field;             /* name of a field, or NULL */
    struct tc_slice key;           /* of a map or an object, when there is no field and the data is not NULL */
    size_t index;                  /* of a list, otherwise */
};

/* Stores an error of TORC_LAYER_CODEC, of the API's layer for TORC_EINVAL and TORC_ESTATE, unless `error` is NULL.
 * Returns false. */
bool tc_json_fail(torc_error **error, int code, const char *fmt, ...) TC_PRINTF(3, 4);
bool tc_json_fail_with(torc_error **error, int code, const char *text);

/* Appends the way as "items[2].price" and cuts the outermost steps of a long one; nothing for NULL. */
void tc_json_append_way(struct tc_buf *text, const struct tc_json_step *step);

#endif
