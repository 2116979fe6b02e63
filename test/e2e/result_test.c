/* Results of RPCs: which layer failed, the error's text, google.rpc.Status details, the explanation, and the result of
 * an RPC for whose result there is no memory.
 *
 * All tests share an echo server (kits/backends.h), whose method a.B/Details ends as the request says, and a channel.
 * The server's loop has a thread; the test's thread drives the client. All memory of Torc in this process, the server's
 * too, comes from an allocator of the test, which can refuse blocks of one size. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"

static struct kit_backends *kit;
static torc_runtime *rt;
static torc_channel *ch;
static atomic_size_t refused_size; /* bytes of the blocks that give_or_refuse does not give; 0: gives all */

/* The allocator's realloc. Torc takes from it the blocks without which an RPC fails but the process goes on. A resize
 * is never refused. */
static void *give_or_refuse(void *ptr, size_t size)
{
    return !ptr && size == atomic_load(&refused_size) ? NULL : realloc(ptr, size);
}

/* Ends the call with the status that the request's first byte gives as a digit. The bytes from the third on are
 * grpc-status-details-bin, which comes twice if the second byte is '2'. */
static void on_details_message(void *arg, struct tc_rstr *message)
{
    struct tc_server_call *call = arg;
    struct tc_headers trailers;
    tc_headers_init(&trailers, tc_server_call_arena(call));
    for (int i = 0; i < (message->data[1] == '2' ? 2 : 1); i++)
        tc_headers_add_copy(&trailers, tc_slice_str("grpc-status-details-bin"),
                            tc_slice_of(message->data + 2, message->len - 2));
    int code = message->data[0] - '0';
    tc_rstr_unref(message);
    tc_server_call_finish(call, code, "", &trailers);
}

static void on_details_call(void *arg, struct tc_server_call *call)
{
    static const struct tc_server_call_events events = {.on_message = on_details_message};
    (void)arg;
    tc_server_call_set_events(call, &events, call);
    tc_server_call_read(call);
}

static void add_details(struct tc_server *server, void *arg)
{
    (void)arg;
    tc_server_add_method(server, "/a.B/Details", on_details_call, NULL);
}

