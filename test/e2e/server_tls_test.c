/* Servers with TLS: each address has its credentials, the client's certificate reaches the handler and the
 * application's own check (the hook), files are reloaded, a new connection can take the place of a handshake, and
 * neither side accepts credentials for the other.
 *
 * `root` has issued leaf, client and twice; `other_root` has issued second_leaf and nobody. The tests share these
 * certificates, the runtime `rt`, which has a thread, and `server`, to which they add addresses (listen_with). Tests
 * of hooks and of handshakes make servers of their own on `rt` (server_with). The thread of `rt` calls handlers,
 * on_verify and on_line; test_a_handshake_fails_as_it_makes_room sets `rt` to a runtime that it drives itself. `ask`
 * makes one client, with a runtime that the test's thread drives. Two tests answer for the hook on another thread
 * (accept_later). */
#include <netinet/in.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/cert.h"

static struct kit_cert root, other_root, leaf, second_leaf, client, nobody, twice;
static torc_runtime *rt;
static torc_server *server;
static char dir[] = "/tmp/torc-server-tls-XXXXXX";

/* Answers with what the call says of its client: whether the connection is secure, the SPIFFE id, how many certificates
 * the chain has, the names. */
static void on_who(torc_server_call *call, const torc_message *request, void *arg)
{
    const char *name, *id = torc_server_call_spiffe_id(call);
    const void *der = NULL;
    size_t size = 0;
    int32_t kind;
    int n = 0;
    (void)request, (void)arg;
    while (torc_server_call_peer_certificate(call, (size_t)n, &der, &size) == 0 && size > 100)
        n++;
    CHECK(torc_server_call_peer_certificate(call, (size_t)n, NULL, NULL) == TORC_ENOTFOUND);
    const char *text = torc_server_call_printf(call, "%d %s %d", torc_server_call_secure(call), id ? id : "-", n);
    for (size_t i = 0; torc_server_call_peer_name(call, i, &kind, &name) == 0; i++)
        text = torc_server_call_printf(call, "%s %d:%s", text, kind, name);
    torc_server_call_reply(call, text, strlen(text));
}

static void make_certs(void)
{
    root = kit_cert_make(&(struct kit_cert_opts){.common_name = "root", .ca = true});
    other_root = kit_cert_make(&(struct kit_cert_opts){.common_name = "other", .ca = true});
    leaf = kit_cert_make(&(struct kit_cert_opts){.common_name = "s", .sans = "IP:127.0.0.1", .issuer = &root});
    second_leaf =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "s2", .sans = "IP:127.0.0.1", .issuer = &other_root});
    client = kit_cert_make(&(struct kit_cert_opts){
        .common_name = "c", .sans = "URI:spiffe://example.org/web,DNS:web.example.org,IP:::1", .issuer = &root});
    nobody =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "n", .sans = "URI:spiffe://x/y", .issuer = &other_root});
    /* URI:spiffe://x/y, URI: (empty), DNS:a<NUL>b */
    twice = kit_cert_make(
        &(struct kit_cert_opts){.common_name = "t",
                                .sans = "DER:30:15:86:0c:73:70:69:66:66:65:3a:2f:2f:78:2f:79:86:00:82:03:61:00:62",
                                .issuer = &root});
}

