/* A bidirectional stream on a server, by events on the runtime's thread: echoes each message, no faster than the client
 * reads. usage: server_stream [ADDRESS] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <torc/torc.h>

struct chat {
    torc_message *waiting; /* a reference: received, not sent yet for want of room; NULL: none */
};

/* Echoes one message at a time: asks for the next message when torc_server_call_send has taken this one. */
static void send_back(torc_server_call *call, struct chat *chat, const torc_message *message)
{
    int rc = torc_server_call_send(call, torc_message_data(message), torc_message_size(message), 0, 0);
    if (rc == TORC_EAGAIN)
        chat->waiting = torc_message_ref(message); /* on_writable sends it */
    else if (rc == 0)
        torc_server_call_want(call, 1);
}

static void on_message(torc_server_call *call, const torc_message *message, void *arg)
{
    send_back(call, arg, message);
}

static void on_writable(torc_server_call *call, void *arg)
{
    struct chat *chat = arg;
    torc_message *message = chat->waiting;
    chat->waiting = NULL;
    if (message)
        send_back(call, chat, message);
    torc_message_unref(message);
}

static void on_half_close(torc_server_call *call, void *arg)
{
    (void)arg;
    torc_server_call_finish(call, TORC_STATUS_OK, NULL, NULL);
}

static void on_cancel(torc_server_call *call, void *arg)
{
    (void)arg;
    torc_server_call_finish(call, TORC_STATUS_CANCELLED, NULL, NULL); /* only frees the call */
}

static void on_release(void *arg)
{
    struct chat *chat = arg;
    torc_message_unref(chat->waiting);
    free(chat);
}

static void on_chat(torc_server_call *call, void *arg)
{
    static const struct torc_server_call_events events = {
        TORC_SIZE(torc_server_call_events), .on_message = on_message, .on_half_close = on_half_close,
        .on_writable = on_writable,         .on_cancel = on_cancel,   .release = on_release,
    };
    struct chat *chat = calloc(1, sizeof(*chat));
    (void)arg;
    if (chat && torc_server_call_set_events(call, &events, chat) == 0) {
        torc_server_call_want(call, 1);
        return;
    }
    free(chat);
    torc_server_call_finish(call, TORC_STATUS_RESOURCE_EXHAUSTED, "no memory", NULL);
}

int main(int argc, char **argv)
{
    struct torc_handler chat = {TORC_SIZE(torc_handler), .stream = on_chat};
    torc_error *error = NULL;
    char *bound = NULL;
    sigset_t signals;
    int signal;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before Torc makes a thread */

    torc_server *server = torc_server_new(NULL, &error);
    torc_server_add_method(server, "echo.Echo/Chat", &chat, &error);
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
    torc_error_free(error);
    torc_free(bound);
    return failed;
}