static int setup(void **state)
{
    (void)state;
    static const struct torc_allocator allocator = {
        .size = sizeof(allocator), .malloc = malloc, .calloc = calloc, .realloc = give_or_refuse, .free = free};
    if (torc_set_allocator(&allocator) != 0)
        return -1;
    kit = kit_backends_open(TORC_RUNTIME_CALLER, &rt, &ch);
    kit_backends_do(kit, add_details, 0, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return kit_backends_close(kit, rt, ch);
}

/* Asserts that the RPC failed with this status in this layer (enum torc_layer). Frees the result. */
static void expect_layer(torc_result *r, int status, int layer)
{
    const torc_error *e = torc_result_error(r);
    assert_string_equal(torc_status_code_name(torc_result_code(r)), torc_status_code_name(status));
    assert_int_equal(torc_error_code(e), TORC_ESTATUS);
    assert_int_equal(torc_error_status(e), status);
    assert_int_equal(torc_error_layer(e), layer);
    assert_string_not_equal(torc_error_text(e), "");
    assert_null(torc_result_response(r));
    torc_result_free(r);
}

static void expect_layer_at(const char *target, const char *method, int status, int layer)
{
    torc_channel *c = torc_channel_new(rt, target, NULL, NULL);
    assert_non_null(c);
    expect_layer(torc_unary(c, method, "x", 1, NULL), status, layer);
    torc_channel_free(c);
}

static void test_layers(void **state)
{
    (void)state;
    struct torc_call_options options = {TORC_SIZE(torc_call_options)};
    expect_layer(torc_unary(ch, "torc.test.Backend/Fail", "7", 1, NULL), TORC_STATUS_PERMISSION_DENIED,
                 TORC_LAYER_PEER);
    options.timeout_ms = 20;
    expect_layer(torc_unary(ch, "torc.test.Backend/Hang", "x", 1, &options), TORC_STATUS_DEADLINE_EXCEEDED,
                 TORC_LAYER_DEADLINE);
    options = (struct torc_call_options){TORC_SIZE(torc_call_options), .max_receive_message_bytes = 10};
    expect_layer(torc_unary(ch, "a.B/Echo", "more than ten bytes", 19, &options), TORC_STATUS_RESOURCE_EXHAUSTED,
                 TORC_LAYER_LIMIT);
    torc_stream *s = torc_stream_open(ch, "torc.test.Backend/Hang", NULL, NULL);
    torc_stream_cancel(s);
    expect_layer(torc_stream_finish(s), TORC_STATUS_CANCELLED, TORC_LAYER_DEADLINE);
    torc_stream_free(s);
    expect_layer_at("ipv4:127.0.0.1:1", "a/b", TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT);
    expect_layer_at("unix:/nowhere/at/all", "a/b", TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT);
}

static void test_text_of_a_status_without_a_message(void **state)
{
    (void)state;
    torc_result *r = torc_unary(ch, "a.B/Details", "51", 2, NULL);
    assert_string_equal(torc_result_text(r), "");
    assert_string_equal(torc_error_text(torc_result_error(r)), "the server answered NOT_FOUND without a message");
    torc_error *kept = torc_error_ref(torc_result_error(r));
    torc_result_free(r);
    assert_int_equal(torc_error_status(kept), TORC_STATUS_NOT_FOUND);
    torc_error_free(kept);
}

/* google.rpc.Status {code: 5, details: [{type_url: "t/A", value: "xyz"}, {type_url: "t/B"}, {}]} */
#define DETAILS "\x08\x05\x1a\x0a\x0a\x03t/A\x12\x03xyz\x1a\x05\x0a\x03t/B\x1a\x00"

/* Makes a call of a.B/Details that ends with this status, a digit, and with these bytes (62 at most) as its details;
 * twice if `times` is '2', otherwise once. The caller frees the result. */
static torc_result *details_of(char code, char times, const char *bytes, size_t n)
{
    char request[64] = {code, times};
    memcpy(request + 2, bytes, n);
    return torc_unary(ch, "a.B/Details", request, n + 2, NULL);
}

static void test_details(void **state)
{
    (void)state;
    const char *type_url = NULL;
    const void *bytes = NULL;
    size_t n = 0;
    torc_result *r = details_of('5', '1', DETAILS, sizeof(DETAILS) - 1);
    assert_int_equal(torc_result_code(r), TORC_STATUS_NOT_FOUND);
    assert_int_equal(torc_result_detail(r, 0, &type_url, &bytes, &n), 0);
    assert_string_equal(type_url, "t/A");
    assert_int_equal(n, 3);
    assert_memory_equal(bytes, "xyz", 3);
    assert_int_equal(torc_result_detail(r, 1, &type_url, &bytes, &n), 0);
    assert_string_equal(type_url, "t/B");
    assert_int_equal(n, 0);
    assert_non_null(bytes);
    assert_int_equal(torc_result_detail(r, 2, &type_url, NULL, NULL), 0);
    assert_string_equal(type_url, "");
    assert_int_equal(torc_result_detail(r, 3, &type_url, &bytes, &n), TORC_ENOTFOUND);
    assert_int_equal(torc_result_detail(r, SIZE_MAX, NULL, NULL, NULL), TORC_ENOTFOUND);
    torc_result_free(r);
}

/* There are no details if the trailer comes twice, if its bytes are malformed, or if the RPC succeeded. If the
 * trailer's bytes are cut at any place, a detail is shorter than the bytes that are left. */
static void test_details_of_nothing(void **state)
{
    (void)state;
    torc_result *r = details_of('5', '2', DETAILS, sizeof(DETAILS) - 1);
    assert_int_equal(torc_result_detail(r, 0, NULL, NULL, NULL), TORC_ENOTFOUND);
    torc_result_free(r);
    r = details_of('5', '1', "\x08\x05\x1a\x7f\x0a", 5);
    assert_int_equal(torc_result_code(r), TORC_STATUS_NOT_FOUND);
    assert_int_equal(torc_result_detail(r, 0, NULL, NULL, NULL), TORC_ENOTFOUND);
    torc_result_free(r);
    r = details_of('5', '1', "\x08\x05\x1a\x00\x1a", 5); /* ends after a tag */
    assert_int_equal(torc_result_detail(r, 0, NULL, NULL, NULL), TORC_ENOTFOUND);
    torc_result_free(r);
    for (size_t cut = 0; cut < sizeof(DETAILS) - 1; cut++) {
        r = details_of('5', '1', DETAILS, cut);
        const char *type_url = NULL;
        const void *bytes = NULL;
        size_t n = 0;
        for (size_t i = 0; torc_result_detail(r, i, &type_url, &bytes, &n) == 0; i++)
            assert_true(strlen(type_url) + n < cut);
        torc_result_free(r);
    }
    r = torc_unary(ch, "a.B/Echo", "x", 1, NULL);
    assert_int_equal(torc_result_detail(r, 0, NULL, NULL, NULL), TORC_ENOTFOUND);
    torc_result_free(r);
}

static void test_explain(void **state)
{
    (void)state;
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .explain = TORC_ON};
    torc_result *r = torc_unary(ch, "a.B/Echo", "x", 1, &options);
    assert_non_null(strstr(torc_result_explain(r), "\"endpoint\":"));
    torc_result_free(r);
    r = torc_explain(ch, "a.B/Echo", NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    assert_null(torc_result_response(r));
    assert_non_null(strstr(torc_result_explain(r), "\"outcome\":\"send\""));
    torc_result_free(r);
}

/* The allocator refuses blocks of two sizes, one after the other; results are in blocks of one of them. At each size
 * the test holds 2,000 results, which use up the free blocks that Torc has kept. Later RPCs end with a result that
 * needs no memory. BLOCK: the bytes that Torc puts before each block. */
static void test_no_memory_for_a_result(void **state)
{
    (void)state;
    enum { HELD = 2000, BLOCK = 32 };
    static torc_result *held[HELD];
    size_t n = 0, without = 0;
    for (size_t size = 128; size <= 256; size *= 2) {
        atomic_store(&refused_size, size + BLOCK);
        for (n = 0; n < HELD; n++) {
            held[n] = torc_unary(ch, "torc.test.Backend/Count", "", 0, NULL);
            without += torc_error_code(torc_result_error(held[n])) == TORC_ELIMIT;
        }
        atomic_store(&refused_size, 0);
        for (n = 0; n < HELD; n++) {
            const torc_error *e = torc_result_error(held[n]);
            if (torc_error_code(e) == TORC_ELIMIT) {
                assert_int_equal(torc_result_code(held[n]), TORC_STATUS_RESOURCE_EXHAUSTED);
                assert_int_equal(torc_error_layer(e), TORC_LAYER_LIMIT);
                assert_string_equal(torc_result_text(held[n]), "out of memory");
                torc_result_free(torc_result_ref(held[n]));
                torc_error_free(torc_error_ref(e));
            }
            torc_result_free(held[n]);
        }
    }
    assert_int_not_equal(without, 0);
    torc_result *r = torc_unary(ch, "a.B/Echo", "x", 1, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),  cmocka_unit_test(test_text_of_a_status_without_a_message),
        cmocka_unit_test(test_details), cmocka_unit_test(test_details_of_nothing),
        cmocka_unit_test(test_explain), cmocka_unit_test(test_no_memory_for_a_result),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
