/* Connections that the application opens, by dialers and by targets fd:N, and targets vsock:CID:PORT. An echo server
 * (kits/backends.h), which has a thread of its own, is at the other end of connections that work. To see that Torc has
 * closed a descriptor, tests compare inodes (file_of): another descriptor may have got the number meanwhile.
 *
 * The group's setup makes the server and `rt`. The test's thread drives `rt` and the runtimes that tests make, so a
 * dialer's callbacks run on that thread. Only answers_and_cancels_meet uses a runtime with a thread. Threads that tests
 * start end some dials (dial_on_thread, race_answer), or fork (done_in_child).
 *
 * A struct dialer, on the test's stack, records the callbacks of one channel. A channel of `rt` that has a dialer ends
 * by channel_end, which asserts that the release comes last. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torc/torc.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/cert.h"
#include "tls/tls.h"

static torc_runtime *rt;

static int setup(void **state)
{
    rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    return kit_backends_one_setup(state);
}

static int teardown(void **state)
{
    return kit_backends_one_teardown(state) | torc_runtime_free(rt);
}

/* Returns a socket that is connected to `address`, "127.0.0.1:PORT". */
static int connect_to(const char *address)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    in.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    CHECK(connect(fd, (const struct sockaddr *)&in, sizeof(in)) == 0);
    return fd;
}

static int connect_to_backend(void)
{
    return connect_to(kit_backends_address(kit_backends_one, 0));
}

/* Returns the inode of a descriptor, or 0 if the descriptor is closed. An open descriptor with the same number may be a
 * later one of another thread. */
static ino_t file_of(int fd)
{
    struct stat file;
    return fstat(fd, &file) == 0 ? file.st_ino : 0;
}

/* --- a dialer --- */

/* How on_dial ends a dial: with a new connection, at once or on a thread; not at all (LATER); with an error; with
 * neither a descriptor nor an error; with both; with the descriptor that the test has stored (GIVE). After LATER the
 * test or on_cancel ends the dial. */
enum how { CONNECT, CONNECT_ON_A_THREAD, LATER, FAIL, NOTHING, FAIL_WITH_A_DESCRIPTOR, GIVE };

struct dialer {
    enum how how;
    int dials, cancels, releases;
    int fd;              /* what end_dial hands to torc_dial_done; GIVE: set by the test */
    ino_t file;          /* of fd */
    bool done_in_cancel; /* on_cancel calls torc_dial_done */
    bool fork_in_cancel; /* on_cancel has a thread fork, whose child calls torc_dial_done */
    bool after_release;  /* a callback came after the release */
    torc_dial *pending;  /* the last dial; valid until torc_dial_done */
    char address[64];    /* of the last dial */
    pthread_t thread;    /* of CONNECT_ON_A_THREAD, for the test to join; of fork_in_cancel */
};

static void end_dial(torc_dial *dial, struct dialer *d)
{
    torc_error *error = NULL;
    if (d->how == FAIL || d->how == NOTHING)
        d->fd = -1;
    else if (d->how != GIVE)
        d->fd = connect_to(d->address);
    d->file = file_of(d->fd);
    if (d->how == FAIL || d->how == FAIL_WITH_A_DESCRIPTOR)
        error = torc_error_new(TORC_EIO, TORC_LAYER_CONNECT, "the tunnel is closed");
    torc_dial_done(dial, d->fd, error);
    torc_error_free(error);
}

static void *dial_on_thread(void *arg)
{
    struct dialer *d = arg;
    end_dial(d->pending, d);
    return NULL;
}

static void on_dial(torc_dial *dial, const char *address, void *arg)
{
    struct dialer *d = arg;
    d->dials++;
    d->after_release |= d->releases > 0;
    d->pending = dial;
    snprintf(d->address, sizeof(d->address), "%s", address);
    CHECK(!torc_dial_data(dial));
    torc_dial_set_data(dial, d);
    if (d->how == CONNECT_ON_A_THREAD)
        CHECK(pthread_create(&d->thread, NULL, dial_on_thread, d) == 0);
    else if (d->how != LATER)
        end_dial(dial, d);
}

static void *done_in_child(void *dial)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        torc_dial_done(dial, -1, NULL);
        _exit(0);
    }
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    return NULL;
}

static void on_cancel(torc_dial *dial, void *arg)
{
    struct dialer *d = arg;
    d->cancels++;
    d->after_release |= d->releases > 0;
    CHECK(dial == d->pending);
    CHECK(torc_dial_data(dial) == d);
    if (d->fork_in_cancel) {
        CHECK(pthread_create(&d->thread, NULL, done_in_child, dial) == 0);
        CHECK(pthread_join(d->thread, NULL) == 0);
    }
    if (d->done_in_cancel)
        torc_dial_done(dial, connect_to(d->address), NULL);
}

