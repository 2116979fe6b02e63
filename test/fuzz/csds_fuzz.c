/* Requests to the client status discovery service (CSDS), by both of its methods, over a connection in memory. The
 * input: calls, each a byte for the method and the number of messages, then the messages.
 *
 * An answered request has no node_matchers, and its answer is without contents exactly if the request said so: a
 * second parser reads the fields. Any other request ends its call with INVALID_ARGUMENT. No request ends the
 * connection. The answer is one byte that stands for a ClientStatusResponse. Client and server share one manual loop,
 * which a run owns. */
#include "base/mem.h"
#include "base/vec.h"
#include "controlplane/csds.h"
#include "fuzz.h"
#include "http2/client_stream.h"
#include "server/csds_service.h"
#include "support/fakes/pipe.h"

#define SERVICE "/envoy.service.status.v3.ClientStatusDiscoveryService/"

struct run {
    struct tc_fuzz_input in;
    struct tc_csds_service service;
    struct tc_loop *loop;
    struct tc_h2_conn *conn;
    struct tc_h2_stream *stream; /* of the call under way */
    bool done;
    int code;
    size_t answers;
    TC_VEC(bool) made; /* for each answer made for the call: whether it is without contents */
};

static void make(struct tc_csds_service *service, bool without_contents)
{
    struct run *r = TC_CONTAINER_OF(service, struct run, service);
    *tc_vec_push(&r->made) = without_contents;
    tc_csds_service_made(service, tc_rstr_str("x"), 1, 0);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct run *r = arg;
    TC_FUZZ_CHECK(message->len == 1 && !r->done);
    r->answers++;
    tc_rstr_unref(message);
    tc_h2_stream_read(r->stream);
}

static void on_done(void *arg, const struct tc_h2_outcome *outcome)
{
    struct run *r = arg;
    TC_FUZZ_CHECK(!r->done && outcome->from_server);
    r->done = true;
    r->code = outcome->status.code;
    TC_FUZZ_CHECK(r->code == TORC_STATUS_OK || tc_status_text(&outcome->status)[0]);
}

static const struct tc_h2_client_events stream_events = {.stream = {.on_message = on_message}, .on_done = on_done};

static void on_closed(void *arg, const struct tc_status *why)
{
    (void)arg;
    TC_FUZZ_CHECK(tc_status_ok(why));
}

static uint64_t varint(struct tc_fuzz_input *in)
{
    uint64_t v = 0, byte = 0x80;
    for (unsigned shift = 0; byte & 0x80 && shift < 64; shift += 7) {
        byte = tc_fuzz_u8(in);
        v |= (byte & 0x7f) << shift;
    }
    return v;
}

/* Checks that an answered request has no node_matchers, and excludes contents exactly if `without_contents`. */
static void check_answered(struct tc_slice bytes, bool without_contents)
{
    enum { NODE_MATCHERS = 1, EXCLUDE_CONTENTS = 3 };
    struct tc_fuzz_input in = {(const uint8_t *)bytes.data, bytes.len};
    bool exclude = false;
    unsigned groups = 0;
    while (in.len) {
        uint64_t tag = varint(&in), value = 0;
        switch (tag & 7) {
        case 0:
            value = varint(&in);
            if (tag >> 3 == EXCLUDE_CONTENTS && !groups)
                exclude = value != 0;
            break;
        case 2:
            TC_FUZZ_CHECK(tag >> 3 != NODE_MATCHERS || groups);
            value = varint(&in);
            TC_FUZZ_CHECK(value <= in.len);
            tc_fuzz_take(&in, (size_t)value);
            break;
        case 3:
            groups++;
            break;
        case 4:
            groups--;
            break;
        default:
            tc_fuzz_take(&in, (tag & 7) == 1 ? 8 : 4);
            break;
        }
    }
    TC_FUZZ_CHECK(groups == 0 && exclude == without_contents);
}

/* Makes one call, and asserts that it has ended. Bit 0 of `how` chooses the method, bits 1 and 2 the number of messages
 * of a stream. */
static void call(struct run *r, uint8_t how)
{
    struct tc_h2_request request = {
        .path = tc_slice_str(how & 1 ? SERVICE "StreamClientStatus" : SERVICE "FetchClientStatus"),
        .authority = tc_slice_str("a"),
        .user_agent = tc_slice_str("torc")};
    size_t n = how & 1 ? how >> 1 & 3 : 1;
    struct tc_arena arena;
    int error = 0;
    tc_arena_init(&arena, 0, 0);
    r->done = false;
    r->answers = r->made.len = 0;
    r->stream = tc_h2_client_stream_open(r->conn, &request, &arena, &stream_events, r, &error);
    TC_FUZZ_CHECK(r->stream);
    tc_h2_stream_read(r->stream);
    for (size_t i = 0; i < n && !r->done; i++) {
        struct tc_slice bytes = tc_fuzz_short(&r->in);
        (void)tc_h2_stream_send(r->stream, bytes, false, i + 1 == n);
        tc_loop_drain(r->loop);
        TC_FUZZ_CHECK(r->made.len <= i + 1);
        if (r->made.len == i + 1)
            check_answered(bytes, r->made.data[i]);
        else
            TC_FUZZ_CHECK(r->done && r->code == TORC_STATUS_INVALID_ARGUMENT);
    }
    if (!r->done && n == 0) {
        (void)tc_h2_client_stream_send_end(r->stream);
        tc_loop_drain(r->loop);
    }
    TC_FUZZ_CHECK(r->done && r->answers == r->made.len);
    TC_FUZZ_CHECK(r->code == (r->answers == n ? TORC_STATUS_OK : TORC_STATUS_INVALID_ARGUMENT));
    tc_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tc_h2_conn_events conn_events = {.on_closed = on_closed};
    struct run *r = TC_NEW(struct run);
    struct tc_server_opts server_opts;
    struct tc_h2_opts opts;
    r->in = (struct tc_fuzz_input){data, size};
    r->service.make = make;
    r->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    struct fake_pipe *pipe = fake_pipe_new(r->loop);
    tc_server_opts_init(&server_opts);
    struct tc_server *server = tc_server_new(r->loop, &server_opts);
    tc_csds_register(server, &r->service);
    tc_server_accept(server, fake_pipe_end(pipe, 1));
    tc_h2_opts_init(&opts, false);
    r->conn = tc_h2_conn_new(r->loop, fake_pipe_end(pipe, 0), &opts, &conn_events, r);
    tc_loop_drain(r->loop);
    while (r->in.len)
        call(r, tc_fuzz_u8(&r->in));
    tc_h2_conn_close(r->conn);
    tc_loop_drain(r->loop);
    tc_server_free(server);
    tc_csds_service_end(&r->service);
    tc_loop_drain(r->loop);
    tc_vec_fini(&r->made);
    fake_pipe_free(pipe);
    tc_loop_free(r->loop);
    tc_free(r);
    return 0;
}
