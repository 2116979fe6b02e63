/* The table of C functions through which regex.c uses RE2. The functions are in engine_re2.cc, the one C++ file of
 * src/. libtorc.so loads that file as libtorc-regex.so with the first regex, since libstdc++ and RE2 take longer to
 * load than libtorc itself. libtorc.a contains the file, and so does a libtorc.so built with TORC_LATE_LOADING off. Any
 * thread. */
#ifndef TC_REGEX_ENGINE_H
#define TC_REGEX_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with each change of the declarations below. */
#define TC_REGEX_ENGINE_VERSION 3u

/* Receives a text, possibly in parts. `text` is borrowed for the call. */
typedef void (*tc_regex_sink_fn)(const char *text, size_t len, void *arg);

/* Texts are `len` bytes, NULL only with 0. A compiled regex is immutable; any thread may use it. */
struct tc_regex_engine {
    /* Compiles a pattern, and does not keep it. Returns a regex, to be freed with `free`; or NULL, after passing the
     * reason to `why`, when the pattern is refused. The program and the automata that matching builds may take
     * small_bytes together if the program is small, more if it is larger, and never more than memory_bytes. With
     * `large` the first try has memory_bytes, not small_bytes. The last try has the limit that fits the program. */
    void *(*compile)(const char *pattern, size_t len, int64_t small_bytes, int64_t memory_bytes, bool large,
                     tc_regex_sink_fn why, void *arg);
    void (*free)(void *re);
    int (*program_size)(const void *re); /* in instructions */
    bool (*full_match)(const void *re, const char *text, size_t len);
    /* Returns false, after passing the reason to `why`, when the rewrite cannot be used. */
    bool (*check_rewrite)(const void *re, const char *rewrite, size_t len, tc_regex_sink_fn why, void *arg);
    /* Passes the text with every match replaced to `out`, at most `max` bytes of the result. The rewrite has passed
     * check_rewrite. Each search takes the bytes from its start to the end of the text off `*bytes`. If fewer are left,
     * sets *bytes to 0 and does not search: the rest of the text stays as it is. */
    void (*replace_all)(const void *re, const char *text, size_t text_len, const char *rewrite, size_t rewrite_len,
                        size_t max, uint64_t *bytes, tc_regex_sink_fn out, void *arg);
};

/* Returns the table, or NULL when the library has another version. The library calls `out_of_memory`, which must not
 * return, instead of throwing. */
const struct tc_regex_engine *torc_regex_engine(unsigned version, void (*out_of_memory)(void));
typedef const struct tc_regex_engine *(*tc_regex_engine_fn)(unsigned version, void (*out_of_memory)(void));

/* Finds the function that returns the table: linked (engine_linked.c) or loaded (engine_loaded.c). Returns NULL with
 * the reason in `why` if the library cannot be loaded, or in a build without regexes (engine_none.c). Called once. */
tc_regex_engine_fn tc_regex_engine_find(char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif

#endif
