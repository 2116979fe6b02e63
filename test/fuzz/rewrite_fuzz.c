/* Regex rewrites (`regex_rewrite` of a hash policy) compared with a backtracking matcher. The input draws a pattern and
 * a text over four characters, one of them of two bytes; a line between them is the substitution. Both sides replace
 * all matches, and the results are the same. Results are not compared if the model needs more than STEPS_MAX steps.
 *
 *   draw_...      take the pattern from the input: as nodes for the model, and as text for the engine
 *   match         matches the nodes at one place of the text, in Perl's order, by recursion
 *   replace_all   the model's replacement of all matches, appended to `expected`
 *   compare       the engine's replacement, in `got`, against the model's
 *
 * The model counts in units (characters), the engine in bytes. Nodes point to nodes in the same struct run, which lives
 * for one input. Read match first. */
#include "base/mem.h"
#include "fuzz.h"
#include "regex/regex.h"

#define NODES_MAX 24
#define DEPTH_MAX 3
#define GROUPS_MAX 9
#define TEXT_MAX 20
#define STEPS_MAX 200000

static const char *const alphabet[] = {"a", "b", "c", "\xc3\xa9"};

enum kind { ATOM, BEGIN, END, GROUP };

struct node {
    enum kind kind;
    uint8_t mask; /* ATOM: the characters that it matches */
    unsigned min, max;
    bool lazy;
    unsigned group; /* GROUP: its number; 0: does not capture */
    const struct node *alternatives[3], *next;
    size_t n_alternatives;
};

struct span {
    int from, to; /* units of the text; -1: the group did not take part in the match */
};

struct run {
    struct tc_fuzz_input in;
    struct tc_buf pattern, rewrite, text, expected, got;
    struct node nodes[NODES_MAX];
    size_t n_nodes, n_text;
    unsigned groups;                   /* that capture, so far */
    uint8_t units[TEXT_MAX];           /* the text, as indexes of `alphabet`; n_text of them */
    struct span spans[GROUPS_MAX + 1]; /* of the match (0) and of its groups */
    unsigned steps;
    bool gave_up; /* the model needs more than STEPS_MAX steps: there is no result */
};

/* --- a pattern, drawn and written --- */

/* Returns the first node of a branch, whose nodes are linked by `next`; NULL: the branch is empty. */
static const struct node *draw_branch(struct run *r, unsigned depth);

static void draw_count(struct run *r, struct node *n, uint8_t how, bool group)
{
    static const struct {
        const char *text;
        unsigned min, max;
    } counts[] = {{"", 1, 1}, {"?", 0, 1}, {"*", 0, TEXT_MAX}, {"+", 1, TEXT_MAX}, {"{2}", 2, 2}, {"{1,3}", 1, 3}};
    /* A group is not repeated: engines differ on which capture a repeated group keeps. */
    size_t which = how % (group ? 2 : TC_ARRAY_LEN(counts));
    n->min = counts[which].min;
    n->max = counts[which].max;
    n->lazy = which && how & 0x80;
    tc_buf_append_str(&r->pattern, counts[which].text);
    if (n->lazy)
        tc_buf_append_char(&r->pattern, '?');
}

static void draw_group(struct run *r, struct node *n, uint8_t op, unsigned depth)
{
    bool captures = op & 0x10 && r->groups < GROUPS_MAX;
    n->kind = GROUP;
    n->group = captures ? ++r->groups : 0;
    tc_buf_append_str(&r->pattern, captures ? "(" : "(?:");
    n->n_alternatives = 1 + (op >> 5) % TC_ARRAY_LEN(n->alternatives);
    for (size_t i = 0; i < n->n_alternatives; i++) {
        if (i)
            tc_buf_append_char(&r->pattern, '|');
        n->alternatives[i] = draw_branch(r, depth + 1);
    }
    tc_buf_append_char(&r->pattern, ')');
    draw_count(r, n, tc_fuzz_u8(&r->in), true);
}

