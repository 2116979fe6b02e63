/* Clients of the embedded control plane that ask and do not read, or do not answer. Also the numbers of streams.
 *
 * The control plane serves on a manual loop (kits/server_pipe.h); the test is the client, frame by frame (fakes/h2.h),
 * on one connection. The client's windows have 65,535 bytes until open_windows. A response of 100 kB does not fit into
 * them: the server queues the response, and queued_bytes counts all of it until it is sent. The functions of this file
 * that send or put run the loop until nothing is due. The control plane is freed after the server. One thread. */
#include "controlplane/control_plane.h"

#include "base/mem.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"
#include "proto/pack.h"
#include "support/cmocka.h"
#include "support/kits/server_pipe.h"

#define ADS "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
#define CLUSTER "type.googleapis.com/envoy.config.cluster.v3.Cluster"
#define REQUEST(method) KIT_SERVER_PIPE_REQUEST(ADS method)
#define TEXT_BYTES 100000

struct fixture {
    struct kit_server_pipe k;
    struct tc_control_plane *cp;
    unsigned requests;
    uint64_t stream; /* the number of the last request's stream */
};

static void on_request(void *arg, const struct tc_ads_request *request)
{
    struct fixture *f = arg;
    f->requests++;
    f->stream = request->stream;
}

/* Puts a cluster of some 100 kB, whose content differs with `version`, which is not negative. */
static void put(struct fixture *f, const char *name, int version)
{
    char *why = NULL,
         *text = tc_asprintf("{\"@type\": " CLUSTER ", name: %s, metadata: {filter_metadata: {a: {t: \"%0*d\"}}}}",
                             name, TEXT_BYTES, version);
    if (tc_control_plane_put(f->cp, text, &why) != 0)
        fail_msg("%s", why);
    tc_free(text);
    tc_loop_drain(f->k.loop);
}

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    kit_server_pipe_init(&f->k, NULL);
    f->cp = tc_control_plane_new(f->k.server);
    tc_control_plane_observe(f->cp, on_request, f);
    put(f, "a", 0);
    put(f, "b", 0);
    kit_server_pipe_connect(&f->k, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tc_server_free(f->k.server);
    f->k.server = NULL;
    tc_control_plane_free(f->cp);
    kit_server_pipe_fini(&f->k);
    tc_free(f);
    return 0;
}

/* Subscribes to the cluster `name`. `nonce`: of the response that the request answers; "": none. setup has put "a" and
 * "b": the response to a request for one of them has some 100 kB. */
static void ask_with(struct fixture *f, uint32_t h2_stream, const char *name, const char *nonce)
{
    Envoy__Service__Discovery__V3__DiscoveryRequest r = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_REQUEST__INIT;
    char *names[] = {(char *)(uintptr_t)name};
    struct tc_buf out = {0};
    r.type_url = (char *)(uintptr_t)CLUSTER;
    r.resource_names = names;
    r.n_resource_names = 1;
    r.response_nonce = (char *)(uintptr_t)nonce;
    tc_pack(&r.base, &out);
    fake_h2_message(f->k.peer, h2_stream, out.data, out.len, false);
    tc_buf_fini(&out);
    tc_loop_drain(f->k.loop);
}

static void ask_on(struct fixture *f, uint32_t h2_stream, const char *name)
{
    ask_with(f, h2_stream, name, "");
}

static void ask(struct fixture *f, const char *name)
{
    ask_on(f, 1, name);
}

/* Sends a request on the incremental stream 1. nonce "": the request subscribes to the cluster "a"; otherwise the
 * request answers the response with this nonce. */
