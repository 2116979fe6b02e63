#include "base/parse.h"
#include "cli.h"

enum { MOST = 64 }; /* longer names are never near */

/* Returns the character that stands for `c` in a comparison: lower case, and '-' for '_'. */
static char plain(char c)
{
    return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Returns the edit distance of two names of at most MOST bytes: how many characters must be added, removed, replaced or
 * swapped with their neighbour (optimal string alignment). */
static size_t distance(struct tc_slice a, struct tc_slice b)
{
    size_t rows[3][MOST + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2], *unused;
    for (size_t j = 0; j <= b.len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            char x = plain(a.data[i - 1]), y = plain(b.data[j - 1]);
            size_t best = last[j - 1] + (x != y);
            best = TC_MIN(best, TC_MIN(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && x == plain(b.data[j - 2]) && plain(a.data[i - 2]) == y)
                best = TC_MIN(best, before[j - 2] + 1);
            now[j] = best;
        }
        unused = before;
        before = last;
        last = now;
        now = unused;
    }
    return last[b.len];
}

/* A near name needs no edit for an unknown name of at most 2 bytes, at most 1 for up to 4 bytes, 2 for up to 8, else 3.
 * From 3 bytes on, the beginning of a known name counts as 1 edit. */
void cli_nearest_try(struct cli_nearest *n, const char *name)
{
    struct tc_slice known = tc_slice_str(name);
    size_t len = n->text.len, most = len < 3 ? 0 : len <= 4 ? 1 : len <= 8 ? 2 : 3;
    if (len > MOST || known.len > MOST)
        return;
    size_t d = len >= 3 && tc_slice_starts(known, n->text) ? 1 : distance(n->text, known);
    if (d > most || (n->name && d >= n->distance))
        return;
    n->name = name;
    n->distance = d;
}
