/* grpc.reflection of a server (torc/reflection.h), asked by a channel on the same runtime over a real socket.
 *
 * Each test has a server with the service of the stub mirror.proto, and with the descriptors of the stubs mirror.proto
 * and kinds.proto. A test may add descriptors, of other stubs or of files made by hand (add_file). Two tests make
 * servers of their own on the same runtime. The runtime's thread serves, and the test's thread waits for the answers.
 * Packed requests and unpacked answers are in `arena`, which teardown frees. */
#include <string.h>

#include <torc/protobuf_c.h>
#include <torc/torc.h>

#include "base/buf.h"
#include "kinds.torc.h"
#include "mirror.torc.h"
#include "other.torc.h"
#include "pb/grpc/reflection/v1/reflection.pb-c.h"
#include "proto/wire.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"

#define V1 "grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
#define V1ALPHA "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"

typedef Grpc__Reflection__V1__ServerReflectionRequest request_t;
typedef Grpc__Reflection__V1__ServerReflectionResponse response_t;

#define KIND(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##name
#define BY_NAME KIND(FILE_BY_FILENAME)
#define BY_SYMBOL KIND(FILE_CONTAINING_SYMBOL)
#define NUMBERS KIND(ALL_EXTENSION_NUMBERS_OF_TYPE)
#define SERVICES KIND(LIST_SERVICES)
/* The imports of kinds.proto that every server with reflection has, as expect_files takes them. kinds.proto also
 * imports other.proto and unused.proto, which `server` has only if a test adds them. */
#define WELL_KNOWN                                                                                                     \
    "google/protobuf/any.proto google/protobuf/duration.proto google/protobuf/empty.proto "                            \
    "google/protobuf/struct.proto "                                                                                    \
    "google/protobuf/timestamp.proto google/protobuf/wrappers.proto "
#define ANSWER(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##name

typedef Grpc__Reflection__V1__ServerReflectionRequest__MessageRequestCase kind_t;

static torc_runtime *rt;
static torc_server *server;
static torc_reflection *reflection;
static torc_channel *ch;
static torc_arena *arena;

static void on_mirror(torc_server_call *call, const Torc__Test__Kinds__Kinds *request, void *arg)
{
    (void)arg;
    torc__test__mirror__mirror__once__reply(call, request);
}

