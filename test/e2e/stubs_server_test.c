/* Generated code of both sides (test/stubs/mirror.proto): a torc_server with typed handlers, and typed calls to it. All
 * four kinds of methods, malformed requests, responses that cannot be packed, failures with details, handlers that are
 * missing, and what is refused.
 *
 * Once is unary, Each streams responses, Last streams requests, and Both streams both; all messages are Kinds. Each
 * test has a server on a runtime, whose thread calls the handlers. The handler `both` leaves its call to both_thread, a
 * thread that waits for the requests. `serve` starts the server with a test's handlers, whose `arg` is &one, and opens
 * the channel `ch` to it on the same runtime. test_refused, test_many_methods and test_strict add handlers to a server
 * that is not started; the last two write by hand the tables that generated code has. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "mirror.torc.h"
#include "other.pb-c.h"
#include "support/case.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

typedef Torc__Test__Kinds__Kinds Kinds;
typedef struct torc__test__mirror__mirror__handlers Handlers;

#define EACH_METHOD "/torc.test.mirror.Mirror/Each"

static torc_runtime *rt;
static torc_server *server;
static torc_channel *ch;
static pthread_t thread; /* both_thread, if `threaded` */
static bool threaded;
static atomic_int parse_errors; /* malformed requests that a handler of a stream saw */

/* Returns a message with this number, which owns nothing. */
static Kinds kinds(int32_t number)
{
    Kinds k;
    torc__test__kinds__kinds__init(&k);
    k.f_int32 = number;
    return k;
}

/* --- handlers --- */

/* Answers with the request's number plus *arg, and its text plus "!". */
static void once(torc_server_call *call, const Kinds *request, void *arg)
{
    Kinds reply = kinds(request->f_int32 + *(const int *)arg);
    reply.f_string = (char *)(uintptr_t)torc_server_call_printf(call, "%s!", request->f_string);
    CHECK(torc__test__mirror__mirror__once__reply(call, &reply) == 0);
}

/* Answers with as many messages as the request says, numbered from 0. */
static void each(torc_server_call *call, const Kinds *request, void *arg)
{
    (void)arg;
    for (int32_t i = 0; i < request->f_int32; i++) {
        Kinds reply = kinds(i);
        CHECK(torc__test__mirror__mirror__each__reply(call, &reply, 0, 0) == 0);
    }
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

/* Client streaming by events: adds up the messages in *arg, which is in the call's arena. */
static void last_on_message(torc_server_call *call, const torc_message *message, void *arg)
{
    const Kinds *request = torc__test__mirror__mirror__last__request(call, message);
    if (request) {
        *(int32_t *)arg += request->f_int32;
        torc_server_call_want(call, 1);
        return;
    }
    parse_errors++;
    torc_server_call_finish(call, TORC_STATUS_INTERNAL, "malformed", NULL);
}

static void last_on_half_close(torc_server_call *call, void *arg)
{
    Kinds reply = kinds(*(int32_t *)arg);
    CHECK(torc__test__mirror__mirror__last__reply(call, &reply) == 0);
}

static void last(torc_server_call *call, void *arg)
{
    struct torc_server_call_events events = {
        .size = sizeof(events), .on_message = last_on_message, .on_half_close = last_on_half_close};
    int32_t *sum = torc_arena_alloc(torc_server_call_arena(call), sizeof(*sum));
    (void)arg;
    *sum = 0;
    CHECK(torc_server_call_set_events(call, &events, sum) == 0);
    torc_server_call_want(call, 1);
}

/* Bidirectional by a thread that waits: answers each message. */
static void *both_thread(void *arg)
{
    torc_server_call *call = arg;
    const Kinds *request;
    int rc;
    while ((rc = torc__test__mirror__mirror__both__next(call, 60000, &request)) == 1) {
        Kinds reply = kinds(-request->f_int32);
        CHECK(torc__test__mirror__mirror__both__reply(call, &reply, 0, 60000) == 0);
    }
    parse_errors += rc == TORC_EPARSE;
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL); /* after a malformed message the RPC fails anyway */
    return NULL;
}

