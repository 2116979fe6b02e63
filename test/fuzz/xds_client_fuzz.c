/* The xDS client of one loop between watchers and two fake servers (support/fakes/xds.h) that send arbitrary bytes. The
 * input is a script: watches come and go, responses arrive as bytes or by fields, streams and connections end, time
 * passes. A resource's bytes are "name|value". The value "bad" is invalid, and so are bytes without a name or without a
 * '|'.
 *
 * on_changed has either a value or an error with a text. on_ambient_error comes only while the watcher has a value. No
 * callback comes after the watch has ended. In each callback the script decides whether the watch ends there, and
 * whether the watcher keeps a reference to the flow-control token, which holds up the next response.
 *
 * struct run owns the loop, the fake, its reference of the client, and the watchers, which outlive their watches. One
 * thread, on a manual loop. */
#include "base/mem.h"
#include "base/vec.h"
#include "fuzz.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"
#include "support/fakes/xds.h"
#include "xds/client/local_client.h"

#define WATCHERS 6
#define HELD_MAX 16

static const char bootstrap_text[] =
    "{\"xds_servers\":[{\"server_uri\":\"s0\",\"channel_creds\":[{\"type\":\"insecure\"}]},{\"server_uri\":\"s1\","
    "\"channel_creds\":[{\"type\":\"insecure\"}],\"server_features\":[\"fail_on_data_errors\"]}],\"node\":{\"id\":"
    "\"n\"},\"authorities\":{\"auth\":{}}}";
static const char *const names[] = {"a", "b", "xdstp://auth/x.Listener/a", "xdstp://none/x.Listener/a", ""};
static const char *const servers[] = {"s0", "s1"};

struct thing {
    struct tc_xds_resource base;
    struct tc_rstr *bytes;
};

struct watcher {
    struct tc_xds_watcher base;
    struct run *run;
    bool watching, has_value;
};

struct run {
    struct tc_fuzz_input in;
    struct tc_loop *loop;
    struct fake_xds *fake;
    struct tc_xds_client *client;
    struct watcher watchers[WATCHERS];
    TC_VEC(struct tc_xds_token *) held; /* one reference each */
};

static struct tc_xds_resource *decode(const struct tc_xds_resource_type *type, const struct tc_xds_decode_context *ctx,
                                      struct tc_slice bytes, struct tc_rstr **name, struct tc_validation_errors *errors)
{
    struct tc_slice rest = bytes, part;
    bool more = true;
    TC_FUZZ_CHECK(ctx->bootstrap && ctx->server);
    tc_slice_split(&rest, &more, '|', &part);
    if (part.len)
        *name = tc_rstr_new(part.data, part.len);
    if (!more || !part.len || tc_slice_eq_str(rest, "bad")) {
        tc_validation_add(errors, "is bad");
        return NULL;
    }
    struct thing *t = TC_NEW(struct thing);
    tc_ref_init(&t->base.ref);
    t->base.type = type;
    t->bytes = tc_rstr_new(bytes.data, bytes.len);
    return &t->base;
}

static struct tc_slice peek_name(struct tc_slice bytes)
{
    struct tc_slice part = {0};
    bool more = true;
    tc_slice_split(&bytes, &more, '|', &part);
    return part;
}

static bool equal(const struct tc_xds_resource *a, const struct tc_xds_resource *b)
{
    return tc_rstr_eq(((const struct thing *)a)->bytes, ((const struct thing *)b)->bytes);
}

static void thing_free(struct tc_xds_resource *r)
{
    tc_rstr_unref(((struct thing *)r)->bytes);
    tc_free(r);
}

static const struct tc_xds_resource_type types[] = {
    {"type.googleapis.com/x.Listener", "Listener", false, true, decode, peek_name, NULL, equal, thing_free},
    {"type.googleapis.com/x.Endpoints", "Endpoints", false, false, decode, peek_name, NULL, equal, thing_free},
};

static void unwatch(struct watcher *w)
{
    if (w->watching)
        tc_xds_client_unwatch(w->run->client, &w->base);
    w->watching = w->has_value = false;
}

static void react(struct watcher *w, struct tc_xds_token *token)
{
    struct run *r = w->run;
    uint8_t how = tc_fuzz_u8(&r->in);
    if (how & 1 && r->held.len < HELD_MAX && token) {
        tc_xds_token_ref(token);
        *tc_vec_push(&r->held) = token;
    }
    if (how & 2)
        unwatch(w);
}

static void on_changed(struct tc_xds_watcher *base, struct tc_xds_resource *resource, const struct tc_status *error,
                       struct tc_xds_token *token)
{
    struct watcher *w = TC_CONTAINER_OF(base, struct watcher, base);
    TC_FUZZ_CHECK(w->watching && (resource == NULL) == (error != NULL));
    TC_FUZZ_CHECK(!error || (!tc_status_ok(error) && tc_status_text(error)[0]));
    w->has_value = resource != NULL;
    react(w, token);
}

static void on_ambient_error(struct tc_xds_watcher *base, const struct tc_status *error, struct tc_xds_token *token)
{
    struct watcher *w = TC_CONTAINER_OF(base, struct watcher, base);
    TC_FUZZ_CHECK(w->watching && w->has_value && error); /* A88 */
    react(w, token);
}

static const struct tc_xds_watcher_ops watcher_ops = {on_changed, on_ambient_error};

static void release(struct run *r, size_t keep)
{
    while (r->held.len > keep)
        tc_xds_token_unref(r->held.data[--r->held.len]);
}

static bool supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)config;
    return strcmp(type, "insecure") == 0;
}

