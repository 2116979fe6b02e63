/* The RPCs' part of the ratchet: `ratchet_rpc TARGET ROUNDS` sends ROUNDS unary RPCs of 64 bytes, one after the other,
 * on one thread. After the turn that sends an RPC, the program waits for the loop's descriptor or timeout before each
 * turn, since the number of turns that find nothing depends on the machine's load. Prints the number of turns after a
 * wait, by which check.py corrects its figures. Instructions are counted from outside (check.py). */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <torc/torc.h>

static const char request[64];

struct run {
    torc_runtime *runtime;
    bool done, failed;
    unsigned long turns; /* after a wait, of all RPCs */
};

static void on_result(const torc_result *result, void *arg)
{
    struct run *r = arg;
    r->done = true;
    r->failed = torc_result_code(result) != TORC_STATUS_OK;
    if (r->failed)
        fprintf(stderr, "an RPC failed: %s %s\n", torc_status_code_name(torc_result_code(result)),
                torc_result_text(result));
}

static bool one_rpc(struct run *r, torc_channel *channel)
{
    r->done = false;
    if (torc_unary_async(channel, "bench.Echo/Echo", request, sizeof(request), NULL, on_result, r, NULL, NULL) != 0)
        return false;
    for (torc_runtime_poll(r->runtime, 0); !r->done; torc_runtime_poll(r->runtime, 0)) {
        struct pollfd readable = {.fd = torc_runtime_fd(r->runtime), .events = POLLIN};
        poll(&readable, 1, torc_runtime_timeout_ms(r->runtime));
        r->turns++;
    }
    return !r->failed;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (rounds == 0) {
        fprintf(stderr, "usage: %s TARGET ROUNDS\n", argv[0]);
        return 2;
    }
    struct torc_runtime_options options = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    struct run r = {.runtime = torc_runtime_new(&options, NULL)};
    torc_channel *channel = r.runtime ? torc_channel_new(r.runtime, argv[1], NULL, NULL) : NULL;
    bool ok = channel != NULL;
    for (unsigned i = 0; ok && i < rounds; i++)
        ok = one_rpc(&r, channel);
    torc_channel_free(channel);
    torc_runtime_free(r.runtime);
    printf("%lu\n", r.turns);
    return ok ? 0 : 1;
}
