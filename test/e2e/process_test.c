/* Processes that exit, fork or cancel threads at random moments, during TLS handshakes and token fetches: none crashes,
 * none hangs. In the child of a fork, and after the cancellations, calls succeed.
 *
 * TORC_PROCESS_ROUNDS: processes of each kind (40 by default, 10 with the thread or the address sanitizer);
 * TORC_PROCESS_SEED: the first seed (1 by default); TORC_PROCESS_KIND: one kind (exits, forks or cancels). Run a failed
 * process again by its kind, its seed and TORC_PROCESS_ROUNDS=1.
 *
 * The test's own process has no threads and never initialises OpenSSL. The servers (a TLS backend and a fake metadata
 * server) are another process, and each round forks a further process from the test's. A process of a round has THREADS
 * threads that make calls over real sockets all the time, with a new channel for each call. Next to them run the
 * threads of the runtimes and, before a fork, a thread that replaces the file of the CA certificate. After a moment the
 * process exits, forks, or cancels the threads that make calls. Forks are skipped with the thread and the address
 * sanitizer. */
#include <dirent.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torc/torc.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "creds/call/oauth.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/cert.h"
#include "support/net/http_server.h"
#include "support/sanitizer.h"
#include "tls/tls.h"

#if SANITIZER_THREAD || SANITIZER_ADDRESS
#define SLOW 5
#else
#define SLOW 1
#endif

/* The thread sanitizer forbids threads in the child of a process with threads. Under the address sanitizer a child may
 * hang in the sanitizer's allocator: before GCC 14 a fork does not take the allocator's locks, and since then a lock
 * may remember a thread of the parent that waited for the lock. */
#if SANITIZER_THREAD || SANITIZER_ADDRESS
#define NO_FORK
#endif

#if SANITIZER_ADDRESS
/* A process that ends while threads work leaks their memory. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

#define THREADS 3
#define MAX_MOMENT_NS (30 * TC_NS_PER_MS * SLOW)
#define HANG_S (120 * SLOW)
#define CALL_MS (10000 * SLOW)

/* --- the servers --- */

/* The target of the backend, the address of the metadata server, and the paths of the test's folder and of the CA
 * certificate in it. The servers' process fills in the first two, and sends the struct to the test's process. */
static struct {
    char backend[64], tokens[64], folder[64], ca[96];
} at;
static pid_t servers;

static struct http_server_reply on_token(const char *head, void *arg)
{
    static const char body[] = "{\"access_token\": \"t\", \"expires_in\": 1, \"token_type\": \"Bearer\"}";
    static unsigned n;
    (void)head;
    (void)arg;
    return (struct http_server_reply){
        .what = HTTP_SERVER_ANSWER,
        .delay_ms = n++ % 4 * 5,
        .text = tc_asprintf("HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nContent-Length: %zu\r\n\r\n%s",
                            sizeof(body) - 1, body)};
}

/* Replaces the file by the text with so many spaces and a newline behind it. The new file takes the place of the old
 * one in one step, so that a reader finds a whole file. */
static void put_file(const char *path, const char *text, int spaces)
{
    char *beside = tc_asprintf("%s.%d.%d", path, (int)getpid(), spaces);
    FILE *f = fopen(beside, "w");
    if (!f)
        abort();
    fprintf(f, "%s%*s\n", text, spaces, "");
    fclose(f);
    rename(beside, path);
    tc_free(beside);
}

/* The servers' process. Writes `at` to `out` when the servers listen. Never returns: the end of the test kills it. */
static void serve(int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
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
    struct http_server *stub = http_server_new(on_token, NULL);
    put_file(at.ca, ca.cert_pem, 0);
    snprintf(at.backend, sizeof(at.backend), "%s", kit_backends_target(kit));
    snprintf(at.tokens, sizeof(at.tokens), "%s", http_server_address(stub));
    if (write(out, &at, sizeof(at)) != (ssize_t)sizeof(at))
        abort();
    for (;;)
        pause();
}

static int setup(void **state)
{
    (void)state;
    int fds[2];
    snprintf(at.folder, sizeof(at.folder), "/tmp/torc-process-XXXXXX");
    if (!mkdtemp(at.folder) || pipe(fds) != 0)
        return -1;
    snprintf(at.ca, sizeof(at.ca), "%s/ca.pem", at.folder);
    servers = fork();
    if (servers == 0)
        serve(fds[1]);
    close(fds[1]);
    bool ready = read(fds[0], &at, sizeof(at)) == (ssize_t)sizeof(at);
    close(fds[0]);
    return ready ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    kill(servers, SIGKILL);
    waitpid(servers, NULL, 0);
    /* A process that ended inside put_file leaves its temporary file behind. */
    DIR *folder = opendir(at.folder);
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        char *path = tc_asprintf("%s/%s", at.folder, e->d_name);
        unlink(path);
        tc_free(path);
    }
    if (folder)
        closedir(folder);
    return rmdir(at.folder);
}

