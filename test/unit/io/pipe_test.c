/* fakes/pipe: the byte streams in memory that other tests use, here on a manual loop. Each end has a reader, whose
 * handler keeps the bytes that arrive. */
#include "support/fakes/pipe.h"

#include "support/cmocka.h"

struct reader {
    struct tc_bytestream *bs;
    struct tc_buf in;
    size_t calls, writable; /* events, and those with WRITABLE */
    ssize_t last;           /* what the last read returned */
};

static void on_event(void *arg, unsigned events)
{
    struct reader *r = arg;
    char buf[64];
    r->calls++;
    r->writable += (events & TC_BS_WRITABLE) != 0;
    if (!(events & TC_BS_READABLE))
        return;
    while ((r->last = r->bs->ops->read(r->bs, buf, sizeof(buf))) > 0)
        tc_buf_append(&r->in, buf, (size_t)r->last);
    if (r->last == 0)
        r->bs->ops->set_reading(r->bs, false);
}

struct fixture {
    struct tc_loop *loop;
    struct fake_pipe *pipe;
    struct reader ends[2];
};

static struct fixture fx;

static int setup(void **state)
{
    (void)state;
    fx = (struct fixture){.loop = tc_loop_new(&(struct tc_loop_opts){.manual = true})};
    fx.pipe = fake_pipe_new(fx.loop);
    for (int i = 0; i < 2; i++) {
        fx.ends[i].bs = fake_pipe_end(fx.pipe, i);
        tc_bytestream_set_handler(fx.ends[i].bs, on_event, &fx.ends[i]);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        tc_buf_fini(&fx.ends[i].in);
    fake_pipe_free(fx.pipe);
    tc_loop_free(fx.loop);
    return 0;
}

static ssize_t write_text(int end, const char *text)
{
    struct iovec iov = {(void *)(uintptr_t)text, strlen(text)};
    return fx.ends[end].bs->ops->writev(fx.ends[end].bs, &iov, 1);
}

static void chunks_come_one_by_one(void **state)
{
    (void)state;
    fake_pipe_set_read_chunk(fx.pipe, 2);
    fake_pipe_set_write_chunk(fx.pipe, 5);
    assert_int_equal(write_text(0, "hello world"), 5);
    assert_int_equal(fx.ends[1].calls, 0); /* no event comes inside writev */
    tc_loop_drain(fx.loop);
    assert_memory_equal(fx.ends[1].in.data, "hello", 5);
    assert_true(fx.ends[1].calls >= 3);
    assert_int_equal(fx.ends[1].last, TORC_EAGAIN);
    assert_int_equal(fake_pipe_writes(fx.pipe, 0), 1);
}

static void a_full_pipe_blocks_its_writer(void **state)
{
    (void)state;
    fx.ends[1].bs->ops->set_reading(fx.ends[1].bs, false);
    fake_pipe_set_capacity(fx.pipe, 3);
    assert_int_equal(write_text(0, "abcdef"), 3);
    assert_int_equal(write_text(0, "def"), TORC_EAGAIN);
    tc_loop_drain(fx.loop);
    assert_int_equal(fx.ends[0].writable, 0);
    fx.ends[1].bs->ops->set_reading(fx.ends[1].bs, true);
    tc_loop_drain(fx.loop);
    assert_int_equal(fx.ends[0].writable, 1);
    assert_int_equal(fx.ends[1].in.len, 3);
}

static void the_end_comes_after_the_data(void **state)
{
    (void)state;
    fake_pipe_put(fx.pipe, 0, "last", 4);
    fake_pipe_finish(fx.pipe, 0);
    tc_loop_drain(fx.loop);
    assert_int_equal(fx.ends[1].in.len, 4);
    assert_int_equal(fx.ends[1].last, 0);
}

static void errors_come_at_once_or_after_the_data(void **state)
{
    (void)state;
    fake_pipe_put(fx.pipe, 0, "data", 4);
    fake_pipe_fail(fx.pipe, 1, TORC_EIO, "broken", true);
    tc_loop_drain(fx.loop);
    assert_int_equal(fx.ends[1].in.len, 4);
    assert_int_equal(fx.ends[1].last, TORC_EIO);
    assert_string_equal(tc_status_text(&fx.ends[1].bs->error), "broken");
    fake_pipe_put(fx.pipe, 1, "data", 4);
    fake_pipe_fail(fx.pipe, 0, TORC_EIO, "cut", false);
    tc_loop_drain(fx.loop);
    assert_int_equal(fx.ends[0].in.len, 0);
    assert_int_equal(write_text(0, "x"), TORC_EIO);
}

static void closing_is_seen_by_the_other_end(void **state)
{
    (void)state;
    fx.ends[0].bs->ops->close(fx.ends[0].bs);
    assert_true(fake_pipe_closed(fx.pipe, 0));
    tc_loop_drain(fx.loop);
    assert_int_equal(fx.ends[1].last, 0);
    assert_int_equal(write_text(1, "x"), TORC_ECLOSED);
    assert_int_equal(fx.ends[0].calls, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(chunks_come_one_by_one),           T(a_full_pipe_blocks_its_writer),
        T(the_end_comes_after_the_data),     T(errors_come_at_once_or_after_the_data),
        T(closing_is_seen_by_the_other_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
