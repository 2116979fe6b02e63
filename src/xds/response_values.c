#include "xds/response_values.h"

#include "proto/wire.h"

enum { FIELD = 2 }; /* resources of both responses, resource of Resource, value of Any */

bool tc_xds_values_lift(struct tc_slice m, unsigned levels, struct tc_buf *rest, tc_xds_values *values)
{
    bool found = false, ok = true;
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
            /* One Any each, lest the others be taken for the wrong resource's. */
            ok = tc_xds_values_lift(f.value, levels - 1, &inner, values) && values->len == before + 1;
            tc_wire_append(rest, FIELD, tc_buf_slice(&inner));
        } else {
            ok = !found;
            found = true;
            value = f.value;
        }
    }
    if (ok && levels == 0)
        *tc_vec_push(values) = value;
    tc_buf_fini(&inner);
    return ok;
}
