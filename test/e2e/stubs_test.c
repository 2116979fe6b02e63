/* Generated code (test/stubs/mirror.proto) against an echo server: all four kinds of methods, malformed bytes, and what
 * is refused.
 *
 * main runs the tests twice: with a client's runtime that has a thread, and with one that the test's thread drives
 * while it waits. The tests of a run share one server, one runtime and one channel (kits/backends.h). Callbacks run on
 * the thread that drives the runtime. */
#include <stdatomic.h>
#include <string.h>

#include <torc/torc.h>

#include "mirror.torc.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

typedef Torc__Test__Kinds__Kinds Kinds;

static struct kit_backends *kit;
static torc_runtime *rt;
static torc_channel *ch;

static int setup(enum torc_runtime_mode mode)
{
    kit = kit_backends_open(mode, &rt, &ch);
    return 0;
}

static int setup_thread(void **state)
{
    (void)state;
    return setup(TORC_RUNTIME_THREAD);
}

static int setup_caller(void **state)
{
    (void)state;
    return setup(TORC_RUNTIME_CALLER);
}

static int teardown(void **state)
{
    (void)state;
    return kit_backends_close(kit, rt, ch);
}

/* torc.test.Backend/Headers as a unary and as a server streaming method. It answers with the header fields of the
 * request as text. The text is malformed as a Kinds: the "u" of user-agent, with which it begins, is the number of
 * f_string with another wire type. */
static const struct torc_protobuf_c_method headers_once = {sizeof(struct torc_protobuf_c_method),
                                                           torc_stub_v1,
                                                           "/torc.test.Backend/Headers",
                                                           &torc__test__kinds__kinds__descriptor,
                                                           &torc__test__kinds__kinds__descriptor,
                                                           0,
                                                           0};
static const struct torc_protobuf_c_method headers_each = {sizeof(struct torc_protobuf_c_method),
                                                           torc_stub_v1,
                                                           "/torc.test.Backend/Headers",
                                                           &torc__test__kinds__kinds__descriptor,
                                                           &torc__test__kinds__kinds__descriptor,
                                                           0,
                                                           1};

/* Returns a message with this number and the text "text". The message is static: the next request() changes it. */
static Kinds *request(int32_t number)
{
    static Kinds r;
    torc__test__kinds__kinds__init(&r);
    r.f_int32 = number;
    r.f_string = (char *)"text";
    r._o_int32_case = TORC__TEST__KINDS__KINDS___O_INT32_O_INT32;
    return &r;
}

static void test_unary(void **state)
{
    (void)state;
    torc_result *result = torc__test__mirror__mirror__once__call(ch, request(7), NULL);
    const Kinds *reply = torc__test__mirror__mirror__once__response(result);
    assert_non_null(reply);
    assert_int_equal(reply->f_int32, 7);
    assert_string_equal(reply->f_string, "text");
    assert_int_equal(reply->_o_int32_case, TORC__TEST__KINDS__KINDS___O_INT32_O_INT32);
    assert_ptr_equal(torc__test__mirror__mirror__once__response(result), reply);
    assert_null(torc_protobuf_c_response(NULL, &headers_once));
    torc_result *kept = torc_result_ref(result);
    torc_result_free(result);
    assert_int_equal(reply->f_int32, 7);
    torc_result_free(kept);
}

static void test_large_request(void **state)
{
    (void)state;
    static char text[100001];
    memset(text, 'x', sizeof(text) - 1);
    Kinds *large = request(1);
    large->f_string = text;
    torc_result *result = torc__test__mirror__mirror__once__call(ch, large, NULL);
    const Kinds *reply = torc__test__mirror__mirror__once__response(result);
    assert_non_null(reply);
    assert_int_equal(strlen(reply->f_string), sizeof(text) - 1);
    torc_result_free(result);
}

/* arg: an int32_t, which gets the number of the response, or -1 without a response. */
static void on_once(const torc_result *result, void *arg)
{
    const Kinds *reply = torc__test__mirror__mirror__once__response(result);
    *(int32_t *)arg = reply ? reply->f_int32 : -1;
}

static void test_async(void **state)
{
    (void)state;
    int32_t got = 0;
    torc_stream *handle = NULL;
    assert_int_equal(torc__test__mirror__mirror__once__async(ch, request(8), NULL, on_once, &got, &handle, NULL), 0);
    assert_int_equal(torc_stream_close(handle), 0); /* cancels the RPC, unless the RPC has ended */
    assert_true(got == 8 || got == -1);
    assert_int_equal(torc__test__mirror__mirror__once__async(ch, request(9), NULL, on_once, &got, &handle, NULL), 0);
    torc_result *result = torc_stream_finish(handle);
    const Kinds *reply = torc__test__mirror__mirror__once__response(result);
    assert_non_null(reply);
    assert_int_equal(reply->f_int32, 9);
    torc_result_free(result);
    assert_int_equal(torc_stream_close(handle), 0);
    assert_int_equal(got, 9);
}

