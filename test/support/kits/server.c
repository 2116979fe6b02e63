/* Server and channel are driven by one runtime, whose loop the test turns. */
#include "support/kits/server.h"

#include "api/builtin.h"
#include "base/mem.h"
#include "channel/create.h"
#include "support/cmocka.h"

void kit_server_init(struct kit_server *k)
{
    struct tc_addr addr, bound;
    struct tc_status error = {0};
    struct torc_runtime_options options = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    k->runtime = torc_runtime_new(&options, NULL);
    assert_non_null(k->runtime);
    k->loop = tc_runtime_loop(k->runtime);
    struct tc_server_opts opts;
    tc_server_opts_init(&opts);
    k->server = tc_server_new(k->loop, &opts);
    assert_int_equal(tc_addr_parse(&addr, tc_slice_str("127.0.0.1:0")), 0);
    assert_int_equal(tc_server_listen(k->server, &addr, &bound, &error), 0);
    struct tc_buf target = {0};
    tc_addr_format(&bound, &target);
    k->channel = tc_channel_new_private(k->runtime, tc_buf_cstr(&target), NULL, tc_builtin_policies(), &error);
    assert_non_null(k->channel);
    tc_buf_fini(&target);
    tc_addr_fini(&bound);
    tc_addr_fini(&addr);
}

void kit_server_fini(struct kit_server *k)
{
    tc_channel_shutdown(k->channel);
    tc_server_free(k->server);
    torc_runtime_free(k->runtime);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct kit_server_call *c = arg;
    *tc_vec_push(&c->messages) = message;
    tc_call_read(c->call, 1);
}

static void on_written(void *arg)
{
    struct kit_server_call *c = arg;
    c->written = true;
}

static void on_done(void *arg, const struct tc_call_end *end)
{
    struct kit_server_call *c = arg;
    c->done = true;
    c->call = NULL;
    tc_status_set(&c->status, tc_status_ref(&end->status));
}

static const struct tc_call_events events = {.on_message = on_message, .on_written = on_written, .on_done = on_done};

void kit_server_open(struct kit_server *k, struct kit_server_call *c, const char *method)
{
    struct tc_call_opts opts = {.method = tc_slice_str(method), .wait_for_ready = true};
    *c = (struct kit_server_call){.kit = k};
    c->call = tc_call_start(k->channel, &opts, &events, c);
    tc_call_read(c->call, 1);
}

void kit_server_send(struct kit_server_call *c, struct tc_slice message, bool end)
{
    c->written = false;
    assert_int_equal(tc_call_send(c->call, tc_rstr_new(message.data, message.len), end), 0);
    KIT_SERVER_UNTIL(c->kit, c->written || c->done);
}

void kit_server_close(struct kit_server_call *c)
{
    if (c->call)
        tc_call_cancel(c->call);
    for (size_t i = 0; i < c->messages.len; i++)
        tc_rstr_unref(c->messages.data[i]);
    tc_vec_fini(&c->messages);
    tc_status_fini(&c->status);
}

void kit_server_turn(struct kit_server *k, uint64_t since_ns)
{
    if (tc_loop_clock_ns(k->loop) - since_ns > 60 * TC_NS_PER_S)
        fail_msg("nothing happened within 60 seconds");
    tc_loop_turn(k->loop, 1000);
}
