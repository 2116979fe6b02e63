/* The ration of a manual loop: how much work a turn does, the order of the tasks that wait for more, and a task that
 * forks. */
#include "io/ration.h"

#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"

struct worker {
    struct tc_task task;
    struct tc_ration *ration; /* the loop's */
    size_t bytes;             /* of one piece of its work */
    unsigned left, done;      /* pieces */
};

static pid_t forked; /* what fork returned in fork_here */

/* Works as long as it may, then waits. */
static void work(struct tc_task *task)
{
    struct worker *w = TC_CONTAINER_OF(task, struct worker, task);
    while (w->left && !tc_ration_used_up(w->ration)) {
        tc_ration_use(w->ration, w->bytes);
        w->left--;
        w->done++;
    }
    if (w->left)
        tc_ration_wait(w->ration, &w->task);
}

/* Returns a manual loop, which the caller frees. Sets `n` workers with `pieces` pieces of `bytes` bytes each, and
 * defers their tasks in order. */
static struct tc_loop *loop_of(struct worker *workers, size_t n, size_t bytes, unsigned pieces)
{
    struct tc_loop *loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    for (size_t i = 0; i < n; i++) {
        workers[i] = (struct worker){.ration = tc_loop_ration(loop), .bytes = bytes, .left = pieces};
        tc_task_init(&workers[i].task, work);
        tc_loop_defer(loop, &workers[i].task);
    }
    return loop;
}

static unsigned done_by(const struct worker *workers, size_t n)
{
    unsigned done = 0;
    for (size_t i = 0; i < n; i++)
        done += workers[i].done;
    return done;
}

/* Each turn does one ration of work, at its end. The first turn does one more before that, when the deferred tasks
 * run. The first worker is never behind another one, and never more than two rations ahead of it. */
static void all_get_the_same(void **state)
{
    static const size_t sizes[] = {TC_RATION_BYTES / 4, TC_RATION_BYTES, SIZE_MAX};
    enum { N = 5, PIECES = 12 };
    (void)state;
    for (size_t k = 0; k < TC_ARRAY_LEN(sizes); k++) {
        struct worker w[N];
        struct tc_loop *loop = loop_of(w, N, sizes[k], PIECES);
        unsigned of_a_turn = k ? 1 : 4, before = of_a_turn, turns = 0;
        while (done_by(w, N) < N * PIECES) {
            turns++;
            assert_true(tc_loop_turn(loop, 0));
            assert_int_equal(done_by(w, N) - before, of_a_turn);
            before = done_by(w, N);
            for (size_t i = 1; i < N; i++)
                assert_in_range(w[0].done, w[i].done, w[i].done + 2 * of_a_turn); /* worker 0 began */
        }
        assert_int_equal(turns, N * PIECES / of_a_turn - 1);
        tc_loop_drain(loop);
        assert_false(tc_ration_used_up(tc_loop_ration(loop)));
        tc_loop_free(loop);
    }
}

/* A worker that comes while others wait does not overtake them. A worker that is cancelled waits no longer. */
static void nobody_overtakes(void **state)
{
    (void)state;
    struct worker w[4];
    struct tc_loop *loop = loop_of(w, 4, TC_RATION_BYTES, 1);
    tc_task_cancel(&w[3].task);
    tc_loop_turn(loop, 0); /* the first one, and the second at the end of the turn */
    assert_int_equal(done_by(w, 4), 2);
    tc_loop_defer(loop, &w[3].task);
    tc_loop_turn(loop, 0);
    assert_int_equal(w[2].done, 1);
    assert_int_equal(w[3].done, 0);
    tc_task_cancel(&w[3].task);
    tc_loop_drain(loop);
    assert_int_equal(w[3].done, 0);
    tc_loop_free(loop);
}

static void fork_here(struct tc_task *task)
{
    (void)task;
    forked = fork();
}

/* A task that waits for the ration forks, as a callback of the application may. In the child no further task runs. */
static void the_child_of_a_task_runs_no_other_task(void **state)
{
    (void)state;
    struct worker w[2];
    struct tc_loop *loop = loop_of(w, 2, TC_RATION_BYTES, 1);
    struct tc_task forks;
    tc_task_init(&forks, fork_here);
    tc_ration_use(tc_loop_ration(loop), TC_RATION_BYTES);
    tc_ration_wait(tc_loop_ration(loop), &forks);
    tc_loop_turn(loop, 0);
    if (forked == 0)
        _exit((int)done_by(w, 2));
    int status;
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(done_by(w, 2), 1);
    tc_loop_drain(loop);
    assert_int_equal(done_by(w, 2), 2);
    tc_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_get_the_same),
        cmocka_unit_test(nobody_overtakes),
        cmocka_unit_test(the_child_of_a_task_runs_no_other_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
