/* A process that reports its xDS resources while it makes calls (A40): by torc_csds_dump, by torc_csds_serve on an
 * address of its own, and by torc_csds_add on a server of the application. All tests but server_ends open a struct
 * world: its control plane (kits/mesh.h) has the listener svc and the cluster c with its endpoints, to which tests add;
 * w.ch is the application's channel; w.ask, whose runtime plays another process, asks the service of torc_csds_serve. A
 * struct added is a server with torc_csds_add, and the channel that asks it. Every runtime has a thread of its own,
 * except one that by_function drives. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"
#include "support/net/port.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"

#include "pb/envoy/service/status/v3/csds.pb-c.h"

#define SERVICE "/envoy.service.status.v3.ClientStatusDiscoveryService/"
#define WAIT_NS (60 * TC_NS_PER_S)

typedef Envoy__Service__Status__V3__ClientStatusResponse status_response;
typedef Envoy__Service__Status__V3__ClientConfig client_config;
typedef Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig generic_config;

struct world {
    struct kit_mesh *k;
    torc_channel *ch; /* to the listener svc; NULL until the test opens it */
    torc_csds *csds;
    torc_runtime *asker; /* plays another process */
    torc_channel *ask;   /* of `asker`, to `csds` */
};

static struct world open_world(void)
{
    struct world w = {.k = kit_mesh_new(1)};
    torc_error *error = NULL;
    kit_mesh_put_listener(w.k, "svc", "c", NULL);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0", NULL);
    kit_mesh_put_cluster(w.k, "c", NULL);
    w.csds = torc_csds_serve(kit_mesh_runtime(w.k), "127.0.0.1:0", &error);
    assert_null(error);
    assert_non_null(w.csds);
    assert_false(tc_slice_ends(tc_slice_str(torc_csds_address(w.csds)), tc_slice_str(":0")));
    w.asker = torc_runtime_new(NULL, NULL);
    w.ask = torc_channel_new(w.asker, torc_csds_address(w.csds), NULL, NULL);
    assert_non_null(w.ask);
    return w;
}

static void close_world(struct world *w)
{
    torc_channel_free(w->ask);
    torc_runtime_free(w->asker);
    torc_csds_free(w->csds);
    torc_channel_free(w->ch);
    kit_mesh_free(w->k);
}

/* --- asking --- */

static status_response *unpack(const void *bytes, size_t size)
{
    status_response *r = envoy__service__status__v3__client_status_response__unpack(NULL, size, bytes);
    assert_non_null(r);
    return r;
}

/* Frees a response with all its parts. scope_of and resource_of return such a part, or NULL. */
static void response_free(status_response *r)
{
    envoy__service__status__v3__client_status_response__free_unpacked(r, NULL);
}

static torc_result *fetch(struct world *w, const char *request, size_t n)
{
    torc_result *r = torc_unary(w->ask, SERVICE "FetchClientStatus", request, n, NULL);
    return r;
}

/* Asks once, and fails the test unless the status is OK. Returns the response, for response_free. */
static status_response *fetched(struct world *w)
{
    torc_result *r = fetch(w, "", 0);
    if (torc_result_code(r) != TORC_STATUS_OK)
        fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    status_response *m = unpack(torc_message_data(torc_result_response(r)), torc_message_size(torc_result_response(r)));
    torc_result_free(r);
    return m;
}

static const client_config *scope_of(const status_response *r, const char *scope)
{
    for (size_t i = 0; i < r->n_config; i++)
        if (strcmp(r->config[i]->client_scope, scope) == 0)
            return r->config[i];
    return NULL;
}

static const generic_config *resource_of(const status_response *r, const char *scope, const char *type,
                                         const char *name)
{
    const client_config *c = scope_of(r, scope);
    for (size_t i = 0; c && i < c->n_generic_xds_configs; i++) {
        const generic_config *g = c->generic_xds_configs[i];
        const char *short_type = strrchr(g->type_url, '.') + 1;
        if (strcmp(short_type, type) == 0 && strcmp(g->name, name) == 0)
            return g;
    }
    return NULL;
}