static void on_release(void *arg)
{
    ((struct dialer *)arg)->releases++;
}

static struct torc_dialer dialer_of(struct dialer *d)
{
    return (struct torc_dialer){TORC_SIZE(torc_dialer), .dial = on_dial, .cancel = on_cancel, .release = on_release,
                                .arg = d};
}

/* Returns a channel with the dialer `d`, which must outlive the release. connect_timeout_ms 0: the default. */
static torc_channel *channel_on(torc_runtime *runtime, struct dialer *d, int64_t connect_timeout_ms)
{
    struct torc_dialer dialer = dialer_of(d);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .connect_timeout_ms = connect_timeout_ms, .dialer = &dialer};
    torc_channel *ch = torc_channel_new(runtime, kit_backends_target(kit_backends_one), &o, NULL);
    assert_non_null(ch);
    memset(&dialer, 0xdd, sizeof(dialer)); /* the channel has a copy */
    return ch;
}

/* Frees a channel of `rt`, and waits for the release of its dialer. Asserts that the release is the only one, and the
 * last callback. */
static void channel_end(torc_channel *ch, const struct dialer *d)
{
    torc_channel_free(ch);
    while (d->releases == 0)
        assert_true(torc_runtime_poll(rt, 1000) >= 0);
    assert_int_equal(d->releases, 1);
    assert_false(d->after_release);
}

static void connections_come_from_the_dialer(void **state)
{
    (void)state;
    static const enum how hows[] = {CONNECT, CONNECT_ON_A_THREAD};
    for (int i = 0; i < 2; i++) {
        struct dialer d = {.how = hows[i]}, e = {.how = hows[i]};
        torc_channel *ch = channel_on(rt, &d, 0), *other = channel_on(rt, &e, 0);
        kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "");
        kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "");
        assert_int_equal(d.dials, 1);
        assert_string_equal(d.address, kit_backends_address(kit_backends_one, 0));
        kit_backends_expect(other, false, 60000, TORC_STATUS_OK, "");
        assert_int_equal(e.dials, 1); /* connections are not shared */
        if (hows[i] == CONNECT_ON_A_THREAD) {
            pthread_join(d.thread, NULL);
            pthread_join(e.thread, NULL);
        }
        channel_end(ch, &d);
        channel_end(other, &e);
        assert_int_equal(d.cancels + e.cancels, 0);
    }
}

static void tls_runs_on_the_descriptor(void **state)
{
    (void)state;
    struct kit_cert ca = kit_cert_make(&(struct kit_cert_opts){.common_name = "ca", .ca = true});
    struct kit_cert leaf =
        kit_cert_make(&(struct kit_cert_opts){.common_name = "b", .sans = "IP:127.0.0.1", .issuer = &ca});
    struct tc_server_opts so;
    tc_server_opts_init(&so);
    so.tls = tc_tls_context_new(&(struct tc_tls_opts){.server = true,
                                                      .verify = TC_TLS_VERIFY_NONE,
                                                      .certificate_pem = kit_cert_pem(&leaf),
                                                      .private_key_pem = kit_cert_key(&leaf)},
                                NULL);
    struct kit_backends *kit = kit_backends_new(1, &so);
    struct torc_tls_options good = {TORC_SIZE(torc_tls_options), .roots_pem = ca.cert_pem},
                            bad = {TORC_SIZE(torc_tls_options)};
    for (int i = 0; i < 2; i++) {
        struct dialer d = {.how = CONNECT};
        struct torc_dialer dialer = dialer_of(&d);
        struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .dialer = &dialer};
        o.credentials = torc_credentials_tls(i == 0 ? &good : &bad, NULL);
        torc_channel *ch = torc_channel_new(rt, kit_backends_target(kit), &o, NULL);
        kit_backends_expect(ch, false, 60000, i == 0 ? TORC_STATUS_OK : TORC_STATUS_UNAVAILABLE,
                            i == 0 ? "" : "certificate verify failed");
        torc_credentials_unref(o.credentials);
        channel_end(ch, &d);
    }
    kit_backends_free(kit);
    tc_tls_context_unref(so.tls);
    kit_cert_fini(&leaf);
    kit_cert_fini(&ca);
}

/* --- failures --- */

static void expect_failure(struct dialer *d, const char *part)
{
    torc_channel *ch = channel_on(rt, d, 0);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE, part);
    channel_end(ch, d);
}

