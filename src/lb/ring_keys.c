/* Of ten keys in a row only the last byte differs, and XXH64 takes the last bytes of a text last: so its state before
 * the last step is computed once for ten, and each of them costs that step and the avalanche alone. */
#include "lb/ring_keys.h"

#include <endian.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

#define P1 0x9E3779B185EBCA87u
#define P2 0xC2B2AE3D27D4EB4Fu
#define P3 0x165667B19E3779F9u
#define P4 0x85EBCA77C2B2AE63u
#define P5 0x27D4EB2F165667C5u

enum {
    LOCAL = 256, /* bytes of text that need no allocation */
    SUFFIX = 12, /* '_' and ten digits */
    STRIPE = 32  /* bytes that XXH64 takes at a time, while there are as many */
};

static inline uint64_t rotl(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static inline uint64_t read64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

static inline uint32_t read32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return le32toh(v);
}

/* XXH64's steps. */

static inline uint64_t round64(uint64_t acc, uint64_t word)
{
    return rotl(acc + word * P2, 31) * P1;
}

static inline uint64_t step8(uint64_t h, uint64_t word)
{
    return rotl(h ^ round64(0, word), 27) * P1 + P4;
}

static inline uint64_t step4(uint64_t h, uint32_t word)
{
    return rotl(h ^ word * P1, 23) * P2 + P3;
}

static inline uint64_t step1(uint64_t h, uint64_t byte)
{
    return rotl(h ^ byte * P5, 11) * P1;
}

static inline uint64_t avalanche(uint64_t h)
{
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

/* The state after the whole stripes of a text. */
static uint64_t stripes(const char **text, size_t len)
{
    uint64_t v[4] = {P1 + P2, P2, 0, 0 - P1};
    const char *p = *text;
    for (size_t left = len; left >= STRIPE; left -= STRIPE, p += STRIPE)
        for (unsigned k = 0; k < 4; k++)
            v[k] = round64(v[k], read64(p + 8 * k));
    uint64_t h = rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18);
    for (unsigned k = 0; k < 4; k++)
        h = (h ^ round64(0, v[k])) * P1 + P4;
    *text = p;
    return h;
}

/* The hashes of the texts that begin with text[0..len - 1) and end in `digit`, digit + 1, ... */
static void hash_run(const char *text, size_t len, unsigned digit, unsigned n, uint64_t *out)
{
    const char *p = text, *end = text + len;
    uint64_t h = (len >= STRIPE ? stripes(&p, len) : P5) + len;
    while (end - p > 8) {
        h = step8(h, read64(p));
        p += 8;
    }
    uint64_t last = '0' + digit;
    if (end - p == 8) {
        uint64_t word = (read64(p) << 8 >> 8) + (last << 56);
        for (unsigned i = 0; i < n; i++, word += (uint64_t)1 << 56)
            out[i] = avalanche(step8(h, word));
        return;
    }
    if (end - p > 4) {
        h = step4(h, read32(p));
        p += 4;
    }
    if (end - p == 4) {
        uint32_t word = (read32(p) << 8 >> 8) + ((uint32_t)last << 24);
        for (unsigned i = 0; i < n; i++, word += (uint32_t)1 << 24)
            out[i] = avalanche(step4(h, word));
        return;
    }
    for (; end - p > 1; p++)
        h = step1(h, (unsigned char)*p);
    for (unsigned i = 0; i < n; i++, last++)
        out[i] = avalanche(step1(h, last));
}

/* Writes i in decimal; its length. */
static size_t format(char *out, uint32_t i)
{
    char digits[SUFFIX];
    size_t len = 0;
    do
        digits[len++] = (char)('0' + i % 10);
    while (i /= 10);
    for (size_t k = 0; k < len; k++)
        out[k] = digits[len - 1 - k];
    return len;
}

void tc_ring_keys(struct tc_slice key, uint32_t first, uint32_t n, uint64_t *out)
{
    char local[LOCAL], *text = local;
    if (key.len > LOCAL - SUFFIX)
        text = tc_malloc(key.len + SUFFIX);
    if (key.len)
        memcpy(text, key.data, key.len);
    size_t prefix = key.len + 1;
    text[key.len] = '_';
    while (n > 0) {
        unsigned digit = first % 10, run = TC_MIN(10 - digit, n);
        size_t len = prefix + format(text + prefix, first);
        if (len % STRIPE != 0) {
            hash_run(text, len, digit, run, out);
        } else { /* the last byte belongs to a stripe */
            for (unsigned i = 0; i < run; i++, text[len - 1]++)
                out[i] = XXH64(text, len, 0);
        }
        out += run;
        first += run;
        n -= run;
    }
    if (text != local)
        tc_free(text);
}
