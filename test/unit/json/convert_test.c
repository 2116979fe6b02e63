/* JSON to bytes and back with the schema of test/json, by tables: values, well-known types, proto2 and options; then
 * bytes of other encoders and broken bytes, limits, arguments, and a text that is split into values. In a table of
 * `struct row` JSON is converted to bytes, and these bytes to JSON (`play`); the rows of `bytes` begin with bytes. The
 * tests share one linked schema, which set_up makes and tear_down frees. */
#include "kit.h"

static torc_schema *schema;

/* A row of a table: `want` is the JSON that the bytes of `json` give (NULL: `json` itself), or the error's text. */
struct row {
    const char *type, *json, *want;
};

static const struct torc_json_options plain = {TORC_SIZE(torc_json_options)};

/* Converts JSON to bytes and back. Returns the new JSON, or the error's text. The caller frees the text. */
static char *there_and_back(const char *type, const char *json, const struct torc_json_options *options)
{
    const torc_schema_message *m = torc_schema_find_message(schema, type);
    torc_error *error = NULL;
    void *bytes = NULL;
    char *text = NULL;
    size_t size;
    assert_non_null(m);
    int rc = torc_json_to_bytes(schema, m, json, strlen(json), options, &bytes, &size, &error);
    if (rc == 0)
        rc = torc_json_from_bytes(schema, m, bytes, size, options, &text, NULL, &error);
    assert_int_equal(rc, torc_error_code(error));
    if (rc != 0)
        text = tc_strdup(torc_error_text(error));
    torc_free(bytes);
    torc_error_free(error);
    return text;
}

static void play(const struct row *rows, size_t n, const struct torc_json_options *options)
{
    for (size_t i = 0; i < n; i++) {
        char *text = there_and_back(rows[i].type, rows[i].json, options);
        const char *want = rows[i].want ? rows[i].want : rows[i].json;
        if (strcmp(text, want) != 0)
            fail_msg("%s: %s\n  is     %s\n  wanted %s", rows[i].type, rows[i].json, text, want);
        torc_free(text);
    }
}

#define PLAY(rows, options) play(rows, TC_ARRAY_LEN(rows), options)

static void numbers(void **state)
{
    static const struct row rows[] = {
        {ALL,
         "{\"fInt32\":-2147483648,\"fInt64\":\"-9223372036854775808\",\"fUint32\":4294967295,"
         "\"fUint64\":\"18446744073709551615\"}",
         NULL},
        {ALL, "{\"fInt32\":1e3,\"fInt64\":1.0,\"fUint64\":18446744073709551615,\"fUint32\":\"4.294967295e9\"}",
         "{\"fInt32\":1000,\"fInt64\":\"1\",\"fUint32\":4294967295,\"fUint64\":\"18446744073709551615\"}"},
        {ALL, "{\"fInt64\":9.223372036854775807e18,\"fInt32\":100000.000}",
         "{\"fInt32\":100000,\"fInt64\":\"9223372036854775807\"}"},
        {ALL, "{\"fInt32\":0,\"fDouble\":0.0,\"fBool\":false,\"fString\":\"\",\"fBytes\":\"\",\"fEnum\":0}", "{}"},
        {ALL, "{\"oInt32\":0,\"oDouble\":-0.0,\"oBool\":false,\"oString\":\"\"}",
         "{\"oDouble\":-0.0,\"oInt32\":0,\"oBool\":false,\"oString\":\"\"}"},
        {ALL, "{\"fDouble\":\"NaN\",\"fFloat\":\"-Infinity\",\"oDouble\":\"Infinity\"}", NULL},
        {ALL, "{\"fDouble\":0.1,\"fFloat\":0.1,\"rFloat\":[3.4028235e+38,1e-45,16777216]}", NULL},
        {ALL, "{\"fDouble\":\"1.5e2\",\"fFloat\":\"-1\"}", "{\"fDouble\":150,\"fFloat\":-1}"},
        {ALL, "{\"fInt32\":2147483648}", "line 1, column 11: field f_int32: must be an integer of 32 bits"},
        {ALL, "{\"fInt32\":0.5}", "line 1, column 11: field f_int32: must be an integer of 32 bits"},
        {ALL, "{\"fInt32\":01}", "line 1, column 11: field f_int32: must be a number"},
        {ALL, "{\"fInt32\":\" 1\"}", "line 1, column 11: field f_int32: must be an integer of 32 bits"},
        {ALL, "{\"fInt32\":\"0x1\"}", "line 1, column 11: field f_int32: must be an integer of 32 bits"},
        {ALL, "{\"fInt32\":true}", "line 1, column 11: field f_int32: must be an integer of 32 bits"},
        {ALL, "{\"fUint32\":-1}", "line 1, column 12: field f_uint32: must be an unsigned integer of 32 bits"},
        {ALL, "{\"fUint64\":18446744073709551616}",
         "line 1, column 12: field f_uint64: must be an unsigned integer of 64 bits"},
        {ALL, "{\"fDouble\":1.89769e+308}", "line 1, column 12: field f_double: must be a number of 64 bits"},
        {ALL, "{\"fFloat\":3.502823e+38}",
         "line 1, column 11: field f_float: must be a number in the range of a float"},
        {ALL, "{\"fDouble\":NaN}", "line 1, column 12: field f_double: must be a number"},
        {ALL, "{\"fBool\":\"true\"}", "line 1, column 10: field f_bool: must be true or false"},
    };
    (void)state;
    PLAY(rows, &plain);
}

