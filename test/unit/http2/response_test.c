/* Responses of fakes/h2 as a client (kits/h2) reads them. A row is a script of the server, and the end and the events
 * that the call must have. The rows run step by step, byte by byte, and at once. Also what a client sends, and the
 * limits on header lists, informational responses and error pages.
 *
 * A bad response ends its call alone: the connection serves the next call. The first call of a connection is stream 1,
 * the next one stream 3. One thread: events come from kit_h2_run. */
#include <stdlib.h>

#include "base/mem.h"
#include "http2/framing.h"
#include "support/cmocka.h"
#include "support/kits/h2.h"

#define OK_TRAILERS "grpc-status: 0\n"

/* A step of the scripted server: 'H' headers, 'T' headers with END_STREAM, 'M' message, 'D' raw data, 'E' raw data with
 * END_STREAM, 'R' RST_STREAM (number in text), 'C' compressed message. */
struct step {
    char what;
    const char *text;
    size_t len; /* of `text`; 0: strlen */
};

struct row {
    const char *name;
    struct step steps[6];
    int code;
    const char *text; /* a part of the status text */
    unsigned headers, messages;
    bool unprocessed, from_server, trailers_only;
};

#define OK KIT_H2_OK_HEADERS
#define ERR(c) TORC_STATUS_##c
static const char html[] = "<html>busy &\n nothing here</html>";

