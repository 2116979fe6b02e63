#include "io/addr.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/parse.h"
#include "io/proxy.h"

static int from_in4(struct tc_addr *a, const char *text, uint16_t port)
{
    struct in_addr in;
    if (inet_pton(AF_INET, text, &in) != 1)
        return TORC_EPARSE;
    *a = (struct tc_addr){.len = sizeof(struct sockaddr_in)};
    a->sa.in.sin_family = AF_INET;
    a->sa.in.sin_port = htons(port);
    a->sa.in.sin_addr = in;
    return 0;
}

/* The number or the interface name behind '%' (RFC 4007). */
static int parse_scope(const char *text, uint32_t *scope)
{
    uint64_t number;
    if (tc_parse_u64(tc_slice_str(text), UINT32_MAX, &number) == 0) {
        *scope = (uint32_t)number;
        return 0;
    }
    unsigned index = if_nametoindex(text);
    if (index == 0)
        return TORC_EPARSE;
    *scope = index;
    return 0;
}

int tc_addr_from_ip(struct tc_addr *a, struct tc_slice ip, uint16_t port)
{
    char text[INET6_ADDRSTRLEN + 1 + IF_NAMESIZE];
    if (ip.len == 0 || ip.len >= sizeof(text) || memchr(ip.data, 0, ip.len))
        return TORC_EPARSE;
    memcpy(text, ip.data, ip.len);
    text[ip.len] = 0;
    if (!strchr(text, ':'))
        return from_in4(a, text, port);
    uint32_t scope = 0;
    char *percent = strchr(text, '%');
    if (percent) {
        *percent = 0;
        if (parse_scope(percent + 1, &scope) != 0)
            return TORC_EPARSE;
    }
    struct in6_addr in6;
    if (inet_pton(AF_INET6, text, &in6) != 1)
        return TORC_EPARSE;
    *a = (struct tc_addr){.len = sizeof(struct sockaddr_in6)};
    a->sa.in6.sin6_family = AF_INET6;
    a->sa.in6.sin6_port = htons(port);
    a->sa.in6.sin6_addr = in6;
    a->sa.in6.sin6_scope_id = scope;
    return 0;
}

int tc_addr_from_unix(struct tc_addr *a, struct tc_slice path, bool abstract)
{
    /* A path needs its NUL inside sun_path, an abstract name the NUL in front. */
    if (path.len == 0 || path.len >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return TORC_EPARSE;
    if (!abstract && memchr(path.data, 0, path.len))
        return TORC_EPARSE;
    char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
    size_t at = 0;
    if (abstract)
        name[at++] = 0;
    memcpy(name + at, path.data, path.len);
    *a = (struct tc_addr){.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.len + 1)};
    a->sa.any.sa_family = AF_UNIX;
    a->unix_path = tc_rstr_new(name, at + path.len);
    return 0;
}

int tc_addr_from_sockaddr(struct tc_addr *a, const struct sockaddr *sa, socklen_t len)
{
    if (len < (socklen_t)sizeof(sa->sa_family))
        return TORC_EINVAL;
    switch (sa->sa_family) {
    case AF_INET:
        if (len < (socklen_t)sizeof(struct sockaddr_in))
            return TORC_EINVAL;
        *a = (struct tc_addr){.len = sizeof(struct sockaddr_in)};
        memcpy(&a->sa.in, sa, sizeof(a->sa.in));
        return 0;
    case AF_INET6:
        if (len < (socklen_t)sizeof(struct sockaddr_in6))
            return TORC_EINVAL;
        *a = (struct tc_addr){.len = sizeof(struct sockaddr_in6)};
        memcpy(&a->sa.in6, sa, sizeof(a->sa.in6));
        return 0;
    case AF_UNIX: {
        const char *path = (const char *)sa + offsetof(struct sockaddr_un, sun_path);
        size_t n = TC_MIN((size_t)len, sizeof(struct sockaddr_un)) - offsetof(struct sockaddr_un, sun_path);
        if ((size_t)len > offsetof(struct sockaddr_un, sun_path) && path[0] == 0)
            return tc_addr_from_unix(a, tc_slice_of(path + 1, n - 1), true) == 0 ? 0 : TORC_EINVAL;
        n = (size_t)len > offsetof(struct sockaddr_un, sun_path) ? strnlen(path, n) : 0;
        if (n > 0)
            return tc_addr_from_unix(a, tc_slice_of(path, n), false) == 0 ? 0 : TORC_EINVAL;
        /* The unnamed end of a Unix connection. */
        *a = (struct tc_addr){.len = offsetof(struct sockaddr_un, sun_path)};
        a->sa.any.sa_family = AF_UNIX;
        return 0;
    }
    default:
        return TORC_EINVAL;
    }
}

