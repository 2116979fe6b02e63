/* The end of a response as a client's connection (kits/h2) reads it from fakes/h2.
 *
 * Whole messages that came before the end are delivered, whatever ends the response (enum ending). The end waits for
 * messages that nobody has asked for; a writer that waits for the window is told at once. If grpc-status, grpc-message,
 * content-type or grpc-encoding comes twice, the last one counts. The ends of connections are logged.
 *
 * A call is stream 1, and stream 3 if it is the connection's second. One thread: events come from kit_h2_run. */
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "support/cmocka.h"
#include "support/kits/h2.h"

#define OK KIT_H2_OK_HEADERS

enum ending { RST, REFUSED, GOAWAY, CLOSE, BREAK, LARGE_TRAILERS, BAD_BLOCK, BAD_FRAME, N_ENDINGS };
static const char *const names[] = {
    "RST_STREAM",        "RST_STREAM REFUSED_STREAM", "GOAWAY below the stream", "end of bytes",
    "broken connection", "trailers beyond the limit", "invalid header",          "invalid frame"};
static const int codes[] = {TORC_STATUS_INTERNAL,    TORC_STATUS_UNAVAILABLE, TORC_STATUS_UNAVAILABLE,
                            TORC_STATUS_UNAVAILABLE, TORC_STATUS_UNAVAILABLE, TORC_STATUS_RESOURCE_EXHAUSTED,
                            TORC_STATUS_INTERNAL,    TORC_STATUS_UNAVAILABLE};

/* Sends the frame that ends the response on stream 1. Sends nothing for CLOSE and BREAK, which end_bytes plays. */
static void end_it(struct kit_h2 *t, enum ending ending)
{
    struct tc_buf trailers = {0};
    switch (ending) {
    case RST:
        fake_h2_rst(t->peer, 1, 2);
        break;
    case REFUSED:
        fake_h2_rst(t->peer, 1, 7);
        break;
    case GOAWAY:
        fake_h2_goaway(t->peer, 0, 0, "");
        break;
    case LARGE_TRAILERS:
        tc_buf_printf(&trailers, "grpc-status: 0\nx: %0300d\n", 0);
        fake_h2_headers(t->peer, 1, tc_buf_cstr(&trailers), true);
        break;
    case BAD_BLOCK:
        fake_h2_headers(t->peer, 1, "Big: x\n", true);
        break;
    case BAD_FRAME:
        fake_h2_frame(t->peer, FAKE_H2_PING, 0, 0, "12", 2);
        break;
    default:
        break;
    }
    tc_buf_fini(&trailers);
}

static void end_bytes(struct kit_h2 *t, enum ending ending)
{
    if (ending == CLOSE)
        fake_pipe_finish(t->pipe, 1);
    else if (ending == BREAK)
        fake_pipe_fail(t->pipe, 0, TORC_ECLOSED, "reset", true);
}

/* Sends two whole messages and `split` bytes of a third, then the end. Asserts that both messages come before the end.
 * chunk: the most bytes of one read; 0: unlimited. hold: all frames come in one piece. auto_read: each message asks for
 * the next one; otherwise the messages are asked for once the end has come. */
