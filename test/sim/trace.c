/* The trace: lines go into the digest and, as far as `printed` allows, to standard output; counts into a table; the
 * first violation is kept for the search. All of it belongs to the process, which has one world. */
#include "sim/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/common.h"
#include "sim/faults.h"
#include "testing/observer.h"
#include "testing/world.h"

uint64_t sim_counts[SIM_COUNT_ALL];
const char *const sim_count_texts[SIM_COUNT_ALL] = {
#define X(name, text) text,
    SIM_COUNTS(X)
#undef X
};

static enum sim_trace_level printed;
static uint64_t digest;
static char first_violation[512];

void sim_trace_begin(enum sim_trace_level print)
{
    printed = print;
    digest = UINT64_C(0xcbf29ce484222325);
    first_violation[0] = 0;
    memset(sim_counts, 0, sizeof(sim_counts));
}

/* FNV-1a over words of eight bytes, with a shift after each word. */
static void digest_add(const char *line, size_t len)
{
    uint64_t word;
    for (size_t i = 0; i < len; i += sizeof(word)) {
        word = 0;
        memcpy(&word, line + i, TC_MIN(sizeof(word), len - i));
        digest = (digest ^ word) * UINT64_C(0x100000001b3);
        digest ^= digest >> 29;
    }
}

TC_PRINTF(2, 0) static void trace_line(enum sim_trace_level level, const char *fmt, va_list ap)
{
    char line[1024];
    uint64_t now_us = tc_world_now_ns() / 1000;
    digest_add((const char *)&now_us, sizeof(now_us));
    int n = vsnprintf(line, sizeof(line), fmt, ap);
    digest_add(line, TC_MIN((size_t)TC_MAX(n, 0), sizeof(line) - 1));
    if (level <= printed)
        printf("%6llu.%06llu  %s\n", (unsigned long long)(now_us / 1000000), (unsigned long long)(now_us % 1000000),
               line);
}

void sim_story(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    trace_line(SIM_TRACE_STORY, fmt, ap);
    va_end(ap);
}

void sim_detail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    trace_line(SIM_TRACE_DETAIL, fmt, ap);
    va_end(ap);
}

static void on_world_story(const char *fmt, va_list ap)
{
    trace_line(SIM_TRACE_STORY, fmt, ap);
}

static void on_world_detail(const char *fmt, va_list ap)
{
    trace_line(SIM_TRACE_DETAIL, fmt, ap);
}

static void on_world_count(enum tc_world_count which)
{
    static const enum sim_count counts[] = {
        [TC_WORLD_CONNECTS] = SIM_COUNT_CONNECTS,
        [TC_WORLD_CONNECTS_REFUSED] = SIM_COUNT_CONNECTS_REFUSED,
        [TC_WORLD_CONNECTS_SILENT] = SIM_COUNT_CONNECTS_SILENT,
        [TC_WORLD_SHORT_WRITES] = SIM_COUNT_SHORT_WRITES,
        [TC_WORLD_CUTS] = SIM_COUNT_FAULT_CUT,
        [TC_WORLD_NAMES_FAILED] = SIM_COUNT_NAMES_FAILED,
    };
    sim_count(counts[which]);
}

const struct tc_world_observer sim_observer = {on_world_story, on_world_detail, on_world_count, sim_net_note_fault,
                                               sim_net_note_connect};

uint64_t sim_trace_digest(void)
{
    return digest;
}

void sim_violation(const char *fmt, ...)
{
    char text[sizeof(first_violation)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (!first_violation[0])
        memcpy(first_violation, text, sizeof(text));
    sim_story("VIOLATION: %s", text);
}

const char *sim_first_violation(void)
{
    return first_violation[0] ? first_violation : NULL;
}
