#include "testing/observer.h"

#include <stddef.h>

static const struct tc_world_observer *observer;

void tc_world_observe(const struct tc_world_observer *given)
{
    observer = given;
}

void tc_world_story(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (observer)
        observer->story(fmt, ap);
    va_end(ap);
}

void tc_world_detail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (observer)
        observer->detail(fmt, ap);
    va_end(ap);
}

void tc_world_note(enum tc_world_count which)
{
    if (observer)
        observer->count(which);
}

void tc_world_note_fault(uint64_t until_ns)
{
    if (observer)
        observer->fault(until_ns);
}

void tc_world_note_connect(const void *loop, const char *address, bool refused)
{
    if (observer)
        observer->connect(loop, address, refused);
}
