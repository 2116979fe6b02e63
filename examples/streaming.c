/* A bidirectional stream by functions that block: sends ten messages, and receives the echo of each before the next.
 * usage: streaming [TARGET] */
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
    torc_stream *call = torc_stream_open(channel, "echo.Echo/Chat", NULL, &error);
    if (!call) {
        fprintf(stderr, "cannot start: %s\n", torc_error_text(error));
        torc_error_free(error);
        torc_channel_free(channel);
        return 1;
    }
    for (int i = 0; i < 10; i++) {
        char text[32];
        int n = snprintf(text, sizeof(text), "message %d", i);
        if (torc_stream_send(call, text, (size_t)n, i == 9 ? TORC_SEND_LAST : 0, -1) != 0)
            break; /* the RPC is over: torc_stream_finish returns its status */
        const torc_message *message;
        if (torc_stream_receive(call, -1, &message) != 1)
            break;
        printf("%.*s\n", (int)torc_message_size(message), (const char *)torc_message_data(message));
        received++;
    }
    torc_result *result = torc_stream_finish(call);
    int rc = torc_result_code(result);
    printf("%s after %d messages %s\n", torc_status_code_name(rc), received, torc_result_text(result));
    torc_result_free(result);
    torc_stream_free(call);
    torc_channel_free(channel);
    return rc == 0 && received == 10 ? 0 : 1;
}
