/* Jobs wait in a list under one lock of the process. A job that finds no thread starts one. The thread ends when the
 * list is empty, or when the process exits: the jobs that wait then never run. Where the system refuses a thread, the
 * caller runs the job itself. */
#include "io/background_thread.h"

#include "base/exit.h"
#include "base/fork.h"
#include "base/thread.h"

/* All three variables are under the process's lock of rank TC_RANK_BACKGROUND. */
static struct tc_link jobs = {&jobs, &jobs};
static bool running;
static unsigned generation;

/* In a forked child the thread and its jobs are the parent's: the child starts with none. */
static void jobs_forget_parent(void)
{
    if (generation == tc_fork_generation())
        return;
    generation = tc_fork_generation();
    tc_list_init(&jobs);
    running = false;
}

static void background_main(void *arg)
{
    struct tc_lock *lock = arg;
    struct tc_link *link;
    for (;;) {
        tc_lock_take(lock);
        link = tc_exiting() ? NULL : tc_list_pop(&jobs);
        running = link != NULL;
        tc_lock_give(lock);
        if (!link)
            return;
        struct tc_job *job = TC_CONTAINER_OF(link, struct tc_job, link);
        job->run(job);
    }
}

void tc_background_run(struct tc_job *job)
{
    struct tc_lock *lock = tc_lock_of_process(TC_RANK_BACKGROUND);
    tc_list_init(&job->link);
    tc_lock_take(lock);
    jobs_forget_parent();
    tc_list_append(&jobs, &job->link);
    if (!running)
        running = tc_thread_start(NULL, background_main, lock) == 0;
    bool here = !running;
    if (here)
        tc_list_remove(&job->link);
    tc_lock_give(lock);
    if (here)
        job->run(job);
}
