/* A group has no length in front: its fields are walked over to find the end tag. The numbers of the groups that are
 * open meanwhile are kept in an array, so there is no recursion. */
#include "json/item.h"

bool tc_item_take_varint(struct tc_slice *rest, uint64_t *out)
{
    size_t width = tc_wire_varint(rest->data, rest->data + rest->len, 10, out);
    *rest = tc_slice_of(rest->data + width, rest->len - width);
    return width != 0;
}

bool tc_item_take_fixed(struct tc_slice *rest, size_t width, uint64_t *out)
{
    uint64_t v = 0;
    if (rest->len < width)
        return false;
    for (size_t i = 0; i < width; i++)
        v |= (uint64_t)(uint8_t)rest->data[i] << (8 * i);
    *rest = tc_slice_of(rest->data + width, rest->len - width);
    *out = v;
    return true;
}

/* Takes one field; of a group, only the begin tag or the end tag. */
static bool take_flat(struct tc_slice *rest, struct tc_item *out)
{
    uint64_t tag, n;
    if (!tc_item_take_varint(rest, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
        return false;
    *out = (struct tc_item){.number = (uint32_t)(tag >> 3), .wire = tag & 7};
    switch (out->wire) {
    case TC_WIRE_VARINT:
        return tc_item_take_varint(rest, &out->value);
    case TC_WIRE_64BIT:
        return tc_item_take_fixed(rest, 8, &out->value);
    case TC_WIRE_32BIT:
        return tc_item_take_fixed(rest, 4, &out->value);
    case TC_WIRE_LENGTH:
        if (!tc_item_take_varint(rest, &n) || n > rest->len)
            return false;
        out->bytes = tc_slice_of(rest->data, (size_t)n);
        *rest = tc_slice_of(rest->data + n, rest->len - (size_t)n);
        return true;
    default:
        return out->wire == TC_ITEM_GROUP || out->wire == TC_ITEM_GROUP_END;
    }
}

/* Takes a group whose begin tag has been taken, with its end tag. Stores what lies between the tags. */
static bool take_group(struct tc_slice *rest, uint32_t number, struct tc_slice *content)
{
    uint32_t open[TC_ITEM_MAX_DEPTH] = {number};
    size_t depth = 1;
    const char *begin = rest->data, *end = begin;
    while (depth) {
        struct tc_item item;
        end = rest->data;
        if (rest->len == 0 || !take_flat(rest, &item))
            return false;
        if (item.wire == TC_ITEM_GROUP) {
            if (depth == TC_ITEM_MAX_DEPTH)
                return false;
            open[depth++] = item.number;
        } else if (item.wire == TC_ITEM_GROUP_END && open[--depth] != item.number) {
            return false;
        }
    }
    *content = tc_slice_of(begin, (size_t)(end - begin));
    return true;
}

int tc_item_next(struct tc_slice *rest, struct tc_item *out)
{
    if (rest->len == 0)
        return 0;
    if (!take_flat(rest, out) || out->wire == TC_ITEM_GROUP_END)
        return -1;
    return out->wire != TC_ITEM_GROUP || take_group(rest, out->number, &out->bytes) ? 1 : -1;
}
