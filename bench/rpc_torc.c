/* bench/rpc's client on Torc (client.h): one RPC at a time blocks, several are asynchronous. The main thread drives
 * the runtime; with HOST `thread:ADDRESS`, which is for one unary RPC at a time, the runtime has its own thread. HOST
 * may be an xds:/// target, and PORT is ignored then. */
#include "rpc_torc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

/* The place of one asynchronous RPC. When the RPC ends, the next one starts in its place, unless the run is over or has
 * failed. */
struct slot {
    struct run *run;
    uint64_t started_ns;
};

static void start(struct slot *s);

void run_failed(struct run *r, int code, const char *message)
{
    fprintf(stderr, "bench/rpc_torc: status %d %s\n", code, message);
    r->failed = true;
}

/* Returns true if the RPC was answered with as many bytes as the request has. Otherwise fails the run. */
static bool good(struct run *r, const torc_result *result)
{
    if (torc_result_code(result) != TORC_STATUS_OK) {
        run_failed(r, torc_result_code(result), torc_result_text(result));
        return false;
    }
    if (torc_message_size(torc_result_response(result)) != r->c.payload_size) {
        run_failed(r, 0, "an answer of another size");
        return false;
    }
    return true;
}

static void on_result(const torc_result *result, void *arg)
{
    struct slot *s = arg;
    struct run *r = s->run;
    r->under_way--;
    if (!good(r, result))
        return;
    uint64_t now = client_done(&r->c, s->started_ns);
    if (!client_over(&r->c, now) && !r->failed)
        start(s);
}

static void start(struct slot *s)
{
    struct run *r = s->run;
    torc_error *error = NULL;
    s->started_ns = measure_wall_ns();
    if (torc_unary_async(r->channel, CLIENT_METHOD, r->c.payload, r->c.payload_size, &r->lending, on_result, s, NULL,
                         &error) == 0) {
        r->under_way++;
    } else {
        run_failed(r, 0, torc_error_text(error));
        torc_error_free(error);
    }
}

static void run_blocking(struct run *r)
{
    uint64_t now = measure_wall_ns();
    while (!r->failed && !client_over(&r->c, now)) {
        uint64_t started = measure_wall_ns();
        torc_result *result = torc_unary(r->channel, CLIENT_METHOD, r->c.payload, r->c.payload_size, NULL);
        if (good(r, result))
            now = client_done(&r->c, started);
        torc_result_free(result);
    }
}

static void run_async(struct run *r)
{
    struct slot *slots = calloc(r->c.outstanding, sizeof(*slots));
    for (unsigned i = 0; slots && i < r->c.outstanding && !r->failed; i++) {
        slots[i].run = r;
        start(&slots[i]);
    }
    while (r->under_way)
        torc_runtime_poll(r->runtime, -1);
    free(slots);
}

/* Makes the runtime and the channel. Returns false with a message on stderr if that fails. */
static bool open_channel(struct run *r)
{
    char target[128];
    torc_error *error = NULL;
    const char *host = r->c.host;
    bool thread = strncmp(host, "thread:", 7) == 0;
    if (thread)
        host += 7;
    if (thread && (r->c.outstanding != 1 || r->c.kind != CLIENT_UNARY)) {
        fprintf(stderr, "bench/rpc_torc: thread: is for one RPC at a time\n");
        return false;
    }
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options),
                                     .mode = thread ? TORC_RUNTIME_THREAD : TORC_RUNTIME_CALLER};
    if (strncmp(host, "xds:", 4) == 0)
        snprintf(target, sizeof(target), "%s", host);
    else
        snprintf(target, sizeof(target), "ipv4:%s:%s", host, r->c.port);
    struct torc_channel_options options = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    struct torc_tls_files files = {TORC_SIZE(torc_tls_files), .ca_certificate_file = r->c.roots};
    if (r->c.roots)
        options.credentials = torc_credentials_tls_files(&files, &error);
    r->runtime = options.credentials ? torc_runtime_new(&o, &error) : NULL;
    r->channel = r->runtime ? torc_channel_new(r->runtime, target, &options, &error) : NULL;
    torc_credentials_unref(options.credentials);
    if (!r->channel)
        run_failed(r, 0, torc_error_text(error));
    torc_error_free(error);
    return r->channel != NULL;
}

int main(int argc, char **argv)
{
    static struct run r;
    if (!client_init(&r.c, argc, argv))
        return 2;
    if (!open_channel(&r))
        return 1;
    r.lending = (struct torc_call_options){TORC_SIZE(torc_call_options), .lend_request = TORC_ON};
    if (r.c.kind != CLIENT_UNARY)
        run_streams(&r);
    else if (r.c.outstanding == 1)
        run_blocking(&r);
    else
        run_async(&r);
    int rc = client_report(&r.c);
    torc_channel_free(r.channel);
    torc_runtime_free(r.runtime);
    return r.failed ? 1 : rc;
}