/* ":80" and nothing behind it. */
static int parse_port(struct tc_slice text, uint16_t *port)
{
    uint64_t number;
    if (text.len < 2 || text.data[0] != ':' || tc_parse_u64(tc_slice_of(text.data + 1, text.len - 1), 65535, &number))
        return TORC_EPARSE;
    *port = (uint16_t)number;
    return 0;
}

int tc_addr_parse(struct tc_addr *a, struct tc_slice text)
{
    const struct tc_slice unix_abstract = tc_slice_str("unix-abstract:"), unix_path = tc_slice_str("unix:");
    if (tc_slice_starts(text, unix_abstract))
        return tc_addr_from_unix(a, tc_slice_of(text.data + unix_abstract.len, text.len - unix_abstract.len), true);
    if (tc_slice_starts(text, unix_path))
        return tc_addr_from_unix(a, tc_slice_of(text.data + unix_path.len, text.len - unix_path.len), false);
    if (text.len == 0)
        return TORC_EPARSE;
    uint16_t port;
    bool bracket = text.data[0] == '[';
    const char *end = memchr(text.data, bracket ? ']' : ':', text.len);
    if (!end)
        return TORC_EPARSE;
    const char *start = text.data + (bracket ? 1 : 0);
    struct tc_slice ip = tc_slice_of(start, (size_t)(end - start));
    if (bracket)
        end++;
    else if (memchr(end + 1, ':', text.len - (size_t)(end + 1 - text.data)))
        return TORC_EPARSE; /* an IPv6 address needs its brackets */
    int rc = parse_port(tc_slice_of(end, text.len - (size_t)(end - text.data)), &port);
    if (rc != 0 || bracket != (memchr(ip.data, ':', ip.len) != NULL))
        return TORC_EPARSE;
    return tc_addr_from_ip(a, ip, port);
}

const struct sockaddr *tc_addr_sockaddr(const struct tc_addr *a, struct sockaddr_un *un, socklen_t *len)
{
    *len = a->len;
    if (tc_addr_family(a) != AF_UNIX)
        return &a->sa.any;
    memset(un, 0, sizeof(*un));
    un->sun_family = AF_UNIX;
    struct tc_slice path = tc_rstr_slice(a->unix_path);
    memcpy(un->sun_path, path.data, TC_MIN(path.len, sizeof(un->sun_path)));
    if (path.len > 0 && path.data[0] == 0)
        *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.len);
    return (const struct sockaddr *)un;
}

struct tc_addr tc_addr_ref(const struct tc_addr *a)
{
    struct tc_addr copy = *a;
    tc_rstr_ref(copy.unix_path);
    tc_via_ref(copy.via);
    return copy;
}

void tc_addr_fini(struct tc_addr *a)
{
    tc_rstr_unref(a->unix_path);
    tc_via_unref(a->via);
    *a = (struct tc_addr){0};
}

bool tc_addr_eq(const struct tc_addr *a, const struct tc_addr *b)
{
    if (tc_addr_family(a) != tc_addr_family(b) || !tc_via_eq(a->via, b->via))
        return false;
    switch (tc_addr_family(a)) {
    case AF_INET:
        return a->sa.in.sin_port == b->sa.in.sin_port && a->sa.in.sin_addr.s_addr == b->sa.in.sin_addr.s_addr;
    case AF_INET6:
        return a->sa.in6.sin6_port == b->sa.in6.sin6_port && a->sa.in6.sin6_scope_id == b->sa.in6.sin6_scope_id &&
               memcmp(&a->sa.in6.sin6_addr, &b->sa.in6.sin6_addr, sizeof(a->sa.in6.sin6_addr)) == 0;
    default:
        return tc_rstr_eq(a->unix_path, b->unix_path);
    }
}