static void check_ending(enum ending ending, size_t chunk, bool hold, bool auto_read, size_t split)
{
    struct kit_h2 t;
    struct kit_h2_call call;
    struct tc_h2_opts opts;
    tc_h2_opts_init(&opts, false);
    opts.no_bdp = true;
    opts.limits.max_header_list_bytes = 256;
    kit_h2_init(&t, &opts, chunk);
    kit_h2_open_reading(&call, &t, auto_read);
    if (auto_read)
        tc_h2_stream_read(call.stream);
    fake_h2_hold(t.peer, hold);
    fake_h2_headers(t.peer, 1, OK, false);
    fake_h2_message(t.peer, 1, "first", 5, false);
    fake_h2_message(t.peer, 1, "second", 6, false);
    if (split)
        fake_h2_data(t.peer, 1, "\0\0\0\0\5third", split, false);
    end_it(&t, ending);
    fake_h2_hold(t.peer, false);
    end_bytes(&t, ending);
    kit_h2_run(&t);
    for (unsigned i = 0; i < 3 && !auto_read && !call.done; i++) {
        assert_int_equal(call.messages, i);
        tc_h2_stream_read(call.stream);
        kit_h2_run(&t);
    }
    if (call.messages != 2 || call.done != 1 || call.code != codes[ending] || call.headers != 1)
        fail_msg("%s (chunk %zu, hold %d, auto_read %d, %zu bytes of a third): headers %u messages %u done %u code %d "
                 "'%s'",
                 names[ending], chunk, hold, auto_read, split, call.headers, call.messages, call.done, call.code,
                 call.text);
    assert_string_equal(tc_buf_cstr(&call.last), "second");
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

static void messages_before_the_end(void **state)
{
    static const size_t splits[] = {0, 3, 5, 8};
    (void)state;
    for (int ending = 0; ending < N_ENDINGS; ending++)
        for (size_t i = 0; i < TC_ARRAY_LEN(splits); i++)
            for (unsigned how = 0; how < 8; how++)
                check_ending((enum ending)ending, how & 1, how & 2, how & 4, splits[i]);
}

/* One read brings the rest of a message that was asked for, and the RST_STREAM behind it. */
static void end_while_a_message_is_read(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_open_reading(&call, &t, true);
    tc_h2_stream_read(call.stream);
    fake_h2_headers(t.peer, 1, OK, false);
    fake_h2_data(t.peer, 1, "\0\0\0\0\5he", 7, false);
    kit_h2_run(&t);
    fake_h2_hold(t.peer, true);
    fake_h2_data(t.peer, 1, "llo", 3, false);
    fake_h2_rst(t.peer, 1, 2);
    fake_h2_hold(t.peer, false);
    kit_h2_run(&t);
    assert_int_equal(call.messages, 1);
    assert_string_equal(tc_buf_cstr(&call.last), "hello");
    assert_int_equal(call.code, TORC_STATUS_INTERNAL);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* The owner closes the connection after a stream has ended, while nobody has asked for the stream's message. Message
 * and end come once the message is asked for. */
static void closed_before_it_is_read(void **state)
{
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_open_reading(&call, &t, false);
    fake_h2_headers(t.peer, 1, OK, false);
    fake_h2_message(t.peer, 1, "first", 5, false);
    fake_h2_rst(t.peer, 1, 2);
    kit_h2_run(&t);
    kit_h2_close(&t);
    kit_h2_run(&t);
    assert_int_equal(call.done, 0);
    tc_h2_stream_read(call.stream);
    kit_h2_run(&t);
    assert_int_equal(call.messages, 1);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, TORC_STATUS_INTERNAL);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

/* The end waits for a message that nobody has asked for. A writer that waits for the window gets on_written at once. */
static void a_writer_is_told_before_the_end(void **state)
{
    (void)state;
    for (int ending = 0; ending < N_ENDINGS; ending++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        char *large = tc_calloc(1, 100000);
        struct tc_h2_opts opts;
        tc_h2_opts_init(&opts, false);
        opts.limits.max_header_list_bytes = 256;
        kit_h2_init(&t, &opts, 0);
        kit_h2_call_init(&call, &t);
        assert_int_equal(kit_h2_open(&call, &kit_h2_request), 0);
        assert_int_equal(tc_h2_stream_send(call.stream, tc_slice_of(large, 100000), false, true), 0);
        kit_h2_run(&t);
        assert_int_equal(call.written, 0);
        fake_h2_headers(t.peer, 1, OK, false);
        fake_h2_message(t.peer, 1, "first", 5, false);
        end_it(&t, (enum ending)ending);
        end_bytes(&t, (enum ending)ending);
        kit_h2_run(&t);
        if (call.written != 1 || call.done != 0)
            fail_msg("%s: written %u done %u", names[ending], call.written, call.done);
        tc_h2_stream_read(call.stream);
        kit_h2_run(&t);
        assert_int_equal(call.messages, 1);
        assert_int_equal(call.done, 1);
        assert_int_equal(call.code, codes[ending]);
        tc_free(large);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* If grpc-status, grpc-message, content-type or grpc-encoding comes twice, the last one counts. A
 * grpc-status-details-bin that contradicts a valid grpc-status makes the status INTERNAL. A grpc-status-details-bin
 * that comes twice, has no code or is malformed is ignored. */
static void doubled_fields(void **state)
{
    static const struct {
        const char *headers, *trailers; /* headers NULL: trailers-only */
        int code;
        const char *text;
    } rows[] = {
        {OK, "grpc-status: 5\ngrpc-message: one\ngrpc-status: 7\ngrpc-message: two\n", 7, "two"},
        {OK, "grpc-status: 0\ngrpc-status: 7\ngrpc-message: two\n", 7, "two"},
        {OK, "grpc-message: one\ngrpc-status: 7\ngrpc-message: two\ngrpc-status: 5\n", 5, "two"},
        {OK, "grpc-status: nine\ngrpc-status: 7\ngrpc-message: two\n", 7, "two"},
        {OK, "grpc-status: 7\ngrpc-status: nine\ngrpc-message: two\n", 2, "invalid grpc-status \"nine\": two"},
        {NULL, OK "grpc-status: 5\ngrpc-status: 7\ngrpc-message: two\n", 7, "two"},
        {OK "content-type: text/html\n", "grpc-status: 7\n", 7, ""},
        {":status: 200\ncontent-type: text/html\ncontent-type: application/grpc\n", "grpc-status: 7\n", 7, ""},
        {OK "content-type: text/html\n", "", 2, "server answered with content-type \"text/html\""},
        {OK "grpc-encoding: nonsense\ngrpc-encoding: gzip\n", "grpc-status: 7\n", 7, ""},
        {OK "grpc-encoding: gzip\ngrpc-encoding: nonsense\n", "grpc-status: 7\n", 13,
         "received unknown grpc-encoding \"nonsense\""},
        /* A google.rpc.Status in base64. CAU: {code: 5}. CAc: {code: 7}. EgFt: {message: "m"}. EgFtCAc: message and
         * code. CAcI: a code, then half a field. */
        {OK, "grpc-status: 5\ngrpc-message: x\ngrpc-status-details-bin: CAU\n", 5, "x"},
        {OK, "grpc-status: 5\ngrpc-message: x\ngrpc-status-details-bin: CAc\n", 13,
         "grpc-status-details-bin has code 7, but grpc-status is 5"},
        {NULL, OK "grpc-status: 5\ngrpc-status-details-bin: CAc\n", 13,
         "grpc-status-details-bin has code 7, but grpc-status is 5"},
        {OK, "grpc-status: 0\ngrpc-status-details-bin: CAc\n", 13,
         "grpc-status-details-bin has code 7, but grpc-status is 0"},
        {OK, "grpc-status: 5\ngrpc-status-details-bin: EgFt\n", 5, ""},
        {OK, "grpc-status: 5\ngrpc-status-details-bin: EgFtCAc\n", 13,
         "grpc-status-details-bin has code 7, but grpc-status is 5"},
        {OK, "grpc-status: 5\ngrpc-status-details-bin: CAcI\n", 5, ""},
        {OK, "grpc-status: 5\ngrpc-status-details-bin: CAc\ngrpc-status-details-bin: CAU\n", 5, ""},
        {OK, "grpc-status: bad\ngrpc-status-details-bin: CAc\n", 2, "invalid grpc-status \"bad\""},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        kit_h2_init(&t, NULL, 0);
        kit_h2_unary(&call, &t);
        if (rows[i].headers)
            fake_h2_headers(t.peer, 1, rows[i].headers, false);
        if (rows[i].trailers[0])
            fake_h2_headers(t.peer, 1, rows[i].trailers, true);
        else
            fake_h2_data(t.peer, 1, "", 0, true);
        kit_h2_run(&t);
        if (call.done != 1 || call.code != rows[i].code || strcmp(call.text, rows[i].text) != 0)
            fail_msg("row %zu: done %u code %d '%s'", i, call.done, call.code, call.text);
        assert_int_equal(t.closed, 0);
        kit_h2_call_fini(&call);
        kit_h2_fini(&t);
    }
}

/* The last grpc-encoding of the headers counts; grpc-encoding in trailers is ignored. */
static void doubled_encodings(void **state)
{
    static const uint8_t flagged[] = {1, 0, 0, 0, 0};
    (void)state;
    struct kit_h2 t;
    struct kit_h2_call call;
    kit_h2_init(&t, NULL, 0);
    kit_h2_unary(&call, &t);
    fake_h2_headers(t.peer, 1, OK "grpc-encoding: gzip\ngrpc-encoding: identity\n", false);
    fake_h2_data(t.peer, 1, flagged, sizeof(flagged), false);
    kit_h2_run(&t);
    assert_int_equal(call.code, TORC_STATUS_INTERNAL);
    assert_string_equal(call.text, "received compressed message without grpc-encoding");
    kit_h2_call_fini(&call);
    kit_h2_unary(&call, &t);
    fake_h2_headers(t.peer, 3, OK, false);
    fake_h2_headers(t.peer, 3, "grpc-status: 0\ngrpc-encoding: nonsense\n", true);
    kit_h2_run(&t);
    assert_int_equal(call.code, TORC_STATUS_OK);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

struct logged {
    unsigned infos, debugs;
    char text[512];
};

static void on_log(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    struct logged *l = arg;
    if (strcmp(module, "http2") != 0)
        return;
    l->infos += level == TORC_LOG_INFO;
    l->debugs += level == TORC_LOG_DEBUG;
    snprintf(l->text, sizeof(l->text), "%s", message);
}

/* An end that cut a stream off, or followed a GOAWAY to a connection in use, is logged at INFO; other ends at DEBUG. */
static void ends_are_logged(void **state)
{
    static const struct {
        bool call, goaway, answered;
        unsigned infos;
        const char *text;
    } rows[] = {
        {true, false, false, 1, ": connection ended, 1 streams cut off: connection closed by the server"},
        {true, true, true, 1, ": connection ended, 0 streams cut off: server sent GOAWAY with NO_ERROR: maintenance"},
        {true, false, true, 0, ": connection ended: connection closed by the server"},
        {false, true, false, 0, ": connection ended: server sent GOAWAY with NO_ERROR: maintenance"},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct kit_h2 t;
        struct kit_h2_call call;
        struct logged logged = {0};
        torc_log_set_sink(on_log, &logged);
        assert_int_equal(torc_log_set_levels("http2=debug"), 0);
        kit_h2_init(&t, NULL, 0);
        if (rows[i].call)
            kit_h2_unary(&call, &t);
        if (rows[i].goaway)
            fake_h2_goaway(t.peer, 1, 0, "maintenance");
        if (rows[i].answered) {
            fake_h2_headers(t.peer, 1, KIT_H2_OK_HEADERS, false);
            fake_h2_headers(t.peer, 1, "grpc-status: 0\n", true);
        }
        kit_h2_run(&t);
        fake_pipe_finish(t.pipe, 1);
        kit_h2_run(&t);
        assert_int_equal(t.closed, 1);
        assert_int_equal(logged.infos, rows[i].infos);
        assert_int_equal(logged.debugs, 1 - rows[i].infos);
        assert_non_null(strstr(logged.text, rows[i].text));
        if (rows[i].call)
            kit_h2_call_fini(&call);
        kit_h2_fini(&t);
        torc_log_set_sink(NULL, NULL);
        torc_log_set_levels("none");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_are_logged),
        cmocka_unit_test(messages_before_the_end),
        cmocka_unit_test(end_while_a_message_is_read),
        cmocka_unit_test(closed_before_it_is_read),
        cmocka_unit_test(a_writer_is_told_before_the_end),
        cmocka_unit_test(doubled_fields),
        cmocka_unit_test(doubled_encodings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