static void both(torc_server_call *call, void *arg)
{
    (void)arg;
    threaded = pthread_create(&thread, NULL, both_thread, call) == 0;
    CHECK(threaded);
}

static const Handlers all = {.size = sizeof(Handlers), .once = once, .each = each, .last = last, .both = both};
static int one = 1; /* what `once` adds; in test_misuse_of_a_stream the way of the misuse */

/* Starts the server with these handlers, and opens the channel to it. */
static void serve(const Handlers *handlers)
{
    torc_error *error = NULL;
    char *bound = NULL;
    assert_int_equal(torc__test__mirror__mirror__add(server, handlers, &one, &error), 0);
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error), 0);
    assert_int_equal(torc_server_start(server, &error), 0);
    ch = torc_channel_new(rt, bound, NULL, &error);
    assert_non_null(ch);
    torc_free(bound);
}

static int setup(void **state)
{
    (void)state;
    rt = torc_runtime_new(NULL, NULL);
    struct torc_server_options options = {.size = sizeof(options), .runtime = rt};
    server = torc_server_new(&options, NULL);
    ch = NULL;
    threaded = false;
    parse_errors = 0;
    return server ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    torc_channel_free(ch);
    if (threaded)
        pthread_join(thread, NULL);
    torc_server_free(server);
    return torc_runtime_free(rt);
}

/* --- tests --- */

static void test_unary(void **state)
{
    (void)state;
    serve(&all);
    Kinds request = kinds(6);
    request.f_string = (char *)"text";
    torc_result *result = torc__test__mirror__mirror__once__call(ch, &request, NULL);
    const Kinds *reply = torc__test__mirror__mirror__once__response(result);
    assert_non_null(reply);
    assert_int_equal(reply->f_int32, 7);
    assert_string_equal(reply->f_string, "text!");
    torc_result_free(result);
}

static void test_server_streaming(void **state)
{
    (void)state;
    serve(&all);
    Kinds request = kinds(3);
    const Kinds *reply;
    torc_stream *stream = torc__test__mirror__mirror__each__open(ch, &request, NULL, NULL);
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal(torc__test__mirror__mirror__each__receive(stream, 60000, &reply), 1);
        assert_int_equal(reply->f_int32, i);
    }
    assert_int_equal(torc__test__mirror__mirror__each__receive(stream, 60000, &reply), 0);
    torc_result *result = torc_stream_finish(stream);
    assert_int_equal(torc_result_code(result), 0);
    torc_result_free(result);
    torc_stream_free(stream);
}

static void test_client_streaming(void **state)
{
    (void)state;
    serve(&all);
    torc_stream *stream = torc__test__mirror__mirror__last__open(ch, NULL, NULL);
    for (int32_t i = 1; i <= 4; i++) {
        Kinds request = kinds(i);
        unsigned flags = i == 4 ? TORC_SEND_LAST : 0;
        assert_int_equal(torc__test__mirror__mirror__last__send(stream, &request, flags, 60000), 0);
    }
    torc_result *result = torc_stream_finish(stream);
    const Kinds *reply = torc__test__mirror__mirror__last__response(result);
    assert_non_null(reply);
    assert_int_equal(reply->f_int32, 10);
    torc_result_free(result);
    torc_stream_free(stream);
}

static void test_bidirectional(void **state)
{
    (void)state;
    serve(&all);
    const Kinds *reply;
    torc_stream *stream = torc__test__mirror__mirror__both__open(ch, NULL, NULL);
    for (int32_t i = 1; i <= 3; i++) {
        Kinds request = kinds(i);
        assert_int_equal(torc__test__mirror__mirror__both__send(stream, &request, 0, 60000), 0);
        assert_int_equal(torc__test__mirror__mirror__both__receive(stream, 60000, &reply), 1);
        assert_int_equal(reply->f_int32, -i);
    }
    torc_stream_half_close(stream);
    assert_int_equal(torc__test__mirror__mirror__both__receive(stream, 60000, &reply), 0);
    torc_result *result = torc_stream_finish(stream);
    assert_int_equal(torc_result_code(result), 0);
    torc_result_free(result);
    torc_stream_free(stream);
}