/* An integer may have any number of digits and any exponent: only its value is limited. The text of a double may have
 * 1,099 characters. */
static void long_numbers(void **state)
{
    static const struct {
        const char *before, *after, *want;
    } rows[] = {
        {"1", "e-1001", "{\"fInt64\":\"1\"}"},
        {"12", "e-1000", "{\"fInt64\":\"120\"}"},
        {"-12", "e-1001", "{\"fInt64\":\"-12\"}"},
        {"0.", "7e1002", "{\"fInt64\":\"7\"}"},
        {"1", "e-1002", "line 1, column 11: field f_int64: must be an integer of 64 bits"},
        {"0e9", "", "{}"},
        {"1e9", "", "line 1, column 11: field f_int64: must be an integer of 64 bits"},
        {"1e-9", "", "line 1, column 11: field f_int64: must be an integer of 64 bits"},
    };
    char zeros[1002];
    (void)state;
    memset(zeros, '0', sizeof(zeros) - 1);
    zeros[sizeof(zeros) - 1] = '\0';
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        char json[1100];
        snprintf(json, sizeof(json), "{\"fInt64\":%s%s%s}", rows[i].before, zeros, rows[i].after);
        char *text = there_and_back(ALL, json, &plain);
        assert_string_equal(text, rows[i].want);
        torc_free(text);
    }
    for (int more = 0; more < 2; more++) { /* 1,099 characters and 1,100 */
        char json[1200];
        snprintf(json, sizeof(json), "{\"fDouble\":1%s.%.*se-1001}", zeros, 90 + more, zeros);
        char *text = there_and_back(ALL, json, &plain);
        assert_string_equal(text, more ? "line 1, column 12: field f_double: must be a number of 64 bits"
                                       : "{\"fDouble\":1}");
        torc_free(text);
    }
}

static void texts(void **state)
{
    static const struct row rows[] = {
        {ALL, "{\"fString\":\"a\\u0000\\u001f\\b\\\"\\\\\xe2\x82\xac\"}", NULL},
        {ALL, "{\"fString\":\"\\ud83d\\ude00\\/\\u20AC\"}", "{\"fString\":\"\xf0\x9f\x98\x80/\xe2\x82\xac\"}"},
        {ALL, "{\"fString\":\"\\ud83d\"}", "line 1, column 13: field f_string: half of a surrogate pair"},
        {ALL, "{\"fString\":\"\\ude00\\ud83d\"}", "line 1, column 13: field f_string: half of a surrogate pair"},
        {ALL, "{\"fString\":\"\xff\"}", "line 1, column 13: field f_string: text that is not UTF-8"},
        {ALL, "{\"fString\":\"a\nb\"}", "line 1, column 14: field f_string: a control character in a string"},
        {ALL, "{\"fString\":\"\\x\"}", "line 1, column 13: field f_string: an escape that JSON does not have"},
        {ALL, "{\"fString\":\"\\u12g4\"}", "line 1, column 13: field f_string: \\u without four hexadecimal digits"},
        {ALL, "{\"fString\":\"abc", "line 1, column 12: field f_string: a string that does not end"},
        {ALL, "{\"fString\":5}", "line 1, column 12: field f_string: must be a string"},
        {ALL, "{\"fBytes\":\"-_8\",\"oBytes\":\"+/8=\"}", "{\"fBytes\":\"+/8=\",\"oBytes\":\"+/8=\"}"},
        {ALL, "{\"fBytes\":\"a\"}", "line 1, column 11: field f_bytes: must be a string of base64"},
        {ALL, "{\"fBytes\":\"a*==\"}", "line 1, column 11: field f_bytes: must be a string of base64"},
    };
    (void)state;
    PLAY(rows, &plain);
}

