/* A reader of JSON that makes no tree.
 *
 * jansson is not used: it refuses integers of 2^63 and more, its tree does not tell where in the text a value is, and
 * the tree is many times as large as the text. Here the caller takes one value after another off the text. The text is
 * in memory as a whole, so a caller may set `at` back and read a part again.
 *
 * begin <= at <= end always holds. After an error nothing more is read, and `at` is anywhere in the text. The reader
 * owns nothing: decoded strings go into the caller's buffers. */
#include "json/reader.h"

#include "base/parse.h"
#include "json/number.h"

bool tc_json_reader_fail_at(struct tc_json_reader *r, const char *at, int code, const char *fmt, ...)
{
    struct tc_buf text = {0};
    size_t line = 1, column = 1;
    va_list ap;
    for (const char *p = r->begin; p < at; p++) {
        column = *p == '\n' ? 1 : column + ((*p & 0xc0) != 0x80);
        line += *p == '\n';
    }
    tc_buf_printf(&text, "line %zu, column %zu: ", line, column);
    if (r->step) {
        tc_buf_append_str(&text, "field ");
        tc_json_append_way(&text, r->step);
        tc_buf_append_str(&text, ": ");
    }
    va_start(ap, fmt);
    tc_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    tc_json_fail_with(r->error, code, tc_buf_cstr(&text));
    tc_buf_fini(&text);
    return false;
}

bool tc_json_reader_want(struct tc_json_reader *r, const char *what)
{
    char c = tc_json_reader_peek(r);
    if (!c && r->at == r->end)
        return tc_json_reader_fail_at(r, r->at, TORC_EPARSE, "must be %s, and the text ends", what);
    return tc_json_reader_fail_at(r, r->at, TORC_EPARSE, "must be %s", what);
}

char tc_json_reader_peek(struct tc_json_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
    return r->at < r->end ? *r->at : '\0';
}

bool tc_json_reader_take(struct tc_json_reader *r, char c)
{
    char text[] = {'\'', c, '\'', '\0'};
    if (tc_json_reader_peek(r) != c || r->at == r->end)
        return tc_json_reader_want(r, text);
    r->at++;
    return true;
}

