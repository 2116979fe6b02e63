/* An xDS client over fakes/xds.
 *
 * The resources of the kit's types are texts "name|value" instead of protobuf messages. Watchers append their callbacks
 * to a log. kit_xds_request turns the messages of the client into text; kit_xds_respond and kit_xds_respond_delta turn
 * text into the messages of the server. A kit owns its loop, fake, client and bootstrap; everything runs on the test's
 * thread, except that resources may be decoded on the background thread (kit_xds_init_decode_thread). */
#include "support/kits/xds.h"

#include "support/check.h"
#include "support/cmocka.h"
#include "xds/client/local_client.h"

#include "base/mem.h"

#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

/* --- resource types --- */

struct thing {
    struct tc_xds_resource base;
    char *value;
};

unsigned kit_xds_decoded;

static struct tc_xds_resource *decode(const struct tc_xds_resource_type *type, const struct tc_xds_decode_context *ctx,
                                      struct tc_slice bytes, struct tc_rstr **name, struct tc_validation_errors *errors)
{
    struct tc_slice rest = bytes, part;
    bool more = true;
    CHECK(ctx->bootstrap && ctx->server);
    kit_xds_decoded++;
    tc_slice_split(&rest, &more, '|', &part);
    if (part.len)
        *name = tc_rstr_new(part.data, part.len);
    if (!more || tc_slice_eq_str(rest, "bad")) {
        tc_validation_add_at(errors, "value", "is bad");
        tc_validation_add_at(errors, "other", "is bad too");
        return NULL;
    }
    struct thing *t = TC_NEW(struct thing);
    tc_ref_init(&t->base.ref);
    t->base.type = type;
    t->value = tc_slice_dup(rest);
    return &t->base;
}

static struct tc_slice peek_name(struct tc_slice bytes)
{
    struct tc_slice part = {0};
    bool more = true;
    tc_slice_split(&bytes, &more, '|', &part);
    return part;
}

static const char *value_of(const struct tc_xds_resource *r)
{
    return ((const struct thing *)r)->value;
}

static bool equal(const struct tc_xds_resource *a, const struct tc_xds_resource *b)
{
    return strcmp(value_of(a), value_of(b)) == 0;
}

static void thing_free(struct tc_xds_resource *r)
{
    struct thing *t = (struct thing *)r;
    tc_free(t->value);
    tc_free(t);
}

#define TYPE(url, name, all)                                                                                           \
    {                                                                                                                  \
        .type_url = "type.googleapis.com/" url, .short_name = name, .any_thread = true,                                \
        .all_resources_required_in_sotw = all, .decode = decode, .peek_name = peek_name, .equal = equal,               \
        .free = thing_free                                                                                             \
    }

const struct tc_xds_resource_type kit_xds_lds = TYPE("envoy.config.listener.v3.Listener", "Listener", true);
const struct tc_xds_resource_type kit_xds_cds = TYPE("envoy.config.cluster.v3.Cluster", "Cluster", true);
const struct tc_xds_resource_type kit_xds_eds =
    TYPE("envoy.config.endpoint.v3.ClusterLoadAssignment", "ClusterLoadAssignment", false);

/* --- watchers --- */

static void after_event(struct kit_xds_watcher *w, struct tc_xds_token *token)
{
    if (w->hold && token) {
        tc_xds_token_ref(token);
        *tc_vec_push(&w->held) = token;
    }
    if (w->then)
        w->then(w);
}

static void on_changed(struct tc_xds_watcher *base, struct tc_xds_resource *resource, const struct tc_status *error,
                       struct tc_xds_token *token)
{
    struct kit_xds_watcher *w = TC_CONTAINER_OF(base, struct kit_xds_watcher, base);
    assert_true((resource == NULL) == (error != NULL));
    if (resource)
        tc_buf_printf(&w->log, "value %s;", value_of(resource));
    else
        tc_buf_printf(&w->log, "error %s;", tc_status_text(error));
    w->last_code = error ? error->code : TORC_STATUS_OK;
    after_event(w, token);
}

static void on_ambient_error(struct tc_xds_watcher *base, const struct tc_status *error, struct tc_xds_token *token)
{
    struct kit_xds_watcher *w = TC_CONTAINER_OF(base, struct kit_xds_watcher, base);
    if (tc_status_ok(error))
        tc_buf_append_str(&w->log, "clear;");
    else
        tc_buf_printf(&w->log, "ambient %s;", tc_status_text(error));
    w->last_code = error->code;
    after_event(w, token);
}

static const struct tc_xds_watcher_ops watcher_ops = {on_changed, on_ambient_error};

