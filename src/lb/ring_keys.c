/* Of ten keys in a row only the last byte differs, and XXH64 takes the last bytes of a text last: so its state before
 * the last step is computed once for ten, and each of them costs that step and the avalanche alone. */
#include "lb/ring_keys.h"

#include <endian.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"
#include "lb/ring_xxh64.h"

enum {
    LOCAL = 256,     /* bytes of text that need no allocation */
    SUFFIX = 11 + 8, /* '_' and ten digits, and a word that is read there */
    STRIPE = 32,     /* bytes that XXH64 takes at a time, while there are as many */
    WORD = 8,        /* bytes of a word */
    DIGITS_MAX = 10,
    RUNS = 32,   /* that are done together */
    BLOCK = 256, /* keys that are put in order of their length */
    LENGTHS = 64 /* that are told apart then */
};

static inline uint64_t read64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

/* Runs of which the last step is the same, to be done together. */
struct batch {
    enum tc_ring_step step;
    bool wide;
    unsigned n;
    struct tc_ring_run runs[RUNS];
};

static void plain8(const struct tc_ring_run *r)
{
    uint64_t product = r->product;
    for (unsigned i = 0; i < r->n; i++, product += P2 << 56)
        r->out[i] = avalanche(rotl(r->h ^ rotl(product, TURN_WORD) * P1, TURN8) * P1 + P4);
}

static void plain4(const struct tc_ring_run *r)
{
    uint64_t product = r->product;
    for (unsigned i = 0; i < r->n; i++, product += P1 << 24)
        r->out[i] = avalanche(rotl(r->h ^ product, TURN4) * P2 + P3);
}

static void plain1(const struct tc_ring_run *r)
{
    uint64_t product = r->product;
    for (unsigned i = 0; i < r->n; i++, product += P5)
        r->out[i] = avalanche(rotl(r->h ^ product, TURN1) * P1);
}

static __attribute__((noinline)) void flush(struct batch *b)
{
    if (b->wide)
        tc_ring_keys_wide(b->step, b->runs, b->n);
    else if (b->step == TC_RING_STEP8)
        for (unsigned i = 0; i < b->n; i++)
            plain8(&b->runs[i]);
    else if (b->step == TC_RING_STEP4)
        for (unsigned i = 0; i < b->n; i++)
            plain4(&b->runs[i]);
    else
        for (unsigned i = 0; i < b->n; i++)
            plain1(&b->runs[i]);
    b->n = 0;
}

/* n texts that differ in the last byte, of which h is the state before the last bytes: 1 <= left <= 8 of them, in
 * `tail`, the first lowest. */
static inline void add_run(struct batch *b, uint64_t h, uint64_t tail, unsigned left, unsigned n, uint64_t *out)
{
    enum tc_ring_step step = TC_RING_STEP8;
    if (left == WORD) {
        tail *= P2;
    } else {
        if (left > 4) {
            h = step4(h, (uint32_t)tail);
            tail >>= 32;
            left -= 4;
        }
        if (left < 4) {
            for (; left > 1; left--, tail >>= 8)
                h = step1(h, tail & 0xff);
            step = TC_RING_STEP1;
            tail *= P5;
        } else {
            step = TC_RING_STEP4;
            tail *= P1;
        }
    }
    if (step != b->step || b->n == RUNS)
        flush(b);
    b->step = step;
    b->runs[b->n++] = (struct tc_ring_run){h, tail, out, n};
}

/* A text's hash in the making: the bytes before `at` are in the state. */
struct state {
    uint64_t h;
    const char *at;
};

/* The state after the whole stripes of a text. */
static struct state begin(const char *text, size_t len)
{
    if (len < STRIPE)
        return (struct state){P5 + len, text};
    uint64_t v[4] = {P1 + P2, P2, 0, 0 - P1};
    const char *p = text;
    for (size_t left = len; left >= STRIPE; left -= STRIPE, p += STRIPE)
        for (unsigned k = 0; k < 4; k++)
            v[k] = round64(v[k], read64(p + WORD * k));
    uint64_t h = rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18);
    for (unsigned k = 0; k < 4; k++)
        h = (h ^ round64(0, v[k])) * P1 + P4;
    return (struct state){h + len, p};
}

/* Takes whole words, as long as they end by `until`. */
static inline struct state words(struct state s, const char *until)
{
    for (; until - s.at >= WORD; s.at += WORD)
        s.h = step8(s.h, read64(s.at));
    return s;
}

/* The hashes of key + "_" + a digit, of keys whose last bytes can be read as a word and that make less than a stripe:
 * nothing is copied. */