static void fields(void **state)
{
    static const struct row rows[] = {
        {ALL, "{ \"f_int32\" : 1 ,\n\t\"fInt64\":2}\r\n", "{\"fInt32\":1,\"fInt64\":\"2\"}"},
        {ALL, "{\"camelCase\":1,\"StrangeName\":2,\"@odd \\\"name\\\"\":3}", NULL},
        {ALL, "{\"renamed\":3,\"_strange__name_\":1}", "{\"StrangeName\":1,\"@odd \\\"name\\\"\":3}"},
        {ALL, "{\"fInt32\":null,\"rInt32\":null,\"mStringInt32\":null,\"fMessage\":null}", "{}"},
        {ALL, "{\"cInt64\":null,\"cString\":\"\"}", "{\"cString\":\"\"}"},
        {ALL, "{\"cNull\":null}", NULL},
        {ALL, "{\"cNull\":\"NULL_VALUE\",\"fNull\":null}", "{\"cNull\":null}"},
        {ALL, "{\"cValue\":null}", NULL},
        {ALL, "{\"rMessage\":[{},{\"text\":\"x\",\"back\":[{\"fInt32\":1}]}],\"rInt32\":[],\"fMessage\":{}}",
         "{\"fMessage\":{},\"rMessage\":[{},{\"text\":\"x\",\"back\":[{\"fInt32\":1}]}]}"},
        {ALL, "{\"fEnum\":\"COLOR_CRIMSON\",\"rEnum\":[-5,77,\"COLOR_NONE\"]}",
         "{\"fEnum\":\"COLOR_RED\",\"rEnum\":[\"COLOR_NEGATIVE\",77,\"COLOR_NONE\"]}"},
        {ALL, "{\"fInt32\":1,\"f_int32\":1}", "line 1, column 13: field f_int32: is given twice"},
        {ALL, "{\"fInt32\":null,\"fInt32\":1}", "line 1, column 16: field f_int32: is given twice"},
        {ALL, "{\"cInt64\":1,\"cString\":\"\"}",
         "line 1, column 13: field c_string: another field of the oneof choice is set"},
        {ALL, "{\"rInt32\":[1,null]}", "line 1, column 14: field r_int32[1]: must be a value, not null"},
        {ALL, "{\"rInt32\":1}", "line 1, column 11: field r_int32: must be a list"},
        {ALL, "{\"rMessage\":[{\"back\":[{},{\"fInt32\":\"x\"}]}]}",
         "line 1, column 36: field r_message[0].back[1].f_int32: must be an integer of 32 bits"},
        {ALL, "{\"fEnum\":\"BLUE\"}",
         "line 1, column 10: field f_enum: unknown value BLUE of enum torc.test.json.Color"},
        {ALL, "{\"fEnum\":1.5}", "line 1, column 10: field f_enum: must be the name or number of an enum value"},
        {ALL, "{\"\\u001b[31m\\u009b\\u007f\\n\xc2\xa0\":1}",
         "line 1, column 2: torc.test.json.All has no field ?[31m???\xc2\xa0"},
        {ALL, "{\n  \"nobody\": 1}", "line 2, column 3: torc.test.json.All has no field nobody"},
        {ALL, "{\"fMessage\":{\"nobody\":1}}",
         "line 1, column 14: field f_message: torc.test.json.All.Inner has no field nobody"},
        {ALL, "[]", "line 1, column 1: must be an object"},
        {ALL, "", "line 1, column 1: must be an object, and the text ends"},
        {ALL, "{\"fInt32\":1,}", "line 1, column 13: must be a string"},
        {ALL, "{\"fInt32\":1", "line 1, column 12: must be ',' or '}', and the text ends"},
        {ALL, "{\"fInt32\" 1}", "line 1, column 11: must be ':'"},
        {ALL, "{'fInt32':1}", "line 1, column 2: must be a string"},
        {ALL, "{} {}", "line 1, column 4: text behind the message"},
    };
    (void)state;
    PLAY(rows, &plain);
}

static void maps(void **state)
{
    static const struct row rows[] = {
        {ALL, "{\"mStringInt32\":{\"b\":2,\"a\":0,\"\":3}}", "{\"mStringInt32\":{\"\":3,\"a\":0,\"b\":2}}"},
        {ALL, "{\"mInt64String\":{\"10\":\"x\",\"-9\":\"\",\"1e1\":\"y\"}}",
         "line 1, column 35: field m_int64_string: a key is given twice"},
        {ALL, "{\"mInt64String\":{\"10\":\"x\",\"-9\":\"\",\"9\":\"y\"}}",
         "{\"mInt64String\":{\"-9\":\"\",\"9\":\"y\",\"10\":\"x\"}}"},
        {ALL, "{\"mBoolMessage\":{\"true\":{},\"false\":{\"number\":1}}}",
         "{\"mBoolMessage\":{\"false\":{\"number\":1},\"true\":{}}}"},
        {ALL, "{\"mFixed64Float\":{\"18446744073709551615\":1.5,\"2\":0}}",
         "{\"mFixed64Float\":{\"2\":0,\"18446744073709551615\":1.5}}"},
        {ALL, "{\"mStringValue\":{\"a\":null}}", NULL},
        {ALL, "{\"mStringInt32\":{\"a\":1,\"\\u0061\":2}}",
         "line 1, column 24: field m_string_int32: a key is given twice"},
        {ALL, "{\"mStringInt32\":{\"a\":null}}",
         "line 1, column 22: field m_string_int32[\"a\"]: must be a value, not null"},
        {ALL, "{\"mBoolMessage\":{\"yes\":{}}}",
         "line 1, column 18: field m_bool_message[\"yes\"]: must have a key that is true or false"},
        {ALL, "{\"mUint32Enum\":{\"-1\":0}}",
         "line 1, column 17: field m_uint32_enum[\"-1\"]: must have a key that is an unsigned integer of 32 bits"},
        {ALL, "{\"mStringInt32\":[]}", "line 1, column 17: field m_string_int32: must be an object"},
    };
    (void)state;
    PLAY(rows, &plain);
}

#define URL "type.googleapis.com/"

