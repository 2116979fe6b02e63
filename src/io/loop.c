#include "io/loop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/timers.h"

enum { MAX_TASKS_PER_TURN = 10000, MAX_CLOSING_TURNS = 1000 };
/* How old the last look for events may be where a turn does without one. */
#define EVENTS_STAY_NEW_NS TC_NS_PER_MS

struct tc_loop {
    bool manual;
    bool fresh;     /* the cached time is that of the present turn */
    bool any_event; /* this turn took in an event of a descriptor */
    uint64_t now_ns;
    uint64_t events_ns; /* when events were taken in last */
    struct tc_timers timers;
    struct tc_link serial;
    struct tc_link turn_end;
    struct tc_rng rng;
    struct tc_blocks *blocks;
    struct tc_heap *heap;
    uint8_t *read_room;
    unsigned fork_generation;

    /* What other threads touch. Posts are a stack (newest first, linked by link.next) that the loop takes whole. */
    _Atomic(struct tc_link *) posts;
    /* True while a post must send a wake-up: the loop waits, or nobody runs it. A poster clears it, so that one wake-up
     * serves many posts. */
    atomic_bool wants_wakeup;
    atomic_bool woken; /* tc_loop_wake was called: the next wait returns at once */
    atomic_uintptr_t turn_thread;

    uv_loop_t uv;
    uv_async_t async;
    uv_timer_t wakeup; /* only ends libuv's wait; our own timers fire after events were taken in */
    /* For the timer of which time it stands; 0: it is not set. */
    uint64_t wakeup_for_ms;
};

static atomic_uint fork_generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void on_fork_child(void)
{
    atomic_fetch_add(&fork_generation, 1);
}

static void register_fork_handler(void)
{
    pthread_atfork(NULL, NULL, on_fork_child);
}

bool tc_loop_forked(const struct tc_loop *loop)
{
    return loop->fork_generation != atomic_load_explicit(&fork_generation, memory_order_relaxed);
}

static void on_async(uv_async_t *async)
{
    (void)async;
}

static void on_wakeup(uv_timer_t *timer)
{
    /* libuv fires what is due before it waits as well as after. When our time was up before it began to wait, no timer
     * is left to end the wait: this makes it none, and it still takes in events. */
    uv_stop(timer->loop);
    TC_CONTAINER_OF(timer, struct tc_loop, wakeup)->wakeup_for_ms = 0;
}

