#include "channel/call_auth.h"

#include "base/mem.h"
#include "channel/call_struct.h"
#include "creds/creds.h"

static torc_call_credentials *channel_part(const struct tc_call *c)
{
    return c->channel->credentials->call;
}

/* The credentials at c->auth->next; NULL: all were asked. */
static torc_call_credentials *next_part(const struct tc_call *c)
{
    torc_call_credentials *of_channel = channel_part(c), *own = c->auth->own;
    size_t i = c->auth->next, n = of_channel ? tc_call_creds_count(of_channel) : 0;
    if (i < n)
        return tc_call_creds_at(of_channel, i);
    return own && i - n < tc_call_creds_count(own) ? tc_call_creds_at(own, i - n) : NULL;
}

static void on_answer(struct tc_auth_request *r, struct tc_auth_metadata *metadata, const struct tc_status *error);

static void make(struct tc_call *c)
{
    if (c->auth)
        return;
    c->auth = tc_arena_calloc(&c->arena, 1, sizeof(*c->auth));
    c->auth->call = c;
    c->auth->request.fn = on_answer;
    tc_headers_init(&c->auth->headers, &c->arena);
}

void tc_call_auth_use(struct tc_call *c, torc_call_credentials *own)
{
    make(c);
    c->auth->own = torc_call_credentials_ref(own);
}

void tc_call_auth_begin(struct tc_call *c)
{
    if (channel_part(c))
        make(c);
    if (c->auth)
        c->request.auth = &c->auth->headers;
}

static void add(struct tc_call *c, const struct tc_auth_metadata *m)
{
    for (size_t i = 0; i < m->n; i++)
        tc_headers_add_copy(&c->auth->headers, tc_rstr_slice(m->fields[i].name), tc_rstr_slice(m->fields[i].value));
    c->auth->next++;
}

/* Made once for the call. */
static const struct tc_auth_context *context_of(struct tc_call *c)
{
    struct tc_auth_context *context = &c->auth->context;
    if (context->method)
        return context;
    struct tc_slice scheme = tc_slice_str("https://"), host = tc_rstr_slice(c->channel->authority), path = c->path;
    const char *slash = memrchr(path.data, '/', path.len);
    struct tc_slice service = tc_slice_of(path.data, (size_t)(slash - path.data));
    if (tc_slice_ends(host, tc_slice_str(":443")))
        host.len -= 4;
    char *url = tc_arena_alloc(&c->arena, scheme.len + host.len + service.len + 1), *at = url;
    const struct tc_slice parts[] = {scheme, host, service};
    for (size_t i = 0; i < TC_ARRAY_LEN(parts); at += parts[i].len, i++)
        if (parts[i].len)
            memcpy(at, parts[i].data, parts[i].len);
    *at = '\0';
    context->service_url = url;
    context->method = tc_arena_dup(&c->arena, tc_slice_of(slash + 1, path.len - service.len - 1));
    return context;
}

static int ask(struct tc_call *c, torc_call_credentials *part, struct tc_auth_metadata **m, struct tc_status *error)
{
    return part->ops->get(part, c->channel->loop, context_of(c), &c->auth->request, m, error);
}

/* Not the backend's doing: the trackers hear that the pick led to no RPC. */
static void refuse(struct tc_call *c, struct tc_status status)
{
    c->transport = NULL;
    tc_call_tell_trackers(c, NULL, NULL);
    tc_call_fail(c, tc_status_from_control_plane(status));
}

bool tc_call_authorize(struct tc_call *c, const struct tc_transport *t)
{
    torc_call_credentials *part;
    if (!tc_h2_conn_secure(tc_transport_h2(t))) {
        refuse(c, tc_status_make(TORC_STATUS_UNAUTHENTICATED,
                                 "call credentials are not sent over the connection to %s, which has no transport "
                                 "security",
                                 tc_transport_address(t)->data));
        return false;
    }
    while ((part = next_part(c))) {
        struct tc_auth_metadata *m = NULL;
        struct tc_status error = {0};
        int rc = ask(c, part, &m, &error);
        if (rc == TORC_EAGAIN) {
            /* The connection may be another by then. */
            c->transport = NULL;
            c->stage = TC_CALL_WAIT_AUTH;
            tc_call_tell_trackers(c, NULL, NULL);
            return false;
        }
        if (rc != 0) {
            refuse(c, error);
            return false;
        }
        add(c, m);
        tc_auth_metadata_unref(m);
    }
    return true;
}

static void on_answer(struct tc_auth_request *r, struct tc_auth_metadata *metadata, const struct tc_status *error)
{
    struct tc_call *c = TC_CONTAINER_OF(r, struct tc_call_auth, request)->call;
    if (!metadata) {
        tc_call_fail(c, tc_status_from_control_plane(tc_status_ref(error)));
        return;
    }
    add(c, metadata);
    tc_call_pick(c);
}

/* The call's own copies of tokens, whose memory may serve another. */
static void wipe(struct tc_headers *headers)
{
    for (size_t i = 0; i < headers->len; i++) {
        struct tc_slice value = headers->data[i].value;
        if (value.len)
            explicit_bzero((char *)(uintptr_t)value.data, value.len);
    }
    headers->len = 0;
}

void tc_call_auth_reset(struct tc_call *c)
{
    if (!c->auth)
        return;
    c->auth->next = 0;
    wipe(&c->auth->headers);
}

void tc_call_auth_stop(struct tc_call *c)
{
    if (c->auth)
        tc_auth_request_cancel(&c->auth->request);
}

void tc_call_auth_fini(struct tc_call *c)
{
    if (!c->auth)
        return;
    torc_call_credentials_unref(c->auth->own);
    wipe(&c->auth->headers);
    c->auth = NULL;
}

void tc_call_auth_waits_for(const struct tc_call *c, struct tc_buf *out)
{
    const torc_call_credentials *part = next_part(c);
    if (part && part->ops->from)
        tc_buf_printf(out, "%s, from %s", part->ops->type, part->ops->from);
    else if (part)
        tc_buf_append_str(out, part->ops->type);
}
