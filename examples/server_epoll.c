/* A server inside the application's own epoll loop: the runtime has no thread, and no function of Torc blocks in the
 * loop. Handlers are called inside torc_runtime_poll, on the thread of main. SIGTERM or SIGINT stops the server
 * gracefully, within 10 seconds. usage: server_epoll [ADDRESS] */
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <torc/torc.h>

static void on_say(torc_server_call *call, const torc_message *request, void *arg)
{
    (void)arg;
    torc_server_call_reply(call, torc_message_data(request), torc_message_size(request));
}

static void on_stopped(void *arg)
{
    *(int *)arg = 1;
}

/* Drives the runtime until the server has stopped. Returns 0, or -1 with errno if epoll cannot be set up. */
static int serve(torc_runtime *runtime, torc_server *server, int signals)
{
    int stopped = 0, stopping = 0, epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event torc = {.events = EPOLLIN, .data.fd = torc_runtime_fd(runtime)};
    struct epoll_event stop = {.events = EPOLLIN, .data.fd = signals}, event;
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, torc.data.fd, &torc) != 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &stop) != 0)
        return -1; /* the process ends */
    while (!stopped) {
        /* The application waits for its other descriptors here as well. */
        if (epoll_wait(epoll, &event, 1, torc_runtime_timeout_ms(runtime)) == 1 && event.data.fd == signals) {
            struct signalfd_siginfo info;
            if (read(signals, &info, sizeof(info)) == sizeof(info) && !stopping++)
                torc_server_stop_async(server, 10000, on_stopped, &stopped);
        }
        torc_runtime_poll(runtime, 0);
    }
    close(epoll);
    return 0;
}

int main(int argc, char **argv)
{
    struct torc_runtime_options runtime_options = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    struct torc_handler say = {TORC_SIZE(torc_handler), .unary = on_say};
    torc_error *error = NULL;
    char *bound = NULL;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);

    torc_runtime *runtime = torc_runtime_new(&runtime_options, &error);
    struct torc_server_options options = {TORC_SIZE(torc_server_options), .runtime = runtime};
    torc_server *server = torc_server_new(&options, &error);
    torc_server_add_method(server, "echo.Echo/Say", &say, &error);
    torc_server_listen(server, argc > 1 ? argv[1] : "127.0.0.1:50051", torc_credentials_insecure(), &bound, &error);
    int failed = torc_server_start(server, &error) != 0;
    if (!failed) {
        printf("listening %s\n", bound);
        fflush(stdout);
        failed = serve(runtime, server, signalfd(-1, &signals, SFD_CLOEXEC)) != 0;
        if (failed)
            perror("epoll");
    } else {
        fprintf(stderr, "%s\n", torc_error_text(error));
    }
    torc_server_free(server);
    torc_runtime_free(runtime);
    torc_error_free(error);
    torc_free(bound);
    return failed;
}