/* Asks until the resource has the state. Returns the last response, for response_free. Fails the test after 60 s. */
static status_response *wait_state(struct world *w, const char *scope, const char *type, const char *name, int state)
{
    uint64_t until = tc_system_clock.monotonic_ns(NULL) + WAIT_NS;
    for (;;) {
        status_response *r = fetched(w);
        const generic_config *g = resource_of(r, scope, type, name);
        if (g && (int)g->client_status == state)
            return r;
        if (tc_system_clock.monotonic_ns(NULL) > until)
            fail_msg("%s %s of %s is in state %d, not %d", type, name, scope, g ? (int)g->client_status : -1, state);
        response_free(r);
    }
}

#define STATE(x) ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__##x

/* --- tests --- */

static void resources_of_live_calls(void **state)
{
    (void)state;
    struct world w = open_world();
    status_response *r = fetched(&w);
    assert_int_equal(r->n_config, 0); /* no channel yet */
    response_free(r);
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    kit_mesh_calls(w.ch, NULL, 10);
    int64_t now_s = tc_system_clock.realtime_ns(NULL) / (int64_t)TC_NS_PER_S;
    r = fetched(&w);
    assert_int_equal(r->n_config, 1);
    const client_config *c = r->config[0];
    assert_string_equal(c->client_scope, "xds:///svc");
    assert_string_equal(c->node->id, "test-node");
    assert_true(strlen(c->node->user_agent_name) > 0);
    static const char *const types[][2] = {{"Listener", "svc"}, {"Cluster", "c"}, {"ClusterLoadAssignment", "c"}};
    assert_int_equal(c->n_generic_xds_configs, TC_ARRAY_LEN(types)); /* the route is in the listener */
    for (size_t i = 0; i < TC_ARRAY_LEN(types); i++) {
        const generic_config *g = resource_of(r, "xds:///svc", types[i][0], types[i][1]);
        assert_non_null(g);
        assert_int_equal(g->client_status, STATE(ACKED));
        assert_true(strlen(g->version_info) > 0);
        assert_string_equal(g->xds_config->type_url, g->type_url);
        assert_true(g->xds_config->value.len > 0);
        assert_in_range(g->last_updated->seconds, now_s - 60, now_s + 1);
        assert_null(g->error_state);
    }
    response_free(r);
    close_world(&w);
}

static void refused_and_absent(void **state)
{
    (void)state;
    struct world w = open_world();
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    kit_mesh_calls(w.ch, NULL, 1);
    status_response *r = wait_state(&w, "xds:///svc", "Cluster", "c", STATE(ACKED));
    const generic_config *g = resource_of(r, "xds:///svc", "Cluster", "c");
    char *version = tc_strdup(g->version_info);
    size_t size = g->xds_config->value.len;
    response_free(r);
    /* An invalid update: the old resource stays in use, with the error beside it. */
    kit_mesh_put_cluster(w.k, "c", "lb_policy: RING_HASH\n  lrs_server: {ads: {}}");
    r = wait_state(&w, "xds:///svc", "Cluster", "c", STATE(NACKED));
    g = resource_of(r, "xds:///svc", "Cluster", "c");
    assert_string_equal(g->version_info, version);
    assert_int_equal(g->xds_config->value.len, size);
    assert_non_null(strstr(g->error_state->details, "lrs_server"));
    assert_true(strlen(g->error_state->version_info) > 0);
    assert_string_not_equal(g->error_state->version_info, version);
    assert_non_null(g->error_state->last_update_attempt);
    assert_int_equal(resource_of(r, "xds:///svc", "Listener", "svc")->client_status, STATE(ACKED));
    response_free(r);
    kit_mesh_calls(w.ch, NULL, 10);
    tc_free(version);
    /* A valid update ends the error. */
    kit_mesh_put_cluster(w.k, "c", NULL);
    r = wait_state(&w, "xds:///svc", "Cluster", "c", STATE(ACKED));
    assert_null(resource_of(r, "xds:///svc", "Cluster", "c")->error_state);
    response_free(r);
    /* A route to a cluster that the control plane does not have. */
    kit_mesh_put_listener(w.k, "svc", "gone", NULL);
    response_free(wait_state(&w, "xds:///svc", "Cluster", "gone", STATE(REQUESTED)));
    kit_mesh_put_listener(w.k, "svc", "c", NULL);
    kit_mesh_calls(w.ch, NULL, 1);
    kit_mesh_remove(w.k, "Listener", "svc");
    r = wait_state(&w, "xds:///svc", "Listener", "svc", STATE(DOES_NOT_EXIST));
    response_free(r);
    close_world(&w);
}

