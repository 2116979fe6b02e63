/* Torc inside the application's own epoll loop: the runtime has no thread, and no function of Torc blocks in the loop.
 * Results come inside torc_runtime_poll, on the thread of main. usage: epoll_loop [TARGET] */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <torc/torc.h>

static int left = 3;
static int failed;

static void on_result(const torc_result *result, void *arg)
{
    printf("call %d: %s from %s %s\n", *(int *)arg, torc_status_code_name(torc_result_code(result)),
           torc_result_peer(result), torc_result_text(result));
    failed += torc_result_code(result) != TORC_STATUS_OK;
    left--;
}

int main(int argc, char **argv)
{
    struct torc_runtime_options ro = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_error *error = NULL;
    torc_runtime *runtime = torc_runtime_new(&ro, &error);
    torc_channel *channel = torc_channel_new(runtime, argc > 1 ? argv[1] : "127.0.0.1:50051", NULL, &error);
    if (!channel) {
        fprintf(stderr, "%s\n", torc_error_text(error));
        torc_error_free(error);
        torc_runtime_free(runtime);
        return 1;
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    int numbers[3] = {1, 2, 3};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, torc_runtime_fd(runtime), &event) != 0) {
        perror("epoll");
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        torc_unary_async(channel, "echo.Echo/Say", "hello", 5, NULL, on_result, &numbers[i], NULL, &error);
        if (error) {
            fprintf(stderr, "call %d could not be started: %s\n", numbers[i], torc_error_text(error));
            return 1;
        }
    }
    while (left > 0) {
        /* The application waits for its other descriptors here as well. */
        epoll_wait(epoll, &event, 1, torc_runtime_timeout_ms(runtime));
        torc_runtime_poll(runtime, 0);
    }
    torc_channel_free(channel);
    torc_runtime_free(runtime);
    close(epoll);
    return failed;
}
