/* Regular expressions (RE2): linear time, and the syntax that every xDS client accepts. A regex is compiled once per
 * resource, never per call; it is immutable and shared, and any thread may use it. */
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
/* Budgets of steps. A step is one instruction of a program for one byte of text: 5 ns at the worst (where no automaton
 * fits), a hundredth of that in general. MATCH: for all matchers of the routes of one RPC, or of the names of one
 * certificate; reading a header or a name takes steps, too. REPLACE: for all rewrites in one list of hash policies,
 * each time a hash is computed. */
#define TC_REGEX_MATCH_STEPS (UINT64_C(128) << 20)
#define TC_REGEX_REPLACE_STEPS (UINT64_C(32) << 20)

struct tc_regex;

struct tc_regex_limits {
    size_t pattern_bytes; /* longer patterns are refused; 0: TC_REGEX_PATTERN_MAX_BYTES */
    size_t memory_bytes;  /* of program and automata; 0: TC_REGEX_MEMORY_MAX_BYTES. A pattern with several Unicode
                             classes (\pL) is refused, too, if 98304 bytes for each of them exceed this limit */
};

/* Compiles a pattern of RE2's syntax (UTF-8), and does not keep it. The caller frees the regex with tc_regex_free.
 * Returns NULL, with the reason in *why (tc_free), when the pattern is refused, the engine cannot be loaded, or the
 * process is exiting; leaves *why as it was on success. `limits` may be NULL: the defaults. The first call may load
 * libtorc-regex.so. */
struct tc_regex *tc_regex_new(struct tc_slice pattern, const struct tc_regex_limits *limits, char **why);
/* NULL is allowed. */
void tc_regex_free(struct tc_regex *r);
/* Returns about how many bytes the compiled program takes. The automaton that tc_regex_full_match builds is not
 * counted: at most 21 KiB for a program of up to 64 instructions, and 213 bytes for each further instruction.
 * tc_regex_replace_all may build two automata of that size, and a second program for matching backwards. */
size_t tc_regex_memory(const struct tc_regex *r);
/* Returns the cost of parsing a pattern, in bytes: the size of a program that takes about as long to compile. The
 * pattern's own program may be much smaller: "(?:\pL\pL){0}" compiles to almost nothing. */
size_t tc_regex_reading_cost(struct tc_slice pattern);
/* Takes `n` off `*steps`. Returns false, and leaves 0, unless more than `n` are left. */
static inline bool tc_regex_take_steps(uint64_t *steps, uint64_t n)
{
    bool ok = n < *steps;
    *steps = ok ? *steps - n : 0;
    return ok;
}

/* Returns true when the whole text matches. Takes instructions x bytes, the most that the match may need, off `*steps`.
 * Returns false, with *steps 0, unless more than that are left. */
bool tc_regex_full_match(const struct tc_regex *r, struct tc_slice text, uint64_t *steps);
/* Returns true when `rewrite` has at most TC_REGEX_REWRITE_MAX_BYTES and no escapes but "\\", a backslash, and "\0" to
 * "\9", groups that the regex has. Else returns false with the reason in *why (tc_free). */
bool tc_regex_check_rewrite(const struct tc_regex *r, struct tc_slice rewrite, char **why);
/* Appends `text` to `out` with every match (empty ones too) replaced by the rewrite, as RE2's GlobalReplace does. At
 * most TC_REGEX_REPLACED_MAX_BYTES are computed and appended. Each search for a match takes instructions x (bytes
 * from the search's start to the end of the text) off `*steps`. Once fewer are left, the rest of the text is appended
 * as it is. The rewrite must have passed tc_regex_check_rewrite. */
void tc_regex_replace_all(const struct tc_regex *r, struct tc_slice text, struct tc_slice rewrite, uint64_t *steps,
                          struct tc_buf *out);

#ifdef __cplusplus
}
#endif

#endif