static void failures_have_their_reason(void **state)
{
    (void)state;
    struct dialer fail = {.how = FAIL}, nothing = {.how = NOTHING}, both = {.how = FAIL_WITH_A_DESCRIPTOR};
    expect_failure(&fail, "the application's dialer: the tunnel is closed");
    expect_failure(&nothing, "it gave neither a descriptor nor an error");
    expect_failure(&both, "the tunnel is closed");
    assert_true(both.file != 0);
    assert_true(file_of(both.fd) != both.file);
}

static void descriptors_that_cannot_be_used(void **state)
{
    (void)state;
    int ends[2], datagrams[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams), 0);
    int unconnected = socket(AF_INET, SOCK_STREAM, 0), listening = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listening, (const struct sockaddr *)&(struct sockaddr){.sa_family = AF_UNIX}, 2), 0);
    assert_int_equal(listen(listening, 1), 0);
    const struct {
        int fd;
        const char *part;
    } rows[] = {{ends[0], "Socket operation on non-socket"},
                {datagrams[0], "it is not a stream socket"},
                {unconnected, "not connected"},
                {listening, "it is a socket that listens"},
                {1000000, "Bad file descriptor"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dialer d = {.how = GIVE, .fd = rows[i].fd};
        expect_failure(&d, rows[i].part);
        assert_true(!d.file || file_of(d.fd) != d.file);
    }
    close(ends[1]);
    close(datagrams[1]);
}

/* --- dials that are no longer wanted --- */

static void await_dial(torc_runtime *runtime, const struct dialer *d)
{
    while (!d->pending)
        assert_true(torc_runtime_poll(runtime, 1000) >= 0);
}

static void time_is_up(void **state)
{
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        struct dialer d = {.how = LATER, .done_in_cancel = inside};
        torc_channel *ch = channel_on(rt, &d, 300);
        kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE,
                            "timed out after 300 ms, waiting for the dialer");
        while (d.cancels == 0)
            assert_true(torc_runtime_poll(rt, 1000) >= 0);
        channel_end(ch, &d);
        assert_int_equal(d.cancels, d.dials);
        if (!inside) {
            int fd = connect_to_backend();
            ino_t file = file_of(fd);
            torc_dial_done(d.pending, fd, NULL); /* the dialer is released already */
            assert_true(file_of(fd) != file);
        }
    }
}

/* The channel or the runtime ends while the application dials. how 0: the channel ends, then the runtime, then the
 * dial. 1: the runtime ends, then the dial. 2: the dial ends, but the runtime ends before its loop takes that in. 3:
 * the dial ends inside on_cancel. */
static void the_end_meanwhile(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        struct dialer d = {.how = LATER, .done_in_cancel = how == 3};
        torc_runtime *own = kit_backends_runtime(TORC_RUNTIME_CALLER);
        torc_channel *ch = channel_on(own, &d, 0);
        int fd = connect_to_backend();
        ino_t file = file_of(fd);
        torc_channel_state(ch, true);
        await_dial(own, &d);
        if (how == 0)
            torc_channel_free(ch);
        if (how == 2)
            torc_dial_done(d.pending, fd, NULL); /* posted, not taken in */
        assert_int_equal(torc_runtime_free(own), 0);
        assert_int_equal(d.releases, 1);
        assert_int_equal(d.cancels, how == 2 ? 0 : 1);
        if (how < 2)
            torc_dial_done(d.pending, fd, NULL);
        if (how < 3)
            assert_true(file_of(fd) != file);
        else
            close(fd);
        if (how != 0)
            torc_channel_free(ch);
        assert_int_equal(d.releases, 1);
        assert_false(d.after_release);
    }
}

/* The test's thread is in on_cancel, and holds the dial's mutex, when another thread forks. In the child torc_dial_done
 * must not wait for that mutex. */
static void done_in_a_child(void **state)
{
    (void)state;
    struct dialer d = {.how = LATER, .done_in_cancel = true, .fork_in_cancel = true};
    torc_runtime *own = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = channel_on(own, &d, 0);
    torc_channel_state(ch, true);
    await_dial(own, &d);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(own), 0);
    assert_int_equal(d.cancels, 1);
}

static void a_channel_that_was_never_used(void **state)
{
    (void)state;
    struct dialer d = {.how = CONNECT}, e = {.how = CONNECT};
    channel_end(channel_on(rt, &d, 0), &d);
    torc_runtime *own = kit_backends_runtime(TORC_RUNTIME_CALLER);
    torc_channel *ch = channel_on(own, &e, 0);
    assert_int_equal(torc_runtime_free(own), 0);
    torc_channel_free(ch);
    assert_int_equal(e.releases, 1);
    assert_int_equal(d.dials + e.dials, 0);
}

