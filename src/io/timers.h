/* A hierarchical timer wheel: O(1) start and stop; timers expire in the order of their due times and, within one
 * millisecond, in the order in which they were started. The wheel is internal to src/io; owners embed a tc_timer and
 * use tc_timer_start and tc_timer_stop (loop.h). Loop thread only.
 *
 * A timer sits at the level of the highest 6-bit digit in which its due time differs from the wheel's time, in the slot
 * of that digit. When the wheel's time reaches the first instant of a slot, the slot's timers move in order: to lower
 * levels, or to `due` if their time has come. So two timers of one due time never overtake each other. */
#ifndef TC_IO_TIMERS_H
#define TC_IO_TIMERS_H

#include "base/list.h"

#define TC_TIMERS_BITS 6
#define TC_TIMERS_SLOTS (1 << TC_TIMERS_BITS)
#define TC_TIMERS_LEVELS 8
/* Longer delays (2^46 ms are some 2,000 years) count as this one. */
#define TC_TIMERS_MAX_DELAY_MS (UINT64_C(1) << 46)

struct tc_loop;

struct tc_timer {
    struct tc_link link;
    struct tc_loop *loop;
    void (*fn)(struct tc_timer *timer);
    uint64_t due_ms; /* in the time of tc_loop_now_ms */
};

static inline bool tc_timer_active(const struct tc_timer *timer)
{
    return tc_list_linked(&timer->link);
}

struct tc_timers {
    uint64_t now_ms;                     /* the wheel's time */
    struct tc_link due;                  /* reached, not yet fired */
    uint64_t occupied[TC_TIMERS_LEVELS]; /* for each level a bit for each slot that has timers */
    struct tc_link slots[TC_TIMERS_LEVELS][TC_TIMERS_SLOTS];
};

void tc_timers_init(struct tc_timers *w, uint64_t now_ms);
/* Adds a timer that is on no list and whose due_ms is set. */
void tc_timers_add(struct tc_timers *w, struct tc_timer *t);
/* Takes an active timer off its list: a slot, `due`, or the loop's list of timers that it is about to fire. */
void tc_timers_remove(struct tc_timers *w, struct tc_timer *t);
/* Moves the wheel's time to now_ms (never back), and appends the timers that became due to w->due. */
void tc_timers_advance(struct tc_timers *w, uint64_t now_ms);
/* Returns the time at which to call tc_timers_advance next: not later than the earliest due time, and before it only if
 * a slot must be redistributed. If w->due has timers, returns the wheel's time. UINT64_MAX: there is no timer. */
uint64_t tc_timers_next(const struct tc_timers *w);
bool tc_timers_empty(const struct tc_timers *w);

#endif