static void wait_scopes(struct world *w, size_t n)
{
    uint64_t until = tc_system_clock.monotonic_ns(NULL) + WAIT_NS;
    for (size_t seen = n + 1; seen != n;) {
        status_response *r = fetched(w);
        seen = r->n_config;
        response_free(r);
        assert_true(tc_system_clock.monotonic_ns(NULL) < until);
    }
}

/* Without a shared xDS client each target has a client and a scope of its own. Scopes may show the same resource. */
static void scopes(void **state)
{
    (void)state;
    struct world w = open_world();
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    char *bootstrap = tc_asprintf("{\"torc.share_client\": false, %s", kit_mesh_bootstrap(w.k) + 1);
    o.xds_bootstrap_json = bootstrap;
    w.ch = kit_mesh_channel(w.k, "svc", &o);
    torc_channel *twin = kit_mesh_channel(w.k, "svc", &o), *absent = kit_mesh_channel(w.k, "absent", &o);
    kit_mesh_put_listener(w.k, "other", "c", NULL);
    torc_channel *other = kit_mesh_channel(w.k, "other", &o);
    kit_mesh_calls(w.ch, NULL, 1);
    kit_mesh_calls(twin, NULL, 1);
    kit_mesh_calls(other, NULL, 1);
    torc_channel_state(absent, true);
    status_response *r = wait_state(&w, "xds:///absent", "Listener", "absent", STATE(REQUESTED));
    assert_int_equal(r->n_config, 3);
    assert_non_null(resource_of(r, "xds:///svc", "Listener", "svc"));
    assert_null(resource_of(r, "xds:///svc", "Listener", "other"));
    assert_non_null(resource_of(r, "xds:///other", "Listener", "other"));
    assert_int_equal(resource_of(r, "xds:///svc", "Cluster", "c")->client_status, STATE(ACKED));
    assert_int_equal(resource_of(r, "xds:///other", "Cluster", "c")->client_status, STATE(ACKED));
    assert_null(resource_of(r, "xds:///absent", "Listener", "absent")->xds_config);
    response_free(r);
    torc_channel_free(other);
    torc_channel_free(absent);
    torc_channel_free(twin);
    wait_scopes(&w, 1); /* scopes end with their channels */
    tc_free(bootstrap);
    close_world(&w);
}

/* An xDS client that targets share has their list as its scope, and each resource once. */
static void shared_scope(void **state)
{
    (void)state;
    struct world w = open_world();
    kit_mesh_put_listener(w.k, "other", "c", NULL);
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    kit_mesh_calls(w.ch, NULL, 1);
    torc_channel *other = kit_mesh_channel(w.k, "other", NULL);
    kit_mesh_calls(other, NULL, 1);
    static const char both[] = "xds:///svc xds:///other";
    status_response *r = wait_state(&w, both, "Listener", "other", STATE(ACKED));
    assert_int_equal(r->n_config, 1);
    assert_int_equal(r->config[0]->n_generic_xds_configs, 4); /* cluster and endpoints once */
    assert_non_null(resource_of(r, both, "Listener", "svc"));
    response_free(r);
    torc_channel_free(other);
    response_free(wait_state(&w, "xds:///svc", "Cluster", "c", STATE(ACKED)));
    close_world(&w);
}

