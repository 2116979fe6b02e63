/* The message types that an Any can name. cmake/proto_types.cmake makes the table `types` from the generated code, and
 * sorts it by full name for the binary search of tc_proto_type. */
#include "proto/types.h"

#include <stdlib.h>

#include "pb/types.h" /* types */

static int type_compare(const void *key, const void *element)
{
    const struct tc_slice *name = key;
    const ProtobufCMessageDescriptor *type = *(const ProtobufCMessageDescriptor *const *)element;
    return tc_slice_cmp(*name, tc_slice_str(type->name));
}

const ProtobufCMessageDescriptor *tc_proto_type(struct tc_slice full_name)
{
    if (full_name.len == 0)
        return NULL;
    const ProtobufCMessageDescriptor *const *found =
        bsearch(&full_name, types, TC_ARRAY_LEN(types), sizeof(types[0]), type_compare);
    return found ? *found : NULL;
}

const ProtobufCMessageDescriptor *tc_proto_type_of_url(struct tc_slice url)
{
    for (size_t i = url.len; i-- > 0;)
        if (url.data[i] == '/')
            return tc_proto_type(tc_slice_of(url.data + i + 1, url.len - i - 1));
    return NULL;
}

const ProtobufCMessageDescriptor *tc_proto_type_at(size_t i)
{
    return i < TC_ARRAY_LEN(types) ? types[i] : NULL;
}
