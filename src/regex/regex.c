/* Regular expressions of xDS: RE2 behind engine.h, with bounds for patterns that a control plane may send.
 *
 * What bounds the cost of a pattern:
 *
 *   to read    pattern_bytes, and the number of Unicode classes: RE2 bounds the program, but not the tree that it reads
 *              the pattern into, and Unicode classes make the tree large. xds/resource also adds up the
 *              tc_regex_reading_cost of a response's patterns.
 *   to keep    memory_bytes for the program and its automata.
 *   to match   steps, instructions of the program times bytes of text, taken off a budget that the caller passes.
 *
 * A tc_regex owns the engine's regex, which does not change: any thread may use it. The engine is found once, with the
 * first pattern: linked, or loaded from libtorc-regex.so. Compiling runs in a foreign section (base/fork.h), since it
 * uses data that RE2 has once in the process. Matching uses the regex alone, and runs outside. */
#include "regex/regex.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fork.h"
#include "base/mem.h"
#include "regex/engine.h"

/* SMALL_BYTES: the memory that suffices for most regexes. LARGE_COST: the cost of reading above which SMALL_BYTES are
 * not tried first: a pattern that they do not suffice for would be read three times instead of twice. */
enum { SMALL_BYTES = 64 << 10, LARGE_COST = 256 << 10 };

struct tc_regex {
    const struct tc_regex_engine *engine;
    void *re;
    uint64_t instructions; /* at least 1 */
};

/* Called by the engine. C++ does not tell how many bytes it asked for. */
static void engine_out_of_memory(void)
{
    tc_out_of_memory(0);
}

static void reason_append(const char *text, size_t len, void *arg)
{
    tc_buf_append(arg, text, len);
}

/* Returns a copy of the text, to be freed with tc_free, and frees the buffer. */
static char *reason_take(struct tc_buf *b)
{
    char *text = tc_strdup(tc_buf_cstr(b));
    tc_buf_fini(b);
    return text;
}

/* Set once, by engine_find. */
static struct {
    const struct tc_regex_engine *engine; /* NULL: `why` has the reason */
    char why[512];
} found;

static void engine_find(void)
{
    tc_regex_engine_fn get = tc_regex_engine_find(found.why, sizeof(found.why));
    if (get && !(found.engine = get(TC_REGEX_ENGINE_VERSION, engine_out_of_memory)))
        snprintf(found.why, sizeof(found.why), "Torc's library of regular expressions is of another version");
}

/* Counts classes such as \pL, which has hundreds of ranges. An escaped backslash before a "p" counts, too. */
static size_t pattern_unicode_classes(struct tc_slice pattern)
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < pattern.len; i++)
        n += pattern.data[i] == '\\' && (pattern.data[i + 1] == 'p' || pattern.data[i + 1] == 'P');
    return n;
}

struct tc_regex *tc_regex_new(struct tc_slice pattern, const struct tc_regex_limits *limits, char **why)
{
    size_t max_pattern = limits && limits->pattern_bytes ? limits->pattern_bytes : TC_REGEX_PATTERN_MAX_BYTES;
    size_t max_memory = limits && limits->memory_bytes ? limits->memory_bytes : TC_REGEX_MEMORY_MAX_BYTES;
    if (pattern.len > max_pattern) {
        *why = tc_asprintf("pattern of %zu bytes is longer than %zu", pattern.len, max_pattern);
        return NULL;
    }
    const size_t class_bytes = 98304, cost = tc_regex_reading_cost(pattern), classes = pattern_unicode_classes(pattern);
    if (classes > 1 && classes * class_bytes > max_memory) {
        *why = tc_asprintf("pattern too large - %zu Unicode classes, more than %zu", classes, max_memory / class_bytes);
        return NULL;
    }
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, engine_find);
    const struct tc_regex_engine *engine = found.engine;
    if (!engine) {
        *why = tc_strdup(found.why);
        return NULL;
    }
    struct tc_buf reason = {0};
    if (!tc_foreign_enter()) {
        *why = tc_strdup("the process is exiting");
        return NULL;
    }
    void *re = engine->compile(pattern.data, pattern.len, SMALL_BYTES, (int64_t)TC_MIN(max_memory, (size_t)INT64_MAX),
                               cost > LARGE_COST, reason_append, &reason);
    tc_foreign_leave();
    if (!re) {
        *why = reason_take(&reason);
        return NULL;
    }
    struct tc_regex *r = TC_NEW(struct tc_regex);
    r->engine = engine;
    r->re = re;
    r->instructions = (uint64_t)TC_MAX(engine->program_size(re), 1);
    return r;
}

void tc_regex_free(struct tc_regex *r)
{
    if (!r)
        return;
    r->engine->free(r->re);
    tc_free(r);
}

size_t tc_regex_memory(const struct tc_regex *r)
{
    const size_t instruction = 24, fixed = 1024;
    return fixed + (size_t)r->instructions * instruction;
}

size_t tc_regex_reading_cost(struct tc_slice pattern)
{
    /* A character costs more in a long pattern than in a short one. */
    const size_t character = 16, longer = 24, unicode_class = 24576;
    return pattern.len * (character + pattern.len / longer) + pattern_unicode_classes(pattern) * unicode_class;
}

bool tc_regex_full_match(const struct tc_regex *r, struct tc_slice text, uint64_t *steps)
{
    return tc_regex_take_steps(steps, r->instructions * text.len) && r->engine->full_match(r->re, text.data, text.len);
}

bool tc_regex_check_rewrite(const struct tc_regex *r, struct tc_slice rewrite, char **why)
{
    if (rewrite.len > TC_REGEX_REWRITE_MAX_BYTES) {
        *why = tc_asprintf("substitution of %zu bytes is longer than %d", rewrite.len, TC_REGEX_REWRITE_MAX_BYTES);
        return false;
    }
    struct tc_buf reason = {0};
    bool ok = r->engine->check_rewrite(r->re, rewrite.data, rewrite.len, reason_append, &reason);
    if (!ok)
        *why = reason_take(&reason);
    return ok;
}

void tc_regex_replace_all(const struct tc_regex *r, struct tc_slice text, struct tc_slice rewrite, uint64_t *steps,
                          struct tc_buf *out)
{
    const uint64_t all = *steps / r->instructions;
    uint64_t left = all;
    r->engine->replace_all(r->re, text.data, text.len, rewrite.data, rewrite.len, TC_REGEX_REPLACED_MAX_BYTES, &left,
                           reason_append, out);
    *steps -= (all - left) * r->instructions;
}
