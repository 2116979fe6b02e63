/* The walk over the bytes of a message, before protobuf-c unpacks it.
 *
 * The walk keeps a stack of frames, one for each message that it is inside of, instead of recursing. For each field it
 * checks the wire format. It strips an unknown field. It counts a known one, and then skips the payload, checks it as a
 * string, or enters it as a message.
 *
 * Output: as long as every field is known, nothing is copied, and the result is the input itself. At the first unknown
 * field everything before it is copied into `clean`, and from then on each field that is kept is appended (`stripped`).
 * At the end of each message its new length is written over the old one in the same width, since protobuf allows padded
 * varints: nothing has to move.
 *
 * Counts per field live in one array for all frames (`counts_at`). Both arrays begin on the stack (struct small), where
 * most messages stay: the walk then allocates nothing. */
#include "proto/scan.h"

#include "base/mem.h"
#include "base/parse.h"
#include "proto/wire.h"

enum {
    DEFAULT_REPEATED = 65536,
    DEFAULT_STRING_BYTES = 1024 * 1024,
    DEFAULT_UNKNOWN_BYTES = 4 * 1024 * 1024,
    MAX_FIELD_NUMBER = 0x1fffffff,
    MAX_VARINT_BYTES = 10,
    MAX_LENGTH_BYTES = 5,
    SMALL_FRAMES = 8,
    SMALL_COUNTS = 64,
};

/* A message that the walk is inside of. */
struct frame {
    const ProtobufCMessageDescriptor *type;
    const ProtobufCFieldDescriptor *field; /* of the parent that holds this message; NULL for the outermost */
    size_t index;                          /* among the occurrences of `field` */
    const char *end;
    size_t counts_at;  /* of this message's fields in scanner.counts */
    size_t length_at;  /* offset of the length prefix in the output */
    size_t length_len; /* width of that prefix */
};

/* Where the scanner's arrays begin. */
struct small {
    struct frame frames[SMALL_FRAMES];
    uint32_t counts[SMALL_COUNTS];
};

struct scanner {
    struct tc_scan_options limits;
    const char *start, *at;
    struct small *small;
    TC_VEC(struct frame) frames;
    TC_VEC(uint32_t) counts; /* occurrences by frame and field */
    size_t elements;
    size_t unknown_bytes;
    struct tc_buf *clean; /* the output so far, once something was stripped */
    bool stripped;
    struct tc_validation_errors *errors;
};

/* One field on the wire: [start, end), its payload [data, end). */
struct item {
    const char *start, *data, *end;
    size_t length_len; /* width of the length prefix before data */
    uint32_t number;
    unsigned wire;
};

/* Adds an error at a field of the message that the walk is in, or at that message if `field` is NULL. `index` is
 * SIZE_MAX for the whole of a repeated field. Returns `error`. */
static TC_PRINTF(5, 6) int scan_fail(struct scanner *s, const ProtobufCFieldDescriptor *field, size_t index, int error,
                                     const char *fmt, ...)
{
    struct tc_buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    for (size_t i = 1; i < s->frames.len; i++)
        tc_scan_push(s->errors, s->frames.data[i].field, s->frames.data[i].index);
    if (field)
        tc_scan_push(s->errors, field, index);
    tc_validation_add(s->errors, "%s", tc_buf_cstr(&text));
    for (size_t i = field ? 0 : 1; i < s->frames.len; i++)
        tc_validation_pop(s->errors);
    tc_buf_fini(&text);
    return error;
}

/* Adds an error for a field whose number was read, and whose value cannot be read. */
static int item_fail(struct scanner *s, const struct item *item, const char *end)
{
    uint64_t value;
    size_t left = (size_t)(end - item->data), at = (size_t)(item->start - s->start);
    size_t width = tc_wire_varint(item->data, end, MAX_VARINT_BYTES, &value);
    bool is_length = item->wire == TC_WIRE_LENGTH;
    if (!width && left >= MAX_VARINT_BYTES && (is_length || item->wire == TC_WIRE_VARINT))
        return scan_fail(s, NULL, 0, TORC_EPARSE, "field number %u has a varint of more than %d bytes at byte %zu",
                         item->number, MAX_VARINT_BYTES, at);
    if (width > MAX_LENGTH_BYTES && is_length && value <= left - width)
        return scan_fail(s, NULL, 0, TORC_EPARSE, "field number %u has a length of more than %d bytes at byte %zu",
                         item->number, MAX_LENGTH_BYTES, at);
    return scan_fail(s, NULL, 0, TORC_EPARSE, "field number %u is cut short at byte %zu", item->number, at);
}

