/* Base64 (RFC 4648), hexadecimal, and two percent encodings. Declared in parse.h. A decoder that fails restores the
 * length of its output.
 *
 *   grpc-message   gRPC demands that the decoder never fails: an invalid escape is copied unchanged.
 *   URI            RFC 3986; the decoder rejects an invalid escape. */
#include "base/parse.h"

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char hex_upper[] = "0123456789ABCDEF";
static const char hex_lower[] = "0123456789abcdef";

void tc_base64_encode(struct tc_buf *out, const void *data, size_t len, bool pad)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i += 3) {
        size_t n = TC_MIN(len - i, (size_t)3);
        uint32_t v = (uint32_t)p[i] << 16;
        if (n > 1)
            v |= (uint32_t)p[i + 1] << 8;
        if (n > 2)
            v |= p[i + 2];
        char quad[4] = {base64_digits[v >> 18], base64_digits[(v >> 12) & 63],
                        n > 1 ? base64_digits[(v >> 6) & 63] : '=', n > 2 ? base64_digits[v & 63] : '='};
        tc_buf_append(out, quad, pad ? 4 : n + 1);
    }
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int tc_base64_decode(struct tc_buf *out, struct tc_slice s)
{
    size_t before = out->len;
    size_t pad = 0;
    while (pad < 2 && s.len && s.data[s.len - 1] == '=') {
        s.len--;
        pad++;
    }
    if (s.len % 4 == 1 || (pad && (s.len + pad) % 4 != 0))
        return TORC_EPARSE;
    uint32_t v = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < s.len; i++) {
        int d = base64_value(s.data[i]);
        if (d < 0) {
            out->len = before;
            return TORC_EPARSE;
        }
        v = (v << 6) | (uint32_t)d;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            tc_buf_append_char(out, (char)(v >> bits));
            v &= (1u << bits) - 1;
        }
    }
    return 0;
}

void tc_hex_encode(struct tc_buf *out, const void *data, size_t len)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i++) {
        char pair[2] = {hex_lower[p[i] >> 4], hex_lower[p[i] & 15]};
        tc_buf_append(out, pair, 2);
    }
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int tc_hex_decode(struct tc_buf *out, struct tc_slice s)
{
    size_t before = out->len;
    if (s.len % 2)
        return TORC_EPARSE;
    for (size_t i = 0; i < s.len; i += 2) {
        int hi = hex_value(s.data[i]), lo = hex_value(s.data[i + 1]);
        if (hi < 0 || lo < 0) {
            out->len = before;
            return TORC_EPARSE;
        }
        tc_buf_append_char(out, (char)(hi * 16 + lo));
    }
    return 0;
}

static void append_escape(struct tc_buf *out, unsigned char c)
{
    char esc[3] = {'%', hex_upper[c >> 4], hex_upper[c & 15]};
    tc_buf_append(out, esc, 3);
}

void tc_grpc_message_encode(struct tc_buf *out, struct tc_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c < 0x20 || c > 0x7e || c == '%')
            append_escape(out, c);
        else
            tc_buf_append_char(out, (char)c);
    }
}

/* U+FFFD stands for %00: a status message is handed out as a C string, which a NUL would cut. */
#define REPLACEMENT "\xef\xbf\xbd"

/* Returns the byte that the escape at s[i] stands for, or -1 if there is no valid escape. */
static int escape_at(struct tc_slice s, size_t i)
{
    if (s.data[i] != '%' || s.len - i < 3)
        return -1;
    int hi = hex_value(s.data[i + 1]), lo = hex_value(s.data[i + 2]);
    return hi < 0 || lo < 0 ? -1 : hi * 16 + lo;
}

void tc_grpc_message_decode(struct tc_buf *out, struct tc_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        int c = escape_at(s, i);
        if (c == 0)
            tc_buf_append_str(out, REPLACEMENT);
        else
            tc_buf_append_char(out, c < 0 ? s.data[i] : (char)c);
        i += c < 0 ? 0 : 2;
    }
}

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

void tc_uri_encode(struct tc_buf *out, struct tc_slice s, const char *keep)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        if (is_unreserved(c) || (c != '\0' && keep && strchr(keep, c)))
            tc_buf_append_char(out, c);
        else
            append_escape(out, (unsigned char)c);
    }
}

int tc_uri_decode(struct tc_buf *out, struct tc_slice s)
{
    size_t before = out->len;
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] != '%') {
            tc_buf_append_char(out, s.data[i]);
            continue;
        }
        int c = escape_at(s, i);
        if (c < 0) {
            out->len = before;
            return TORC_EPARSE;
        }
        tc_buf_append_char(out, (char)c);
        i += 2;
    }
    return 0;
}
