/* String, header and fraction matchers of routes (A28), and string matchers of TLS subject names (A29): data and match
 * functions. The parsers are in route_match_decoder.c and decoder.c. Hash policies read headers by
 * tc_route_header_value; drops and injected faults use tc_fraction_match. Matchers are immutable; what they point at
 * lives in the resource's arena. Any thread.
 *
 * `steps` is what is left of a budget (regex/regex.h). The functions take from it, and set it to 0 once it does not
 * suffice. From then on no regex matches, and no matcher matches a header that is present: a caller must ignore the
 * answers. */
#ifndef TC_XDS_RESOURCE_MATCHERS_H
#define TC_XDS_RESOURCE_MATCHERS_H

#include "base/headers.h"
#include "regex/regex.h"

enum tc_string_match_kind { TC_MATCH_EXACT, TC_MATCH_PREFIX, TC_MATCH_SUFFIX, TC_MATCH_CONTAINS, TC_MATCH_REGEX };

struct tc_string_matcher {
    enum tc_string_match_kind kind;
    bool ignore_case;       /* ASCII; never set for a regex */
    struct tc_slice text;   /* also the pattern of a regex */
    struct tc_regex *regex; /* TC_MATCH_REGEX; matches the whole value */
};

enum tc_header_match_kind { TC_HEADER_MATCH_STRING, TC_HEADER_MATCH_RANGE, TC_HEADER_MATCH_PRESENT };

struct tc_header_matcher {
    struct tc_slice name; /* lower case */
    enum tc_header_match_kind kind;
    bool invert;
    bool present;                    /* PRESENT: whether the header must be present */
    int64_t range_start, range_end;  /* RANGE: start <= value < end */
    struct tc_string_matcher string; /* STRING */
};

#define TC_FRACTION_ONE 1000000u /* fractions count millionths */

/* Returns whether the value matches. Takes steps only for a regex. */
bool tc_string_matcher_match(const struct tc_string_matcher *m, struct tc_slice value, uint64_t *steps);
/* Matches a request's metadata (A28): several values of one name are joined by ','; a "-bin" name counts as absent;
 * content-type is always "application/grpc". A matcher other than PRESENT fails on an absent header, even if inverted.
 * Takes as many steps as the value has bytes, and those of a regex. `scratch` may be reused between calls; the caller
 * frees it. */
bool tc_header_matcher_match(const struct tc_header_matcher *m, const struct tc_headers *headers,
                             struct tc_buf *scratch, uint64_t *steps);
/* Stores the value of a header by the rules of tc_header_matcher_match: borrowed from the headers, from `scratch`, or
 * static. `name` is in lower case. Returns false if the header is absent. */
bool tc_route_header_value(const struct tc_headers *headers, struct tc_slice name, struct tc_buf *scratch,
                           struct tc_slice *value);
/* Returns true in `millionths` of 1,000,000 cases over uniform `random` numbers. */
bool tc_fraction_match(uint32_t millionths, uint64_t random);
/* Append a text for logs and --explain: `prefix "/a"`, `header "k" exact "v"`. */
void tc_string_matcher_format(const struct tc_string_matcher *m, struct tc_buf *out);
void tc_header_matcher_format(const struct tc_header_matcher *m, struct tc_buf *out);

#endif