static void ask_incrementally(struct fixture *f, const char *nonce)
{
    Envoy__Service__Discovery__V3__DeltaDiscoveryRequest r =
        ENVOY__SERVICE__DISCOVERY__V3__DELTA_DISCOVERY_REQUEST__INIT;
    char *names[] = {(char *)(uintptr_t) "a"};
    struct tc_buf out = {0};
    r.type_url = (char *)(uintptr_t)CLUSTER;
    r.resource_names_subscribe = names;
    r.n_resource_names_subscribe = *nonce ? 0 : 1;
    r.response_nonce = (char *)(uintptr_t)nonce;
    tc_pack(&r.base, &out);
    fake_h2_message(f->k.peer, 1, out.data, out.len, false);
    tc_buf_fini(&out);
    tc_loop_drain(f->k.loop);
}

static void open_windows(struct fixture *f)
{
    fake_h2_window(f->k.peer, 0, 100000000);
    fake_h2_window(f->k.peer, 1, 100000000);
    tc_loop_drain(f->k.loop);
}

static size_t queued_bytes(const struct fixture *f)
{
    struct tc_server_counts counts;
    tc_server_counts(f->k.server, &counts);
    return counts.queued_bytes;
}

static void requests_wait_for_the_reader(void **state)
{
    struct fixture *f = *state;
    fake_h2_headers(f->k.peer, 1, REQUEST("StreamAggregatedResources"), false);
    for (int i = 0; i < 20; i++)
        ask(f, i % 2 ? "a" : "b");
    assert_int_equal(f->requests, 1);
    assert_in_range(queued_bytes(f), TEXT_BYTES, TEXT_BYTES + 1000);
    open_windows(f);
    assert_int_equal(f->requests, 20);
    assert_int_equal(queued_bytes(f), 0);
}

/* Takes all frames that have come. Returns how many bytes of DATA were for stream 1. */
static size_t sent_bytes(struct fixture *f)
{
    size_t bytes = 0;
    for (const struct fake_h2_frame *frame; (frame = fake_h2_expect(f->k.peer, FAKE_H2_DATA, 1));)
        bytes += frame->len;
    return bytes;
}

/* Puts "a" twenty times while the client has not answered. Asserts that only the response to the client's request is
 * queued and sent. */
static void change_often(struct fixture *f)
{
    for (int i = 0; i < 20; i++)
        put(f, "a", i);
    assert_in_range(queued_bytes(f), 1, TEXT_BYTES + 1000);
    open_windows(f);
    assert_int_equal(queued_bytes(f), 0);
    assert_in_range(sent_bytes(f), TEXT_BYTES, TEXT_BYTES + 1000);
}

static void changes_wait_for_the_reader(void **state)
{
    struct fixture *f = *state;
    fake_h2_headers(f->k.peer, 1, REQUEST("StreamAggregatedResources"), false);
    ask(f, "a");
    change_often(f);
    ask_with(f, 1, "a", "1");
    assert_in_range(sent_bytes(f), TEXT_BYTES, TEXT_BYTES + 1000);
}

static void incremental_changes_wait_for_the_reader(void **state)
{
    struct fixture *f = *state;
    fake_h2_headers(f->k.peer, 1, REQUEST("DeltaAggregatedResources"), false);
    ask_incrementally(f, "");
    change_often(f);
    ask_incrementally(f, "1");
    assert_in_range(sent_bytes(f), TEXT_BYTES, TEXT_BYTES + 1000);
}

static void streams_are_numbered(void **state)
{
    struct fixture *f = *state;
    fake_h2_headers(f->k.peer, 1, REQUEST("StreamAggregatedResources"), false);
    ask_on(f, 1, "nobody has it");
    assert_int_equal(f->stream, 1);
    fake_h2_headers(f->k.peer, 3, REQUEST("StreamAggregatedResources"), false);
    ask_on(f, 3, "nobody has it");
    assert_int_equal(f->stream, 2);
    ask_on(f, 1, "nor that");
    assert_int_equal(f->stream, 1);
    assert_int_equal(f->requests, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_wait_for_the_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_wait_for_the_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(incremental_changes_wait_for_the_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(streams_are_numbered, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
