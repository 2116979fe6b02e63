/* Target URIs (gRPC's doc/naming.md). The host of a bare "host:port" looks like a scheme, but counts as one
 * only if a resolver has a scheme of that name. */
#include "resolver/target.h"

#include "base/mem.h"
#include "base/parse.h"

static bool is_scheme_char(char c, bool first)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return true;
    return !first && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.');
}

/* Returns the length of the scheme in front of the first ':', or 0 if the text has no scheme (RFC 3986, section
 * 3.1). */
static size_t scheme_length(struct tc_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == ':')
            return i;
        if (!is_scheme_char(text.data[i], i == 0))
            return 0;
    }
    return 0;
}

/* Returns a copy in lower case, to be freed with tc_free. */
static char *scheme_lower(struct tc_slice s)
{
    char *out = tc_slice_dup(s);
    for (size_t i = 0; i < s.len; i++)
        if (out[i] >= 'A' && out[i] <= 'Z')
            out[i] = (char)(out[i] - 'A' + 'a');
    return out;
}

/* Percent-decodes a part. Returns a text to be freed with tc_free, or NULL if the part is malformed or has a NUL. */
static char *part_decode(struct tc_slice s)
{
    struct tc_buf b = {0};
    if (tc_uri_decode(&b, s) != 0 || memchr(tc_buf_cstr(&b), '\0', b.len)) {
        tc_buf_fini(&b);
        return NULL;
    }
    return tc_buf_take(&b);
}

int tc_target_parse(struct tc_target *t, const char *text, bool (*known)(void *arg, struct tc_slice scheme), void *arg,
                    char **why)
{
    struct tc_slice whole = tc_slice_str(text);
    struct tc_target out = {.text = NULL};
    const char *reason = "it is empty";
    if (whole.len == 0)
        goto bad;

    size_t n = scheme_length(whole);
    if (n) {
        out.scheme = scheme_lower(tc_slice_of(whole.data, n));
        if (!known(arg, tc_slice_str(out.scheme))) {
            tc_free(out.scheme);
            out.scheme = NULL;
        }
    }
    if (out.scheme)
        out.rest_at = n + 1;
    else
        out.scheme = tc_strdup("dns");

    struct tc_slice rest = tc_slice_of(whole.data + out.rest_at, whole.len - out.rest_at);
    struct tc_slice authority = {NULL, 0};
    if (out.rest_at && tc_slice_starts(rest, tc_slice_of("//", 2))) {
        out.has_authority = true;
        rest = tc_slice_of(rest.data + 2, rest.len - 2);
        const char *slash = rest.len ? memchr(rest.data, '/', rest.len) : NULL;
        size_t len = slash ? (size_t)(slash - rest.data) : rest.len;
        authority = tc_slice_of(rest.data, len);
        rest = slash ? tc_slice_of(slash + 1, rest.len - len - 1) : tc_slice_of(rest.data + rest.len, 0);
    }
    out.authority = part_decode(authority);
    out.path = part_decode(rest);
    if (!out.authority || !out.path) {
        reason = "a percent-encoding in it is malformed or stands for a NUL";
        goto bad;
    }
    if (out.path[0] == '\0') {
        reason = "it names no endpoint";
        goto bad;
    }
    out.text = tc_strdup(text);
    *t = out;
    return 0;

bad:
    tc_target_fini(&out);
    tc_refuse(why, "target \"" TC_SHOWN "\": %s", TC_SHOW(text), reason);
    return TORC_EINVAL;
}

void tc_target_fini(struct tc_target *t)
{
    tc_free(t->text);
    tc_free(t->scheme);
    tc_free(t->authority);
    tc_free(t->path);
    *t = (struct tc_target){0};
}
