/* HTTP CONNECT over fakes/pipe, on a manual loop: the request, its outcomes and its end by cancel. The request has end
 * 0 of the pipe. End 1 has no owner: the test plays the proxy there. The answers of expect_tunnel and expect_failure
 * come whole, and then one byte at a time. `start` begins each scene, and `finish` ends it: `finish` cancels a request
 * that still runs, closes the tunnel if there is one, and asserts that the byte stream was closed. test_proxy_hop needs
 * no loop: it is about addresses with a proxy hop. */
#include "base/mem.h"
#include "io/http_connect.h"
#include "support/cmocka.h"
#include "support/fakes/pipe.h"

/* A request for a tunnel to backend.test:443, and its outcome. */
struct tunnel {
    struct tc_loop *loop;
    struct fake_pipe *pipe;
    struct tc_http_connect *connect; /* NULL once on_done was called */
    int called;                      /* calls of on_done */
    struct tc_bytestream *bs;        /* the tunnel, owned; NULL: none */
    struct tc_status error;          /* owned; without a failure all zero */
};

static void on_done(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tunnel *t = arg;
    t->called++;
    t->bs = bs;
    t->connect = NULL;
    if (error)
        t->error = tc_status_ref(error);
}

/* Fills *t, whose loop and pipe `finish` frees, and starts the request. `authorization` may be empty. */
static void start(struct tunnel *t, const char *authorization)
{
    *t = (struct tunnel){.loop = tc_loop_new(&(struct tc_loop_opts){.manual = true})};
    t->pipe = fake_pipe_new(t->loop);
    tc_addr_parse(&fake_pipe_end(t->pipe, 0)->peer, tc_slice_str("10.0.0.9:3128"));
    t->connect = tc_http_connect_start(t->loop, fake_pipe_end(t->pipe, 0), tc_slice_str("backend.test:443"),
                                       tc_slice_str(authorization), on_done, t);
    assert_int_equal(t->called, 0);
}

static void finish(struct tunnel *t)
{
    tc_loop_drain(t->loop);
    if (t->connect)
        tc_http_connect_cancel(t->connect);
    if (t->bs)
        t->bs->ops->close(t->bs);
    tc_loop_drain(t->loop);
    assert_true(fake_pipe_closed(t->pipe, 0));
    tc_status_fini(&t->error);
    fake_pipe_free(t->pipe);
    tc_loop_free(t->loop);
}

/* Asserts the whole text that the request has written, and leaves it unread. */
static void expect_request(struct tunnel *t, const char *wanted)
{
    tc_loop_drain(t->loop);
    struct tc_slice seen = fake_pipe_unread(t->pipe, 1);
    assert_int_equal(seen.len, strlen(wanted));
    assert_memory_equal(seen.data, wanted, seen.len);
}

/* Sends `answer` from the proxy; with `slowly` one byte at a time. */
static void put(struct tunnel *t, const char *answer, bool slowly)
{
    size_t len = strlen(answer);
    for (size_t i = 0; i < len; i += slowly ? 1 : len) {
        fake_pipe_put(t->pipe, 1, answer + i, slowly ? 1 : len);
        if (slowly)
            tc_loop_drain(t->loop);
    }
    tc_loop_drain(t->loop);
}

static void expect_tunnel(const char *answer)
{
    for (int slowly = 0; slowly < 2; slowly++) {
        struct tunnel t;
        char rest[16];
        start(&t, "");
        /* The target's first bytes come right after the proxy's answer: the request reads none of them. */
        struct tc_buf both = {0};
        tc_buf_printf(&both, "%s\r\nSETTINGS", answer);
        put(&t, tc_buf_cstr(&both), slowly);
        tc_buf_fini(&both);
        assert_int_equal(t.called, 1);
        assert_non_null(t.bs);
        assert_int_equal(t.bs->ops->read(t.bs, rest, sizeof(rest)), 10);
        assert_memory_equal(rest, "\r\nSETTINGS", 10);
        finish(&t);
    }
}

