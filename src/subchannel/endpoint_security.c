#include "subchannel/endpoint_security.h"

#include "base/mem.h"

static void free_security(struct tc_endpoint_extra *x)
{
    struct tc_security *s = TC_CONTAINER_OF(x, struct tc_security, base);
    torc_credentials_unref(s->creds);
    tc_rstr_unref(s->server_name);
    tc_free(s);
}

struct tc_endpoint_extra *tc_security_new(torc_credentials *creds, struct tc_rstr *server_name)
{
    struct tc_security *s = TC_NEW(struct tc_security);
    tc_ref_init(&s->base.ref);
    s->base.free = free_security;
    s->creds = torc_credentials_ref(creds);
    s->server_name = tc_rstr_ref(server_name);
    return &s->base;
}