static int setup(void **state)
{
    (void)state;
    struct torc_handler who = {TORC_SIZE(torc_handler), .unary = on_who};
    make_certs();
    assert_non_null(mkdtemp(dir));
    rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
    server = torc_server_new(&o, NULL);
    assert_int_equal(torc_server_add_method(server, "a.B/Who", &who, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    struct kit_cert *all[] = {&root, &other_root, &leaf, &second_leaf, &client, &nobody, &twice};
    char path[128];
    torc_server_free(server);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        kit_cert_fini(all[i]);
    static const char *const names[] = {"cert", "key", "ca"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    return torc_runtime_free(rt);
}

/* Makes `server` listen, and releases the credentials. Returns the address, which the caller frees with torc_free. */
static char *listen_with(torc_credentials *credentials)
{
    char *bound = NULL;
    torc_error *error = NULL;
    torc_server_listen(server, "127.0.0.1:0", credentials, &bound, &error);
    assert_string_equal(torc_error_text(error), "");
    torc_credentials_unref(credentials);
    return bound;
}

/* Returns a server's credentials from texts, with the certificate `leaf`; the caller releases them. clients: the root
 * of client certificates; NULL: the server asks for none. how: enum torc_client_certificates. */
static torc_credentials *texts(const struct kit_cert *clients, int64_t how)
{
    struct torc_server_tls_options o = {TORC_SIZE(torc_server_tls_options), .certificate_pem = leaf.cert_pem,
                                        .private_key_pem = leaf.key_pem, .client_certificates = how,
                                        .client_roots_pem = clients ? clients->cert_pem : NULL};
    torc_error *error = NULL;
    torc_credentials *c = torc_server_credentials_tls(&o, &error);
    assert_string_equal(torc_error_text(error), "");
    return c;
}

/* Makes one RPC on a connection of its own. trusted NULL: without TLS; own NULL: without a client certificate. The
 * caller frees the result. */
static torc_result *ask(const char *address, const struct kit_cert *trusted, const struct kit_cert *own)
{
    struct torc_tls_options t = {TORC_SIZE(torc_tls_options), .roots_pem = trusted ? trusted->cert_pem : NULL};
    if (own) {
        t.certificate_pem = own->cert_pem;
        t.private_key_pem = own->key_pem;
    }
    torc_credentials *c = trusted ? torc_credentials_tls(&t, NULL) : torc_credentials_insecure();
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = c};
    torc_runtime *own_rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = torc_channel_new(own_rt, address, &o, NULL);
    torc_result *r = torc_unary(ch, "a.B/Who", NULL, 0, NULL);
    torc_channel_free(ch);
    torc_runtime_free(own_rt);
    torc_credentials_unref(c);
    return r;
}

/* Asserts the server's answer; `expected` NULL: the RPC fails with UNAVAILABLE. */
static void expect_at(int line, const char *address, const struct kit_cert *trusted, const struct kit_cert *own,
                      const char *expected)
{
    torc_result *r = ask(address, trusted, own);
    const torc_message *m = torc_result_response(r);
    bool good = torc_result_code(r) == (expected ? TORC_STATUS_OK : TORC_STATUS_UNAVAILABLE);
    if (good && expected)
        good =
            torc_message_size(m) == strlen(expected) && memcmp(torc_message_data(m), expected, strlen(expected)) == 0;
    if (!good)
        fail_msg("line %d: %d %s %.*s", line, torc_result_code(r), torc_result_text(r), (int)torc_message_size(m),
                 (const char *)torc_message_data(m));
    torc_result_free(r);
}

#define expect(...) expect_at(__LINE__, __VA_ARGS__)

#define CLIENT "1 spiffe://example.org/web 2 1:spiffe://example.org/web 0:web.example.org 3:::1"

static void test_each_address_has_its_own(void **state)
{
    (void)state;
    char *plain = listen_with(torc_credentials_insecure()), *tls = listen_with(texts(NULL, 0));
    char *required = listen_with(texts(&root, TORC_CLIENT_CERTIFICATES_REQUIRED));
    char *optional = listen_with(texts(&root, TORC_CLIENT_CERTIFICATES_OPTIONAL));
    expect(plain, NULL, NULL, "0 - 0");
    expect(plain, &root, NULL, NULL);
    expect(tls, NULL, NULL, NULL);
    expect(tls, &root, NULL, "1 - 0");
    expect(tls, &root, &client, "1 - 0"); /* the server asks for no certificate */
    expect(tls, &other_root, NULL, NULL);
    expect(required, &root, NULL, NULL);
    expect(required, &root, &nobody, NULL);
    expect(required, &root, &client, CLIENT);
    expect(optional, &root, NULL, "1 - 0");
    expect(optional, &root, &nobody, NULL);
    expect(optional, &root, &client, CLIENT);
    expect(optional, &root, &twice, "1 - 2 1:spiffe://x/y"); /* no SPIFFE id: the empty URI makes two URIs */
    torc_free(plain);
    torc_free(tls);
    torc_free(required);
    torc_free(optional);
}

/* --- the application's own check --- */

enum how { ACCEPT, REFUSE, LATER }; /* LATER: on_verify does not answer */

/* The `arg` of on_verify and on_release: the test's, and valid until on_release. The server's loop calls on_verify.
 * on_release is called by the loop too, or by accept_later if its answer comes after the server's end. What the two
 * callbacks write is read after the post that follows (await). The test sets `how` and `expected` while no client is
 * being checked. */
struct hook {
    enum how how;
    int asked, released;
    torc_tls_peer *pending;          /* with LATER: the peer, to be answered by accept_later */
    const struct kit_cert *expected; /* NULL: the client shows none */
    sem_t changed;                   /* posted after each question and at the release */
};

/* Asserts what the peer says: its chain is h->expected and `root`, or it has no certificate. */
static void look_at(const torc_tls_peer *peer, const struct hook *h)
{
    const struct kit_cert *chain[] = {h->expected, &root};
    const void *got;
    size_t size, n = h->expected ? 2 : 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char *der = NULL;
        int len = i2d_X509(chain[i]->x509, &der);
        CHECK(torc_tls_peer_certificate(peer, i, &got, &size) == 0);
        CHECK(size == (size_t)len);
        CHECK(memcmp(got, der, size) == 0);
        OPENSSL_free(der);
    }
    CHECK(torc_tls_peer_certificate(peer, n, NULL, NULL) == TORC_ENOTFOUND);
    CHECK(torc_tls_peer_name(peer, 0, NULL, NULL, NULL) == (n ? 0 : TORC_ENOTFOUND));
    CHECK(strcmp(torc_tls_peer_server_name(peer), "") == 0);
    CHECK(strncmp(torc_tls_peer_address(peer), "127.0.0.1:", 10) == 0);
}

static void on_verify(torc_tls_peer *peer, void *arg)
{
    struct hook *h = arg;
    h->asked++;
    look_at(peer, h);
    if (h->how == LATER)
        h->pending = peer;
    else if (h->how == ACCEPT)
        torc_tls_peer_accept(peer);
    else
        torc_tls_peer_refuse(peer, "not on the list");
    sem_post(&h->changed);
}

static void on_release(void *arg)
{
    struct hook *h = arg;
    h->released++;
    sem_post(&h->changed);
}

/* Returns credentials as texts does, with the root `root` and with `h` as their hook. */
static torc_credentials *checked(struct hook *h, int64_t how)
{
    struct torc_server_tls_options o = {TORC_SIZE(torc_server_tls_options), .certificate_pem = leaf.cert_pem,
                                        .private_key_pem = leaf.key_pem,    .client_certificates = how,
                                        .client_roots_pem = root.cert_pem,  .verify = on_verify,
                                        .verify_release = on_release,       .verify_arg = h};
    sem_init(&h->changed, 0, 0);
    torc_credentials *c = torc_server_credentials_tls(&o, NULL);
    assert_non_null(c);
    return c;
}

static void await(struct hook *h)
{
    while (sem_wait(&h->changed) != 0) {
    }
}

static char last_line[512]; /* of the server's log, about the application's check; cut to fit */

static void on_line(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)level, (void)arg;
    if (strcmp(module, "server") == 0 && strstr(message, "application's check"))
        snprintf(last_line, sizeof(last_line), "%s", message);
}

