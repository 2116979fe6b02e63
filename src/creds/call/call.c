/* References of call credentials, and the composite: a flat array of parts. A composite has no operations (ops NULL).
 * Any thread. */
#include "creds/call/call.h"

#include "base/cancel.h"
#include "base/mem.h"
#include "base/status.h"

struct composite {
    torc_call_credentials base;
    size_t n;
    torc_call_credentials *parts[]; /* none of them a composite */
};

void tc_call_creds_init(torc_call_credentials *c, const struct tc_call_creds_ops *ops)
{
    tc_ref_init(&c->ref);
    c->ops = ops;
}

torc_call_credentials *torc_call_credentials_ref(torc_call_credentials *c)
{
    if (c)
        tc_ref_inc(&c->ref);
    return c;
}

void torc_call_credentials_unref(torc_call_credentials *c)
{
    TC_NO_CANCEL;
    if (!c || !tc_ref_dec(&c->ref))
        return;
    if (c->ops) {
        c->ops->free(c);
        return;
    }
    struct composite *all = TC_CONTAINER_OF(c, struct composite, base);
    for (size_t i = 0; i < all->n; i++)
        torc_call_credentials_unref(all->parts[i]);
    tc_free(all);
}

size_t tc_call_creds_count(const torc_call_credentials *c)
{
    return c->ops ? 1 : TC_CONTAINER_OF((torc_call_credentials *)(uintptr_t)c, struct composite, base)->n;
}

torc_call_credentials *tc_call_creds_at(torc_call_credentials *c, size_t i)
{
    return c->ops ? c : TC_CONTAINER_OF(c, struct composite, base)->parts[i];
}

torc_call_credentials *tc_call_creds_join(torc_call_credentials *first, torc_call_credentials *second)
{
    size_t a = tc_call_creds_count(first), b = tc_call_creds_count(second);
    struct composite *c = tc_calloc(1, sizeof(*c) + (a + b) * sizeof(c->parts[0]));
    tc_call_creds_init(&c->base, NULL);
    c->n = a + b;
    for (size_t i = 0; i < c->n; i++)
        c->parts[i] = torc_call_credentials_ref(i < a ? tc_call_creds_at(first, i) : tc_call_creds_at(second, i - a));
    return &c->base;
}

torc_call_credentials *torc_call_credentials_composite(torc_call_credentials *first, torc_call_credentials *second,
                                                       torc_error **error)
{
    if (tc_error_pending(error))
        return NULL;
    if (first && second)
        return tc_call_creds_join(first, second);
    tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s credentials: they are NULL", first ? "second" : "first");
    return NULL;
}
