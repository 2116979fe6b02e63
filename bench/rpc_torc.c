/* bench/rpc's client on Torc: one RPC at a time blocking, more of them asynchronous; one thread drives all, but with
 * HOST `thread:ADDRESS` the runtime has a thread of its own. HOST may be an xds:/// target; PORT then says nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "client.h"
#include "measure.h"

static const char payload[CLIENT_PAYLOAD];

struct run {
    struct client c;
    torc_runtime *runtime;
    torc_channel *channel;
    unsigned under_way;
    bool failed;
};

struct slot {
    struct run *run;
    uint64_t started_ns;
};

static void start(struct slot *s);

static bool good(struct run *r, const struct torc_result *result)
{
    if (result->code == TORC_STATUS_OK && torc_message_size(result->response) == CLIENT_PAYLOAD)
        return true;
    fprintf(stderr, "bench/rpc_torc: status %d %s\n", result->code, result->message);
    r->failed = true;
    return false;
}

static void on_result(const struct torc_result *result, void *arg)
{
    struct slot *s = arg;
    struct run *r = s->run;
    r->under_way--;
    if (!good(r, result))
        return;
    uint64_t now = client_done(&r->c, s->started_ns);
    if (!client_over(&r->c, now))
        start(s);
}

static void start(struct slot *s)
{
    struct run *r = s->run;
    s->started_ns = measure_wall_ns();
    r->under_way++;
    if (torc_call_unary_async(r->channel, CLIENT_METHOD, payload, sizeof(payload), NULL, on_result, s, NULL) != 0) {
        r->under_way--;
        r->failed = true;
    }
}

static void run_blocking(struct run *r)
{
    uint64_t now = measure_wall_ns();
    while (!r->failed && !client_over(&r->c, now)) {
        struct torc_result result;
        uint64_t started = measure_wall_ns();
        if (torc_call_unary(r->channel, CLIENT_METHOD, payload, sizeof(payload), NULL, &result) != 0) {
            r->failed = true;
            return;
        }
        if (good(r, &result))
            now = client_done(&r->c, started);
        torc_result_fini(&result);
    }
}

int main(int argc, char **argv)
{
    static struct run r;
    if (!client_init(&r.c, argc, argv))
        return 2;
    struct torc_runtime_options o;
    torc_runtime_options_init(&o);
    char target[128];
    const char *host = r.c.host;
    bool thread = strncmp(host, "thread:", 7) == 0;
    if (thread)
        host += 7;
    if (thread && r.c.outstanding != 1) {
        fprintf(stderr, "bench/rpc_torc: thread: is for one RPC at a time\n");
        return 2;
    }
    o.mode = thread ? TORC_RUNTIME_THREAD : TORC_RUNTIME_CALLER;
    if (strncmp(host, "xds:", 4) == 0)
        snprintf(target, sizeof(target), "%s", host);
    else
        snprintf(target, sizeof(target), "ipv4:%s:%s", host, r.c.port);
    r.runtime = torc_runtime_new(&o);
    r.channel = r.runtime ? torc_channel_new(r.runtime, target, NULL, NULL) : NULL;
    if (!r.channel)
        return 1;
    if (r.c.outstanding == 1) {
        run_blocking(&r);
    } else {
        struct slot *slots = calloc(r.c.outstanding, sizeof(*slots));
        for (unsigned i = 0; slots && i < r.c.outstanding; i++) {
            slots[i].run = &r;
            start(&slots[i]);
        }
        while (r.under_way)
            torc_runtime_poll(r.runtime, -1);
        free(slots);
    }
    int rc = client_report(&r.c);
    torc_channel_free(r.channel);
    torc_runtime_free(r.runtime);
    return r.failed ? 1 : rc;
}
