/* The memory of a compressed message is given back once the message was sent or refused, while its stream stays open:
 * at a server (kits/server_pipe) and at a client (kits/h2), each against fakes/h2.
 *
 * The test's allocator counts the bytes that Torc holds (`live`), those of fakes/pipe and fakes/h2 included. set_up
 * gives the allocator to Torc before the first test. The messages are random bytes, which gzip cannot shrink: a message
 * that is kept would stand out with BYTES bytes. One thread, on a manual loop. */
#include <stdlib.h>
#include <torc/memory.h>

#include "base/mem.h"
#include "base/random.h"
#include "support/cmocka.h"
#include "support/kits/h2.h"
#include "support/kits/server_pipe.h"

enum { STREAMS = 8, BYTES = 1 << 20 };

static size_t live; /* bytes that Torc holds now */

/* In front of each block. `unused` keeps the block behind the head aligned. */
struct head {
    size_t size, unused;
};

static void *resize(void *ptr, size_t size)
{
    struct head *h = ptr ? (struct head *)ptr - 1 : NULL;
    live -= h ? h->size : 0;
    h = realloc(h, sizeof(*h) + size);
    assert_non_null(h);
    h->size = size;
    live += size;
    return h + 1;
}

static void *take(size_t size)
{
    return resize(NULL, size);
}

static void *take_zeroed(size_t n, size_t size)
{
    return memset(resize(NULL, n * size), 0, n * size);
}

static void give(void *ptr)
{
    if (!ptr)
        return;
    live -= ((struct head *)ptr - 1)->size;
    free((struct head *)ptr - 1);
}

static char noise[BYTES]; /* does not shrink */

static int set_up(void **state)
{
    static const struct torc_allocator counting = {TORC_SIZE(torc_allocator), take, take_zeroed, resize, give};
    struct tc_rng rng;
    (void)state;
    tc_rng_init_seed(&rng, 1);
    for (size_t i = 0; i < BYTES; i++)
        noise[i] = (char)tc_rng_below(&rng, 256);
    return torc_set_allocator(&counting);
}

/* Opens the windows that the peer grants as far as HTTP/2 allows: flow control holds back no message. */
static void open_windows(struct fake_h2 *peer)
{
    fake_h2_setting(peer, 4, INT32_MAX);
    fake_h2_window(peer, 0, INT32_MAX - 65535);
}

static struct tc_server_call *calls[STREAMS];
static size_t n_calls, n_written;

static void on_written(void *arg)
{
    (void)arg;
    n_written++;
}

static void on_call(void *arg, struct tc_server_call *call)
{
    static const struct tc_server_call_events events = {.on_written = on_written};
    (void)arg;
    calls[n_calls++] = call;
    tc_server_call_set_events(call, &events, NULL);
    tc_server_call_send_headers(call, NULL, TC_H2_GZIP);
}

static void server_keeps_no_message(void **state)
{
    struct kit_server_pipe k;
    (void)state;
    kit_server_pipe_init(&k, NULL);
    tc_server_set_default(k.server, on_call, NULL);
    kit_server_pipe_connect(&k, 0);
    open_windows(k.peer);
    for (uint32_t i = 0; i < STREAMS; i++)
        fake_h2_headers(k.peer, 2 * i + 1, KIT_SERVER_PIPE_REQUEST("/t.S/Stream") "grpc-accept-encoding: gzip\n",
                        false);
    tc_loop_drain(k.loop);
    assert_int_equal(n_calls, STREAMS);
    size_t before = live;
    for (uint32_t i = 0; i < STREAMS; i++) {
        tc_server_call_send(calls[i], tc_slice_of(noise, BYTES));
        tc_loop_drain(k.loop);
        assert_int_equal(n_written, i + 1);
        assert_in_range(fake_h2_count(k.peer, FAKE_H2_DATA, 2 * i + 1), 1, SIZE_MAX);
    }
    assert_in_range(live, 0, before + STREAMS / 2 * BYTES); /* room for buffers of the pipe and the peer */
    kit_server_pipe_fini(&k);
}

static void client_keeps_no_message(void **state)
{
    struct kit_h2 t;
    struct kit_h2_call out[STREAMS];
    struct tc_h2_request gzip = kit_h2_request;
    (void)state;
    gzip.encoding = TC_H2_GZIP;
    kit_h2_init(&t, NULL, 0);
    open_windows(t.peer);
    for (size_t i = 0; i < STREAMS; i++) {
        kit_h2_call_init(&out[i], &t);
        assert_int_equal(kit_h2_open(&out[i], &gzip), 0);
    }
    kit_h2_run(&t);
    size_t before = live;
    for (uint32_t i = 0; i < STREAMS; i++) {
        assert_int_equal(tc_h2_stream_send(out[i].stream, tc_slice_of(noise, BYTES), true, false), 0);
        assert_int_equal(tc_h2_stream_send(out[i].stream, tc_slice_of(noise, 1), true, false), TORC_ESTATE);
        kit_h2_run(&t);
        assert_int_equal(out[i].written, 1);
        assert_in_range(fake_h2_count(t.peer, FAKE_H2_DATA, 2 * i + 1), 1, SIZE_MAX);
    }
    assert_in_range(live, 0, before + STREAMS / 2 * BYTES);
    for (size_t i = 0; i < STREAMS; i++)
        kit_h2_call_fini(&out[i]);
    kit_h2_fini(&t);
}

static void client_keeps_no_refused_message(void **state)
{
    struct kit_h2 t;
    struct kit_h2_call call;
    struct tc_h2_opts opts;
    struct tc_h2_request gzip = kit_h2_request;
    (void)state;
    gzip.encoding = TC_H2_GZIP;
    tc_h2_opts_init(&opts, false);
    opts.no_bdp = true;
    opts.limits.max_send_message_bytes = BYTES / 2;
    kit_h2_init(&t, &opts, 0);
    kit_h2_call_init(&call, &t);
    assert_int_equal(kit_h2_open(&call, &gzip), 0);
    kit_h2_run(&t);
    size_t before = live;
    assert_int_equal(tc_h2_stream_send(call.stream, tc_slice_of(noise, BYTES), true, true), TORC_ELIMIT);
    assert_int_equal(live, before);
    assert_in_range(tc_h2_stream_rejected_bytes(call.stream), BYTES, BYTES + 1000);
    kit_h2_call_fini(&call);
    kit_h2_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_keeps_no_message),
        cmocka_unit_test(client_keeps_no_message),
        cmocka_unit_test(client_keeps_no_refused_message),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