bool tc_json_reader_word(struct tc_json_reader *r, const char *word)
{
    size_t n = strlen(word);
    tc_json_reader_peek(r);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

bool tc_json_reader_number(struct tc_json_reader *r, struct tc_slice *out)
{
    tc_json_reader_peek(r);
    size_t n = tc_number_length(tc_slice_of(r->at, (size_t)(r->end - r->at)));
    if (n == 0 || (r->at + n < r->end && strchr("0123456789.+-eE", r->at[n]) && r->at[n]))
        return tc_json_reader_want(r, "a number");
    *out = tc_slice_of(r->at, n);
    r->at += n;
    return true;
}

/* --- strings --- */

static bool hex4(const char *p, const char *end, uint32_t *out)
{
    uint32_t v = 0;
    if (end - p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'                     ? c - '0'
                    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                             : -1;
        if (digit < 0)
            return false;
        v = v << 4 | (uint32_t)digit;
    }
    *out = v;
    return true;
}

static void append_utf8(struct tc_buf *out, uint32_t c)
{
    if (c < 0x80) {
        tc_buf_append_char(out, (char)c);
        return;
    }
    unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
    tc_buf_append_char(out, (char)(heads[more] | c >> (6 * more)));
    while (more-- > 0)
        tc_buf_append_char(out, (char)(0x80 | (c >> (6 * more) & 0x3f)));
}

/* Takes the \uXXXX at which the reader stands, or two of them for a character above U+FFFF. */
static bool take_unicode(struct tc_json_reader *r, struct tc_buf *out)
{
    uint32_t c, low;
    if (!hex4(r->at + 2, r->end, &c))
        return tc_json_reader_fail_at(r, r->at, TORC_EPARSE, "\\u without four hexadecimal digits");
    const char *begin = r->at;
    r->at += 6;
    if (c >= 0xd800 && c <= 0xdfff) {
        if (c >= 0xdc00 || r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u' ||
            !hex4(r->at + 2, r->end, &low) || low < 0xdc00 || low > 0xdfff)
            return tc_json_reader_fail_at(r, begin, TORC_EPARSE, "half of a surrogate pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        r->at += 6;
    }
    append_utf8(out, c);
    return true;
}

static bool take_escape(struct tc_json_reader *r, struct tc_buf *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = r->end - r->at > 1 ? r->at[1] : '\0';
    const char *found = c ? strchr(names, c) : NULL;
    if (c == 'u')
        return take_unicode(r, out);
    if (!found)
        return tc_json_reader_fail_at(r, r->at, TORC_EPARSE, "an escape that JSON does not have");
    tc_buf_append_char(out, values[found - names]);
    r->at += 2;
    return true;
}

bool tc_json_reader_string(struct tc_json_reader *r, struct tc_buf *out, struct tc_slice *raw)
{
    if (tc_json_reader_peek(r) != '"')
        return tc_json_reader_want(r, "a string");
    const char *begin = r->at++;
    while (r->at < r->end && *r->at != '"') {
        const char *run = r->at;
        while (r->at < r->end && *r->at != '"' && *r->at != '\\' && (unsigned char)*r->at >= 0x20)
            r->at++;
        if (!tc_utf8_valid(tc_slice_of(run, (size_t)(r->at - run))))
            return tc_json_reader_fail_at(r, run, TORC_EPARSE, "text that is not UTF-8");
        tc_buf_append(out, run, (size_t)(r->at - run));
        if (r->at == r->end)
            break;
        if ((unsigned char)*r->at < 0x20)
            return tc_json_reader_fail_at(r, r->at, TORC_EPARSE, "a control character in a string");
        if (*r->at == '\\' && !take_escape(r, out))
            return false;
    }
    if (r->at == r->end)
        return tc_json_reader_fail_at(r, begin, TORC_EPARSE, "a string that does not end");
    if (raw)
        *raw = tc_slice_of(begin + 1, (size_t)(r->at - begin - 1));
    r->at++;
    return true;
}

/* --- objects and lists --- */

/* Takes the comma before a member or element that is not the first, or the end. Returns as tc_json_reader_element. */
static int next(struct tc_json_reader *r, bool *first, char end, const char *want)
{
    char c = tc_json_reader_peek(r);
    if (c == end) {
        r->at++;
        return 0;
    }
    if (!*first) {
        if (c != ',') {
            tc_json_reader_want(r, want);
            return -1;
        }
        r->at++;
    }
    *first = false;
    return 1;
}

int tc_json_reader_member(struct tc_json_reader *r, bool *first, struct tc_buf *key, struct tc_slice *raw)
{
    int rc = next(r, first, '}', "',' or '}'");
    if (rc <= 0)
        return rc;
    tc_buf_clear(key);
    return tc_json_reader_string(r, key, raw) && tc_json_reader_take(r, ':') ? 1 : -1;
}

int tc_json_reader_element(struct tc_json_reader *r, bool *first)
{
    return next(r, first, ']', "',' or ']'");
}

static bool skip(struct tc_json_reader *r, unsigned depth, struct tc_buf *scratch)
{
    struct tc_slice number;
    bool first = true;
    int more = 0;
    char c = tc_json_reader_peek(r);
    if (c == '"') {
        tc_buf_clear(scratch);
        return tc_json_reader_string(r, scratch, NULL);
    }
    if (c != '{' && c != '[')
        return tc_json_reader_word(r, "null") || tc_json_reader_word(r, "true") || tc_json_reader_word(r, "false") ||
               (c && strchr("-0123456789", c) ? tc_json_reader_number(r, &number) : tc_json_reader_want(r, "a value"));
    if (depth == TC_READER_MAX_SKIPPED)
        return tc_json_reader_fail_at(r, r->at, TORC_ELIMIT, "too deep");
    r->at++;
    while ((more = c == '{' ? tc_json_reader_member(r, &first, scratch, NULL) : tc_json_reader_element(r, &first)) > 0)
        if (!skip(r, depth + 1, scratch))
            return false;
    return more == 0;
}

bool tc_json_reader_skip(struct tc_json_reader *r)
{
    struct tc_buf scratch = {0};
    bool good = skip(r, 0, &scratch);
    tc_buf_fini(&scratch);
    return good;
}
