/* Real sockets: connecting, listening, bytes both ways, files at the paths of Unix sockets, peers that go away,
 * descriptors that run out, and forks. Client and server share one real loop, which the test's thread turns: most tests
 * call listen_on, then connect_both, and wait by turning the loop. A test whose event never comes hangs. Unix sockets
 * that are not abstract have relative paths. `teardown` closes and frees what a test leaves open. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/connect.h"
#include "io/listen.h"
#include "support/cmocka.h"
#include "support/net/port.h"

/* One end of a connection: sends `out`, and keeps received bytes in `in` or sends them back (`echo`). */
struct end {
    struct tc_bytestream *bs;
    struct tc_buf in, out;
    size_t out_at;
    bool echo;
    bool ended;     /* a read returned 0 */
    size_t blocked; /* writes that returned TORC_EAGAIN */
    ssize_t error;  /* TORC_E* of the first read or write that failed; 0: none */
};

struct fixture {
    struct tc_loop *loop;
    struct tc_listen_socket *listener; /* owned; NULL: none */
    struct end client;
    TC_VEC(struct end *) accepted; /* owned, oldest first */
    bool echo;                     /* of ends that are accepted from now on */
    bool connected;                /* on_connect was called, with a byte stream or an error */
    struct tc_status error;        /* of connecting; owned */
    struct tc_connect *connect;    /* under way; NULL: none */
};

/* Writes what is left of `out`, until all is written, a write would block, or an error. */
static void write_out(struct end *e)
{
    while (e->error == 0 && e->out_at < e->out.len) {
        struct iovec iov = {e->out.data + e->out_at, e->out.len - e->out_at};
        ssize_t n = e->bs->ops->writev(e->bs, &iov, 1);
        if (n == TORC_EAGAIN) {
            e->blocked++;
            return;
        }
        if (n < 0)
            e->error = n;
        else
            e->out_at += (size_t)n;
    }
}

static void on_event(void *arg, unsigned events)
{
    struct end *e = arg;
    while ((events & TC_BS_READABLE) && !e->ended && e->error == 0) {
        char buf[16384];
        ssize_t n = e->bs->ops->read(e->bs, buf, sizeof(buf));
        if (n == TORC_EAGAIN)
            break;
        if (n < 0)
            e->error = n;
        else if (n == 0)
            e->ended = true;
        else
            tc_buf_append(e->echo ? &e->out : &e->in, buf, (size_t)n);
    }
    if (e->ended || e->error != 0)
        e->bs->ops->set_reading(e->bs, false);
    write_out(e);
}

static void close_end(struct end *e)
{
    if (e->bs)
        e->bs->ops->close(e->bs);
    e->bs = NULL;
    tc_buf_fini(&e->in);
    tc_buf_fini(&e->out);
}

static void on_accept(void *arg, struct tc_bytestream *bs)
{
    struct fixture *f = arg;
    struct end *e = TC_NEW(struct end);
    e->bs = bs;
    e->echo = f->echo;
    tc_bytestream_set_handler(bs, on_event, e);
    *tc_vec_push(&f->accepted) = e;
}

static void on_connect(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct fixture *f = arg;
    assert_false(f->connected);
    f->connected = true;
    f->connect = NULL;
    f->client.bs = bs;
    if (bs)
        tc_bytestream_set_handler(bs, on_event, &f->client);
    else
        f->error = tc_status_ref(error);
}

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    f->loop = tc_loop_new(NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->connect)
        tc_connect_cancel(f->connect);
    if (f->listener)
        tc_listen_socket_close(f->listener);
    close_end(&f->client);
    for (size_t i = 0; i < f->accepted.len; i++) {
        close_end(f->accepted.data[i]);
        tc_free(f->accepted.data[i]);
    }
    tc_vec_fini(&f->accepted);
    tc_status_fini(&f->error);
    tc_loop_free(f->loop);
    tc_free(f);
    return 0;
}

/* Returns the address of the text. The caller ends it with tc_addr_fini. */
static struct tc_addr parse(const char *text)
{
    struct tc_addr a;
    assert_int_equal(tc_addr_parse(&a, tc_slice_str(text)), 0);
    return a;
}

