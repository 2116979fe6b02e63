/* A hundred RPCs at a time, on the runtime's own thread; main waits for the last. usage: async TARGET */
#include <pthread.h>
#include <stdio.h>

#include <torc/torc.h>

#define CALLS 100

struct progress {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int done, ok;
};

/* On the loop's thread: short, and never blocking. */
static void on_result(const struct torc_result *result, void *arg)
{
    struct progress *p = arg;
    pthread_mutex_lock(&p->lock);
    p->done++;
    p->ok += result->code == TORC_STATUS_OK;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

int main(int argc, char **argv)
{
    struct progress p = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    torc_channel *channel = torc_channel_new(NULL, argc > 1 ? argv[1] : "127.0.0.1:50051", NULL, NULL);
    int started = 0;
    while (channel && started < CALLS &&
           torc_call_unary_async(channel, "echo.Echo/Say", "hello", 5, NULL, on_result, &p, NULL) == 0)
        started++;
    pthread_mutex_lock(&p.lock);
    while (p.done < started)
        pthread_cond_wait(&p.changed, &p.lock);
    pthread_mutex_unlock(&p.lock);
    printf("%d of %d calls OK\n", p.ok, CALLS);
    torc_channel_free(channel);
    return p.ok == CALLS ? 0 : 1;
}
