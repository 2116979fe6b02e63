/* A name server on a thread of its own that answers every question as the test decides, over UDP and TCP: correctly,
 * falsely, or not at all. */
#ifndef TC_SUPPORT_NET_NAME_SERVER_H
#define TC_SUPPORT_NET_NAME_SERVER_H

#include <stdbool.h>
#include <stdint.h>

enum name_mode {
    NAMES_TRUE,      /* the addresses for type A; an empty answer for other types */
    NAMES_TRUNCATED, /* truncated over UDP; the addresses over TCP */
    NAMES_CUT,       /* truncated over UDP; TCP connections are closed at once */
    NAMES_FORGED,    /* over UDP first an answer with another id and the address 127.0.0.3, then the correct one */
    NAMES_MISSING,   /* name error (NXDOMAIN) */
    NAMES_REFUSED,
    NAMES_SILENT,   /* no answer over UDP; a message of 0 bytes over TCP */
    NAMES_NOISE,    /* the question's id, then random bytes */
    NAMES_SHORT,    /* an answer that ends within its header */
    NAMES_OVERLONG, /* a record that claims more bytes than present */
    NAMES_LOOP,     /* a name compressed into itself */
    NAMES_ALIASES,  /* two names that are aliases of each other */
    NAMES_MODES
};

struct name_server;

/* Starts a server on 127.0.0.1 and a free port, in NAMES_SILENT. Fails the test if the server cannot listen. */
struct name_server *name_server_new(void);
void name_server_free(struct name_server *s);
/* Returns "127.0.0.1:PORT"; valid until name_server_free. */
const char *name_server_address(const struct name_server *s);
/* Sets the answers from now on. addresses: IPv4, "127.0.0.1,127.0.0.2"; NULL: the addresses stay. */
void name_server_set(struct name_server *s, enum name_mode mode, const char *addresses);
/* name_server_stop ends the thread and closes the sockets; name_server_start opens them again on the same port. */
void name_server_stop(struct name_server *s);
void name_server_start(struct name_server *s);
/* Returns the number of questions so far, over UDP and TCP. */
uint64_t name_server_questions(struct name_server *s);

#endif
