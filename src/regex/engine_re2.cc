#include <exception>
#include <string>

#include <re2/re2.h>

extern "C" {
#include "regex/engine.h"
}

namespace {

void (*on_out_of_memory)(void);

[[noreturn]] void out_of_memory()
{
    on_out_of_memory();
    std::terminate();
}

const RE2 &of(const void *re)
{
    return *static_cast<const RE2 *>(re);
}

void *compile(const char *pattern, size_t len, int64_t memory_bytes, tc_regex_sink_fn why, void *arg)
{
    try {
        RE2::Options options;
        options.set_log_errors(false);
        options.set_max_mem(memory_bytes);
        RE2 *re = new RE2(re2::StringPiece(pattern, len), options);
        if (re->ok())
            return re;
        why(re->error().data(), re->error().size(), arg);
        delete re;
        return nullptr;
    } catch (...) {
        out_of_memory();
    }
}

void destroy(void *re)
{
    delete static_cast<RE2 *>(re);
}

int program_size(const void *re)
{
    return of(re).ProgramSize();
}

bool full_match(const void *re, const char *text, size_t len)
{
    try {
        return RE2::FullMatch(re2::StringPiece(text, len), of(re));
    } catch (...) {
        out_of_memory();
    }
}

bool check_rewrite(const void *re, const char *rewrite, size_t len, tc_regex_sink_fn why, void *arg)
{
    try {
        std::string error;
        if (of(re).CheckRewriteString(re2::StringPiece(rewrite, len), &error))
            return true;
        why(error.data(), error.size(), arg);
        return false;
    } catch (...) {
        out_of_memory();
    }
}

void replace_all(const void *re, const char *text, size_t text_len, const char *rewrite, size_t rewrite_len,
                 tc_regex_sink_fn out, void *arg)
{
    try {
        std::string s(text ? text : "", text_len);
        RE2::GlobalReplace(&s, of(re), re2::StringPiece(rewrite, rewrite_len));
        out(s.data(), s.size(), arg);
    } catch (...) {
        out_of_memory();
    }
}

const struct tc_regex_engine engine = {compile, destroy, program_size, full_match, check_rewrite, replace_all};

} // namespace

extern "C" const struct tc_regex_engine *torc_regex_engine(unsigned version, void (*oom)(void))
{
    if (version != TC_REGEX_ENGINE_VERSION)
        return nullptr;
    on_out_of_memory = oom;
    return &engine;
}
