/* The gate is itself a job: it holds the background thread on a condition until the gate opens. */
#include "support/gate.h"

static void wait_open(struct tc_job *job)
{
    struct gate *g = TC_CONTAINER_OF(job, struct gate, job);
    pthread_mutex_lock(&g->mutex);
    g->reached = true;
    pthread_cond_broadcast(&g->cond);
    while (!g->open)
        pthread_cond_wait(&g->cond, &g->mutex);
    g->passed = true;
    pthread_cond_broadcast(&g->cond);
    pthread_mutex_unlock(&g->mutex);
}

/* Initialises the gate and gives its job to the background thread. */
static void init(struct gate *g, bool open)
{
    *g = (struct gate){.job.run = wait_open, .open = open};
    pthread_mutex_init(&g->mutex, NULL);
    pthread_cond_init(&g->cond, NULL);
    tc_background_run(&g->job);
}

/* Waits until the job is past the gate, then destroys the mutex and the condition. */
static void wait_passed(struct gate *g)
{
    pthread_mutex_lock(&g->mutex);
    while (!g->passed)
        pthread_cond_wait(&g->cond, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
    pthread_mutex_destroy(&g->mutex);
    pthread_cond_destroy(&g->cond);
}

void gate_close(struct gate *g)
{
    init(g, false);
    pthread_mutex_lock(&g->mutex);
    while (!g->reached)
        pthread_cond_wait(&g->cond, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

void gate_open(struct gate *g)
{
    struct gate behind;
    init(&behind, true);
    pthread_mutex_lock(&g->mutex);
    g->open = true;
    pthread_cond_broadcast(&g->cond);
    pthread_mutex_unlock(&g->mutex);
    wait_passed(g);
    wait_passed(&behind);
}