static int item_read(struct scanner *s, const char *end, struct item *item)
{
    uint64_t tag, len = 0;
    size_t n = tc_wire_varint(s->at, end, 5, &tag);
    if (n == 0 || tag > UINT32_MAX)
        return scan_fail(s, NULL, 0, TORC_EPARSE, "malformed tag at byte %zu", (size_t)(s->at - s->start));
    *item = (struct item){.start = s->at, .data = s->at + n, .number = (uint32_t)(tag >> 3), .wire = tag & 7};
    if (item->number == 0 || item->number > MAX_FIELD_NUMBER)
        return scan_fail(s, NULL, 0, TORC_EPARSE, "field number %u at byte %zu", item->number,
                         (size_t)(s->at - s->start));
    size_t left = (size_t)(end - item->data);
    switch (item->wire) {
    case TC_WIRE_VARINT:
        len = tc_wire_varint(item->data, end, MAX_VARINT_BYTES, &tag);
        break;
    case TC_WIRE_64BIT:
        len = left >= 8 ? 8 : 0;
        break;
    case TC_WIRE_32BIT:
        len = left >= 4 ? 4 : 0;
        break;
    case TC_WIRE_LENGTH:
        item->length_len = tc_wire_varint(item->data, end, MAX_LENGTH_BYTES, &len);
        if (item->length_len == 0 || len > left - item->length_len)
            return item_fail(s, item, end);
        item->data += item->length_len;
        item->end = item->data + len;
        return 0;
    default:
        return scan_fail(s, NULL, 0, TORC_EPARSE, "field number %u is a group or has no valid wire type", item->number);
    }
    if (len == 0)
        return item_fail(s, item, end);
    item->end = item->data + len;
    return 0;
}

/* Returns the number of elements of a packed run; -1 when it is malformed. */
static ptrdiff_t packed_count(const struct item *item, unsigned wire)
{
    size_t len = (size_t)(item->end - item->data), n = 0;
    if (wire != TC_WIRE_VARINT) {
        size_t size = wire == TC_WIRE_32BIT ? 4 : 8;
        return len % size ? -1 : (ptrdiff_t)(len / size);
    }
    for (const char *p = item->data; p < item->end; n++) {
        uint64_t value;
        size_t width = tc_wire_varint(p, item->end, MAX_VARINT_BYTES, &value);
        if (width == 0)
            return -1;
        p += width;
    }
    return (ptrdiff_t)n;
}

static int output_copy(struct scanner *s, const char *from, const char *to)
{
    if (!tc_buf_try_reserve(s->clean, (size_t)(to - from)))
        return scan_fail(s, NULL, 0, TORC_ELIMIT, "there is no memory to strip unknown fields");
    tc_buf_append(s->clean, from, (size_t)(to - from));
    return 0;
}

/* Leaves an item out of the output. The first time, copies everything before it. */
static int item_strip(struct scanner *s, const struct item *item)
{
    s->unknown_bytes += (size_t)(item->end - item->start);
    if (s->unknown_bytes > s->limits.max_unknown_bytes)
        return scan_fail(s, NULL, 0, TORC_ELIMIT, "has more than %zu bytes of unknown fields",
                         s->limits.max_unknown_bytes);
    if (!s->stripped) {
        tc_buf_clear(s->clean);
        int rv = output_copy(s, s->start, item->start);
        if (rv)
            return rv;
        s->stripped = true;
    }
    s->at = item->end;
    return 0;
}

static int item_keep(struct scanner *s, const char *from, const char *to)
{
    s->at = to;
    return s->stripped ? output_copy(s, from, to) : 0;
}

static size_t output_len(const struct scanner *s)
{
    return s->stripped ? s->clean->len : (size_t)(s->at - s->start);
}

