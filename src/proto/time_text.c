/* Texts of Duration and Timestamp, both ways.
 *
 * The limits and forms are those of protobuf's JSON mapping: years 1 to 9999, a fraction of 0, 3, 6 or 9 digits in
 * output and of up to nine in input. date_days counts in the proleptic Gregorian calendar, in years that begin in
 * March, so that a leap day is the last day of its year. The C library's calendar is not used: its range, its locale
 * and its time zone depend on the system. */
#include "proto/time_text.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_DURATION 315576000000
#define MIN_TIMESTAMP (-62135596800) /* 0001-01-01T00:00:00Z */
#define MAX_TIMESTAMP 253402300799   /* 9999-12-31T23:59:59Z */
#define NANOS 1000000000

/* Writes the point and the fewest of 3, 6 or 9 digits that lose nothing, or an empty text for 0. */
static void fraction_text(int32_t nanos, char out[16])
{
    if (nanos == 0)
        out[0] = 0;
    else if (nanos % 1000000 == 0)
        snprintf(out, 16, ".%03" PRId32, nanos / 1000000);
    else if (nanos % 1000 == 0)
        snprintf(out, 16, ".%06" PRId32, nanos / 1000);
    else
        snprintf(out, 16, ".%09" PRId32, nanos);
}

bool tc_time_duration_text(int64_t seconds, int32_t nanos, char out[TC_TIME_TEXT_BYTES])
{
    if (seconds < -MAX_DURATION || seconds > MAX_DURATION || nanos <= -NANOS || nanos >= NANOS ||
        (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0))
        return false;
    char fraction[16];
    fraction_text(nanos < 0 ? -nanos : nanos, fraction);
    snprintf(out, TC_TIME_TEXT_BYTES, "%s%" PRId64 "%ss", seconds < 0 || nanos < 0 ? "-" : "",
             seconds < 0 ? -seconds : seconds, fraction);
    return true;
}

/* Takes up to `max` digits off the front of `*s`. Returns false, with `*s` untouched, if there are fewer than `min`. */
static bool text_take_digits(struct tc_slice *s, size_t min, size_t max, int64_t *out)
{
    size_t n = 0;
    int64_t v = 0;
    while (n < s->len && n < max && s->data[n] >= '0' && s->data[n] <= '9')
        v = v * 10 + (s->data[n++] - '0');
    if (n < min)
        return false;
    *s = tc_slice_of(s->data + n, s->len - n);
    *out = v;
    return true;
}

static bool text_take_char(struct tc_slice *s, char c)
{
    if (s->len == 0 || s->data[0] != c)
        return false;
    *s = tc_slice_of(s->data + 1, s->len - 1);
    return true;
}

/* Takes an optional ".digits" off the front of `*s`. */
static bool text_take_fraction(struct tc_slice *s, int32_t *nanos)
{
    int64_t v = 0;
    size_t before;
    *nanos = 0;
    if (!text_take_char(s, '.'))
        return true;
    before = s->len;
    if (!text_take_digits(s, 1, 9, &v))
        return false;
    for (size_t n = before - s->len; n < 9; n++)
        v *= 10;
    *nanos = (int32_t)v;
    return true;
}

bool tc_time_duration_parse(struct tc_slice s, int64_t *seconds, int32_t *nanos)
{
    int64_t whole;
    int32_t part;
    bool negative = text_take_char(&s, '-');
    if (!text_take_digits(&s, 1, 12, &whole) || !text_take_fraction(&s, &part) || !text_take_char(&s, 's') || s.len ||
        whole > MAX_DURATION)
        return false;
    *seconds = negative ? -whole : whole;
    *nanos = negative ? -part : part;
    return true;
}

/* Returns the days from 1970-01-01 to a date. */
static int64_t date_days(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t m = (month + 9) % 12; /* March is 0 */
    return 365 * y + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - 719468;
}

static int64_t month_days(int64_t year, int64_t month)
{
    static const int64_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

bool tc_time_timestamp_text(int64_t seconds, int32_t nanos, char out[TC_TIME_TEXT_BYTES])
{
    if (seconds < MIN_TIMESTAMP || seconds > MAX_TIMESTAMP || nanos < 0 || nanos >= NANOS)
        return false;
    int64_t days = seconds / 86400, rest = seconds % 86400;
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    /* The year is within two of this estimate. */
    int64_t year = 1970 + days * 400 / 146097, month = 12;
    while (date_days(year + 1, 1, 1) <= days)
        year++;
    while (date_days(year, 1, 1) > days)
        year--;
    while (date_days(year, month, 1) > days)
        month--;
    char part[16];
    fraction_text(nanos, part);
    int n = snprintf(out, TC_TIME_TEXT_BYTES,
                     "%04" PRId64 "-%02" PRId64 "-%02" PRId64 "T%02" PRId64 ":%02" PRId64 ":%02" PRId64 "%sZ", year,
                     month, days - date_days(year, month, 1) + 1, rest / 3600, rest / 60 % 60, rest % 60, part);
    return n > 0 && n < TC_TIME_TEXT_BYTES;
}

bool tc_time_timestamp_parse(struct tc_slice s, int64_t *seconds, int32_t *nanos)
{
    int64_t year, month, day, hour, minute, second, offset_h = 0, offset_m = 0, sign = 0;
    int32_t part;
    if (!text_take_digits(&s, 4, 4, &year) || !text_take_char(&s, '-') || !text_take_digits(&s, 2, 2, &month) ||
        !text_take_char(&s, '-') || !text_take_digits(&s, 2, 2, &day) || !text_take_char(&s, 'T') ||
        !text_take_digits(&s, 2, 2, &hour) || !text_take_char(&s, ':') || !text_take_digits(&s, 2, 2, &minute) ||
        !text_take_char(&s, ':') || !text_take_digits(&s, 2, 2, &second) || !text_take_fraction(&s, &part))
        return false;
    if (!text_take_char(&s, 'Z')) {
        sign = text_take_char(&s, '+') ? -1 : text_take_char(&s, '-') ? 1 : 0;
        if (sign == 0 || !text_take_digits(&s, 2, 2, &offset_h) || !text_take_char(&s, ':') ||
            !text_take_digits(&s, 2, 2, &offset_m))
            return false;
    }
    if (s.len || year < 1 || month < 1 || month > 12 || day < 1 || day > month_days(year, month) || hour > 23 ||
        minute > 59 || second > 59 || offset_h > 23 || offset_m > 59)
        return false;
    int64_t v = date_days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    v += sign * (offset_h * 3600 + offset_m * 60);
    if (v < MIN_TIMESTAMP || v > MAX_TIMESTAMP)
        return false;
    *seconds = v;
    *nanos = part;
    return true;
}
