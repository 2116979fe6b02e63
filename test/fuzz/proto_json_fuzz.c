/* proto3 JSON both ways. Two bytes choose a message type; then comes JSON text when a brace or bracket or quote leads,
 * else a message. Whatever becomes a message has a JSON form, which reads back to a message of the same JSON form. */
#include "base/mem.h"
#include "base/parse.h"
#include "fuzz.h"
#include "proto/json.h"
#include "proto/unpack.h"

#define BUDGET_BYTES (1u << 24)

static void check_message(const ProtobufCMessageDescriptor *type, const ProtobufCMessage *m, bool lower_camel)
{
    const struct tc_proto_json_options options = {.lower_camel = lower_camel};
    struct tc_arena arena;
    struct tc_faults faults;
    ProtobufCMessage *again = NULL;
    json_t *one = tc_proto_to_json(m, &options), *two = NULL;
    if (!one)
        return; /* too deep: through an Any, which is bytes to the scan */
    tc_arena_init(&arena, 0, BUDGET_BYTES);
    tc_faults_init(&faults);
    int rc = tc_proto_from_json(type, one, NULL, &arena, &again, &faults);
    if (rc == 0) {
        two = tc_proto_to_json(again, &options);
        char *a = tc_json_text(one, false), *b = two ? tc_json_text(two, false) : NULL;
        TC_FUZZ_CHECK(b && strcmp(a, b) == 0);
        tc_free(a);
        tc_free(b);
    } else {
        /* Only times out of range have a JSON form that is none to read. */
        bool times = strstr(tc_faults_text(&faults), "must be a") || rc == TORC_ELIMIT;
        TC_FUZZ_CHECK(times);
    }
    json_decref(one);
    json_decref(two);
    tc_faults_fini(&faults);
    tc_arena_fini(&arena);
}

static int read_text(const ProtobufCMessageDescriptor *type, struct tc_slice text, bool lenient, struct tc_arena *arena,
                     ProtobufCMessage **m, struct tc_faults *faults)
{
    const struct tc_proto_json_options options = {.ignore_unknown = lenient};
    char *why = NULL;
    json_t *json = tc_json_parse(text, &why);
    tc_free(why);
    if (!json)
        return TORC_EPARSE;
    int rc = tc_proto_from_json(type, json, &options, arena, m, faults);
    TC_FUZZ_CHECK((rc != 0) == tc_faults_any(faults));
    TC_FUZZ_CHECK(tc_utf8_valid(tc_slice_str(tc_faults_text(faults))));
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
    struct tc_faults faults;
    ProtobufCMessage *m = NULL;
    tc_arena_init(&arena, 0, BUDGET_BYTES);
    tc_faults_init(&faults);
    bool text = rest.len && strchr("{[\"", rest.data[0]) && rest.data[0];
    int rc = text ? read_text(type, rest, flag, &arena, &m, &faults) : tc_unpack(type, rest, NULL, &arena, &m, &faults);
    if (rc == 0)
        check_message(type, m, flag);
    tc_faults_fini(&faults);
    tc_arena_fini(&arena);
    return 0;
}