/* The packed bytes live only until the stub's function returns, so the RPC copies them even with lend_request. */
static void test_async_with_a_lent_request(void **state)
{
    (void)state;
    static char text[100001];
    memset(text, 'x', sizeof(text) - 1);
    Kinds *large = request(10);
    large->f_string = text;
    struct torc_call_options lent = {.size = sizeof(lent), .lend_request = TORC_ON};
    int32_t got = 0;
    torc_stream *handle = NULL;
    assert_int_equal(torc__test__mirror__mirror__once__async(ch, large, &lent, on_once, &got, &handle, NULL), 0);
    torc_result *result = torc_stream_finish(handle);
    const Kinds *reply = torc__test__mirror__mirror__once__response(result);
    assert_non_null(reply);
    assert_int_equal(reply->f_int32, 10);
    assert_string_equal(reply->f_string, text);
    torc_result_free(result);
    assert_int_equal(torc_stream_close(handle), 0);
}

static void test_server_streaming(void **state)
{
    (void)state;
    torc_stream *s = torc__test__mirror__mirror__each__open(ch, request(3), NULL, NULL);
    const Kinds *reply = NULL;
    assert_int_equal(torc__test__mirror__mirror__each__receive(s, -1, &reply), 1);
    assert_int_equal(reply->f_int32, 3);
    assert_int_equal(torc__test__mirror__mirror__each__receive(s, -1, &reply), 0);
    torc_result *result = torc_stream_finish(s);
    assert_int_equal(torc_result_code(result), TORC_STATUS_OK);
    torc_result_free(result);
    torc_stream_free(s);
}

static void test_client_streaming(void **state)
{
    (void)state;
    torc_stream *s = torc__test__mirror__mirror__last__open(ch, NULL, NULL);
    assert_int_equal(torc__test__mirror__mirror__last__send(s, request(5), TORC_SEND_LAST, -1), 0);
    torc_stream_want(s, 1);
    torc_result *result = torc_stream_finish(s);
    const Kinds *reply = torc__test__mirror__mirror__last__response(result);
    assert_non_null(reply);
    assert_int_equal(reply->f_int32, 5);
    torc_result_free(result);
    torc_stream_free(s);
}

static void test_both(void **state)
{
    (void)state;
    torc_stream *s = torc__test__mirror__mirror__both__open(ch, NULL, NULL);
    const Kinds *reply = NULL;
    for (int32_t i = 0; i < 50; i++) {
        assert_int_equal(torc__test__mirror__mirror__both__send(s, request(i), 0, -1), 0);
        assert_int_equal(torc__test__mirror__mirror__both__receive(s, -1, &reply), 1);
        assert_int_equal(reply->f_int32, i);
    }
    assert_int_equal(torc__test__mirror__mirror__both__receive(s, 0, &reply), TORC_EAGAIN);
    torc_result *result = torc_stream_finish(s);
    assert_int_equal(torc_result_code(result), TORC_STATUS_OK);
    torc_result_free(result);
    torc_stream_free(s);
}

/* Asserts that the stream's RPC failed with this text, and frees the stream. */
static void is_refused(torc_stream *s, const char *text)
{
    torc_result *result = torc_stream_finish(s);
    assert_int_equal(torc_result_code(result), TORC_STATUS_INTERNAL);
    assert_int_equal(torc_error_layer(torc_result_error(result)), TORC_LAYER_CODEC);
    assert_string_equal(torc_error_text(torc_result_error(result)), text);
    torc_result_free(result);
    torc_stream_free(s);
}

static void test_stream_of_another_method(void **state)
{
    (void)state;
    const Kinds *reply = NULL;
    torc_stream *s = torc__test__mirror__mirror__both__open(ch, NULL, NULL);
    assert_int_equal(torc__test__mirror__mirror__last__send(s, request(1), 0, -1), TORC_EINVAL);
    is_refused(s, "a function of /torc.test.mirror.Mirror/Last was given a stream of /torc.test.mirror.Mirror/Both");
    s = torc__test__mirror__mirror__both__open(ch, NULL, NULL);
    assert_int_equal(torc__test__mirror__mirror__each__receive(s, -1, &reply), TORC_EINVAL);
    is_refused(s, "a function of /torc.test.mirror.Mirror/Each was given a stream of /torc.test.mirror.Mirror/Both");
    s = torc_stream_open(ch, "torc.test.mirror.Mirror/Both", NULL, NULL); /* no typed function has had the stream */
    assert_null(torc__test__mirror__mirror__each__message(s, (const torc_message *)"any"));
    is_refused(s, "a function of /torc.test.mirror.Mirror/Each was given a stream of /torc.test.mirror.Mirror/Both");
}

