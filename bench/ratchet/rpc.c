/* The RPCs' part of the ratchet: `ratchet_rpc TARGET ROUNDS` sends so many unary RPCs of 64 bytes, one after the other,
 * on one thread. What it takes is counted from outside (check.py). */
#include <stdio.h>
#include <stdlib.h>

#include <torc/torc.h>

int main(int argc, char **argv)
{
    static const char request[64];
    unsigned rounds = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    struct torc_runtime_options options;
    if (rounds == 0) {
        fprintf(stderr, "usage: %s TARGET ROUNDS\n", argv[0]);
        return 2;
    }
    torc_runtime_options_init(&options);
    options.mode = TORC_RUNTIME_CALLER;
    torc_runtime *runtime = torc_runtime_new(&options);
    torc_channel *channel = runtime ? torc_channel_new(runtime, argv[1], NULL, NULL) : NULL;
    if (!channel)
        return 1;
    for (unsigned i = 0; i < rounds; i++) {
        struct torc_result result;
        if (torc_call_unary(channel, "bench.Echo/Echo", request, sizeof(request), NULL, &result) != 0)
            return 1;
        if (result.code != TORC_STATUS_OK) {
            fprintf(stderr, "RPC %u: %s %s\n", i, torc_status_code_name(result.code), result.message);
            return 1;
        }
        torc_result_fini(&result);
    }
    torc_channel_free(channel);
    torc_runtime_free(runtime);
    return 0;
}