static void well_known(void **state)
{
    static const struct row rows[] = {
        {ALL, "{\"wDuration\":\"-1.500s\",\"wTimestamp\":\"2026-01-02T05:04:05.5+02:00\"}",
         "{\"wDuration\":\"-1.500s\",\"wTimestamp\":\"2026-01-02T03:04:05.500Z\"}"},
        {ALL, "{\"wDuration\":\"0s\",\"wTimestamp\":\"1970-01-01T00:00:00Z\"}", NULL},
        {ALL, "{\"wMask\":\"fooBar,a.bC\"}", NULL},
        {ALL, "{\"wMask\":\"\"}", NULL},
        {ALL, "{\"wStruct\":{\"a\":[1,\"x\",null,true,{\"b\":{}}]}}", NULL},
        {ALL, "{\"wValues\":[null,1.5,\"\",false,[],{}],\"wList\":[],\"wEmpty\":{}}",
         "{\"wValues\":[null,1.5,\"\",false,[],{}],\"wList\":[],\"wEmpty\":{}}"},
        {ALL, "{\"wBool\":false,\"wString\":\"\",\"wInt64\":\"0\",\"wUint64\":5,\"wBytes\":\"\",\"wFloat\":1}",
         "{\"wFloat\":1,\"wInt64\":\"0\",\"wUint64\":\"5\",\"wBool\":false,\"wString\":\"\",\"wBytes\":\"\"}"},
        {ALL, "{\"wAny\":{}}", NULL},
        {ALL, "{\"wAny\":{\"@type\":\"" URL OLD "\",\"oInt32\":1}}", NULL},
        {ALL, "{\"wAny\":{\"oInt32\":1,\"@type\":\"" URL OLD "\"}}",
         "{\"wAny\":{\"@type\":\"" URL OLD "\",\"oInt32\":1}}"},
        {ALL, "{\"wAny\":{\"value\":\"1s\",\"@type\":\"" URL "google.protobuf.Duration\"}}",
         "{\"wAny\":{\"@type\":\"" URL "google.protobuf.Duration\",\"value\":\"1s\"}}"},
        {ALL,
         "{\"wAny\":{\"@type\":\"" URL "google.protobuf.Any\",\"value\":{\"@type\":\"" URL "google.protobuf.Empty\"}}}",
         NULL},
        {ALL, "{\"wAny\":{\"value\":{},\"@type\":\"google.protobuf.Empty\"}}",
         "{\"wAny\":{\"@type\":\"google.protobuf.Empty\"}}"},
        {ALL, "{\"wAny\":{\"value\":{},\"@type\":\"google.protobuf.Empty\",\"value\":{}}}",
         "line 1, column 53: field w_any: value is given twice"},
        {ALL, "{\"wMask\":\"a,,b\"}", "line 1, column 10: field w_mask: must be paths in lowerCamelCase"},
        {ALL, "{\"wMask\":\"a,\"}", "line 1, column 10: field w_mask: must be paths in lowerCamelCase"},
        {ALL, "{\"wDuration\":\"1\"}", "line 1, column 14: field w_duration: must be a duration such as \"1.5s\""},
        {ALL, "{\"wTimestamp\":\"2026-02-30T00:00:00Z\"}",
         "line 1, column 15: field w_timestamp: must be a time such as \"2026-01-02T03:04:05.006Z\""},
        {ALL, "{\"wMask\":\"foo_bar\"}", "line 1, column 10: field w_mask: must be paths in lowerCamelCase"},
        {ALL, "{\"wValue\":\"NaN\"}", NULL},
        {ALL, "{\"wAny\":{\"@type\":\"" URL "a.B\"}}",
         "line 1, column 9: field w_any: the type " URL "a.B is not known"},
        {ALL, "{\"wAny\":{\"@type\":\"" URL OLD "\",\"@type\":\"" URL OLD "\"}}",
         "line 1, column 59: field w_any: @type is given twice"},
        {ALL, "{\"wAny\":{\"oInt32\":1}}", "line 1, column 9: field w_any: @type is missing"},
        {ALL, "{\"wAny\":{\"@type\":\"" URL "google.protobuf.Duration\"}}",
         "line 1, column 9: field w_any: value is missing"},
    };
    (void)state;
    PLAY(rows, &plain);
}

static void proto2(void **state)
{
    static const struct row rows[] = {
        {OLD, "{\"oInt32\":0,\"oString\":\"\",\"oClosed\":\"CLOSED_ZERO\"}", NULL},
        {OLD, "{\"pair\":{\"left\":\"x\",\"right\":{\"pair\":{}}},\"item\":[{},{\"value\":1}]}", NULL},
        {OLD, "{\"rUnpacked\":[1,-1],\"rPacked\":[7]}", "{\"rUnpacked\":[\"1\",\"-1\"],\"rPacked\":[7]}"},
        {OLD,
         "{\"[torc.test.json.text_extension]\":\"x\",\"[torc.test.json.Old.nested_extension]\":{\"oInt32\":5},"
         "\"[torc.test.json.list_extension]\":[\"1\"]}",
         NULL},
        {OLD, "{\"other name\":\"x\"}", NULL},
        {OLD, "{\"oClosed\":9}",
         "line 1, column 12: field o_closed: unknown value 9 of enum torc.test.json.Closed, which is closed"},
        {OLD, "{\"[torc.test.json.nobody]\":1}",
         "line 1, column 2: torc.test.json.Old has no field [torc.test.json.nobody]"},
        {OLD, "{\"text_extension\":\"x\"}", "line 1, column 2: torc.test.json.Old has no field text_extension"},
        {"torc.test.json.Demanding", "{\"first\":0,\"second\":{}}", NULL},
        {"torc.test.json.Demanding", "{\"first\":0,\"second\":{},\"inner\":{\"first\":1}}",
         "line 1, column 32: field inner: the required field second is missing"},
        {"torc.test.json.Demanding", "{\"first\":null,\"second\":{}}", "line 1, column 2: field first: is required"},
        {"torc.test.json.Set", "{}", "line 1, column 1: torc.test.json.Set is a message set, which has no JSON form"},
    };
    (void)state;
    PLAY(rows, &plain);
}

