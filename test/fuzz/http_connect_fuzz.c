/* A proxy's answer to CONNECT. The input: a byte n, then the answer, which comes once as a whole and once in pieces of
 * n + 1 bytes. The outcome is the same, and no byte behind the answer's head is consumed. */
#include "base/mem.h"
#include "fuzz.h"
#include "io/http_connect.h"
#include "support/fakes/pipe.h"

struct outcome {
    int called;               /* how often on_done came */
    struct tc_bytestream *bs; /* the tunnel, owned; NULL: none */
    struct tc_status error;   /* a reference */
};

static void on_done(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct outcome *o = arg;
    o->called++;
    o->bs = bs;
    if (error)
        o->error = tc_status_ref(error);
}

/* Returns the length of the head, with the empty line that ends it, or SIZE_MAX if no empty line came. */
static size_t head_of(struct tc_slice s)
{
    ptrdiff_t at = tc_slice_find(s, tc_slice_of("\r\n\r\n", 4));
    return at < 0 ? SIZE_MAX : (size_t)at + 4;
}

/* Plays the answer in pieces of `piece` bytes. Returns the status of the outcome, which the caller ends. */
static struct tc_status play(struct tc_slice answer, size_t piece)
{
    struct tc_loop *loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    struct fake_pipe *pipe = fake_pipe_new(loop);
    struct outcome o = {0};
    tc_http_connect_start(loop, fake_pipe_end(pipe, 0), tc_slice_str("a.test:1"), tc_slice_str(""), on_done, &o);
    for (size_t at = 0; at < answer.len && !o.called; at += piece) {
        fake_pipe_put(pipe, 1, answer.data + at, TC_MIN(piece, answer.len - at));
        tc_loop_drain(loop);
    }
    fake_pipe_finish(pipe, 1);
    tc_loop_drain(loop);
    TC_FUZZ_CHECK(o.called == 1);
    TC_FUZZ_CHECK((o.bs != NULL) == tc_status_ok(&o.error));
    if (o.bs) {
        size_t head = head_of(answer);
        struct tc_slice left = fake_pipe_unread(pipe, 0);
        TC_FUZZ_CHECK(head <= answer.len && head <= TC_HTTP_CONNECT_MAX_HEAD_BYTES);
        TC_FUZZ_CHECK(left.len <= answer.len - head && memcmp(left.data, answer.data + head, left.len) == 0);
        TC_FUZZ_CHECK(piece < answer.len || left.len == answer.len - head);
        o.bs->ops->close(o.bs);
    }
    tc_loop_drain(loop);
    fake_pipe_free(pipe);
    tc_loop_free(loop);
    return o.error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    size_t piece = (size_t)tc_fuzz_u8(&in) + 1;
    struct tc_slice answer = tc_slice_of(in.data, in.len), reason;
    int status = 0;
    struct tc_status whole = play(answer, answer.len + 1), pieces = play(answer, piece);
    TC_FUZZ_CHECK(tc_status_eq(&whole, &pieces));
    bool parsed = tc_http_parse_status(answer, &status, &reason) == 0;
    TC_FUZZ_CHECK(!parsed || (status >= 100 && status <= 999));
    TC_FUZZ_CHECK(!tc_status_ok(&whole) || (parsed && status / 100 == 2));
    tc_status_fini(&whole);
    tc_status_fini(&pieces);
    return 0;
}
