/* JSON of a message with all its fields but extensions, to be filled in.
 *
 * A message is {} within a message of its own type, when nested deeper than MOST_FRAMES, and once the text has
 * ENOUGH_BYTES: types that refer to many others would make a text of exponential size. Well-known types have their
 * short text anywhere, and a message set is always {}. Once the text has MOST_BYTES, fields are left out. Of a oneof
 * only the first field is written, since torc_json_to_bytes refuses a second one. */
#include "json/model.h"
#include "json/writer.h"

enum { ENOUGH_BYTES = 64 << 10, MOST_BYTES = 1 << 20, MOST_FRAMES = 32 };

/* A message that is being written; `up` is the message around it, NULL for the outermost. */
struct template_frame {
    const struct template_frame *up;
    const torc_schema_message *type;
    unsigned depth;
};

static void message_write(struct tc_json_writer *w, const torc_schema_message *type, const struct template_frame *up);

static bool is_within(const struct template_frame *frame, const torc_schema_message *type)
{
    while (frame && frame->type != type)
        frame = frame->up;
    return frame != NULL;
}

static void scalar_write(struct tc_json_writer *w, const struct tc_schema_field *f)
{
    switch (f->type) {
    case TC_TYPE_STRING:
    case TC_TYPE_BYTES:
        tc_json_writer_text(w, "\"\"");
        break;
    case TC_TYPE_BOOL:
        tc_json_writer_text(w, "false");
        break;
    case TC_TYPE_ENUM:
        if (f->enumeration->null)
            tc_json_writer_text(w, "null");
        else
            tc_json_writer_string(w, tc_slice_str(f->enumeration->values.data[0].name));
        break;
    case TC_TYPE_INT64:
    case TC_TYPE_UINT64:
    case TC_TYPE_SINT64:
    case TC_TYPE_FIXED64:
    case TC_TYPE_SFIXED64:
        tc_json_writer_text(w, "\"0\"");
        break;
    default:
        tc_json_writer_text(w, "0");
    }
}

static void value_write(struct tc_json_writer *w, const struct tc_schema_field *f, const struct template_frame *up)
{
    if (tc_schema_is_message(f))
        message_write(w, f->message, up);
    else
        scalar_write(w, f);
}

static void map_write(struct tc_json_writer *w, const struct tc_schema_field *f, const struct template_frame *up)
{
    const struct tc_schema_field *key = f->message->by_number[0];
    bool first = true;
    tc_json_writer_open(w, '{');
    tc_json_writer_member(w, &first,
                          tc_slice_str(key->type == TC_TYPE_STRING ? ""
                                       : key->type == TC_TYPE_BOOL ? "false"
                                                                   : "0"));
    value_write(w, f->message->by_number[1], up);
    tc_json_writer_close(w, '}', first);
}

static void field_write(struct tc_json_writer *w, const struct tc_schema_field *f, const struct template_frame *up)
{
    bool first = true;
    if (f->map) {
        map_write(w, f, up);
    } else if (f->repeated) {
        tc_json_writer_open(w, '[');
        tc_json_writer_next(w, &first);
        value_write(w, f, up);
        tc_json_writer_close(w, ']', first);
    } else {
        value_write(w, f, up);
    }
}

/* Returns the text of a well-known type; NULL for wrappers and all other messages. */
static const char *known_text(const torc_schema_message *type)
{
    switch (type->known) {
    case TC_KNOWN_ANY:
    case TC_KNOWN_STRUCT:
        return "{}";
    case TC_KNOWN_DURATION:
        return "\"0s\"";
    case TC_KNOWN_TIMESTAMP:
        return "\"1970-01-01T00:00:00Z\"";
    case TC_KNOWN_FIELD_MASK:
        return "\"\"";
    case TC_KNOWN_VALUE:
        return "null";
    case TC_KNOWN_LIST:
        return "[]";
    case TC_KNOWN_WRAPPER:
    case TC_KNOWN_NONE:
        break;
    }
    return NULL;
}

static void message_write(struct tc_json_writer *w, const torc_schema_message *type, const struct template_frame *up)
{
    const struct template_frame frame = {up, type, up ? up->depth + 1 : 1};
    const char *text = known_text(type);
    bool first = true;
    if (text) {
        tc_json_writer_text(w, text);
        return;
    }
    if (type->known == TC_KNOWN_WRAPPER) {
        scalar_write(w, type->by_number[0]);
        return;
    }
    tc_json_writer_open(w, '{');
    if (!is_within(up, type) && frame.depth <= MOST_FRAMES && w->out->len < ENOUGH_BYTES && !type->message_set) {
        for (size_t i = 0; i < type->fields.len && w->out->len < MOST_BYTES;) {
            const struct tc_schema_field *f = type->fields.data[i];
            tc_json_writer_member(w, &first, tc_slice_str(f->shadowed ? f->name : f->json_name));
            field_write(w, f, &frame);
            i += f->oneof ? f->oneof->members : 1;
        }
    }
    tc_json_writer_close(w, '}', first);
}

char *torc_schema_template(const torc_schema_message *message)
{
    struct tc_buf text = {0};
    struct tc_json_writer w = {.out = &text, .indent = 2};
    message_write(&w, message, NULL);
    return tc_buf_take(&text);
}
