/* Functions that the subcommands share: errors, values of options, files, and the state of standard output.
 *
 * A function of cli.h that prints an error prints one line on stderr. It returns the exit status, so that callers write
 * `return cli_usage(...)`; only cli_left_out returns nothing.
 *
 * After a failed write to standard output, cli_end_output turns CLI_OK into CLI_FAILED. It prints the reason
 * (lost_output), unless the reader of a pipe has closed it.
 *
 * Called on the main thread only: lost_output has no lock. Texts that are passed in are borrowed for the call. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <torc/log.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/parse.h"

#define MAX_FILE_BYTES (64u * 1024u * 1024u)

/* A usage error may quote an argument of any length. A long message is cut to its first USAGE_HEAD and its last
 * USAGE_TAIL bytes. */
#define USAGE_HEAD 512
#define USAGE_TAIL 256

/* Prints an error; with a `hint` that is not NULL, prints it as a usage error, which refers to --help. */
static void complain(const char *command, const char *fmt, va_list ap, const char *hint)
{
    struct tc_buf b = {0}, shown = {0};
    tc_buf_vprintf(&b, fmt, ap);
    if (hint && b.len > USAGE_HEAD + USAGE_TAIL) {
        cli_append_shown(&shown, b.data, USAGE_HEAD);
        tc_buf_append_str(&shown, "...");
        cli_append_shown(&shown, b.data + b.len - USAGE_TAIL, USAGE_TAIL);
    } else {
        cli_append_shown(&shown, b.data, b.len);
    }
    if (hint)
        fprintf(stderr, "torc %s: %s (try 'torc %s --help')\n", command, tc_buf_cstr(&shown), command);
    else
        fprintf(stderr, "torc %s: %s\n", command, tc_buf_cstr(&shown));
    tc_buf_fini(&shown);
    tc_buf_fini(&b);
}

int cli_usage(const char *command, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    complain(command, fmt, ap, "help");
    va_end(ap);
    return CLI_USAGE;
}

int cli_fail(const char *command, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    complain(command, fmt, ap, NULL);
    va_end(ap);
    return CLI_FAILED;
}

int cli_fail_error(const char *command, torc_error *error)
{
    int rc = cli_fail(command, "%s", torc_error_text(error));
    torc_error_free(error);
    return rc;
}

void cli_left_out(void *arg, const char *file, const char *text)
{
    cli_fail(arg, "%s: left out, because Torc does not read it: %s", file, text);
}

static int lost_output; /* errno of the first failure that cli_write saw; 0: none */

bool cli_write(struct tc_slice text)
{
    if (fwrite(text.data, 1, text.len, stdout) == text.len && fflush(stdout) == 0)
        return true;
    if (!lost_output)
        lost_output = errno;
    return false;
}

int cli_help(const char *text)
{
    cli_write(tc_slice_str(text));
    return -1;
}

bool cli_flush(void)
{
    return cli_write(tc_slice_str(""));
}

bool cli_output_lost(void)
{
    return lost_output || ferror(stdout);
}

/* Called after a write failed. Returns true if standard output is a pipe that its reader has closed. If lost_output has
 * no errno, because the failed write was not cli_write's, poll tells. */
static bool reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return lost_output == EPIPE || (!lost_output && poll(&out, 1, 0) == 1 && (out.revents & POLLERR));
}

int cli_end_output(const char *command, int status)
{
    if (cli_flush() && !cli_output_lost())
        return status;
    if (!reader_is_gone()) /* `torc ... | head` ends without a message */
        fprintf(stderr, "torc%s%s: cannot write to standard output: %s\n", command ? " " : "", command ? command : "",
                lost_output ? strerror(lost_output) : "an earlier write failed");
    return status == CLI_OK ? CLI_FAILED : status;
}

void cli_guard_output(void)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe on standard output appears as a write error */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* while it is ignored, the exit status of protoc is lost */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            exit(CLI_FAILED);
}

