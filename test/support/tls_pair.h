/* A client and a server of TLS on the two ends of a pipe, on a manual loop, and the certificates that they need. */
#ifndef TC_SUPPORT_TLS_PAIR_H
#define TC_SUPPORT_TLS_PAIR_H

#include "support/certs.h"
#include "support/pipe.h"
#include "tls/tls.h"

/* Leaves by `root` for backend.test, *.wild.test, 127.0.0.1 and ::1; cn_only has backend.test as common name alone. */
struct tc_certs {
    struct tc_cert root, other_root, server, expired, client, cn_only;
};

extern struct tc_certs tc_certs;

void tc_certs_make(void);
void tc_certs_free(void);

/* One side: keeps what it receives, sends `to_send` as it can. */
struct tc_tls_side {
    struct tc_loop *loop;
    struct tc_tls_handshake *handshake;
    struct tc_bytestream *bs;
    struct tc_status error;
    struct tc_buf received;
    struct tc_buf to_send;
    bool called, ended;
    ssize_t read_error;
};

/* The client on end 0, the server on end 1. */
struct tc_tls_pair {
    struct tc_loop *loop;
    struct tc_pipe *pipe;
    struct tc_tls_side client, server;
};

/* cmocka's fixtures: *state is a struct tc_tls_pair. Teardown fails when OpenSSL's queue of errors is not empty. */
int tc_tls_pair_setup(void **state);
int tc_tls_pair_teardown(void **state);

/* A client that trusts `root`; a server with this certificate that asks for none. */
struct tc_tls_opts tc_tls_client_opts(void);
struct tc_tls_opts tc_tls_server_opts(const struct tc_cert *cert);
struct tc_tls_context *tc_tls_make_context(const struct tc_tls_opts *opts);

/* Handshakes with a limit of 5000 ms; `shake` starts both and runs them. */
void tc_tls_pair_start_client(struct tc_tls_pair *f, const struct tc_tls_opts *opts, const char *name);
void tc_tls_pair_start_server(struct tc_tls_pair *f, const struct tc_tls_opts *opts);
void tc_tls_pair_shake(struct tc_tls_pair *f, const struct tc_tls_opts *client, const char *name,
                       const struct tc_tls_opts *server);
void tc_tls_side_on_handshake(void *arg, struct tc_bytestream *bs, const struct tc_status *error);

void tc_tls_side_send(struct tc_tls_side *s);
/* Sends so many bytes across and compares what arrives. */
void tc_tls_send_and_compare(struct tc_tls_pair *f, struct tc_tls_side *from, struct tc_tls_side *to, size_t len);
void tc_tls_assert_both_up(const struct tc_tls_pair *f);
/* The handshake failed with UNAVAILABLE and a text that has `part` in it. */
void tc_tls_assert_failed(const struct tc_tls_side *s, const char *part);

#endif