/* Returns an array of at least `want` elements with the first `len` of `data`, which may be `small`. */
static void *array_grow(void *data, const void *small, size_t len, size_t *cap, size_t want, size_t size)
{
    if (want <= *cap)
        return data;
    *cap = TC_MAX(*cap * 2, want);
    if (data != small)
        return tc_reallocarray(data, *cap, size);
    void *grown = tc_reallocarray(NULL, *cap, size);
    memcpy(grown, data, len * size);
    return grown;
}

static void frame_push(struct scanner *s, const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field,
                       size_t index, const char *end)
{
    s->frames.data = array_grow(s->frames.data, s->small->frames, s->frames.len, &s->frames.cap, s->frames.len + 1,
                                sizeof(s->frames.data[0]));
    s->frames.data[s->frames.len++] =
        (struct frame){.type = type, .field = field, .index = index, .end = end, .counts_at = s->counts.len};
    s->counts.data = array_grow(s->counts.data, s->small->counts, s->counts.len, &s->counts.cap,
                                s->counts.len + type->n_fields, sizeof(s->counts.data[0]));
    memset(s->counts.data + s->counts.len, 0, type->n_fields * sizeof(s->counts.data[0]));
    s->counts.len += type->n_fields;
}

/* Checks at the end of a message that it has its required fields. protobuf-c itself accepts that a required field is
 * missing, if it has a default. */
static int required_check(struct scanner *s)
{
    const struct frame *f = &s->frames.data[s->frames.len - 1];
    for (unsigned i = 0; i < f->type->n_fields; i++)
        if (f->type->fields[i].label == PROTOBUF_C_LABEL_REQUIRED && !s->counts.data[f->counts_at + i])
            return scan_fail(s, &f->type->fields[i], SIZE_MAX, TORC_EPARSE, "is required, and missing");
    return 0;
}

/* Leaves a message, and writes its new length when something was stripped. */
static void frame_pop(struct scanner *s)
{
    struct frame *f = &s->frames.data[--s->frames.len];
    s->counts.len = f->counts_at;
    if (!s->stripped || !f->field)
        return;
    size_t len = s->clean->len - f->length_at - f->length_len;
    for (size_t i = 0; i < f->length_len; i++, len >>= 7)
        s->clean->data[f->length_at + i] = (char)((len & 0x7f) | (i + 1 < f->length_len ? 0x80 : 0));
}

/* Enters a message. Keeps its head, tag and length, before the content: frame_pop corrects the length if the content
 * has become shorter. */
static int message_enter(struct scanner *s, const ProtobufCFieldDescriptor *field, size_t index,
                         const struct item *item)
{
    if (s->frames.len > s->limits.max_depth)
        return scan_fail(s, field, index, TORC_ELIMIT, "more than %zu messages within each other", s->limits.max_depth);
    int rv = item_keep(s, item->start, item->data);
    if (rv)
        return rv;
    frame_push(s, field->descriptor, field, index, item->end);
    struct frame *f = &s->frames.data[s->frames.len - 1];
    f->length_len = item->length_len;
    f->length_at = output_len(s) - item->length_len;
    return 0;
}

static int string_check(struct scanner *s, const ProtobufCFieldDescriptor *field, size_t index, const struct item *item)
{
    struct tc_slice text = tc_slice_of(item->data, (size_t)(item->end - item->data));
    if (text.len > s->limits.max_string_bytes)
        return scan_fail(s, field, index, TORC_ELIMIT, "%zu bytes, more than %zu", text.len,
                         s->limits.max_string_bytes);
    if (text.len && memchr(text.data, 0, text.len))
        return scan_fail(s, field, index, TORC_EPARSE, "has a NUL character");
    if (!tc_utf8_valid(text))
        return scan_fail(s, field, index, TORC_EPARSE, "is not valid UTF-8");
    return 0;
}

/* Counts `more` occurrences of a field; `*index` becomes the index of the first. The sum over all fields is bounded,
 * too: many small repeated fields cost as much as a large one. A message of few bytes still costs a walk over all
 * fields of its type, here and in protobuf-c, so each TC_FIELDS_PER_VALUE of those fields count as a value. */
