/* A socket address: IPv4, IPv6, Unix or vsock, by value. Its text is canonical and part of the ring hash's contract:
 * "1.2.3.4:80", "[::1]:80" (RFC 5952, as inet_ntop prints; v4-mapped addresses stay IPv6), "unix:/path",
 * "unix-abstract:name", "vsock:2:1024". "fd:3" stands for a descriptor that is connected already (io/dialer.h). Any
 * thread. To format an IPv6 zone, or to parse a zone that is not a number, its interface is looked up in the system. */
#ifndef TC_IO_ADDR_H
#define TC_IO_ADDR_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/ref.h"
#include "base/rstr.h"

#ifdef __linux__
#include <linux/vm_sockets.h>
#endif

struct tc_proxy_hop;

/* How many families an address may be of: IPv4, IPv6, Unix, vsock, and AF_UNSPEC for a descriptor. */
enum { TC_ADDR_FAMILIES = 5 };

struct tc_addr_fd {
    sa_family_t family; /* AF_UNSPEC */
    int number;
};

struct tc_addr {
    socklen_t len; /* of the sockaddr; 0: there is no address */
    union {
        struct sockaddr any; /* of a Unix address its family alone is set */
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
#ifdef __linux__
        struct sockaddr_vm vm;
#endif
        struct tc_addr_fd fd; /* family AF_UNSPEC, with `len` set */
    } sa;
    struct tc_proxy_hop *proxy_hop; /* NULL: dialled directly. A part of equality, but not of the text or the hash. */
    struct tc_rstr *unix_path;      /* for AF_UNIX; a leading NUL marks an abstract name; NULL: not bound. Shared. */
};

/* The functions that make an address store it in *a, to be freed with tc_addr_fini. They leave *a untouched on
 * failure. */

/* Parses "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/path" or "unix-abstract:name": literals only, no
 * names. Returns 0 or TORC_EPARSE. */
int tc_addr_parse(struct tc_addr *a, struct tc_slice text);
/* Takes an IP literal without port, and the port. Returns 0 or TORC_EPARSE. */
int tc_addr_from_ip(struct tc_addr *a, struct tc_slice ip, uint16_t port);
/* Takes a path, or with `abstract` a name without its leading NUL. Returns 0, or TORC_EPARSE if it is empty, too long,
 * or a path with a NUL. */
int tc_addr_from_unix(struct tc_addr *a, struct tc_slice path, bool abstract);
/* Returns 0, or TORC_EUNSUPPORTED on a system without vsock. */
int tc_addr_from_vsock(struct tc_addr *a, uint32_t cid, uint32_t port);
/* The address does not own the descriptor. */
void tc_addr_from_fd(struct tc_addr *a, int fd);
/* Returns 0, or TORC_EINVAL for another family, a length that is too short, or a Unix name that tc_addr_from_unix does
 * not take. */
int tc_addr_from_sockaddr(struct tc_addr *a, const struct sockaddr *sa, socklen_t len);
/* Returns a sockaddr for system calls, in *a or, for a Unix address, in *un; stores its length in *len. Not for a
 * descriptor's address. */
const struct sockaddr *tc_addr_sockaddr(const struct tc_addr *a, struct sockaddr_un *un, socklen_t *len);
/* Returns a copy, to be freed with tc_addr_fini. */
struct tc_addr tc_addr_ref(const struct tc_addr *a);
void tc_addr_fini(struct tc_addr *a);
bool tc_addr_eq(const struct tc_addr *a, const struct tc_addr *b);
/* Returns a hash for hash tables alone (tc_table_hash). */
uint64_t tc_addr_hash(const struct tc_addr *a);
/* Appends the canonical text, or "unknown" if there is no address. A Unix address that is not bound is "unix:". */
void tc_addr_format(const struct tc_addr *a, struct tc_buf *out);
char *tc_addr_text(const struct tc_addr *a); /* freed with tc_free */
static inline int tc_addr_family(const struct tc_addr *a)
{
    return a->sa.any.sa_family;
}

/* The way to an address through an HTTP proxy (io/http_connect.h). Immutable, shared; part of the address. */
struct tc_proxy_hop {
    struct tc_ref ref;
    struct tc_addr proxy;          /* where to connect; len 0: the address is the proxy's own */
    struct tc_rstr *target;        /* the target of CONNECT, "host:port"; NULL: the address itself */
    struct tc_rstr *authorization; /* value of Proxy-Authorization; NULL: none */
};

/* Returns a hop with one reference. Takes references of its own. Each argument may be NULL; `proxy` NULL: the address
 * is the proxy's own. */
struct tc_proxy_hop *tc_proxy_hop_new(const struct tc_addr *proxy, struct tc_rstr *target,
                                      struct tc_rstr *authorization);
struct tc_proxy_hop *tc_proxy_hop_ref(struct tc_proxy_hop *h); /* NULL stays NULL */
void tc_proxy_hop_unref(struct tc_proxy_hop *h);               /* NULL is ignored */
/* Either may be NULL: no hop. */
bool tc_proxy_hop_eq(const struct tc_proxy_hop *a, const struct tc_proxy_hop *b);
/* Returns where to open a connection for this address: its proxy, or the address itself; borrowed. */
const struct tc_addr *tc_addr_to_dial(const struct tc_addr *a);

/* Returns the host of "host[:port]" without port and brackets, borrowed from `authority`; a bare IPv6 literal is
 * itself. */
struct tc_slice tc_addr_host_of(struct tc_slice authority);
/* Splits "host[:port]" into the host (tc_addr_host_of) and the rest behind the host and its closing bracket. Returns
 * false if the host is empty or lacks the closing bracket. Both results are borrowed from `text`. */
bool tc_addr_split(struct tc_slice text, struct tc_slice *host, struct tc_slice *rest);

#endif
