/* Health checks (subchannel/health.h) over a transport without a pool, against a peer that the test drives frame by
 * frame, on virtual time.
 *
 * A watch writes each health that it hears into its `heard`: "fit", "pending", or the status's text, each with a space
 * behind it. Most tests set a service, start watches, take the request by `requested`, send answers, and compare by
 * assert_heard. `setup` makes the static objects below for each test, with a connected transport and no service;
 * `teardown` ends the watches and frees the rest. */
#include "subchannel/health.h"

#include <stdio.h>

#include "base/mem.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/h2.h"

enum { WATCHES = 3 };

/* A watch that notes each health that it hears, and then ends the watches of `ends`. */
struct noted {
    struct tc_health_watch watch;
    struct tc_buf heard; /* since the last assert_heard or tc_buf_clear */
    unsigned ends;       /* bit i: the callback ends watches[i] */
};

static struct tc_loop *loop;
static struct fake_pipe *pipe_to_peer;
static struct fake_h2 *peer;
static struct tc_transport *transport; /* NULL once it is gone */
static struct tc_transport_group group;
static struct tc_link all_transports;
static struct tc_side_streams streams;
static struct tc_health_checks *checks;
static struct noted watches[WATCHES];

static void note(struct noted *w, const struct tc_status *health)
{
    if (tc_status_ok(health))
        tc_buf_append_str(&w->heard, "fit ");
    else
        tc_buf_printf(&w->heard, "%s ", health->code == TC_HEALTH_PENDING ? "pending" : tc_status_text(health));
}

static void on_health(void *arg, const struct tc_status *health)
{
    struct noted *w = arg;
    note(w, health);
    for (unsigned i = 0; i < WATCHES; i++)
        if (w->ends >> i & 1)
            tc_health_watch_end(&watches[i].watch);
}

/* Moves time by `ms`, and runs the loop until nothing is left to do. */
static void run(uint64_t ms)
{
    tc_loop_advance(loop, ms);
    tc_loop_drain(loop);
    tc_loop_advance(loop, 0);
}

static void ignore_ready(void *arg)
{
    (void)arg;
}

static void on_gone(void *arg, struct tc_transport *t, const struct tc_status *why, bool too_many_pings)
{
    (void)arg, (void)t, (void)why, (void)too_many_pings;
    tc_side_streams_use(&streams, NULL);
    transport = NULL;
}

