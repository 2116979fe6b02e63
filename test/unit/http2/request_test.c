/* Requests of a client (kits/h2): the size of their headers, and whose limit bounds it. Also two frames of a server
 * (fakes/h2) for which the client's connection ends. */
#include "base/mem.h"
#include "support/cmocka.h"
#include "support/kits/h2.h"

/* Makes a call whose metadata has one value of `bytes` bytes. Returns the call's status code, with the status's text in
 * `text`; or -1, with `text` empty, if the call was sent. */
static int send_headers(struct kit_h2 *t, size_t bytes, char text[512])
{
    struct kit_h2_call call;
    kit_h2_call_init(&call, t);
    char *value = tc_calloc(1, bytes);
    memset(value, 'v', bytes);
    tc_headers_add(&call.metadata, tc_slice_str("k"), tc_slice_of(value, bytes));
    assert_int_equal(kit_h2_open(&call, &kit_h2_request), 0);
    for (int i = 0; i < 10; i++)
        kit_h2_run(t);
    const struct fake_h2_frame *f = fake_h2_expect(t->peer, FAKE_H2_HEADERS, 0);
    assert_int_equal(f != NULL, call.done == 0);
    assert_false(call.done && call.unprocessed);
    assert_int_equal(call.refused, call.done != 0);
    int code = call.done ? call.code : -1;
    memcpy(text, call.text, sizeof(call.text));
    tc_free(value);
    kit_h2_call_fini(&call);
    return code;
}

static void whose_limit_it_is(void **state)
{
    static const struct {
        size_t ours;     /* 0: the default */
        uint32_t theirs; /* 0: the server says nothing */
        size_t bytes;
        const char *text; /* NULL: it is sent */
    } rows[] = {
        {0, 0, 1000000, NULL},
        {0, 0, 1048576, "request headers larger than max_request_header_bytes (10"},
        {0, 0, 3000000, " vs. 1048576)"},
        {3000000, 0, 2000000, NULL},
        {3000000, 0, 2999000, NULL},
        {3000000, 0, 3000000, "request headers larger than max_request_header_bytes (30"},
        {1000, 0, 1000, " vs. 1000)"},
        {1000, 0, 300, NULL},
        {0, 8192, 9000, "request headers larger than the server takes ("},
        {0, 8192, 2000000, " vs. 8192)"},
        {1000, 8192, 2000, "request headers larger than max_request_header_bytes ("},
        {1000, 8192, 9000, "request headers larger than max_request_header_bytes ("},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct kit_h2 t;
        struct tc_h2_opts opts;
        char text[512];
        tc_h2_opts_init(&opts, false);
        opts.no_bdp = true;
        if (rows[i].ours)
            opts.limits.max_request_header_bytes = rows[i].ours;
        kit_h2_init_silent(&t, &opts, 0);
        if (rows[i].theirs)
            fake_h2_setting(t.peer, 6, rows[i].theirs);
        else
            fake_h2_start(t.peer);
        kit_h2_run(&t);
        int code = send_headers(&t, rows[i].bytes, text);
        if (code != (rows[i].text ? TORC_STATUS_RESOURCE_EXHAUSTED : -1) ||
            (rows[i].text && !strstr(text, rows[i].text)))
            fail_msg("row %zu: %d '%s'", i, code, text);
        /* The connection goes on. */
        assert_int_equal(t.closed, 0);
        assert_int_equal(send_headers(&t, 10, text), -1);
        kit_h2_fini(&t);
    }
}

static void request_larger_than_the_server_takes(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init_silent(&t, NULL, 0);
    fake_h2_setting(t.peer, 6, 4096);
    kit_h2_run(&t);
    kit_h2_call_init(&call, &t);
    char *value = tc_calloc(1, 8000);
    memset(value, 'v', 8000);
    tc_headers_add(&call.metadata, tc_slice_str("k"), tc_slice_of(value, 8000));
    assert_int_equal(kit_h2_open(&call, &kit_h2_request), 0);
    assert_int_equal(call.done, 0);
    kit_h2_run(&t);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, TORC_STATUS_RESOURCE_EXHAUSTED);
    assert_false(call.unprocessed);
    assert_null(fake_h2_expect(t.peer, FAKE_H2_HEADERS, 0));
    tc_free(value);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* DATA before headers: a stream error by RFC 9113 8.1.1, for which nghttp2 ends the connection. */
static void data_before_headers(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call calls[2];
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&calls[0], &t);
    kit_h2_unary(&calls[1], &t);
    fake_h2_message(t.peer, 1, "x", 1, false);
    kit_h2_run(&t);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(calls[i].done, 1);
        assert_int_equal(calls[i].code, TORC_STATUS_UNAVAILABLE);
        assert_non_null(strstr(calls[i].text, "PROTOCOL_ERROR: DATA: stream not opened"));
        kit_h2_call_fini(&calls[i]);
    }
    assert_int_equal(t.closed, 1);
    kit_h2_fini(&t);
}

/* RFC 9113 6.3: PRIORITY on stream 0 ends the connection. PRIORITY on another stream does not. */
static void priority_of_stream_0(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&call, &t);
    fake_h2_frame(t.peer, 2, 0, 1, "\0\0\0\0\1", 5);
    kit_h2_run(&t);
    assert_int_equal(t.closed, 0);
    fake_h2_frame(t.peer, 2, 0, 0, "\0\0\0\0\1", 5);
    kit_h2_run(&t);
    assert_int_equal(t.closed, 1);
    assert_non_null(strstr(call.text, "PROTOCOL_ERROR: PRIORITY"));
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_limit_it_is),
        cmocka_unit_test(request_larger_than_the_server_takes),
        cmocka_unit_test(data_before_headers),
        cmocka_unit_test(priority_of_stream_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