int cli_bad_option(const char *command, int code, char **argv)
{
    const char *text = argv[optind - 1];
    if (code == ':')
        return cli_usage(command, "option '%s' needs a value", text);
    /* For a long option, optopt is the option's code. If the code is a letter, the option's name in `text` starts with
     * it. Any other letter was found in a cluster such as "-vx", and `text` may be the argument before the cluster. */
    bool is_long = strncmp(text, "--", 2) == 0 && (optopt > UCHAR_MAX || optopt == text[2]);
    if (is_long && strchr(text, '='))
        return cli_usage(command, "option '%.*s' takes no value", (int)strcspn(text, "="), text);
    return cli_usage(command, "unknown option '-%c'", optopt);
}

int cli_path(const char *command, const char *option, const char *path)
{
    return *path ? 0 : cli_usage(command, "%s: the path is empty", option);
}

int cli_u64(const char *command, const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    uint64_t v;
    if (tc_parse_u64(tc_slice_str(text), max, &v) != 0 || v < min)
        return cli_usage(command, "%s: '%s' is not a whole number from %llu to %llu", option, text,
                         (unsigned long long)min, (unsigned long long)max);
    *out = v;
    return 0;
}

/* Returns true if `text` would parse if its number were smaller. */
static bool is_too_large(const char *text, int (*parse)(struct tc_slice s, uint64_t *out))
{
    size_t digits = strspn(text, "0123456789");
    struct tc_buf small = {0};
    uint64_t v;
    tc_buf_printf(&small, "1%s", text + digits);
    bool parses = digits > 0 && parse(tc_buf_slice(&small), &v) == 0;
    tc_buf_fini(&small);
    return parses;
}

int cli_size(const char *command, const char *option, const char *text, uint64_t *out)
{
    int rc = tc_parse_size(tc_slice_str(text), out);
    if (rc != 0 && is_too_large(text, tc_parse_size))
        return cli_usage(command, "%s: '%s' is too large: at most 9000000000000000000", option, text);
    if (rc != 0)
        return cli_usage(command, "%s: '%s' is not a size such as 4194304, 64k or 4M", option, text);
    return 0;
}

static int too_long(const char *command, const char *option, const char *text)
{
    return cli_usage(command, "%s: '%s' is too long: it must be less than 2500000h", option, text);
}

int cli_duration_ns(const char *command, const char *option, const char *text, uint64_t *out)
{
    int rc = tc_parse_duration_ns(tc_slice_str(text), out);
    if (rc != 0 && is_too_large(text, tc_parse_duration_ns))
        return too_long(command, option, text);
    if (rc != 0)
        return cli_usage(command, "%s: '%s' is not a duration such as 250ms, 10s or 2m", option, text);
    return 0;
}

int cli_duration_ms(const char *command, const char *option, const char *text, uint64_t *out)
{
    uint64_t ns;
    int rc = cli_duration_ns(command, option, text, &ns);
    if (rc == 0)
        *out = (ns + 999999) / 1000000;
    return rc;
}

int cli_seconds_ms(const char *command, const char *option, const char *text, uint64_t *out)
{
    double seconds;
    if (tc_parse_double(tc_slice_str(text), &seconds) != 0 || seconds < 0)
        return cli_duration_ms(command, option, text, out);
    if (seconds >= 2500000.0 * 3600)
        return too_long(command, option, text);
    *out = (uint64_t)(seconds * 1000 + 0.999999);
    return 0;
}

int cli_rate(const char *command, const char *option, const char *text, double *out)
{
    double v;
    if (tc_parse_double(tc_slice_str(text), &v) != 0 || !(v >= 0.001 && v <= 1e6))
        return cli_usage(command, "%s: '%s' is not a number from 0.001 to 1000000", option, text);
    *out = v;
    return 0;
}

uint64_t cli_end_ns(uint64_t begin_ns, uint64_t duration_ms)
{
    return duration_ms > (UINT64_MAX - begin_ns) / TC_NS_PER_MS ? UINT64_MAX : begin_ns + duration_ms * TC_NS_PER_MS;
}

int cli_wait_ms(uint64_t now_ns, uint64_t until_ns)
{
    uint64_t ns = until_ns > now_ns ? until_ns - now_ns : 0;
    return ns > INT_MAX * TC_NS_PER_MS ? INT_MAX : (int)((ns + TC_NS_PER_MS - 1) / TC_NS_PER_MS);
}

