/* Blocks the background thread (io/background_thread.h): jobs given to it wait until the gate opens. The gate's struct
 * must stay in place until gate_open has returned. */
#ifndef TC_SUPPORT_GATE_H
#define TC_SUPPORT_GATE_H

#include <pthread.h>
#include <stdbool.h>

#include "io/background_thread.h"

struct gate {
    struct tc_job job;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    /* Under the mutex. reached: the background thread has come to the gate; passed: the thread has gone on. */
    bool open, reached, passed;
};

/* Initialises *g and closes the gate. Returns once the background thread has come to it. gate_open must follow. */
void gate_close(struct gate *g);
/* Opens the gate. Returns once the background thread has done every job that it was given before this call. *g then
 * holds nothing, and may be closed again. */
void gate_open(struct gate *g);

#endif