static void listen_on(struct fixture *f, const char *text)
{
    struct tc_addr a = parse(text);
    struct tc_status error = {0};
    f->listener = tc_listen_socket_new(f->loop, &a, on_accept, f, &error);
    if (!f->listener)
        fail_msg("%s", tc_status_text(&error));
    tc_addr_fini(&a);
}

static void start_connect(struct fixture *f, const struct tc_addr *a, uint64_t timeout_ms)
{
    f->connect = tc_connect_start(f->loop, a, &(struct tc_connect_opts){.timeout_ms = timeout_ms}, on_connect, f);
    assert_false(f->connected); /* no callback inside tc_connect_start */
}

/* Connects the client to the listener, and turns the loop until both ends are there. Fails the test on an error. */
static void connect_both(struct fixture *f)
{
    start_connect(f, tc_listen_socket_addr(f->listener), 5000);
    while (!f->connected || f->accepted.len == 0)
        tc_loop_turn(f->loop, -1);
    if (!f->client.bs)
        fail_msg("%s", tc_status_text(&f->error));
}

/* Sends `len` bytes from the client to a server that echoes, and asserts that they come back. The client must not have
 * sent anything before. */
static void check_echo(struct fixture *f, size_t len)
{
    for (size_t i = 0; i < len; i++)
        tc_buf_append_char(&f->client.out, (char)(i * 7 + i / 253));
    write_out(&f->client);
    while (f->client.in.len < len && f->client.error == 0)
        tc_loop_turn(f->loop, -1);
    assert_int_equal(f->client.in.len, len);
    assert_memory_equal(f->client.in.data, f->client.out.data, len);
}

static void big_data_comes_back_over(struct fixture *f, const char *address)
{
    f->echo = true;
    listen_on(f, address);
    connect_both(f);
    struct end *server = f->accepted.data[0];
    assert_false(f->client.bs->secure);
    assert_null(f->client.bs->alpn);
    assert_true(tc_addr_eq(&f->client.bs->peer, tc_listen_socket_addr(f->listener)));
    assert_true(tc_addr_eq(&server->bs->local, &f->client.bs->peer));
    assert_true(tc_addr_eq(&server->bs->peer, &f->client.bs->local));
    check_echo(f, 16 << 20);
    assert_true(f->client.blocked > 0); /* the kernel's buffer was full at times */
    int flags = fcntl(tc_loop_fd(f->loop), F_GETFD);
    assert_true(flags & FD_CLOEXEC);
}

static void big_data_over_ipv4(void **state)
{
    big_data_comes_back_over(*state, "127.0.0.1:0");
}

static void big_data_over_ipv6(void **state)
{
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool have = fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
    if (fd >= 0)
        close(fd);
    if (!have)
        skip(); /* a machine without IPv6 */
    big_data_comes_back_over(*state, "[::1]:0");
}

static void big_data_over_unix(void **state)
{
    char text[64];
    snprintf(text, sizeof(text), "unix:torc-socket-test-%d", (int)getpid());
    big_data_comes_back_over(*state, text);
    assert_int_equal(access(text + 5, F_OK), 0);
    struct fixture *f = *state;
    tc_listen_socket_close(f->listener);
    f->listener = NULL;
    assert_int_equal(access(text + 5, F_OK), -1); /* the path goes with the listener */
}

static void big_data_over_abstract_unix(void **state)
{
    char text[64];
    snprintf(text, sizeof(text), "unix-abstract:torc-socket-test-%d", (int)getpid());
    big_data_comes_back_over(*state, text);
}

