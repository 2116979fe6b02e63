/* grpc-timeout to nanoseconds and back. */
#include "http2/timeout.h"

#include "base/clock.h"
#include "base/common.h"
#include "base/parse.h"

enum { TIMEOUT_MAX = 99999999 }; /* 8 digits */

/* Writes the number, the unit and a NUL. Returns the length without the NUL. Runs for each call that has a timeout: it
 * costs less than printf. */
static size_t put_timeout(char out[16], unsigned n, char unit)
{
    char digits[10];
    size_t i = sizeof(digits), len = 0;
    do {
        digits[--i] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    while (i < sizeof(digits))
        out[len++] = digits[i++];
    out[len++] = unit;
    out[len] = '\0';
    return len;
}

size_t tc_h2_timeout_encode(char out[16], uint64_t timeout_ns)
{
    static const struct {
        uint64_t ns;
        char unit;
    } units[] = {{1, 'n'},
                 {1000, 'u'},
                 {TC_NS_PER_MS, 'm'},
                 {TC_NS_PER_S, 'S'},
                 {60 * TC_NS_PER_S, 'M'},
                 {3600 * TC_NS_PER_S, 'H'}};
    /* The finest unit that holds the timeout in 8 digits, rounded up: a deadline must not come early. Hours hold any
     * uint64_t. */
    for (size_t i = 0;; i++) {
        uint64_t n = timeout_ns / units[i].ns + (timeout_ns % units[i].ns != 0);
        if (n <= TIMEOUT_MAX)
            return put_timeout(out, (unsigned)n, units[i].unit);
    }
}

int tc_h2_timeout_decode(struct tc_slice s, uint64_t *timeout_ns)
{
    uint64_t n, unit;
    if (s.len < 2 || s.len > 9)
        return TORC_EPARSE;
    switch (s.data[s.len - 1]) {
    case 'n':
        unit = 1;
        break;
    case 'u':
        unit = 1000;
        break;
    case 'm':
        unit = TC_NS_PER_MS;
        break;
    case 'S':
        unit = TC_NS_PER_S;
        break;
    case 'M':
        unit = 60 * TC_NS_PER_S;
        break;
    case 'H':
        unit = 3600 * TC_NS_PER_S;
        break;
    default:
        return TORC_EPARSE;
    }
    if (tc_parse_u64(tc_slice_of(s.data, s.len - 1), TIMEOUT_MAX, &n))
        return TORC_EPARSE;
    if (__builtin_mul_overflow(n, unit, timeout_ns))
        *timeout_ns = UINT64_MAX;
    return 0;
}
