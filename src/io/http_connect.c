/* HTTP CONNECT: asks the proxy at the other end of a byte stream for a tunnel.
 *
 *   write   the request; what the socket does not take now waits for WRITABLE
 *   read    the head of the answer, never a byte beyond its empty line, since later bytes belong to the tunnel: each
 *           read asks for at most the bytes that the "\r\n\r\n" still lacks
 *   end     2xx hands the byte stream on; every other outcome closes it and fails with a text that names proxy, target
 *           and reason
 *
 * The request owns the byte stream until it hands the byte stream on. connect_succeed and connect_fail free the
 * request. After connect_read it may be gone; connect_write returns false if it is. Loop thread only. */
#include "io/http_connect.h"
#include "base/buf.h"
#include "base/headers.h"
#include "base/mem.h"

#define END "\r\n\r\n"
#define END_LEN 4
#define MAX_REASON 64 /* bytes of a reason phrase in an error's text; a longer phrase is left out */

struct tc_http_connect {
    struct tc_bytestream *bs;
    struct tc_rstr *target;
    struct tc_buf out;    /* the rest of the request, not yet written */
    struct tc_buf in;     /* the head of the answer, as far as it has come */
    struct tc_task begin; /* writes the request, from the loop */
    tc_http_connect_fn fn;
    void *arg;
};

int tc_http_parse_status(struct tc_slice head, int *status, struct tc_slice *reason)
{
    /* "HTTP/1.1 200 OK"; the reason and the space before it may be missing. */
    static const char name[] = "HTTP/1.";
    const char *end = head.len ? memchr(head.data, '\r', head.len) : NULL;
    struct tc_slice line = tc_slice_of(head.data, end ? (size_t)(end - head.data) : head.len);
    if (!tc_slice_starts(line, tc_slice_str(name)) || line.len < 12 || (line.data[7] != '0' && line.data[7] != '1') ||
        line.data[8] != ' ' || (line.len > 12 && line.data[12] != ' '))
        return TORC_EPARSE;
    int code = 0;
    for (size_t i = 9; i < 12; i++) {
        if (line.data[i] < '0' || line.data[i] > '9')
            return TORC_EPARSE;
        code = code * 10 + (line.data[i] - '0');
    }
    if (code < 100)
        return TORC_EPARSE;
    *status = code;
    *reason = line.len > 13 ? tc_slice_of(line.data + 13, line.len - 13) : tc_slice_of(NULL, 0);
    return 0;
}

static void connect_free(struct tc_http_connect *c)
{
    tc_task_cancel(&c->begin);
    tc_rstr_unref(c->target);
    tc_buf_fini(&c->out);
    tc_buf_fini(&c->in);
    tc_free(c);
}

void tc_http_connect_cancel(struct tc_http_connect *c)
{
    c->bs->ops->close(c->bs);
    connect_free(c);
}

/* `reason` may lie in the byte stream, so the text is made before the stream is closed. */
static void connect_fail(struct tc_http_connect *c, const char *reason)
{
    tc_http_connect_fn fn = c->fn;
    void *arg = c->arg;
    char *proxy = tc_addr_text(&c->bs->peer);
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT,
                                            "the proxy %s did not connect to %s: %s", proxy, c->target->data, reason);
    tc_free(proxy);
    tc_http_connect_cancel(c);
    fn(arg, NULL, &error);
    tc_status_fini(&error);
}

static void connect_succeed(struct tc_http_connect *c)
{
    tc_http_connect_fn fn = c->fn;
    void *arg = c->arg;
    struct tc_bytestream *bs = c->bs;
    tc_bytestream_set_handler(bs, NULL, NULL);
    connect_free(c);
    fn(arg, bs, NULL);
}