/* --- a process that is busy --- */

static struct tc_rng rng;
static torc_credentials *shared_tls;
static torc_call_credentials *shared_token;
static char *ca_text; /* the CA certificate, without what stands behind it in the file */

/* Returns new credentials, which the caller gives back, or NULL. */
static torc_credentials *tls_of_files(void)
{
    struct torc_tls_files f = {TORC_SIZE(torc_tls_files), .ca_certificate_file = at.ca};
    return torc_credentials_tls_files(&f, NULL);
}

/* Makes a channel and one call with a token; borrows both credentials. Returns the call's status code, or 1000 and more
 * if Torc refused the channel or the call. */
static int call_once(torc_runtime *rt, torc_credentials *tls, torc_call_credentials *token)
{
    struct torc_channel_options co = {TORC_SIZE(torc_channel_options), .credentials = tls};
    torc_channel *ch = torc_channel_new(rt, at.backend, &co, NULL);
    if (!ch)
        return 1000;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .credentials = token, .timeout_ms = CALL_MS};
    torc_result *r = torc_unary(ch, "torc.test.Backend/Headers", "x", 1, &o);
    int rc = torc_error_code(torc_result_error(r));
    int code = rc == 0 || rc == TORC_ESTATUS ? torc_result_code(r) : 1000 - rc;
    if (code != 0)
        fprintf(stderr, "%d: %s\n", code, torc_result_text(r));
    torc_result_free(r);
    torc_channel_free(ch);
    return code;
}

/* Makes calls in the runtime `arg` until Torc refuses one, or the thread is cancelled. Every second call uses
 * credentials that all threads share. */
static void *stay_busy(void *arg)
{
    torc_runtime *rt = arg;
    for (unsigned i = 0;; i++) {
        torc_credentials *tls = i % 2 ? torc_credentials_ref(shared_tls) : tls_of_files();
        torc_call_credentials *token =
            i % 2 ? torc_call_credentials_ref(shared_token) : tc_metadata_server_creds(at.tokens, CALL_MS);
        int code = tls ? call_once(rt, tls, token) : 0;
        torc_call_credentials_unref(token);
        torc_credentials_unref(tls);
        if (code >= 1000)
            return NULL; /* as the process exits */
        pthread_testcancel();
    }
}

static pthread_t threads[THREADS];

/* Makes what the threads share, and starts them: the first one in the default runtime, the others in a runtime in this
 * mode, which is returned. */
static torc_runtime *start(uint64_t seed, enum torc_runtime_mode mode)
{
    char text[16384];
    tc_rng_init_seed(&rng, seed);
    FILE *f = fopen(at.ca, "r");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    text[n] = '\0';
    char *end = strstr(text, "-----END CERTIFICATE-----");
    if (!end)
        abort();
    end[strlen("-----END CERTIFICATE-----")] = '\0';
    ca_text = tc_strdup(text);
    fclose(f);
    if (tc_rng_below(&rng, 2)) /* an application that uses OpenSSL, and initialised it */
        OPENSSL_init_crypto(0, NULL);
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = mode};
    torc_runtime *own = torc_runtime_new(&o, NULL);
    shared_tls = tls_of_files();
    shared_token = tc_metadata_server_creds(at.tokens, CALL_MS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, stay_busy, i ? own : torc_runtime_default()) != 0)
            abort();
    return own;
}

/* Waits for less than MAX_MOMENT_NS. Most moments are short, to hit what is done for the first time. */
static void wait_a_moment(void)
{
    struct timespec ts = {.tv_nsec = (long)tc_rng_below(&rng, MAX_MOMENT_NS >> tc_rng_below(&rng, 8))};
    ppoll(NULL, 0, &ts, NULL);
}

/* --- exit --- */

static void leave(void *arg)
{
    (void)arg;
    exit(0);
}

static void *leave_on_thread(void *arg)
{
    leave(arg);
    return NULL;
}

/* An exit handler, registered before Torc's first use: runs after Torc's handler has ended the waits of the threads. */
static void join_all(void)
{
    for (int i = 0; i < THREADS; i++)
        if (!pthread_equal(threads[i], pthread_self()))
            pthread_join(threads[i], NULL);
    if (torc_channel_new(NULL, at.backend, NULL, NULL) && tc_rng_below(&rng, 2))
        torc_credentials_unref(tls_of_files());
}