/* --- an answer and a cancel that meet --- */

enum { ROUNDS = 300 };

/* race_dial gives each dial a state, which race_cancel changes, both on the runtime's thread. Another thread
 * (race_answer) frees the state as soon as torc_dial_done has returned. A cancel after that would use freed memory. */
struct race {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    torc_dial *dials[2 * ROUNDS]; /* under the mutex, with the members below; for race_answer, which ends them */
    size_t n;
    bool over; /* no dial follows */
};

static void race_dial(torc_dial *dial, const char *address, void *arg)
{
    struct race *r = arg;
    (void)address;
    int *own = malloc(sizeof(*own));
    *own = 1;
    torc_dial_set_data(dial, own);
    pthread_mutex_lock(&r->mutex);
    CHECK(r->n < 2 * ROUNDS);
    r->dials[r->n++] = dial;
    pthread_cond_signal(&r->cond);
    pthread_mutex_unlock(&r->mutex);
}

static void race_cancel(torc_dial *dial, void *arg)
{
    (void)arg;
    ++*(int *)torc_dial_data(dial);
}

static void *race_answer(void *arg)
{
    struct race *r = arg;
    pthread_mutex_lock(&r->mutex);
    for (;;) {
        while (r->n == 0 && !r->over)
            pthread_cond_wait(&r->cond, &r->mutex);
        if (r->n == 0)
            break;
        torc_dial *dial = r->dials[--r->n];
        pthread_mutex_unlock(&r->mutex);
        int *own = torc_dial_data(dial);
        torc_dial_done(dial, -1, NULL);
        free(own);
        pthread_mutex_lock(&r->mutex);
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

static void answers_and_cancels_meet(void **state)
{
    (void)state;
    struct race r = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, race_answer, &r), 0);
    struct torc_dialer dialer = {TORC_SIZE(torc_dialer), .dial = race_dial, .cancel = race_cancel, .arg = &r};
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .dialer = &dialer};
    torc_runtime *own = kit_backends_runtime(TORC_RUNTIME_THREAD);
    for (int i = 0; i < ROUNDS; i++) {
        torc_channel *ch = torc_channel_new(own, kit_backends_target(kit_backends_one), &o, NULL);
        torc_channel_state(ch, true);
        if (i % 2)
            (void)torc_channel_wait_state(ch, TORC_CONNECTIVITY_IDLE, 1000, NULL);
        torc_channel_free(ch);
    }
    assert_int_equal(torc_runtime_free(own), 0);
    pthread_mutex_lock(&r.mutex);
    r.over = true;
    pthread_cond_signal(&r.cond);
    pthread_mutex_unlock(&r.mutex);
    pthread_join(thread, NULL);
}

/* --- misuse --- */

/* Asserts that torc_channel_new fails with this dialer (NULL: none) and target, with this code, and with a text that
 * contains `part`. */
static void refused(const struct torc_dialer *dialer, const char *target, int code, const char *part)
{
    torc_error *error = NULL;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .dialer = dialer};
    assert_null(torc_channel_new(rt, target, &o, &error));
    assert_int_equal(torc_error_code(error), code);
    if (!strstr(torc_error_text(error), part))
        fail_msg("%s", torc_error_text(error));
    torc_error_clear(&error);
}

static void what_is_malformed_is_refused(void **state)
{
    (void)state;
    struct dialer d = {.how = CONNECT};
    struct {
        struct torc_dialer known;
        void *newer;
    } more = {dialer_of(&d), &more};
    struct torc_dialer none = {TORC_SIZE(torc_dialer)}, unsized = dialer_of(&d), good = dialer_of(&d);
    unsized.size = 0;
    more.known.size = sizeof(more);
    refused(&none, "ipv4:127.0.0.1:1", TORC_EINVAL, "dialer: dial: is NULL");
    refused(&unsized, "ipv4:127.0.0.1:1", TORC_EINVAL, "dialer: size is 0");
    refused(&more.known, "ipv4:127.0.0.1:1", TORC_EUNSUPPORTED, "dialer: fields are set");
    refused(&good, "nosuch:x", TORC_EINVAL, "nosuch");
    int fd = connect_to_backend();
    char target[32];
    snprintf(target, sizeof(target), "fd:%d", fd);
    refused(&good, target, TORC_EINVAL, "options: dialer: must be NULL for a target that is a descriptor");
    ino_t file = file_of(fd);
    assert_true(file != 0); /* torc_channel_new did not take the descriptor */
    assert_int_equal(d.releases, 0);
    torc_dial_done(NULL, fd, NULL);
    assert_true(file_of(fd) != file);
    torc_dial_done(NULL, -1, NULL);
    torc_dial_set_data(NULL, &d);
    assert_null(torc_dial_data(NULL));
}