static void a_stale_unix_path_is_taken_over_and_a_live_one_is_not(void **state)
{
    struct fixture *f = *state;
    char text[64];
    snprintf(text, sizeof(text), "unix:torc-stale-test-%d", (int)getpid());
    struct tc_addr a = parse(text);
    struct sockaddr_un un;
    socklen_t len;
    const struct sockaddr *sa = tc_addr_sockaddr(&a, &un, &len);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, sa, len), 0);
    close(fd); /* as a killed server leaves it */
    listen_on(f, text);
    struct tc_status error = {0};
    assert_null(tc_listen_socket_new(f->loop, &a, on_accept, f, &error));
    char *expected = tc_asprintf("failed to listen on %s: Address already in use", text);
    assert_string_equal(tc_status_text(&error), expected);
    tc_free(expected);
    tc_status_fini(&error);
    tc_addr_fini(&a);
    connect_both(f);
}

static void a_refused_connection_says_so(void **state)
{
    struct fixture *f = *state;
    uint16_t port;
    int held = port_hold(&port);
    struct tc_addr a = parse("127.0.0.1:0");
    a.sa.in.sin_port = htons(port);
    start_connect(f, &a, 5000);
    while (!f->connected)
        tc_loop_turn(f->loop, -1);
    assert_null(f->client.bs);
    assert_int_equal(f->error.code, TORC_STATUS_UNAVAILABLE);
    char *address = tc_addr_text(&a);
    char *expected = tc_asprintf("failed to connect to %s: Connection refused", address);
    assert_string_equal(tc_status_text(&f->error), expected);
    close(held);
    tc_free(expected);
    tc_free(address);
    tc_addr_fini(&a);
}

/* Asserts that a listener at `address` is refused, and that the file at `path`, which is not a socket, stays. */
static void expect_left_alone(struct fixture *f, const char *path, const char *address)
{
    struct tc_addr a = parse(address);
    struct tc_status error = {0};
    struct stat before, after;
    assert_int_equal(lstat(path, &before), 0);
    assert_null(tc_listen_socket_new(f->loop, &a, on_accept, f, &error));
    char *expected = tc_asprintf("failed to listen on %s: the file there is not a socket", address);
    assert_string_equal(tc_status_text(&error), expected);
    assert_int_equal(lstat(path, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    tc_free(expected);
    tc_status_fini(&error);
    tc_addr_fini(&a);
}

static void a_file_that_is_no_socket_is_left_alone(void **state)
{
    struct fixture *f = *state;
    char path[64], link[64], address[80];
    snprintf(path, sizeof(path), "torc-precious-%d", (int)getpid());
    snprintf(link, sizeof(link), "torc-link-%d", (int)getpid());
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(symlink(path, link), 0);
    snprintf(address, sizeof(address), "unix:%s", path);
    expect_left_alone(f, path, address);
    snprintf(address, sizeof(address), "unix:%s", link);
    expect_left_alone(f, link, address);
    unlink(path);
    expect_left_alone(f, link, address); /* a link to nothing */
    unlink(link);
}

/* A listener that closes removes the file at its path only if the file is its own. */
static void a_file_that_replaced_the_socket_stays(void **state)
{
    struct fixture *f = *state;
    char address[80];
    struct stat st;
    snprintf(address, sizeof(address), "unix:torc-replaced-%d", (int)getpid());
    const char *path = address + strlen("unix:");
    listen_on(f, address);
    char *aside = tc_asprintf("%s-aside", path);
    assert_int_equal(rename(path, aside), 0); /* keeps its inode from being used again */
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    tc_listen_socket_close(f->listener);
    f->listener = NULL;
    assert_int_equal(lstat(path, &st), 0);
    unlink(path);
    unlink(aside);
    tc_free(aside);
    listen_on(f, address);
    tc_listen_socket_close(f->listener);
    f->listener = NULL;
    assert_int_not_equal(lstat(path, &st), 0);
}

static void a_missing_unix_path_says_so(void **state)
{
    struct fixture *f = *state;
    struct tc_addr a = parse("unix:does-not-exist.sock");
    start_connect(f, &a, 5000);
    while (!f->connected)
        tc_loop_turn(f->loop, -1);
    assert_string_equal(tc_status_text(&f->error),
                        "failed to connect to unix:does-not-exist.sock: No such file or directory");
    tc_addr_fini(&a);
}

/* Makes a listening socket whose backlog `n` fillers keep full: the kernel drops further SYNs. Returns the socket, and
 * its address in *a. The caller closes the socket and the fillers. */
static int full_backlog(struct tc_addr *a, int *fillers, int n)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, len), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    for (int i = 0; i < n; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(fillers[i], (struct sockaddr *)&in, len);
    }
    assert_int_equal(tc_addr_from_sockaddr(a, (struct sockaddr *)&in, len), 0);
    return fd;
}

