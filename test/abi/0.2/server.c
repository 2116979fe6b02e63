/* A server: a unary method, one of streams on a pool, limits, health, and its stop; with a client of the library's. */
#include <torc/torc.h>

#include "poisoned.h"

struct hello {
    int released; /* first */
    const char *greeting;
};

static void say_hello(torc_server_call *call, const torc_message *request, void *arg)
{
    const char *text =
        torc_server_call_printf(call, "%s, %.*s", ((const struct hello *)arg)->greeting,
                                (int)torc_message_size(request), (const char *)torc_message_data(request));
    printf("%s, secure %d, time left %d\n", torc_server_call_method(call), torc_server_call_secure(call),
           torc_server_call_time_left(call) > 0);
    torc_server_call_reply(call, text, strlen(text));
}

static void chat(torc_server_call *call, void *arg)
{
    const torc_message *message;
    (void)arg;
    torc_metadata *headers = torc_metadata_new();
    torc_metadata_add_string(headers, "x-chat", "yes");
    printf("send_headers %d\n", torc_server_call_send_headers(call, headers));
    torc_metadata_free(headers);
    while (torc_server_call_receive(call, 60000, &message) == 1)
        torc_server_call_send(call, torc_message_data(message), torc_message_size(message), 0, 60000);
    torc_server_call_finish(call, TORC_STATUS_ALREADY_EXISTS, "enough", NULL);
}

static void on_release(void *arg)
{
    ++*(int *)arg;
}

static void talk(const char *address)
{
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 60000};
    torc_channel *channel = torc_channel_new(NULL, address, NULL, NULL);
    torc_result *result = torc_unary(channel, "hello.Hello/Say", "you", 3, &options);
    const torc_message *response = torc_result_response(result);
    printf("unary: %s\n", response ? (const char *)torc_message_data(response) : torc_result_text(result));
    torc_result_free(result);

    const torc_message *message;
    const torc_metadata *headers = NULL;
    torc_stream *stream = torc_stream_open(channel, "hello.Hello/Chat", &options, NULL);
    torc_stream_send(stream, "ping", 4, TORC_SEND_LAST, 60000);
    torc_stream_headers(stream, 60000, &headers);
    printf("x-chat %s\n", torc_metadata_find(headers, "x-chat", NULL));
    while (torc_stream_receive(stream, 60000, &message) == 1)
        printf("stream: %.*s\n", (int)torc_message_size(message), (const char *)torc_message_data(message));
    result = torc_stream_finish(stream);
    printf("stream: %s %s\n", torc_status_code_name(torc_result_code(result)), torc_result_text(result));
    torc_result_free(result);
    torc_stream_free(stream);

    result = torc_unary(channel, "hello.Hello/Unknown", "", 0, &options);
    printf("unknown: %s\n", torc_status_code_name(torc_result_code(result)));
    torc_result_free(result);
    result = torc_unary(channel, "grpc.health.v1.Health/Check", "", 0, &options);
    response = torc_result_response(result);
    printf("health: %s %d\n", torc_status_code_name(torc_result_code(result)),
           response && torc_message_size(response) == 2 ? ((const char *)torc_message_data(response))[1] : -1);
    torc_result_free(result);
    torc_channel_free(channel);
}

int main(void)
{
    struct hello hello = {0, "Hello"};
    int chats_released = 0;
    struct torc_server_options *options = POISONED(torc_server_options);
    struct torc_handler *unary = POISONED(torc_handler), *stream = POISONED(torc_handler);
    struct torc_method_options *limits = POISONED(torc_method_options);
    torc_error *error = NULL;
    char *address = NULL;
    options->size = sizeof(*options);
    options->max_receive_message_bytes = 1000;
    torc_server *server = torc_server_new(options, &error);
    *unary = (struct torc_handler){TORC_SIZE(torc_handler), .unary = say_hello, .release = on_release, .arg = &hello};
    *stream =
        (struct torc_handler){TORC_SIZE(torc_handler), .stream = chat, .release = on_release, .arg = &chats_released};
    torc_pool *pool = torc_pool_new(2, 10, &error);
    *limits = (struct torc_method_options){TORC_SIZE(torc_method_options), .pool = pool, .max_calls = 5};
    torc_server_add_method(server, "hello.Hello/Say", unary, &error);
    torc_server_add_method(server, "/hello.Hello/Chat", stream, &error);
    torc_server_limit(server, "hello.Hello/Chat", limits, &error);
    torc_health *health = torc_health_new(server, &error);
    torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &address, &error);
    printf("start %d", torc_server_start(server, &error));
    printf(" %d\n", torc_error_code(error));
    printf("twice %d", torc_server_start(server, &error) < 0);
    printf(" %d\n", torc_error_code(error));
    torc_error_clear(&error);
    printf("health %d\n", torc_health_set(health, "", TORC_HEALTH_SERVING));
    talk(address);
    torc_free(address);
    printf("stop %d\n", torc_server_stop(server, 60000));
    torc_health_free(health);
    torc_server_free(server);
    printf("released %d %d\n", hello.released, chats_released);
    printf("pool %d\n", torc_pool_free(pool));
    return poisoned_end();
}
