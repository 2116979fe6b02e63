/* One blocking RPC. usage: unary [TARGET [MESSAGE]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

int main(int argc, char **argv)
{
    const char *target = argc > 1 ? argv[1] : "127.0.0.1:50051";
    const char *message = argc > 2 ? argv[2] : "hello";
    torc_error *error = NULL;

    /* A runtime without a thread: blocking calls drive its loop themselves. */
    struct torc_runtime_options ro = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_runtime *runtime = torc_runtime_new(&ro, NULL);
    torc_channel *channel = torc_channel_new(runtime, target, NULL, &error);
    if (!channel) {
        fprintf(stderr, "%s\n", torc_error_text(error));
        torc_error_clear(&error);
        torc_runtime_free(runtime);
        return 1;
    }

    torc_metadata *metadata = torc_metadata_new();
    torc_metadata_add_string(metadata, "x-user", "u1");
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 5000, .metadata = metadata};

    torc_result *result = torc_unary(channel, "echo.Echo/Say", message, strlen(message), &options);
    int rc = torc_result_code(result);
    const torc_metadata *headers = torc_result_headers(result);
    const char *backend = headers ? torc_metadata_find(headers, "x-backend", NULL) : NULL;
    printf("%s from %s (%s): %.*s%s\n", torc_status_code_name(rc), torc_result_peer(result), backend ? backend : "-",
           (int)torc_message_size(torc_result_response(result)),
           (const char *)torc_message_data(torc_result_response(result)), torc_result_text(result));
    torc_result_free(result);
    torc_metadata_free(metadata);
    torc_channel_free(channel);
    torc_runtime_free(runtime);
    return rc == 0 ? 0 : 1;
}
