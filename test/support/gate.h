/* Holds up the worker (io/worker.h): what is given to it waits until the gate opens. */
#ifndef TC_SUPPORT_GATE_H
#define TC_SUPPORT_GATE_H

#include <pthread.h>
#include <stdbool.h>

#include "io/worker.h"

struct gate {
    struct tc_job job;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool open, reached, passed;
};

/* Returns when the worker stands at the closed gate. */
void gate_close(struct gate *g);
/* Opens it; returns when the worker has done everything that it was given before. */
void gate_open(struct gate *g);

#endif