static void options(void **state)
{
    const struct torc_json_options lenient = {TORC_SIZE(torc_json_options), .allow_unknown = TORC_ON,
                                              .unknown_any = TORC_ON, .allow_partial = TORC_ON};
    static const struct row passed_over[] = {
        {ALL, "{\"nobody\":[{\"a\":[]}],\"fEnum\":\"BLUE\",\"rEnum\":[\"BLUE\",1],\"mUint32Enum\":{\"1\":\"BLUE\"}}",
         "{\"rEnum\":[\"COLOR_RED\"]}"},
        {ALL, "{\"nobody\":[1,]}", "line 1, column 14: must be a value"},
        {ALL, "{\"wAny\":{\"@type\":\"" URL "a.B\",\"@value\":\"AQI=\"}}", NULL},
        {"torc.test.json.Demanding", "{}", NULL},
        {"torc.test.json.Picky", "{\"closed\":\"BLUE\"}", "{}"},
        {OLD, "{\"rClosed\":[9,\"CLOSED_ONE\"]}", "{\"rClosed\":[\"CLOSED_ONE\"]}"},
    };
    const struct torc_json_options known = {TORC_SIZE(torc_json_options), .allow_unknown = TORC_ON};
    static const struct row required[] = {
        {"torc.test.json.Picky", "{\"closed\":\"CLOSED_ONE\"}", NULL},
        {"torc.test.json.Picky", "{\"closed\":\"BLUE\"}",
         "line 1, column 2: field closed: is required, and its value is unknown"},
        {"torc.test.json.Picky", "{\"closed\":9}",
         "line 1, column 2: field closed: is required, and its value is unknown"},
    };
    const struct torc_json_options named = {TORC_SIZE(torc_json_options), .proto_names = TORC_ON,
                                            .enum_numbers = TORC_ON, .indent = 2};
    static const struct row shown[] = {
        {ALL, "{\"fEnum\":1,\"rInt32\":[1,2],\"wStruct\":{\"aB\":[]}}",
         "{\n  \"f_enum\": 1,\n  \"r_int32\": [\n    1,\n    2\n  ],\n  \"w_struct\": {\n    \"aB\": []\n  }\n}"},
        {ALL, "{}", NULL},
    };
    const struct torc_json_options defaults = {TORC_SIZE(torc_json_options), .emit_defaults = TORC_ON};
    static const struct row whole[] = {
        {"torc.test.json.All.Inner", "{\"number\":1}", "{\"text\":\"\",\"back\":[],\"number\":1}"},
        {"torc.test.json.All.Inner", "{}", "{\"text\":\"\",\"back\":[],\"number\":0}"},
        {OLD, "{}", "{\"rClosed\":[],\"rUnpacked\":[],\"rPacked\":[],\"item\":[],\"mClosed\":{}}"},
    };
    (void)state;
    PLAY(passed_over, &lenient);
    PLAY(required, &known);
    PLAY(shown, &named);
    PLAY(whole, &defaults);
}

/* --- bytes of other encoders, and broken bytes --- */

/* Returns the JSON of the bytes, or the error's text. The caller frees the text. */
static char *shown(const char *type, const char *bytes, size_t n)
{
    torc_error *error = NULL;
    char *text = NULL;
    if (torc_json_from_bytes(schema, torc_schema_find_message(schema, type), bytes, n, NULL, &text, NULL, &error) != 0)
        text = tc_strdup(torc_error_text(error));
    torc_error_free(error);
    return text;
}

