/* Makes foreign text (from servers, files, the command line) safe to show: nothing in it acts on a terminal. */
#include "base/parse.h"
#include "cli.h"

/* Returns the size of the UTF-8 character at `p`, or 0 if the bytes there are not UTF-8 or are cut off. */
static size_t character(const char *p, size_t left)
{
    unsigned char c = (unsigned char)*p;
    size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    return n <= left && tc_utf8_valid(tc_slice_of(p, n)) ? n : 0;
}

/* Returns the code of a character that must be escaped, or -1. These are C0, DEL, C1 (0x9b starts a control sequence,
 * as ESC [ does), line separators, and the marks of direction, with which a terminal shows text in another order. */
static int control(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;
    int code = n == 1   ? u[0]
               : n == 2 ? (u[0] & 0x1f) << 6 | (u[1] & 0x3f)
               : n == 3 ? (u[0] & 0x0f) << 12 | (u[1] & 0x3f) << 6 | (u[2] & 0x3f)
                        : 0x10000;
    bool acts = code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
                (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return acts ? code : -1;
}

static void append(struct tc_buf *out, const char *data, size_t len, bool quoted)
{
    for (size_t i = 0, n; i < len; i += n) {
        n = character(data + i, len - i);
        int number = n ? control(data + i, n) : -1;
        if (n == 0) {
            tc_buf_append_str(out, "\xef\xbf\xbd");
            n = 1;
        } else if (number >= 0) {
            tc_buf_printf(out, "\\u%04x", (unsigned)number);
        } else {
            if (quoted && (data[i] == '"' || data[i] == '\\'))
                tc_buf_append_char(out, '\\');
            tc_buf_append(out, data + i, n);
        }
    }
}

void cli_append_shown(struct tc_buf *out, const char *data, size_t len)
{
    append(out, data, len, false);
}

void cli_append_lines(struct tc_buf *out, const char *text)
{
    struct tc_slice rest = tc_slice_str(text), line;
    bool first = true;
    for (bool more = true; tc_slice_split(&rest, &more, '\n', &line); first = false) {
        tc_buf_append_str(out, first ? "" : "\n");
        append(out, line.data, line.len, false);
    }
}

const char *cli_shown(struct tc_buf *scratch, const char *text)
{
    tc_buf_clear(scratch);
    append(scratch, text, strlen(text), false);
    return tc_buf_cstr(scratch);
}

void cli_json_string(struct tc_buf *out, const char *data, size_t len)
{
    tc_buf_append_char(out, '"');
    append(out, data, len, true);
    tc_buf_append_char(out, '"');
}

void cli_json_line(struct tc_buf *out, const char *json)
{
    bool in_string = false;
    struct tc_buf line = {0};
    for (const char *c = json; *c; c++) {
        if (!in_string && strchr(" \t\r\n", *c))
            continue;
        if (*c == '"')
            in_string = !in_string;
        else if (*c == '\\' && c[1])
            tc_buf_append_char(&line, *c++);
        tc_buf_append_char(&line, *c);
    }
    cli_append_shown(out, line.data, line.len);
    tc_buf_fini(&line);
}

void cli_csv_text(struct tc_buf *out, const char *text)
{
    struct tc_buf shown = {0};
    tc_buf_append_char(out, '"');
    for (const char *c = cli_shown(&shown, text); *c; c++)
        tc_buf_append_str(out, *c == '"' ? "\"\"" : (char[]){*c, '\0'});
    tc_buf_append_char(out, '"');
    tc_buf_fini(&shown);
}

void cli_xml_text(struct tc_buf *out, const char *text)
{
    struct tc_buf shown = {0};
    for (const char *c = cli_shown(&shown, text); *c; c++) {
        if (*c == '<')
            tc_buf_append_str(out, "&lt;");
        else if (*c == '>')
            tc_buf_append_str(out, "&gt;");
        else if (*c == '&')
            tc_buf_append_str(out, "&amp;");
        else if (*c == '"')
            tc_buf_append_str(out, "&quot;");
        else if (strncmp(c, "\xef\xbf\xbe", 3) == 0 || strncmp(c, "\xef\xbf\xbf", 3) == 0)
            c += 2; /* drops U+FFFE and U+FFFF, which XML forbids */
        else
            tc_buf_append_char(out, *c);
    }
    tc_buf_fini(&shown);
}
