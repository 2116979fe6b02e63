/* Matching of strings, headers (A28) and fractions, and the texts of matchers for logs.
 *
 * Regexes and values of headers take `steps` from the caller's budget, so that neither matchers nor the metadata of an
 * RPC can cost without bound. Once the budget is used up, no regex matches, and no matcher matches a header that is
 * present. */
#include "xds/resource/matchers.h"

#include "base/parse.h"

bool tc_string_matcher_match(const struct tc_string_matcher *m, struct tc_slice value, uint64_t *steps)
{
    switch (m->kind) {
    case TC_MATCH_EXACT:
        return m->ignore_case ? tc_slice_ieq(value, m->text) : tc_slice_eq(value, m->text);
    case TC_MATCH_PREFIX:
        return m->ignore_case ? tc_slice_istarts(value, m->text) : tc_slice_starts(value, m->text);
    case TC_MATCH_SUFFIX:
        return m->ignore_case ? tc_slice_iends(value, m->text) : tc_slice_ends(value, m->text);
    case TC_MATCH_CONTAINS:
        return (m->ignore_case ? tc_slice_ifind(value, m->text) : tc_slice_find(value, m->text)) >= 0;
    case TC_MATCH_REGEX:
        return tc_regex_full_match(m->regex, value, steps);
    }
    return false;
}

bool tc_route_header_value(const struct tc_headers *headers, struct tc_slice name, struct tc_buf *scratch,
                           struct tc_slice *value)
{
    /* A28: binary headers count as absent, and content-type has the value that the library sends. */
    if (tc_header_is_binary(name))
        return false;
    if (tc_slice_eq_str(name, "content-type")) {
        *value = tc_slice_str("application/grpc");
        return true;
    }
    return tc_headers_joined(headers, name, scratch, value);
}

bool tc_header_matcher_match(const struct tc_header_matcher *m, const struct tc_headers *headers,
                             struct tc_buf *scratch, uint64_t *steps)
{
    struct tc_slice value;
    bool found = tc_route_header_value(headers, m->name, scratch, &value);
    bool match = false;
    int64_t number;
    if (found && !tc_regex_take_steps(steps, value.len)) /* for joining and searching the value */
        return false;
    if (m->kind == TC_HEADER_MATCH_PRESENT)
        return (found == m->present) != m->invert;
    if (!found)
        return false;
    switch (m->kind) {
    case TC_HEADER_MATCH_STRING:
        match = tc_string_matcher_match(&m->string, value, steps);
        break;
    case TC_HEADER_MATCH_RANGE:
        match = tc_parse_i64(value, &number) == 0 && number >= m->range_start && number < m->range_end;
        break;
    case TC_HEADER_MATCH_PRESENT:
        break;
    }
    return *steps && match != m->invert;
}

bool tc_fraction_match(uint32_t millionths, uint64_t random)
{
    return random % TC_FRACTION_ONE < millionths;
}

void tc_string_matcher_format(const struct tc_string_matcher *m, struct tc_buf *out)
{
    static const char *const kinds[] = {"exact", "prefix", "suffix", "contains", "regex"};
    tc_buf_printf(out, "%s%s \"", kinds[m->kind], m->ignore_case ? " (any case)" : "");
    tc_buf_append_slice(out, m->text);
    tc_buf_append_char(out, '"');
}

void tc_header_matcher_format(const struct tc_header_matcher *m, struct tc_buf *out)
{
    tc_buf_append_str(out, m->invert ? "not header \"" : "header \"");
    tc_buf_append_slice(out, m->name);
    tc_buf_append_str(out, "\" ");
    switch (m->kind) {
    case TC_HEADER_MATCH_STRING:
        tc_string_matcher_format(&m->string, out);
        break;
    case TC_HEADER_MATCH_RANGE:
        tc_buf_printf(out, "in [%lld, %lld)", (long long)m->range_start, (long long)m->range_end);
        break;
    case TC_HEADER_MATCH_PRESENT:
        tc_buf_append_str(out, m->present ? "present" : "absent");
        break;
    }
}