static void bytes(void **state)
{
    static const struct {
        const char *type, *bytes;
        size_t n;
        const char *want;
    } rows[] = {
#define ROW(type, bytes, want) {type, bytes, sizeof(bytes) - 1, want}
        ROW(ALL, "\x18\x01\x18\x02", "{\"fInt32\":2}"),
        ROW(ALL, "\x18\x01\x20\x05\x18\x03", "{\"fInt32\":3,\"fInt64\":\"5\"}"),
        /* A message that comes in pieces is one message, in a oneof too, unless another member comes between. */
        ROW(ALL, "\x8a\x01\x03\x0a\x01x\x8a\x01\x02\x18\x07", "{\"fMessage\":{\"text\":\"x\",\"number\":7}}"),
        ROW(ALL, "\x82\x04\x03\x0a\x01x\x82\x04\x02\x18\x07", "{\"cMessage\":{\"text\":\"x\",\"number\":7}}"),
        ROW(ALL, "\x82\x04\x03\x0a\x01x\xe8\x03\x01\x82\x04\x02\x18\x07", "{\"cMessage\":{\"number\":7}}"),
        ROW(ALL, "\x82\x04\x03\x0a\x01x\xe8\x03\x01", "{\"cInt64\":\"1\"}"),
        /* Packed or not, also mixed. */
        ROW(ALL, "\xda\x02\x02\x01\x02\xd8\x02\x03\x18\x09\xd8\x02\x04", "{\"fInt32\":9,\"rInt32\":[1,2,3,4]}"),
        ROW(ALL, "\xda\x02\x02\x01\xff", "field r_int32: a list of numbers that is cut short"),
        ROW(ALL, "\xda\x02\x00", "{}"),
        /* Another wire type, an unknown field, an unknown group. */
        ROW(ALL, "\x1d\x01\x02\x03\x04\xc8\x0d\x01\xcb\x0d\x08\x01\xcc\x0d", "{}"),
        /* Bytes that are cut short, a field with the number 0, text that is not UTF-8. */
        ROW(ALL, "\xcb\x0d\x08\x01", "bytes that are not a message"),
        ROW(ALL, "\x18", "bytes that are not a message"),
        ROW(ALL,
            "\x72\x05"
            "ab",
            "bytes that are not a message"),
        ROW(ALL, "\x00\x01", "bytes that are not a message"),
        ROW(ALL, "\x72\x01\xff", "field f_string: text that is not UTF-8"),
        /* -1 as a varint of 32 bits, and a bool whose varint is 2^63. */
        ROW(ALL, "\x18\xff\xff\xff\xff\x0f", "{\"fInt32\":-1}"),
        ROW(ALL, "\x68\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "{\"fBool\":true}"),
        /* 2^32 is 0 in 32 bits, which is a default value. It is not 0 in 64 bits, and it is true. */
        ROW(ALL, "\x18\x80\x80\x80\x80\x10\x28\x80\x80\x80\x80\x10", "{}"),
        ROW(ALL, "\x38\x80\x80\x80\x80\x10\x80\x01\x80\x80\x80\x80\x10", "{}"),
        ROW(ALL, "\x90\x01\x80\x80\x80\x80\x10\xb8\x01\x80\x80\x80\x80\x10", "{\"oInt32\":0}"),
        ROW(ALL, "\x20\x80\x80\x80\x80\x10\x68\x80\x80\x80\x80\x10", "{\"fInt64\":\"4294967296\",\"fBool\":true}"),
        /* -0.0 is not the default value. */
        ROW(ALL, "\x09\x00\x00\x00\x00\x00\x00\x00\x80\x15\x00\x00\x00\x80", "{\"fDouble\":-0.0,\"fFloat\":-0.0}"),
        /* Entries of maps: the last of a key, without a key, without a value, in another order. */
        ROW(ALL,
            "\xba\x04\x05\x0a\x01"
            "a\x10\x01\xba\x04\x05\x0a\x01"
            "a\x10\x02",
            "{\"mStringInt32\":{\"a\":2}}"),
        ROW(ALL, "\xba\x04\x00", "{\"mStringInt32\":{\"\":0}}"),
        ROW(ALL, "\xca\x04\x02\x08\x02", "{\"mBoolMessage\":{\"true\":{}}}"),
        ROW(ALL,
            "\xba\x04\x05\x10\x07\x0a\x01"
            "b",
            "{\"mStringInt32\":{\"b\":7}}"),
        ROW(ALL, "\xc2\x04\x05\x08\x87\x01\x12\x00", "{\"mInt64String\":{\"135\":\"\"}}"),
        ROW(ALL, "\xc2\x04\x06\x08\x87\x01\x12\x01\xff", "field m_int64_string[\"135\"]: text that is not UTF-8"),
        ROW(ALL, "\xba\x04\x01\x0a", "field m_string_int32: an entry that cannot be read"),
        ROW(ALL, "\xba\x04\x03\x0a\x01\xff", "field m_string_int32: text that is not UTF-8"),
        /* Values that a closed enum does not have. */
        ROW(OLD, "\x18\x09\x20\x09\x20\x01\x4a\x04\x08\x02\x10\x09", "{\"rClosed\":[\"CLOSED_ONE\"]}"),
        ROW(OLD, "\x20\x09", "{}"),
        /* A group in two pieces. */
        ROW(OLD, "\x3b\x0a\x01x\x3c\x3b\x12\x00\x3c", "{\"pair\":{\"left\":\"x\",\"right\":{}}}"),
        /* Values with a JSON form, and values without one. */
        ROW(ALL, "\x92\x05\x02\x10\x01", "{\"wDuration\":\"0.000000001s\"}"),
        ROW(ALL, "\x92\x05\x07\x08\x81\xf0\x91\xa0\x98\x12", "field w_duration: a Duration out of range"),
        ROW(ALL, "\x9a\x05\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "field w_timestamp: a Timestamp out of range"),
        ROW(ALL,
            "\xaa\x05\x05\x0a\x03"
            "a_B",
            "field w_mask: a path that is empty, has a comma, or has no lowerCamelCase"),
        ROW(ALL,
            "\xaa\x05\x06\x0a\x04"
            "a__b",
            "field w_mask: a path that is empty, has a comma, or has no lowerCamelCase"),
        ROW(ALL, "\xb2\x05\x09\x11\x00\x00\x00\x00\x00\x00\xf8\x7f",
            "field w_values[0]: a number that google.protobuf.Value cannot have in JSON"),
        ROW(ALL, "\xb2\x05\x00", "{\"wValues\":[null]}"),
        ROW(ALL,
            "\x8a\x05\x05\x0a\x03"
            "a/b",
            "field w_any: the type a/b of a google.protobuf.Any is not known"),
        ROW(ALL, "\xaa\x05\x05\x0a\x03\x61,b",
            "field w_mask: a path that is empty, has a comma, or has no lowerCamelCase"),
        ROW(ALL, "\xaa\x05\x02\x0a\x00", "field w_mask: a path that is empty, has a comma, or has no lowerCamelCase"),
        ROW(ALL, "\xca\x04\x04\x12\x02\x0a\x05", "field m_bool_message[\"false\"]: bytes that are not a message"),
        /* Of a oneof only the last member counts. Fields outside the oneof may come between. */
        ROW(ALL, "\xe8\x03\x01\x18\x01\xf2\x03\x00\xe8\x03\x02\x20\x05\xf2\x03\x01x",
            "{\"fInt32\":1,\"fInt64\":\"5\",\"cString\":\"x\"}"),
        /* Names that a peer chose are shown without their control characters. */
        ROW(ALL, "\xfa\x04\x0d\x0a\x03\x1b[m\x12\x06\x11\xff\xff\xff\xff\xff",
            "field m_string_value[\"?[m\"]: bytes that are not a message"),
        ROW("torc.test.json.Set", "", "a message set, which has no JSON form"),
#undef ROW
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        char *text = shown(rows[i].type, rows[i].bytes, rows[i].n);
        if (strcmp(text, rows[i].want) != 0)
            fail_msg("row %zu\n  is     %s\n  wanted %s", i, text, rows[i].want);
        torc_free(text);
    }
}

/* --- limits --- */

/* Returns `n` times `open`, then `inner`, then `n` times `close`. The caller frees the buffer. */
static struct tc_buf nested(const char *open, const char *inner, const char *close, size_t n)
{
    struct tc_buf text = {0};
    for (size_t i = 0; i < n; i++)
        tc_buf_append_str(&text, open);
    tc_buf_append_str(&text, inner);
    for (size_t i = 0; i < n; i++)
        tc_buf_append_str(&text, close);
    return text;
}

/* Converts the JSON to bytes and returns the code. Frees the buffer `json`. */
static int code_of(const char *type, struct tc_buf *json, const struct torc_json_options *o)
{
    torc_error *error = NULL;
    void *out = NULL;
    size_t size;
    int rc = torc_json_to_bytes(schema, torc_schema_find_message(schema, type), json->data, json->len, o, &out, &size,
                                &error);
    torc_free(out);
    torc_error_free(error);
    tc_buf_fini(json);
    return rc;
}

static void depth(void **state)
{
    static const char *const unknown = "{\"nobody\":";
    const struct torc_json_options lenient = {TORC_SIZE(torc_json_options), .allow_unknown = TORC_ON};
    struct tc_buf text = nested("{\"next\":", "{}", "}", 99), bytes = {0};
    (void)state;
    assert_int_equal(code_of(ALL, &text, NULL), TORC_OK);
    text = nested("{\"next\":", "{}", "}", 100);
    assert_int_equal(code_of(ALL, &text, NULL), TORC_ELIMIT);
    text = nested("{\"next\":", "", "}", 20000);
    assert_int_equal(code_of(ALL, &text, NULL), TORC_ELIMIT);
    text = nested("[", "", "]", 20000);
    assert_int_equal(code_of("google.protobuf.Value", &text, NULL), TORC_ELIMIT);
    text = nested("[", "", "]", 50);
    assert_int_equal(code_of("google.protobuf.Value", &text, NULL), TORC_OK);
    text = nested("{\"nobody\":[", "", "]}", 20000);
    assert_int_equal(code_of(ALL, &text, &lenient), TORC_ELIMIT);
    text = nested(unknown, "", "", 20000);
    assert_int_equal(code_of(ALL, &text, &lenient), TORC_ELIMIT);
    for (int i = 0; i < 20000; i++) { /* tags that begin groups within one another; none of the groups ends */
        tc_buf_append_str(&bytes, "\x3b\x13");
    }
    char *shown_text = shown(OLD, bytes.data, bytes.len);
    assert_string_equal(shown_text, "bytes that are not a message");
    torc_free(shown_text);
    tc_buf_fini(&bytes);
    for (int i = 0; i < 150; i++) { /* All.next within one another */
        struct tc_buf outer = {0};
        tc_wire_append(&outer, 113, tc_buf_slice(&bytes));
        tc_buf_fini(&bytes);
        bytes = outer;
    }
    shown_text = shown(ALL, bytes.data, bytes.len);
    assert_non_null(strstr(shown_text, "messages within each other are more than max_depth"));
    torc_free(shown_text);
    tc_buf_fini(&bytes);
}

/* An Any whose @type is its last member: the reader skips the content first, which is nested about as deep as
 * messages may be. */
static void type_behind_its_content(void **state)
{
    struct tc_buf text = {0}, first = {0}, inner = nested("{\"rMessage\":[{\"back\":[", "{}", "]}]}", 44);
    (void)state;
    tc_buf_printf(&first, "{\"wAny\":{\"@type\":\"" URL ALL "\",\"rMessage\":[{\"back\":[%s]}]}}", tc_buf_cstr(&inner));
    tc_buf_printf(&text, "{\"wAny\":{\"rMessage\":[{\"back\":[%s]}],\"@type\":\"" URL ALL "\"}}", tc_buf_cstr(&inner));
    char *shown_text = there_and_back(ALL, tc_buf_cstr(&text), &plain);
    assert_string_equal(shown_text, tc_buf_cstr(&first));
    torc_free(shown_text);
    tc_buf_fini(&text);
    tc_buf_fini(&first);
    tc_buf_fini(&inner);
}

static void sizes(void **state)
{
    const struct torc_json_options small = {TORC_SIZE(torc_json_options), .max_bytes = 20};
    static const struct row rows[] = {
        {ALL, "{\"fInt32\":1}", NULL},
        {ALL, "{\"fInt32\":1000000000000}", "the input has 24 bytes, more than max_bytes (20)"},
        {ALL, "{\"wFloat\":1,\"oInt32\":1}", "the input has 23 bytes, more than max_bytes (20)"},
        {ALL, "{\"highNumber\":-1 }", "{\"highNumber\":-1}"},
    };
    struct tc_buf text = {0};
    (void)state;
    PLAY(rows, &small);
    tc_buf_append_str(&text, "{\"fString\":\"");
    memset(tc_buf_reserve(&text, 64 << 20), 'x', 64 << 20);
    text.len += 64 << 20;
    tc_buf_append_str(&text, "\"}");
    assert_int_equal(code_of(ALL, &text, NULL), TORC_ELIMIT);
    /* 2 MiB of zeros in a packed list are 4 MiB of text, and much more when each zero has a line. */
    const struct torc_json_options indented = {TORC_SIZE(torc_json_options), .indent = 16, .max_bytes = 4 << 20};
    struct tc_buf list = {0};
    char *out = NULL;
    tc_wire_append_head(&list, 43, 2 << 20);
    memset(tc_buf_reserve(&list, 2 << 20), 0, 2 << 20);
    list.len += 2 << 20;
    assert_int_equal(torc_json_from_bytes(schema, torc_schema_find_message(schema, ALL), list.data, list.len, &indented,
                                          &out, NULL, NULL),
                     TORC_ELIMIT);
    assert_null(out);
    tc_buf_fini(&list);
}

static void arguments(void **state)
{
    const torc_schema_message *m = torc_schema_find_message(schema, ALL);
    const struct torc_json_options none = {0}, depth_too_large = {TORC_SIZE(torc_json_options), .max_depth = 101},
                                   no_switch = {TORC_SIZE(torc_json_options), .indent = 0, .proto_names = 7};
    torc_schema *fresh = torc_schema_new();
    char *text = NULL;
    (void)state;
    assert_int_equal(torc_json_from_bytes(NULL, m, "", 0, NULL, &text, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_json_from_bytes(schema, NULL, "", 0, NULL, &text, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_json_from_bytes(schema, m, NULL, 1, NULL, &text, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_json_from_bytes(schema, m, "", 0, &none, &text, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_json_from_bytes(schema, m, "", 0, &depth_too_large, &text, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_json_from_bytes(schema, m, "", 0, &no_switch, &text, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_json_from_bytes(fresh, m, "", 0, NULL, &text, NULL, NULL), TORC_ESTATE);
    assert_null(text);
    torc_schema_free(fresh);
    assert_int_equal(torc_json_from_bytes(schema, m, NULL, 0, NULL, &text, NULL, NULL), TORC_OK);
    assert_string_equal(text, "{}");
    torc_free(text);
    torc_error *earlier = torc_error_new(TORC_EIO, TORC_LAYER_API, "earlier");
    assert_int_equal(torc_json_from_bytes(schema, m, NULL, 0, NULL, &text, NULL, &earlier), TORC_EIO);
    torc_error_free(earlier);
}

static void split(void **state)
{
    static const struct {
        const char *text;
        int code;
        size_t used;
    } rows[] = {
        {" {\"a\":\"}\\\"\"} {", TORC_OK, 12},
        {"{\"a\":[", TORC_EAGAIN, 0},
        {"  \n", TORC_ENOTFOUND, 0},
        {"", TORC_ENOTFOUND, 0},
        {"[[]]x", TORC_OK, 4},
        {"\"a\\", TORC_EAGAIN, 0},
        {"\"a\" ", TORC_OK, 3},
        {"12", TORC_EAGAIN, 0},
        {"12 ", TORC_OK, 2},
        {"null{}", TORC_OK, 4},
        {"}", TORC_OK, 1},
        {" }", TORC_OK, 2},
        {"\n,1 ", TORC_OK, 2},
        {" 1]", TORC_OK, 2},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        size_t used = 0;
        assert_int_equal(torc_json_split(rows[i].text, strlen(rows[i].text), &used), rows[i].code);
        assert_int_equal(used, rows[i].used);
    }
    assert_int_equal(torc_json_split(NULL, 0, NULL), TORC_EINVAL);
}

static int set_up(void **state)
{
    (void)state;
    schema = kit_schema();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    torc_schema_free(schema);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),    cmocka_unit_test(long_numbers), cmocka_unit_test(type_behind_its_content),
        cmocka_unit_test(texts),      cmocka_unit_test(fields),       cmocka_unit_test(maps),
        cmocka_unit_test(well_known), cmocka_unit_test(proto2),       cmocka_unit_test(options),
        cmocka_unit_test(bytes),      cmocka_unit_test(depth),        cmocka_unit_test(sizes),
        cmocka_unit_test(arguments),  cmocka_unit_test(split),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