/* libuv ends the process when its first loop gets no pipe for signals, so what a loop takes is tried before. */
static int try_descriptors(void)
{
    int at[4], n = 0, rc = 0;
    while (n < (int)TC_ARRAY_LEN(at) && (at[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    if (n < (int)TC_ARRAY_LEN(at))
        rc = -errno;
    while (n-- > 0)
        close(at[n]);
    return rc;
}

static int init_uv(struct tc_loop *loop)
{
    int rc = try_descriptors();
    if (rc == 0)
        rc = uv_loop_init(&loop->uv);
    if (rc < 0)
        return rc;
    rc = uv_async_init(&loop->uv, &loop->async, on_async);
    if (rc < 0) {
        uv_loop_close(&loop->uv);
        return rc;
    }
    uv_timer_init(&loop->uv, &loop->wakeup);
    return 0;
}

struct tc_loop *tc_loop_new(const struct tc_loop_opts *opts)
{
    pthread_once(&fork_once, register_fork_handler);
    struct tc_loop *loop = TC_NEW(struct tc_loop);
    loop->manual = opts && opts->manual;
    if (!loop->manual) {
        int rc = init_uv(loop);
        if (rc < 0) {
            tc_free(loop);
            errno = -rc;
            return NULL;
        }
    }
    loop->now_ns = loop->manual ? TC_NS_PER_S : tc_system_clock.monotonic_ns(NULL);
    tc_timers_init(&loop->timers, loop->now_ns / TC_NS_PER_MS);
    tc_list_init(&loop->serial);
    tc_list_init(&loop->turn_end);
    if (opts && opts->seeded)
        tc_rng_init_seed(&loop->rng, opts->seed);
    else
        tc_rng_init_system(&loop->rng);
    loop->blocks = tc_blocks_new();
    loop->heap = tc_heap_new();
    loop->fork_generation = atomic_load(&fork_generation);
    atomic_store(&loop->wants_wakeup, true);
    return loop;
}

static bool has_work(const struct tc_loop *loop)
{
    return !tc_list_empty(&loop->serial) || !tc_list_empty(&loop->turn_end) || atomic_load(&loop->posts) != NULL;
}

void tc_loop_free(struct tc_loop *loop)
{
    if (!loop)
        return;
    if (tc_loop_forked(loop))
        return; /* libuv's part is shared with the parent; the child leaves it alone */
    if (loop->manual) {
        tc_loop_drain(loop);
    } else {
        for (int i = 0; i < MAX_CLOSING_TURNS && has_work(loop); i++)
            tc_loop_turn(loop, 0);
    }
    assert(!has_work(loop));
    assert(tc_timers_empty(&loop->timers));
    if (!loop->manual) {
        uv_close((uv_handle_t *)&loop->async, NULL);
        uv_close((uv_handle_t *)&loop->wakeup, NULL);
        int rc = UV_EBUSY;
        for (int i = 0; i < MAX_CLOSING_TURNS && rc == UV_EBUSY; i++) {
            uv_run(&loop->uv, UV_RUN_NOWAIT);
            rc = uv_loop_close(&loop->uv);
        }
        assert(rc == 0);
        if (rc != 0) {
            TC_LOG(TC_LOG_IO, TORC_LOG_ERROR, "a loop was freed while descriptors were still watched");
            return;
        }
    }
    tc_blocks_end(loop->blocks);
    tc_heap_free(loop->heap);
    tc_free(loop->read_room);
    tc_free(loop);
}

/* Tasks. */

void tc_task_init(struct tc_task *task, void (*fn)(struct tc_task *task))
{
    tc_list_init(&task->link);
    task->fn = fn;
}

void tc_loop_defer(struct tc_loop *loop, struct tc_task *task)
{
    if (!tc_task_pending(task))
        tc_list_append(&loop->serial, &task->link);
}

void tc_loop_at_turn_end(struct tc_loop *loop, struct tc_task *task)
{
    if (!tc_task_pending(task))
        tc_list_append(&loop->turn_end, &task->link);
}

void tc_task_cancel(struct tc_task *task)
{
    tc_list_remove(&task->link);
}

static void send_wakeup(struct tc_loop *loop)
{
    /* The eventfd of a forked child is its parent's. */
    if (!loop->manual && !tc_loop_forked(loop))
        uv_async_send(&loop->async);
}

void tc_loop_post_quietly(struct tc_loop *loop, struct tc_task *task)
{
    struct tc_link *top = atomic_load_explicit(&loop->posts, memory_order_relaxed);
    do {
        task->link.next = top;
    } while (!atomic_compare_exchange_weak(&loop->posts, &top, &task->link));
}

void tc_loop_post(struct tc_loop *loop, struct tc_task *task)
{
    tc_loop_post_quietly(loop, task);
    /* Sequentially consistent on both sides: either we see the flag, or the loop, which sets it before it looks at the
     * posts, sees the post. */
    if (atomic_load(&loop->wants_wakeup) && atomic_exchange(&loop->wants_wakeup, false))
        send_wakeup(loop);
}

void tc_loop_wake(struct tc_loop *loop)
{
    atomic_store(&loop->woken, true);
    if (atomic_exchange(&loop->wants_wakeup, false))
        send_wakeup(loop);
}

/* Appends what other threads posted to the serial queue, oldest first. */
static bool take_posts(struct tc_loop *loop)
{
    struct tc_link *link = atomic_exchange(&loop->posts, NULL);
    if (!link)
        return false;
    struct tc_link taken;
    tc_list_init(&taken);
    while (link) {
        struct tc_link *older = link->next;
        tc_list_prepend(&taken, link);
        link = older;
    }
    tc_list_splice(&loop->serial, &taken);
    return true;
}

static bool run_serial(struct tc_loop *loop)
{
    int n = 0;
    struct tc_link *link;
    while (n < MAX_TASKS_PER_TURN && (link = tc_list_pop(&loop->serial))) {
        struct tc_task *task = TC_CONTAINER_OF(link, struct tc_task, link);
        task->fn(task);
        n++;
    }
    return n > 0;
}

static bool run_turn_end(struct tc_loop *loop)
{
    /* What asks again while these run has its turn's end after the next turn. */
    struct tc_link ending;
    tc_list_init(&ending);
    tc_list_splice(&ending, &loop->turn_end);
    bool any = false;
    struct tc_link *link;
    while ((link = tc_list_pop(&ending))) {
        struct tc_task *task = TC_CONTAINER_OF(link, struct tc_task, link);
        task->fn(task);
        any = true;
    }
    return any;
}

/* Time. */

uint64_t tc_loop_clock_ns(const struct tc_loop *loop)
{
    return loop->manual ? loop->now_ns : tc_system_clock.monotonic_ns(NULL);
}

int64_t tc_loop_realtime_ns(const struct tc_loop *loop)
{
    /* A manual loop's calendar starts at some day of 2023 and moves with its time. */
    const int64_t manual_epoch_ns = INT64_C(1700000000) * (int64_t)TC_NS_PER_S;
    return loop->manual ? manual_epoch_ns + (int64_t)loop->now_ns : tc_system_clock.realtime_ns(NULL);
}

uint64_t tc_loop_now_ns(const struct tc_loop *loop)
{
    /* Between turns the cached time may be as old as the application was idle. */
    return loop->fresh ? loop->now_ns : tc_loop_clock_ns(loop);
}

uint64_t tc_loop_now_ms(const struct tc_loop *loop)
{
    return tc_loop_now_ns(loop) / TC_NS_PER_MS;
}

struct tc_rng *tc_loop_rng(struct tc_loop *loop)
{
    return &loop->rng;
}

struct tc_blocks *tc_loop_blocks(const struct tc_loop *loop)
{
    return loop->blocks;
}

struct tc_heap *tc_loop_heap(const struct tc_loop *loop)
{
    return loop->heap;
}

uint8_t *tc_loop_read_room(struct tc_loop *loop)
{
    if (!loop->read_room)
        loop->read_room = tc_malloc(TC_LOOP_READ_BYTES);
    return loop->read_room;
}

static void refresh_time(struct tc_loop *loop)
{
    if (loop->fresh)
        return;
    loop->fresh = true;
    loop->now_ns = tc_loop_clock_ns(loop);
}

void tc_loop_refresh(struct tc_loop *loop)
{
    refresh_time(loop);
    loop->any_event = true;
}

void tc_timer_init(struct tc_timer *timer, struct tc_loop *loop, void (*fn)(struct tc_timer *timer))
{
    tc_list_init(&timer->link);
    timer->loop = loop;
    timer->fn = fn;
    timer->due_ms = 0;
}

void tc_timer_start(struct tc_timer *timer, uint64_t delay_ms)
{
    struct tc_loop *loop = timer->loop;
    tc_timer_stop(timer);
    uint64_t now_ns = tc_loop_now_ns(loop), now_ms = now_ns / TC_NS_PER_MS;
    if (delay_ms > 0 && now_ns % TC_NS_PER_MS != 0)
        now_ms++; /* never early */
    timer->due_ms = now_ms + TC_MIN(delay_ms, TC_TIMERS_MAX_DELAY_MS);
    tc_timers_add(&loop->timers, timer);
}

void tc_timer_stop(struct tc_timer *timer)
{
    if (tc_timer_active(timer))
        tc_timers_remove(&timer->loop->timers, timer);
}

static bool fire_timers(struct tc_loop *loop)
{
    tc_timers_advance(&loop->timers, loop->now_ns / TC_NS_PER_MS);
    /* Those that become due while these run wait for the next turn, so that a turn ends. */
    struct tc_link firing;
    tc_list_init(&firing);
    tc_list_splice(&firing, &loop->timers.due);
    bool any = false;
    struct tc_link *link;
    while ((link = tc_list_pop(&firing))) {
        struct tc_timer *timer = TC_CONTAINER_OF(link, struct tc_timer, link);
        timer->fn(timer);
        any = true;
    }
    return any;
}

/* Turns. */

/* Until the next queued work or timer; -1: there is none. */
static int idle_ms(const struct tc_loop *loop)
{
    uint64_t at_ms;
    if (has_work(loop) || atomic_load(&loop->woken))
        return 0;
    if (!tc_timers_next(&loop->timers, &at_ms))
        return -1;
    uint64_t now_ns = tc_loop_clock_ns(loop), at_ns = at_ms * TC_NS_PER_MS;
    if (at_ns <= now_ns)
        return 0;
    uint64_t wait_ms = (at_ns - now_ns + TC_NS_PER_MS - 1) / TC_NS_PER_MS;
    return wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;
}

int tc_loop_timeout_ms(const struct tc_loop *loop)
{
    /* libuv says 0 when it has handles to close, or descriptors that the kernel was not told about yet. */
    if (!loop->manual && uv_backend_timeout(&loop->uv) == 0)
        return 0;
    return idle_ms(loop);
}

static void stop_wakeup(struct tc_loop *loop)
{
    if (loop->wakeup_for_ms)
        uv_timer_stop(&loop->wakeup);
    loop->wakeup_for_ms = 0;
}

static void start_wakeup(struct tc_loop *loop, int ms, uint64_t for_ms)
{
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->wakeup, on_wakeup, (uint64_t)ms, 0);
    loop->wakeup_for_ms = for_ms;
}

/* Waits for an event or the next timer. A wake-up stays set beyond the wait that set it: the waits between RPCs are
 * many, and most are for the same timer. One that comes too early makes a turn that does nothing. */
static void wait_for_all(struct tc_loop *loop)
{
    uint64_t at_ms;
    int ms = -1;
    if (!tc_timers_next(&loop->timers, &at_ms))
        stop_wakeup(loop);
    else if (!loop->wakeup_for_ms || loop->wakeup_for_ms > at_ms)
        ms = idle_ms(loop);
    if (ms > 0)
        start_wakeup(loop, ms, at_ms);
    uv_run(&loop->uv, ms == 0 ? UV_RUN_NOWAIT : UV_RUN_ONCE);
}

static void wait_at_most(struct tc_loop *loop, int timeout_ms)
{
    int ms = idle_ms(loop);
    if (ms < 0 || timeout_ms < ms)
        ms = timeout_ms;
    if (ms > 0)
        start_wakeup(loop, ms, 1);
    uv_run(&loop->uv, ms == 0 ? UV_RUN_NOWAIT : UV_RUN_ONCE);
    stop_wakeup(loop);
}

static void take_in_events(struct tc_loop *loop, int timeout_ms)
{
    bool at_once = timeout_ms == 0 || has_work(loop) || atomic_load(&loop->woken);
    atomic_store(&loop->woken, false);
    loop->fresh = false;
    if (at_once)
        uv_run(&loop->uv, UV_RUN_NOWAIT);
    else if (timeout_ms < 0)
        wait_for_all(loop);
    else
        wait_at_most(loop, timeout_ms);
    refresh_time(loop);
    loop->events_ns = loop->now_ns;
}

static void enter_turn(struct tc_loop *loop)
{
    assert(!tc_loop_in_turn(loop));
    atomic_store(&loop->turn_thread, (uintptr_t)pthread_self());
    loop->any_event = false;
}

static void leave_turn(struct tc_loop *loop)
{
    /* From here on a post must wake us; one that came before this line is seen by the next turn before it waits. */
    atomic_store(&loop->wants_wakeup, true);
    atomic_store(&loop->turn_thread, 0);
    loop->fresh = false;
}

bool tc_loop_turn(struct tc_loop *loop, int timeout_ms)
{
    if (tc_loop_forked(loop))
        return false;
    enter_turn(loop);
    if (!loop->manual)
        take_in_events(loop, timeout_ms);
    atomic_store(&loop->wants_wakeup, false);
    bool any = take_posts(loop) || loop->any_event;
    any |= fire_timers(loop);
    any |= run_serial(loop);
    any |= run_turn_end(loop);
    leave_turn(loop);
    return any;
}

bool tc_loop_turn_posts(struct tc_loop *loop)
{
    if (loop->manual || tc_loop_forked(loop))
        return false;
    uint64_t now_ns = tc_loop_clock_ns(loop);
    if (now_ns - loop->events_ns > EVENTS_STAY_NEW_NS)
        return false;
    enter_turn(loop);
    loop->now_ns = now_ns;
    loop->fresh = true;
    atomic_store(&loop->wants_wakeup, false);
    take_posts(loop);
    bool any = run_serial(loop);
    any |= run_turn_end(loop);
    /* What the turn's end left, that the next turn may wait at once: the peers are at work by now. */
    run_serial(loop);
    leave_turn(loop);
    return any;
}

bool tc_loop_in_turn(const struct tc_loop *loop)
{
    return atomic_load_explicit(&loop->turn_thread, memory_order_relaxed) == (uintptr_t)pthread_self();
}

int tc_loop_fd(const struct tc_loop *loop)
{
    return loop->manual ? -1 : uv_backend_fd(&loop->uv);
}

struct uv_loop_s *tc_loop_uv(struct tc_loop *loop)
{
    return loop->manual ? NULL : &loop->uv;
}

void tc_loop_drain(struct tc_loop *loop)
{
    assert(loop->manual);
    while (has_work(loop) || !tc_list_empty(&loop->timers.due))
        tc_loop_turn(loop, 0);
}

void tc_loop_advance(struct tc_loop *loop, uint64_t ms)
{
    uint64_t target_ms = tc_loop_now_ms(loop) + ms, at_ms;
    tc_loop_drain(loop);
    while (tc_timers_next(&loop->timers, &at_ms) && at_ms <= target_ms) {
        loop->now_ns = at_ms * TC_NS_PER_MS;
        tc_timers_advance(&loop->timers, at_ms);
        tc_loop_drain(loop);
    }
    loop->now_ns = target_ms * TC_NS_PER_MS;
    tc_timers_advance(&loop->timers, target_ms);
}
