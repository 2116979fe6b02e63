/* Divides a text into requests, and counts its lines and characters. */
#include "request/request.h"

enum { SEPARATOR = 0x1e };

/* Does for --format text what torc_json_split does for JSON. SEPARATOR ends a message, and counts in *used. */
static int split_text(const char *text, size_t size, size_t *used)
{
    const char *end = size ? memchr(text, SEPARATOR, size) : NULL;
    size_t blank = 0;
    while (blank < size && strchr(" \t\r\n", text[blank]) && text[blank])
        blank++;
    if (!end)
        return blank < size ? TORC_EAGAIN : TORC_ENOTFOUND;
    *used = (size_t)(end - text) + 1;
    return 0;
}

int request_next_value(const struct request_args *a, struct tc_slice text, bool at_end, size_t *used,
                       struct tc_slice *value)
{
    int rc = (a->text ? split_text : torc_json_split)(text.data ? text.data : "", text.len, used);
    if (rc == TORC_EAGAIN && at_end) {
        *used = text.len;
        rc = 0;
    }
    if (rc == 0)
        *value = tc_slice_of(text.data, *used - (a->text && text.data[*used - 1] == SEPARATOR));
    return rc;
}

void request_pass(struct request_place *at, struct tc_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool ends = text.data[i] == '\n';
        at->lines += ends;
        at->characters = ends ? 0 : at->characters + (((unsigned char)text.data[i] & 0xc0) != 0x80);
    }
}
