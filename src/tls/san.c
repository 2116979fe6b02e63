/* Names in certificates: for the names that xDS matches (A29), for SPIFFE, and for the names that an application is
 * shown (tls/identity.c). OpenSSL checks whether a certificate is valid for the name of a connection; before that,
 * tls/verify.c checks the name of the connection with tc_san_is_host.
 *
 * A name may have a NUL inside, which a C string would hide: names are slices, and tc_san_covers refuses a NUL. */
#include "tls/san.h"

#include <arpa/inet.h>

#include "tls/openssl.h"

/* Returns the bytes, borrowed from `s`. */
static struct tc_slice name_text(const ASN1_STRING *s)
{
    int len = ASN1_STRING_length(s);
    return tc_slice_of(ASN1_STRING_get0_data(s), len > 0 ? (size_t)len : 0);
}

/* Returns an IP address as text, in `text`. Returns an empty slice when the bytes are not an address. */
static struct tc_slice name_ip(const ASN1_OCTET_STRING *s, char text[INET6_ADDRSTRLEN])
{
    int len = ASN1_STRING_length(s);
    int family = len == 4 ? AF_INET : len == 16 ? AF_INET6 : AF_UNSPEC;
    if (family == AF_UNSPEC || !inet_ntop(family, ASN1_STRING_get0_data(s), text, INET6_ADDRSTRLEN))
        return tc_slice_of(NULL, 0);
    return tc_slice_str(text);
}

/* Stores the kind and the name, which lies in `from` or `ip`. Returns false for kinds that enum tc_san_kind lacks. */
static bool name_read(const GENERAL_NAME *from, char ip[INET6_ADDRSTRLEN], enum tc_san_kind *kind,
                      struct tc_slice *name)
{
    switch (from->type) {
    case GEN_DNS:
        *kind = TC_SAN_DNS;
        *name = name_text(from->d.dNSName);
        return true;
    case GEN_URI:
        *kind = TC_SAN_URI;
        *name = name_text(from->d.uniformResourceIdentifier);
        return true;
    case GEN_EMAIL:
        *kind = TC_SAN_EMAIL;
        *name = name_text(from->d.rfc822Name);
        return true;
    case GEN_IPADD:
        *kind = TC_SAN_IP;
        *name = name_ip(from->d.iPAddress, ip);
        return true;
    default:
        return false;
    }
}

bool tc_san_find(struct x509_st *cert, tc_san_fn fn, void *arg, size_t *n)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    bool found = false;
    size_t count = 0;
    for (int i = 0; !found && i < sk_GENERAL_NAME_num(names); i++) {
        enum tc_san_kind kind;
        struct tc_slice name;
        char ip[INET6_ADDRSTRLEN];
        if (!name_read(sk_GENERAL_NAME_value(names, i), ip, &kind, &name))
            continue;
        count++;
        found = fn(arg, kind, name);
    }
    GENERAL_NAMES_free(names);
    if (n)
        *n = count;
    return found;
}

/* Leaves out one dot at the end; leaves the name "." as it is. */
static struct tc_slice name_without_root(struct tc_slice name)
{
    if (name.len > 1 && name.data[name.len - 1] == '.')
        name.len--;
    return name;
}

/* Returns false for a name with an empty label or a NUL, so also for "". */
static bool name_is_valid(struct tc_slice name)
{
    struct tc_slice rest = name, label;
    bool more = true;
    while (more) {
        tc_slice_split(&rest, &more, '.', &label);
        if (label.len == 0 || memchr(label.data, '\0', label.len))
            return false;
    }
    return true;
}

bool tc_san_is_host(struct tc_slice host)
{
    return name_is_valid(host) && !memchr(host.data, '*', host.len);
}

static bool host_is_ipv4(struct tc_slice host)
{
    char text[INET_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in_addr)];
    if (host.len >= sizeof(text))
        return false;
    memcpy(text, host.data, host.len);
    text[host.len] = '\0';
    return inet_pton(AF_INET, text, bytes) == 1;
}

bool tc_san_covers(struct tc_slice pattern, struct tc_slice host)
{
    pattern = name_without_root(pattern);
    host = name_without_root(host);
    if (!name_is_valid(pattern) || !name_is_valid(host))
        return false;
    if (!memchr(pattern.data, '*', pattern.len))
        return tc_slice_ieq(pattern, host);
    /* A '*' must be the whole leftmost label, and have another label behind it. */
    if (pattern.len < 3 || pattern.data[0] != '*' || pattern.data[1] != '.' ||
        memchr(pattern.data + 1, '*', pattern.len - 1))
        return false;
    const char *dot = memchr(host.data, '.', host.len);
    if (!dot || host_is_ipv4(host)) /* RFC 9525: an address has no labels */
        return false;
    size_t label = (size_t)(dot - host.data);
    return tc_slice_ieq(tc_slice_of(pattern.data + 1, pattern.len - 1), tc_slice_of(dot, host.len - label));
}
