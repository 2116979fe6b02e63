/* A TLS client and server on the two ends of a pipe, on a manual loop, and their certificates. */
#ifndef TC_SUPPORT_KITS_TLS_PAIR_H
#define TC_SUPPORT_KITS_TLS_PAIR_H

#include "support/fakes/pipe.h"
#include "support/kits/cert.h"
#include "tls/tls.h"

/* Two roots, and leaf certificates that `root` has issued: `server` and `expired` for backend.test, *.wild.test,
 * 127.0.0.1 and ::1; `client` and cn_only without subjectAltName, cn_only with the common name backend.test. */
struct kit_tls_pair_certs {
    struct kit_cert root, other_root, server, expired, client, cn_only;
};

extern struct kit_tls_pair_certs kit_tls_pair_certs;

/* Make and free kit_tls_pair_certs, once for a group of tests. */
void kit_tls_pair_certs_make(void);
void kit_tls_pair_certs_free(void);

/* One side: stores received bytes, and sends `to_send` when the stream is writable. `called`: the handshake is over; if
 * it failed, `bs` is NULL and `error` says why. `ended`: the peer has ended its stream. `read_error`: the error of a
 * read; 0: none. The teardown ends all that a side owns: the members from `handshake` to `to_send`. */
struct kit_tls_pair_side {
    struct tc_loop *loop;               /* the pair's */
    struct tc_tls_handshake *handshake; /* NULL: not started, or over */
    struct tc_bytestream *bs;           /* NULL before the end of the handshake */
    struct tc_status error;
    struct tc_buf received;
    struct tc_buf to_send;
    bool called, ended;
    ssize_t read_error;
};

/* The client on end 0, the server on end 1. */
struct kit_tls_pair {
    struct tc_loop *loop;
    struct fake_pipe *pipe;
    struct kit_tls_pair_side client, server;
};

/* cmocka's fixtures: *state is a struct kit_tls_pair. Teardown fails if OpenSSL's error queue is not empty. */
int kit_tls_pair_setup(void **state);
int kit_tls_pair_teardown(void **state);

/* Return the options of a client that trusts `root`, and of a server with this certificate that requests no client
 * certificate. The options borrow the texts of the certificates. */
struct tc_tls_opts kit_tls_pair_client_opts(void);
struct tc_tls_opts kit_tls_pair_server_opts(const struct kit_cert *cert);
/* Fails the test if the options are rejected. The caller releases the context with tc_tls_context_unref. */
struct tc_tls_context *kit_tls_pair_make_context(const struct tc_tls_opts *opts);

/* Start the handshake of the client (name: the server's expected name) or the server, with a limit of 5000 ms of the
 * loop's time. kit_tls_pair_shake starts both and runs the loop. */
void kit_tls_pair_start_client(struct kit_tls_pair *f, const struct tc_tls_opts *opts, const char *name);
void kit_tls_pair_start_server(struct kit_tls_pair *f, const struct tc_tls_opts *opts);
void kit_tls_pair_shake(struct kit_tls_pair *f, const struct tc_tls_opts *client, const char *name,
                        const struct tc_tls_opts *server);
/* The callback of both handshakes; `arg` is the struct kit_tls_pair_side. */
void kit_tls_pair_side_on_handshake(void *arg, struct tc_bytestream *bs, const struct tc_status *error);

/* Sends as much of `to_send` as the stream takes. */
void kit_tls_pair_side_send(struct kit_tls_pair_side *s);
/* Sends `len` bytes across, runs the loop, and asserts that exactly these bytes arrive. Both streams must be up. */
void kit_tls_pair_send_and_compare(struct kit_tls_pair *f, struct kit_tls_pair_side *from, struct kit_tls_pair_side *to,
                                   size_t len);
/* Asserts that both handshakes have succeeded. */
void kit_tls_pair_assert_both_up(const struct kit_tls_pair *f);
/* Asserts that the handshake failed with UNAVAILABLE and a text that contains `part`. */
void kit_tls_pair_assert_failed(const struct kit_tls_pair_side *s, const char *part);

#endif
