/* Jobs on the background thread: they run in order, on another thread than the caller's, also after the thread ended,
 * and in a child of the process. */
#include "io/background_thread.h"

#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/gate.h"
#include "support/sanitizer.h"

struct step {
    struct tc_job job;
    pthread_t by; /* the thread that ran the job */
    unsigned at;  /* the place of the job among those that ran, from 1 */
};

/* How many times `note` ran. The background thread counts; the test's thread sets the number only while no job of
 * `note` can run. */
static unsigned steps;

static void note(struct tc_job *job)
{
    struct step *s = TC_CONTAINER_OF(job, struct step, job);
    s->by = pthread_self();
    s->at = ++steps;
}

static void jobs_run_in_order_elsewhere(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        struct gate g;
        struct step s[3];
        steps = 0;
        gate_close(&g);
        for (unsigned i = 0; i < 3; i++) {
            s[i] = (struct step){.job.run = note};
            tc_background_run(&s[i].job);
        }
        gate_open(&g);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(s[i].at, i + 1);
            assert_false(pthread_equal(s[i].by, pthread_self()));
        }
    }
}

static void a_child_has_a_thread_of_its_own(void **state)
{
    (void)state;
#if !SANITIZER_THREAD /* ThreadSanitizer supports no threads in a child */
    struct gate g, own;
    struct step s = {.job.run = note};
    gate_close(&g);
    tc_background_run(&s.job); /* the job waits; the child must not run it */
    pid_t child = fork();
    if (child == 0) {
        steps = 0;
        gate_close(&own);
        gate_open(&own);
        _exit(steps != 0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    steps = 0;
    gate_open(&g);
    assert_int_equal(s.at, 1);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_in_order_elsewhere),
        cmocka_unit_test(a_child_has_a_thread_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
