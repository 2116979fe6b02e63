/* An application that is linked with libtorc.a and has a google.rpc.Status of its own, whose functions and descriptor
 * have the same names as those of Torc's copy. For test/e2e/own_names_test.py. Makes an RPC to the target that is the
 * first argument, and prints the outcome. Then packs and unpacks a message of its own, and prints whether it is kept.
 * Holds the channel until standard input ends. Exits with 1 if the channel cannot be made, otherwise with 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "own_names/status.pb-c.h"

static int own_status_is_kept(void)
{
    Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
    status.message = "mine";
    status.code = 7;
    uint8_t bytes[64];
    size_t n = google__rpc__status__pack(&status, bytes);
    Google__Rpc__Status *back = google__rpc__status__unpack(NULL, n, bytes);
    int kept = back && back->code == 7 && strcmp(back->message, "mine") == 0;
    if (back)
        google__rpc__status__free_unpacked(back, NULL);
    return kept;
}

int main(int argc, char **argv)
{
    torc_error *error = NULL;
    torc_channel *channel = torc_channel_new(NULL, argc > 1 ? argv[1] : "", NULL, &error);
    if (!channel) {
        printf("no channel: %s\n", torc_error_text(error));
        torc_error_free(error);
        return 1;
    }
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 10000};
    torc_result *result = torc_unary(channel, "echo.Echo/Say", "", 0, &options);
    printf("%s: %s\n", torc_status_code_name(torc_result_code(result)), torc_result_text(result));
    torc_result_free(result);
    printf("own status: %s\n", own_status_is_kept() ? "kept" : "broken");
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    torc_channel_free(channel);
    return 0;
}
