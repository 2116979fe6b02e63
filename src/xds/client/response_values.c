/* Copies a response without the `value` of each Any. On the way to the value every field has the number 2: resources of
 * both responses, resource of Resource, value of Any. Gives up on an unusual form; the caller then unpacks the whole
 * message. */
#include "xds/client/response_values.h"

#include "proto/wire.h"

enum { FIELD = 2 };

bool tc_xds_values_lift(struct tc_slice m, unsigned levels, struct tc_buf *rest, tc_xds_values *values)
{
    bool resource = false, ok = true;
    struct tc_slice value = {0};
    struct tc_buf inner = {0};
    while (ok && m.len) {
        const char *start = m.data;
        struct tc_wire_field f;
        ok = tc_wire_next(&m, &f);
        if (!ok)
            break;
        if (!f.is_bytes || f.number != FIELD) {
            tc_buf_append(rest, start, (size_t)(m.data - start));
        } else if (levels) {
            size_t before = values->len;
            inner.len = 0;
            /* Exactly one Any in each wrapper: values[i] is resource i. */
            ok = tc_xds_values_lift(f.value, levels - 1, &inner, values) && values->len == before + 1;
            tc_wire_append(rest, FIELD, tc_buf_slice(&inner));
        } else {
            ok = !resource;
            resource = true;
            value = f.value;
        }
    }
    if (ok && levels == 0)
        *tc_vec_push(values) = value;
    tc_buf_fini(&inner);
    return ok;
}