static int setup(void **state)
{
    static const struct tc_transport_events events = {.on_ready = ignore_ready, .on_gone = on_gone};
    (void)state;
    struct tc_h2_opts opts;
    struct tc_rstr *address = tc_rstr_str("10.0.0.1:80");
    loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    tc_list_init(&all_transports);
    tc_side_streams_init(&streams, loop, address);
    checks = tc_health_checks_new(loop);
    tc_h2_opts_init(&opts, false);
    pipe_to_peer = fake_pipe_new(loop);
    peer = fake_h2_new(pipe_to_peer, 1, true);
    transport = tc_transport_new(loop, fake_pipe_end(pipe_to_peer, 0), &opts, address, &all_transports, &events, NULL);
    tc_rstr_unref(address);
    tc_transport_group_init(&group, NULL, NULL);
    tc_transport_group_join(&group, transport, &events, 0);
    fake_h2_setting(peer, 3, 100);
    run(1);
    tc_side_streams_use(&streams, transport);
    for (unsigned i = 0; i < WATCHES; i++)
        watches[i] = (struct noted){.ends = 0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tc_health_checks_end(checks);
    for (unsigned i = 0; i < WATCHES; i++) {
        tc_health_watch_end(&watches[i].watch);
        tc_buf_fini(&watches[i].heard);
    }
    tc_health_checks_free(checks);
    tc_side_streams_fini(&streams);
    if (transport)
        tc_transport_close(transport);
    run(1);
    fake_h2_free(peer);
    fake_pipe_free(pipe_to_peer);
    tc_loop_free(loop);
    return 0;
}

/* NULL: no service is checked. The caller runs the loop. */
static void set_service(const char *service)
{
    struct tc_rstr *name = service ? tc_rstr_str(service) : NULL;
    tc_health_checks_set(checks, name);
    tc_rstr_unref(name);
}

/* Starts watch i, and notes the present health. */
static void start(unsigned i)
{
    note(&watches[i], tc_health_watch_start(&watches[i].watch, checks, &streams, on_health, &watches[i]));
}

/* Compares what watch i has heard, and forgets it. */
static void assert_heard(unsigned i, const char *text)
{
    assert_string_equal(tc_buf_cstr(&watches[i].heard), text);
    tc_buf_clear(&watches[i].heard);
}

/* Runs the loop for 1 ms. Asserts that the next request, if one has come, is a Watch of this service, and answers it
 * with headers. Returns its stream; 0: none has come. */
static uint32_t requested(const char *service)
{
    run(1);
    const struct fake_h2_frame *f = fake_h2_expect(peer, FAKE_H2_HEADERS, 0);
    if (!f)
        return 0;
    assert_non_null(strstr(f->headers, ":path: /grpc.health.v1.Health/Watch\n"));
    uint32_t id = f->stream;
    size_t len = strlen(service);
    f = fake_h2_expect(peer, FAKE_H2_DATA, id);
    assert_non_null(f);
    assert_int_equal(f->len, len ? 7 + len : 5);
    if (len) {
        assert_int_equal(f->payload[5], 0x0a);
        assert_int_equal(f->payload[6], len);
        assert_memory_equal(f->payload + 7, service, len);
    }
    fake_h2_headers(peer, id, ":status: 200\ncontent-type: application/grpc\n", false);
    return id;
}

/* Sends a message on the stream, and waits until the watches may hear the next one (TC_SIDE_PACE_MS). */
static void send_bytes(uint32_t id, const char *bytes, size_t len)
{
    fake_h2_message(peer, id, bytes, len, false);
    run(100);
}

static void send_status(uint32_t id, char status)
{
    send_bytes(id, (const char[]){8, status}, 2);
}

/* Ends the stream with this grpc-status and the text "why". */
static void send_end(uint32_t id, int code)
{
    char fields[64];
    snprintf(fields, sizeof(fields), "grpc-status: %d\ngrpc-message: why\n", code);
    fake_h2_headers(peer, id, fields, true);
    run(1);
}

#define SAYS(what) "health check of \"orders\": the server says " what " "

static void answers(void **state)
{
    TC_CASE(CH04);
    static const struct {
        const char *bytes;
        size_t len;
        const char *heard;
    } rows[] = {
        {"", 0, SAYS("UNKNOWN")},
        {"\x08\x01", 2, "fit "},
        {"\x08\x01", 2, ""}, /* nothing has changed */
        {"\x08\x02", 2, SAYS("NOT_SERVING")},
        {"\x08\x03", 2, SAYS("SERVICE_UNKNOWN")},
        {"\x08\x03", 2, ""},
        {"\x08\x02\x08\x01", 4, "fit "}, /* the last one counts */
        {"\x08\x04", 2, SAYS("what Torc does not know")},
        {"\x12\x01x\x08\x01", 5, "fit "}, /* a field of a later version */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, SAYS("what Torc does not know")},
        {"\x08\x01", 2, "fit "},
        {"\x0a\x01\x01", 3, SAYS("UNKNOWN")}, /* not a number */
        {"\x08", 1, "health check of \"orders\": the server's answer is malformed "},
        {"\x08\x81\x80\x80\x80\x10", 6, SAYS("what Torc does not know")}, /* 2^32 + 1 */
        {"\x08\x01", 2, "fit "},
        {"\x08\x01\x0a\x05", 4, "health check of \"orders\": the server's answer is malformed "},
    };
    (void)state;
    set_service("orders");
    start(0);
    assert_heard(0, "pending ");
    assert_true(tc_health_watch_pending(&watches[0].watch));
    uint32_t id = requested("orders");
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        send_bytes(id, rows[i].bytes, rows[i].len);
        assert_heard(0, rows[i].heard);
    }
    assert_false(tc_health_watch_pending(&watches[0].watch));
}

static void ends(void **state)
{
    TC_CASE(CH03);
    (void)state;
    set_service("orders");
    start(0);
    assert_heard(0, "pending ");
    uint32_t id = requested("orders");
    send_end(id, 14);
    assert_heard(0, "health check of \"orders\": the stream ended: why ");
    run(700);
    assert_int_equal(requested("orders"), 0);
    run(600);
    id = requested("orders");
    assert_true(id != 0);
    assert_heard(0, "");
    send_status(id, 1);
    assert_heard(0, "fit ");
    send_end(id, 0);
    assert_heard(0, "health check of \"orders\": the stream ended: OK ");
    run(1300);
    id = requested("orders");
    send_end(id, 12);
    assert_heard(0, "fit ");
    run(300000);
    assert_int_equal(requested("orders"), 0);
}