int cli_output(const char *command, const char *text, bool *json)
{
    if (strcmp(text, "json") != 0 && strcmp(text, "text") != 0)
        return cli_usage(command, "-o: '%s' is neither text nor json", text);
    *json = text[0] == 'j';
    return 0;
}

int cli_read_file(const char *command, const char *path, struct tc_buf *out)
{
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    int rc = CLI_FAILED;
    if (fd < 0)
        return cli_fail(command, "cannot open %s: %s", path, strerror(errno));
    for (;;) {
        ssize_t n = read(fd, tc_buf_reserve(out, 65536), 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            cli_fail(command, "cannot read %s: %s", path, strerror(errno));
            break;
        }
        if (n == 0) {
            rc = 0;
            break;
        }
        out->len += (size_t)n;
        if (out->len > MAX_FILE_BYTES) {
            cli_fail(command, "%s is larger than 64 MiB", path);
            break;
        }
    }
    if (fd != STDIN_FILENO)
        close(fd);
    return rc;
}

int cli_read_regular(const char *command, const char *option, const char *path, struct tc_buf *out)
{
    char scratch[128];
    const char *why;
    if (!*path)
        return cli_path(command, option, path);
    if (strcmp(path, "-") == 0)
        return cli_read_file(command, path, out);
    if (tc_file_read(path, MAX_FILE_BYTES, out, &why, scratch) != 0)
        return cli_fail(command, "%s: cannot read %s: %s", option, path, why);
    return 0;
}

int cli_write_file(const char *command, const char *path, struct tc_slice text)
{
    if (strcmp(path, "-") == 0)
        return cli_write(text) ? 0 : CLI_FAILED; /* cli_end_output prints the error */
    FILE *f = fopen(path, "w");
    bool bad = !f || fwrite(text.data, 1, text.len, f) != text.len;
    if (f)
        bad |= fclose(f) != 0;
    return bad ? cli_fail(command, "cannot write %s: %s", path, strerror(errno)) : 0;
}

/* Returns true if the text has PEM of this kind, perhaps with a word before it, as in "-----BEGIN EC PRIVATE KEY-----".
 * Otherwise stores the label of the text's first PEM block, borrowed from the text, in *first; leaves *first unchanged
 * if the text has none. */
static bool has_pem(const char *text, const char *kind, struct tc_slice *first)
{
    static const char begin[] = "-----BEGIN ", end[] = "-----";
    size_t kind_len = strlen(kind);
    const char *at = text, *label_end;
    while ((at = strstr(at, begin)) && (label_end = strstr(at + sizeof(begin) - 1, end))) {
        struct tc_slice label = tc_slice_of(at + sizeof(begin) - 1, (size_t)(label_end - at) - sizeof(begin) + 1);
        if (label.len >= kind_len && memcmp(label_end - kind_len, kind, kind_len) == 0)
            return true;
        if (!first->data)
            *first = label;
        at = label_end;
    }
    return false;
}

int cli_read_pem(const char *command, const char *option, const char *kind, const char *path, struct tc_buf *out)
{
    tc_buf_clear(out);
    int rc = cli_read_regular(command, option, path, out);
    struct tc_slice first = {0};
    if (rc != 0 || has_pem(tc_buf_cstr(out), kind, &first))
        return rc;
    if (!first.data)
        return cli_fail(command, "%s %s: not a PEM file", option, path);
    return cli_fail(command, "%s %s: the PEM file has no %s, but a %.*s", option, path, kind,
                    (int)TC_MIN(first.len, (size_t)64), first.data);
}

void cli_verbose(int level)
{
    if (level > 0)
        torc_log_set_levels(level == 1 ? "info" : level == 2 ? "debug" : "trace");
}

bool cli_colour(void)
{
    const char *no = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no && *no);
}

void cli_format_us(struct tc_buf *out, uint64_t us)
{
    if (us < 1000)
        tc_buf_printf(out, "%llu us", (unsigned long long)us);
    else if (us < 1000000)
        tc_buf_printf(out, "%.1f ms", (double)us / 1e3);
    else
        tc_buf_printf(out, "%.2f s", (double)us / 1e6);
}

double cli_cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}