/* Finishes and frees the stream. Asserts that the RPC failed with INTERNAL and this text. */
static void is_internal(torc_stream *stream, const char *text)
{
    torc_result *result = torc_stream_finish(stream);
    assert_int_equal(torc_result_code(result), TORC_STATUS_INTERNAL);
    assert_string_equal(torc_result_text(result), text);
    torc_result_free(result);
    torc_stream_free(stream);
}

#define CUT_SHORT ": malformed message: torc.test.kinds.Kinds: field number 14 is cut short at byte 0"

static void test_malformed_unary(void **state)
{
    (void)state;
    serve(&all);
    torc_result *result = torc_unary(ch, "/torc.test.mirror.Mirror/Once", "\x72\x05", 2, NULL);
    assert_int_equal(torc_result_code(result), TORC_STATUS_INTERNAL);
    assert_string_equal(torc_result_text(result), "/torc.test.mirror.Mirror/Once" CUT_SHORT);
    torc_result_free(result);
}

static void test_malformed_next(void **state)
{
    (void)state;
    serve(&all);
    torc_stream *stream = torc_stream_open(ch, "/torc.test.mirror.Mirror/Both", NULL, NULL);
    torc_stream_send(stream, "\x72\x05", 2, 0, 60000);
    is_internal(stream, "/torc.test.mirror.Mirror/Both" CUT_SHORT);
    assert_int_equal(parse_errors, 1);
}

static void test_malformed_request(void **state)
{
    (void)state;
    serve(&all);
    torc_stream *stream = torc_stream_open(ch, "/torc.test.mirror.Mirror/Last", NULL, NULL);
    torc_stream_send(stream, "\x72\x05", 2, 0, 60000);
    is_internal(stream, "/torc.test.mirror.Mirror/Last" CUT_SHORT);
    assert_int_equal(parse_errors, 1);
}

static void test_missing_handler(void **state)
{
    (void)state;
    serve(&(Handlers){.size = offsetof(Handlers, each), .once = once, .each = each}); /* a shorter, older struct */
    Kinds request = kinds(1);
    torc_stream *stream = torc__test__mirror__mirror__each__open(ch, &request, NULL, NULL);
    torc_result *result = torc_stream_finish(stream);
    assert_int_equal(torc_result_code(result), TORC_STATUS_UNIMPLEMENTED);
    torc_result_free(result);
    torc_stream_free(stream);
    result = torc__test__mirror__mirror__once__call(ch, &request, NULL);
    assert_int_equal(torc_result_code(result), 0);
    torc_result_free(result);
}

static void bad_reply(torc_server_call *call, const Kinds *request, void *arg)
{
    (void)request, (void)arg;
    CHECK(torc__test__mirror__mirror__once__reply(call, &(Kinds){0}) == TORC_EINVAL);
}

static void test_bad_reply(void **state)
{
    (void)state;
    serve(&(Handlers){.size = sizeof(Handlers), .once = bad_reply});
    Kinds request = kinds(1);
    torc_result *result = torc__test__mirror__mirror__once__call(ch, &request, NULL);
    assert_int_equal(torc_result_code(result), TORC_STATUS_INTERNAL);
    assert_non_null(strstr(torc_error_text(torc_result_error(result)), "is not an initialised torc.test.kinds.Kinds"));
    torc_result_free(result);
}

/* --- a call of another method, and responses that cannot be packed --- */

enum { OTHER_REPLY, OTHER_RESPONSE, OTHER_NEXT, OTHER_REQUEST, NOT_PACKED, NOT_GIVEN };

/* A handler of Both that misuses its call in one of the ways above, *arg. The RPC fails although the call is finished
 * with OK. */
