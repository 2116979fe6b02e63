/* Comments of the .proto in the generated header. Their text may be anything. It must not end the comment, make a
 * compiler warn (a comment within a comment, a trigraph), or show the reader another order of the code than the
 * compiler's (Unicode's bidirectional controls). So a space is put between '*' and '/', '/' and '*', and two '?'.
 * Bidirectional controls and Unicode's line separators are dropped, and ASCII control characters become spaces. */
#include "comments.h"

const char *pgt_comment_of(const pgt_file *file, const int32_t *path, size_t n)
{
    const Google__Protobuf__SourceCodeInfo *info = file->source_code_info;
    for (size_t i = 0; info && i < info->n_location; i++) {
        const Google__Protobuf__SourceCodeInfo__Location *at = info->location[i];
        if (at->n_path == n && memcmp(at->path, path, n * sizeof(*path)) == 0)
            return at->leading_comments ? at->leading_comments : at->trailing_comments;
    }
    return NULL;
}

/* Returns the length in bytes of the bidirectional control or line separator at `p`: U+061C, U+200E, U+200F, U+2028 to
 * U+202E, U+2066 to U+2069. Returns 0 for any other character. */
static size_t hidden_length(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;
    if (u[0] == 0xd8 && u[1] == 0x9c)
        return 2;
    if (u[0] != 0xe2 || (u[1] != 0x80 && u[1] != 0x81) || !u[2])
        return 0;
    bool marks = u[1] == 0x80 && (u[2] == 0x8e || u[2] == 0x8f || (u[2] >= 0xa8 && u[2] <= 0xae));
    return marks || (u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9) ? 3 : 0;
}

/* Appends one line without its newline and trailing spaces. Returns where the next line begins. */
static const char *line_write(struct tc_buf *out, const char *p)
{
    size_t start = out->len;
    for (; *p && *p != '\n'; p++) {
        char last = out->len > start ? out->data[out->len - 1] : ' ';
        size_t hidden = hidden_length(p);
        if (hidden) {
            p += hidden - 1;
            continue;
        }
        if ((last == '*' && *p == '/') || (last == '/' && *p == '*') || (last == '?' && *p == '?'))
            tc_buf_append_char(out, ' ');
        tc_buf_append_char(out, (unsigned char)*p < ' ' || *p == 0x7f ? ' ' : *p);
    }
    while (out->len > start && out->data[out->len - 1] == ' ')
        out->len--;
    return *p ? p + 1 : p;
}

void pgt_comment_write(struct tc_buf *out, const char *text)
{
    while (*text) {
        tc_buf_append_str(out, " *");
        size_t before = out->len;
        if (*text != ' ' && *text != '\n')
            tc_buf_append_char(out, ' ');
        text = line_write(out, text);
        if (out->len == before + 1 && out->data[before] == ' ')
            out->len = before;
        tc_buf_append_char(out, '\n');
    }
}