/* Starts a server with these options (0: their defaults), and releases the credentials. Returns the address; the caller
 * frees the server, and the address with torc_free. */
static char *server_with(torc_server **s, torc_credentials *c, int64_t handshake_timeout_ms, int64_t max_connections)
{
    struct torc_handler who = {TORC_SIZE(torc_handler), .unary = on_who};
    struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt,
                                    .handshake_timeout_ms = handshake_timeout_ms, .max_connections = max_connections};
    char *bound = NULL;
    *s = torc_server_new(&o, NULL);
    assert_int_equal(torc_server_add_method(*s, "a.B/Who", &who, NULL), 0);
    assert_int_equal(torc_server_listen(*s, "127.0.0.1:0", c, &bound, NULL), 0);
    assert_int_equal(torc_server_start(*s, NULL), 0);
    torc_credentials_unref(c);
    return bound;
}

/* Makes the file `name` in `dir`, or replaces it atomically. */
static void put(const char *name, const char *text)
{
    char path[128], fresh[144];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    FILE *f = fopen(fresh, "w");
    assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
    assert_int_equal(rename(fresh, path), 0);
}

static void test_files_are_reloaded(void **state)
{
    (void)state;
    char cert[128], key[128], ca[128];
    snprintf(cert, sizeof(cert), "%s/cert", dir);
    snprintf(key, sizeof(key), "%s/key", dir);
    snprintf(ca, sizeof(ca), "%s/ca", dir);
    struct torc_server_tls_files f = {TORC_SIZE(torc_server_tls_files), .certificate_file = cert,
                                      .private_key_file = key, .client_ca_certificate_file = ca};
    torc_error *error = NULL;
    assert_null(torc_server_credentials_tls_files(&f, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    torc_error_clear(&error);
    put("cert", leaf.cert_pem);
    put("key", leaf.key_pem);
    put("ca", root.cert_pem);
    torc_credentials *c = torc_server_credentials_tls_files(&f, &error);
    assert_string_equal(torc_error_text(error), "");
    char *address = listen_with(c);
    expect(address, &root, &client, CLIENT);
    expect(address, &root, &nobody, NULL);
    put("cert", second_leaf.cert_pem); /* does not match the key: the old pair stays in use */
    expect(address, &root, &client, CLIENT);
    put("key", second_leaf.key_pem);
    int code; /* a pair that did not match is read again after 100 ms */
    do {
        torc_result *r = ask(address, &other_root, &client);
        code = torc_result_code(r);
        torc_result_free(r);
    } while (code == TORC_STATUS_UNAVAILABLE);
    expect(address, &root, &client, NULL);
    expect(address, &other_root, &client, CLIENT);
    put("ca", other_root.cert_pem);
    expect(address, &other_root, &client, NULL);
    expect(address, &other_root, &nobody, "1 spiffe://x/y 2 1:spiffe://x/y");
    torc_free(address);
    /* Credentials from files can have a hook. */
    put("ca", root.cert_pem);
    struct hook h = {.how = REFUSE, .expected = &client};
    sem_init(&h.changed, 0, 0);
    f.verify = on_verify;
    f.verify_release = on_release;
    f.verify_arg = &h;
    torc_server *s;
    address = server_with(&s, torc_server_credentials_tls_files(&f, NULL), 0, 0);
    expect(address, &other_root, &client, NULL);
    await(&h);
    assert_int_equal(h.asked, 1);
    torc_server_free(s);
    await(&h);
    assert_int_equal(h.released, 1);
    torc_free(address);
}

static void test_a_hook_sees_each_client(void **state)
{
    (void)state;
    struct hook h = {.how = ACCEPT, .expected = &client};
    torc_server *s;
    char *address = server_with(&s, checked(&h, TORC_CLIENT_CERTIFICATES_OPTIONAL), 0, 0);
    torc_log_set_sink(on_line, NULL);
    assert_int_equal(torc_log_set_levels("server=info"), 0);
    expect(address, &root, &client, CLIENT);
    await(&h);
    assert_int_equal(h.asked, 1);
    expect(address, &root, &nobody, NULL); /* Torc's check comes first */
    h.expected = NULL;
    expect(address, &root, NULL, "1 - 0");
    await(&h);
    assert_int_equal(h.asked, 2); /* not for `nobody` */
    h.how = REFUSE;
    expect(address, &root, NULL, NULL);
    await(&h);
    assert_int_equal(h.asked, 3);
    while (torc_server_count(s, TORC_SERVER_FAILED_HANDSHAKES) != 2)
        sched_yield();
    torc_server_free(s); /* waits for the loop, so that the line is logged */
    assert_non_null(strstr(last_line, "the application's check refused the client: not on the list"));
    assert_int_equal(torc_log_set_levels("none"), 0);
    torc_log_set_sink(NULL, NULL);
    await(&h);
    assert_int_equal(h.released, 1);
    torc_free(address);
}

/* A thread that waits for a post of h->changed and then accepts h->pending, which frees the peer. */
static void *accept_later(void *arg)
{
    struct hook *h = arg;
    await(h);
    torc_tls_peer_accept(h->pending);
    return NULL;
}

static void test_a_hook_answers_later(void **state)
{
    (void)state;
    struct hook h = {.how = LATER, .expected = &client};
    torc_server *s;
    pthread_t thread;
    char *address = server_with(&s, checked(&h, 0), 60000, 0);
    pthread_create(&thread, NULL, accept_later, &h);
    expect(address, &root, &client, CLIENT);
    pthread_join(thread, NULL);
    torc_server_free(s);
    await(&h);
    assert_int_equal(h.released, 1);
    torc_free(address);
}

/* Before the hook answers, either the handshake times out and the RPC fails, or the server is freed. An answer after
 * that only gives up the peer, and then the hook is released. */
static void test_a_hook_that_does_not_answer(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        struct hook h = {.how = LATER, .expected = &client};
        torc_server *s;
        char *address = server_with(&s, checked(&h, 0), ends ? 60000 : 200, 0);
        pthread_t thread;
        torc_log_set_sink(on_line, NULL);
        assert_int_equal(torc_log_set_levels("server=info"), 0);
        last_line[0] = '\0';
        if (ends) {
            struct torc_tls_options t = {TORC_SIZE(torc_tls_options), .roots_pem = root.cert_pem,
                                         .certificate_pem = client.cert_pem, .private_key_pem = client.key_pem};
            torc_credentials *c = torc_credentials_tls(&t, NULL);
            struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = c};
            torc_channel *ch = torc_channel_new(rt, address, &o, NULL);
            torc_channel_state(ch, true);
            await(&h);
            torc_server_free(s);
            torc_channel_free(ch);
            torc_credentials_unref(c);
        } else {
            expect(address, &root, &client, NULL);
            await(&h);
            while (torc_server_count(s, TORC_SERVER_FAILED_HANDSHAKES) != 1)
                sched_yield();
            torc_server_free(s);
            assert_non_null(strstr(last_line, "timed out after 200 ms, waiting for the application's check"));
        }
        assert_int_equal(h.released, 0); /* the application still holds the peer */
        pthread_create(&thread, NULL, accept_later, &h);
        sem_post(&h.changed);
        pthread_join(thread, NULL);
        await(&h);
        assert_int_equal(h.released, 1);
        assert_int_equal(torc_log_set_levels("none"), 0);
        torc_log_set_sink(NULL, NULL);
        torc_free(address);
    }
}