static int setup(void **state)
{
    (void)state;
    const struct torc__test__mirror__mirror__handlers mirror = {TORC_SIZE(torc__test__mirror__mirror__handlers),
                                                                .once = on_mirror};
    char *bound;
    torc_error *error = NULL;
    rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    arena = torc_arena_new(0);
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    server = torc_server_new(&o, &error);
    torc__test__mirror__mirror__add(server, &mirror, NULL, &error);
    reflection = torc_reflection_new(server, &error);
    torc_reflection_add(reflection, &torc_stub_file__mirror_proto, &error);
    torc_reflection_add(reflection, &torc_stub_file__kinds_proto, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    torc_server_start(server, &error);
    assert_string_equal(torc_error_text(error), "");
    ch = torc_channel_new(rt, bound, NULL, NULL);
    torc_free(bound);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    torc_channel_free(ch);
    torc_server_free(server);
    torc_reflection_free(reflection);
    torc_arena_free(arena);
    return torc_runtime_free(rt);
}

/* --- the client --- */

/* The caller frees the stream. */
static torc_stream *stream_open(const char *method)
{
    torc_stream *s = torc_stream_open(ch, method, NULL, NULL);
    assert_non_null(s);
    return s;
}

static void send_bytes(torc_stream *s, const void *bytes, size_t n)
{
    assert_int_equal(torc_stream_send(s, bytes, n, 0, -1), 0);
}

static void send_request(torc_stream *s, const request_t *q)
{
    size_t n;
    const void *bytes = torc_protobuf_c_pack(&q->base, arena, &n, NULL);
    send_bytes(s, bytes, n);
}

/* Waits for the next answer. Returns it, in the arena. */
static const response_t *receive(torc_stream *s)
{
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    const response_t *r =
        (const response_t *)torc_protobuf_c_unpack(&grpc__reflection__v1__server_reflection_response__descriptor,
                                                   torc_message_data(m), torc_message_size(m), arena, NULL);
    assert_non_null(r);
    return r;
}

/* Sends a request of this kind and returns the answer, which must repeat the request. */
static const response_t *ask(torc_stream *s, kind_t kind, const char *text)
{
    char host[] = "here";
    request_t q = GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    q.host = host;
    q.message_request_case = kind;
    q.file_by_filename = (char *)(uintptr_t)text; /* each kind that tests pass has a text in the union */
    send_request(s, &q);
    const response_t *r = receive(s);
    assert_string_equal(r->valid_host, "here");
    assert_int_equal(r->original_request->message_request_case, kind);
    assert_string_equal(r->original_request->file_by_filename, text);
    return r;
}

/* Asks for the file of the extension with this number of a message type. Returns the answer, in the arena. */
static const response_t *ask_extension(torc_stream *s, char *type, int32_t number)
{
    Grpc__Reflection__V1__ExtensionRequest e = GRPC__REFLECTION__V1__EXTENSION_REQUEST__INIT;
    request_t q = GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    e.containing_type = type;
    e.extension_number = number;
    q.message_request_case = KIND(FILE_CONTAINING_EXTENSION);
    q.file_containing_extension = &e;
    send_request(s, &q);
    return receive(s);
}

/* Asserts the names of the files in an answer, in this order, each with a space behind it. */
static void expect_files(const response_t *r, const char *names)
{
    struct tc_buf found = {0};
    assert_int_equal(r->message_response_case, ANSWER(FILE_DESCRIPTOR_RESPONSE));
    for (size_t i = 0; i < r->file_descriptor_response->n_file_descriptor_proto; i++) {
        ProtobufCBinaryData file = r->file_descriptor_response->file_descriptor_proto[i];
        tc_buf_append_slice(&found, tc_wire_find(tc_slice_of(file.data, file.len), 1));
        tc_buf_append_char(&found, ' ');
    }
    assert_string_equal(tc_buf_cstr(&found), names);
    tc_buf_fini(&found);
}

/* Asserts that the answer is the error NOT_FOUND with this text. */
static void expect_unknown(const response_t *r, const char *text)
{
    assert_int_equal(r->message_response_case, ANSWER(ERROR_RESPONSE));
    assert_int_equal(r->error_response->error_code, TORC_STATUS_NOT_FOUND);
    assert_string_equal(r->error_response->error_message, text);
}

/* Half-closes the stream, waits for its end, and asserts the status and its text. Frees the stream. */
static void finish(torc_stream *s, int code, const char *text)
{
    torc_result *r = torc_stream_finish(s);
    assert_string_equal(torc_result_text(r), text);
    assert_int_equal(torc_result_code(r), code);
    torc_result_free(r);
    torc_stream_free(s);
}

/* --- descriptors made by hand --- */

/* Adds a FileDescriptorSet of one file: its name, an import (NULL: none), and an extension x of torc.test.other.Old
 * with this number (0: none), in a package of the file's name. Asserts the result `rc`. */
static void add_file(const char *name, const char *import, uint64_t extension, int rc)
{
    struct tc_buf set = {0}, file = {0}, e = {0};
    torc_error *error = NULL;
    tc_wire_append(&file, 1, tc_slice_str(name));
    if (import)
        tc_wire_append(&file, 3, tc_slice_str(import));
    if (extension) {
        tc_wire_append(&file, 2, tc_slice_str(name));
        tc_wire_append(&e, 1, tc_slice_str("x"));
        tc_wire_append(&e, 2, tc_slice_str(".torc.test.other.Old"));
        tc_wire_append_varint(&e, 3 << 3 | TC_WIRE_VARINT);
        tc_wire_append_varint(&e, extension);
        tc_wire_append(&file, 7, tc_buf_slice(&e));
    }
    tc_wire_append(&set, 1, tc_buf_slice(&file));
    assert_int_equal(torc_reflection_add_set(reflection, set.data, set.len, &error), rc);
    assert_int_equal(torc_error_code(error), rc);
    torc_error_free(error);
    tc_buf_fini(&e);
    tc_buf_fini(&file);
    tc_buf_fini(&set);
}

/* --- the cases --- */

static void test_services(void **state)
{
    TC_CASE(RF01);
    (void)state;
    static const char *const names[] = {"grpc.reflection.v1.ServerReflection",
                                        "grpc.reflection.v1alpha.ServerReflection", "torc.test.mirror.Mirror"};
    static const char *const methods[] = {V1, V1ALPHA};
    for (size_t m = 0; m < TC_ARRAY_LEN(methods); m++) {
        torc_stream *s = stream_open(methods[m]);
        const response_t *r = ask(s, SERVICES, "");
        assert_int_equal(r->message_response_case, ANSWER(LIST_SERVICES_RESPONSE));
        assert_int_equal(r->list_services_response->n_service, TC_ARRAY_LEN(names));
        for (size_t i = 0; i < TC_ARRAY_LEN(names); i++)
            assert_string_equal(r->list_services_response->service[i]->name, names[i]);
        finish(s, TORC_STATUS_OK, "");
    }
}

static void on_own(torc_server_call *call, void *arg)
{
    (void)arg;
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

/* The services that the handler of "*" answers are not listed, even if the server has limits for one of their methods
 * or for all of them: nobody registered these services. A service with a method of its own is listed. */
static void test_services_of_any_method(void **state)
{
    (void)state;
    static const char *const names[] = {"a.Own", "grpc.reflection.v1.ServerReflection",
                                        "grpc.reflection.v1alpha.ServerReflection"};
    static const char *const limited[] = {"a.Any/Method", "a.All", "a.Own/Other", "*"};
    const struct torc_method_options limits = {TORC_SIZE(torc_method_options), .max_calls = 1000};
    const struct torc_handler own = {TORC_SIZE(torc_handler), .stream = on_own};
    const struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    char *bound = NULL;
    torc_error *error = NULL;
    torc_server *other = torc_server_new(&o, &error);
    torc_reflection *of_other = torc_reflection_new(other, &error);
    torc_server_add_method(other, "*", &own, &error);
    torc_server_add_method(other, "a.Own/Method", &own, &error);
    for (size_t i = 0; i < TC_ARRAY_LEN(limited); i++)
        torc_server_limit(other, limited[i], &limits, &error);
    torc_server_listen(other, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error);
    torc_server_start(other, &error);
    assert_string_equal(torc_error_text(error), "");
    torc_channel_free(ch);
    ch = torc_channel_new(rt, bound, NULL, NULL);
    torc_stream *s = stream_open(V1);
    const response_t *r = ask(s, SERVICES, "");
    assert_int_equal(r->list_services_response->n_service, TC_ARRAY_LEN(names));
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++)
        assert_string_equal(r->list_services_response->service[i]->name, names[i]);
    finish(s, TORC_STATUS_OK, "");
    torc_reflection_free(of_other);
    torc_server_free(other);
    torc_free(bound);
}

static void test_files(void **state)
{
    TC_CASE(RF02);
    (void)state;
    static const struct {
        kind_t kind;
        const char *text, *files;
    } rows[] = {
        {BY_NAME, "mirror.proto", "mirror.proto kinds.proto " WELL_KNOWN},
        {BY_SYMBOL, "torc.test.mirror.Mirror", "mirror.proto kinds.proto " WELL_KNOWN},
        {BY_SYMBOL, "torc.test.mirror.Mirror.Both", "mirror.proto kinds.proto " WELL_KNOWN},
        {BY_SYMBOL, "torc.test.kinds.Kinds", "kinds.proto " WELL_KNOWN},
        {BY_SYMBOL, "grpc.reflection.v1alpha.ServerReflection", "grpc/reflection/v1alpha/reflection.proto "},
        {BY_SYMBOL, "grpc.reflection.v1.ServerReflectionRequest.file_by_filename",
         "grpc/reflection/v1/reflection.proto "},
        {BY_SYMBOL, "grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto "},
        {BY_SYMBOL, "grpc.health.v1.Health.Watch", "grpc/health/v1/health.proto "},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        torc_stream *s = stream_open(V1);
        expect_files(ask(s, rows[i].kind, rows[i].text), rows[i].files);
        finish(s, TORC_STATUS_OK, "");
    }
}

static void test_imports_once(void **state)
{
    TC_CASE(RF03);
    (void)state;
    torc_stream *s = stream_open(V1);
    expect_files(ask(s, BY_NAME, "mirror.proto"), "mirror.proto kinds.proto " WELL_KNOWN);
    expect_files(ask(s, BY_SYMBOL, "torc.test.mirror.Mirror"), "mirror.proto ");
    expect_files(ask(s, BY_NAME, "kinds.proto"), "kinds.proto ");
    assert_int_equal(torc_reflection_add(reflection, &torc_stub_file__other_proto, NULL), 0); /* the server runs */
    expect_files(ask(s, BY_NAME, "kinds.proto"), "kinds.proto other.proto ");
    finish(s, TORC_STATUS_OK, "");
}

static void test_extensions(void **state)
{
    TC_CASE(RF04);
    (void)state;
    char old[] = "torc.test.other.Old", kinds[] = "torc.test.kinds.Kinds";
    add_file("late.proto", NULL, 150, 0);
    add_file("early.proto", "late.proto", 120, 0);
    assert_int_equal(torc_reflection_add(reflection, &torc_stub_file__other_proto, NULL), 0);
    torc_stream *s = stream_open(V1);
    expect_files(ask_extension(s, old, 120), "early.proto late.proto ");
    expect_unknown(ask_extension(s, old, 121), "unknown extension of torc.test.other.Old");
    expect_unknown(ask_extension(s, old, -1), "unknown extension of torc.test.other.Old");
    expect_unknown(ask_extension(s, kinds, 120), "unknown extension of torc.test.kinds.Kinds");
    const response_t *r = ask(s, NUMBERS, old);
    assert_int_equal(r->message_response_case, ANSWER(ALL_EXTENSION_NUMBERS_RESPONSE));
    assert_string_equal(r->all_extension_numbers_response->base_type_name, old);
    assert_int_equal(r->all_extension_numbers_response->n_extension_number, 2);
    assert_int_equal(r->all_extension_numbers_response->extension_number[0], 120);
    assert_int_equal(r->all_extension_numbers_response->extension_number[1], 150);
    assert_int_equal(ask(s, NUMBERS, kinds)->all_extension_numbers_response->n_extension_number, 0);
    finish(s, TORC_STATUS_OK, "");
}

static void test_unknown(void **state)
{
    TC_CASE(RF05);
    (void)state;
    torc_stream *s = stream_open(V1);
    expect_unknown(ask(s, BY_NAME, "none.proto"), "unknown file: none.proto");
    expect_unknown(ask(s, BY_NAME, ""), "unknown file: ");
    expect_unknown(ask(s, BY_SYMBOL, "torc.test"), "unknown symbol: torc.test");
    expect_unknown(ask(s, BY_SYMBOL, ".torc.test.kinds.Kinds"), "unknown symbol: .torc.test.kinds.Kinds");
    expect_unknown(ask(s, NUMBERS, "a.B"), "unknown message: a.B");
    expect_unknown(ask(s, NUMBERS, "grpc.health.v1.Health"), "unknown message: grpc.health.v1.Health"); /* a service */
    expect_files(ask(s, BY_SYMBOL, "torc.test.kinds.Kinds"), "kinds.proto " WELL_KNOWN);
    finish(s, TORC_STATUS_OK, "");
}

static void test_asks_for_nothing(void **state)
{
    TC_CASE(RF06);
    (void)state;
    torc_stream *s = stream_open(V1);
    send_bytes(s, "", 0);
    finish(s, TORC_STATUS_INVALID_ARGUMENT, "the ServerReflectionRequest asks for nothing");
}

static void test_malformed(void **state)
{
    TC_CASE(RF07);
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
    } rows[] = {{"\x22\x05"
                 "ab",
                 4},
                {"\x22\x02\xc3\x28", 4},
                {"\x0a\x01\xff\x3a\x00", 5},
                {"\x2a\x02\x0a\x7f", 4},
                {"\x22", 1}};
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        torc_stream *s = stream_open(V1);
        send_bytes(s, rows[i].bytes, rows[i].n);
        finish(s, TORC_STATUS_INTERNAL, "malformed ServerReflectionRequest");
    }
}

