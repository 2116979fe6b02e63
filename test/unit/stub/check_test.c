/* Messages of the application that src/stub/check.c refuses before protobuf-c packs them. The error's text says why. It
 * names the field at fault, unless the outermost message itself is not initialised.
 *
 * `refused` and `taken` pack one message each, into an arena of their own. Most tests spoil one field of a blank
 * message at a time, and often mend the field again to show that it was the only fault. The types are in kinds.proto
 * and other.proto. One thread; no test keeps anything for the next. */
#include <string.h>

#include <torc/protobuf_c.h>

#include "kinds.pb-c.h"
#include "other.pb-c.h"
#include "support/cmocka.h"

typedef Torc__Test__Kinds__Kinds Kinds;
typedef Torc__Test__Kinds__Kinds__Inner Inner;
typedef Torc__Test__Other__Needs Needs;

static const Kinds blank = TORC__TEST__KINDS__KINDS__INIT;
static const Inner blank_inner = TORC__TEST__KINDS__KINDS__INNER__INIT;

/* Asserts that the message is refused with `code`, and with a text that has `part` in it. */
static void refused(const ProtobufCMessage *message, int code, const char *part)
{
    torc_arena *arena = torc_arena_new(0);
    torc_error *error = NULL;
    size_t n;
    assert_null(torc_protobuf_c_pack(message, arena, &n, &error));
    assert_int_equal(torc_error_code(error), code);
    assert_int_equal(torc_error_layer(error), TORC_LAYER_CODEC);
    if (!strstr(torc_error_text(error), part))
        fail_msg("\"%s\" does not say \"%s\"", torc_error_text(error), part);
    torc_error_free(error);
    torc_arena_free(arena);
}

static void taken(const ProtobufCMessage *message)
{
    torc_arena *arena = torc_arena_new(0);
    torc_error *error = NULL;
    size_t n;
    if (!torc_protobuf_c_pack(message, arena, &n, &error))
        fail_msg("refused: %s", torc_error_text(error));
    torc_arena_free(arena);
}

static void test_not_initialised(void **state)
{
    (void)state;
    Kinds k = blank;
    Inner raw = {.text = (char *)"text"}, good = blank_inner, *list[] = {&good, &raw};
    refused(&(Kinds){.f_int32 = 1}.base, TORC_EINVAL, "pack: the message is not an initialised message");
    k.f_message = &raw;
    refused(&k.base, TORC_EINVAL,
            "pack: the message cannot be packed: torc.test.kinds.Kinds: field f_message: is not an initialised "
            "torc.test.kinds.Kinds.Inner");
    k.f_message = NULL;
    k.r_message = list;
    k.n_r_message = 2;
    refused(&k.base, TORC_EINVAL, "field r_message[1]: is not an initialised torc.test.kinds.Kinds.Inner");
    k = blank;
    k.choice_case = TORC__TEST__KINDS__KINDS__CHOICE_C_MESSAGE;
    k.c_message = &raw;
    refused(&k.base, TORC_EINVAL, "field c_message: is not an initialised");
    k.c_message = (Inner *)&blank;
    refused(&k.base, TORC_EINVAL, "field c_message: is not an initialised torc.test.kinds.Kinds.Inner");
    Torc__Test__Kinds__Kinds__MBoolMessageEntry entry = TORC__TEST__KINDS__KINDS__MBOOL_MESSAGE_ENTRY__INIT,
                                                *entries[] = {&entry};
    k = blank;
    k.m_bool_message = entries;
    k.n_m_bool_message = 1;
    taken(&k.base);
    entry.value = &raw;
    refused(&k.base, TORC_EINVAL, "field m_bool_message[0].value: is not an initialised");
}

static void test_null(void **state)
{
    (void)state;
    Kinds k = blank, *back[] = {NULL};
    char *strings[] = {(char *)"a", NULL};
    Inner inner = blank_inner, *list[] = {&inner};
    ProtobufCBinaryData data[] = {{0, NULL}, {3, NULL}};
    k.r_string = strings;
    k.n_r_string = 2;
    refused(&k.base, TORC_EINVAL, "field r_string[1]: is NULL");
    k.n_r_string = 1;
    taken(&k.base);
    k.n_r_int32 = 2;
    refused(&k.base, TORC_EINVAL, "field r_int32: is NULL, and has 2 values");
    k = blank;
    k.r_bytes = data;
    k.n_r_bytes = 1;
    taken(&k.base);
    k.n_r_bytes = 2;
    refused(&k.base, TORC_EINVAL, "field r_bytes[1]: is NULL, and has 3 bytes");
    k = blank;
    k.f_bytes.len = 1;
    refused(&k.base, TORC_EINVAL, "field f_bytes: is NULL, and has 1 bytes");
    k = blank;
    Google__Protobuf__Empty empty = GOOGLE__PROTOBUF__EMPTY__INIT; /* its type has no fields */
    k.w_empty = &empty;
    k.f_string = NULL; /* is not sent */
    taken(&k.base);
    k.r_message = list;
    k.n_r_message = 1;
    inner.back = back;
    inner.n_back = 1;
    refused(&k.base, TORC_EINVAL, "field r_message[0].back[0]: is NULL");
}