static void misuse(torc_server_call *call, void *arg)
{
    int way = *(const int *)arg;
    const Kinds *request;
    Kinds reply = kinds(1);
    if (way == OTHER_REPLY) {
        CHECK(torc__test__mirror__mirror__last__reply(call, &reply) == TORC_EINVAL);
        return; /* the reply has ended the call, though it was refused */
    }
    if (way == OTHER_RESPONSE)
        CHECK(torc__test__mirror__mirror__each__reply(call, &reply, 0, 0) == TORC_EINVAL);
    if (way == OTHER_NEXT)
        CHECK(torc__test__mirror__mirror__last__next(call, 0, &request) == TORC_EINVAL);
    if (way == OTHER_REQUEST)
        CHECK(!torc__test__mirror__mirror__last__request(call, (const torc_message *)"any"));
    reply.f_string = (char *)"\xff";
    if (way == NOT_PACKED)
        CHECK(torc__test__mirror__mirror__both__reply(call, &reply, 0, 0) == TORC_EINVAL);
    if (way == NOT_GIVEN)
        CHECK(torc__test__mirror__mirror__both__reply(call, NULL, 0, 0) == TORC_EINVAL);
    CHECK(torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL) == 0);
}

static void test_misuse_of_a_stream(void **state)
{
    (void)state;
#define PATH "/torc.test.mirror.Mirror/"
    static const char *const texts[] = {
        [OTHER_REPLY] = "a function of " PATH "Last was given a call of " PATH "Both",
        [OTHER_RESPONSE] = "a function of " PATH "Each was given a call of " PATH "Both",
        [OTHER_NEXT] = "a function of " PATH "Last was given a call of " PATH "Both",
        [OTHER_REQUEST] = "a function of " PATH "Last was given a call of " PATH "Both",
        [NOT_PACKED] = PATH "Both: the response cannot be packed: torc.test.kinds.Kinds: field f_string: is not valid "
                            "UTF-8",
        [NOT_GIVEN] = PATH "Both: the response is not an initialised torc.test.kinds.Kinds"};
    serve(&(Handlers){.size = sizeof(Handlers), .both = misuse});
    for (one = OTHER_REPLY; one <= NOT_GIVEN; one++)
        is_internal(torc__test__mirror__mirror__both__open(ch, NULL, NULL), texts[one]);
    one = 1;
}

static void unary_misuse(torc_server_call *call, const Kinds *request, void *arg)
{
    (void)arg;
    Kinds reply = kinds(1);
    reply.f_string = (char *)(request->f_int32 ? "\xff" : "");
    if (request->f_int32) {
        CHECK(torc__test__mirror__mirror__once__reply(call, &reply) == TORC_EINVAL);
        return;
    }
    CHECK(torc__test__mirror__mirror__last__reply(call, &reply) == TORC_EINVAL);
}

static void test_misuse_of_a_unary_call(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a function of " PATH "Last was given a call of " PATH "Once",
        PATH "Once: the response cannot be packed: torc.test.kinds.Kinds: field f_string: is not valid UTF-8"};
    serve(&(Handlers){.size = sizeof(Handlers), .once = unary_misuse});
    for (int32_t i = 0; i < 2; i++) {
        Kinds request = kinds(i);
        torc_result *result = torc__test__mirror__mirror__once__call(ch, &request, NULL);
        assert_int_equal(torc_result_code(result), TORC_STATUS_INTERNAL);
        assert_string_equal(torc_result_text(result), texts[i]);
        torc_result_free(result);
    }
}

/* --- failures with details --- */

/* Makes an RPC of Once that gives its handler `kind`: a way to fail, or a length. The caller frees the result. */
static torc_result *ask_for_failure(int32_t kind)
{
    Kinds request = kinds(kind);
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 60000};
    return torc__test__mirror__mirror__once__call(ch, &request, &options);
}

enum { WITH_DETAILS, WITHOUT_DETAILS, ONE_IS_NULL, ONE_IS_RAW, ONE_IS_BAD, NO_LIST, IT_IS_OK, NO_CODE, NOT_UTF8 };

