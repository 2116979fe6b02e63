/* ADS flow-control tokens. */
#include "xds/client/token.h"

#include "base/mem.h"
#include "base/ref.h"

struct tc_xds_token {
    struct tc_lref refs;
    void (*on_released)(void *arg); /* NULL: detached */
    void *arg;
};

struct tc_xds_token *tc_xds_token_new(void (*on_released)(void *arg), void *arg)
{
    struct tc_xds_token *t = TC_NEW(struct tc_xds_token);
    tc_lref_init(&t->refs);
    t->on_released = on_released;
    t->arg = arg;
    return t;
}

void tc_xds_token_ref(struct tc_xds_token *t)
{
    if (t)
        tc_lref_inc(&t->refs);
}

void tc_xds_token_unref(struct tc_xds_token *t)
{
    if (!t || !tc_lref_dec(&t->refs))
        return;
    void (*on_released)(void *arg) = t->on_released;
    void *arg = t->arg;
    tc_free(t);
    if (on_released)
        on_released(arg);
}

void tc_xds_token_detach(struct tc_xds_token *t)
{
    if (t)
        t->on_released = NULL;
}
