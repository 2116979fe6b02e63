/* What regex.c needs of RE2, as a table of C functions: the way to the one part of Torc in C++, which libtorc.so loads
 * when the first regex comes (libtorc-regex.so: libstdc++ and RE2 take longer to load than libtorc itself). */
#ifndef TC_REGEX_ENGINE_H
#define TC_REGEX_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with each change of what is below. */
#define TC_REGEX_ENGINE_VERSION 3u

/* Takes text, possibly in parts. */
typedef void (*tc_regex_sink_fn)(const char *text, size_t len, void *arg);

/* Texts are `len` bytes, NULL only with 0. A compiled regex is immutable; any thread may use it. */
struct tc_regex_engine {
    /* NULL, and the reason into `why`: refused. Its program has memory_bytes at most; what matching builds is bounded
     * by small_bytes, with which most do, or by a few times the program. `large`: small_bytes need not be tried. */
    void *(*compile)(const char *pattern, size_t len, int64_t small_bytes, int64_t memory_bytes, bool large,
                     tc_regex_sink_fn why, void *arg);
    void (*free)(void *re);
    int (*program_size)(const void *re);
    bool (*full_match)(const void *re, const char *text, size_t len);
    /* False, and the reason into `why`: it cannot be used. */
    bool (*check_rewrite)(const void *re, const char *rewrite, size_t len, tc_regex_sink_fn why, void *arg);
    /* The text with every match replaced into `out`, of that the first `max` bytes. The rewrite was found good. Looks
     * over `*bytes` of the text at the most, those that several matches look over counted as often, and takes what it
     * did off; matches behind stay as they are. */
    void (*replace_all)(const void *re, const char *text, size_t text_len, const char *rewrite, size_t rewrite_len,
                        size_t max, uint64_t *bytes, tc_regex_sink_fn out, void *arg);
};

/* The table; NULL when it is another version's. `out_of_memory`, which does not return, is called in place of throwing.
 */
__attribute__((visibility("default"))) const struct tc_regex_engine *torc_regex_engine(unsigned version,
                                                                                       void (*out_of_memory)(void));
typedef const struct tc_regex_engine *(*tc_regex_engine_fn)(unsigned version, void (*out_of_memory)(void));

/* Where the table comes from: linked (engine_linked.c), or loaded (engine_loaded.c). NULL with the reason in `why`.
 * To be called once. */
tc_regex_engine_fn tc_regex_engine_find(char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif

#endif
