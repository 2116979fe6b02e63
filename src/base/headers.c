/* Header fields in an arena. The array doubles; the old one stays in the arena, since lists are short. Names are
 * compared byte by byte, since they are lower case on the wire (HTTP/2). The checks of names and values are for texts
 * that did not come as HTTP/2 fields, such as an application's metadata and options, tokens and resources. nghttp2
 * checks the fields that come. */
#include "base/headers.h"

int tc_headers_add(struct tc_headers *h, struct tc_slice name, struct tc_slice value)
{
    if (h->len == h->cap) {
        size_t cap = h->cap ? h->cap * 2 : 8;
        struct tc_header *data = tc_arena_alloc(h->arena, cap * sizeof(*data));
        if (!data)
            return TORC_ELIMIT;
        if (h->len)
            memcpy(data, h->data, h->len * sizeof(*data));
        h->data = data;
        h->cap = cap;
    }
    h->data[h->len++] = (struct tc_header){name, value};
    return 0;
}

int tc_headers_add_copy(struct tc_headers *h, struct tc_slice name, struct tc_slice value)
{
    char *n = tc_arena_dup(h->arena, name);
    char *v = tc_arena_dup(h->arena, value);
    if (!n || !v)
        return TORC_ELIMIT;
    return tc_headers_add(h, tc_slice_of(n, name.len), tc_slice_of(v, value.len));
}

const struct tc_header *tc_headers_find(const struct tc_headers *h, struct tc_slice name)
{
    for (size_t i = 0; i < h->len; i++)
        if (tc_slice_eq(h->data[i].name, name))
            return &h->data[i];
    return NULL;
}

bool tc_headers_joined(const struct tc_headers *h, struct tc_slice name, struct tc_buf *scratch, struct tc_slice *value)
{
    size_t found = 0;
    for (size_t i = 0; i < h->len; i++) {
        if (!tc_slice_eq(h->data[i].name, name))
            continue;
        if (found == 0) {
            *value = h->data[i].value;
        } else {
            if (found == 1) {
                tc_buf_clear(scratch);
                tc_buf_append_slice(scratch, *value);
            }
            tc_buf_append_char(scratch, ',');
            tc_buf_append_slice(scratch, h->data[i].value);
        }
        found++;
    }
    if (found > 1)
        *value = tc_buf_slice(scratch);
    return found != 0;
}

bool tc_header_name_valid(struct tc_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.'))
            return false;
    }
    return name.len != 0;
}

bool tc_header_value_valid(struct tc_slice value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.data[i] < 0x20 || value.data[i] > 0x7e)
            return false;
    return true;
}