static inline void hash_short(struct batch *b, struct tc_slice key, unsigned digit, unsigned n, uint64_t *out)
{
    const char *end = key.data + key.len;
    struct state s = words((struct state){P5 + key.len + 2, key.data}, end);
    unsigned left = (unsigned)(end - s.at);
    uint64_t tail = left ? read64(end - WORD) >> (64 - 8 * left) : 0;
    tail |= (uint64_t)'_' << (8 * left++);
    if (left == WORD) {
        s.h = step8(s.h, tail);
        tail = left = 0;
    }
    add_run(b, s.h, tail | (uint64_t)('0' + digit) << (8 * left), left + 1, n, out);
}

/* Writes i in decimal; its length. */
static size_t format(char *out, uint32_t i)
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

/* Adds one to a number in decimal. False: it has no room, and is zero now. */
static bool count_up(char *begin, char *end)
{
    for (char *p = end; p > begin; *p = '0')
        if (*--p != '9') {
            ++*p;
            return true;
        }
    return false;
}

/* The hashes of n texts that end there, of which s is the state somewhere before. */
static inline void hash_run(struct batch *b, struct state s, const char *end, unsigned n, uint64_t *out)
{
    s = words(s, end - 1);
    unsigned left = (unsigned)(end - s.at), other = 64 - 8 * left;
    add_run(b, s.h, read64(s.at) << other >> other, left, n, out);
}

/* The hashes of a key of whatever length. */
static __attribute__((noinline)) void hash_any(struct batch *b, struct tc_slice key, uint32_t first, uint32_t n,
                                               uint64_t *out)
{
    char local[LOCAL], *text = key.len <= LOCAL - SUFFIX ? local : tc_malloc(key.len + SUFFIX);
    if (key.len)
        memcpy(text, key.data, key.len);
    char *digits = text + key.len + 1;
    memset(text + key.len, 0, SUFFIX);
    text[key.len] = '_';
    size_t len = 0;
    struct state common = {0}; /* of all tens with so many digits */
    while (n > 0) {
        unsigned digit = first % 10, run = TC_MIN(10 - digit, n);
        if (len == 0 || !count_up(digits, text + len - 1)) {
            len = key.len + 1 + format(digits, first);
            bool early = len - len % STRIPE <= key.len + 1; /* whole stripes end before the digits */
            common = early ? words(begin(text, len), digits) : (struct state){0};
        }
        text[len - 1] = (char)('0' + digit);
        if (len % STRIPE != 0) {
            hash_run(b, common.at ? common : begin(text, len), text + len, run, out);
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

static inline void hash_key(struct batch *b, struct tc_slice key, uint32_t first, uint32_t n, uint64_t *out)
{
    if (first < 10 && key.len >= WORD && key.len + 2 < STRIPE) {
        uint32_t run = TC_MIN(10 - first, n);
        hash_short(b, key, first, run, out);
        first += run;
        n -= run;
        out += run;
    }
    if (n > 0)
        hash_any(b, key, first, n, out);
}

/* Keys of equal length one after the other: what is done for each depends on that alone, so it is predicted, and their
 * last steps are the same. */
static uint64_t *hash_block(struct batch *b, const struct tc_ring_part *parts, unsigned n, uint64_t *out)
{
    uint16_t places[LENGTHS] = {0};
    uint8_t order[BLOCK];
    uint64_t *outs[BLOCK];
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        __builtin_prefetch(parts[i].key.data);
        places[TC_MIN(parts[i].key.len, LENGTHS - 1)]++;
        outs[i] = out;
        out += parts[i].n + parts[i].spare;
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
        hash_key(b, parts[i].key, parts[i].first, parts[i].n + parts[i].spare, outs[i]);
    }
    return out;
}

static void hash_all(bool wide, const struct tc_ring_part *parts, size_t n, uint64_t *out)
{
    struct batch b;
    b.step = TC_RING_STEP8;
    b.wide = wide;
    b.n = 0;
    for (size_t at = 0, block; at < n; at += block) {
        block = TC_MIN(n - at, BLOCK);
        out = hash_block(&b, parts + at, (unsigned)block, out);
    }
    flush(&b);
}

void tc_ring_keys(const struct tc_ring_part *parts, size_t n, uint64_t *out)
{
    hash_all(tc_ring_keys_can_wide(), parts, n, out);
}

void tc_ring_keys_plain(const struct tc_ring_part *parts, size_t n, uint64_t *out)
{
    hash_all(false, parts, n, out);
}