static void test_large_request(void **state)
{
    TC_CASE(RF08);
    (void)state;
    static char name[65536];
    memset(name, 'a', sizeof(name) - 1);
    request_t q = GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    q.message_request_case = BY_SYMBOL;
    q.file_containing_symbol = name;
    torc_stream *s = stream_open(V1);
    send_request(s, &q);
    torc_result *r = torc_stream_finish(s);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    torc_result_free(r);
    torc_stream_free(s);
    name[60000] = '\0';
    s = stream_open(V1);
    send_request(s, &q);
    assert_int_equal(receive(s)->error_response->error_code, TORC_STATUS_NOT_FOUND);
    finish(s, TORC_STATUS_OK, "");
}

static void test_circles(void **state)
{
    TC_CASE(RF09);
    (void)state;
    add_file("one.proto", "two.proto", 0, 0);
    add_file("two.proto", "one.proto", 0, 0);
    add_file("self.proto", "self.proto", 0, 0);
    torc_stream *s = stream_open(V1);
    expect_files(ask(s, BY_NAME, "one.proto"), "one.proto two.proto ");
    expect_files(ask(s, BY_NAME, "two.proto"), "two.proto ");
    expect_files(ask(s, BY_NAME, "self.proto"), "self.proto ");
    add_file("well_known.proto", "google/protobuf/field_mask.proto", 0, 0);
    expect_files(ask(s, BY_NAME, "well_known.proto"), "well_known.proto google/protobuf/field_mask.proto ");
    expect_files(ask(s, BY_NAME, "google/protobuf/api.proto"),
                 "google/protobuf/api.proto google/protobuf/source_context.proto google/protobuf/type.proto "
                 "google/protobuf/any.proto ");
    finish(s, TORC_STATUS_OK, "");
}