static void connect_answered(struct tc_http_connect *c)
{
    int status;
    struct tc_slice reason;
    if (tc_http_parse_status(tc_buf_slice(&c->in), &status, &reason) != 0) {
        connect_fail(c, "its answer is not HTTP/1");
        return;
    }
    if (status >= 200 && status < 300) {
        connect_succeed(c);
        return;
    }
    bool tellable = reason.len && reason.len <= MAX_REASON && tc_header_value_valid(reason);
    char *text = tc_asprintf("HTTP status %d%s%.*s", status, tellable ? " " : "", tellable ? (int)reason.len : 0,
                             tellable ? reason.data : "");
    connect_fail(c, text);
    tc_free(text);
}

/* Returns how many bytes of END the answer ends with, 0 to END_LEN. */
static size_t end_matched(const struct tc_buf *in)
{
    for (size_t n = TC_MIN(in->len, (size_t)END_LEN); n > 0; n--)
        if (memcmp(in->data + in->len - n, END, n) == 0)
            return n;
    return 0;
}

static bool looks_like_http(const struct tc_buf *in)
{
    static const char name[] = "HTTP/1.";
    return memcmp(in->data, name, TC_MIN(in->len, sizeof(name) - 1)) == 0;
}

static void connect_read(struct tc_http_connect *c)
{
    for (;;) {
        size_t want = END_LEN - end_matched(&c->in);
        ssize_t n = c->bs->ops->read(c->bs, tc_buf_reserve(&c->in, want), want);
        if (n == TORC_EAGAIN)
            return;
        if (n == 0) {
            connect_fail(c, "it closed the connection");
            return;
        }
        if (n < 0) {
            connect_fail(c, tc_status_text(&c->bs->error));
            return;
        }
        c->in.len += (size_t)n;
        if (!looks_like_http(&c->in)) {
            connect_fail(c, "its answer is not HTTP/1");
            return;
        }
        if (c->in.len > TC_HTTP_CONNECT_MAX_HEAD_BYTES) {
            connect_fail(c, "the head of its answer has more than 8192 bytes");
            return;
        }
        if (end_matched(&c->in) == END_LEN) {
            connect_answered(c);
            return;
        }
    }
}

/* Writes what the socket takes now. Returns false if writing failed: *c is freed. */
static bool connect_write(struct tc_http_connect *c)
{
    while (c->out.len) {
        struct iovec iov = {.iov_base = c->out.data, .iov_len = c->out.len};
        ssize_t n = c->bs->ops->writev(c->bs, &iov, 1);
        if (n == TORC_EAGAIN)
            return true;
        if (n < 0) {
            connect_fail(c, tc_status_text(&c->bs->error));
            return false;
        }
        tc_buf_consume(&c->out, (size_t)n);
    }
    return true;
}

static void connect_on_event(void *arg, unsigned events)
{
    struct tc_http_connect *c = arg;
    if ((events & TC_BS_WRITABLE) && !connect_write(c))
        return;
    if (events & TC_BS_READABLE)
        connect_read(c);
}

static void connect_on_begin(struct tc_task *task)
{
    connect_write(TC_CONTAINER_OF(task, struct tc_http_connect, begin));
}

struct tc_http_connect *tc_http_connect_start(struct tc_loop *loop, struct tc_bytestream *bs, struct tc_slice target,
                                              struct tc_slice authorization, tc_http_connect_fn fn, void *arg)
{
    struct tc_http_connect *c = TC_NEW(struct tc_http_connect);
    c->bs = bs;
    c->target = tc_rstr_new(target.data, target.len);
    c->fn = fn;
    c->arg = arg;
    tc_buf_printf(&c->out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", c->target->data, c->target->data);
    if (authorization.len)
        tc_buf_printf(&c->out, "Proxy-Authorization: %.*s\r\n", (int)authorization.len, authorization.data);
    tc_buf_append_str(&c->out, "\r\n");
    tc_bytestream_set_handler(bs, connect_on_event, c);
    tc_task_init(&c->begin, connect_on_begin);
    tc_loop_defer(loop, &c->begin);
    return c;
}