static void watch(struct run *r, uint8_t op)
{
    uint8_t what = tc_fuzz_u8(&r->in);
    struct watcher *w = &r->watchers[(op >> 4) % WATCHERS];
    unwatch(w);
    *w = (struct watcher){.base.ops = &watcher_ops, .run = r, .watching = true};
    tc_xds_client_watch(r->client, &types[what & 1], tc_slice_str(names[(what >> 1) % TC_ARRAY_LEN(names)]), &w->base);
}

/* Sends a response made of fields. The script has a byte for the type, a byte for version and nonce, and a byte for
 * each resource, at most four. A zero byte ends the list before that. */
static void respond(struct run *r, struct fake_xds_server *s)
{
    Envoy__Service__Discovery__V3__DiscoveryResponse response = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_RESPONSE__INIT;
    Google__Protobuf__Any anys[4], inner[4], *list[4];
    Envoy__Service__Discovery__V3__Resource wrapper = ENVOY__SERVICE__DISCOVERY__V3__RESOURCE__INIT;
    uint8_t type = tc_fuzz_u8(&r->in), numbers = tc_fuzz_u8(&r->in), how, wrapped[4][256];
    char text[4][64], version[2] = {(char)('0' + (numbers & 7)), 0}, nonce[2] = {(char)('0' + (numbers >> 4)), 0};
    struct tc_buf bytes = {0};
    response.type_url = (char *)(uintptr_t)types[type & 1].type_url;
    response.version_info = version;
    response.nonce = nonce;
    response.resources = list;
    while (response.n_resources < TC_ARRAY_LEN(anys) && (how = tc_fuzz_u8(&r->in)) != 0) {
        size_t i = response.n_resources++;
        list[i] = &anys[i];
        google__protobuf__any__init(&anys[i]);
        anys[i].type_url = how & 0x80 ? (char *)(uintptr_t)types[!(type & 1)].type_url : response.type_url;
        int n = snprintf(text[i], sizeof(text[i]), "%s|%s", names[how % TC_ARRAY_LEN(names)],
                         how & 0x40   ? "bad"
                         : how & 0x20 ? "1"
                                      : "2");
        anys[i].value = (ProtobufCBinaryData){(size_t)n, (uint8_t *)text[i]};
        if (!(how & 0x10))
            continue;
        inner[i] = anys[i];
        wrapper.resource = how & 8 ? NULL : &inner[i];
        wrapper.name = (char *)(uintptr_t)names[how % TC_ARRAY_LEN(names)];
        size_t size = envoy__service__discovery__v3__resource__pack(&wrapper, wrapped[i]);
        anys[i].value = (ProtobufCBinaryData){size, wrapped[i]};
        anys[i].type_url = (char *)(uintptr_t) "type.googleapis.com/envoy.service.discovery.v3.Resource";
    }
    size_t size = envoy__service__discovery__v3__discovery_response__get_packed_size(&response);
    envoy__service__discovery__v3__discovery_response__pack(&response, (uint8_t *)tc_buf_reserve(&bytes, size));
    fake_xds_send(s, tc_slice_of(bytes.data, size));
    tc_buf_fini(&bytes);
}

static void count_entry(void *arg, const struct tc_xds_dump_entry *e)
{
    size_t *n = arg;
    TC_FUZZ_CHECK(e->type && e->state >= TC_XDS_REQUESTED && e->state <= TC_XDS_TIMEOUT);
    TC_FUZZ_CHECK(e->state != TC_XDS_ACKED || e->bytes);
    ++*n;
}

static void step(struct run *r, uint8_t op)
{
    struct fake_xds_server *s = fake_xds_server(r->fake, servers[op >> 3 & 1]);
    struct fake_xds_request *request;
    size_t entries = 0;
    bool streaming = fake_xds_streaming(s);
    switch (op & 7) {
    case 0:
        watch(r, op);
        break;
    case 1:
        unwatch(&r->watchers[(op >> 4) % WATCHERS]);
        break;
    case 2:
        if (streaming)
            respond(r, s);
        break;
    case 3:
        if (streaming)
            fake_xds_send(s, tc_fuzz_short(&r->in));
        break;
    case 4:
        if (streaming)
            fake_xds_end(s, op & 0x10 ? TORC_STATUS_UNAVAILABLE : TORC_STATUS_OK, "over");
        break;
    case 5:
        if (op & 0x10)
            fake_xds_connect(s);
        else if (s->open)
            fake_xds_fail(s, "refused");
        break;
    case 6:
        release(r, r->held.len ? r->held.len - 1 : 0);
        tc_loop_advance(r->loop, (uint64_t)(op >> 4) * 1500);
        break;
    default:
        tc_xds_client_dump(r->client, count_entry, &entries);
        break;
    }
    tc_loop_drain(r->loop);
    while ((request = fake_xds_take(s)))
        fake_xds_request_free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *r = TC_NEW(struct run);
    struct tc_xds_client_opts opts;
    struct tc_status error = {0};
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_parse(tc_slice_str(bootstrap_text), supported, NULL, &error);
    TC_FUZZ_CHECK(b);
    r->in = (struct tc_fuzz_input){data, size};
    r->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true});
    r->fake = fake_xds_new(r->loop);
    tc_xds_client_opts_init(&opts);
    r->client = tc_xds_local_client_new(r->loop, b, fake_xds_factory(r->fake), &opts);
    while (r->in.len)
        step(r, tc_fuzz_u8(&r->in));
    for (size_t i = 0; i < WATCHERS; i++)
        unwatch(&r->watchers[i]);
    release(r, 0);
    tc_loop_drain(r->loop);
    tc_xds_client_unref(r->client);
    tc_loop_drain(r->loop);
    tc_vec_fini(&r->held);
    fake_xds_free(r->fake);
    tc_xds_bootstrap_unref(b);
    tc_loop_free(r->loop);
    tc_free(r);
    return 0;
}
