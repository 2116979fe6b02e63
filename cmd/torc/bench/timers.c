/* torc bench: timers in a binary heap. Places count from 1; the children of place n are 2n and 2n + 1. */
#include "bench/timers.h"

static void put(struct bench_timers *t, size_t place, struct bench_timer *timer)
{
    t->heap.data[place - 1] = timer;
    timer->place = place;
}

static void up(struct bench_timers *t, struct bench_timer *timer)
{
    size_t place = timer->place;
    for (; place > 1 && timer->due_ns < t->heap.data[place / 2 - 1]->due_ns; place /= 2)
        put(t, place, t->heap.data[place / 2 - 1]);
    put(t, place, timer);
}

static void down(struct bench_timers *t, struct bench_timer *timer)
{
    size_t place = timer->place, child;
    for (; (child = 2 * place) <= t->heap.len; place = child) {
        if (child < t->heap.len && t->heap.data[child]->due_ns < t->heap.data[child - 1]->due_ns)
            child++;
        if (t->heap.data[child - 1]->due_ns >= timer->due_ns)
            break;
        put(t, place, t->heap.data[child - 1]);
    }
    put(t, place, timer);
}

void bench_timer_set(struct bench_timers *t, struct bench_timer *timer, uint64_t due_ns)
{
    timer->due_ns = due_ns;
    if (!timer->place && due_ns != UINT64_MAX) {
        *tc_vec_push(&t->heap) = timer;
        timer->place = t->heap.len;
    }
    if (!timer->place)
        return;
    if (due_ns == UINT64_MAX) {
        struct bench_timer *last = t->heap.data[--t->heap.len];
        if (last != timer) {
            put(t, timer->place, last);
            up(t, last);
            down(t, last);
        }
        timer->place = 0;
        return;
    }
    up(t, timer);
    down(t, timer);
}

struct bench_timer *bench_timers_first(const struct bench_timers *t)
{
    return t->heap.len ? t->heap.data[0] : NULL;
}

void bench_timers_fini(struct bench_timers *t)
{
    tc_vec_fini(&t->heap);
}