static void draw_atom(struct run *r, struct node *n, uint8_t op)
{
    static const struct {
        const char *text;
        uint8_t mask;
    } classes[] = {{".", 15}, {"[ab]", 3}, {"[^a]", 14}, {"[b-c]", 6}};
    n->kind = ATOM;
    if (op & 8) {
        tc_buf_append_str(&r->pattern, classes[op >> 4 & 3].text);
        n->mask = classes[op >> 4 & 3].mask;
    } else {
        tc_buf_append_str(&r->pattern, alphabet[op >> 4 & 3]);
        n->mask = (uint8_t)(1u << (op >> 4 & 3));
    }
    draw_count(r, n, tc_fuzz_u8(&r->in), false);
}

static const struct node *draw_branch(struct run *r, unsigned depth)
{
    const struct node *first = NULL, **tail = &first;
    uint8_t op;
    while (r->n_nodes < NODES_MAX && ((op = tc_fuzz_u8(&r->in)) & 7) != 0) {
        struct node *n = &r->nodes[r->n_nodes++];
        if ((op & 7) == 1) {
            n->kind = op & 8 ? BEGIN : END;
            tc_buf_append_char(&r->pattern, op & 8 ? '^' : '$');
        } else if ((op & 7) == 2 && depth < DEPTH_MAX) {
            draw_group(r, n, op, depth);
        } else {
            draw_atom(r, n, op);
        }
        *tail = n;
        tail = &n->next;
    }
    return first;
}

/* --- the model --- */

/* The open groups, innermost first. When the current branch has matched, the nodes behind `group` must match, then
 * those behind the group of `up`. */
struct after {
    const struct node *group;
    int from; /* where the match of the group begins */
    const struct after *up;
};

static int match(struct run *r, const struct node *n, int at, const struct after *after);

static int close_group(struct run *r, int at, const struct after *after)
{
    struct span *span = &r->spans[after->group->group], old = *span;
    if (after->group->group)
        *span = (struct span){after->from, at};
    int end = match(r, after->group->next, at, after->up);
    if (end < 0)
        *span = old;
    return end;
}

static int match_atom(struct run *r, const struct node *n, int at, const struct after *after)
{
    int most = 0, end = -1, low = (int)n->min;
    while (most < (int)n->max && at + most < (int)r->n_text && n->mask >> r->units[at + most] & 1)
        most++;
    for (int i = 0; end < 0 && low + i <= most; i++)
        end = match(r, n->next, at + (n->lazy ? low + i : most - i), after);
    return end;
}

static int enter_group(struct run *r, const struct node *n, int at, const struct after *after)
{
    struct after inside = {n, at, after};
    int end = -1;
    for (size_t i = 0; end < 0 && i < n->n_alternatives; i++)
        end = match(r, n->alternatives[i], at, &inside);
    return end;
}

static int match_group(struct run *r, const struct node *n, int at, const struct after *after)
{
    int end = n->lazy ? match(r, n->next, at, after) : enter_group(r, n, at, after);
    if (end < 0 && n->min == 0)
        end = n->lazy ? enter_group(r, n, at, after) : match(r, n->next, at, after);
    return end;
}

/* Returns the end of the first match at `at` in Perl's order; -1 if there is none, or after STEPS_MAX steps. */
static int match(struct run *r, const struct node *n, int at, const struct after *after)
{
    if (r->gave_up || ++r->steps > STEPS_MAX) {
        r->gave_up = true;
        return -1;
    }
    if (!n)
        return after ? close_group(r, at, after) : at;
    switch (n->kind) {
    case BEGIN:
        return at == 0 ? match(r, n->next, at, after) : -1;
    case END:
        return at == (int)r->n_text ? match(r, n->next, at, after) : -1;
    case ATOM:
        return match_atom(r, n, at, after);
    default:
        return match_group(r, n, at, after);
    }
}

static void append_units(struct run *r, int from, int to)
{
    for (int i = from; i < to; i++)
        tc_buf_append_str(&r->expected, alphabet[r->units[i]]);
}

/* Checks the substitution and, with `write`, appends it to `expected` for the match in `spans`. Returns false if it is
 * invalid. */
