/* The application's own call credentials (torc_call_credentials_plugin). plugin_get hands each request to the
 * application's function on the loop's thread. The application completes the request on any thread, possibly from
 * inside that function; the answer is posted to the call's loop (creds/call/auth_request.h). The plugin is
 * reference-counted, as all call credentials are; `release` is called when the last reference goes. */
#include "api/metadata.h"
#include "base/mem.h"
#include "base/status.h"
#include "creds/call/call.h"

struct plugin {
    torc_call_credentials base;
    struct tc_call_creds_ops ops; /* with the plugin's type */
    char *type;                   /* owned */
    torc_auth_fn fn;
    void (*release)(void *arg); /* NULL: none */
    void *arg;
};

/* Belongs to the application until torc_auth_request_complete, which may come after the RPC has ended: the texts are
 * copies. */
struct torc_auth_request {
    struct tc_auth_request *answer; /* owned until tc_auth_request_complete */
    char *service_url, *method;
};

static int plugin_get(torc_call_credentials *base, struct tc_loop *loop, const struct tc_auth_context *context,
                      struct tc_auth_waiter *w, struct tc_auth_metadata **out TC_UNUSED,
                      struct tc_status *error TC_UNUSED)
{
    struct plugin *p = TC_CONTAINER_OF(base, struct plugin, base);
    struct tc_auth_request *answer = tc_auth_request_new(loop, w);
    if (TC_UNLIKELY(tc_loop_forked(loop))) /* the child of a callback that forked: the RPC is the parent's */
        return TORC_EAGAIN;
    torc_auth_request *request = TC_NEW(torc_auth_request);
    request->answer = answer;
    request->service_url = tc_strdup(context->service_url);
    request->method = tc_strdup(context->method);
    p->fn(request, p->arg);
    return TORC_EAGAIN;
}

const char *torc_auth_request_service_url(const torc_auth_request *request)
{
    return request ? request->service_url : NULL;
}

const char *torc_auth_request_method(const torc_auth_request *request)
{
    return request ? request->method : NULL;
}

static void plugin_free(torc_call_credentials *base)
{
    struct plugin *p = TC_CONTAINER_OF(base, struct plugin, base);
    if (p->release)
        p->release(p->arg);
    tc_free(p->type);
    tc_free(p);
}

torc_call_credentials *torc_call_credentials_plugin(const char *type, torc_auth_fn fn, void (*release)(void *arg),
                                                    void *arg, torc_error **error)
{
    if (tc_error_pending(error))
        return NULL;
    if (!type || !fn) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: it is NULL", type ? "fn" : "type");
        return NULL;
    }
    struct plugin *p = TC_NEW(struct plugin);
    p->type = tc_strdup(type);
    p->ops = (struct tc_call_creds_ops){.type = p->type, .get = plugin_get, .free = plugin_free};
    p->fn = fn;
    p->release = release;
    p->arg = arg;
    tc_call_creds_init(&p->base, &p->ops);
    return &p->base;
}

/* Copies the metadata of an answer (NULL: none). The caller owns the result's reference. */
static struct tc_auth_metadata *metadata_copy(const torc_metadata *metadata)
{
    size_t n = metadata ? metadata->len : 0;
    struct tc_auth_field *fields = tc_calloc(n + 1, sizeof(*fields));
    for (size_t i = 0; i < n; i++) {
        const struct tc_metadata_field *f = &metadata->fields[i];
        fields[i] = (struct tc_auth_field){.name = tc_rstr_new(f->name, f->name_len),
                                           .value = tc_rstr_new(f->value, f->value_len)};
    }
    struct tc_auth_metadata *m = tc_auth_metadata_new(fields, n);
    tc_free(fields);
    return m;
}

void torc_auth_request_complete(torc_auth_request *request, int code, const char *message,
                                const torc_metadata *metadata)
{
    if (!request)
        return;
    struct tc_auth_request *r = request->answer;
    tc_free(request->service_url);
    tc_free(request->method);
    tc_free(request);
    if (code == TORC_STATUS_OK) {
        tc_auth_request_complete(r, metadata_copy(metadata), NULL);
        return;
    }
    if (code < 0 || code > TORC_STATUS_UNAUTHENTICATED)
        code = TORC_STATUS_UNKNOWN;
    struct tc_status error = tc_status_make(code, TORC_LAYER_CREDENTIALS, "%s", message ? message : "");
    tc_auth_request_complete(r, NULL, &error);
    tc_status_fini(&error);
}
