/* The observer of a world. The search of test/sim has one, which tells a story and counts; libtorc-testing has none.
 * Any thread of the world (testing/threads.h). */
#ifndef TC_TESTING_OBSERVER_H
#define TC_TESTING_OBSERVER_H

#include <stdarg.h>

#include "base/common.h"

/* The occurrences that an observer may count. */
enum tc_world_count {
    TC_WORLD_CONNECTS,
    TC_WORLD_CONNECTS_REFUSED,
    TC_WORLD_CONNECTS_SILENT,
    TC_WORLD_SHORT_WRITES,
    TC_WORLD_CUTS,
    TC_WORLD_NAMES_FAILED,
};

/* Every function is required. Pointers are borrowed for the call. */
struct tc_world_observer {
    void (*story)(const char *fmt, va_list ap);  /* a line for people */
    void (*detail)(const char *fmt, va_list ap); /* a finer line: which bytes arrived, for example */
    void (*count)(enum tc_world_count which);
    void (*fault)(uint64_t until_ns); /* a fault of the network lasts until then; the present time: it is over */
    /* An attempt to connect begins, or was refused. `loop` is the client's. */
    void (*connect)(const void *loop, const char *address, bool refused);
};

/* Sets the observer, which is borrowed until the next call; NULL: none. */
void tc_world_observe(const struct tc_world_observer *observer);

/* Call the observer's function, if there is an observer. */
void tc_world_story(const char *fmt, ...) TC_PRINTF(1, 2);
void tc_world_detail(const char *fmt, ...) TC_PRINTF(1, 2);
void tc_world_note(enum tc_world_count which);
void tc_world_note_fault(uint64_t until_ns);
void tc_world_note_connect(const void *loop, const char *address, bool refused);

#endif