uint64_t tc_addr_hash(const struct tc_addr *a)
{
    unsigned char key[2 + 4 + 16];
    size_t n = 0;
    switch (tc_addr_family(a)) {
    case AF_INET:
        memcpy(key, &a->sa.in.sin_port, 2);
        memcpy(key + 2, &a->sa.in.sin_addr, 4);
        n = 6;
        break;
    case AF_INET6:
        memcpy(key, &a->sa.in6.sin6_port, 2);
        memcpy(key + 2, &a->sa.in6.sin6_scope_id, 4);
        memcpy(key + 6, &a->sa.in6.sin6_addr, 16);
        n = 22;
        break;
    default:
        return tc_xxh64_slice(tc_rstr_slice(a->unix_path));
    }
    return tc_xxh64(key, n);
}

static void format_in6(const struct sockaddr_in6 *in6, struct tc_buf *out)
{
    char ip[INET6_ADDRSTRLEN], interface[IF_NAMESIZE];
    inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip));
    tc_buf_printf(out, "[%s", ip);
    if (in6->sin6_scope_id != 0) {
        if (if_indextoname(in6->sin6_scope_id, interface))
            tc_buf_printf(out, "%%%s", interface);
        else
            tc_buf_printf(out, "%%%u", (unsigned)in6->sin6_scope_id);
    }
    tc_buf_printf(out, "]:%u", (unsigned)ntohs(in6->sin6_port));
}

/* Writes n and what comes behind it (0: nothing); the place behind that. */
static char *put_number(char *at, unsigned n, char behind)
{
    char digits[10];
    size_t i = sizeof(digits);
    do
        digits[--i] = (char)('0' + n % 10);
    while (n /= 10);
    memcpy(at, digits + i, sizeof(digits) - i);
    at += sizeof(digits) - i;
    if (behind)
        *at++ = behind;
    return at;
}

/* By hand: rings hash this text of each of their endpoints. */
static void format_in4(const struct sockaddr_in *in, struct tc_buf *out)
{
    char text[INET_ADDRSTRLEN + sizeof(":65535")], *at = text;
    uint32_t ip = ntohl(in->sin_addr.s_addr);
    for (int shift = 24; shift >= 0; shift -= 8)
        at = put_number(at, ip >> shift & 255, shift ? '.' : ':');
    at = put_number(at, ntohs(in->sin_port), 0);
    tc_buf_append(out, text, (size_t)(at - text));
}

void tc_addr_format(const struct tc_addr *a, struct tc_buf *out)
{
    struct tc_slice path;
    switch (tc_addr_family(a)) {
    case AF_INET:
        format_in4(&a->sa.in, out);
        break;
    case AF_INET6:
        format_in6(&a->sa.in6, out);
        break;
    case AF_UNIX:
        path = tc_rstr_slice(a->unix_path);
        if (path.len > 0 && path.data[0] == 0) {
            tc_buf_append_str(out, "unix-abstract:");
            tc_buf_append(out, path.data + 1, path.len - 1);
        } else {
            tc_buf_append_str(out, "unix:");
            tc_buf_append_slice(out, path);
        }
        break;
    default:
        tc_buf_append_str(out, "unknown");
    }
}

char *tc_addr_text(const struct tc_addr *a)
{
    struct tc_buf out = {0};
    tc_addr_format(a, &out);
    return tc_buf_take(&out);
}

struct tc_slice tc_addr_host_of(struct tc_slice s)
{
    const char *end;
    if (s.len && s.data[0] == '[' && (end = memchr(s.data, ']', s.len)))
        return tc_slice_of(s.data + 1, (size_t)(end - s.data) - 1);
    const char *colon = s.len ? memchr(s.data, ':', s.len) : NULL;
    const char *last = s.len ? memrchr(s.data, ':', s.len) : NULL;
    return colon && colon == last ? tc_slice_of(s.data, (size_t)(colon - s.data)) : s;
}
