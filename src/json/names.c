#include "json/names.h"

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool tc_name_is_good(struct tc_slice name, bool dots)
{
    bool begins = true;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (c == '.' ? !dots || begins : !is_lower(c) && !is_upper(c) && c != '_' && (begins || !is_digit(c)))
            return false;
        begins = c == '.';
    }
    return !begins;
}

void tc_name_append_camel(struct tc_buf *out, struct tc_slice name)
{
    bool upper = false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (c != '_')
            tc_buf_append_char(out, upper && is_lower(c) ? (char)(c - 'a' + 'A') : c);
        upper = c == '_';
    }
}

bool tc_name_append_snake(struct tc_buf *out, struct tc_slice camel)
{
    for (size_t i = 0; i < camel.len; i++) {
        char c = camel.data[i];
        if (c == '_')
            return false;
        if (is_upper(c))
            tc_buf_append_char(out, '_');
        tc_buf_append_char(out, is_upper(c) ? (char)(c - 'A' + 'a') : c);
    }
    return true;
}
