#include "resource/matchers_parse.h"

#define PATH(x) ENVOY__CONFIG__ROUTE__V3__ROUTE_MATCH__PATH_SPECIFIER_##x
#define HEADER(x) ENVOY__CONFIG__ROUTE__V3__HEADER_MATCHER__HEADER_MATCH_SPECIFIER_##x

struct tc_slice tc_read_header_name(struct tc_reading *p, const char *name)
{
    size_t len = strlen(name);
    char *lower = tc_store_array(p->store, len + 1, 1);
    for (size_t i = 0; i < len; i++)
        lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
    return tc_slice_of(lower, len);
}

/* Whether a gRPC path, "/service/method", can begin so (A28). */
static bool prefix_possible(const char *prefix)
{
    if (!*prefix)
        return true;
    if (*prefix != '/')
        return false;
    const char *second = strchr(prefix + 1, '/');
    return !second || (second != prefix + 1 && !strchr(second + 1, '/'));
}

static bool path_possible(const char *path)
{
    if (*path != '/')
        return false;
    const char *second = strchr(path + 1, '/');
    return second && second != path + 1 && second[1] && !strchr(second + 1, '/');
}

static bool parse_path(struct tc_reading *p, const Envoy__Config__Route__V3__RouteMatch *m,
                       struct tc_string_matcher *out)
{
    *out = (struct tc_string_matcher){.ignore_case = m->case_sensitive && !m->case_sensitive->value};
    switch (m->path_specifier_case) {
    case PATH(PREFIX):
        out->kind = TC_MATCH_PREFIX;
        out->text = tc_store_text(p->store, m->prefix);
        return prefix_possible(m->prefix);
    case PATH(PATH):
        out->kind = TC_MATCH_EXACT;
        out->text = tc_store_text(p->store, m->path);
        return path_possible(m->path);
    case PATH(SAFE_REGEX):
        tc_faults_push(p->faults, ".safe_regex");
        out->kind = TC_MATCH_REGEX;
        out->ignore_case = false;
        out->text = tc_store_text(p->store, m->safe_regex->regex);
        out->regex = tc_read_regex(p, m->safe_regex);
        tc_faults_pop(p->faults);
        return out->regex != NULL;
    default:
        tc_faults_add(p->faults, "invalid path specifier");
        return false;
    }
}

static bool set_string(struct tc_reading *p, struct tc_header_matcher *out, enum tc_string_match_kind kind,
                       const char *text)
{
    out->string = (struct tc_string_matcher){.kind = kind, .text = tc_store_text(p->store, text)};
    return true;
}

static bool parse_specifier(struct tc_reading *p, const Envoy__Config__Route__V3__HeaderMatcher *m,
                            struct tc_header_matcher *out)
{
    bool ok = true;
    switch (m->header_match_specifier_case) {
    case HEADER(EXACT_MATCH):
        return set_string(p, out, TC_MATCH_EXACT, m->exact_match);
    case HEADER(PREFIX_MATCH):
        return set_string(p, out, TC_MATCH_PREFIX, m->prefix_match);
    case HEADER(SUFFIX_MATCH):
        return set_string(p, out, TC_MATCH_SUFFIX, m->suffix_match);
    case HEADER(CONTAINS_MATCH):
        return set_string(p, out, TC_MATCH_CONTAINS, m->contains_match);
    case HEADER(SAFE_REGEX_MATCH):
        tc_faults_push(p->faults, ".safe_regex_match");
        set_string(p, out, TC_MATCH_REGEX, m->safe_regex_match->regex);
        out->string.regex = tc_read_regex(p, m->safe_regex_match);
        ok = out->string.regex != NULL;
        tc_faults_pop(p->faults);
        return ok;
    case HEADER(STRING_MATCH):
        tc_faults_push(p->faults, ".string_match");
        ok = tc_read_string_matcher(p, m->string_match, &out->string);
        tc_faults_pop(p->faults);
        return ok;
    case HEADER(RANGE_MATCH):
        out->kind = TC_HEADER_MATCH_RANGE;
        out->range_start = m->range_match->start;
        out->range_end = m->range_match->end;
        if (out->range_end >= out->range_start)
            return true;
        tc_faults_add_at(p->faults, ".range_match", "end must not be less than start");
        return false;
    case HEADER(PRESENT_MATCH):
        out->kind = TC_HEADER_MATCH_PRESENT;
        out->present = m->present_match;
        return true;
    default:
        tc_faults_add(p->faults, "invalid header matcher");
        return false;
    }
}

bool tc_read_header_matcher(struct tc_reading *p, const Envoy__Config__Route__V3__HeaderMatcher *m,
                            struct tc_header_matcher *out)
{
    *out = (struct tc_header_matcher){.name = tc_read_header_name(p, m->name), .invert = m->invert_match};
    bool named = tc_read_nonempty(p, m->name, ".name");
    return parse_specifier(p, m, out) && named;
}

static bool parse_headers(struct tc_reading *p, const Envoy__Config__Route__V3__RouteMatch *m, struct tc_route *out)
{
    struct tc_header_matcher *headers = TC_STORE_ARRAY(p->store, m->n_headers, struct tc_header_matcher);
    bool ok = true;
    for (size_t i = 0; i < m->n_headers; i++) {
        tc_faults_push(p->faults, ".headers[%zu]", i);
        ok = tc_read_header_matcher(p, m->headers[i], &headers[i]) && ok;
        tc_faults_pop(p->faults);
    }
    out->n_headers = m->n_headers;
    out->headers = headers;
    return ok;
}

bool tc_read_route_match(struct tc_reading *p, const Envoy__Config__Route__V3__RouteMatch *m, struct tc_route *out)
{
    if (!m) {
        tc_faults_add(p->faults, "field not present");
        return false;
    }
    if (m->n_query_parameters) /* A28: a gRPC path has none, so the route can never match */
        return false;
    if (!parse_path(p, m, &out->path))
        return false;
    bool ok = parse_headers(p, m, out);
    if (m->runtime_fraction) {
        tc_faults_push(p->faults, ".runtime_fraction.default_value");
        out->has_fraction = true;
        ok = tc_read_fraction(p, m->runtime_fraction->default_value, &out->fraction_millionths) && ok;
        tc_faults_pop(p->faults);
    }
    return ok;
}
