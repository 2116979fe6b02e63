#include "support/kits/channel.h"

#include <torc/channel.h>
#include <torc/credentials.h>

#include "api/builtin.h"
#include "runtime/create.h"
#include "subchannel/connection.h"
#include "subchannel/pool.h"
#include "support/cmocka.h"

/* Stands for every connection attempt of the channel. No attempt reports an end. */
static int endless_attempt;

static struct tc_connect *start(struct tc_loop *l, const struct tc_addr *addr, const struct tc_connect_opts *opts,
                                tc_connect_fn fn, void *arg)
{
    (void)l, (void)addr, (void)opts, (void)fn, (void)arg;
    return (struct tc_connect *)&endless_attempt;
}

static void cancel(struct tc_connect *c)
{
    assert_ptr_equal(c, &endless_attempt);
}

void kit_channel_init(struct kit_channel *k, const char *service_config)
{
    static const struct tc_connector connector = {.start = start, .cancel = cancel};
    struct tc_status why = {0};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = service_config};
    k->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    k->rt = tc_runtime_new_on(k->loop, NULL);
    tc_pool_set_connector(tc_runtime_pool(k->rt), &connector);
    k->ch = tc_channel_new_private(k->rt, "ipv4:10.0.0.1:80", &o, tc_builtin_policies(), &why);
    if (!k->ch)
        fail_msg("%s", tc_status_text(&why));
}

void kit_channel_fini(struct kit_channel *k)
{
    if (k->ch)
        tc_channel_shutdown(k->ch);
    tc_loop_drain(k->loop);
    assert_int_equal(torc_runtime_free(k->rt), 0);
    tc_loop_free(k->loop);
}
