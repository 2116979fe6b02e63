#include "server/csds_service.h"

#include "base/mem.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "proto/unpack.h"

#define SERVICE "/envoy.service.status.v3.ClientStatusDiscoveryService/"

/* The response to a request's bytes. */
static struct tc_status answer(struct tc_csds_service *svc, struct tc_slice bytes, struct tc_buf *out)
{
    struct tc_arena arena;
    struct tc_faults faults;
    struct tc_status status = {0};
    ProtobufCMessage *message = NULL;
    tc_arena_init(&arena, 1024, tc_unpack_budget(bytes.len));
    tc_faults_init(&faults);
    int rc = tc_unpack(&envoy__service__status__v3__client_status_request__descriptor, bytes, NULL, &arena, &message,
                       &faults);
    const Envoy__Service__Status__V3__ClientStatusRequest *m = (void *)message;
    if (rc != 0)
        status =
            tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "malformed ClientStatusRequest: %s", tc_faults_text(&faults));
    else if (m->n_node_matchers)
        status = tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "node_matchers are not supported");
    else
        svc->make(svc, m->exclude_resource_contents, out);
    tc_faults_fini(&faults);
    tc_arena_fini(&arena);
    return status;
}

static void on_fetch(void *arg, struct tc_server_call *call, struct tc_rstr *request)
{
    struct tc_buf out = {0};
    struct tc_status status = answer(arg, tc_rstr_slice(request), &out);
    if (tc_status_ok(&status))
        tc_server_call_reply(call, tc_buf_slice(&out));
    else
        tc_server_call_finish(call, status.code, tc_status_text(&status), NULL);
    tc_status_fini(&status);
    tc_buf_fini(&out);
}

struct stream {
    struct tc_csds_service *svc;
    struct tc_server_call *call;
    bool ended;
};

static void on_message(void *arg, struct tc_rstr *message)
{
    struct stream *s = arg;
    struct tc_buf out = {0};
    struct tc_status status = answer(s->svc, tc_rstr_slice(message), &out);
    tc_rstr_unref(message);
    if (tc_status_ok(&status)) {
        tc_server_call_send(s->call, tc_buf_slice(&out));
    } else {
        s->ended = true;
        tc_server_call_finish(s->call, status.code, tc_status_text(&status), NULL);
    }
    tc_status_fini(&status);
    tc_buf_fini(&out);
}

/* The next request is read when the last answer has gone out, so that a client that does not read costs one answer. */
static void on_written(void *arg)
{
    struct stream *s = arg;
    if (!s->ended)
        tc_server_call_read(s->call);
}

static void on_half_close(void *arg)
{
    struct stream *s = arg;
    if (!s->ended)
        tc_server_call_finish(s->call, TORC_STATUS_OK, "", NULL);
    s->ended = true;
}

static const struct tc_server_call_events stream_events = {
    .on_message = on_message, .on_written = on_written, .on_half_close = on_half_close};

static void on_stream(void *arg, struct tc_server_call *call)
{
    struct stream *s = tc_arena_calloc(tc_server_call_arena(call), 1, sizeof(*s));
    s->svc = arg;
    s->call = call;
    tc_server_call_set_events(call, &stream_events, s);
    tc_server_call_read(call);
}

void tc_csds_service_register(struct tc_server *server, struct tc_csds_service *service)
{
    tc_server_add_unary(server, SERVICE "FetchClientStatus", on_fetch, service);
    tc_server_add_method(server, SERVICE "StreamClientStatus", on_stream, service);
}