/* Watches of one name share a stream. A watch that joins the stream hears the newest answer by a task. */
static void a_stream_is_shared(void **state)
{
    TC_CASE(CH09);
    (void)state;
    set_service("orders");
    start(0);
    start(1);
    uint32_t id = requested("orders");
    assert_int_equal(requested("orders"), 0);
    send_status(id, 2);
    start(2);
    assert_heard(0, "pending " SAYS("NOT_SERVING"));
    assert_heard(1, "pending " SAYS("NOT_SERVING"));
    assert_heard(2, "pending ");
    run(1);
    assert_heard(2, SAYS("NOT_SERVING"));
    for (unsigned i = 0; i < WATCHES; i++)
        tc_health_watch_end(&watches[i].watch);
    run(1);
    assert_int_equal(fake_h2_count(peer, FAKE_H2_RST_STREAM, id), 1);
    start(0);
    assert_true(requested("orders") != 0);
}

/* The name is set, changed and removed. It changes while the old name's stream is open (phase 0), is in backoff (1),
 * and has no connection (2). */
static void the_name_changes(void **state)
{
    TC_CASE(CH06);
    (void)state;
    for (int phase = 0; phase < 3; phase++) {
        start(0);
        assert_heard(0, "fit ");
        set_service("");
        assert_heard(0, "");
        run(1);
        assert_heard(0, ""); /* fit until the first answer */
        uint32_t id = requested("");
        if (!id)
            fail_msg("phase %d", phase);
        if (phase == 0)
            send_status(id, 2);
        else
            send_end(id, 14);
        if (phase == 2)
            tc_side_streams_use(&streams, NULL);
        assert_true(strstr(tc_buf_cstr(&watches[0].heard), "health check of \"\": "));
        tc_buf_clear(&watches[0].heard);
        set_service("other");
        run(1);
        assert_heard(0, "pending ");
        if (phase == 2)
            tc_side_streams_use(&streams, transport);
        id = requested("other");
        assert_true(id != 0);
        send_status(id, phase == 1 ? 1 : 2);
        assert_true(watches[0].heard.len > 0);
        tc_buf_clear(&watches[0].heard);
        set_service("other"); /* nothing has changed */
        run(1);
        assert_int_equal(fake_h2_count(peer, FAKE_H2_HEADERS, 0), 0);
        set_service(NULL);
        run(1);
        assert_heard(0, phase == 1 ? "" : "fit ");
        assert_int_equal(fake_h2_count(peer, FAKE_H2_RST_STREAM, id), 1);
        tc_health_watch_end(&watches[0].watch);
        run(3000); /* the backoff of "" */
        assert_int_equal(fake_h2_count(peer, FAKE_H2_HEADERS, 0), 0);
    }
}

/* After GOAWAY or a loss no watch is called: the policy hears of the lost connection by the subchannel's state. */
static void a_lost_connection_says_nothing(void **state)
{
    TC_CASE(CH07);
    for (int goaway = 0; goaway < 2; goaway++) {
        if (goaway) {
            teardown(state);
            setup(state);
        }
        set_service("orders");
        start(0);
        uint32_t id = requested("orders");
        send_status(id, 1);
        assert_heard(0, "pending fit ");
        if (goaway)
            fake_h2_goaway(peer, id, 0, "");
        else
            fake_pipe_finish(pipe_to_peer, 1);
        run(1);
        assert_heard(0, "");
        assert_null(transport);
        assert_int_equal(fake_h2_count(peer, FAKE_H2_RST_STREAM, id), goaway);
        run(1000);
        assert_heard(0, "");
    }
}

/* A105: a subchannel connects again by itself, and its policy starts the watch once more. The health that the server
 * reported on the old connection does not count. */
static void a_watch_on_another_connection(void **state)
{
    TC_CASE(CH07);
    (void)state;
    set_service("orders");
    start(0);
    uint32_t id = requested("orders");
    send_status(id, 1);
    assert_heard(0, "pending fit ");
    start(0);
    assert_heard(0, "fit "); /* on the same connection the health counts */
    tc_side_streams_use(&streams, NULL);
    tc_side_streams_use(&streams, transport);
    start(0);
    assert_heard(0, "pending ");
    id = requested("orders");
    send_status(id, 1);
    assert_heard(0, "fit ");
}