/* Fails in the way that the request says, of the enum above. */
static void failing(torc_server_call *call, const Kinds *request, void *arg)
{
    (void)arg;
    Kinds first = kinds(41), second = kinds(42), raw = {0};
    Torc__Test__Other__Old other = TORC__TEST__OTHER__OLD__INIT;
    other.needed = 7;
    first.f_string = (char *)"first";
    const ProtobufCMessage *details[] = {&first.base, &other.base, &second.base};
    torc_metadata *trailers = torc_metadata_new();
    torc_metadata_add_string(trailers, "own", "trailer");
    const char *text = "it is late";
    int code = TORC_STATUS_ABORTED, wanted = 0;
    size_t n = 3;
    switch (request->f_int32) {
    case WITHOUT_DETAILS:
        n = 0;
        break;
    case ONE_IS_NULL:
        details[1] = NULL;
        wanted = TORC_EINVAL;
        break;
    case ONE_IS_RAW:
        details[2] = &raw.base;
        wanted = TORC_EINVAL;
        break;
    case ONE_IS_BAD:
        first.f_string = (char *)"\xff";
        wanted = TORC_EINVAL;
        break;
    case IT_IS_OK:
        code = TORC_STATUS_OK;
        break;
    case NOT_UTF8:
        text = "\xff";
        break;
    case NO_CODE:
        code = 17;
        wanted = TORC_EINVAL;
        break;
    default:
        break;
    }
    const ProtobufCMessage *const *list = request->f_int32 == NO_LIST ? NULL : details;
    wanted = list ? wanted : TORC_EINVAL;
    CHECK(torc_protobuf_c_finish(call, code, text, trailers, list, n) == wanted);
    torc_metadata_free(trailers);
}

static void test_details(void **state)
{
    TC_CASE(SV17);
    (void)state;
    serve(&(Handlers){.size = sizeof(Handlers), .once = failing});
    torc_arena *arena = torc_arena_new(0);
    torc_error *error = NULL;
    torc_result *result = ask_for_failure(WITH_DETAILS);
    assert_int_equal(torc_result_code(result), TORC_STATUS_ABORTED);
    assert_string_equal(torc_result_text(result), "it is late");
    assert_string_equal(torc_metadata_find(torc_result_trailers(result), "own", NULL), "trailer");
    size_t status_len = 0;
    const char *status = torc_metadata_find(torc_result_trailers(result), "grpc-status-details-bin", &status_len);
    assert_true(status_len > 14);
    assert_memory_equal(status, "\x08\x0a\x12\x0ait is late", 14); /* code 10, and the text */
    const Kinds *first =
        (const Kinds *)torc_protobuf_c_detail(result, &torc__test__kinds__kinds__descriptor, arena, &error);
    assert_non_null(first);
    assert_int_equal(first->f_int32, 41); /* the first of its type */
    assert_string_equal(first->f_string, "first");
    const Torc__Test__Other__Old *other = (const Torc__Test__Other__Old *)torc_protobuf_c_detail(
        result, &torc__test__other__old__descriptor, arena, &error);
    assert_non_null(other);
    assert_int_equal(other->needed, 7);
    const char *url;
    const void *bytes;
    size_t n;
    assert_int_equal(torc_result_detail(result, 2, &url, &bytes, &n), 0);
    assert_string_equal(url, "type.googleapis.com/torc.test.kinds.Kinds");
    assert_int_equal(torc_result_detail(result, 3, &url, &bytes, &n), TORC_ENOTFOUND);
    torc_result_free(result);

    result = ask_for_failure(NOT_UTF8);
    assert_int_equal(torc_result_code(result), TORC_STATUS_ABORTED);
    status = torc_metadata_find(torc_result_trailers(result), "grpc-status-details-bin", &status_len);
    assert_true(status_len > 3);
    assert_memory_equal(status, "\x08\x0a\x1a", 3); /* code 10, no text, the first detail */
    torc_result_free(result);

    for (int32_t kind = WITHOUT_DETAILS; kind <= NO_CODE; kind++) {
        result = ask_for_failure(kind);
        int code = kind == IT_IS_OK  ? TORC_STATUS_INTERNAL
                   : kind == NO_CODE ? TORC_STATUS_UNKNOWN
                                     : TORC_STATUS_ABORTED;
        assert_int_equal(torc_result_code(result), code); /* OK without a response is INTERNAL */
        assert_int_equal(torc_result_detail(result, 0, &url, &bytes, &n), TORC_ENOTFOUND);
        assert_string_equal(torc_metadata_find(torc_result_trailers(result), "own", NULL), "trailer");
        assert_null(torc_metadata_find(torc_result_trailers(result), "grpc-status-details-bin", NULL));
        torc_result_free(result);
    }
    assert_null(error);
    assert_int_equal(torc_protobuf_c_finish(NULL, TORC_STATUS_ABORTED, NULL, NULL, NULL, 0), TORC_EINVAL);
    torc_arena_free(arena);
}