/* Returns a socket that is connected to the server's port and has sent nothing; the caller closes it. */
static int connect_to(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10)),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/* Two clients say nothing to a server of at most one connection. The second takes the place of the first, whose
 * handshake counts as failed. */
static void test_a_handshake_makes_room(void **state)
{
    (void)state;
    torc_server *s;
    char *address = server_with(&s, texts(NULL, 0), 60000, 1);
    int fds[2];
    for (int i = 0; i < 2; i++)
        fds[i] = connect_to(address);
    char end;
    assert_int_equal(read(fds[0], &end, 1), 0);
    while (torc_server_count(s, TORC_SERVER_OPEN_CONNECTIONS) != 1)
        sched_yield();
    assert_int_equal(torc_server_count(s, TORC_SERVER_CONNECTIONS), 2);
    assert_int_equal(torc_server_count(s, TORC_SERVER_FAILED_HANDSHAKES), 1);
    for (int i = 0; i < 2; i++)
        close(fds[i]);
    torc_server_free(s);
    torc_free(address);
}

/* The first client's handshake fails in the turn in which the second client takes its place. The handshake counts as
 * failed once. */
static void test_a_handshake_fails_as_it_makes_room(void **state)
{
    (void)state;
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_runtime *others = rt;
    torc_server *s;
    rt = torc_runtime_new(&o, NULL);
    char *address = server_with(&s, texts(NULL, 0), 60000, 1);
    int fds[2];
    for (int i = 0; i < 2; i++) {
        fds[i] = connect_to(address);
        while (i == 0 && torc_server_count(s, TORC_SERVER_CONNECTIONS) != 1)
            torc_runtime_poll(rt, 10);
    }
    assert_int_equal(write(fds[0], "no TLS, but text", 16), 16);
    while (torc_server_count(s, TORC_SERVER_CONNECTIONS) != 2 ||
           torc_server_count(s, TORC_SERVER_OPEN_CONNECTIONS) != 1)
        torc_runtime_poll(rt, 10);
    assert_int_equal(torc_server_count(s, TORC_SERVER_FAILED_HANDSHAKES), 1);
    for (int i = 0; i < 2; i++)
        close(fds[i]);
    torc_server_free(s);
    torc_free(address);
    torc_runtime_free(rt);
    rt = others;
}

