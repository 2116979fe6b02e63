/* XXH64 of the texts key_0, key_1, ...: an item's key and a number.
 *
 * Ten texts in a row, key_0 to key_9 or key_120 to key_129, differ in their last byte only, and XXH64 takes the last
 * bytes of a text last. So the state before the last step is computed once for ten texts, and each text costs that step
 * and the avalanche. The last step multiplies the last bytes by a constant. The last byte counts up, so each
 * product is the product before it plus a constant.
 *
 * XXH64 takes stripes of 32 bytes while there are as many, then words of 8 bytes, then 4, then single bytes. The paths
 * here:
 *
 * - hash_short: the numbers 0 to 9 of a key of 8 to 29 bytes. Nothing is copied, the words are read from the key.
 * - hash_any: everything else, on a copy of the key followed by the number. Where the last whole stripe ends before the
 *   number, the state before the number serves all numbers of as many digits. Texts that are whole stripes are left to
 *   the library.
 * - hash_block: sorts up to 256 keys by length first, so that branches, which depend on the length, are predicted. */
#include "ring/keys.h"

#include <endian.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

enum {
    LOCAL = 256,     /* bytes of text that need no allocation */
    SUFFIX = 11 + 8, /* bytes of '_' and ten digits, and of a word that is read from there */
    STRIPE = 32,     /* bytes */
    WORD = 8,        /* bytes */
    DIGITS_MAX = 10,
    BLOCK = 256,    /* keys that are sorted by length together */
    LENGTHS = 64,   /* lengths that are distinguished; longer keys count as the last one */
    TURN_WORD = 31, /* how far XXH64 rotates in each of its steps */
    TURN8 = 27,
    TURN4 = 23,
    TURN1 = 11
};

/* --- the steps of XXH64 --- */

#define P1 0x9E3779B185EBCA87u
#define P2 0xC2B2AE3D27D4EB4Fu
#define P3 0x165667B19E3779F9u
#define P4 0x85EBCA77C2B2AE63u
#define P5 0x27D4EB2F165667C5u