void kit_xds_watcher_init(struct kit_xds_watcher *w)
{
    *w = (struct kit_xds_watcher){.base.ops = &watcher_ops};
}

void kit_xds_release(struct kit_xds_watcher *w)
{
    for (size_t i = 0; i < w->held.len; i++)
        tc_xds_token_unref(w->held.data[i]);
    w->held.len = 0;
}

void kit_xds_watcher_fini(struct kit_xds_watcher *w)
{
    kit_xds_release(w);
    tc_vec_fini(&w->held);
    tc_buf_fini(&w->log);
}

const char *kit_xds_told(struct kit_xds_watcher *w)
{
    const char *text = tc_buf_cstr(&w->log);
    tc_buf_clear(&w->log);
    return text;
}

/* --- the client --- */

bool kit_xds_creds_supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)config;
    return strcmp(type, "insecure") == 0 || strcmp(type, "tls") == 0;
}

static void init(struct kit_xds *k, const char *bootstrap, size_t decode_thread_bytes)
{
    static const char one_server[] =
        "{\"xds_servers\": [{\"server_uri\": \"s1\", \"channel_creds\": [{\"type\": \"insecure\"}]}],"
        " \"node\": {\"id\": \"node1\"}}";
    struct tc_status error = {0};
    struct tc_xds_client_opts opts;
    *k = (struct kit_xds){0};
    k->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    k->fake = fake_xds_new(k->loop);
    k->bootstrap =
        tc_xds_bootstrap_parse(tc_slice_str(bootstrap ? bootstrap : one_server), kit_xds_creds_supported, NULL, &error);
    assert_true(k->bootstrap);
    tc_xds_client_opts_init(&opts);
    opts.target = tc_slice_str("xds:///test");
    opts.decode_thread_bytes = decode_thread_bytes;
    k->client = tc_xds_local_client_new(k->loop, k->bootstrap, fake_xds_factory(k->fake), &opts);
    k->server = fake_xds_server(k->fake, tc_rstr_cstr(k->bootstrap->servers[0].uri));
}

void kit_xds_init(struct kit_xds *k, const char *bootstrap)
{
    init(k, bootstrap, 0);
}

void kit_xds_init_decode_thread(struct kit_xds *k)
{
    init(k, NULL, 1);
}

void kit_xds_fini(struct kit_xds *k)
{
    tc_xds_client_unref(k->client);
    tc_loop_drain(k->loop);
    tc_xds_bootstrap_unref(k->bootstrap);
    fake_xds_free(k->fake);
    tc_loop_free(k->loop);
    tc_free(k->text);
}

void kit_xds_watch(struct kit_xds *k, const struct tc_xds_resource_type *type, const char *name,
                   struct kit_xds_watcher *w)
{
    tc_xds_client_watch(k->client, type, tc_slice_str(name), &w->base);
}

void kit_xds_unwatch(struct kit_xds *k, struct kit_xds_watcher *w)
{
    tc_xds_client_unwatch(k->client, &w->base);
}

static const char *short_type(const char *url)
{
    const char *dot = strrchr(url, '.');
    return dot ? dot + 1 : url;
}

const char *kit_xds_request(struct kit_xds *k, struct fake_xds_server *s)
{
    struct tc_buf b = {0};
    struct fake_xds_request *r = fake_xds_take(s);
    if (r) {
        if (r->delta)
            tc_buf_printf(&b, "%s +[%s] -[%s] {%s} \"%s\"", short_type(r->type_url), r->names, r->unsubscribed,
                          r->initial, r->nonce);
        else
            tc_buf_printf(&b, "%s [%s] \"%s\" \"%s\"", short_type(r->type_url), r->names, r->version, r->nonce);
        tc_buf_append_str(&b, r->has_node ? " node" : "");
        if (r->error_code)
            tc_buf_printf(&b, " NACK %d %s", r->error_code, r->error_text);
        fake_xds_request_free(r);
    }
    tc_free(k->text);
    k->text = tc_buf_take(&b);
    return k->text;
}

