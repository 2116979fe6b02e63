/* A name server that lies, sends malformed answers, or dies. It runs in this process (net/name_server.h). Channels ask
 * it for shop.test and connect to the port of an echo server (kits/backends.h). After each test the process has as many
 * descriptors as before.
 *
 * setup makes a struct world for each test, and teardown frees it. The test's thread drives the channels' runtime, by
 * blocking calls or torc_runtime_poll. The name server and the echo server have threads of their own. */
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/kits/backends.h"
#include "support/kits/cert.h"
#include "support/net/name_server.h"

#include "base/mem.h"
#include "tls/tls.h"

struct world {
    torc_runtime *rt; /* driven by the test's thread */
    struct name_server *names;
    struct kit_backends *kit; /* one echo server; a test may replace it */
    size_t descriptors;       /* of the process before the members above were made */
};

static int setup(void **state)
{
    struct world *w = TC_NEW(struct world);
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_runtime_free(
        torc_runtime_new(&o, NULL)); /* libuv opens two descriptors with the first loop and keeps them to the end */
    w->descriptors = footprint_descriptors();
    w->rt = torc_runtime_new(&o, NULL);
    assert_non_null(w->rt);
    w->names = name_server_new();
    w->kit = kit_backends_new(1, NULL);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    torc_runtime_free(w->rt);
    name_server_free(w->names);
    if (w->kit)
        kit_backends_free(w->kit);
    assert_int_equal(footprint_descriptors(), w->descriptors);
    tc_free(w);
    return 0;
}

/* Makes a channel to "shop.test" at the backend's port, resolved by the name server. options NULL: insecure
 * credentials. Backoffs, and intervals between look-ups, are short in any case. */
static torc_channel *channel_with(struct world *w, const struct torc_channel_options *options)
{
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    if (options)
        o = *options;
    o.backoff_initial_ms = 50;
    o.backoff_max_ms = 100;
    o.dns_min_interval_ms = 1;
    char *target = tc_asprintf("dns://%s/shop.test.%s", name_server_address(w->names),
                               strrchr(kit_backends_address(w->kit, 0), ':'));
    torc_channel *ch = torc_channel_new(w->rt, target, &o, NULL);
    assert_non_null(ch);
    tc_free(target);
    return ch;
}

static torc_channel *channel(struct world *w)
{
    return channel_with(w, NULL);
}

/* Makes an RPC, which must fail. c-ares 1.34 reports bytes that are not an answer as a malformed answer. Older versions
 * ignore such bytes, so that the RPC ends by its deadline. */
static void expect_no_answer(torc_channel *ch)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 500};
    torc_result *r = torc_unary(ch, "/a.B/C", "x", 1, &o);
    if (torc_result_code(r) == TORC_STATUS_DEADLINE_EXCEEDED)
        assert_non_null(strstr(torc_result_text(r), "the name resolution of dns://"));
    else
        assert_non_null(strstr(torc_result_text(r), "Misformatted DNS reply"));
    torc_result_free(r);
}

/* A look-up without a usable answer fails RPCs, and is repeated: once the answer is good, RPCs succeed. Where c-ares
 * may ignore the answer (text NULL), a new channel asks for the good one. */
static void no_answers(void **state)
{
    static const struct {
        const char *name;
        enum name_mode mode;
        const char *text; /* NULL: expect_no_answer */
    } rows[] = {
        {"missing", NAMES_MISSING, "Domain name not found"},
        {"refused", NAMES_REFUSED, "DNS server"},
        {"overlong", NAMES_OVERLONG, "Misformatted DNS reply"},
        {"loop", NAMES_LOOP, "Misformatted DNS reply"},
        {"aliases", NAMES_ALIASES, "DNS server returned answer with no data"},
        {"cut", NAMES_CUT, "Could not contact DNS servers"},
        {"noise", NAMES_NOISE, NULL},
        {"short", NAMES_SHORT, NULL},
    };
    struct world *w = *state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        name_server_set(w->names, rows[i].mode, "127.0.0.1");
        torc_channel *ch = channel(w);
        print_message("%s\n", rows[i].name);
        if (rows[i].text) {
            kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE, rows[i].text);
            kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE, "DNS resolution failed for shop.test.");
            name_server_set(w->names, NAMES_TRUE, NULL);
        } else {
            expect_no_answer(ch);
            torc_channel_free(ch);
            name_server_set(w->names, NAMES_TRUE, NULL);
            ch = channel(w);
        }
        kit_backends_expect(ch, true, 60000, TORC_STATUS_OK, "");
        torc_channel_free(ch);
    }
}

/* An answer with another id than the question's is ignored, and the good one after it is used. */
static void forged_answers(void **state)
{
    struct world *w = *state;
    name_server_set(w->names, NAMES_FORGED, "127.0.0.1");
    torc_channel *ch = channel(w);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "");
    assert_int_equal(kit_backends_counts(w->kit, 0).requests, 1);
    torc_channel_free(ch);
}

/* An answer of 4090 addresses, nearly as many as 64 KiB hold, is too large for a datagram and comes over TCP. All
 * addresses but the 701st refuse connections: the RPC waits until that address is tried. */
