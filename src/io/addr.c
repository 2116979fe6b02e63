/* Addresses: parsing, formatting, comparing; and proxy hops, which are part of an address.
 *
 * The text of an address is hashed into rings, so it must be the same in every client of a mesh: tc_addr_format gives
 * the canonical form. tc_addr_parse accepts every IP literal that inet_pton does, and a zone behind an IPv6 address
 * (RFC 4007). IPv4 is formatted by hand, since a ring formats the address of each endpoint.
 *
 * Equality counts the proxy hop, since connections through different proxies must not be shared; the hash and the text
 * leave it out. An address owns a reference to its hop and one to its Unix path; both are immutable. Any thread. */
#include "io/addr.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/parse.h"

static int addr_from_in4(struct tc_addr *a, const char *text, uint16_t port)
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

/* Parses the number or the interface name behind '%' (RFC 4007). */
static int addr_parse_scope(const char *text, uint32_t *scope)
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
        return addr_from_in4(a, text, port);
    uint32_t scope = 0;
    char *percent = strchr(text, '%');
    if (percent) {
        *percent = 0;
        if (addr_parse_scope(percent + 1, &scope) != 0)
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
    /* A path needs room for its NUL in sun_path, an abstract name for the NUL in front. */
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

int tc_addr_from_vsock(struct tc_addr *a, uint32_t cid, uint32_t port)
{
#ifdef __linux__
    *a = (struct tc_addr){.len = sizeof(struct sockaddr_vm)};
    a->sa.vm.svm_family = AF_VSOCK;
    a->sa.vm.svm_cid = cid;
    a->sa.vm.svm_port = port;
    return 0;
#else
    (void)a, (void)cid, (void)port;
    return TORC_EUNSUPPORTED;
#endif
}

void tc_addr_from_fd(struct tc_addr *a, int fd)
{
    *a = (struct tc_addr){.len = sizeof(struct tc_addr_fd)};
    a->sa.fd = (struct tc_addr_fd){.family = AF_UNSPEC, .number = fd};
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
        /* The end of a Unix connection that is not bound to a path. */
        *a = (struct tc_addr){.len = offsetof(struct sockaddr_un, sun_path)};
        a->sa.any.sa_family = AF_UNIX;
        return 0;
    }
#ifdef __linux__
    case AF_VSOCK:
        if (len < (socklen_t)sizeof(struct sockaddr_vm))
            return TORC_EINVAL;
        *a = (struct tc_addr){.len = sizeof(struct sockaddr_vm)};
        memcpy(&a->sa.vm, sa, sizeof(a->sa.vm));
        return 0;
#endif
    default:
        return TORC_EINVAL;
    }
}

/* Parses ":80", with nothing behind it. */
static int addr_parse_port(struct tc_slice text, uint16_t *port)
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
    struct tc_slice host, rest;
    uint16_t port;
    if (!tc_addr_split(text, &host, &rest) || addr_parse_port(rest, &port) != 0)
        return TORC_EPARSE;
    bool bracketed = host.data > text.data, is_ipv6 = memchr(host.data, ':', host.len) != NULL;
    return bracketed == is_ipv6 ? tc_addr_from_ip(a, host, port) : TORC_EPARSE;
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
    tc_proxy_hop_ref(copy.proxy_hop);
    return copy;
}

void tc_addr_fini(struct tc_addr *a)
{
    tc_rstr_unref(a->unix_path);
    tc_proxy_hop_unref(a->proxy_hop);
    *a = (struct tc_addr){0};
}

bool tc_addr_eq(const struct tc_addr *a, const struct tc_addr *b)
{
    if (tc_addr_family(a) != tc_addr_family(b) || !tc_proxy_hop_eq(a->proxy_hop, b->proxy_hop))
        return false;
    switch (tc_addr_family(a)) {
    case AF_INET:
        return a->sa.in.sin_port == b->sa.in.sin_port && a->sa.in.sin_addr.s_addr == b->sa.in.sin_addr.s_addr;
    case AF_INET6:
        return a->sa.in6.sin6_port == b->sa.in6.sin6_port && a->sa.in6.sin6_scope_id == b->sa.in6.sin6_scope_id &&
               memcmp(&a->sa.in6.sin6_addr, &b->sa.in6.sin6_addr, sizeof(a->sa.in6.sin6_addr)) == 0;
#ifdef __linux__
    case AF_VSOCK:
        return a->sa.vm.svm_cid == b->sa.vm.svm_cid && a->sa.vm.svm_port == b->sa.vm.svm_port;
#endif
    case AF_UNSPEC:
        return a->len == b->len && a->sa.fd.number == b->sa.fd.number;
    default:
        return tc_rstr_eq(a->unix_path, b->unix_path);
    }
}

