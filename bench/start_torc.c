/* bench/start's client on Torc: a minimal program. */
#include <torc/torc.h>

#include "start.h"

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    struct torc_runtime_options options = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_runtime *runtime = torc_runtime_new(&options, NULL);
    torc_channel *channel = runtime ? torc_channel_new(runtime, argv[1], NULL, NULL) : NULL;
    if (!channel)
        return 1;
    torc_result *result = torc_unary(channel, START_METHOD, "", 0, NULL);
    start_answered();
    int code = torc_result_code(result);
    if (code != TORC_STATUS_OK)
        fprintf(stderr, "start_torc: %s %s\n", torc_status_code_name(code), torc_result_text(result));
    torc_result_free(result);
    torc_channel_free(channel);
    torc_runtime_free(runtime);
    return code != TORC_STATUS_OK;
}