static void expect_failure(const char *answer, const char *reason)
{
    for (int slowly = 0; slowly < 2; slowly++) {
        struct tunnel t;
        start(&t, "");
        put(&t, answer, slowly);
        fake_pipe_finish(t.pipe, 1);
        tc_loop_drain(t.loop);
        assert_int_equal(t.called, 1);
        assert_null(t.bs);
        assert_int_equal(t.error.code, TORC_STATUS_UNAVAILABLE);
        char *text = tc_asprintf("the proxy 10.0.0.9:3128 did not connect to backend.test:443: %s", reason);
        assert_string_equal(tc_status_text(&t.error), text);
        tc_free(text);
        finish(&t);
    }
}

static void test_request(void **state)
{
    (void)state;
    struct tunnel t;
    start(&t, "Basic dTpw");
    expect_request(&t, "CONNECT backend.test:443 HTTP/1.1\r\nHost: backend.test:443\r\n"
                       "Proxy-Authorization: Basic dTpw\r\n\r\n");
    finish(&t);
    start(&t, "");
    fake_pipe_set_write_chunk(t.pipe, 1);
    fake_pipe_set_capacity(t.pipe, 20);
    struct tc_buf seen = {0};
    for (int i = 0; i < 100; i++) {
        tc_loop_drain(t.loop);
        struct tc_slice part = fake_pipe_unread(t.pipe, 1);
        tc_buf_append_slice(&seen, part);
        fake_pipe_take(t.pipe, 1, part.len);
    }
    assert_string_equal(tc_buf_cstr(&seen), "CONNECT backend.test:443 HTTP/1.1\r\nHost: backend.test:443\r\n\r\n");
    tc_buf_fini(&seen);
    finish(&t);
}

static void test_tunnels(void **state)
{
    (void)state;
    expect_tunnel("HTTP/1.1 200 Connection established\r\n\r\n");
    expect_tunnel("HTTP/1.0 200\r\n\r\n");
    expect_tunnel("HTTP/1.1 200 \r\nVia: 1.1 p\r\nX: \r\r\n\r\n");
    expect_tunnel("HTTP/1.1 204 No Content\r\nProxy-Agent: test\r\n\r\n");
}