uint64_t tc_addr_hash(const struct tc_addr *a)
{
    unsigned char key[2 + 4 + 16];
    struct tc_slice path = tc_rstr_slice(a->unix_path);
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
#ifdef __linux__
    case AF_VSOCK:
        memcpy(key, &a->sa.vm.svm_cid, 4);
        memcpy(key + 4, &a->sa.vm.svm_port, 4);
        n = 8;
        break;
#endif
    case AF_UNSPEC:
        memcpy(key, &a->sa.fd.number, sizeof(a->sa.fd.number));
        n = sizeof(a->sa.fd.number);
        break;
    default:
        return tc_table_hash(path.data, path.len);
    }
    return tc_table_hash(key, n);
}

static void addr_format_in6(const struct sockaddr_in6 *in6, struct tc_buf *out)
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

/* Writes n and the character `behind` (0: none). Returns the place after them. */
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

static void addr_format_in4(const struct sockaddr_in *in, struct tc_buf *out)
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
        addr_format_in4(&a->sa.in, out);
        break;
    case AF_INET6:
        addr_format_in6(&a->sa.in6, out);
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
#ifdef __linux__
    case AF_VSOCK:
        tc_buf_printf(out, "vsock:%u:%u", (unsigned)a->sa.vm.svm_cid, (unsigned)a->sa.vm.svm_port);
        break;
#endif
    default:
        if (a->len && tc_addr_family(a) == AF_UNSPEC)
            tc_buf_printf(out, "fd:%d", a->sa.fd.number);
        else
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

bool tc_addr_split(struct tc_slice text, struct tc_slice *host, struct tc_slice *rest)
{
    *host = tc_addr_host_of(text);
    bool bracketed = host->data > text.data;
    const char *behind = host->data + host->len + bracketed;
    *rest = tc_slice_of(behind, text.len - (size_t)(behind - text.data));
    return host->len && bracketed == (text.data[0] == '[');
}

/* --- proxy hops --- */

struct tc_proxy_hop *tc_proxy_hop_new(const struct tc_addr *proxy, struct tc_rstr *target,
                                      struct tc_rstr *authorization)
{
    struct tc_proxy_hop *h = TC_NEW(struct tc_proxy_hop);
    tc_ref_init(&h->ref);
    if (proxy)
        h->proxy = tc_addr_ref(proxy);
    h->target = tc_rstr_ref(target);
    h->authorization = tc_rstr_ref(authorization);
    return h;
}

struct tc_proxy_hop *tc_proxy_hop_ref(struct tc_proxy_hop *h)
{
    if (h)
        tc_ref_inc(&h->ref);
    return h;
}

void tc_proxy_hop_unref(struct tc_proxy_hop *h)
{
    if (!h || !tc_ref_dec(&h->ref))
        return;
    tc_addr_fini(&h->proxy);
    tc_rstr_unref(h->target);
    tc_rstr_unref(h->authorization);
    tc_free(h);
}

bool tc_proxy_hop_eq(const struct tc_proxy_hop *a, const struct tc_proxy_hop *b)
{
    if (a == b)
        return true;
    return a && b && a->proxy.len == b->proxy.len && (a->proxy.len == 0 || tc_addr_eq(&a->proxy, &b->proxy)) &&
           tc_rstr_eq(a->target, b->target) && tc_rstr_eq(a->authorization, b->authorization);
}

const struct tc_addr *tc_addr_to_dial(const struct tc_addr *a)
{
    return a->proxy_hop && a->proxy_hop->proxy.len ? &a->proxy_hop->proxy : a;
}