static void test_send_that_cannot_be_packed(void **state)
{
    (void)state;
    torc_stream *s = torc__test__mirror__mirror__both__open(ch, NULL, NULL);
    Kinds bad = *request(1);
    bad.f_string = (char *)"\xff";
    assert_int_equal(torc__test__mirror__mirror__both__send(s, &bad, 0, -1), TORC_EINVAL);
    is_refused(s, "/torc.test.mirror.Mirror/Both: the request cannot be packed: torc.test.kinds.Kinds: field f_string: "
                  "is not valid UTF-8");
    s = torc__test__mirror__mirror__both__open(ch, NULL, NULL);
    assert_int_equal(torc__test__mirror__mirror__both__send(s, NULL, 0, -1), TORC_EINVAL);
    is_refused(s, "/torc.test.mirror.Mirror/Both: the request is not an initialised torc.test.kinds.Kinds");
    torc_result *result = torc__test__mirror__mirror__once__call(ch, &bad, NULL);
    assert_int_equal(torc_error_code(torc_result_error(result)), TORC_EINVAL);
    assert_string_equal(torc_error_text(torc_result_error(result)),
                        "/torc.test.mirror.Mirror/Once: the request cannot be packed: torc.test.kinds.Kinds: field "
                        "f_string: is not valid UTF-8");
    torc_result_free(result);
    torc_error *error = NULL;
    assert_null(torc__test__mirror__mirror__each__open(ch, &bad, NULL, &error));
    assert_non_null(strstr(torc_error_text(error), "field f_string"));
    torc_error_free(error);
}

/* The `arg` of a stream's events. The test sets `method`, and reads the other members once `done` is true. */
struct heard {
    const struct torc_protobuf_c_method *method; /* NULL: mirror's Each */
    int32_t number;                              /* of the last message that was well-formed */
    int malformed, code, layer;                  /* how many messages were malformed; how the RPC ended */
    atomic_bool done;                            /* on_done was called */
};

static void on_message(torc_stream *stream, const torc_message *message, void *arg)
{
    struct heard *h = arg;
    const Kinds *reply = h->method ? (const Kinds *)torc_protobuf_c_message(stream, h->method, message)
                                   : torc__test__mirror__mirror__each__message(stream, message);
    if (reply)
        h->number = reply->f_int32;
    else
        h->malformed++;
    torc_stream_want(stream, 1);
}

static void on_done(torc_stream *stream, const torc_result *result, void *arg)
{
    (void)stream;
    struct heard *h = arg;
    h->code = torc_result_code(result);
    h->layer = torc_error_layer(torc_result_error(result));
    atomic_store(&h->done, true);
}

static const struct torc_stream_events events = {.size = sizeof(events), .on_message = on_message, .on_done = on_done};

/* Asks for the first message, makes other RPCs until the stream has ended, and closes it. The RPCs drive the loop where
 * no thread does; torc_stream_finish would drop the stream's messages. */
static void wait_for_the_end(torc_stream *s, struct heard *h)
{
    assert_non_null(s);
    torc_stream_want(s, 1);
    while (!atomic_load(&h->done))
        torc_result_free(torc__test__mirror__mirror__once__call(ch, request(1), NULL));
    assert_int_equal(torc_stream_close(s), 0);
}

static void test_events(void **state)
{
    (void)state;
    struct heard heard = {.code = -1};
    wait_for_the_end(torc__test__mirror__mirror__each__start(ch, request(6), NULL, &events, &heard, NULL), &heard);
    assert_int_equal(heard.number, 6);
    assert_int_equal(heard.code, TORC_STATUS_OK);
}

/* Asserts that an RPC of torc.test.Backend/Headers failed because its message is malformed. */
static void expect_malformed(const torc_result *result)
{
    const torc_error *error = torc_result_error(result);
    assert_int_equal(torc_result_code(result), TORC_STATUS_INTERNAL);
    assert_int_equal(torc_error_status(error), TORC_STATUS_INTERNAL);
    assert_int_equal(torc_error_layer(error), TORC_LAYER_CODEC);
    assert_non_null(
        strstr(torc_error_text(error), "/torc.test.Backend/Headers: malformed message: torc.test.kinds.Kinds"));
    assert_string_equal(torc_result_text(result), torc_error_text(error));
    assert_null(torc_result_response(result));
}