void kit_xds_respond(struct kit_xds *k, struct fake_xds_server *s, const struct tc_xds_resource_type *type,
                     const char *version, const char *nonce, ...)
{
    enum { MAX = 16 };
    Envoy__Service__Discovery__V3__DiscoveryResponse m = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_RESPONSE__INIT;
    Google__Protobuf__Any any[MAX], *resources[MAX];
    struct tc_buf b = {0};
    va_list ap;
    va_start(ap, nonce);
    for (const char *text; (text = va_arg(ap, const char *));) {
        assert_true(m.n_resources < MAX);
        any[m.n_resources] = (Google__Protobuf__Any)GOOGLE__PROTOBUF__ANY__INIT;
        any[m.n_resources].type_url = (char *)type->type_url;
        any[m.n_resources].value.data = (uint8_t *)text;
        any[m.n_resources].value.len = strlen(text);
        resources[m.n_resources] = &any[m.n_resources];
        m.n_resources++;
    }
    va_end(ap);
    m.resources = resources;
    m.version_info = (char *)version;
    m.nonce = (char *)nonce;
    m.type_url = (char *)type->type_url;
    size_t len = envoy__service__discovery__v3__discovery_response__get_packed_size(&m);
    b.len = envoy__service__discovery__v3__discovery_response__pack(&m, (uint8_t *)tc_buf_reserve(&b, len));
    fake_xds_send(s, tc_buf_slice(&b));
    tc_buf_fini(&b);
    tc_loop_drain(k->loop);
}

/* --- delta responses --- */

enum { MAX_DELTA = 16 };

struct delta {
    Envoy__Service__Discovery__V3__DeltaDiscoveryResponse m;
    Envoy__Service__Discovery__V3__Resource wrappers[MAX_DELTA], *resources[MAX_DELTA];
    Google__Protobuf__Any any[MAX_DELTA];
    char *removed[MAX_DELTA], *texts[MAX_DELTA];
    Envoy__Service__Discovery__V3__ResourceError error, *errors[1];
    Envoy__Service__Discovery__V3__ResourceName error_name;
    Google__Rpc__Status detail;
};

/* Adds "name|value@version". d->texts keeps a copy, which the caller frees with tc_free. */
static void add_resource(struct delta *d, const struct tc_xds_resource_type *type, const char *text)
{
    size_t i = d->m.n_resources++;
    char *at = d->texts[i] = tc_strdup(text), *version = strrchr(at, '@'), *bar = strchr(at, '|');
    assert_true(version && bar);
    *version = '\0';
    google__protobuf__any__init(&d->any[i]);
    d->any[i].type_url = (char *)type->type_url;
    d->any[i].value.data = (uint8_t *)at;
    d->any[i].value.len = strlen(at);
    envoy__service__discovery__v3__resource__init(&d->wrappers[i]);
    d->wrappers[i].resource = &d->any[i];
    d->wrappers[i].version = version + 1;
    d->resources[i] = &d->wrappers[i];
}

/* Sets the one resource error. `name` must live as long as the message. */
static void add_error(struct delta *d, const char *name)
{
    assert_int_equal(d->m.n_resource_errors, 0); /* room for one */
    envoy__service__discovery__v3__resource_error__init(&d->error);
    envoy__service__discovery__v3__resource_name__init(&d->error_name);
    google__rpc__status__init(&d->detail);
    d->error_name.name = (char *)name;
    d->detail.code = TORC_STATUS_NOT_FOUND;
    d->detail.message = "gone";
    d->error.resource_name = &d->error_name;
    d->error.error_detail = &d->detail;
    d->errors[0] = &d->error;
    d->m.resource_errors = d->errors;
    d->m.n_resource_errors = 1;
}

void kit_xds_respond_delta(struct kit_xds *k, struct fake_xds_server *s, const struct tc_xds_resource_type *type,
                           const char *nonce, ...)
{
    struct delta d = {.m = ENVOY__SERVICE__DISCOVERY__V3__DELTA_DISCOVERY_RESPONSE__INIT};
    struct tc_buf b = {0};
    va_list ap;
    va_start(ap, nonce);
    for (const char *text; (text = va_arg(ap, const char *));) {
        assert_true(d.m.n_resources < MAX_DELTA && d.m.n_removed_resources < MAX_DELTA);
        if (*text == '-')
            d.removed[d.m.n_removed_resources++] = (char *)(uintptr_t)(text + 1);
        else if (*text == '!')
            add_error(&d, text + 1);
        else
            add_resource(&d, type, text);
    }
    va_end(ap);
    d.m.resources = d.resources;
    d.m.removed_resources = d.removed;
    d.m.nonce = (char *)nonce;
    d.m.system_version_info = "system";
    d.m.type_url = (char *)type->type_url;
    size_t len = envoy__service__discovery__v3__delta_discovery_response__get_packed_size(&d.m);
    b.len = envoy__service__discovery__v3__delta_discovery_response__pack(&d.m, (uint8_t *)tc_buf_reserve(&b, len));
    fake_xds_send(s, tc_buf_slice(&b));
    tc_buf_fini(&b);
    for (size_t i = 0; i < d.m.n_resources; i++)
        tc_free(d.texts[i]);
    tc_loop_drain(k->loop);
}
