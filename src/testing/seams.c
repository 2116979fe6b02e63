/* The machine as a world has it: clocks, seeds of random numbers, the environment, loops, threads, background jobs and
 * the watching of files.
 *
 * tc_system_clock and the functions of src without the prefix __wrap_ replace those of src/base/clock.c,
 * src/io/background_thread.c and src/io/file_watch.c, which are not linked. A function __wrap_NAME replaces NAME alone:
 * the rest of NAME's file is linked (TORC_WORLD_WRAPS in src/CMakeLists.txt has the names).
 *
 * Functions of src are for any thread of the world (testing/threads.h); those of seams.h are for the thread of the
 * world. A job belongs to its owner (io/background_thread.h); a struct waiting_job refers to the job until it runs. */
#include "testing/seams.h"

#include <errno.h>
#include <stdlib.h>

#include <torc/time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "io/background_thread.h"
#include "io/file_watch.h"
#include "testing/world.h"

/* The linker's names of the wrapped functions. */
struct tc_loop *__wrap_tc_loop_new(const struct tc_loop_opts *opts);
struct tc_loop *__real_tc_loop_new(const struct tc_loop_opts *opts);
void __wrap_tc_loop_free(struct tc_loop *loop);
void __real_tc_loop_free(struct tc_loop *loop);
void __wrap_tc_rng_init_system(struct tc_rng *rng);
int __wrap_tc_thread_start(struct tc_thread **thread, void (*fn)(void *arg), void *arg);
char *__wrap_getenv(const char *name);

/* --- time --- */

static uint64_t cpu_ns, cpu_most_ns; /* one CPU time for all threads; the bound of tc_world_set_cpu_cost */

static uint64_t clock_monotonic_ns(void *arg TC_UNUSED)
{
    return tc_world_now_ns();
}

static int64_t clock_realtime_ns(void *arg TC_UNUSED)
{
    /* The calendar of a manual loop begins at this moment (io/loop.c). */
    return INT64_C(1700000000) * (int64_t)TC_NS_PER_S + (int64_t)tc_world_now_ns();
}

const struct tc_clock tc_system_clock = {clock_monotonic_ns, clock_realtime_ns, NULL};

int64_t torc_time_ms(void)
{
    return (int64_t)tc_world_now_ms();
}

int64_t torc_time_left(int64_t end_ms)
{
    int64_t now_ms = torc_time_ms();
    return end_ms > now_ms ? end_ms - now_ms : -1;
}

uint64_t tc_thread_cpu_ns(void)
{
    cpu_ns += cpu_most_ns > 0 ? tc_world_below(TC_CHANCE_TURNS, cpu_most_ns) : 0;
    return cpu_ns;
}

void tc_world_set_cpu_cost(uint64_t most_ns)
{
    cpu_most_ns = most_ns;
}

/* --- chance and environment --- */

void __wrap_tc_rng_init_system(struct tc_rng *rng)
{
    tc_rng_init_seed(rng, tc_rng_u64(tc_world_chance(TC_CHANCE_SEEDS)));
}

static const char *(*environment)(const char *name);

void tc_world_set_environment(const char *(*fn)(const char *name))
{
    environment = fn;
}

char *__wrap_getenv(const char *name)
{
    return environment ? (char *)(uintptr_t)environment(name) : NULL;
}

/* --- loops and threads --- */

struct tc_loop *__wrap_tc_loop_new(const struct tc_loop_opts *opts TC_UNUSED)
{
    struct tc_loop *loop = __real_tc_loop_new(
        &(struct tc_loop_opts){.manual = true, .seeded = true, .seed = tc_rng_u64(tc_world_chance(TC_CHANCE_SEEDS))});
    tc_world_adopt(loop);
    return loop;
}

void __wrap_tc_loop_free(struct tc_loop *loop)
{
    tc_world_release(loop);
    __real_tc_loop_free(loop);
}

int __wrap_tc_thread_start(struct tc_thread **thread TC_UNUSED, void (*fn)(void *arg) TC_UNUSED, void *arg TC_UNUSED)
{
    return EAGAIN; /* as on a system that has no thread left */
}

/* --- background jobs --- */

struct waiting_job {
    struct tc_world_event event; /* the moment at which the job may run */
    struct tc_link link;         /* in waiting_jobs, or in ready_jobs once the moment has come */
    struct tc_job *job;          /* borrowed */
};

static struct tc_link waiting_jobs = {&waiting_jobs, &waiting_jobs}, ready_jobs = {&ready_jobs, &ready_jobs};
static uint64_t job_delay_ns;

void tc_world_set_job_delay(uint64_t most_ns)
{
    job_delay_ns = most_ns;
}

static void job_on_moment(struct tc_world_event *event)
{
    struct waiting_job *w = TC_CONTAINER_OF(event, struct waiting_job, event);
    tc_list_remove(&w->link);
    tc_list_append(&ready_jobs, &w->link);
}

void tc_background_run(struct tc_job *job)
{
    struct waiting_job *w = TC_NEW(struct waiting_job);
    w->job = job;
    tc_list_append(&waiting_jobs, &w->link);
    tc_world_event_init(&w->event, job_on_moment);
    tc_world_event_at(&w->event,
                      tc_world_now_ns() + (job_delay_ns > 0 ? tc_world_below(TC_CHANCE_TURNS, job_delay_ns) : 0));
}

bool tc_world_job_ready(void)
{
    return !tc_list_empty(&ready_jobs);
}

bool tc_world_job_run(void)
{
    struct tc_link *link = tc_list_pop(&ready_jobs);
    if (!link && !tc_world_begun())
        link = tc_list_pop(&waiting_jobs);
    if (!link)
        return false;
    struct waiting_job *w = TC_CONTAINER_OF(link, struct waiting_job, link);
    struct tc_job *job = w->job;
    tc_world_event_stop(&w->event);
    tc_free(w);
    job->run(job);
    return true;
}

/* --- files --- */

/* Files do not change in the world. */
struct tc_file_watch {
    char unused;
};

struct tc_file_watch *tc_file_watch_new(struct tc_loop *loop TC_UNUSED, const char *const *paths TC_UNUSED,
                                        size_t n TC_UNUSED, uint64_t settle_ms TC_UNUSED,
                                        void (*fn)(void *arg) TC_UNUSED, void *arg TC_UNUSED)
{
    return TC_NEW(struct tc_file_watch);
}

void tc_file_watch_free(struct tc_file_watch *w)
{
    tc_free(w);
}