/* --- targets --- */

static torc_channel *channel_to(const char *target, int64_t connect_timeout_ms)
{
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .connect_timeout_ms = connect_timeout_ms};
    torc_error *error = NULL;
    torc_channel *ch = torc_channel_new(rt, target, &o, &error);
    assert_string_equal(torc_error_text(error), "");
    return ch;
}

static void a_descriptor_as_target(void **state)
{
    (void)state;
    char target[32];
    int fd = connect_to_backend();
    snprintf(target, sizeof(target), "fd:%d", fd);
    torc_channel *ch = channel_to(target, 0);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "");
    kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "");
    torc_result *r = torc_unary(ch, "a/b", "", 0, NULL);
    assert_string_equal(torc_result_peer(r), target);
    torc_result_free(r);
    /* After its one connection has ended, the channel cannot connect again. */
    kit_backends_stop(kit_backends_one, 0);
    kit_backends_restart(kit_backends_one, 0);
    enum torc_connectivity now;
    assert_int_equal(torc_channel_wait_state(ch, TORC_CONNECTIVITY_READY, 60000, &now), 0);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE,
                        "its one connection has been used, and a descriptor cannot be connected again");
    torc_channel_free(ch);
    /* A channel that never connects closes its descriptor, too, whether the channel or the runtime is freed first. */
    for (int used = 0; used < 2; used++) {
        fd = connect_to_backend();
        ino_t file = file_of(fd);
        snprintf(target, sizeof(target), "fd:%d", fd);
        torc_runtime *own = kit_backends_runtime(TORC_RUNTIME_CALLER);
        ch = torc_channel_new(own, target, NULL, NULL);
        if (used)
            torc_channel_free(ch);
        assert_int_equal(torc_runtime_free(own), 0);
        if (!used)
            torc_channel_free(ch);
        assert_true(file_of(fd) != file);
    }
}

static void malformed_targets(void **state)
{
    (void)state;
    static const struct {
        const char *target, *part;
    } rows[] = {
        {"fd:", "it names no endpoint"},
        {"fd:x", "must be fd:N"},
        {"fd:-1", "must be fd:N"},
        {"fd:1:2", "must be fd:N"},
        {"fd:1000000", "Bad file"},
        {"fd:99999999999", "must be fd:N"},
        {"fd://3", ""},
        {"vsock:", "it names no endpoint"},
        {"vsock:1", "must be vsock"},
        {"vsock:1:", "must be vsock"},
        {"vsock:1:2:3", "must be vsock"},
        {"vsock:-1:2", "must be vsock"},
        {"vsock:any:2", "must be vsock"},
        {"vsock:1:4294967295", "must be vsock"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        refused(NULL, rows[i].target, TORC_EINVAL, rows[i].part);
    int unconnected = socket(AF_INET, SOCK_STREAM, 0);
    char target[32];
    snprintf(target, sizeof(target), "fd:%d", unconnected);
    refused(NULL, target, TORC_EINVAL, "not connected");
    assert_true(file_of(unconnected) != 0);
    close(unconnected);
}

/* The connection fails, whether the machine has vsock or not. */
static void a_vsock_that_nobody_listens_on(void **state)
{
    (void)state;
    torc_channel *ch = channel_to("vsock:1:4294967000", 1000);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_UNAVAILABLE, "failed to connect to vsock:1:4294967000: ");
    torc_channel_free(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_come_from_the_dialer),
        cmocka_unit_test(tls_runs_on_the_descriptor),
        cmocka_unit_test(failures_have_their_reason),
        cmocka_unit_test(descriptors_that_cannot_be_used),
        cmocka_unit_test(time_is_up),
        cmocka_unit_test(the_end_meanwhile),
        cmocka_unit_test(done_in_a_child),
        cmocka_unit_test(a_channel_that_was_never_used),
        cmocka_unit_test(answers_and_cancels_meet),
        cmocka_unit_test(what_is_malformed_is_refused),
        cmocka_unit_test(a_descriptor_as_target),
        cmocka_unit_test(malformed_targets),
        cmocka_unit_test(a_vsock_that_nobody_listens_on),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