static const struct row rows[] = {
    {"unary", {{'H', OK, 0}, {'M', "hello", 0}, {'T', OK_TRAILERS, 0}}, 0, "", 1, 1, false, true, false},
    {"message and text",
     {{'H', OK, 0}, {'T', "grpc-status: 5\ngrpc-message: no%20such%zz%C3%A9 thing\n", 0}},
     ERR(NOT_FOUND),
     "no such%zz\xc3\xa9 thing",
     1,
     0,
     false,
     true,
     false},
    {"trailers only",
     {{'T', OK "grpc-status: 7\ngrpc-message: no\n", 0}},
     ERR(PERMISSION_DENIED),
     "no",
     0,
     0,
     false,
     true,
     true},
    {"content-type with suffix",
     {{'H', ":status: 200\ncontent-type: application/grpc+proto\n", 0}, {'M', "x", 0}, {'T', OK_TRAILERS, 0}},
     0,
     "",
     1,
     1,
     false,
     true,
     false},
    {"content-type with parameter",
     {{'H', ":status: 200\ncontent-type: application/grpc;x=y\n", 0}, {'T', OK_TRAILERS, 0}},
     0,
     "",
     1,
     0,
     false,
     true,
     false},
    {"wrong content-type",
     {{'H', ":status: 200\ncontent-type: text/html\n", 0}, {'E', html, 0}},
     ERR(UNKNOWN),
     "content-type \"text/html\": <html>busy &  nothing here</html>",
     0,
     0,
     false,
     false,
     false},
    {"almost the content-type",
     {{'H', ":status: 200\ncontent-type: application/grpcx\n", 0}, {'E', "", 0}},
     ERR(UNKNOWN),
     "content-type \"application/grpcx\"",
     0,
     0,
     false,
     false,
     false},
    {"no content-type", {{'T', ":status: 200\n", 0}}, ERR(UNKNOWN), "without content-type", 0, 0, false, false, true},
    {"HTTP 503",
     {{'H', ":status: 503\ncontent-type: text/html\n", 0}, {'E', html, 0}},
     ERR(UNAVAILABLE),
     "HTTP status 503: <html>busy",
     0,
     0,
     false,
     false,
     false},
    {"HTTP 404 without body",
     {{'T', ":status: 404\n", 0}},
     ERR(UNIMPLEMENTED),
     "HTTP status 404",
     0,
     0,
     false,
     false,
     true},
    {"HTTP 400 and grpc-status",
     {{'T', ":status: 400\ncontent-type: application/grpc\ngrpc-status: 3\n", 0}},
     ERR(INVALID_ARGUMENT),
     "",
     0,
     0,
     false,
     true,
     true},
    {"informational first",
     {{'H', ":status: 100\n", 0}, {'H', ":status: 103\nlink: x\n", 0}, {'H', OK "a: b\n", 0}, {'T', OK_TRAILERS, 0}},
     0,
     "",
     1,
     0,
     false,
     true,
     false},
    {"encoding of an informational response",
     {{'H', ":status: 103\ngrpc-encoding: zstd\n", 0}, {'H', OK, 0}, {'M', "x", 0}, {'T', OK_TRAILERS, 0}},
     0,
     "",
     1,
     1,
     false,
     true,
     false},
    {"content-type of an informational response",
     {{'H', ":status: 103\ncontent-type: application/grpc\n", 0}, {'T', ":status: 200\n", 0}},
     ERR(UNKNOWN),
     "without content-type",
     0,
     0,
     false,
     false,
     true},
    {"no trailers",
     {{'H', OK, 0}, {'E', "\0\0\0\0\1x", 6}},
     ERR(INTERNAL),
     "server closed the stream without sending trailers",
     1,
     1,
     false,
     false,
     false},
    {"trailers without grpc-status",
     {{'H', OK, 0}, {'T', "a: b\n", 0}},
     ERR(UNKNOWN),
     "server sent trailers without grpc-status",
     1,
     0,
     false,
     false,
     false},
    {"grpc-status no number",
     {{'H', OK, 0}, {'T', "grpc-status: ok\ngrpc-message: fine\n", 0}},
     ERR(UNKNOWN),
     "invalid grpc-status \"ok\": fine",
     1,
     0,
     false,
     true,
     false},
    {"grpc-status out of range",
     {{'H', OK, 0}, {'T', "grpc-status: 17\n", 0}},
     ERR(UNKNOWN),
     "invalid grpc-status \"17\"",
     1,
     0,
     false,
     true,
     false},
    {"grpc-status negative",
     {{'H', OK, 0}, {'T', "grpc-status: -1\n", 0}},
     ERR(UNKNOWN),
     "invalid grpc-status \"-1\"",
     1,
     0,
     false,
     true,
     false},
    {"truncated message",
     {{'H', OK, 0}, {'D', "\0\0\0\0\5ab", 7}, {'T', OK_TRAILERS, 0}},
     ERR(INTERNAL),
     "ends within a message",
     1,
     0,
     false,
     false,
     false},
    {"truncated prefix",
     {{'H', OK, 0}, {'D', "\0\0\0", 3}, {'T', OK_TRAILERS, 0}},
     ERR(INTERNAL),
     "ends within a message",
     1,
     0,
     false,
     false,
     false},
    {"truncated but failed anyway",
     {{'H', OK, 0}, {'D', "\0\0\0", 3}, {'T', "grpc-status: 8\n", 0}},
     ERR(RESOURCE_EXHAUSTED),
     "",
     1,
     0,
     false,
     true,
     false},
    {"too large",
     {{'H', OK, 0}, {'D', "\0\0\x40\0\1", 5}},
     ERR(RESOURCE_EXHAUSTED),
     "received message larger than max (4194305 vs. 4194304)",
     1,
     0,
     false,
     false,
     false},
    {"compressed without encoding",
     {{'H', OK, 0}, {'D', "\1\0\0\0\1x", 6}},
     ERR(INTERNAL),
     "without grpc-encoding",
     1,
     0,
     false,
     false,
     false},
    {"unknown encoding",
     {{'H', OK "grpc-encoding: br\n", 0}},
     ERR(INTERNAL),
     "unknown grpc-encoding \"br\"",
     0,
     0,
     false,
     false,
     false},
    {"gzip",
     {{'H', OK "grpc-encoding: gzip\n", 0}, {'C', "zipped", 0}, {'M', "plain", 0}, {'T', OK_TRAILERS, 0}},
     0,
     "",
     1,
     2,
     false,
     true,
     false},
    {"bad base64",
     {{'H', OK "x-bin: a=b\n", 0}},
     ERR(INTERNAL),
     "received header x-bin that is not valid base64",
     0,
     0,
     false,
     false,
     false},
    {"bad base64 in trailers",
     {{'H', OK, 0}, {'T', OK_TRAILERS "y-bin: $\n", 0}},
     ERR(INTERNAL),
     "received header y-bin that is not valid base64",
     1,
     0,
     false,
     false,
     false},
    {"RST NO_ERROR", {{'R', "0", 0}}, ERR(INTERNAL), "NO_ERROR", 0, 0, false, false, false},
    {"RST PROTOCOL_ERROR", {{'R', "1", 0}}, ERR(INTERNAL), "PROTOCOL_ERROR", 0, 0, false, false, false},
    {"RST INTERNAL_ERROR", {{'R', "2", 0}}, ERR(INTERNAL), "INTERNAL_ERROR", 0, 0, false, false, false},
    {"RST FLOW_CONTROL_ERROR", {{'R', "3", 0}}, ERR(INTERNAL), "FLOW_CONTROL_ERROR", 0, 0, false, false, false},
    {"RST SETTINGS_TIMEOUT", {{'R', "4", 0}}, ERR(INTERNAL), "SETTINGS_TIMEOUT", 0, 0, false, false, false},
    {"RST STREAM_CLOSED", {{'R', "5", 0}}, ERR(UNKNOWN), "STREAM_CLOSED", 0, 0, false, false, false},
    {"RST FRAME_SIZE_ERROR", {{'R', "6", 0}}, ERR(INTERNAL), "FRAME_SIZE_ERROR", 0, 0, false, false, false},
    {"RST REFUSED_STREAM", {{'R', "7", 0}}, ERR(UNAVAILABLE), "REFUSED_STREAM", 0, 0, true, false, false},
    {"RST CANCEL", {{'R', "8", 0}}, ERR(CANCELLED), "CANCEL", 0, 0, false, false, false},
    {"RST COMPRESSION_ERROR", {{'R', "9", 0}}, ERR(INTERNAL), "COMPRESSION_ERROR", 0, 0, false, false, false},
    {"RST CONNECT_ERROR", {{'R', "10", 0}}, ERR(INTERNAL), "CONNECT_ERROR", 0, 0, false, false, false},
    {"RST ENHANCE_YOUR_CALM",
     {{'R', "11", 0}},
     ERR(RESOURCE_EXHAUSTED),
     "ENHANCE_YOUR_CALM",
     0,
     0,
     false,
     false,
     false},
    {"RST INADEQUATE_SECURITY",
     {{'R', "12", 0}},
     ERR(PERMISSION_DENIED),
     "INADEQUATE_SECURITY",
     0,
     0,
     false,
     false,
     false},
    {"RST unknown", {{'R', "77", 0}}, ERR(UNKNOWN), "(77)", 0, 0, false, false, false},
    {"RST in the middle",
     {{'H', OK, 0}, {'M', "a", 0}, {'R', "2", 0}},
     ERR(INTERNAL),
     "INTERNAL_ERROR",
     1,
     1,
     false,
     false,
     false},
    {"RST NO_ERROR after the trailers",
     {{'H', OK, 0}, {'M', "a", 0}, {'T', OK_TRAILERS, 0}, {'R', "0", 0}},
     0,
     "",
     1,
     1,
     false,
     true,
     false},
};