static void streams_and_refusals(void **state)
{
    (void)state;
    struct world w = open_world();
    const torc_message *m;
    torc_result *end;
    torc_error *error = NULL;
    torc_stream *call = torc_stream_open(w.ask, SERVICE "StreamClientStatus", NULL, &error);
    assert_non_null(call);
    assert_int_equal(torc_stream_send(call, "", 0, 0, -1), 0);
    assert_int_equal(torc_stream_receive(call, -1, &m), 1);
    assert_int_equal(torc_message_size(m), 0);
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    kit_mesh_calls(w.ch, NULL, 1);
    assert_int_equal(torc_stream_send(call, "\x18\x01", 2, 0, -1), 0); /* exclude_resource_contents */
    assert_int_equal(torc_stream_receive(call, -1, &m), 1);
    status_response *r = unpack(torc_message_data(m), torc_message_size(m));
    assert_int_equal(r->n_config, 1);
    assert_int_equal(resource_of(r, "xds:///svc", "Cluster", "c")->client_status, STATE(ACKED));
    assert_null(resource_of(r, "xds:///svc", "Cluster", "c")->xds_config);
    response_free(r);
    end = torc_stream_finish(call);
    assert_int_equal(torc_result_code(end), TORC_STATUS_OK);
    torc_result_free(end);
    torc_stream_free(call);
    /* A request that half-closes the stream is answered, too. */
    call = torc_stream_open(w.ask, SERVICE "StreamClientStatus", NULL, &error);
    assert_int_equal(torc_stream_send(call, "", 0, TORC_SEND_LAST, -1), 0);
    assert_int_equal(torc_stream_receive(call, -1, &m), 1);
    assert_true(torc_message_size(m) > 0);
    assert_int_equal(torc_stream_receive(call, -1, &m), 0);
    end = torc_stream_finish(call);
    assert_int_equal(torc_result_code(end), TORC_STATUS_OK);
    torc_result_free(end);
    torc_stream_free(call);
    /* Requests with node matchers, which are meant for control planes, are refused. */
    end = fetch(&w, "\x0a\x00", 2);
    assert_int_equal(torc_result_code(end), TORC_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(torc_result_text(end), "node_matchers"));
    torc_result_free(end);
    end = fetch(&w, "\xff", 1);
    assert_int_equal(torc_result_code(end), TORC_STATUS_INVALID_ARGUMENT);
    torc_result_free(end);
    close_world(&w);
}

struct inside {
    torc_runtime *rt;
    void *bytes; /* of torc_csds_dump, for torc_free; `size` of them */
    size_t size;
    int rc;          /* of torc_csds_dump */
    bool stopped;    /* dump_inside has run */
    torc_csds *csds; /* of torc_csds_serve; freed by dump_inside: only to be compared with NULL */
};

static void dump_inside(void *arg)
{
    struct inside *i = arg;
    torc_error *error = NULL;
    i->rc = torc_csds_dump(i->rt, false, &i->bytes, &i->size);
    i->csds = torc_csds_serve(i->rt, "127.0.0.1:0", &error);
    torc_csds_free(i->csds);
    i->stopped = true;
}

static void by_function(void **state)
{
    (void)state;
    struct world w = open_world();
    void *bytes = NULL;
    size_t size = 1;
    assert_int_equal(torc_csds_dump(kit_mesh_runtime(w.k), false, &bytes, &size), 0);
    assert_int_equal(size, 0);
    torc_free(bytes);
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    kit_mesh_calls(w.ch, NULL, 1);
    assert_int_equal(torc_csds_dump(kit_mesh_runtime(w.k), false, &bytes, &size), 0);
    status_response *r = unpack(bytes, size), *served = fetched(&w);
    uint8_t *again = tc_calloc(1, size);
    assert_int_equal(envoy__service__status__v3__client_status_response__get_packed_size(served), size);
    envoy__service__status__v3__client_status_response__pack(served, again);
    assert_memory_equal(again, bytes, size); /* the service answers the same */
    tc_free(again);
    response_free(served);
    response_free(r);
    torc_free(bytes);
    assert_int_equal(torc_csds_dump(kit_mesh_runtime(w.k), false, NULL, &size), TORC_EINVAL);
    /* A runtime that the application drives and that has no xDS client, asked inside a callback of its loop. */
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    struct inside i = {.rt = torc_runtime_new(&o, NULL), .size = 1};
    assert_int_equal(torc_runtime_post(i.rt, dump_inside, &i), 0);
    while (!i.stopped)
        torc_runtime_poll(i.rt, -1);
    assert_int_equal(i.rc, 0);
    assert_int_equal(i.size, 0);
    assert_non_null(i.csds);
    torc_free(i.bytes);
    assert_int_equal(torc_csds_dump(i.rt, false, &bytes, &size), 0); /* outside the loop: drives it */
    torc_free(bytes);
    torc_runtime_free(i.rt);
    close_world(&w);
}