static void expect_error(torc_credentials *c, torc_error **error, const char *part)
{
    assert_null(c);
    if (torc_error_code(*error) != TORC_EINVAL || !strstr(torc_error_text(*error), part))
        fail_msg("%d \"%s\"", torc_error_code(*error), torc_error_text(*error));
    torc_error_clear(error);
}

static void test_misuse(void **state)
{
    (void)state;
    torc_error *e = NULL;
    struct torc_server_tls_options o = {TORC_SIZE(torc_server_tls_options), .certificate_pem = leaf.cert_pem};
    expect_error(torc_server_credentials_tls(NULL, &e), &e, "must be set");
    expect_error(torc_server_credentials_tls(&o, &e), &e, "must be set");
    o.private_key_pem = client.key_pem;
    expect_error(torc_server_credentials_tls(&o, &e), &e, "key");
    o.private_key_pem = leaf.key_pem;
    o.client_certificates = 1;
    expect_error(torc_server_credentials_tls(&o, &e), &e, "no roots");
    o.client_certificates = 2;
    expect_error(torc_server_credentials_tls(&o, &e), &e, "client_certificates");
    o.client_certificates = 0;
    struct hook h = {.how = ACCEPT};
    o.verify = on_verify;
    o.verify_release = on_release;
    o.verify_arg = &h;
    expect_error(torc_server_credentials_tls(&o, &e), &e, "verify: there are no roots");
    o.client_roots_pem = "none";
    expect_error(torc_server_credentials_tls(&o, &e), &e, "root certificates");
    assert_int_equal(h.released, 0);
    struct torc_server_tls_files f = {TORC_SIZE(torc_server_tls_files), .certificate_file = "/none",
                                      .private_key_file = "/none", .verify = on_verify};
    expect_error(torc_server_credentials_tls_files(NULL, &e), &e, "must be set");
    expect_error(torc_server_credentials_tls_files(&f, &e), &e, "verify: there are no roots");
    /* Credentials of the other side. */
    torc_credentials *servers = texts(NULL, 0), *clients = torc_credentials_tls(NULL, NULL);
    struct torc_channel_options c = {TORC_SIZE(torc_channel_options), .credentials = servers};
    assert_null(torc_channel_new(rt, "127.0.0.1:1", &c, &e));
    expect_error(NULL, &e, "for servers");
    expect_error(torc_credentials_xds(servers, &e), &e, "for servers");
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", clients, NULL, &e), TORC_EINVAL);
    expect_error(NULL, &e, "not for servers");
    torc_credentials_unref(servers);
    torc_credentials_unref(clients);
    const void *der;
    size_t size;
    assert_int_equal(torc_server_call_secure(NULL), TORC_EINVAL);
    assert_int_equal(torc_server_call_peer_name(NULL, 0, NULL, NULL), TORC_EINVAL);
    assert_int_equal(torc_server_call_peer_certificate(NULL, 0, &der, &size), TORC_EINVAL);
    assert_null(torc_server_call_spiffe_id(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_address_has_its_own),
        cmocka_unit_test(test_files_are_reloaded),
        cmocka_unit_test(test_a_hook_sees_each_client),
        cmocka_unit_test(test_a_hook_answers_later),
        cmocka_unit_test(test_a_hook_that_does_not_answer),
        cmocka_unit_test(test_a_handshake_makes_room),
        cmocka_unit_test(test_a_handshake_fails_as_it_makes_room),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