static void play(struct fake_h2 *peer, const struct step *s, uint32_t id)
{
    size_t len = s->len ? s->len : strlen(s->text);
    struct tc_buf b = {0};
    switch (s->what) {
    case 'H':
    case 'T':
        fake_h2_headers(peer, id, s->text, s->what == 'T');
        break;
    case 'M':
        fake_h2_message(peer, id, s->text, len, false);
        break;
    case 'D':
    case 'E':
        fake_h2_data(peer, id, s->text, len, s->what == 'E');
        break;
    case 'R':
        fake_h2_rst(peer, id, (uint32_t)strtoul(s->text, NULL, 10));
        break;
    case 'C': {
        struct tc_rstr *packed = tc_h2_gzip(tc_slice_of(s->text, len));
        uint8_t prefix[5];
        tc_h2_prefix(prefix, true, packed->len);
        tc_buf_append(&b, prefix, 5);
        tc_buf_append(&b, packed->data, packed->len);
        fake_h2_data(peer, id, b.data, b.len, false);
        tc_rstr_unref(packed);
        tc_buf_fini(&b);
        break;
    }
    default:
        fail();
    }
}

/* chunk: the most bytes of one read; 0: unlimited. hold: all steps come in one piece. */
static void run_row(const struct row *row, size_t chunk, bool hold)
{
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, chunk);
    kit_h2_unary(&call, &t);
    fake_h2_hold(t.peer, hold);
    for (const struct step *s = row->steps; s->what; s++) {
        play(t.peer, s, 1);
        kit_h2_run(&t);
    }
    fake_h2_hold(t.peer, false);
    kit_h2_run(&t);
    if (call.done != 1 || call.code != row->code || !strstr(call.text, row->text) || call.headers != row->headers ||
        call.messages != row->messages || call.unprocessed != row->unprocessed ||
        call.from_server != row->from_server || call.trailers_only != row->trailers_only)
        fail_msg("%s (chunk %zu, hold %d): done %u code %d text '%s' headers %u messages %u unprocessed %d from_server "
                 "%d trailers_only %d",
                 row->name, chunk, hold, call.done, call.code, call.text, call.headers, call.messages, call.unprocessed,
                 call.from_server, call.trailers_only);
    kit_h2_call_fini(&call);
    /* The connection is not affected: the next call works. */
    assert_int_equal(t.closed, 0);
    kit_h2_unary(&call, &t);
    fake_h2_headers(t.peer, 3, OK, false);
    fake_h2_message(t.peer, 3, "y", 1, false);
    fake_h2_headers(t.peer, 3, OK_TRAILERS, true);
    kit_h2_run(&t);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, 0);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

