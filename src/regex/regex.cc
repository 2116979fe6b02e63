#include <atomic>
#include <new>
#include <string>

#include <re2/re2.h>

extern "C" {
#include "base/mem.h"
#include "regex/regex.h"
}

struct tc_regex {
    tc_regex(re2::StringPiece pattern, const RE2::Options &options) : refs(1), re(pattern, options) {}
    std::atomic<unsigned> refs;
    RE2 re;
};

namespace {

re2::StringPiece piece(struct tc_slice s)
{
    return re2::StringPiece(s.data, s.len);
}

/* Memory ends the process in base/ only: asking there for what cannot be had gets the handler called. */
[[noreturn]] void out_of_memory()
{
    tc_malloc(SIZE_MAX);
    std::terminate();
}

} // namespace

extern "C" {

struct tc_regex *tc_regex_new(struct tc_slice pattern, const struct tc_regex_limits *limits, char **why)
{
    size_t max_pattern = limits && limits->pattern_bytes ? limits->pattern_bytes : TC_REGEX_PATTERN_MAX_BYTES;
    size_t max_memory = limits && limits->memory_bytes ? limits->memory_bytes : TC_REGEX_MEMORY_MAX_BYTES;
    if (pattern.len > max_pattern) {
        *why = tc_asprintf("pattern of %zu bytes is longer than %zu", pattern.len, max_pattern);
        return NULL;
    }
    try {
        RE2::Options options;
        options.set_log_errors(false);
        options.set_max_mem(max_memory > INT64_MAX ? INT64_MAX : (int64_t)max_memory);
        struct tc_regex *r = new tc_regex(piece(pattern), options);
        if (r->re.ok())
            return r;
        *why = tc_strdup(r->re.error().c_str());
        delete r;
        return NULL;
    } catch (...) {
        out_of_memory();
    }
}

struct tc_regex *tc_regex_ref(struct tc_regex *r)
{
    if (r)
        r->refs.fetch_add(1, std::memory_order_relaxed);
    return r;
}

void tc_regex_unref(struct tc_regex *r)
{
    if (r && r->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
        delete r;
}

size_t tc_regex_memory(const struct tc_regex *r)
{
    const size_t instruction = 16, fixed = 1024;
    int size = r->re.ProgramSize();
    return fixed + (size > 0 ? (size_t)size * instruction : 0);
}

bool tc_regex_full_match(const struct tc_regex *r, struct tc_slice text)
{
    try {
        return RE2::FullMatch(piece(text), r->re);
    } catch (...) {
        out_of_memory();
    }
}

bool tc_regex_check_rewrite(const struct tc_regex *r, struct tc_slice rewrite, char **why)
{
    try {
        std::string error;
        if (r->re.CheckRewriteString(piece(rewrite), &error))
            return true;
        *why = tc_strdup(error.c_str());
        return false;
    } catch (...) {
        out_of_memory();
    }
}

void tc_regex_replace_all(const struct tc_regex *r, struct tc_slice text, struct tc_slice rewrite, struct tc_buf *out)
{
    try {
        std::string s(text.data ? text.data : "", text.len);
        RE2::GlobalReplace(&s, r->re, piece(rewrite));
        tc_buf_append(out, s.data(), s.size());
    } catch (...) {
        out_of_memory();
    }
}

} // extern "C"
