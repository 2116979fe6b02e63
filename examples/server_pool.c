/* A server whose handlers may block: they run on a pool of four threads. Up to 100 calls wait for a thread; more calls
 * end with RESOURCE_EXHAUSTED. usage: server_pool [ADDRESS] */
#include <signal.h>
#include <stdio.h>

#include <torc/torc.h>

/* Unary: may do what takes long (a query, a file). */
static void on_say(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

/* A stream by functions that block. They return TORC_ECANCELED when the RPC ends early, as when the client cancels. */
static void on_chat(torc_server_call *call, void *arg)
{
    const torc_message *message;
    (void)arg;
    while (torc_server_call_receive(call, -1, &message) == 1)
        if (torc_server_call_send(call, torc_message_data(message), torc_message_size(message), 0, -1) != 0)
            break;
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

int main(int argc, char **argv)
{
    struct torc_handler say = {TORC_SIZE(torc_handler), .unary = on_say};
    struct torc_handler chat = {TORC_SIZE(torc_handler), .stream = on_chat};
    torc_error *error = NULL;
    char *bound = NULL;
    sigset_t signals;
    int signal;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before Torc makes a thread */

    torc_pool *pool = torc_pool_new(4, 100, &error);
    torc_server *server = torc_server_new(NULL, &error);
    struct torc_method_options options = {TORC_SIZE(torc_method_options), .pool = pool};
    torc_server_add_method(server, "echo.Echo/Say", &say, &error);
    torc_server_add_method(server, "echo.Echo/Chat", &chat, &error);
    torc_server_limit(server, "echo.Echo", &options, &error);
    torc_server_listen(server, argc > 1 ? argv[1] : "127.0.0.1:50051", torc_credentials_insecure(), &bound, &error);
    if (torc_server_start(server, &error) == 0) {
        printf("listening %s\n", bound);
        fflush(stdout);
        sigwait(&signals, &signal);
        torc_server_stop(server, 10000);
    } else {
        fprintf(stderr, "%s\n", torc_error_text(error));
    }
    int failed = error != NULL;
    torc_server_free(server);
    torc_pool_free(pool); /* waits until handlers that still run have returned */
    torc_error_free(error);
    torc_free(bound);
    return failed;
}
