/* One RPC with google_default credentials (TLS, and a token over HTTP) to the target that is the first argument. Prints
 * the outcome. Exits with 1 if the target is missing, or the credentials or the channel cannot be made; otherwise with
 * 0, also if the RPC fails. An application of the shared library, for test/e2e/late_loading_test.py. */
#include <stdio.h>
#include <stdlib.h>

#include <torc/torc.h>

int main(int argc, char **argv)
{
    torc_error *error = NULL;
    torc_credentials *credentials = torc_credentials_google_default(NULL, &error);
    if (argc < 2 || !credentials) {
        printf("no credentials: %s\n", torc_error_text(error) ? torc_error_text(error) : "");
        torc_error_clear(&error);
        return 1;
    }
    struct torc_channel_options options = {TORC_SIZE(torc_channel_options), .credentials = credentials};
    torc_channel *channel = torc_channel_new(NULL, argv[1], &options, &error);
    if (!channel) {
        printf("no channel: %s\n", torc_error_text(error));
        return 1;
    }
    struct torc_call_options call = {TORC_SIZE(torc_call_options), .timeout_ms = 10000};
    torc_result *result = torc_unary(channel, "echo.Echo/Say", "", 0, &call);
    printf("%s: %s\n", torc_status_code_name(torc_result_code(result)), torc_result_text(result));
    torc_result_free(result);
    torc_channel_free(channel);
    torc_credentials_unref(credentials);
    return 0;
}