static void an_attempt_is_bounded_in_time_and_can_be_cancelled(void **state)
{
    struct fixture *f = *state;
    struct tc_addr a;
    int fillers[4];
    int fd = full_backlog(&a, fillers, 4);
    uint64_t start_ms = tc_loop_now_ms(f->loop);
    start_connect(f, &a, 30);
    while (!f->connected)
        tc_loop_turn(f->loop, -1);
    assert_true(tc_loop_now_ms(f->loop) - start_ms >= 30);
    assert_null(f->client.bs);
    assert_non_null(strstr(tc_status_text(&f->error), "timed out after 30 ms"));
    tc_status_fini(&f->error);
    f->error = (struct tc_status){0};
    f->connected = false;
    start_connect(f, &a, 500);
    tc_connect_cancel(f->connect);
    f->connect = NULL;
    for (start_ms = tc_loop_now_ms(f->loop); tc_loop_now_ms(f->loop) - start_ms < 600;)
        tc_loop_turn(f->loop, 50);
    assert_false(f->connected);
    for (int i = 0; i < 4; i++)
        close(fillers[i]);
    close(fd);
}

/* Closes an end that has unread bytes, which make the kernel send RST. */
static void reset_peer(struct end *e)
{
    e->bs->ops->close(e->bs);
    e->bs = NULL;
}

static void a_peer_that_resets_is_an_error_and_no_signal(void **state)
{
    struct fixture *f = *state;
    signal(SIGPIPE, SIG_DFL);
    listen_on(f, "127.0.0.1:0");
    connect_both(f);
    struct end *server = f->accepted.data[0];
    server->bs->ops->set_reading(server->bs, false);
    tc_buf_append_str(&f->client.out, "never read");
    write_out(&f->client);
    tc_loop_turn(f->loop, 0);
    reset_peer(server);
    while (!f->client.ended && f->client.error == 0)
        tc_loop_turn(f->loop, -1);
    assert_int_equal(f->client.error, TORC_ECLOSED);
    char *peer = tc_addr_text(&f->client.bs->peer);
    char *expected = tc_asprintf("read from %s failed: Connection reset by peer", peer);
    assert_string_equal(tc_status_text(&f->client.bs->error), expected);
    tc_free(expected);
    tc_free(peer);
    /* Without MSG_NOSIGNAL a write to the connection would raise SIGPIPE now. */
    struct iovec iov = {(void *)(uintptr_t) "x", 1};
    assert_int_equal(f->client.bs->ops->writev(f->client.bs, &iov, 1), TORC_ECLOSED);
    assert_int_equal(f->client.bs->ops->writev(f->client.bs, &iov, 1), TORC_ECLOSED);
    assert_non_null(strstr(tc_status_text(&f->client.bs->error), "Broken pipe"));
}

static void the_end_of_the_peer_is_a_read_of_zero(void **state)
{
    struct fixture *f = *state;
    listen_on(f, "127.0.0.1:0");
    connect_both(f);
    struct end *server = f->accepted.data[0];
    tc_buf_append_str(&server->out, "last words");
    write_out(server);
    server->bs->ops->close(server->bs);
    server->bs = NULL;
    while (!f->client.ended && f->client.error == 0)
        tc_loop_turn(f->loop, -1);
    assert_true(f->client.ended);
    assert_int_equal(f->client.in.len, 10);
    assert_memory_equal(f->client.in.data, "last words", 10);
}

static void reading_can_be_held_back(void **state)
{
    struct fixture *f = *state;
    listen_on(f, "127.0.0.1:0");
    connect_both(f);
    struct end *server = f->accepted.data[0];
    server->bs->ops->set_reading(server->bs, false);
    tc_buf_append_str(&f->client.out, "held");
    write_out(&f->client);
    for (int i = 0; i < 5; i++)
        tc_loop_turn(f->loop, 1);
    assert_int_equal(server->in.len, 0);
    server->bs->ops->set_reading(server->bs, true);
    while (server->in.len < 4)
        tc_loop_turn(f->loop, -1);
    assert_memory_equal(server->in.data, "held", 4);
}

