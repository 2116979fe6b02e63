/* Numbers of JSON: text into integers and doubles, doubles and floats into the shortest text.
 *
 * tc_number_length knows the grammar; all other readers take text that it has accepted. Integers are not read as
 * doubles, which are exact only up to 2^53. The C library reads doubles in the C locale, and writes them with the
 * decimal point of the process's locale, which double_text replaces. */
#include "json/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/parse.h"

static size_t digits_length(struct tc_slice text, size_t at)
{
    size_t n = 0;
    while (at + n < text.len && text.data[at + n] >= '0' && text.data[at + n] <= '9')
        n++;
    return n;
}

size_t tc_number_length(struct tc_slice text)
{
    size_t at = text.len && text.data[0] == '-', n = digits_length(text, at);
    if (n == 0)
        return 0;
    if (text.data[at] == '0')
        n = 1;
    at += n;
    if (at < text.len && text.data[at] == '.') {
        if ((n = digits_length(text, at + 1)) == 0)
            return 0;
        at += 1 + n;
    }
    if (at < text.len && (text.data[at] | 0x20) == 'e') {
        size_t sign = at + 1 < text.len && (text.data[at + 1] == '-' || text.data[at + 1] == '+');
        if ((n = digits_length(text, at + 1 + sign)) == 0)
            return 0;
        at += 1 + sign + n;
    }
    return at;
}

/* Cuts the exponent off *number and returns the exponent; 0 if there is none. The exponent is capped at 10^12: no text
 * has as many digits, so a larger exponent makes no difference. */
static int64_t number_exponent(struct tc_slice *number)
{
    size_t at = 0;
    while (at < number->len && (number->data[at] | 0x20) != 'e')
        at++;
    if (at == number->len)
        return 0;
    bool negative = number->data[at + 1] == '-';
    int64_t v = 0;
    for (size_t i = at + 1; i < number->len; i++)
        if (number->data[i] >= '0' && number->data[i] <= '9')
            v = TC_MIN(v * 10 + (number->data[i] - '0'), INT64_C(1000000000000));
    *number = tc_slice_of(number->data, at);
    return negative ? -v : v;
}

/* Stores the integer of a number without sign. The exponent shifts the point: digits before the shifted point are the
 * integer, and digits after it must be 0. Returns false if one is not, or if the integer exceeds 64 bits. */
static bool number_magnitude(struct tc_slice number, uint64_t *out)
{
    int64_t exponent = number_exponent(&number);
    size_t point = 0;
    uint64_t v = 0;
    while (point < number.len && number.data[point] != '.')
        point++;
    int64_t place = (int64_t)point + exponent; /* how many digits are before the shifted point */
    bool zero = true;
    for (size_t i = 0; i < number.len; i++) {
        if (i == point)
            continue;
        unsigned digit = (unsigned)(number.data[i] - '0');
        zero = zero && digit == 0;
        if (place-- > 0 ? __builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, digit, &v) : digit != 0)
            return false;
    }
    for (; place > 0 && !zero; place--)
        if (__builtin_mul_overflow(v, 10u, &v))
            return false;
    *out = v;
    return true;
}

bool tc_number_u64(struct tc_slice number, uint64_t max, uint64_t *out)
{
    bool negative = number.len && number.data[0] == '-';
    uint64_t v;
    if (!number_magnitude(tc_slice_of(number.data + negative, number.len - negative), &v) || v > max || (negative && v))
        return false;
    *out = v;
    return true;
}

bool tc_number_i64(struct tc_slice number, int64_t min, int64_t max, int64_t *out)
{
    bool negative = number.len && number.data[0] == '-';
    uint64_t v, most = negative ? (uint64_t)0 - (uint64_t)min : (uint64_t)max;
    if (!number_magnitude(tc_slice_of(number.data + negative, number.len - negative), &v) || v > most)
        return false;
    *out = (int64_t)(negative ? (uint64_t)0 - v : v);
    return true;
}

bool tc_number_double(struct tc_slice number, double *out)
{
    return tc_parse_double(number, out) == 0;
}

/* Writes up to `digits` digits, with '.' as the decimal point in any locale. Writes minus zero as -0.0, since many
 * readers take -0 for an integer. */
static void double_text(double v, int digits, char out[40])
{
    char *to = out;
    snprintf(out, 40, "%.*g", digits, v);
    for (const char *from = out; *from; from++) {
        if (strchr("0123456789+-e", *from))
            *to++ = *from;
        else if (to == out || to[-1] != '.')
            *to++ = '.';
    }
    *to = '\0';
    if (strcmp(out, "-0") == 0)
        memcpy(to, ".0", 3);
}

/* A decimal of up to 15 digits (6 for a float) survives the way to binary and back, unless it is below DBL_MIN
 * (FLT_MIN). So the search for the fewest digits begins with 15 (6): %g drops the trailing zeros of a shorter number.
 * Below DBL_MIN (FLT_MIN) the search begins with 1. */
void tc_number_append_double(struct tc_buf *out, double v)
{
    char text[40];
    double again = 0;
    for (int digits = fabs(v) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        double_text(v, digits, text);
        if (tc_parse_double(tc_slice_str(text), &again) == 0 && again == v)
            break;
    }
    tc_buf_append_str(out, text);
}

void tc_number_append_float(struct tc_buf *out, float v)
{
    char text[40];
    double again = 0;
    for (int digits = fabsf(v) < FLT_MIN ? 1 : 6; digits <= 9; digits++) {
        double_text((double)v, digits, text);
        if (tc_parse_double(tc_slice_str(text), &again) == 0 && (float)again == v)
            break;
    }
    tc_buf_append_str(out, text);
}
