#include "subchannel/conn_config.h"

#include "base/mem.h"
#include "subchannel/health.h"

struct tc_conn_config *tc_conn_config_secured(const struct tc_conn_config *c, torc_credentials *creds,
                                              struct tc_rstr *server_name)
{
    struct tc_conn_config *out = TC_NEW(struct tc_conn_config);
    *out = *c;
    out->channel = tc_conn_config_ref((struct tc_conn_config *)(uintptr_t)c);
    out->creds = torc_credentials_ref(creds);
    out->server_name = tc_rstr_ref(server_name);
    tc_dialer_ref(out->dialer);
    tc_ref_init(&out->ref);
    return out;
}

struct tc_conn_config *tc_conn_config_ref(struct tc_conn_config *c)
{
    tc_ref_inc(&c->ref);
    return c;
}

void tc_conn_config_unref(struct tc_conn_config *c)
{
    if (!c || !tc_ref_dec(&c->ref))
        return;
    torc_credentials_unref(c->creds);
    tc_rstr_unref(c->server_name);
    tc_dialer_unref(c->dialer);
    if (!c->channel)
        tc_health_checks_free(c->health);
    tc_conn_config_unref(c->channel);
    tc_free(c);
}