/* Fails with a detail whose text has as many bytes as the request says. */
static void failing_at_length(torc_server_call *call, const Kinds *request, void *arg)
{
    (void)arg;
    size_t n = (size_t)request->f_int32;
    char *text = malloc(n + 1);
    memset(text, 'x', n);
    text[n] = '\0';
    Kinds detail = kinds(1);
    detail.f_string = text;
    const ProtobufCMessage *details[] = {&detail.base};
    torc_protobuf_c_finish(call, TORC_STATUS_ABORTED, NULL, NULL, details, 1);
    free(text);
}

/* Details that make the trailers larger than the client accepts (16 KiB), or than the server sends (1 MiB), end the RPC
 * with INTERNAL. In trailers details are base64, a third longer. The next RPC gets its details. */
static void test_details_too_large(void **state)
{
    (void)state;
    serve(&(Handlers){.size = sizeof(Handlers), .once = failing_at_length});
    static const struct {
        int32_t bytes;
        int code;
    } rows[] = {{1000, TORC_STATUS_ABORTED},
                {20000, TORC_STATUS_INTERNAL},
                {1000000, TORC_STATUS_INTERNAL},
                {1000, TORC_STATUS_ABORTED}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        torc_result *result = ask_for_failure(rows[i].bytes);
        assert_int_equal(torc_result_code(result), rows[i].code);
        assert_int_equal(torc_result_detail(result, 0, NULL, NULL, NULL),
                         rows[i].code == TORC_STATUS_ABORTED ? 0 : TORC_ENOTFOUND);
        torc_result_free(result);
    }
}

/* Asserts that adding these handlers fails with the code and a text that contains `text`. */
static void refused(const void *handlers, int code, const char *text)
{
    torc_error *error = NULL;
    assert_int_equal(torc__test__mirror__mirror__add(server, handlers, NULL, &error), code);
    assert_non_null(strstr(torc_error_text(error), text));
    assert_int_equal(torc__test__mirror__mirror__add(server, &all, NULL, &error), code); /* *error is set already */
    torc_error_free(error);
    assert_int_equal(torc__test__mirror__mirror__add(server, handlers, NULL, NULL), code);
}

static void test_refused(void **state)
{
    (void)state;
    struct {
        Handlers known;
        void (*more)(void);
    } newer = {.known = all};
    newer.known.size = sizeof(newer);
    newer.more = (void (*)(void))test_refused;
    refused(NULL, TORC_EINVAL, "must not be NULL");
    refused(&(Handlers){.once = once}, TORC_EINVAL, "size is 0");
    refused(&newer, TORC_EUNSUPPORTED, "does not have");
    assert_int_equal(torc__test__mirror__mirror__add(NULL, &all, NULL, NULL), TORC_EINVAL);
    newer.more = NULL;
    assert_int_equal(torc__test__mirror__mirror__add(server, &newer.known, NULL, NULL), 0);
    refused(&all, TORC_EEXIST, "Once");

    const Kinds *request;
    Kinds reply = kinds(1);
    assert_int_equal(torc__test__mirror__mirror__both__next(NULL, 0, &request), TORC_EINVAL);
    assert_int_equal(torc__test__mirror__mirror__both__reply(NULL, &reply, 0, 0), TORC_EINVAL);
    assert_int_equal(torc__test__mirror__mirror__once__reply(NULL, &reply), TORC_EINVAL);
    assert_null(torc__test__mirror__mirror__last__request(NULL, NULL));
}