/* The runtime's csds_answer_bytes limits an answer. The status proposes to leave out the contents of the resources. */
static void answers_are_limited(void **state)
{
    (void)state;
    struct world w = open_world();
    torc_error *error = NULL;
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .csds_answer_bytes = 400};
    torc_runtime *rt = torc_runtime_new(&o, NULL);
    struct torc_channel_options co = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                      .xds_bootstrap_json = kit_mesh_bootstrap(w.k)};
    w.ch = torc_channel_new(rt, "xds:///svc", &co, &error);
    kit_mesh_calls(w.ch, NULL, 1);
    torc_csds_free(w.csds);
    w.csds = torc_csds_serve(rt, "127.0.0.1:0", &error);
    assert_non_null(w.csds);
    torc_channel_free(w.ask);
    w.ask = torc_channel_new(w.asker, torc_csds_address(w.csds), NULL, NULL);
    torc_result *r = fetch(&w, "", 0);
    assert_int_equal(torc_result_code(r), TORC_STATUS_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(torc_result_text(r), "vs. 400); ask with exclude_resource_contents"));
    torc_result_free(r);
    torc_csds_free(w.csds);
    w.csds = NULL;
    torc_channel_free(w.ch);
    w.ch = NULL;
    torc_runtime_free(rt);
    close_world(&w);
}