/* A client that sends many requests before it reads the answers. First there is room for all requests, but not for all
 * answers. Then each request has a host of 30,000 bytes, and the client sends until a message has waited for room for
 * 500 ms: the server reads no further requests while an answer waits for room. */
static void test_slow_reader(void **state)
{
    TC_CASE(RF10);
    (void)state;
    enum { MANY = 3000 };
    torc_stream *s = stream_open(V1);
    request_t q = GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    char name[] = "kinds.proto";
    q.message_request_case = BY_NAME;
    q.file_by_filename = name;
    for (int i = 0; i < MANY; i++)
        send_request(s, &q);
    for (int i = 0; i < MANY; i++)
        expect_files(receive(s), i ? "kinds.proto " : "kinds.proto " WELL_KNOWN);
    finish(s, TORC_STATUS_OK, "");

    static char host[30001];
    size_t n;
    int sent = 0, rc;
    memset(host, 'h', sizeof(host) - 1);
    q.host = host;
    const void *bytes = torc_protobuf_c_pack(&q.base, arena, &n, NULL);
    s = stream_open(V1);
    while ((rc = torc_stream_send(s, bytes, n, 0, 500)) == 0)
        assert_true(++sent < MANY / 10);
    assert_int_equal(rc, TORC_ETIMEDOUT);
    for (int i = 0; i < sent; i++)
        assert_string_equal(receive(s)->valid_host, host);
    finish(s, TORC_STATUS_OK, "");
}