static inline uint64_t rotl(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static inline uint64_t round64(uint64_t acc, uint64_t word)
{
    return rotl(acc + word * P2, TURN_WORD) * P1;
}

static inline uint64_t step8(uint64_t h, uint64_t word)
{
    return rotl(h ^ round64(0, word), TURN8) * P1 + P4;
}

static inline uint64_t step4(uint64_t h, uint32_t word)
{
    return rotl(h ^ word * P1, TURN4) * P2 + P3;
}

static inline uint64_t step1(uint64_t h, uint64_t byte)
{
    return rotl(h ^ byte * P5, TURN1) * P1;
}

static inline uint64_t avalanche(uint64_t h)
{
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

/* --- the last step of ten texts --- */

static inline uint64_t word_read(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

/* hash_finish8, hash_finish4 and hash_finish1 perform the last step, which takes 8, 4 or 1 bytes, and the avalanche of
 * n texts whose last byte counts up. h: the state before the step. product: the last bytes of the first text times the
 * first constant of the step. */
static inline void hash_finish8(uint64_t h, uint64_t product, unsigned n, uint64_t *out)
{
    for (unsigned i = 0; i < n; i++, product += P2 << 56)
        out[i] = avalanche(rotl(h ^ rotl(product, TURN_WORD) * P1, TURN8) * P1 + P4);
}

static inline void hash_finish4(uint64_t h, uint64_t product, unsigned n, uint64_t *out)
{
    for (unsigned i = 0; i < n; i++, product += P1 << 24)
        out[i] = avalanche(rotl(h ^ product, TURN4) * P2 + P3);
}

static inline void hash_finish1(uint64_t h, uint64_t product, unsigned n, uint64_t *out)
{
    for (unsigned i = 0; i < n; i++, product += P5)
        out[i] = avalanche(rotl(h ^ product, TURN1) * P1);
}

/* Writes the hashes of n texts whose last byte counts up. h: the state before the last `left` bytes (1 to 8). tail: the
 * last bytes of the first text, in little endian. */
static inline void hash_finish(uint64_t h, uint64_t tail, unsigned left, unsigned n, uint64_t *out)
{
    if (left == WORD) {
        hash_finish8(h, tail * P2, n, out);
        return;
    }
    if (left > 4) {
        h = step4(h, (uint32_t)tail);
        tail >>= 32;
        left -= 4;
    }
    if (left == 4) {
        hash_finish4(h, tail * P1, n, out);
        return;
    }
    for (; left > 1; left--, tail >>= 8)
        h = step1(h, tail & 0xff);
    hash_finish1(h, tail * P5, n, out);
}

/* --- the state before the last step --- */

/* The bytes before `at` are hashed into h. */
struct state {
    uint64_t h;
    const char *at;
};

/* Returns the state after the whole stripes of a text. */
static struct state state_begin(const char *text, size_t len)
{
    if (len < STRIPE)
        return (struct state){P5 + len, text};
    uint64_t v[4] = {P1 + P2, P2, 0, 0 - P1};
    const char *p = text;
    for (size_t left = len; left >= STRIPE; left -= STRIPE, p += STRIPE)
        for (unsigned k = 0; k < 4; k++)
            v[k] = round64(v[k], word_read(p + WORD * k));
    uint64_t h = rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18);
    for (unsigned k = 0; k < 4; k++)
        h = (h ^ round64(0, v[k])) * P1 + P4;
    return (struct state){h + len, p};
}

/* Hashes the whole words that end at `until` or before. */
static inline struct state state_take_words(struct state s, const char *until)
{
    for (; until - s.at >= WORD; s.at += WORD)
        s.h = step8(s.h, word_read(s.at));
    return s;
}

/* Writes the hashes of key + "_" + digit for n digits from `digit` on. The key has at least a word, and together with
 * the suffix less than a stripe. */
static inline void hash_short(struct tc_slice key, unsigned digit, unsigned n, uint64_t *out)
{
    const char *end = key.data + key.len;
    struct state s = state_take_words((struct state){P5 + key.len + 2, key.data}, end);
    unsigned left = (unsigned)(end - s.at);
    uint64_t tail = left ? word_read(end - WORD) >> (64 - 8 * left) : 0;
    tail |= (uint64_t)'_' << (8 * left++);
    if (left == WORD) {
        s.h = step8(s.h, tail);
        tail = left = 0;
    }
    hash_finish(s.h, tail | (uint64_t)('0' + digit) << (8 * left), left + 1, n, out);
}

/* Writes i in decimal, and returns its length. */
static size_t number_write(char *out, uint32_t i)
{
    char digits[DIGITS_MAX];
    size_t len = 0;
    do
        digits[len++] = (char)('0' + i % 10);
    while (i /= 10);
    for (size_t k = 0; k < len; k++)
        out[k] = digits[len - 1 - k];
    return len;
}

/* Adds one to the decimal number at [begin, end). Returns false if it needs one more digit. */
static bool number_count_up(char *begin, char *end)
{
    for (char *p = end; p > begin; *p = '0')
        if (*--p != '9') {
            ++*p;
            return true;
        }
    return false;
}

/* Writes the hashes of n texts whose last byte counts up. The first text ends at `end`. s: the state at some place
 * before the first text's last byte. Reads up to 7 bytes past `end`. */
static inline void hash_run(struct state s, const char *end, unsigned n, uint64_t *out)
{
    s = state_take_words(s, end - 1);
    unsigned left = (unsigned)(end - s.at), other = 64 - 8 * left;
    hash_finish(s.h, word_read(s.at) << other >> other, left, n, out);
}

/* Writes the hashes of key + "_" + i for n numbers i from `first` on. The key may have any length. */
static __attribute__((noinline)) void hash_any(struct tc_slice key, uint32_t first, uint32_t n, uint64_t *out)
{
    char local[LOCAL], *text = key.len <= LOCAL - SUFFIX ? local : tc_malloc(key.len + SUFFIX);
    if (key.len)
        memcpy(text, key.data, key.len);
    char *digits = text + key.len + 1;
    memset(text + key.len, 0, SUFFIX);
    text[key.len] = '_';
    size_t len = 0;
    /* The state before the digits, for all numbers of as many digits; `at` is NULL if a stripe reaches into the
     * digits. */
    struct state common = {0};
    while (n > 0) {
        unsigned digit = first % 10, run = TC_MIN(10 - digit, n);
        if (len == 0 || !number_count_up(digits, text + len - 1)) {
            len = key.len + 1 + number_write(digits, first);
            bool early = len - len % STRIPE <= key.len + 1; /* whole stripes end before the digits */
            common = early ? state_take_words(state_begin(text, len), digits) : (struct state){0};
        }
        text[len - 1] = (char)('0' + digit);
        if (len % STRIPE != 0) {
            hash_run(common.at ? common : state_begin(text, len), text + len, run, out);
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

static inline void hash_key(struct tc_slice key, uint32_t first, uint32_t n, uint64_t *out)
{
    if (first < 10 && key.len >= WORD && key.len + 2 < STRIPE) {
        uint32_t run = TC_MIN(10 - first, n);
        hash_short(key, first, run, out);
        first += run;
        n -= run;
        out += run;
    }
    if (n > 0)
        hash_any(key, first, n, out);
}

/* Hashes up to BLOCK parts, keys of equal length one after the other. Returns the end of what it wrote to `out`. */
static uint64_t *hash_block(const struct tc_ring_part *parts, unsigned n, uint64_t *out)
{
    uint16_t places[LENGTHS] = {0};
    uint8_t order[BLOCK];
    uint64_t *outs[BLOCK];
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        __builtin_prefetch(parts[i].key.data);
        places[TC_MIN(parts[i].key.len, LENGTHS - 1)]++;
        outs[i] = out;
        out += parts[i].n;
    }
    for (unsigned l = 0; l < LENGTHS; l++) {
        unsigned count = places[l];
        places[l] = (uint16_t)sum;
        sum += count;
    }
    for (unsigned i = 0; i < n; i++)
        order[places[TC_MIN(parts[i].key.len, LENGTHS - 1)]++] = (uint8_t)i;
    for (unsigned k = 0; k < n; k++) {
        unsigned i = order[k];
        hash_key(parts[i].key, parts[i].first, parts[i].n, outs[i]);
    }
    return out;
}

void tc_ring_keys(const struct tc_ring_part *parts, size_t n, uint64_t *out)
{
    for (size_t at = 0, block; at < n; at += block) {
        block = TC_MIN(n - at, BLOCK);
        out = hash_block(parts + at, (unsigned)block, out);
    }
}
