/* Reads numbers, durations and sizes from text, and checks UTF-8.
 *
 * The whole text must be the value: spaces, a plus sign (except in doubles), hexadecimal digits and overflow are
 * errors. Nothing depends on the process's locale (tc_parse_double has the one exception). Doubles are left to the C
 * library, since rounding them correctly is hard; the number of a duration or a size is read as a double too. */
#include "base/parse.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

int tc_parse_u64(struct tc_slice s, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    if (s.len == 0)
        return TORC_EPARSE;
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9')
            return TORC_EPARSE;
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(s.data[i] - '0'), &v))
            return TORC_EPARSE;
    }
    if (v > max)
        return TORC_EPARSE;
    *out = v;
    return 0;
}

int tc_parse_i64(struct tc_slice s, int64_t *out)
{
    bool negative = s.len && s.data[0] == '-';
    uint64_t v;
    if (negative)
        s = tc_slice_of(s.data + 1, s.len - 1);
    if (tc_parse_u64(s, negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX, &v) != 0)
        return TORC_EPARSE;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

/* Accepts an optional sign, digits, at most one point, and an optional exponent, whatever the locale says: strtod_l
 * gets the C locale, which is made when it is first needed. If several threads make it at once, the first one stays. If
 * the system does not make it, strtod reads by the process's locale. */
int tc_parse_double(struct tc_slice s, double *out)
{
    char text[1100]; /* the exact decimal form of a double has at most 1077 characters */
    if (s.len == 0 || s.len >= sizeof(text))
        return TORC_EPARSE;
    for (size_t i = 0; i < s.len; i++)
        if (s.data[i] == '\0' || !strchr("0123456789.eE+-", s.data[i]))
            return TORC_EPARSE;
    memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    static locale_t c_locale;
    locale_t locale = __atomic_load_n(&c_locale, __ATOMIC_ACQUIRE);
    if (!locale) {
        locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        locale_t expected = (locale_t)0;
        if (locale &&
            !__atomic_compare_exchange_n(&c_locale, &expected, locale, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            freelocale(locale);
            locale = expected;
        }
    }
    char *end;
    double v = locale ? strtod_l(text, &end, locale) : strtod(text, &end);
    if (*end != '\0' || !isfinite(v))
        return TORC_EPARSE;
    *out = v;
    return 0;
}

/* Splits "1.5s" into its number and its unit, which may be empty. Accepts no sign: a duration or size that a user
 * writes is never negative. */
static int split_unit(struct tc_slice s, double *number, struct tc_slice *unit)
{
    size_t n = 0;
    if (s.len == 0)
        return TORC_EPARSE;
    while (n < s.len && ((s.data[n] >= '0' && s.data[n] <= '9') || s.data[n] == '.'))
        n++;
    *unit = tc_slice_of(s.data + n, s.len - n);
    return tc_parse_double(tc_slice_of(s.data, n), number);
}

int tc_parse_duration_ns(struct tc_slice s, uint64_t *out)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    double number;
    struct tc_slice unit;
    if (split_unit(s, &number, &unit) != 0)
        return TORC_EPARSE;
    for (size_t i = 0; i < TC_ARRAY_LEN(units); i++) {
        double ns = number * units[i].ns;
        if (tc_slice_eq_str(unit, units[i].unit) && ns < 9e18) {
            *out = (uint64_t)llround(ns);
            return 0;
        }
    }
    return TORC_EPARSE;
}

int tc_parse_size(struct tc_slice s, uint64_t *out)
{
    double number;
    struct tc_slice unit;
    if (split_unit(s, &number, &unit) != 0 || unit.len > 1)
        return TORC_EPARSE;
    double factor = 1;
    if (unit.len) {
        const char *p = unit.data[0] ? strchr("kMG", unit.data[0]) : NULL;
        if (!p)
            return TORC_EPARSE;
        for (const char *q = "kMG"; q <= p && *q; q++) {
            factor *= 1024;
            if (*q == *p)
                break;
        }
    }
    double v = number * factor;
    if (v > 9e18 || v != floor(v))
        return TORC_EPARSE;
    *out = (uint64_t)v;
    return 0;
}

/* RFC 3629: rejects overlong forms, surrogates and code points above U+10FFFF. */
bool tc_utf8_valid(struct tc_slice s)
{
    if (s.len == 0) /* data may be NULL */
        return true;
    const unsigned char *p = (const unsigned char *)s.data, *end = p + s.len;
    while (p < end) {
        if (*p < 0x80) {
            uint64_t eight = UINT64_MAX;
            if (end - p >= 8)
                memcpy(&eight, p, 8);
            p += eight & 0x8080808080808080 ? 1 : 8;
            continue;
        }
        unsigned n = *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : 1;
        if (*p < 0xc2 || *p > 0xf4 || (size_t)(end - p) <= n)
            return false;
        uint32_t c = *p & (0x3fu >> n);
        for (unsigned i = 1; i <= n; i++) {
            if ((p[i] & 0xc0) != 0x80)
                return false;
            c = (c << 6) | (p[i] & 0x3fu);
        }
        static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
            return false;
        p += n + 1;
    }
    return true;
}