static void test_refusals(void **state)
{
    (void)state;
    expect_failure("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "HTTP status 403 Forbidden");
    expect_failure("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
                   "HTTP status 407 Proxy Authentication Required");
    expect_failure("HTTP/1.1 502\r\n\r\n", "HTTP status 502");
    expect_failure("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP status 100 Continue");
    /* A reason with control characters is left out. */
    expect_failure("HTTP/1.1 500 a\x1b[2Jb\r\n\r\n", "HTTP status 500");
    expect_failure("", "it closed the connection");
    expect_failure("HTTP/1.1 200 OK\r\n\r", "it closed the connection");
    expect_failure("SSH-2.0-x\r\n", "its answer is not HTTP/1");
    expect_failure("HTTP/2 200\r\n\r\n", "its answer is not HTTP/1");
    expect_failure("HTTP/1.2 200\r\n\r\n", "its answer is not HTTP/1");
    expect_failure("HTTP/1.1 2000\r\n\r\n", "its answer is not HTTP/1");
    expect_failure("HTTP/1.1 20\r\n\r\n", "its answer is not HTTP/1");
    expect_failure("HTTP/1.1  200\r\n\r\n", "its answer is not HTTP/1");
    expect_failure("HTTP/1.1 099\r\n\r\n", "its answer is not HTTP/1");
    expect_failure("HTTP/1.1\r\n\r\n", "its answer is not HTTP/1");
}

/* The limit is for the whole head, with the empty line at its end. */
static void test_limit_to_the_byte(void **state)
{
    (void)state;
    static char head[8192 + 2];
    const char begin[] = "HTTP/1.1 200 OK\r\nx: ", end[] = "\r\n\r\n";
    memset(head, 'x', sizeof(head));
    memcpy(head, begin, strlen(begin));
    memcpy(head + 8192 - strlen(end), end, strlen(end) + 1);
    expect_tunnel(head);
    memset(head + 8192 - strlen(end), 'x', strlen(end));
    memcpy(head + 8193 - strlen(end), end, strlen(end) + 1);
    expect_failure(head, "the head of its answer has more than 8192 bytes");
}

static void test_limit_and_errors(void **state)
{
    (void)state;
    struct tunnel t;
    start(&t, "");
    put(&t, "HTTP/1.1 200 OK\r\n", false);
    char line[100];
    memset(line, 'x', sizeof(line));
    for (int i = 0; i < 1000 && !t.called; i++) {
        fake_pipe_put(t.pipe, 1, line, sizeof(line));
        tc_loop_drain(t.loop);
    }
    assert_int_equal(t.called, 1);
    assert_non_null(strstr(tc_status_text(&t.error), "the head of its answer has more than 8192 bytes"));
    finish(&t);

    start(&t, "");
    tc_loop_drain(t.loop);
    fake_pipe_fail(t.pipe, 0, TORC_ECLOSED, "connection reset", false);
    tc_loop_drain(t.loop);
    assert_int_equal(t.called, 1);
    assert_non_null(strstr(tc_status_text(&t.error), "connection reset"));
    finish(&t);

    /* `finish` cancels while the answer is awaited: before its first byte, then after a part of it. */
    start(&t, "");
    finish(&t);
    assert_int_equal(t.called, 0);
    start(&t, "");
    put(&t, "HTTP/1.1 2", false);
    finish(&t);
    assert_int_equal(t.called, 0);
}

static void test_proxy_hop(void **state)
{
    (void)state;
    struct tc_addr proxy = {0}, plain = {0};
    tc_addr_parse(&proxy, tc_slice_str("10.0.0.9:3128"));
    tc_addr_parse(&plain, tc_slice_str("10.0.0.1:80"));
    struct tc_rstr *target = tc_rstr_str("a:1"), *same = tc_rstr_str("a:1");
    struct tc_addr a = tc_addr_ref(&plain), b = tc_addr_ref(&plain), c = tc_addr_ref(&plain), d = tc_addr_ref(&plain);
    a.proxy_hop = tc_proxy_hop_new(&proxy, NULL, NULL);
    b.proxy_hop = tc_proxy_hop_new(&proxy, NULL, NULL);
    c.proxy_hop = tc_proxy_hop_new(NULL, target, NULL);
    d.proxy_hop = tc_proxy_hop_new(NULL, same, NULL);
    assert_true(tc_addr_eq(&a, &b));
    assert_true(tc_addr_eq(&c, &d));
    assert_false(tc_addr_eq(&a, &plain));
    assert_false(tc_addr_eq(&a, &c));
    assert_true(tc_addr_hash(&a) == tc_addr_hash(&b));
    assert_true(tc_addr_eq(tc_addr_to_dial(&a), &proxy));
    assert_ptr_equal(tc_addr_to_dial(&c), &c);
    assert_ptr_equal(tc_addr_to_dial(&plain), &plain);
    struct tc_addr copy = tc_addr_ref(&a);
    assert_true(tc_addr_eq(&copy, &a));
    /* The proxy is not part of the address's text, so the ring hash does not depend on it. */
    char *text = tc_addr_text(&a);
    assert_string_equal(text, "10.0.0.1:80");
    tc_free(text);
    struct tc_addr *all[] = {&a, &b, &c, &d, &copy, &plain, &proxy};
    for (size_t i = 0; i < TC_ARRAY_LEN(all); i++)
        tc_addr_fini(all[i]);
    tc_rstr_unref(target);
    tc_rstr_unref(same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),          cmocka_unit_test(test_tunnels),
        cmocka_unit_test(test_refusals),         cmocka_unit_test(test_limit_to_the_byte),
        cmocka_unit_test(test_limit_and_errors), cmocka_unit_test(test_proxy_hop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