/* The transport changes, and so does the name, from another name or from none, before the policy starts the watch for
 * the new connection. The server has not answered there: from that start on the endpoint is pending, not fit. */
static void a_name_that_changes_on_another_connection(void **state)
{
    TC_CASE(CH07);
    for (int from_none = 0; from_none < 2; from_none++) {
        if (from_none) {
            teardown(state);
            setup(state);
        } else {
            set_service("orders");
        }
        start(0);
        if (!from_none)
            send_status(requested("orders"), 1);
        tc_buf_clear(&watches[0].heard);
        tc_side_streams_use(&streams, NULL);
        set_service("billing");
        tc_side_streams_use(&streams, transport);
        tc_loop_drain(loop);
        assert_heard(0, "");
        start(0);
        assert_heard(0, "pending ");
        send_status(requested("billing"), 1);
        assert_heard(0, "fit ");
    }
}

/* The transport changes, and the policy hears nothing of it, as when credentials are renewed. A fit endpoint stays fit
 * while the name changes as well. */
static void a_name_that_changes_on_a_transport_in_silence(void **state)
{
    TC_CASE(CH07);
    (void)state;
    set_service("orders");
    start(0);
    send_status(requested("orders"), 1);
    assert_heard(0, "pending fit ");
    tc_side_streams_use(&streams, NULL);
    tc_side_streams_use(&streams, transport);
    set_service("billing");
    tc_loop_drain(loop);
    assert_heard(0, "");
    send_status(requested("billing"), 2);
    assert_true(strstr(tc_buf_cstr(&watches[0].heard), "health check of \"billing\": "));
}

/* The callback of watch `first` ends the watches of `mask`, perhaps its own. `how`: the callback is for an answer, for
 * the stream's end, or for a name that is removed. */
static void callbacks_may_end_watches(void **state)
{
    (void)state;
    for (unsigned how = 0; how < 3; how++) {
        for (unsigned first = 0; first < WATCHES; first++) {
            for (unsigned mask = 1; mask < 8; mask++) {
                set_service("orders");
                run(1);
                for (unsigned i = 0; i < WATCHES; i++) {
                    watches[i].ends = 0;
                    start(i);
                }
                uint32_t id = requested("orders");
                assert_true(id != 0);
                if (how == 2)
                    send_status(id, 2);
                watches[first].ends = mask;
                for (unsigned i = 0; i < WATCHES; i++)
                    tc_buf_clear(&watches[i].heard);
                if (how == 0)
                    send_status(id, 1);
                if (how == 1)
                    send_end(id, 14);
                if (how == 2)
                    set_service(NULL);
                run(1);
                for (unsigned i = 0; i < WATCHES; i++)
                    if ((watches[i].heard.len > 0) != (i <= first || !(mask >> i & 1)))
                        fail_msg("way %u, first %u, mask %u, watch %u", how, first, mask, i);
                set_service(NULL);
                for (unsigned i = 0; i < WATCHES; i++)
                    tc_health_watch_end(&watches[i].watch);
                run(3000);
                for (unsigned i = 0; i < WATCHES; i++)
                    tc_buf_clear(&watches[i].heard);
                while (fake_h2_next(peer)) {
                }
            }
        }
    }
}

/* Without checks, as with the channel's option off, an endpoint is fit. */
static void without_checks(void **state)
{
    (void)state;
    note(&watches[0], tc_health_watch_start(&watches[0].watch, NULL, &streams, on_health, &watches[0]));
    assert_heard(0, "fit ");
    tc_health_checks_set(NULL, NULL);
    tc_health_checks_end(NULL);
    tc_health_checks_free(NULL);
    tc_health_watch_end(&watches[0].watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers, setup, teardown),
        cmocka_unit_test_setup_teardown(ends, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stream_is_shared, setup, teardown),
        cmocka_unit_test_setup_teardown(the_name_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lost_connection_says_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_watch_on_another_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(a_name_that_changes_on_another_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(a_name_that_changes_on_a_transport_in_silence, setup, teardown),
        cmocka_unit_test_setup_teardown(callbacks_may_end_watches, setup, teardown),
        cmocka_unit_test_setup_teardown(without_checks, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