static void responses(void **state)
{
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        run_row(&rows[i], 0, false);
        run_row(&rows[i], 1, false);
    }
}

/* A fast server: the whole response comes in one read. */
static void responses_in_one_piece(void **state)
{
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++)
        run_row(&rows[i], 0, true);
}

static void request_on_the_wire(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_call_init(&call, &t);
    tc_headers_add(&call.metadata, tc_slice_str("k"), tc_slice_str("v1"));
    tc_headers_add(&call.metadata, tc_slice_str("k"), tc_slice_str("v2"));
    tc_headers_add(&call.metadata, tc_slice_str("b-bin"), tc_slice_of("\0\xff", 2));
    tc_headers_add(&call.metadata, tc_slice_str("c-bin"), tc_slice_of("abc", 3));
    struct tc_h2_request r = kit_h2_request;
    r.timeout_ns = 1500 * TC_NS_PER_MS;
    r.encoding = TC_H2_GZIP;
    r.previous_attempts = 2;
    assert_int_equal(kit_h2_open(&call, &r), 0);
    assert_int_equal(tc_h2_stream_send(call.stream, tc_slice_of("hello", 5), false, true), 0);
    assert_int_equal(tc_h2_stream_send(call.stream, tc_slice_of("x", 1), false, true), TORC_ESTATE);
    size_t writes = fake_pipe_writes(t.pipe, 0);
    kit_h2_run(&t);
    assert_int_equal(fake_pipe_writes(t.pipe, 0), writes + 1);
    const struct fake_h2_frame *f = fake_h2_expect(t.peer, FAKE_H2_SETTINGS, 0);
    assert_non_null(f);
    f = fake_h2_expect(t.peer, FAKE_H2_HEADERS, 1);
    assert_non_null(f);
    assert_string_equal(f->headers,
                        ":method: POST\n:scheme: http\n:path: /test.Echo/Say\n:authority: localhost\n"
                        "grpc-timeout: 1500000u\nte: trailers\ncontent-type: application/grpc\nuser-agent: torc-test\n"
                        "grpc-accept-encoding: identity,gzip\ngrpc-encoding: gzip\n"
                        "grpc-previous-rpc-attempts: 2\nk: v1\nk: v2\n"
                        "b-bin: AP8\nc-bin: YWJj\n");
    f = fake_h2_next(t.peer);
    assert_int_equal(f->type, FAKE_H2_DATA);
    assert_int_equal(f->flags, FAKE_H2_END_STREAM);
    assert_int_equal(f->len, 10);
    assert_memory_equal(f->payload, "\0\0\0\0\5hello", 10);
    assert_int_equal(call.written, 1);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

static void gzip_request(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_call_init(&call, &t);
    struct tc_h2_request r = kit_h2_request;
    r.encoding = TC_H2_GZIP;
    assert_int_equal(kit_h2_open(&call, &r), 0);
    assert_int_equal(tc_h2_stream_send(call.stream, tc_slice_of("hello", 5), true, true), 0);
    kit_h2_run(&t);
    const struct fake_h2_frame *f = fake_h2_expect(t.peer, FAKE_H2_DATA, 1);
    assert_int_equal(f->payload[0], 1);
    struct tc_rstr *plain = NULL;
    assert_int_equal(tc_h2_gunzip(NULL, tc_slice_of(f->payload + 5, f->len - 5), 100, &plain), 0);
    assert_string_equal(plain->data, "hello");
    tc_rstr_unref(plain);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

static void metadata_received(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init(&t, NULL, chunk);
        kit_h2_unary(&call, &t);
        fake_h2_headers(t.peer, 1,
                        OK "a: 1\na: 2\nx-bin: YWI\ny-bin: YWI=,Yw==, ZGVm\ngrpc-encoding: identity\ne: \n"
                           "grpc-accept-encoding: gzip\n",
                        false);
        fake_h2_headers(t.peer, 1, OK_TRAILERS "t: u\nz-bin: \ngrpc-status-details-bin: Yw\n", true);
        kit_h2_run(&t);
        assert_string_equal(call.header_text, "a=1;a=2;x-bin=ab;y-bin=ab;y-bin=c;y-bin=def;e=;");
        assert_string_equal(call.trailer_text, "t=u;z-bin=;grpc-status-details-bin=c;");
        assert_int_equal(call.code, 0);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* Returns the text of OK and of `n` further fields with values of `value_len` bytes, for tc_free. */
static char *many_fields(size_t n, size_t value_len)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, OK);
    for (size_t i = 0; i < n; i++) {
        tc_buf_printf(&b, "x%zu: ", i);
        for (size_t j = 0; j < value_len; j++)
            tc_buf_append_char(&b, 'v');
        tc_buf_append_char(&b, '\n');
    }
    return tc_buf_take(&b);
}

static void header_list_limit(void **state)
{
    (void)state;
    for (size_t chunk = 0; chunk < 2; chunk++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init(&t, NULL, chunk);
        kit_h2_unary(&call, &t);
        char *fields = many_fields(20, 1000);
        fake_h2_headers(t.peer, 1, fields, false);
        kit_h2_run(&t);
        tc_free(fields);
        assert_int_equal(call.done, 1);
        assert_int_equal(call.code, TORC_STATUS_RESOURCE_EXHAUSTED);
        assert_non_null(strstr(call.text, "received headers larger than max (20"));
        kit_h2_call_fini(&call);
        assert_non_null(fake_h2_expect(t.peer, FAKE_H2_RST_STREAM, 1));
        /* A list just below the limit is accepted, and the connection lives. */
        kit_h2_unary(&call, &t);
        fields = many_fields(15, 1000);
        fake_h2_headers(t.peer, 3, fields, false);
        fake_h2_headers(t.peer, 3, OK_TRAILERS, true);
        kit_h2_run(&t);
        tc_free(fields);
        assert_int_equal(call.code, 0);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* One large field goes into the connection's compression table; more than a thousand references of one byte each
 * follow. */
static void hpack_bomb(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&call, &t);
    struct tc_buf block = {0};
    fake_h2_hpack(&block, OK);
    tc_buf_append(&block, "\x40\x01x\x7f\x81\x18", 6); /* incremental indexing, value of 127 + 1 + 24 * 128 bytes */
    size_t value_len = 127 + 1 + 24 * 128;
    memset(tc_buf_reserve(&block, value_len), 'v', value_len);
    block.len += value_len;
    for (int n = 0; n < 1400; n++)
        tc_buf_append_char(&block, (char)(0x80 | 62));
    fake_h2_frame(t.peer, FAKE_H2_HEADERS, FAKE_H2_END_HEADERS, 1, block.data, block.len);
    kit_h2_run(&t);
    assert_int_equal(call.code, TORC_STATUS_RESOURCE_EXHAUSTED);
    assert_in_range(call.arena.used, 0, 64 * 1024);
    assert_int_equal(t.closed, 0);
    kit_h2_call_fini(&call);
    /* The compression state is intact: a reference to the same field works. */
    kit_h2_unary(&call, &t);
    tc_buf_clear(&block);
    fake_h2_hpack(&block, OK);
    tc_buf_append_char(&block, (char)(0x80 | 62));
    fake_h2_frame(t.peer, FAKE_H2_HEADERS, FAKE_H2_END_HEADERS, 3, block.data, block.len);
    kit_h2_run(&t);
    assert_int_equal(call.headers, 1);
    assert_memory_equal(call.header_text, "x=vvv", 5);
    tc_buf_fini(&block);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

static void informational_flood(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&call, &t);
    for (int i = 0; i < 40; i++)
        fake_h2_headers(t.peer, 1, ":status: 103\nx: y\n", false);
    kit_h2_run(&t);
    assert_int_equal(call.code, TORC_STATUS_INTERNAL);
    assert_string_equal(call.text, "too many informational responses");
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

static void malformed_response(void **state)
{
    (void)state;
    const char *const bad[] = {"content-type: application/grpc\n", ":status: abc\n", ":status: 200\n:path: /\n",
                               ":status: 200\nBig: x\n", ":status: 200\nconnection: close\n"};
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init(&t, NULL, 0);
        kit_h2_unary(&call, &t);
        fake_h2_headers(t.peer, 1, bad[i], false);
        kit_h2_run(&t);
        assert_int_equal(call.done, 1);
        assert_int_equal(call.code, TORC_STATUS_INTERNAL);
        assert_int_equal(t.closed, 0);
        assert_non_null(fake_h2_expect(t.peer, FAKE_H2_RST_STREAM, 1));
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

static void endless_error_page(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    char page[1000];
    memset(page, 'p', sizeof(page));
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&call, &t);
    fake_h2_headers(t.peer, 1, ":status: 502\n", false);
    fake_h2_data(t.peer, 1, page, sizeof(page), false);
    kit_h2_run(&t);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(call.text, "HTTP status 502: pppp"));
    assert_in_range(strlen(call.text), 100, 400);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* The server answers before the request is complete: the call ends, and the client resets its stream with
 * NO_ERROR. */
static void early_answer(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_call_init(&call, &t);
    assert_int_equal(kit_h2_open(&call, &kit_h2_request), 0);
    kit_h2_run(&t);
    fake_h2_headers(t.peer, 1, OK "grpc-status: 13\n", true);
    kit_h2_run(&t);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, TORC_STATUS_INTERNAL);
    const struct fake_h2_frame *f = fake_h2_expect(t.peer, FAKE_H2_RST_STREAM, 1);
    assert_non_null(f);
    assert_memory_equal(f->payload, "\0\0\0\0", 4);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* A comma costs its sender a byte, and us a field. */
static void joined_values_count(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        char text[1024] = OK "a-bin: ";
        /* The limit of 16,384: status and content type take 42 and 60, the field takes 37, each comma takes a byte and
         * a field of 37. */
        int commas = (16384 - 42 - 60 - 37) / 38 + over;
        size_t at = strlen(text);
        memset(text + at, ',', (size_t)commas);
        memcpy(text + at + commas, "\n", 2);
        kit_h2_init(&t, NULL, 0);
        kit_h2_unary(&call, &t);
        fake_h2_headers(t.peer, 1, text, false);
        fake_h2_headers(t.peer, 1, OK_TRAILERS, true);
        kit_h2_run(&t);
        if (over)
            assert_non_null(strstr(call.text, "received headers larger than max (16"));
        else
            assert_int_equal(call.code, TORC_STATUS_OK);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses),           cmocka_unit_test(responses_in_one_piece),
        cmocka_unit_test(request_on_the_wire), cmocka_unit_test(gzip_request),
        cmocka_unit_test(metadata_received),   cmocka_unit_test(header_list_limit),
        cmocka_unit_test(joined_values_count), cmocka_unit_test(hpack_bomb),
        cmocka_unit_test(informational_flood), cmocka_unit_test(malformed_response),
        cmocka_unit_test(endless_error_page),  cmocka_unit_test(early_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
