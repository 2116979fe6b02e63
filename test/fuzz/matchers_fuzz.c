/* Header matchers compared with a naive model of A28. The input: flags, kinds, range, the matcher's text, then header
 * fields. The model calls the library for regexes and for numbers. */
#include <ctype.h>

#include "base/mem.h"
#include "base/parse.h"
#include "fuzz.h"
#include "xds/resource/matchers.h"

static const char *const names[] = {"k", "other", "k-bin", "content-type"};

/* Returns whether `part` stands in `text` at index `at`, which may be beyond the end. With any_case the case of ASCII
 * letters does not count. */
static bool equal_at(struct tc_slice text, size_t at, struct tc_slice part, bool any_case)
{
    if (at > text.len || part.len > text.len - at)
        return false;
    for (size_t i = 0; i < part.len; i++) {
        unsigned char a = (unsigned char)text.data[at + i], b = (unsigned char)part.data[i];
        if (a != b && !(any_case && a < 0x80 && b < 0x80 && tolower(a) == tolower(b)))
            return false;
    }
    return true;
}

static bool model_string(const struct tc_string_matcher *m, struct tc_slice value)
{
    bool whole = value.len == m->text.len;
    if (m->kind == TC_MATCH_EXACT || m->kind == TC_MATCH_PREFIX)
        return (whole || m->kind == TC_MATCH_PREFIX) && equal_at(value, 0, m->text, m->ignore_case);
    if (m->kind == TC_MATCH_SUFFIX)
        return value.len >= m->text.len && equal_at(value, value.len - m->text.len, m->text, m->ignore_case);
    for (size_t at = 0; at <= value.len; at++)
        if (equal_at(value, at, m->text, m->ignore_case))
            return true;
    return false;
}

static bool model_match(const struct tc_header_matcher *m, const struct tc_headers *headers)
{
    struct tc_buf joined = {0};
    bool found = tc_slice_eq_str(m->name, "content-type"), match;
    size_t fields = 0;
    int64_t number;
    uint64_t steps = UINT64_MAX;
    if (found)
        tc_buf_append_str(&joined, "application/grpc");
    for (size_t i = 0; !found && i < headers->len; i++) {
        if (!tc_slice_eq(headers->data[i].name, m->name) || tc_slice_ends(m->name, tc_slice_str("-bin")))
            continue;
        if (fields++)
            tc_buf_append_char(&joined, ',');
        tc_buf_append_slice(&joined, headers->data[i].value);
    }
    found = found || fields > 0;
    struct tc_slice value = tc_buf_slice(&joined);
    if (m->kind == TC_HEADER_MATCH_PRESENT)
        match = (found == m->present) != m->invert;
    else if (!found)
        match = false;
    else if (m->kind == TC_HEADER_MATCH_RANGE)
        match = (tc_parse_i64(value, &number) == 0 && m->range_start <= number && number < m->range_end) != m->invert;
    else if (m->string.kind == TC_MATCH_REGEX)
        match = tc_regex_full_match(m->string.regex, value, &steps) != m->invert;
    else
        match = model_string(&m->string, value) != m->invert;
    tc_buf_fini(&joined);
    return match;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    struct tc_header_matcher m = {0};
    struct tc_arena arena;
    struct tc_headers headers;
    struct tc_buf scratch = {0};
    char *why = NULL;
    uint64_t steps = UINT64_MAX;
    uint8_t flags = tc_fuzz_u8(&in), kinds = tc_fuzz_u8(&in);
    m.invert = flags & 1;
    m.present = flags & 2;
    m.string.ignore_case = flags & 4;
    m.name = tc_slice_str(names[(flags >> 3) % TC_ARRAY_LEN(names)]);
    m.kind = (enum tc_header_match_kind)(kinds % 3);
    m.string.kind = (enum tc_string_match_kind)(kinds / 3 % 5);
    m.range_start = (int16_t)tc_fuzz_uint(&in, 2);
    m.range_end = flags & 32 ? (int64_t)tc_fuzz_uint(&in, 8) : (int16_t)tc_fuzz_uint(&in, 2);
    m.string.text = tc_fuzz_short(&in);
    tc_arena_init(&arena, 0, 0);
    tc_headers_init(&headers, &arena);
    while (in.len) {
        struct tc_slice name = tc_slice_str(names[tc_fuzz_u8(&in) % TC_ARRAY_LEN(names)]);
        tc_headers_add(&headers, name, tc_fuzz_short(&in));
    }
    bool regex = m.kind == TC_HEADER_MATCH_STRING && m.string.kind == TC_MATCH_REGEX;
    if (regex) {
        m.string.ignore_case = false;
        m.string.regex = tc_regex_new(m.string.text, NULL, &why);
        TC_FUZZ_CHECK((m.string.regex != NULL) == (why == NULL));
    }
    if (!regex || m.string.regex) {
        tc_header_matcher_format(&m, &scratch);
        TC_FUZZ_CHECK(tc_header_matcher_match(&m, &headers, &scratch, &steps) == model_match(&m, &headers));
    }
    tc_free(why);
    tc_regex_free(m.string.regex);
    tc_buf_fini(&scratch);
    tc_arena_fini(&arena);
    return 0;
}