static void end_by_exit(uint64_t seed)
{
    pthread_t other;
    bool joins = seed % 3 == 0;
    if (joins)
        atexit(join_all);
    torc_runtime *own = start(seed, seed % 2 ? TORC_RUNTIME_THREAD : TORC_RUNTIME_CALLER);
    wait_a_moment();
    switch (tc_rng_below(&rng, joins ? 2 : 6)) {
    case 0:
        if (pthread_create(&other, NULL, leave_on_thread, NULL) == 0)
            pthread_join(other, NULL);
        break;
    case 1:
        if (!joins && torc_runtime_post(own, leave, NULL) == 0)
            pthread_join(threads[1], NULL);
        break;
    case 2:
        quick_exit(0);
    case 3:
        torc_runtime_post(torc_runtime_default(), leave, NULL);
        for (;;)
            pause();
    default:
        break;
    }
    exit(0);
}

/* --- fork --- */

#ifndef NO_FORK
/* A thread: replaces the file of the CA certificate again and again, each time with another size. */
static void *change_files(void *arg)
{
    (void)arg;
    for (int i = 0;; i = (i + 1) % 50) {
        put_file(at.ca, ca_text, i);
        poll(NULL, 0, 1);
    }
    return NULL;
}

static void end_by_fork(uint64_t seed)
{
    pthread_t changer;
    start(seed, TORC_RUNTIME_THREAD);
    if (pthread_create(&changer, NULL, change_files, NULL) != 0)
        abort();
    wait_a_moment();
    pid_t child = fork();
    if (child == 0) {
        alarm(HANG_S / 2);
        torc_runtime *rt = torc_runtime_new(NULL, NULL);
        int code = rt ? call_once(rt, shared_tls, shared_token) : 1000;
        torc_credentials_unref(shared_tls);
        torc_call_credentials_unref(shared_token);
        if (code == 0 && seed % 2)
            exit(0);
        _exit(code != 0);
    }
    int status = 0;
    struct rusage used;
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        abort();
    if (WIFSIGNALED(status)) {
        /* No CPU time: the child waited for something that never came. Much: it looped. A little: it got no CPU. */
        fprintf(stderr, "the forked child: signal %d after %ld ms of processor time\n", WTERMSIG(status),
                (long)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
                    (long)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000);
        raise(WTERMSIG(status));
    }
    _exit(WEXITSTATUS(status));
}
#endif

/* --- cancel --- */

static void end_by_cancel(uint64_t seed)
{
    torc_runtime *own = start(seed, TORC_RUNTIME_CALLER);
    wait_a_moment();
    for (int i = 0; i < THREADS; i++) {
        pthread_cancel(threads[i]);
        wait_a_moment();
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int code = call_once(own, shared_tls, shared_token);
    if (code == 0)
        code = call_once(torc_runtime_default(), shared_tls, shared_token);
    if (code == 0)
        code = -torc_runtime_free(own);
    _exit(code != 0);
}

/* --- the rounds --- */

/* Returns the number in this environment variable; `otherwise` if it is unset or empty. */
static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && text[0] ? strtoull(text, NULL, 10) : otherwise;
}

/* Runs fn, which ends its process, in a process for each seed. Asserts that each process ends with status 0. */
static void run_rounds(const char *what, void (*fn)(uint64_t seed))
{
    uint64_t rounds = number("TORC_PROCESS_ROUNDS", SLOW > 1 ? 10 : 40), first = number("TORC_PROCESS_SEED", 1);
    unsigned failed = 0;
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(HANG_S);
            fn(seed);
            abort();
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status == 0)
            continue;
        failed++;
        print_message("%s, seed %llu: %s %d\n", what, (unsigned long long)seed,
                      !WIFSIGNALED(status)          ? "exit status"
                      : WTERMSIG(status) == SIGALRM ? "hung; signal"
                                                    : "signal",
                      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    print_message("%s: %u of %llu processes failed\n", what, failed, (unsigned long long)rounds);
    assert_int_equal(failed, 0);
}

static void exits(void **state)
{
    (void)state;
    run_rounds("exits", end_by_exit);
}

static void forks(void **state)
{
    (void)state;
#ifdef NO_FORK
    skip();
#else
    run_rounds("forks", end_by_fork);
#endif
}

static void cancels(void **state)
{
    (void)state;
    run_rounds("cancels", end_by_cancel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exits),
        cmocka_unit_test(forks),
        cmocka_unit_test(cancels),
    };
    cmocka_set_test_filter(getenv("TORC_PROCESS_KIND"));
    return cmocka_run_group_tests(tests, setup, teardown);
}