static void test_cancelled(void **state)
{
    (void)state;
    torc_stream *s = stream_open(V1);
    expect_files(ask(s, BY_NAME, "kinds.proto"), "kinds.proto " WELL_KNOWN);
    torc_stream_free(s); /* the server's call ends by teardown at the latest */
}

static void test_arguments(void **state)
{
    (void)state;
    torc_error *error = NULL;
    struct torc_stub_file newer[2] = {torc_stub_file__kinds_proto}, bare = {TORC_SIZE(torc_stub_file)};
    newer[0].size = sizeof(newer);
    newer[1].size = 1;
    assert_int_equal(torc_reflection_add(NULL, &torc_stub_file__kinds_proto, NULL), TORC_EINVAL);
    assert_int_equal(torc_reflection_add(reflection, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_reflection_add(reflection, &bare, NULL), TORC_EINVAL);
    assert_int_equal(torc_reflection_add(reflection, newer, NULL), TORC_EUNSUPPORTED);
    assert_int_equal(torc_reflection_add_set(NULL, "", 0, NULL), TORC_EINVAL);
    assert_int_equal(torc_reflection_add_set(reflection, NULL, 1, NULL), TORC_EINVAL);
    assert_int_equal(torc_reflection_add_set(reflection, NULL, 0, NULL), 0);
    assert_int_equal(torc_reflection_add_set(reflection, "\x0a\x7f", 2, NULL), TORC_EPARSE);
    assert_int_equal(torc_reflection_add(reflection, &torc_stub_file__kinds_proto, NULL), 0); /* again */
    add_file("kinds.proto", NULL, 0, TORC_EEXIST);
    /* Accepted, and not used: Torc has a file of this name itself. */
    add_file("grpc/health/v1/health.proto", NULL, 0, 0);
    torc_reflection_free(NULL);
    assert_null(torc_reflection_new(NULL, NULL));
    assert_null(torc_reflection_new(server, &error));
    assert_int_equal(torc_error_code(error), TORC_ESTATE);
    assert_int_equal(torc_reflection_add(reflection, &torc_stub_file__kinds_proto, &error), TORC_ESTATE);
    torc_error_free(error);
    torc_stream *s = stream_open(V1);
    expect_files(ask(s, BY_SYMBOL, "grpc.health.v1.Health.Watch"), "grpc/health/v1/health.proto ");
    torc_stream_free(s);
}

static void test_twice_on_a_server(void **state)
{
    (void)state;
    torc_error *error = NULL;
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    torc_server *other = torc_server_new(&o, NULL);
    torc_reflection *first = torc_reflection_new(other, NULL);
    assert_non_null(first);
    assert_null(torc_reflection_new(other, &error));
    assert_int_equal(torc_error_code(error), TORC_EEXIST);
    torc_error_free(error);
    torc_reflection_free(first); /* before the server */
    torc_server_free(other);
    /* A torc_reflection_new that fails leaves no method on the server. */
    const struct torc_handler own = {TORC_SIZE(torc_handler), .stream = on_own};
    other = torc_server_new(&o, NULL);
    assert_int_equal(torc_server_add_method(other, V1ALPHA, &own, NULL), 0);
    assert_null(torc_reflection_new(other, NULL));
    assert_int_equal(torc_server_add_method(other, V1, &own, NULL), 0);
    torc_server_free(other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_services),          TEST(test_files),
        TEST(test_imports_once),      TEST(test_extensions),
        TEST(test_unknown),           TEST(test_asks_for_nothing),
        TEST(test_malformed),         TEST(test_large_request),
        TEST(test_circles),           TEST(test_slow_reader),
        TEST(test_cancelled),         TEST(test_arguments),
        TEST(test_twice_on_a_server), TEST(test_services_of_any_method),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
