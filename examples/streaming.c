/* A bidirectional stream, blocking: sends ten messages, receives each echo. usage: streaming TARGET */
#include <stdio.h>
#include <stdlib.h>

#include <torc/torc.h>

int main(int argc, char **argv)
{
    torc_error *error = NULL;
    torc_channel *channel = torc_channel_new(NULL, argc > 1 ? argv[1] : "127.0.0.1:50051", NULL, &error);
    if (!channel) {
        fprintf(stderr, "%s\n", torc_error_text(error));
        torc_error_free(error);
        return 1;
    }
    int received = 0;
    torc_call *call = torc_call_open(channel, "echo.Echo/Chat", NULL, &error);
    if (!call) {
        fprintf(stderr, "cannot start: %s\n", torc_error_text(error));
        torc_error_free(error);
        torc_channel_free(channel);
        return 1;
    }
    for (int i = 0; i < 10; i++) {
        char text[32];
        int n = snprintf(text, sizeof(text), "message %d", i);
        if (torc_call_send(call, text, (size_t)n, i == 9) != 0)
            break; /* the call is over; torc_call_finish says why */
        torc_message *message;
        if (torc_call_receive(call, &message) != 1)
            break;
        printf("%.*s\n", (int)torc_message_size(message), (const char *)torc_message_data(message));
        torc_message_unref(message);
        received++;
    }
    struct torc_result result;
    int rc = torc_call_finish(call, &result);
    if (rc == 0) {
        printf("%s after %d messages %s\n", torc_status_code_name(result.code), received, result.message);
        rc = result.code;
        torc_result_fini(&result);
    }
    torc_call_free(call);
    torc_channel_free(channel);
    return rc == 0 && received == 10 ? 0 : 1;
}
