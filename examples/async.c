/* Makes a hundred RPCs at once on the default runtime, which has a thread; main waits for the last result.
 * usage: async [TARGET] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <torc/torc.h>

#define CALLS 100

struct progress {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int done, ok;
    char failure[512]; /* the first failure; "": none */
};

/* Called on the runtime's thread: must not block it for long. */
static void on_result(const torc_result *result, void *arg)
{
    struct progress *p = arg;
    pthread_mutex_lock(&p->lock);
    p->done++;
    p->ok += torc_result_code(result) == TORC_STATUS_OK;
    if (torc_result_code(result) != TORC_STATUS_OK && !p->failure[0])
        snprintf(p->failure, sizeof(p->failure), "%s: %s", torc_status_code_name(torc_result_code(result)),
                 torc_result_text(result));
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

int main(int argc, char **argv)
{
    struct progress p = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, ""};
    torc_error *error = NULL;
    torc_channel *channel = torc_channel_new(NULL, argc > 1 ? argv[1] : "127.0.0.1:50051", NULL, &error);
    if (!channel) {
        fprintf(stderr, "%s\n", torc_error_text(error));
        torc_error_free(error);
        return 1;
    }
    int started = 0;
    while (started < CALLS &&
           torc_unary_async(channel, "echo.Echo/Say", "hello", 5, NULL, on_result, &p, NULL, &error) == 0)
        started++;
    if (error)
        fprintf(stderr, "call %d could not be started: %s\n", started + 1, torc_error_text(error));
    torc_error_free(error);
    pthread_mutex_lock(&p.lock);
    while (p.done < started)
        pthread_cond_wait(&p.changed, &p.lock);
    pthread_mutex_unlock(&p.lock);
    printf("%d of %d calls OK\n", p.ok, CALLS);
    if (p.failure[0])
        fprintf(stderr, "the first that failed: %s\n", p.failure);
    torc_channel_free(channel);
    return p.ok == CALLS ? 0 : 1;
}
