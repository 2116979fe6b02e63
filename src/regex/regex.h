/* RE2 behind extern "C": linear time, and the same patterns accepted as by every xDS peer. Compiled once per resource,
 * never per call; immutable, shared, may be used from any thread. No C++ exception crosses. */
#ifndef TC_REGEX_REGEX_H
#define TC_REGEX_REGEX_H

#include "base/buf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TC_REGEX_PATTERN_MAX_BYTES 8192
#define TC_REGEX_MEMORY_MAX_BYTES (8u << 20)
#define TC_REGEX_REWRITE_MAX_BYTES 4096
#define TC_REGEX_REPLACED_MAX_BYTES (64u << 10)

struct tc_regex;

struct tc_regex_limits {
    size_t pattern_bytes; /* longer patterns are refused; 0: TC_REGEX_PATTERN_MAX_BYTES */
    size_t memory_bytes;  /* program and automata of one regex; 0: TC_REGEX_MEMORY_MAX_BYTES */
};

/* Compiles a pattern of RE2's syntax (UTF-8). NULL with the reason in *why (tc_free) when it is refused. `limits` may
 * be NULL: defaults. */
struct tc_regex *tc_regex_new(struct tc_slice pattern, const struct tc_regex_limits *limits, char **why);
struct tc_regex *tc_regex_ref(struct tc_regex *r);
void tc_regex_unref(struct tc_regex *r);
/* About how many bytes its program takes; the automata that matching builds come on top, bounded by memory_bytes. */
size_t tc_regex_memory(const struct tc_regex *r);
/* What reading a pattern takes whatever its program becomes ("(?:\pL\pL){0}" has next to none), as the size of a
 * program that takes about as long to compile. */
size_t tc_regex_reading_cost(struct tc_slice pattern);
/* True when the whole text matches. */
bool tc_regex_full_match(const struct tc_regex *r, struct tc_slice text);
/* True when `rewrite` can be used with the regex: "\0" to "\9" name groups that it has, "\\" is a backslash, no other
 * escape, and it has TC_REGEX_REWRITE_MAX_BYTES at most. Else false with the reason in *why (tc_free). */
bool tc_regex_check_rewrite(const struct tc_regex *r, struct tc_slice rewrite, char **why);
/* Appends `text` to `out` with every match (empty ones too) replaced by the rewrite, as RE2's GlobalReplace does;
 * the result is cut at TC_REGEX_REPLACED_MAX_BYTES, and what follows is not computed. The rewrite must have passed
 * tc_regex_check_rewrite. */
void tc_regex_replace_all(const struct tc_regex *r, struct tc_slice text, struct tc_slice rewrite, struct tc_buf *out);

#ifdef __cplusplus
}
#endif

#endif
