/* The cookie jar of torc call (RFC 6265): a list of cookies. No two of them have the same name and the same path.
 *
 * The list has at most MAX_COOKIES, in the order in which they came; a new value of a cookie keeps the cookie's place.
 * cookie_jar_take and cookie_jar_give first drop the cookies that have expired, so that an expired cookie pushes no
 * other one out of a full jar. The jar owns the texts of its cookies. */
#include "cookies.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"

/* RFC 6265 6.1: clients should support at least these. */
enum { MAX_COOKIES = 50, MAX_COOKIE_BYTES = 4096 };

static void cookie_fini(struct cookie *c)
{
    tc_free(c->name);
    tc_free(c->value);
    tc_free(c->path);
}

void cookie_jar_fini(struct cookie_jar *jar)
{
    for (size_t i = 0; i < jar->cookies.len; i++)
        cookie_fini(&jar->cookies.data[i]);
    tc_vec_fini(&jar->cookies);
}

static void drop(struct cookie_jar *jar, size_t i)
{
    cookie_fini(&jar->cookies.data[i]);
    tc_vec_remove(&jar->cookies, i);
}

static void drop_expired(struct cookie_jar *jar, uint64_t now_ns)
{
    for (size_t i = jar->cookies.len; i-- > 0;)
        if (jar->cookies.data[i].expires_ns <= now_ns)
            drop(jar, i);
}

/* RFC 6265 5.1.4: the path of a cookie without a Path attribute, borrowed from the request's path or static. */
static struct tc_slice default_path(const char *path)
{
    const char *last = strrchr(path, '/');
    return last && last != path ? tc_slice_of(path, (size_t)(last - path)) : tc_slice_str("/");
}

/* RFC 6265 5.1.4: path-match. */
static bool path_matches(const char *cookie, const char *request)
{
    size_t n = strlen(cookie);
    return strncmp(cookie, request, n) == 0 && (request[n] == '\0' || request[n] == '/' || cookie[n - 1] == '/');
}

/* Cuts "name = value" at the first '=' and trims both. Without '=', the value is empty and *has_value is false. */
static void cut(struct tc_slice part, struct tc_slice *name, struct tc_slice *value, bool *has_value)
{
    ptrdiff_t equals = tc_slice_find(part, tc_slice_str("="));
    *has_value = equals >= 0;
    *name = tc_slice_trim(tc_slice_of(part.data, *has_value ? (size_t)equals : part.len));
    *value = *has_value ? tc_slice_trim(tc_slice_of(part.data + equals + 1, part.len - (size_t)equals - 1))
                        : tc_slice_of(NULL, 0);
}

/* RFC 6265 5.2.2: ignores a value that is not a number. A negative one expires the cookie. */
static void read_max_age(struct tc_slice value, uint64_t now_ns, uint64_t *expires_ns)
{
    uint64_t seconds;
    if (tc_slice_starts(value, tc_slice_str("-")) &&
        tc_parse_u64(tc_slice_of(value.data + 1, value.len - 1), UINT64_MAX, &seconds) == 0)
        *expires_ns = 0;
    else if (tc_parse_u64(value, UINT64_MAX, &seconds) == 0)
        *expires_ns = seconds < (UINT64_MAX - now_ns) / TC_NS_PER_S ? now_ns + seconds * TC_NS_PER_S : UINT64_MAX;
}

/* Takes ownership of the texts of `made`. Stores `made`, which replaces the cookie with the same name and path, or the
 * oldest cookie of a full jar. If `made` has expired, only removes the cookie with the same name and path. */
static void put(struct cookie_jar *jar, struct cookie made, uint64_t now_ns)
{
    size_t i = 0;
    while (i < jar->cookies.len &&
           (strcmp(jar->cookies.data[i].name, made.name) != 0 || strcmp(jar->cookies.data[i].path, made.path) != 0))
        i++;
    if (i < jar->cookies.len) {
        cookie_fini(&jar->cookies.data[i]);
        jar->cookies.data[i] = made; /* keeps the old cookie's place, as RFC 6265 keeps its creation time */
        if (made.expires_ns <= now_ns)
            drop(jar, i);
    } else if (made.expires_ns <= now_ns) {
        cookie_fini(&made);
    } else {
        if (jar->cookies.len == MAX_COOKIES)
            drop(jar, 0);
        *tc_vec_push(&jar->cookies) = made;
    }
}

/* RFC 6265 5.2 and 5.3: stores the cookie of one set-cookie field. Ignores a field that is too long, or whose first
 * part has no name or no '='. */
static void take_one(struct cookie_jar *jar, struct tc_slice field, const char *request_path, uint64_t now_ns)
{
    bool more = true, has_value, secure = false;
    struct tc_slice part, name, value, key, of, path = default_path(request_path);
    uint64_t expires_ns = UINT64_MAX;
    if (field.len > MAX_COOKIE_BYTES)
        return;
    tc_slice_split(&field, &more, ';', &part);
    cut(part, &name, &value, &has_value);
    if (!has_value || name.len == 0)
        return;
    while (tc_slice_split(&field, &more, ';', &part)) {
        bool ignored;
        cut(part, &key, &of, &ignored);
        if (tc_slice_ieq(key, tc_slice_str("path")))
            path = tc_slice_starts(of, tc_slice_str("/")) ? of : default_path(request_path);
        else if (tc_slice_ieq(key, tc_slice_str("max-age")))
            read_max_age(of, now_ns, &expires_ns);
        else if (tc_slice_ieq(key, tc_slice_str("secure")))
            secure = true;
    }
    put(jar, (struct cookie){tc_slice_dup(name), tc_slice_dup(value), tc_slice_dup(path), secure, expires_ns}, now_ns);
}

void cookie_jar_take(struct cookie_jar *jar, const torc_metadata *metadata, const char *path, uint64_t now_ns)
{
    drop_expired(jar, now_ns);
    for (size_t i = 0; metadata && i < torc_metadata_count(metadata); i++) {
        const char *name;
        const void *value;
        size_t size;
        torc_metadata_at(metadata, i, &name, &value, &size);
        if (strcmp(name, "set-cookie") == 0)
            take_one(jar, tc_slice_of(value, size), path, now_ns);
    }
}

void cookie_jar_give(struct cookie_jar *jar, const char *path, bool tls, uint64_t now_ns, struct tc_buf *out)
{
    size_t length = SIZE_MAX;
    drop_expired(jar, now_ns);
    for (;;) {
        size_t next = 0; /* the length of the longest path shorter than `length` */
        for (size_t i = 0; i < jar->cookies.len; i++) {
            size_t n = strlen(jar->cookies.data[i].path);
            if (n < length && n > next)
                next = n;
        }
        if (next == 0)
            return;
        length = next;
        for (size_t i = 0; i < jar->cookies.len; i++) {
            const struct cookie *c = &jar->cookies.data[i];
            if (strlen(c->path) == length && path_matches(c->path, path) && (tls || !c->secure))
                tc_buf_printf(out, "%s%s=%s", out->len ? "; " : "", c->name, c->value);
        }
    }
}
