/* Placeholders in braces.
 *
 * placeholders_parse divides a text once into parts, each a placeholder or the text between two of them.
 * placeholders_append goes over the parts for each RPC. Parts of text point into the text that was parsed, whose owner
 * keeps it. Nothing here is shared: one thread at a time uses a struct placeholders and a generator.
 *
 * JSON is full of braces. A placeholder looks different: a brace, letters, and then a colon or the closing brace. JSON
 * never has that outside its strings. With `all`, text that looks like a placeholder must be one.
 *
 * A template of ghz in double braces, {{.RequestNumber}} or {{randomInt 1 9}}, is an error: ghz fills it in, Torc would
 * send it as text. */
#include "request/placeholders.h"

#include "base/parse.h"
#include "cli.h"

enum { MAX_STR = 65536 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

static void add(struct placeholders *p, struct placeholder part)
{
    if (part.kind == PLACEHOLDER_TEXT && !part.text.len)
        return;
    *tc_vec_push(&p->parts) = part;
    p->any |= part.kind != PLACEHOLDER_TEXT;
}

/* Reads the "A:B" of "int:A:B". Returns false if it is not a range. */
static bool read_range(struct tc_slice s, struct placeholder *out)
{
    ptrdiff_t colon = tc_slice_find(s, tc_slice_str(":"));
    int64_t high;
    if (colon < 0 || tc_parse_i64(tc_slice_of(s.data, (size_t)colon), &out->low) != 0 ||
        tc_parse_i64(tc_slice_of(s.data + colon + 1, s.len - (size_t)colon - 1), &high) != 0 || high < out->low)
        return false;
    out->kind = PLACEHOLDER_INT;
    out->span = (uint64_t)high - (uint64_t)out->low;
    return true;
}

/* Reads the text between the braces into *out, which is zero before. Returns false if the text is not a placeholder. */
static bool read_placeholder(struct tc_slice s, struct placeholder *out)
{
    uint64_t n;
    if (tc_slice_eq_str(s, "i"))
        out->kind = PLACEHOLDER_NUMBER;
    else if (tc_slice_eq_str(s, "uuid"))
        out->kind = PLACEHOLDER_UUID;
    else if (tc_slice_starts(s, tc_slice_str("int:")))
        return read_range(tc_slice_of(s.data + 4, s.len - 4), out);
    else if (tc_slice_starts(s, tc_slice_str("str:")) &&
             tc_parse_u64(tc_slice_of(s.data + 4, s.len - 4), MAX_STR, &n) == 0 && n)
        *out = (struct placeholder){.kind = PLACEHOLDER_STR, .low = (int64_t)n};
    return out->kind != PLACEHOLDER_TEXT;
}

/* `s` begins with a brace. Returns the length, with the braces, of what looks like a placeholder there; 0 if nothing
 * does; SIZE_MAX if the closing brace is missing. `all` false: only {i} looks like a placeholder. */
static size_t looks_like(struct tc_slice s, bool all)
{
    size_t n = 1;
    if (!all)
        return tc_slice_starts(s, tc_slice_str("{i}")) ? 3 : 0;
    while (n < s.len && ((s.data[n] >= 'a' && s.data[n] <= 'z') || (s.data[n] >= 'A' && s.data[n] <= 'Z')))
        n++;
    if (n == 1 || (n < s.len && s.data[n] != '}' && s.data[n] != ':'))
        return 0;
    while (n < s.len && s.data[n] != '}')
        n++;
    return n < s.len ? n + 1 : SIZE_MAX;
}

/* Returns the length of the template of ghz at the beginning of `s`, or 0. A template of ghz is a field of the call
 * (".RequestNumber") or one of `functions`, in double braces. */
static size_t looks_like_ghz(struct tc_slice s)
{
    static const char *const functions[] = {"newUUID", "randomInt", "randomString"};
    ptrdiff_t end = tc_slice_find(s, tc_slice_str("}}"));
    size_t n = 2, i = 0;
    if (!tc_slice_starts(s, tc_slice_str("{{")) || end < 0)
        return 0;
    while (s.data[n] == ' ')
        n++;
    struct tc_slice inner = tc_slice_of(s.data + n, (size_t)end > n ? (size_t)end - n : 0);
    while (i < TC_ARRAY_LEN(functions) && !tc_slice_starts(inner, tc_slice_str(functions[i])))
        i++;
    bool field = inner.len > 1 && inner.data[0] == '.' && inner.data[1] >= 'A' && inner.data[1] <= 'Z';
    return field || i < TC_ARRAY_LEN(functions) ? (size_t)end + 2 : 0;
}

int placeholders_parse(const char *command, const char *option, struct tc_slice text, bool all,
                       struct placeholders *out)
{
    struct tc_slice rest = text;
    size_t at = 0;
    while (at < rest.len) {
        struct tc_slice here = tc_slice_of(rest.data + at, rest.len - at);
        size_t ghz = all && rest.data[at] == '{' ? looks_like_ghz(here) : 0;
        if (ghz)
            return cli_usage(command, "%s: '%.*s' is a template of ghz: write {i}, {uuid}, {int:A:B} or {str:N}",
                             option, (int)TC_MIN(ghz, (size_t)64), here.data);
        size_t len = rest.data[at] == '{' ? looks_like(tc_slice_of(rest.data + at, rest.len - at), all) : 0;
        if (len == 0) {
            at++;
            continue;
        }
        struct placeholder found = {0};
        if (len == SIZE_MAX || !read_placeholder(tc_slice_of(rest.data + at + 1, len - 2), &found))
            return cli_usage(command, "%s: '%.*s' is not a placeholder: {i}, {uuid}, {int:A:B} or {str:N}, N up to %d",
                             option, (int)TC_MIN(len == SIZE_MAX ? rest.len - at : len, (size_t)64), rest.data + at,
                             MAX_STR);
        add(out, (struct placeholder){.text = tc_slice_of(rest.data, at)});
        add(out, found);
        rest = tc_slice_of(rest.data + at + len, rest.len - at - len);
        at = 0;
    }
    add(out, (struct placeholder){.text = rest});
    return 0;
}

static void append_uuid(struct tc_rng *rng, struct tc_buf *out)
{
    uint64_t a = tc_rng_u64(rng), b = tc_rng_u64(rng);
    tc_buf_printf(out, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff),
                  (unsigned)(a & 0xfff), (unsigned)(b >> 48 & 0x3fff) | 0x8000,
                  (unsigned long long)(b & 0xffffffffffff));
}

void placeholders_append(const struct placeholders *p, uint64_t i, struct tc_rng *rng, struct tc_buf *out)
{
    for (size_t k = 0; k < p->parts.len; k++) {
        const struct placeholder *part = &p->parts.data[k];
        switch (part->kind) {
        case PLACEHOLDER_TEXT:
            tc_buf_append_slice(out, part->text);
            break;
        case PLACEHOLDER_NUMBER:
            tc_buf_printf(out, "%llu", (unsigned long long)i);
            break;
        case PLACEHOLDER_UUID:
            append_uuid(rng, out);
            break;
        case PLACEHOLDER_INT: {
            uint64_t more = part->span == UINT64_MAX ? tc_rng_u64(rng) : tc_rng_below(rng, part->span + 1);
            tc_buf_printf(out, "%lld", (long long)((uint64_t)part->low + more));
            break;
        }
        case PLACEHOLDER_STR:
            for (int64_t n = 0; n < part->low; n++)
                tc_buf_append_char(out, letters[tc_rng_below(rng, sizeof(letters) - 1)]);
            break;
        }
    }
}

void placeholders_fini(struct placeholders *p)
{
    tc_vec_fini(&p->parts);
}