static void four_thousand_addresses(void **state)
{
    struct world *w = *state;
    struct tc_buf list = {0};
    for (unsigned i = 0; i < 4090; i++)
        tc_buf_printf(&list, "%s127.%u.%u.%u", i ? "," : "", i == 700 ? 0 : 1, i == 700 ? 0 : i / 250,
                      i == 700 ? 1 : i % 250 + 1);
    name_server_set(w->names, NAMES_TRUNCATED, tc_buf_cstr(&list));
    torc_channel *ch = channel(w);
    uint64_t took = kit_backends_expect(ch, true, 60000, TORC_STATUS_OK, "");
    print_message("%llu ms\n", (unsigned long long)took);
    assert_int_equal(kit_backends_counts(w->kit, 0).connections, 1);
    torc_channel_free(ch);
    tc_buf_fini(&list);
}

/* Among several addresses one has a server: RPCs go there. If none has a server, RPCs fail until the name server gives
 * an address that has one. */
static void addresses_of_nobody(void **state)
{
    struct world *w = *state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = "{\"loadBalancingConfig\": [{\"round_robin\": {}}]}"};
    name_server_set(w->names, NAMES_TRUE, "127.0.0.2,224.0.0.1,127.0.0.1,255.255.255.255");
    torc_channel *ch = channel_with(w, &o);
    for (int i = 0; i < 20; i++)
        kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "");
    torc_channel_free(ch);
    name_server_set(w->names, NAMES_TRUE, "127.0.0.2,224.0.0.1,255.255.255.255");
    ch = channel_with(w, &o);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE, "failed to connect to ");
    name_server_set(w->names, NAMES_TRUE, "127.0.0.1");
    kit_backends_expect(ch, true, 60000, TORC_STATUS_OK, "");
    torc_channel_free(ch);
}

/* The name server gives the address of another server: the TLS handshake fails, since the certificate is not for
 * shop.test. */
static void anothers_address(void **state)
{
    struct world *w = *state;
    struct tc_status error = {0};
    struct tc_server_opts so;
    struct torc_channel_options o;
    struct kit_cert ca = kit_cert_make(&(struct kit_cert_opts){.common_name = "ca", .ca = true});
    struct kit_cert other =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "o", .sans = "DNS:other.test", .issuer = &ca});
    tc_server_opts_init(&so);
    so.tls = tc_tls_context_new(&(struct tc_tls_opts){.server = true,
                                                      .verify = TC_TLS_VERIFY_NONE,
                                                      .certificate_pem = kit_cert_pem(&other),
                                                      .private_key_pem = kit_cert_key(&other)},
                                &error);
    assert_non_null(so.tls);
    kit_backends_free(w->kit);
    w->kit = kit_backends_new(1, &so);
    struct torc_tls_options t = {TORC_SIZE(torc_tls_options), .roots_pem = ca.cert_pem};
    o = (struct torc_channel_options){TORC_SIZE(torc_channel_options), .credentials = torc_credentials_tls(&t, NULL)};
    assert_non_null(o.credentials);
    name_server_set(w->names, NAMES_TRUE, "127.0.0.1");
    torc_channel *ch = channel_with(w, &o);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE, "shop.test");
    assert_int_equal(kit_backends_counts(w->kit, 0).requests, 0);
    torc_channel_free(ch);
    o.authority = "other.test"; /* with the certificate's name the same address is accepted */
    ch = channel_with(w, &o);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "");
    torc_channel_free(ch);
    torc_credentials_unref(o.credentials);
    tc_tls_context_unref(so.tls);
    kit_cert_fini(&ca);
    kit_cert_fini(&other);
}

/* Resolved addresses stay in use while the name server is silent. RPCs of a new channel then end by their deadline,
 * with a status that says what they waited for. RPCs fail while the name server is stopped, and succeed once it is
 * back. */
static void name_server_dies(void **state)
{
    struct world *w = *state;
    name_server_set(w->names, NAMES_TRUE, "127.0.0.1");
    torc_channel *ch = channel(w);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "");
    name_server_set(w->names, NAMES_SILENT, NULL);
    uint64_t asked = name_server_questions(w->names);
    kit_backends_stop(w->kit, 0);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE, "Connection refused");
    while (name_server_questions(w->names) == asked) /* the channel resolves the name again */
        torc_runtime_poll(w->rt, 100);
    kit_backends_restart(w->kit, 0);
    kit_backends_expect(ch, true, 60000, TORC_STATUS_OK, "");
    torc_channel_free(ch);

    ch = channel(w);
    uint64_t took =
        kit_backends_expect(ch, false, 500, TORC_STATUS_DEADLINE_EXCEEDED, "waiting for the name resolution of dns://");
    assert_true(took >= 500);
    torc_channel_free(ch);

    name_server_stop(w->names);
    ch = channel(w);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE, "Could not contact DNS servers");
    name_server_start(w->names);
    name_server_set(w->names, NAMES_TRUE, NULL);
    kit_backends_expect(ch, true, 60000, TORC_STATUS_OK, "");
    torc_channel_free(ch);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(no_answers),          T(forged_answers),   T(four_thousand_addresses),
        T(addresses_of_nobody), T(anothers_address), T(name_server_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
