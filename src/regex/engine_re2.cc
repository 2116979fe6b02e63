/* RE2 behind the table of engine.h: the one C++ file.
 *
 * No exception may cross into C. RE2 and the standard library throw here only when memory runs out; each function that
 * allocates catches everything and ends the process as base/mem.c does. Replacing is written by hand over RE2::Match
 * instead of RE2::GlobalReplace, whose result and time have no bound. */
#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>

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

std::unique_ptr<RE2> within(const re2::StringPiece &pattern, int64_t memory_bytes)
{
    RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(memory_bytes);
    return std::unique_ptr<RE2>(new RE2(pattern, options));
}

/* RE2 has one limit of memory for a program and for the automata that matching builds, state by state. An automaton of
 * which 20 states do not fit is given up for good, and each byte then takes a hundred times as long. A larger program
 * has larger states. Under the limit of the largest program a small one could grow by a megabyte, so the limit depends
 * on the program's size. The figures are measured: with them ambiguous programs of 70 to 1,100 instructions keep their
 * automaton. */
void *compile(const char *pattern, size_t len, int64_t small_bytes, int64_t memory_bytes, bool large,
              tc_regex_sink_fn why, void *arg)
{
    const int small_program = 64;          /* instructions; up to here small_bytes do */
    const int64_t instruction_bytes = 640; /* for each one beyond */
    const re2::StringPiece text(pattern, len);
    try {
        std::unique_ptr<RE2> re;
        int64_t given = std::min(large ? memory_bytes : small_bytes, memory_bytes);
        re = within(text, given);
        if (re->error_code() == RE2::ErrorPatternTooLarge && given < memory_bytes) {
            given = memory_bytes;
            re = within(text, given);
        }
        const int64_t beyond = std::max(0, re->ok() ? re->ProgramSize() - small_program : 0);
        const int64_t needed = std::min(small_bytes + instruction_bytes * beyond, memory_bytes);
        if (re->ok() && needed != given) {
            std::unique_ptr<RE2> fitted = within(text, needed);
            if (fitted->ok())
                re = std::move(fitted);
        }
        if (re->ok())
            return re.release();
        why(re->error().data(), re->error().size(), arg);
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

/* Passes on as many bytes as there is room for. */
struct bounded_sink {
    size_t room;
    tc_regex_sink_fn out;
    void *arg;

    void add(const char *text, size_t len)
    {
        len = std::min(len, room);
        if (len)
            out(text, len, arg);
        room -= len;
    }
};

/* Returns the length of the first character of the text; a byte that is not UTF-8 counts as a character. */
size_t character(const char *text, size_t len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *b = reinterpret_cast<const unsigned char *>(text);
    size_t n = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : b[0] >= 0xc0 ? 2 : 1;
    if (n == 1 || n > len || b[0] >= 0xf8)
        return 1;
    uint32_t rune = b[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 1;
        rune = rune << 6 | (b[i] & 0x3f);
    }
    return rune < least[n] || rune > 0x10ffff ? 1 : n;
}

/* Appends a rewrite that check_rewrite has accepted: a backslash is followed by a digit or a backslash. */
void add_rewrite(bounded_sink &sink, const re2::StringPiece &rewrite, const re2::StringPiece *groups)
{
    size_t from = 0, escape;
    while (sink.room && (escape = rewrite.find('\\', from)) != re2::StringPiece::npos) {
        const char *what = rewrite.data() + escape + 1;
        sink.add(rewrite.data() + from, escape - from);
        if (*what == '\\')
            sink.add(what, 1);
        else
            sink.add(groups[*what - '0'].data(), groups[*what - '0'].size());
        from = escape + 2;
    }
    sink.add(rewrite.data() + from, rewrite.size() - from);
}

/* Subtracts n from *left. Returns false, with *left 0, if *left was less than n. */
bool take(uint64_t *left, size_t n)
{
    const bool ok = n <= *left;
    *left -= ok ? n : *left;
    return ok;
}

/* RE2::GlobalReplace with bounds on the result (`max`) and on the work (*bytes). Without them a short text can produce
 * gigabytes, and each match may read all of the rest. */
void replace_all(const void *re, const char *text, size_t text_len, const char *rewrite, size_t rewrite_len, size_t max,
                 uint64_t *bytes, tc_regex_sink_fn out, void *arg)
{
    try {
        const re2::StringPiece all(text ? text : "", text_len), with(rewrite, rewrite_len);
        re2::StringPiece groups[10];
        const int n = std::min(1 + RE2::MaxSubmatch(with), 10);
        bounded_sink sink = {max, out, arg};
        size_t at = 0, last = SIZE_MAX; /* done up to; where the last match ended */
        while (sink.room && take(bytes, all.size() - at) &&
               of(re).Match(all, at, all.size(), RE2::UNANCHORED, groups, n)) {
            const size_t from = static_cast<size_t>(groups[0].data() - all.data());
            sink.add(all.data() + at, from - at);
            at = from + groups[0].size();
            if (at != last || !groups[0].empty()) {
                add_rewrite(sink, with, groups);
                last = at;
                continue;
            }
            /* An empty match right behind another match does not count. */
            if (at == all.size())
                break;
            const size_t step = character(all.data() + at, all.size() - at);
            sink.add(all.data() + at, step);
            at += step;
        }
        sink.add(all.data() + at, all.size() - at);
    } catch (...) {
        out_of_memory();
    }
}

const struct tc_regex_engine engine = {compile, destroy, program_size, full_match, check_rewrite, replace_all};

} // namespace

#ifdef torc_regex_EXPORTS /* CMake's mark of a file that goes into libtorc-regex.so */
#define EXPORTED __attribute__((visibility("default")))
#else
#define EXPORTED
#endif

extern "C" EXPORTED const struct tc_regex_engine *torc_regex_engine(unsigned version, void (*oom)(void))
{
    if (version != TC_REGEX_ENGINE_VERSION)
        return nullptr;
    on_out_of_memory = oom;
    return &engine;
}