static bool rewrite(struct run *r, bool write)
{
    struct tc_slice s = tc_buf_slice(&r->rewrite);
    if (s.len > TC_REGEX_REWRITE_MAX_BYTES)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        if (c == '\\') {
            if (++i == s.len)
                return false;
            c = s.data[i];
            if (c >= '0' && c <= '9') {
                unsigned group = (unsigned)(c - '0');
                if (group > r->groups)
                    return false;
                if (write)
                    append_units(r, r->spans[group].from, r->spans[group].to);
                continue;
            }
            if (c != '\\')
                return false;
        }
        if (write)
            tc_buf_append_char(&r->expected, c);
    }
    return true;
}

/* Finds the first match that begins at `from` or later, and stores it in `spans`. Returns false if there is none, or if
 * the model gives up. */
static bool search(struct run *r, const struct node *first, int from)
{
    for (int at = from; at <= (int)r->n_text && !r->gave_up; at++) {
        memset(r->spans, 0xff, sizeof(r->spans)); /* -1 */
        int end = match(r, first, at, NULL);
        r->spans[0] = (struct span){at, end};
        if (end >= 0)
            return true;
    }
    return false;
}

/* Replaces all matches, except an empty match directly behind the last match. */
static void replace_all(struct run *r, const struct node *first)
{
    int at = 0, last = -1, len = (int)r->n_text;
    while (at <= len && search(r, first, at)) {
        struct span m = r->spans[0];
        append_units(r, at, m.from);
        at = m.to;
        if (m.from == last && m.to == last) {
            append_units(r, at, TC_MIN(at + 1, len));
            at++;
            continue;
        }
        rewrite(r, true);
        last = at;
    }
    append_units(r, at, len);
}

/* --- the comparison --- */

static void compare(struct run *r, const struct node *first, const struct tc_regex *regex)
{
    char *why = NULL;
    bool usable = tc_regex_check_rewrite(regex, tc_buf_slice(&r->rewrite), &why);
    TC_FUZZ_CHECK(usable == (why == NULL) && usable == rewrite(r, false));
    tc_free(why);
    if (!usable)
        return;
    uint64_t steps = TC_REGEX_REPLACE_STEPS; /* enough: texts are short */
    replace_all(r, first);
    if (r->gave_up)
        return;
    r->expected.len = TC_MIN(r->expected.len, (size_t)TC_REGEX_REPLACED_MAX_BYTES);
    tc_regex_replace_all(regex, tc_buf_slice(&r->text), tc_buf_slice(&r->rewrite), &steps, &r->got);
    if (!tc_slice_eq(tc_buf_slice(&r->got), tc_buf_slice(&r->expected)))
        fprintf(stderr, "s/%s/%s/ of \"%s\": \"%s\", not \"%s\"\n", tc_buf_cstr(&r->pattern), tc_buf_cstr(&r->rewrite),
                tc_buf_cstr(&r->text), tc_buf_cstr(&r->got), tc_buf_cstr(&r->expected));
    TC_FUZZ_CHECK(tc_slice_eq(tc_buf_slice(&r->got), tc_buf_slice(&r->expected)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *r = TC_NEW(struct run);
    char *why = NULL;
    r->in = (struct tc_fuzz_input){data, size};
    const struct node *first = draw_branch(r, 0);
    tc_buf_append_slice(&r->rewrite, tc_fuzz_line(&r->in));
    while (r->in.len && r->n_text < TEXT_MAX) {
        uint8_t unit = tc_fuzz_u8(&r->in) % TC_ARRAY_LEN(alphabet);
        r->units[r->n_text++] = unit;
        tc_buf_append_str(&r->text, alphabet[unit]);
    }
    struct tc_regex *regex = tc_regex_new(tc_buf_slice(&r->pattern), NULL, &why);
    TC_FUZZ_CHECK(regex && !why); /* every drawn text is a valid pattern */
    compare(r, first, regex);
    tc_regex_free(regex);
    tc_buf_fini(&r->pattern);
    tc_buf_fini(&r->rewrite);
    tc_buf_fini(&r->text);
    tc_buf_fini(&r->expected);
    tc_buf_fini(&r->got);
    tc_free(r);
    return 0;
}