static void an_address_in_use_says_so(void **state)
{
    struct fixture *f = *state;
    listen_on(f, "127.0.0.1:0");
    struct tc_status error = {0};
    assert_null(tc_listen_socket_new(f->loop, tc_listen_socket_addr(f->listener), on_accept, f, &error));
    char *text = tc_addr_text(tc_listen_socket_addr(f->listener));
    char *expected = tc_asprintf("failed to listen on %s: Address already in use", text);
    assert_int_equal(error.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(tc_status_text(&error), expected);
    tc_free(expected);
    tc_free(text);
    tc_status_fini(&error);
}

static void close_in_accept(void *arg, struct tc_bytestream *bs)
{
    struct fixture *f = arg;
    bs->ops->close(bs);
    tc_listen_socket_close(f->listener);
    f->listener = NULL;
}

static void a_listener_can_be_closed_from_its_callback(void **state)
{
    struct fixture *f = *state;
    struct tc_addr a = parse("127.0.0.1:0");
    struct tc_status error = {0};
    f->listener = tc_listen_socket_new(f->loop, &a, close_in_accept, f, &error);
    assert_non_null(f->listener);
    start_connect(f, tc_listen_socket_addr(f->listener), 5000);
    while (f->listener || !f->connected)
        tc_loop_turn(f->loop, -1);
}

static void accepting_pauses_while_descriptors_are_exhausted(void **state)
{
    struct fixture *f = *state;
    struct rlimit old, none;
    listen_on(f, "127.0.0.1:0");
    start_connect(f, tc_listen_socket_addr(f->listener), 5000); /* the client's descriptor is open now */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    int next = dup(0); /* the number that accept would get */
    close(next);
    none = old;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    /* The client is connected by the kernel, and the loop does not spin: it sleeps while accepting pauses. */
    int turns = 0;
    uint64_t start_ms = tc_loop_now_ms(f->loop);
    while (tc_loop_now_ms(f->loop) - start_ms < 250) {
        tc_loop_turn(f->loop, 50);
        turns++;
    }
    assert_true(f->connected);
    assert_int_equal(f->accepted.len, 0);
    assert_true(turns < 50);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    while (f->accepted.len == 0)
        tc_loop_turn(f->loop, -1);
}

static void a_forked_child_does_not_disturb_its_parents_sockets(void **state)
{
    struct fixture *f = *state;
    f->echo = true;
    listen_on(f, "127.0.0.1:0");
    connect_both(f);
    pid_t pid = fork();
    if (pid == 0) {
        /* The child closes the sockets and the loop that it inherited. */
        f->client.bs->ops->close(f->client.bs);
        f->accepted.data[0]->bs->ops->close(f->accepted.data[0]->bs);
        tc_listen_socket_close(f->listener);
        tc_loop_free(f->loop);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check_echo(f, 100000);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(big_data_over_ipv4),
        T(big_data_over_ipv6),
        T(big_data_over_unix),
        T(big_data_over_abstract_unix),
        T(a_stale_unix_path_is_taken_over_and_a_live_one_is_not),
        T(a_file_that_is_no_socket_is_left_alone),
        T(a_file_that_replaced_the_socket_stays),
        T(a_refused_connection_says_so),
        T(a_missing_unix_path_says_so),
        T(an_attempt_is_bounded_in_time_and_can_be_cancelled),
        T(a_peer_that_resets_is_an_error_and_no_signal),
        T(the_end_of_the_peer_is_a_read_of_zero),
        T(reading_can_be_held_back),
        T(an_address_in_use_says_so),
        T(a_listener_can_be_closed_from_its_callback),
        T(accepting_pauses_while_descriptors_are_exhausted),
        T(a_forked_child_does_not_disturb_its_parents_sockets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