static int field_count(struct scanner *s, const ProtobufCFieldDescriptor *field, size_t more, size_t *index)
{
    const struct frame *f = &s->frames.data[s->frames.len - 1];
    uint32_t *n = &s->counts.data[f->counts_at + (size_t)(field - f->type->fields)];
    if (more > s->limits.max_repeated || *n > s->limits.max_repeated - more)
        return scan_fail(s, field, SIZE_MAX, TORC_ELIMIT, "occurs more than %zu times", s->limits.max_repeated);
    size_t values = more;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        values += ((const ProtobufCMessageDescriptor *)field->descriptor)->n_fields / TC_FIELDS_PER_VALUE;
    if (values > s->limits.max_elements - s->elements)
        return scan_fail(s, field, SIZE_MAX, TORC_ELIMIT, "the message has more than %zu values",
                         s->limits.max_elements);
    *index = *n;
    *n += (uint32_t)more;
    s->elements += values;
    return 0;
}

static int item_scan(struct scanner *s, const struct item *item)
{
    const ProtobufCMessageDescriptor *type = s->frames.data[s->frames.len - 1].type;
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, item->number);
    if (!field)
        return item_strip(s, item);
    unsigned wire = tc_field_types[field->type].wire;
    size_t more = 1, index = 0;
    if (item->wire != wire) {
        if (item->wire != TC_WIRE_LENGTH || field->label != PROTOBUF_C_LABEL_REPEATED)
            return item_strip(s, item);
        ptrdiff_t n = packed_count(item, wire);
        if (n < 0)
            return scan_fail(s, field, SIZE_MAX, TORC_EPARSE, "malformed packed values");
        more = (size_t)n;
    }
    int rv = field_count(s, field, more, &index);
    if (rv)
        return rv;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return message_enter(s, field, index, item);
    if (field->type == PROTOBUF_C_TYPE_STRING && (rv = string_check(s, field, index, item)) != 0)
        return rv;
    return item_keep(s, item->start, item->end);
}

static struct tc_scan_options options_with_defaults(const struct tc_scan_options *options)
{
    struct tc_scan_options o = options ? *options : (struct tc_scan_options){0};
    o.max_depth = o.max_depth ? o.max_depth : TC_MESSAGE_DEPTH;
    o.max_repeated = o.max_repeated ? TC_MIN(o.max_repeated, (size_t)UINT32_MAX) : DEFAULT_REPEATED;
    o.max_elements = o.max_elements ? o.max_elements : TC_MESSAGE_VALUES;
    o.max_string_bytes = o.max_string_bytes ? o.max_string_bytes : DEFAULT_STRING_BYTES;
    o.max_unknown_bytes = o.max_unknown_bytes ? o.max_unknown_bytes : DEFAULT_UNKNOWN_BYTES;
    return o;
}

int tc_scan(const ProtobufCMessageDescriptor *type, struct tc_slice bytes, const struct tc_scan_options *options,
            struct tc_buf *clean, struct tc_slice *out, struct tc_validation_errors *errors)
{
    const char *start = bytes.data ? bytes.data : "";
    struct small small;
    struct scanner s = {.limits = options_with_defaults(options),
                        .start = start,
                        .at = start,
                        .small = &small,
                        .frames = {.data = small.frames, .cap = SMALL_FRAMES},
                        .counts = {.data = small.counts, .cap = SMALL_COUNTS},
                        .clean = clean,
                        .errors = errors};
    int rv = 0;
    frame_push(&s, type, NULL, 0, start + bytes.len);
    while (s.frames.len) {
        const char *end = s.frames.data[s.frames.len - 1].end;
        if (s.at == end) {
            if ((rv = required_check(&s)) != 0)
                goto done;
            frame_pop(&s);
            continue;
        }
        struct item item;
        if ((rv = item_read(&s, end, &item)) != 0 || (rv = item_scan(&s, &item)) != 0)
            goto done;
    }
    *out = s.stripped ? tc_slice_of(clean->data, clean->len) : bytes;
done:
    if (s.frames.data != small.frames)
        tc_free(s.frames.data);
    if (s.counts.data != small.counts)
        tc_free(s.counts.data);
    return rv;
}
