/* A name server on a thread of its own that answers every question as the test says, by UDP and TCP: truly, falsely,
 * not at all. */
#ifndef TC_SUPPORT_NAME_SERVER_H
#define TC_SUPPORT_NAME_SERVER_H

#include <stdbool.h>
#include <stdint.h>

enum name_mode {
    NAMES_TRUE,      /* the addresses, to questions for A; none to others */
    NAMES_TRUNCATED, /* by UDP that there is more than fits; by TCP the addresses */
    NAMES_CUT,       /* by UDP the same; TCP connections end at once */
    NAMES_FORGED,    /* first an answer with another id and the address 127.0.0.3, then the true one */
    NAMES_MISSING,   /* there is no such name */
    NAMES_REFUSED,
    NAMES_SILENT,
    NAMES_NOISE,    /* the question's id, then noise */
    NAMES_SHORT,    /* an answer that ends within its header */
    NAMES_OVERLONG, /* a record that claims more bytes than there are */
    NAMES_LOOP,     /* a name that is compressed into itself */
    NAMES_ALIASES,  /* two names that are aliases of one another */
    NAMES_MODES
};

struct name_server;

/* Says NAMES_SILENT at first. */
struct name_server *name_server_new(void);
void name_server_free(struct name_server *s);
/* "127.0.0.1:PORT"; borrowed. */
const char *name_server_address(const struct name_server *s);
/* From now on; addresses: "127.0.0.1,127.0.0.2", kept where NULL. */
void name_server_set(struct name_server *s, enum name_mode mode, const char *addresses);
/* The sockets are closed, and opened again on the same port. */
void name_server_stop(struct name_server *s);
void name_server_start(struct name_server *s);
/* Questions so far. */
uint64_t name_server_questions(struct name_server *s);

#endif
