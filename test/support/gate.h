/* Blocks the background thread (io/background_thread.h): jobs given to it wait until the gate opens. */
#ifndef TC_SUPPORT_GATE_H
#define TC_SUPPORT_GATE_H

#include <pthread.h>
#include <stdbool.h>

#include "io/background_thread.h"

struct gate {
    struct tc_job job;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool open, reached, passed;
};

/* Returns once the background thread stands at the closed gate. */
void gate_close(struct gate *g);
/* Opens the gate. Returns once the background thread has done every job that it was given before. */
void gate_open(struct gate *g);

#endif