static void test_oneofs(void **state)
{
    (void)state;
    Kinds k = blank;
    k.choice_case = TORC__TEST__KINDS__KINDS__CHOICE_C_INT64;
    taken(&k.base);
    k.choice_case = (Torc__Test__Kinds__Kinds__ChoiceCase)60;
    refused(&k.base, TORC_EINVAL, "field c_int64: is in a oneof whose case is 60, which is none of its fields");
    k.choice_case = (Torc__Test__Kinds__Kinds__ChoiceCase)TORC__TEST__KINDS__KINDS___O_INT32_O_INT32;
    refused(&k.base, TORC_EINVAL, "field c_int64: is in a oneof whose case is 23");
    k = blank;
    k._o_string_case = (Torc__Test__Kinds__Kinds__OStringCase)3;
    refused(&k.base, TORC_EINVAL, "field o_string: is in a oneof whose case is 3");
    k._o_string_case = TORC__TEST__KINDS__KINDS___O_STRING_O_STRING;
    refused(&k.base, TORC_EINVAL, "field o_string: is NULL");
    k.o_string = (char *)"";
    taken(&k.base);
}

static void test_utf8(void **state)
{
    (void)state;
    Kinds k = blank;
    Inner inner = blank_inner;
    Torc__Test__Kinds__Kinds__MStringInt32Entry entry = TORC__TEST__KINDS__KINDS__MSTRING_INT32_ENTRY__INIT,
                                                *entries[] = {&entry};
    k.f_string = (char *)"eight letters \xc3\xa4, and more";
    taken(&k.base);
    k.f_string = (char *)"eight letters \xc3, and more";
    refused(&k.base, TORC_EINVAL, "field f_string: is not valid UTF-8");
    k = blank;
    k.f_message = &inner;
    inner.text = (char *)"\xff";
    refused(&k.base, TORC_EINVAL, "field f_message.text: is not valid UTF-8");
    k = blank;
    k.m_string_int32 = entries;
    k.n_m_string_int32 = 1;
    entry.key = (char *)"\x80";
    refused(&k.base, TORC_EINVAL, "field m_string_int32[0].key: is not valid UTF-8");
}

static void test_required(void **state)
{
    (void)state;
    Torc__Test__Other__Old old = TORC__TEST__OTHER__OLD__INIT;
    Needs inner = TORC__TEST__OTHER__NEEDS__INIT, outer = inner, *more[] = {&inner};
    refused(&outer.base, TORC_EINVAL, "torc.test.other.Needs: field text: is required, and missing");
    outer.text = (char *)"";
    refused(&outer.base, TORC_EINVAL, "field old: is required, and missing");
    outer.old = &old;
    taken(&outer.base);
    outer.more = more;
    outer.n_more = 1;
    refused(&outer.base, TORC_EINVAL, "field more[0].text: is required, and missing");
    outer.n_more = 0;
    outer.word = NULL; /* has a default */
    refused(&outer.base, TORC_EINVAL, "field word: is required, and missing");
}

/* A message that contains itself is too deep. A chain of 100 messages, each of which contains the next one twice, is
 * not too deep. A walk over all of the chain would take 2^100 steps: the chain is refused for the number of its
 * messages. */
static void test_circles(void **state)
{
    (void)state;
    Kinds k = blank;
    k.next = &k;
    refused(&k.base, TORC_ELIMIT, "more than 100 messages within each other");
    enum { LEVELS = 100 };
    static Torc__Test__Other__Old levels[LEVELS];
    static Torc__Test__Other__Old *children[LEVELS][2];
    for (size_t i = 0; i < LEVELS; i++) {
        torc__test__other__old__init(&levels[i]);
        if (!i)
            continue;
        children[i][0] = children[i][1] = &levels[i - 1];
        levels[i].children = children[i];
        levels[i].n_children = 2;
    }
    taken(&levels[10].base);
    refused(&levels[LEVELS - 1].base, TORC_ELIMIT, "the message has more than 4194304 messages");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_initialised), cmocka_unit_test(test_null),
        cmocka_unit_test(test_oneofs),          cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_required),        cmocka_unit_test(test_circles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
