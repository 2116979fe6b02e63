/* The timer wheel (timers.h). A level has 64 slots, and `occupied` has a bit for each, so that counting zero bits finds
 * the next slot. Timers that are due move to `due` in order and wait there for the loop. */
#include "io/timers.h"

#define DIGIT_MASK (TC_TIMERS_SLOTS - 1)

void tc_timers_init(struct tc_timers *w, uint64_t now_ms)
{
    w->now_ms = now_ms;
    tc_list_init(&w->due);
    for (int level = 0; level < TC_TIMERS_LEVELS; level++) {
        w->occupied[level] = 0;
        for (int slot = 0; slot < TC_TIMERS_SLOTS; slot++)
            tc_list_init(&w->slots[level][slot]);
    }
}

/* Returns the level of a due time later than now. The level does not change while the timer waits in its slot: all
 * digits above it are equal already, and when the wheel's time reaches the slot, the timers leave it. */
static int timer_level(const struct tc_timers *w, uint64_t due_ms)
{
    int level = (63 - __builtin_clzll(due_ms ^ w->now_ms)) / TC_TIMERS_BITS;
    return TC_MIN(level, TC_TIMERS_LEVELS - 1);
}

static int time_digit(uint64_t time_ms, int level)
{
    return (int)(time_ms >> (level * TC_TIMERS_BITS)) & DIGIT_MASK;
}

void tc_timers_add(struct tc_timers *w, struct tc_timer *t)
{
    if (t->due_ms <= w->now_ms) {
        tc_list_append(&w->due, &t->link);
        return;
    }
    int level = timer_level(w, t->due_ms);
    int slot = time_digit(t->due_ms, level);
    tc_list_append(&w->slots[level][slot], &t->link);
    w->occupied[level] |= UINT64_C(1) << slot;
}

void tc_timers_remove(struct tc_timers *w, struct tc_timer *t)
{
    tc_list_remove(&t->link);
    if (t->due_ms <= w->now_ms)
        return;
    int level = timer_level(w, t->due_ms);
    int slot = time_digit(t->due_ms, level);
    if (tc_list_empty(&w->slots[level][slot]))
        w->occupied[level] &= ~(UINT64_C(1) << slot);
}

/* Finds the first occupied slot in time, and the instant at which it begins. Returns false if no slot is occupied.
 * Lower levels come first: all of their slots lie within the present slot of the levels above. */
static bool timers_first_slot(const struct tc_timers *w, int *level_out, int *slot_out, uint64_t *at_ms)
{
    for (int level = 0; level < TC_TIMERS_LEVELS; level++) {
        if (w->occupied[level] == 0)
            continue;
        int slot = __builtin_ctzll(w->occupied[level]);
        int shift = level * TC_TIMERS_BITS;
        uint64_t above = w->now_ms >> shift >> TC_TIMERS_BITS << TC_TIMERS_BITS;
        *level_out = level;
        *slot_out = slot;
        *at_ms = (above | (uint64_t)slot) << shift;
        return true;
    }
    return false;
}

void tc_timers_advance(struct tc_timers *w, uint64_t now_ms)
{
    int level, slot;
    uint64_t at_ms;
    while (w->now_ms < now_ms && timers_first_slot(w, &level, &slot, &at_ms) && at_ms <= now_ms) {
        w->occupied[level] &= ~(UINT64_C(1) << slot);
        w->now_ms = at_ms;
        /* tc_timers_add puts none of these timers back into this slot, since their times no longer differ in its
         * digit. */
        struct tc_link *link;
        while ((link = tc_list_pop(&w->slots[level][slot])))
            tc_timers_add(w, TC_CONTAINER_OF(link, struct tc_timer, link));
    }
    w->now_ms = TC_MAX(w->now_ms, now_ms);
}

uint64_t tc_timers_next(const struct tc_timers *w)
{
    int level, slot;
    uint64_t at_ms;
    if (!tc_list_empty(&w->due))
        return w->now_ms;
    return timers_first_slot(w, &level, &slot, &at_ms) ? at_ms : UINT64_MAX;
}

bool tc_timers_empty(const struct tc_timers *w)
{
    if (!tc_list_empty(&w->due))
        return false;
    for (int level = 0; level < TC_TIMERS_LEVELS; level++)
        if (w->occupied[level])
            return false;
    return true;
}
