/* A TLS client and server on the two ends of a pipe, on a manual loop, and their certificates. */
#ifndef TC_SUPPORT_KITS_TLS_PAIR_H
#define TC_SUPPORT_KITS_TLS_PAIR_H

#include "support/fakes/pipe.h"
#include "support/kits/cert.h"
#include "tls/tls.h"

/* Two roots, and leaf certificates that `root` has issued: `server` and `expired` for backend.test, *.wild.test,
 * 127.0.0.1 and ::1; `client` without names; cn_only with backend.test as its common name alone. */
struct kit_tls_pair_certs {
    struct kit_cert root, other_root, server, expired, client, cn_only;
};

extern struct kit_tls_pair_certs kit_tls_pair_certs;

void kit_tls_pair_certs_make(void);
void kit_tls_pair_certs_free(void);

/* One side: stores received bytes, and sends `to_send` when it can. `called`: the handshake is over; `bs` is NULL if it
 * failed, for the reason `error`. `ended`: the peer has ended its stream. `read_error`: of a read; 0: none. */
struct kit_tls_pair_side {
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
struct kit_tls_pair {
    struct tc_loop *loop;
    struct fake_pipe *pipe;
    struct kit_tls_pair_side client, server;
};

/* cmocka's fixtures: *state is a struct kit_tls_pair. Teardown fails if OpenSSL's error queue is not empty. */
int kit_tls_pair_setup(void **state);
int kit_tls_pair_teardown(void **state);

/* Return the options of a client that trusts `root`, and of a server with this certificate that requests no client
 * certificate. */
struct tc_tls_opts kit_tls_pair_client_opts(void);
struct tc_tls_opts kit_tls_pair_server_opts(const struct kit_cert *cert);
/* Fails the test if the options are rejected. For tc_tls_context_unref. */
struct tc_tls_context *kit_tls_pair_make_context(const struct tc_tls_opts *opts);

/* Handshakes with a limit of 5000 ms. `shake` starts both sides and runs them. */
void kit_tls_pair_start_client(struct kit_tls_pair *f, const struct tc_tls_opts *opts, const char *name);
void kit_tls_pair_start_server(struct kit_tls_pair *f, const struct tc_tls_opts *opts);
void kit_tls_pair_shake(struct kit_tls_pair *f, const struct tc_tls_opts *client, const char *name,
                        const struct tc_tls_opts *server);
/* The callback of both handshakes; `arg` is the struct kit_tls_pair_side. */
void kit_tls_pair_side_on_handshake(void *arg, struct tc_bytestream *bs, const struct tc_status *error);

/* Sends as much of `to_send` as the stream takes. */
void kit_tls_pair_side_send(struct kit_tls_pair_side *s);
/* Sends that many bytes across, and compares them with the bytes that arrive. */
void kit_tls_pair_send_and_compare(struct kit_tls_pair *f, struct kit_tls_pair_side *from, struct kit_tls_pair_side *to,
                                   size_t len);
void kit_tls_pair_assert_both_up(const struct kit_tls_pair *f);
/* Asserts that the handshake failed with UNAVAILABLE and a text that contains `part`. */
void kit_tls_pair_assert_failed(const struct kit_tls_pair_side *s, const char *part);

#endif
