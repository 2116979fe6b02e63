/* `torc call` as a process: its memory, CPU time and descriptors.
 *
 * The process's output goes to a file, from which finished_calls counts the calls written since the last look; so
 * waiting for calls needs no pipe and no thread. Memory comes from /proc/PID, CPU time from the process's clock. A
 * failed call fails the test; other lines of the output do not count. The log goes to a second file. The kit owns the
 * process and both files, until kit_process_free. Every function runs on the test's thread. */
#include "support/kits/process.h"

#include <dirent.h>
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

#include "support/cmocka.h"

#include "base/clock.h"
#include "base/mem.h"

#define WAIT_NS INT64_C(60000000000)

struct kit_process {
    pid_t pid;
    char *out, *log;   /* paths of the files; owned */
    size_t looked_at;  /* bytes of `out` that have been counted */
    size_t finished;   /* calls counted so far */
    double longest_us; /* of the calls counted since the last kit_process_longest_ms */
};

static int64_t now_ns(void)
{
    return (int64_t)tc_system_clock.monotonic_ns(NULL);
}

/* Makes an empty file in /tmp. Returns its path; the caller frees the path and removes the file. */
static char *temp_file(void)
{
    char *path = tc_strdup("/tmp/torc-hostile-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return path;
}

/* Returns the kit's bootstrap with these limits (NULL: none). The caller frees it with tc_free. */
static char *bootstrap_with(const struct kit_mesh *k, const char *limits)
{
    const char *plain = kit_mesh_bootstrap(k);
    assert_int_equal(plain[0], '{');
    return limits ? tc_asprintf("{\"torc.limits\": %s, %s", limits, plain + 1) : tc_strdup(plain);
}

struct kit_mesh *kit_process_mesh(const char *victim)
{
    struct kit_mesh *k = kit_mesh_new(2);
    kit_mesh_put_endpoints(k, "good", "0/a: 0", NULL);
    kit_mesh_put_endpoints(k, "victim", "0/a: 1", NULL);
    kit_mesh_put_cluster(k, "good", NULL);
    kit_mesh_put_cluster(k, "victim", victim);
    kit_mesh_put_routes(k, "svc",
                        "{match: {prefix: \"/good\"}, route: {cluster: good}}, "
                        "{match: {prefix: \"/\", headers: [{name: to, string_match: {exact: good}}]}, route: "
                        "{cluster: good}}, {match: {prefix: \"/\"}, route: {cluster: victim}}");
    return k;
}

struct kit_process *kit_process_new(struct kit_mesh *k, const char *limits)
{
    struct kit_process *c = TC_NEW(struct kit_process);
    assert_non_null(getenv("TORC_BINARY_DIR"));
    char *torc = tc_asprintf("%s/torc", getenv("TORC_BINARY_DIR"));
    char *bootstrap = bootstrap_with(k, limits);
    c->out = temp_file();
    c->log = temp_file();
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid == 0) {
        int out = open(c->out, O_WRONLY | O_APPEND), log = open(c->log, O_WRONLY | O_APPEND);
        setenv("GRPC_XDS_BOOTSTRAP", "", 1);
        setenv("GRPC_XDS_BOOTSTRAP_CONFIG", bootstrap, 1);
        setenv("TORC_LOG", "xds=info", 1);
        dup2(out, 1);
        dup2(log, 2);
        execl(torc, torc, "call", "-o", "json", "xds:///svc", "good.S/M", "--rps", "100", "--duration", "300s",
              (char *)NULL);
        _exit(127);
    }
    tc_free(torc);
    tc_free(bootstrap);
    return c;
}

void kit_process_free(struct kit_process *c)
{
    kill(c->pid, SIGKILL);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    unlink(c->out);
    unlink(c->log);
    tc_free(c->out);
    tc_free(c->log);
    tc_free(c);
}

/* Returns the bytes of the file from the offset to the end. The caller ends the buffer. */
static struct tc_buf read_from(const char *path, size_t offset)
{
    struct tc_buf b = {0};
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)offset, SEEK_SET), 0);
    for (;;) {
        size_t n = fread(tc_buf_reserve(&b, 65536), 1, 65536, f);
        b.len += n;
        if (n == 0)
            break;
    }
    fclose(f);
    return b;
}

/* Counts a line of the output if it is a call, which must have succeeded. */
static void count_line(struct kit_process *c, const char *line)
{
    static const char latency[] = "\"latency_us\":";
    if (!strstr(line, "{\"call\""))
        return;
    if (!strstr(line, "\"code\":0,"))
        fail_msg("after %zu calls that succeeded: %s", c->finished, line);
    const char *at = strstr(line, latency);
    assert_non_null(at);
    c->finished++;
    c->longest_us = TC_MAX(c->longest_us, strtod(at + sizeof(latency) - 1, NULL));
}

/* Counts the calls that the process has written since the last time; an incomplete last line waits. Returns the number
 * of all calls so far. */
static size_t finished_calls(struct kit_process *c)
{
    struct tc_buf b = read_from(c->out, c->looked_at);
    char *line = b.data, *end;
    for (size_t left = b.len; left && (end = memchr(line, '\n', left)); line = end + 1) {
        size_t len = (size_t)(end - line) + 1;
        *end = '\0';
        count_line(c, line);
        left -= len;
        c->looked_at += len;
    }
    tc_buf_fini(&b);
    return c->finished;
}

static void pause_a_little(void)
{
    (void)poll(NULL, 0, 5);
}

void kit_process_go_on(struct kit_process *c, size_t more)
{
    size_t begin = finished_calls(c);
    for (int64_t end = now_ns() + WAIT_NS; finished_calls(c) < begin + more; pause_a_little())
        if (now_ns() > end)
            fail_msg("calls do not go on");
}

void kit_process_wait_log(struct kit_process *c, const char *part)
{
    for (int64_t end = now_ns() + WAIT_NS;; pause_a_little()) {
        struct tc_buf b = read_from(c->log, 0);
        bool found = strstr(tc_buf_cstr(&b), part);
        if (!found && now_ns() > end)
            fail_msg("the log does not say \"%s\": %s", part, tc_buf_cstr(&b));
        tc_buf_fini(&b);
        if (found)
            return;
    }
}

double kit_process_longest_ms(struct kit_process *c)
{
    finished_calls(c);
    double longest_ms = c->longest_us / 1e3;
    c->longest_us = 0;
    return longest_ms;
}

/* Reads a figure of /proc/PID/status, in kB. `name` is the figure's name with its colon. */
static long status_kb(const struct kit_process *c, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)c->pid);
    struct tc_buf b = read_from(path, 0);
    const char *at = strstr(tc_buf_cstr(&b), name);
    assert_non_null(at);
    long kb = strtol(at + strlen(name), NULL, 10);
    tc_buf_fini(&b);
    return kb;
}

long kit_process_resident_kb(const struct kit_process *c)
{
    return status_kb(c, "VmRSS:");
}

long kit_process_peak_kb(const struct kit_process *c)
{
    return status_kb(c, "VmHWM:");
}

double kit_process_cpu_ms(const struct kit_process *c)
{
    clockid_t clock;
    struct timespec t;
    assert_int_equal(clock_getcpuclockid(c->pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &t), 0);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

size_t kit_process_descriptors(const struct kit_process *c)
{
    char path[64];
    size_t n = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)c->pid);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

void kit_process_reset_peak(const struct kit_process *c)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/clear_refs", (int)c->pid);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("5", f) >= 0);
    assert_int_equal(fclose(f), 0);
}
