/* bench/start's client on Torc: a minimal program. */
#include <torc/torc.h>

#include "start.h"

int main(int argc, char **argv)
{
    struct torc_result result;
    if (argc != 2)
        return 2;
    struct torc_runtime_options options = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_runtime *runtime = torc_runtime_new(&options, NULL);
    torc_channel *channel = runtime ? torc_channel_new(runtime, argv[1], NULL, NULL) : NULL;
    if (!channel || torc_call_unary(channel, START_METHOD, "", 0, NULL, &result) != 0)
        return 1;
    start_answered();
    int code = result.code;
    if (code != TORC_STATUS_OK)
        fprintf(stderr, "start_torc: %s %s\n", torc_status_code_name(code), result.message);
    torc_result_fini(&result);
    torc_channel_free(channel);
    torc_runtime_free(runtime);
    return code != TORC_STATUS_OK;
}
