/* A client: options, metadata, calls that wait and calls that do not, streams in both ways, and what results say. */
#include <pthread.h>
#include <torc/torc.h>

#include "poisoned.h"

static void say(const char *what, const torc_result *result)
{
    const torc_message *response = torc_result_response(result);
    printf("%s: %s \"%.*s\" attempts %u error %d\n", what, torc_status_code_name(torc_result_code(result)),
           response ? (int)torc_message_size(response) : 0, response ? (const char *)torc_message_data(response) : "",
           (unsigned)torc_result_attempts(result), torc_error_code(torc_result_error(result)));
}

static void unary(torc_channel *channel)
{
    struct torc_call_options *options = POISONED(torc_call_options);
    torc_metadata *metadata = torc_metadata_new();
    size_t size = 0;
    options->size = sizeof(*options);
    options->timeout_ms = 60000;
    options->wait_for_ready = TORC_ON;
    torc_metadata_add(metadata, "x-bytes-bin", "\1\2", 2);
    printf("add_string %d\n", torc_metadata_add_string(metadata, "grpc-timeout", "1S"));
    options->metadata = metadata;
    torc_result *result = torc_unary(channel, "echo.Echo/Say", "hello", 5, options);
    say("unary", result);
    const torc_metadata *headers = torc_result_headers(result);
    printf("x-backend %s, peer %d, fields %d\n", torc_metadata_find(headers, "x-backend", &size),
           torc_result_peer(result)[0] != 0, torc_metadata_count(headers) > 0);
    torc_result_free(result);
    torc_metadata_free(metadata);

    options->metadata = NULL;
    options->timeout_ms = -1;
    result = torc_unary(channel, "echo.Echo/Say", "hello", 5, options);
    say("too late", result);
    torc_result_free(result);
    options->timeout_ms = 60000;
    result = torc_unary(channel, "torc.test.Backend/Fail", "5", 1, options);
    say("failed", result);
    printf("layer of the peer %d\n", torc_error_layer(torc_result_error(result)) == TORC_LAYER_PEER);
    torc_result_free(result);
    options->wait_for_ready = 7;
    result = torc_unary(channel, "echo.Echo/Say", "hello", 5, options);
    say("out of range", result);
    torc_result_free(result);
}

struct waited {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int messages, ended;
};

static void lock_and(struct waited *w, int *what)
{
    pthread_mutex_lock(&w->mutex);
    ++*what;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

static void await(struct waited *w, const int *what, int n)
{
    pthread_mutex_lock(&w->mutex);
    while (*what < n)
        pthread_cond_wait(&w->changed, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
}

static void on_result(const torc_result *result, void *arg)
{
    struct waited *w = arg;
    say("async", result);
    lock_and(w, &w->ended);
}

static void on_message(torc_stream *stream, const torc_message *message, void *arg)
{
    struct waited *w = arg;
    (void)stream;
    printf("event: \"%.*s\"\n", (int)torc_message_size(message), (const char *)torc_message_data(message));
    lock_and(w, &w->messages);
}

static void on_done(torc_stream *stream, const torc_result *result, void *arg)
{
    struct waited *w = arg;
    printf("event: done %s %d\n", torc_status_code_name(torc_result_code(result)), stream == NULL);
    lock_and(w, &w->ended);
}

static void without_waiting(torc_channel *channel)
{
    struct waited w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    struct torc_stream_events *events = POISONED(torc_stream_events);
    torc_stream *handle = NULL;
    printf("unary_async %d\n",
           torc_unary_async(channel, "echo.Echo/Say", "async", 5, NULL, on_result, &w, &handle, NULL));
    await(&w, &w.ended, 1);
    torc_stream_free(handle);
    events->size = sizeof(*events);
    events->on_message = on_message;
    events->on_done = on_done;
    torc_stream *stream = torc_stream_start(channel, "echo.Echo/Chat", NULL, events, &w, NULL);
    torc_stream_want(stream, 2);
    printf("send %d\n", torc_stream_send(stream, "one", 3, 0, 0));
    await(&w, &w.messages, 1);
    printf("send %d\n", torc_stream_send(stream, "two", 3, TORC_SEND_LAST, 0));
    await(&w, &w.ended, 2);
    torc_stream_free(stream);
}

static void stream(torc_channel *channel)
{
    torc_error *error = NULL;
    const torc_message *message;
    const torc_metadata *headers;
    torc_stream *s = torc_stream_open(channel, "echo.Echo/Chat", NULL, &error);
    printf("send %d\n", torc_stream_send(s, "first", 5, 0, 60000));
    printf("headers %d\n", torc_stream_headers(s, 60000, &headers));
    printf("receive %d", torc_stream_receive(s, 60000, &message));
    printf(" \"%.*s\"\n", (int)torc_message_size(message), (const char *)torc_message_data(message));
    printf("receive %d\n", torc_stream_receive(s, 0, &message));
    printf("half-close %d\n", torc_stream_half_close(s));
    printf("late %d\n", torc_stream_send(s, "late", 4, 0, 0) < 0);
    printf("receive %d\n", torc_stream_receive(s, 60000, &message));
    torc_result *result = torc_stream_finish(s);
    say("stream", result);
    torc_result_free(result);
    torc_stream_free(s);
    s = torc_stream_open(channel, "torc.test.Backend/Hang", NULL, &error);
    torc_stream_cancel(s);
    result = torc_stream_finish(s);
    printf("cancelled: %s\n", torc_status_code_name(torc_result_code(result)));
    torc_result_free(result);
    torc_stream_free(s);
    printf("no channel %d", torc_stream_open(NULL, "a/b", NULL, &error) == NULL);
    printf(" %d\n", torc_error_code(error));
    torc_error_clear(&error);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    struct torc_runtime_options *runtime_options = POISONED(torc_runtime_options);
    struct torc_channel_options *options = POISONED(torc_channel_options);
    torc_error *error = NULL;
    enum torc_connectivity state;
    char *json = NULL;
    runtime_options->size = sizeof(*runtime_options);
    runtime_options->idle_connection_ms = -1;
    torc_runtime *runtime = torc_runtime_new(runtime_options, &error);
    options->size = sizeof(*options);
    options->credentials = torc_credentials_insecure();
    options->connect_timeout_ms = 60000;
    torc_channel *channel = torc_channel_new(runtime, argv[1], options, &error);
    printf("error %d, target %d\n", torc_error_code(error), strcmp(torc_channel_target(channel), argv[1]));
    printf("state %s\n", torc_connectivity_name(torc_channel_state(channel, false)));
    printf("connect %d\n", torc_channel_connect(channel, 60000));
    printf("wait %d", torc_channel_wait_state(channel, TORC_CONNECTIVITY_IDLE, 60000, &state));
    printf(" %s\n", torc_connectivity_name(state));
    printf("describe %d", torc_channel_describe(channel, &json));
    printf(" %d\n", json && json[0] == '{');
    torc_free(json);
    unary(channel);
    without_waiting(channel);
    stream(channel);
    options->keepalive_timeout_ms = -5;
    printf("refused %d\n", torc_channel_new(runtime, argv[1], options, &error) == NULL);
    printf("%d %d\n", torc_error_code(error), strstr(torc_error_text(error), "keepalive_timeout_ms") != NULL);
    torc_error_clear(&error);
    torc_channel_free(channel);
    printf("runtime %d\n", torc_runtime_free(runtime));
    return poisoned_end();
}
