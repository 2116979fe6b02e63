/* proto3 JSON in both directions. Two bytes choose a message type, and the highest bit the options. The rest is JSON if
 * it begins with a brace, bracket or quote, else a message. The JSON of a message parses to a message with the same
 * JSON; check_message has the exceptions. */
#include "base/mem.h"
#include "base/parse.h"
#include "fuzz.h"
#include "proto/json.h"
#include "proto/unpack.h"

#define BUDGET_BYTES (1u << 24)

/* Checks that the JSON of a message gives the same JSON again. Exceptions: a message that has no JSON, and JSON
 * that does not parse, for the reasons below. */
static void check_message(const ProtobufCMessageDescriptor *type, const ProtobufCMessage *m, bool lower_camel)
{
    const struct tc_proto_json_options options = {.lower_camel = lower_camel};
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *again = NULL;
    json_t *one = tc_proto_to_json(m, &options), *two = NULL;
    if (!one)
        return; /* too deep, or not UTF-8 */
    tc_arena_init(&arena, 0, BUDGET_BYTES);
    int rc = tc_proto_from_json(type, one, NULL, &arena, &again, &errors);
    if (rc == 0) {
        two = tc_proto_to_json(again, &options);
        char *a = tc_json_text(one, false), *b = two ? tc_json_text(two, false) : NULL;
        TC_FUZZ_CHECK(b && strcmp(a, b) == 0);
        tc_free(a);
        tc_free(b);
    } else {
        /* Only times out of range, and messages beyond the budget, have a JSON form that does not parse. */
        const char *text = tc_validation_text(&errors);
        bool times = strstr(text, "must be a duration such as") || strstr(text, "must be a time such as");
        TC_FUZZ_CHECK(times || rc == TORC_ELIMIT);
    }
    json_decref(one);
    json_decref(two);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

/* Reads JSON as tc_proto_from_json does, and checks the errors. Returns TORC_EPARSE, without an error in `errors`, if
 * the text is not JSON. */
static int read_text(const ProtobufCMessageDescriptor *type, struct tc_slice text, bool lenient, struct tc_arena *arena,
                     ProtobufCMessage **m, struct tc_validation_errors *errors)
{
    const struct tc_proto_json_options options = {.ignore_unknown = lenient};
    char *why = NULL;
    json_t *json = tc_json_parse(text, &why);
    tc_free(why);
    if (!json)
        return TORC_EPARSE;
    int rc = tc_proto_from_json(type, json, &options, arena, m, errors);
    TC_FUZZ_CHECK((rc != 0) == tc_validation_any(errors));
    TC_FUZZ_CHECK(tc_utf8_valid(tc_slice_str(tc_validation_text(errors))));
    json_decref(json);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    size_t types = 0, wanted = (size_t)tc_fuzz_uint(&in, 2);
    while (tc_proto_type_at(types))
        types++;
    const ProtobufCMessageDescriptor *type = tc_proto_type_at(wanted % types);
    bool flag = wanted & 0x8000u;
    struct tc_slice rest = tc_slice_of(in.data, in.len);
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m = NULL;
    tc_arena_init(&arena, 0, BUDGET_BYTES);
    bool text = rest.len && strchr("{[\"", rest.data[0]) && rest.data[0];
    int rc = text ? read_text(type, rest, flag, &arena, &m, &errors) : tc_unpack(type, rest, NULL, &arena, &m, &errors);
    if (rc == 0)
        check_message(type, m, flag);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    return 0;
}
