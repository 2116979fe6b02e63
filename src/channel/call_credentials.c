/* The call credentials of a call.
 *
 * Credentials are a list of parts, the channel's before the call's own. tc_call_credentials_get asks one part after the
 * other; a part answers at once (a token in the cache) or later, through `waiter`. The answers' fields become headers
 * of the request: copies of secrets in the call's arena, whose memory serves other calls later. So their values are
 * overwritten before another attempt asks, and when the call is gone. */
#include "channel/call_credentials.h"

/* Returns the part at cc->next, or NULL when all have answered. */
static torc_call_credentials *part_next(const struct tc_call_credentials *cc)
{
    size_t i = cc->next, n = cc->of_channel ? tc_call_creds_count(cc->of_channel) : 0;
    if (i < n)
        return tc_call_creds_at(cc->of_channel, i);
    return cc->own && i - n < tc_call_creds_count(cc->own) ? tc_call_creds_at(cc->own, i - n) : NULL;
}

static void headers_add(struct tc_call_credentials *cc, const struct tc_auth_metadata *m)
{
    for (size_t i = 0; i < m->n; i++)
        tc_headers_add_copy(&cc->headers, tc_rstr_slice(m->fields[i].name), tc_rstr_slice(m->fields[i].value));
    cc->next++;
}

static void on_auth_answer(struct tc_auth_waiter *w, struct tc_auth_metadata *metadata, const struct tc_status *error)
{
    struct tc_call_credentials *cc = TC_CONTAINER_OF(w, struct tc_call_credentials, waiter);
    if (metadata)
        headers_add(cc, metadata);
    cc->on_answer(cc->arg, metadata ? NULL : error);
}

struct tc_call_credentials *tc_call_credentials_new(struct tc_arena *arena, struct tc_loop *loop,
                                                    torc_call_credentials *own)
{
    struct tc_call_credentials *cc = tc_arena_calloc(arena, 1, sizeof(*cc));
    cc->loop = loop;
    cc->own = own ? torc_call_credentials_ref(own) : NULL;
    cc->waiter.fn = on_auth_answer;
    tc_headers_init(&cc->headers, arena);
    return cc;
}

/* Returns the context, made once for the call: https://AUTHORITY/SERVICE without the default port, and the method. */
static const struct tc_auth_context *context_get(struct tc_call_credentials *cc, struct tc_slice host,
                                                 struct tc_slice path)
{
    struct tc_auth_context *context = &cc->context;
    struct tc_arena *arena = cc->headers.arena;
    if (context->method)
        return context;
    struct tc_slice scheme = tc_slice_str("https://");
    const char *slash = memrchr(path.data, '/', path.len);
    struct tc_slice service = tc_slice_of(path.data, (size_t)(slash - path.data));
    if (tc_slice_ends(host, tc_slice_str(":443")))
        host.len -= 4;
    char *url = tc_arena_alloc(arena, scheme.len + host.len + service.len + 1), *at = url;
    const struct tc_slice parts[] = {scheme, host, service};
    for (size_t i = 0; i < TC_ARRAY_LEN(parts); at += parts[i].len, i++)
        if (parts[i].len)
            memcpy(at, parts[i].data, parts[i].len);
    *at = '\0';
    context->service_url = url;
    context->method = tc_arena_dup(arena, tc_slice_of(slash + 1, path.len - service.len - 1));
    return context;
}

int tc_call_credentials_get(struct tc_call_credentials *cc, struct tc_slice authority, struct tc_slice path,
                            struct tc_status *error)
{
    torc_call_credentials *part;
    while ((part = part_next(cc))) {
        struct tc_auth_metadata *m = NULL;
        int rc = part->ops->get(part, cc->loop, context_get(cc, authority, path), &cc->waiter, &m, error);
        if (rc != 0)
            return rc;
        headers_add(cc, m);
        tc_auth_metadata_unref(m);
    }
    return 0;
}

static void headers_wipe(struct tc_headers *headers)
{
    for (size_t i = 0; i < headers->len; i++) {
        struct tc_slice value = headers->data[i].value;
        if (value.len)
            explicit_bzero((char *)(uintptr_t)value.data, value.len);
    }
    headers->len = 0;
}

void tc_call_credentials_reset(struct tc_call_credentials *cc)
{
    cc->next = 0;
    headers_wipe(&cc->headers);
}

void tc_call_credentials_stop(struct tc_call_credentials *cc)
{
    tc_auth_waiter_cancel(&cc->waiter);
}

void tc_call_credentials_fini(struct tc_call_credentials *cc)
{
    torc_call_credentials_unref(cc->own);
    headers_wipe(&cc->headers);
}

void tc_call_credentials_describe_awaited(const struct tc_call_credentials *cc, struct tc_buf *out)
{
    const torc_call_credentials *part = part_next(cc);
    if (part && part->ops->from)
        tc_buf_printf(out, "%s, from %s", part->ops->type, part->ops->from);
    else if (part)
        tc_buf_append_str(out, part->ops->type);
}
