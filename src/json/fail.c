/* Texts of errors have names that peers chose. So a long key of a map is cut, only the last 16 steps of a way are
 * named, and each control character of a text becomes '?'. */
#include "json/fail.h"

enum { MOST_STEPS = 16, MOST_KEY = 64 };

/* Appends UTF-8 text with '?' for each control character, which a terminal would obey. */
static void append_shown(struct tc_buf *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool second = *c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0; /* U+0080 to U+009F */
        tc_buf_append_char(out, second || *c < 0x20 || *c == 0x7f ? '?' : (char)*c);
        c += second;
    }
}

bool tc_json_fail_with(torc_error **error, int code, const char *text)
{
    bool ours = code == TORC_EINVAL || code == TORC_ESTATE;
    struct tc_buf shown = {0};
    append_shown(&shown, text);
    if (error && !*error)
        *error = torc_error_new(code, ours ? TORC_LAYER_API : TORC_LAYER_CODEC, tc_buf_cstr(&shown));
    tc_buf_fini(&shown);
    return false;
}

bool tc_json_fail(torc_error **error, int code, const char *fmt, ...)
{
    struct tc_buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    tc_json_fail_with(error, code, tc_buf_cstr(&text));
    tc_buf_fini(&text);
    return false;
}

/* Appends a key as ["KEY"]; a long key is cut between two characters. */
static void append_key(struct tc_buf *text, struct tc_slice key)
{
    size_t n = TC_MIN(key.len, (size_t)MOST_KEY);
    while (n < key.len && n > 0 && (key.data[n] & 0xc0) == 0x80)
        n--;
    tc_buf_printf(text, "[\"%.*s%s\"]", (int)n, key.data, n < key.len ? "..." : "");
}

void tc_json_append_way(struct tc_buf *text, const struct tc_json_step *step)
{
    const struct tc_json_step *steps[MOST_STEPS];
    size_t n = 0;
    for (; step && n < MOST_STEPS; step = step->up)
        steps[n++] = step;
    if (step)
        tc_buf_append_str(text, "...");
    for (bool first = true; n-- > 0; first = false) {
        const struct tc_json_step *s = steps[n];
        if (s->field)
            tc_buf_printf(text, "%s%s", first && !step ? "" : ".", s->field);
        else if (s->key.data)
            append_key(text, s->key);
        else
            tc_buf_printf(text, "[%zu]", s->index);
    }
}