static void test_malformed_response(void **state)
{
    (void)state;
    torc_result *result = torc_protobuf_c_call(ch, &headers_once, &request(1)->base, NULL);
    expect_malformed(result);
    assert_null(torc_protobuf_c_response(result, &headers_once));
    torc_result_free(result);
}

static void test_malformed_message(void **state)
{
    (void)state;
    torc_stream *s = torc_protobuf_c_open(ch, &headers_each, &request(1)->base, NULL, NULL);
    const ProtobufCMessage *message = NULL;
    assert_int_equal(torc_protobuf_c_receive(s, &headers_each, -1, &message), TORC_EPARSE);
    assert_null(message);
    torc_result *result = torc_stream_finish(s);
    expect_malformed(result);
    torc_result_free(result);
    torc_stream_free(s);
    struct heard heard = {.method = &headers_each};
    wait_for_the_end(torc_protobuf_c_start(ch, &headers_each, &request(1)->base, NULL, &events, &heard, NULL), &heard);
    assert_int_equal(heard.malformed, 1);
    assert_int_equal(heard.code, TORC_STATUS_INTERNAL);
    assert_int_equal(heard.layer, TORC_LAYER_CODEC);
}

/* Once the application was told the outcome of the RPC, reading a malformed message does not change the outcome. */
static void test_an_outcome_that_was_seen(void **state)
{
    (void)state;
    static const struct torc_stream_events ends = {.size = sizeof(ends), .on_done = on_done};
    struct heard heard = {.code = -1};
    const ProtobufCMessage *message = NULL;
    torc_stream *s = torc_protobuf_c_start(ch, &headers_each, &request(1)->base, NULL, &ends, &heard, NULL);
    assert_non_null(s);
    torc_stream_want(s, 2);
    while (!atomic_load(&heard.done))
        torc_result_free(torc__test__mirror__mirror__once__call(ch, request(1), NULL));
    assert_int_equal(heard.code, TORC_STATUS_OK);
    assert_int_equal(torc_protobuf_c_receive(s, &headers_each, -1, &message), TORC_EPARSE);
    torc_result *result = torc_stream_finish(s);
    assert_int_equal(torc_result_code(result), TORC_STATUS_OK);
    assert_null(torc_result_error(result));
    torc_result_free(result);
    assert_int_equal(torc_stream_close(s), 0);
}

static void test_refused(void **state)
{
    (void)state;
    torc_error *error = NULL;
    Kinds blank = {0};
    torc_result *result = torc__test__mirror__mirror__once__call(ch, &blank, NULL);
    assert_int_equal(torc_error_code(torc_result_error(result)), TORC_EINVAL);
    assert_null(torc__test__mirror__mirror__once__response(result));
    torc_result_free(result);
    result = torc__test__mirror__mirror__once__call(ch, NULL, NULL);
    assert_int_equal(torc_error_code(torc_result_error(result)), TORC_EINVAL);
    torc_result_free(result);
    result = torc__test__mirror__mirror__once__call(NULL, request(1), NULL);
    assert_int_equal(torc_error_code(torc_result_error(result)), TORC_EINVAL);
    torc_result_free(result);
    assert_int_equal(torc__test__mirror__mirror__once__async(ch, request(1), NULL, NULL, NULL, NULL, &error),
                     TORC_EINVAL);
    torc_error_clear(&error);
    assert_null(torc_protobuf_c_open(ch, &headers_each, NULL, NULL, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    torc_error_clear(&error);
    assert_int_equal(torc__test__mirror__mirror__both__send(NULL, request(1), 0, 0), TORC_EINVAL);
    assert_null(torc__test__mirror__mirror__each__message(NULL, NULL));
}

static void test_description(void **state)
{
    (void)state;
    assert_string_equal(torc_stub_file__mirror_proto.name, "mirror.proto");
    assert_true(torc_stub_file__mirror_proto.descriptor_size > 100);
    assert_memory_equal(torc_stub_file__mirror_proto.descriptor, "\x0a\x0cmirror.proto", 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),
        cmocka_unit_test(test_large_request),
        cmocka_unit_test(test_async),
        cmocka_unit_test(test_async_with_a_lent_request),
        cmocka_unit_test(test_server_streaming),
        cmocka_unit_test(test_client_streaming),
        cmocka_unit_test(test_both),
        cmocka_unit_test(test_stream_of_another_method),
        cmocka_unit_test(test_send_that_cannot_be_packed),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_malformed_response),
        cmocka_unit_test(test_malformed_message),
        cmocka_unit_test(test_an_outcome_that_was_seen),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_description),
    };
    int failed = cmocka_run_group_tests_name("a thread of the runtime", tests, setup_thread, teardown);
    return failed + cmocka_run_group_tests_name("threads that wait", tests, setup_caller, teardown);
}