static int connect_raw(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint64_t port;
    assert_int_equal(tc_parse_u64(tc_slice_str(strrchr(address, ':') + 1), UINT16_MAX, &port), 0);
    to.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* Waits until the server has closed the connection. Fails the test when no byte has come for 60 s. */
static void wait_closed(int fd)
{
    char bytes[512];
    const struct timeval most = {.tv_sec = WAIT_NS / TC_NS_PER_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        ;
    if (n < 0 && errno == EAGAIN)
        fail_msg("the connection is still open");
}

static bool is_open(int fd)
{
    char bytes[512];
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        ;
    return n < 0 && errno == EAGAIN;
}

/* A connection beyond 64 replaces the oldest one whose client has sent nothing. Each may have two streams at a time. */
static void connections_are_limited(void **state)
{
    (void)state;
    struct world w = open_world();
    int fds[70];
    for (size_t i = 0; i < TC_ARRAY_LEN(fds); i++)
        fds[i] = connect_raw(torc_csds_address(w.csds));
    char settings[64];
    ssize_t n = recv(fds[TC_ARRAY_LEN(fds) - 1], settings, sizeof(settings), 0);
    assert_true(n > 0);
    assert_non_null(memmem(settings, (size_t)n, "\0\3\0\0\0\2", 6)); /* MAX_CONCURRENT_STREAMS: 2 */
    for (size_t i = 0; i < TC_ARRAY_LEN(fds) - 64; i++)
        wait_closed(fds[i]);
    for (size_t i = TC_ARRAY_LEN(fds) - 64; i < TC_ARRAY_LEN(fds); i++)
        assert_true(is_open(fds[i]));
    response_free(fetched(&w));
    wait_closed(fds[TC_ARRAY_LEN(fds) - 64]);
    assert_true(is_open(fds[TC_ARRAY_LEN(fds) - 63]));
    for (size_t i = 0; i < TC_ARRAY_LEN(fds); i++)
        close(fds[i]);
    close_world(&w);
}

static void addresses_and_ends(void **state)
{
    (void)state;
    struct world w = open_world();
    torc_error *error = NULL;
    assert_null(torc_csds_serve(kit_mesh_runtime(w.k), "nonsense", &error));
    assert_non_null(strstr(torc_error_text(error), "address: \"nonsense\" is not an address"));
    assert_int_equal(torc_error_layer(error), TORC_LAYER_API);
    torc_error_clear(&error);
    char nonsense[5000];
    memset(nonsense, 'x', sizeof(nonsense) - 1);
    nonsense[sizeof(nonsense) - 1] = '\0';
    assert_null(torc_csds_serve(kit_mesh_runtime(w.k), nonsense, &error));
    assert_in_range(strlen(torc_error_text(error)), 256, 400);
    torc_error_clear(&error);
    assert_null(torc_csds_serve(kit_mesh_runtime(w.k), torc_csds_address(w.csds), &error));
    assert_int_equal(torc_error_code(error), TORC_EIO);
    assert_int_equal(torc_error_layer(error), TORC_LAYER_CONNECT);
    assert_non_null(strstr(torc_error_text(error), torc_csds_address(w.csds))); /* the address is in use */
    torc_error_clear(&error);
    assert_null(torc_csds_serve(kit_mesh_runtime(w.k), NULL, NULL));
    /* After torc_csds_free the address can be used again. */
    uint16_t port;
    int held = port_hold(&port);
    char *address = tc_asprintf("127.0.0.1:%u", port);
    torc_csds_free(w.csds);
    w.csds = torc_csds_serve(kit_mesh_runtime(w.k), address, &error);
    assert_non_null(w.csds);
    torc_channel *again = torc_channel_new(w.asker, address, NULL, NULL);
    assert_int_equal(torc_channel_connect(again, 20000), 0);
    torc_csds_free(w.csds);
    torc_result *r = torc_unary(again, SERVICE "FetchClientStatus", "", 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    torc_result_free(r);
    torc_channel_free(again);
    w.csds = torc_csds_serve(kit_mesh_runtime(w.k), address, &error);
    assert_non_null(w.csds);
    close(held);
    tc_free(address);
    /* The end of the runtime ends the service. The handle may be freed later. */
    torc_runtime *rt = torc_runtime_new(NULL, NULL);
    torc_csds *left = torc_csds_serve(rt, "127.0.0.1:0", NULL);
    torc_channel *ch = torc_channel_new(w.asker, torc_csds_address(left), NULL, NULL);
    assert_int_equal(torc_channel_connect(ch, 60000), 0);
    torc_runtime_free(rt);
    r = torc_unary(ch, SERVICE "FetchClientStatus", "", 0, NULL);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    torc_result_free(r);
    torc_channel_free(ch);
    torc_csds_free(left);
    torc_csds_free(NULL);
    close_world(&w);
}

/* --- on a server of the application --- */

static int refused; /* how many RPCs on_admit refused, on the server's threads */

/* The on_start of an interceptor that refuses RPCs without the header x-who. */
static int on_admit(torc_rpc *rpc, void *rpc_state, void *arg)
{
    (void)rpc_state, (void)arg;
    if (torc_metadata_find(torc_rpc_metadata(rpc), "x-who", NULL))
        return 0;
    refused++;
    return TORC_STATUS_PERMISSION_DENIED;
}

/* A server on two runtimes with the service, and a channel to it. The service reports a third runtime. */
struct added {
    torc_runtime *rts[2];
    torc_server *server;
    torc_channel *ch;
    torc_metadata *who; /* x-who, for the calls on `ch` */
};

static struct added add_to_server(torc_runtime *rt)
{
    const struct torc_interceptor admit = {TORC_SIZE(torc_interceptor), .name = "admit", .on_start = on_admit};
    const struct torc_interceptor *const list[] = {&admit, NULL};
    struct added a = {.rts = {torc_runtime_new(NULL, NULL), torc_runtime_new(NULL, NULL)}};
    torc_runtime *const more[] = {a.rts[1], NULL};
    const struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = a.rts[0], .runtimes = more,
                                          .interceptors = list};
    torc_error *error = NULL;
    char *bound;
    a.server = torc_server_new(&o, &error);
    assert_int_equal(torc_csds_add(a.server, rt, &error), 0);
    assert_int_equal(torc_csds_add(a.server, rt, &error), TORC_EEXIST);
    assert_non_null(strstr(torc_error_text(error), "FetchClientStatus has a handler already"));
    torc_error_clear(&error);
    assert_int_equal(torc_csds_add(NULL, rt, &error), TORC_EINVAL);
    torc_error_clear(&error);
    assert_int_equal(torc_server_listen(a.server, "127.0.0.1:0", torc_credentials_insecure(), &bound, &error), 0);
    assert_int_equal(torc_server_start(a.server, &error), 0);
    assert_int_equal(torc_csds_add(a.server, rt, NULL), TORC_ESTATE);
    a.ch = torc_channel_new(a.rts[0], bound, NULL, NULL);
    torc_free(bound);
    a.who = torc_metadata_new();
    torc_metadata_add_string(a.who, "x-who", "me");
    return a;
}

static void added_free(struct added *a)
{
    torc_channel_free(a->ch);
    torc_server_free(a->server);
    torc_metadata_free(a->who);
    for (int i = 0; i < 2; i++)
        torc_runtime_free(a->rts[i]);
}

/* Makes a request. Returns the status code. If that is OK, stores the number of configs in *configs. m: may be NULL. */
static int ask_added(const struct added *a, const torc_metadata *m, size_t *configs)
{
    const struct torc_call_options o = {TORC_SIZE(torc_call_options), .metadata = m};
    torc_result *r = torc_unary(a->ch, SERVICE "FetchClientStatus", "", 0, &o);
    int code = torc_result_code(r);
    if (code == TORC_STATUS_OK) {
        status_response *m2 =
            unpack(torc_message_data(torc_result_response(r)), torc_message_size(torc_result_response(r)));
        *configs = m2->n_config;
        response_free(m2);
    }
    torc_result_free(r);
    return code;
}

/* Returns a stream on which three requests were answered, for end_of. */
static torc_stream *stream_added(const struct added *a)
{
    const struct torc_call_options o = {TORC_SIZE(torc_call_options), .metadata = a->who};
    const torc_message *m;
    torc_stream *s = torc_stream_open(a->ch, SERVICE "StreamClientStatus", &o, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(torc_stream_send(s, "", 0, 0, -1), 0);
        assert_int_equal(torc_stream_receive(s, -1, &m), 1);
    }
    return s;
}

/* Reads the stream to its end, and frees it. Returns its status code. */
static int end_of(torc_stream *s)
{
    const torc_message *m;
    while (torc_stream_receive(s, -1, &m) == 1) {
    }
    torc_result *r = torc_stream_finish(s);
    int code = torc_result_code(r);
    torc_result_free(r);
    torc_stream_free(s);
    return code;
}

/* The server's interceptors guard the service. The service answers until the runtime that it reports has ended. */
static void on_a_server(void **state)
{
    (void)state;
    struct world w = open_world();
    torc_runtime *rt = torc_runtime_new(NULL, NULL);
    struct added a = add_to_server(kit_mesh_runtime(w.k)), other = add_to_server(rt);
    size_t configs = 9;
    refused = 0;
    assert_int_equal(ask_added(&a, NULL, &configs), TORC_STATUS_PERMISSION_DENIED);
    assert_int_equal(refused, 1);
    assert_int_equal(ask_added(&a, a.who, &configs), TORC_STATUS_OK);
    assert_int_equal(configs, 0);
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    kit_mesh_calls(w.ch, NULL, 1);
    assert_int_equal(ask_added(&a, a.who, &configs), TORC_STATUS_OK);
    assert_int_equal(configs, 1);
    torc_stream *left = stream_added(&other), *s = stream_added(&a);
    torc_stream *quiet =
        torc_stream_open(other.ch, SERVICE "StreamClientStatus",
                         &(struct torc_call_options){TORC_SIZE(torc_call_options), .metadata = other.who}, NULL);
    assert_int_equal(torc_stream_send(quiet, "", 0, 0, -1), 0);
    torc_runtime_free(rt);
    assert_int_equal(end_of(left), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(end_of(quiet), TORC_STATUS_UNAVAILABLE);
    assert_int_equal(ask_added(&other, other.who, &configs), TORC_STATUS_UNAVAILABLE);
    added_free(&other);
    assert_int_equal(torc_stream_half_close(s), 0);
    assert_int_equal(end_of(s), TORC_STATUS_OK);
    added_free(&a);
    close_world(&w);
}

static void free_here(void *arg)
{
    struct added *a = arg;
    torc_server_free(a->server);
    a->server = NULL;
}

/* The server is freed while clients ask, on the test's thread or in a callback of the runtime that is reported. */
static void server_ends(void **state)
{
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        torc_runtime *rt = torc_runtime_new(NULL, NULL);
        struct added a = add_to_server(rt);
        torc_stream *streams[8];
        for (size_t i = 0; i < TC_ARRAY_LEN(streams); i++) {
            streams[i] = stream_added(&a);
            assert_int_equal(torc_stream_send(streams[i], "", 0, 0, -1), 0);
        }
        if (inside)
            torc_runtime_post(rt, free_here, &a);
        else
            free_here(&a);
        for (size_t i = 0; i < TC_ARRAY_LEN(streams); i++)
            assert_int_equal(end_of(streams[i]), TORC_STATUS_UNAVAILABLE);
        torc_runtime_free(rt); /* returns after the callback */
        added_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_of_live_calls),
        cmocka_unit_test(refused_and_absent),
        cmocka_unit_test(scopes),
        cmocka_unit_test(shared_scope),
        cmocka_unit_test(streams_and_refusals),
        cmocka_unit_test(by_function),
        cmocka_unit_test(answers_are_limited),
        cmocka_unit_test(connections_are_limited),
        cmocka_unit_test(addresses_and_ends),
        cmocka_unit_test(on_a_server),
        cmocka_unit_test(server_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
