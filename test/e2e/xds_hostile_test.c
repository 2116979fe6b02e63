/* A control plane that sends what no client should have to take: the process of `torc call` refuses it within a second,
 * grows by less than 20 MB, and its RPCs go on. Within a second: of its processor's time, so that
 * a busy machine does not count; what the wall's clock says is printed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/mesh_kit.h"

#include "base/clock.h"
#include "base/mem.h"

#define EDS_URL "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
#define MANY 1000000
#define HUGE_BYTES ((size_t)80 << 20)
#define WAIT_NS INT64_C(20000000000)

/* Sanitizers keep what was freed and slow everything down: they are asked for the same refusals, not for the figures.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEASURED false
#else
#define MEASURED true
#endif

struct client {
    pid_t pid;
    char *out, *log; /* files */
};

static struct mesh_kit *k;
static struct client client;

static int64_t now_ns(void)
{
    return (int64_t)tc_system_clock.monotonic_ns(NULL);
}

/* --- the client --- */

static char *temp_file(void)
{
    char *path = tc_strdup("/tmp/torc-hostile-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return path;
}

static void start_client(void)
{
    char *torc = tc_asprintf("%s/torc", getenv("TORC_BINARY_DIR"));
    client.out = temp_file();
    client.log = temp_file();
    client.pid = fork();
    assert_true(client.pid >= 0);
    if (client.pid == 0) {
        int out = open(client.out, O_WRONLY | O_APPEND), log = open(client.log, O_WRONLY | O_APPEND);
        setenv("GRPC_XDS_BOOTSTRAP", "", 1);
        setenv("GRPC_XDS_BOOTSTRAP_CONFIG", mesh_kit_bootstrap(k), 1);
        setenv("TORC_LOG", "xds=info", 1);
        dup2(out, 1);
        dup2(log, 2);
        execl(torc, torc, "call", "-o", "json", "xds:///svc", "good.S/M", "--rps", "100", "--duration", "300s",
              (char *)NULL);
        _exit(127);
    }
    tc_free(torc);
}

static void stop_client(void)
{
    kill(client.pid, SIGKILL);
    while (waitpid(client.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    unlink(client.out);
    unlink(client.log);
    tc_free(client.out);
    tc_free(client.log);
}

static struct tc_buf read_all(const char *path)
{
    struct tc_buf b = {0};
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (;;) {
        size_t n = fread(tc_buf_reserve(&b, 65536), 1, 65536, f);
        b.len += n;
        if (n == 0)
            break;
    }
    fclose(f);
    return b;
}

static size_t count_of(const char *text, const char *part)
{
    size_t n = 0;
    while ((text = strstr(text, part))) {
        n++;
        text++;
    }
    return n;
}

/* Finished calls; none may have failed. */
static size_t finished_calls(void)
{
    struct tc_buf b = read_all(client.out);
    size_t calls = count_of(tc_buf_cstr(&b), "{\"call\""), good = count_of(tc_buf_cstr(&b), "\"code\":0,");
    if (good + 1 < calls) /* a line may be cut off */
        fail_msg("of %zu calls %zu succeeded: %s", calls, good, tc_buf_cstr(&b));
    tc_buf_fini(&b);
    return good;
}

static void pause_a_little(void)
{
    (void)poll(NULL, 0, 5);
}

static void calls_go_on(size_t more)
{
    size_t begin = finished_calls();
    for (int64_t end = now_ns() + WAIT_NS; finished_calls() < begin + more; pause_a_little())
        if (now_ns() > end)
            fail_msg("calls do not go on");
}

static void wait_log(const char *part)
{
    for (int64_t end = now_ns() + WAIT_NS;; pause_a_little()) {
        struct tc_buf b = read_all(client.log);
        bool found = strstr(tc_buf_cstr(&b), part);
        if (!found && now_ns() > end)
            fail_msg("the log does not say \"%s\": %s", part, tc_buf_cstr(&b));
        tc_buf_fini(&b);
        if (found)
            return;
    }
}

/* A figure of /proc/PID/status in kilobytes. */
static long status_kb(const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)client.pid);
    struct tc_buf b = read_all(path);
    const char *at = strstr(tc_buf_cstr(&b), name);
    assert_non_null(at);
    long kb = strtol(at + strlen(name), NULL, 10);
    tc_buf_fini(&b);
    return kb;
}

/* Processor time of the client so far: unlike the wall's it does not count what else the machine does. */
static double cpu_ms(void)
{
    clockid_t clock;
    struct timespec t;
    assert_int_equal(clock_getcpuclockid(client.pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &t), 0);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The peak is counted anew from here. */
static void reset_peak(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/clear_refs", (int)client.pid);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("5", f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* --- what is sent --- */

struct sending {
    const struct tc_buf *resource;
    const char *version;
};

static void send_it(struct tc_control_plane *cp, void *arg)
{
    const struct sending *s = arg;
    struct tc_slice resource = tc_buf_slice(s->resource);
    tc_control_plane_send(cp, EDS_URL, s->version, &resource, 1);
}

static void append_varint(struct tc_buf *b, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        tc_buf_append_char(b, (char)(v | 0x80));
    tc_buf_append_char(b, (char)v);
}

/* A ClusterLoadAssignment of the cluster, without anything yet. */
static struct tc_buf assignment(void)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "\x0a\x06victim");
    return b;
}

/* Sends it and waits for what the client makes of it: a NACK with this text (NULL: a line of the log). */
static void refuses(const char *what, struct tc_buf resource, const char *nack, const char *logged)
{
    struct sending s = {&resource, what};
    tc_free(mesh_kit_requests(k));
    reset_peak();
    long before_kb = status_kb("VmRSS:");
    int64_t begin = now_ns();
    double cpu = cpu_ms();
    mesh_kit_do(k, send_it, &s);
    if (nack)
        mesh_kit_wait_request(k, nack);
    else
        wait_log(logged);
    double ms = (double)(now_ns() - begin) / 1e6;
    cpu = cpu_ms() - cpu;
    calls_go_on(20);
    long grown_kb = status_kb("VmHWM:") - before_kb;
    print_message(
        "%s, %zu bytes: refused in %.0f ms (%.0f of the client's processor), %ld kB more resident at the most\n", what,
        resource.len, ms, cpu, grown_kb);
    if (MEASURED) {
        assert_true(cpu < 1000);
        assert_true(grown_kb < 20 * 1000);
    }
    tc_buf_fini(&resource);
}

/* --- tests --- */

static int open_world(void **state)
{
    (void)state;
    k = mesh_kit_new(2);
    mesh_kit_put_endpoints(k, "good", "0/a: 0", NULL);
    mesh_kit_put_endpoints(k, "victim", "0/a: 1", NULL);
    mesh_kit_put_cluster(k, "good", NULL);
    mesh_kit_put_cluster(k, "victim", NULL);
    mesh_kit_put_routes(k, "svc",
                        "{match: {prefix: \"/good\"}, route: {cluster: good}}, "
                        "{match: {prefix: \"/\"}, route: {cluster: victim}}");
    start_client();
    calls_go_on(20);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    stop_client();
    mesh_kit_free(k);
    return 0;
}

static void one_huge_priority(void **state)
{
    (void)state;
    struct tc_buf b = assignment();
    /* endpoints { locality {region: "r"} load_balancing_weight {value: 1} priority: 4294967295 } */
    tc_buf_append(&b, "\x12\x0f\x0a\x03\x0a\x01r\x1a\x02\x08\x01\x28\xff\xff\xff\xff\x0f", 17);
    refuses("one priority 4294967295", b, "4294967295 is beyond the limit of 128 priorities", NULL);
    TC_CASE(ED16);
}

static void a_million_localities(void **state)
{
    (void)state;
    struct tc_buf b = assignment();
    for (size_t i = 0; i < MANY; i++)
        tc_buf_append(&b, "\x12\x00", 2);
    refuses("a million localities with nothing in them", b, "field endpoints", NULL);
    b = assignment();
    for (size_t i = 0; i < MANY; i++) { /* {locality {sub_zone: "00000"} load_balancing_weight {value: 1}} */
        char text[16];
        snprintf(text, sizeof(text), "%05zx", i);
        tc_buf_append(&b, "\x12\x0d\x0a\x07\x1a\x05", 6);
        tc_buf_append(&b, text, 5);
        tc_buf_append(&b, "\x1a\x02\x08\x01", 4);
    }
    refuses("a million localities without endpoints", b, "field endpoints", NULL);
}

static void a_huge_response(void **state)
{
    (void)state;
    struct tc_buf b = assignment();
    tc_buf_append_char(&b, '\x12'); /* one locality of unknown fields */
    append_varint(&b, HUGE_BYTES);
    memset(tc_buf_reserve(&b, HUGE_BYTES), 0, HUGE_BYTES);
    b.len += HUGE_BYTES;
    refuses("a response of 80 MB", b, NULL, "larger than max (838");
    wait_log("vs. 67108864");
    /* The next stream has all it needs, and what changes gets through. */
    mesh_kit_wait_request(k, "ClusterLoadAssignment 2 good victim");
    mesh_kit_take(k, 1);
    mesh_kit_put_endpoints(k, "good", "0/a: 1", NULL);
    for (int64_t end = now_ns() + WAIT_NS; mesh_kit_take(k, 1) == 0; pause_a_little())
        if (now_ns() > end)
            fail_msg("a change does not get through");
    calls_go_on(20);
    TC_CASE(AD29);
}

/* The limit is the operator's: this one is smaller than a response of two clusters. */
static void a_limit_of_the_bootstrap(void **state)
{
    (void)state;
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    char *bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": "
                                  "\"insecure\"}]}], \"node\": {\"id\": \"n\"}, "
                                  "\"torc.limits\": {\"ads_message_bytes\": 100}}",
                                  mesh_kit_control_plane(k));
    o.xds_bootstrap_json = bootstrap;
    torc_channel *ch = mesh_kit_channel(k, "svc", &o);
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, " vs. 100)");
    torc_channel_free(ch);
    tc_free(bootstrap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_huge_priority),
        cmocka_unit_test(a_million_localities),
        cmocka_unit_test(a_huge_response),
        cmocka_unit_test(a_limit_of_the_bootstrap),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