static void strict_each(torc_server_call *call, const ProtobufCMessage *request, const void *handlers, void *arg)
{
    (void)call, (void)request, (void)handlers, (void)arg;
}

/* A struct of handlers that is larger than 64 KiB. Only the last handler is set. */
static void test_many_methods(void **state)
{
    (void)state;
    enum { METHODS = 10000 };
    static const struct torc_protobuf_c_method method = {
        .size = sizeof(method), .version = torc_stub_v1, .path = "/p.Many/Last"};
    static struct torc_protobuf_c_handler rows[METHODS];
    static uint64_t handlers[METHODS + 1];
    for (size_t i = 0; i < METHODS; i++)
        rows[i] = (struct torc_protobuf_c_handler){
            .size = sizeof(rows[i]), .method = &method, .offset = (i + 1) * sizeof(uint64_t), .unary = strict_each};
    handlers[0] = sizeof(handlers);
    handlers[METHODS] = 1; /* set, and never called */
    assert_int_equal(torc_protobuf_c_add(server, rows, METHODS, handlers, NULL, 0, NULL), 0);
    assert_int_equal(torc_protobuf_c_add(server, rows, METHODS, handlers, NULL, 0, NULL), TORC_EEXIST);
    handlers[0] = sizeof(handlers) + 1;
    assert_int_equal(torc_protobuf_c_add(server, rows, METHODS, handlers, NULL, 0, NULL), TORC_EINVAL);
}

static void test_strict(void **state)
{
    (void)state;
    static const struct torc_protobuf_c_method method = {sizeof(method),
                                                         torc_stub_v1,
                                                         EACH_METHOD,
                                                         &torc__test__kinds__kinds__descriptor,
                                                         &torc__test__kinds__kinds__descriptor,
                                                         0,
                                                         1};
    static const struct torc_protobuf_c_handler row = {sizeof(row), &method, offsetof(Handlers, each), strict_each,
                                                       NULL};
    torc_error *error = NULL;
    Handlers none = {.size = sizeof(Handlers)}, only_each = {.size = sizeof(Handlers), .each = each};
    assert_int_equal(torc_protobuf_c_add(server, &row, 1, &none, NULL, TORC_PROTOBUF_C_STRICT, &error), TORC_EINVAL);
    assert_string_equal(torc_error_text(error), EACH_METHOD " has no handler");
    torc_error_free(error);
    assert_int_equal(torc_protobuf_c_add(server, &row, 1, &none, NULL, 0, NULL), 0);
    assert_int_equal(torc_protobuf_c_add(server, &row, 1, &all, NULL, 2, NULL), TORC_EINVAL);
    assert_int_equal(torc_protobuf_c_add(server, &row, 1, &only_each, NULL, TORC_PROTOBUF_C_STRICT, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unary, setup, teardown),
        cmocka_unit_test_setup_teardown(test_server_streaming, setup, teardown),
        cmocka_unit_test_setup_teardown(test_client_streaming, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bidirectional, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed_unary, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed_next, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_handler, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_reply, setup, teardown),
        cmocka_unit_test_setup_teardown(test_misuse_of_a_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(test_misuse_of_a_unary_call, setup, teardown),
        cmocka_unit_test_setup_teardown(test_details, setup, teardown),
        cmocka_unit_test_setup_teardown(test_details_too_large, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_methods, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strict, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
