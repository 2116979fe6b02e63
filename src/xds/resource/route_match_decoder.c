/* Decodes the matchers of a route (A28): path, headers, fraction.
 *
 * gRPC paths are "/service/method". A route whose prefix or path matches no such path is left out without an error, and
 * so is a route with query parameters: their other matchers are not checked. In other routes an unknown specifier, an
 * invalid regex, string matcher, range or fraction, or an empty header name is an error. Header names are stored in
 * lower case, as in metadata.
 *
 * Texts and regexes are kept by the resource's arena. Runs on any thread. */
#include "xds/resource/route_config_decoder.h"

#define PATH(x) ENVOY__CONFIG__ROUTE__V3__ROUTE_MATCH__PATH_SPECIFIER_##x
#define HEADER(x) ENVOY__CONFIG__ROUTE__V3__HEADER_MATCHER__HEADER_MATCH_SPECIFIER_##x

struct tc_slice tc_decode_header_name(struct tc_decoder *dec, const char *name)
{
    size_t len = strlen(name);
    char *lower = tc_resource_arena_array(dec->arena, len + 1, 1);
    for (size_t i = 0; i < len; i++)
        lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
    return tc_slice_of(lower, len);
}

/* Returns whether a gRPC path, "/service/method", can begin with the prefix (A28). */
static bool prefix_possible(const char *prefix)
{
    if (!*prefix)
        return true;
    if (*prefix != '/')
        return false;
    const char *second = strchr(prefix + 1, '/');
    return !second || (second != prefix + 1 && !strchr(second + 1, '/'));
}

/* Returns true if the path has the form "/service/method", which every gRPC path has (A28). */
static bool path_possible(const char *path)
{
    if (*path != '/')
        return false;
    const char *second = strchr(path + 1, '/');
    return second && second != path + 1 && second[1] && !strchr(second + 1, '/');
}

/* Returns false if the route is to be left out: without an error if no gRPC path matches. */
static bool parse_path(struct tc_decoder *dec, const Envoy__Config__Route__V3__RouteMatch *m,
                       struct tc_string_matcher *out)
{
    *out = (struct tc_string_matcher){.ignore_case = m->case_sensitive && !m->case_sensitive->value};
    switch (m->path_specifier_case) {
    case PATH(PREFIX):
        out->kind = TC_MATCH_PREFIX;
        out->text = tc_resource_arena_text(dec->arena, m->prefix);
        return prefix_possible(m->prefix);
    case PATH(PATH):
        out->kind = TC_MATCH_EXACT;
        out->text = tc_resource_arena_text(dec->arena, m->path);
        return path_possible(m->path);
    case PATH(SAFE_REGEX):
        out->kind = TC_MATCH_REGEX;
        out->ignore_case = false;
        out->text = tc_resource_arena_text(dec->arena, m->safe_regex->regex);
        out->regex = tc_decode_regex(dec, ".safe_regex", m->safe_regex);
        return out->regex != NULL;
    default:
        tc_validation_add(dec->errors, "invalid path specifier");
        return false;
    }
}

static bool matcher_set_string(struct tc_decoder *dec, struct tc_header_matcher *out, enum tc_string_match_kind kind,
                               const char *text)
{
    out->string = (struct tc_string_matcher){.kind = kind, .text = tc_resource_arena_text(dec->arena, text)};
    return true;
}

/* Returns false with an error. */
static bool parse_specifier(struct tc_decoder *dec, const Envoy__Config__Route__V3__HeaderMatcher *m,
                            struct tc_header_matcher *out)
{
    bool ok = true;
    switch (m->header_match_specifier_case) {
    case HEADER(EXACT_MATCH):
        return matcher_set_string(dec, out, TC_MATCH_EXACT, m->exact_match);
    case HEADER(PREFIX_MATCH):
        return matcher_set_string(dec, out, TC_MATCH_PREFIX, m->prefix_match);
    case HEADER(SUFFIX_MATCH):
        return matcher_set_string(dec, out, TC_MATCH_SUFFIX, m->suffix_match);
    case HEADER(CONTAINS_MATCH):
        return matcher_set_string(dec, out, TC_MATCH_CONTAINS, m->contains_match);
    case HEADER(SAFE_REGEX_MATCH):
        matcher_set_string(dec, out, TC_MATCH_REGEX, m->safe_regex_match->regex);
        out->string.regex = tc_decode_regex(dec, ".safe_regex_match", m->safe_regex_match);
        return out->string.regex != NULL;
    case HEADER(STRING_MATCH):
        tc_validation_push(dec->errors, ".string_match");
        ok = tc_decode_string_matcher(dec, m->string_match, &out->string);
        tc_validation_pop(dec->errors);
        return ok;
    case HEADER(RANGE_MATCH):
        out->kind = TC_HEADER_MATCH_RANGE;
        out->range_start = m->range_match->start;
        out->range_end = m->range_match->end;
        if (out->range_end >= out->range_start)
            return true;
        tc_validation_add_at(dec->errors, ".range_match", "end must not be less than start");
        return false;
    case HEADER(PRESENT_MATCH):
        out->kind = TC_HEADER_MATCH_PRESENT;
        out->present = m->present_match;
        return true;
    default:
        tc_validation_add(dec->errors, "invalid header matcher");
        return false;
    }
}

static bool decode_header_matcher(struct tc_decoder *dec, const Envoy__Config__Route__V3__HeaderMatcher *m,
                                  struct tc_header_matcher *out)
{
    *out = (struct tc_header_matcher){.name = tc_decode_header_name(dec, m->name), .invert = m->invert_match};
    bool named = tc_decode_nonempty(dec, m->name, ".name");
    return parse_specifier(dec, m, out) && named;
}

static bool parse_headers(struct tc_decoder *dec, const Envoy__Config__Route__V3__RouteMatch *m, struct tc_route *out)
{
    struct tc_header_matcher *headers = TC_RESOURCE_ARRAY(dec->arena, m->n_headers, struct tc_header_matcher);
    bool ok = true;
    for (size_t i = 0; i < m->n_headers; i++) {
        tc_validation_push(dec->errors, ".headers[%zu]", i);
        ok = decode_header_matcher(dec, m->headers[i], &headers[i]) && ok;
        tc_validation_pop(dec->errors);
    }
    out->n_headers = m->n_headers;
    out->headers = headers;
    return ok;
}

bool tc_decode_route_match(struct tc_decoder *dec, const Envoy__Config__Route__V3__RouteMatch *m, struct tc_route *out)
{
    if (!m) {
        tc_validation_add(dec->errors, "field not present");
        return false;
    }
    if (m->n_query_parameters) /* A28: a gRPC path has no query, so the route can never match */
        return false;
    if (!parse_path(dec, m, &out->path))
        return false;
    bool ok = parse_headers(dec, m, out);
    if (m->runtime_fraction) {
        out->has_fraction = true;
        ok = tc_decode_fraction(dec, ".runtime_fraction.default_value", m->runtime_fraction->default_value,
                                &out->fraction_millionths) &&
             ok;
    }
    return ok;
}
