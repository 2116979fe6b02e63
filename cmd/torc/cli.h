/* Functions that every subcommand uses: usage errors in one line, values of options, output, text for people. */
#ifndef TORC_CLI_H
#define TORC_CLI_H

#include <stdint.h>

#include <torc/error.h>

#include "base/buf.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* Prints "torc COMMAND: message (try torc COMMAND --help)" on stderr and returns CLI_USAGE. Prints only the beginning
 * and the end of a long message, escaped as cli_append_shown does. */
int cli_usage(const char *command, const char *fmt, ...) TC_PRINTF(2, 3);
/* Prints "torc COMMAND: message" on stderr, shown as cli_append_shown does. Returns CLI_FAILED. */
int cli_fail(const char *command, const char *fmt, ...) TC_PRINTF(2, 3);
/* cli_fail with the text of an error, which it frees. */
int cli_fail_error(const char *command, torc_error *error);
/* The `warn` callback of a tc_resource_set. arg: the command's name. */
void cli_left_out(void *arg, const char *file, const char *text);
/* Prints, in one line, the error for which getopt_long returned `code`, '?' or ':'. Called right after getopt_long,
 * whose optind and optopt it reads. Returns CLI_USAGE. */
int cli_bad_option(const char *command, int code, char **argv);

/* Finds the known name that is nearest to a text that is not a known name. The caller sets `text`, tries all names, and
 * reads `name`: NULL if none is near. */
struct cli_nearest {
    struct tc_slice text;
    const char *name; /* borrowed */
    size_t distance;
};
void cli_nearest_try(struct cli_nearest *n, const char *name);

/* Checks the value of an option that names a file: an empty path is a usage error. */
int cli_path(const char *command, const char *option, const char *path);
/* Values of options. Return 0, or CLI_USAGE with the error printed. */
int cli_u64(const char *command, const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);
int cli_size(const char *command, const char *option, const char *text, uint64_t *out);
int cli_duration_ns(const char *command, const char *option, const char *text, uint64_t *out);
int cli_duration_ms(const char *command, const char *option, const char *text, uint64_t *out);
/* cli_duration_ms that also takes a bare number, of seconds. */
int cli_seconds_ms(const char *command, const char *option, const char *text, uint64_t *out);
/* Reads a rate in calls per second, bounded so that times computed from it cannot overflow. */
int cli_rate(const char *command, const char *option, const char *text, double *out);
/* Parses -o text|json. */
int cli_output(const char *command, const char *text, bool *json);
/* The readers append to *out. They return 0, or an exit status with the error printed.
 *
 * Reads a whole file ("-": standard input) of at most 64 MiB. Waits for a FIFO: a shell's <(command) is one. */
int cli_read_file(const char *command, const char *path, struct tc_buf *out);
/* Reads a regular file ("-": standard input). Any other kind of file is an error: nothing is waited for. */
int cli_read_regular(const char *command, const char *option, const char *path, struct tc_buf *out);
/* Reads a file that must hold PEM of this kind, "CERTIFICATE" or "PRIVATE KEY". The error names the option and the
 * file. */
int cli_read_pem(const char *command, const char *option, const char *kind, const char *path, struct tc_buf *out);
/* Writes a file ("-": standard output). Returns 0, or CLI_FAILED with the error printed. */
int cli_write_file(const char *command, const char *path, struct tc_slice text);

/* Prints the text of --help. Returns -1, by which parsers of options tell their callers to end with CLI_OK. */
int cli_help(const char *text);
/* Flushes standard output. Returns false with errno if that failed; cli_end_output reports it. */
bool cli_flush(void);
/* Returns true if output could not be written: the work has lost its reader. */
bool cli_output_lost(void);
/* Flushes standard output and returns the exit status of a command: `status`, but CLI_FAILED instead of CLI_OK if
 * output was lost, with a line that says why. If the reader of a pipe went away, the line is left out. `command` may be
 * NULL. */
int cli_end_output(const char *command, int status);
/* Opens standard descriptors that are closed, so that no socket takes their numbers and writes to them fail as they
 * should; ends the process if it cannot. Ignores SIGPIPE and SIGXFSZ: a file that may not grow is an error like a full
 * disk. */
void cli_guard_output(void);

/* Return the end of a duration, and the wait until a time in ms, rounded up. Neither overflows. */
uint64_t cli_end_ns(uint64_t begin_ns, uint64_t duration_ms);
int cli_wait_ms(uint64_t now_ns, uint64_t until_ns);

/* Returns the CPU time of all threads of this process, in seconds. */
double cli_cpu_seconds(void);

/* Logs to stderr. level: how many -v there were: 1 info, 2 debug, more trace; 0 changes nothing. */
void cli_verbose(int level);
/* Returns true if standard output is a terminal and NO_COLOR is not set, or empty. */
bool cli_colour(void);
/* Appends a time as "412 us", "1.3 ms" or "2.00 s". */
void cli_format_us(struct tc_buf *out, uint64_t us);
/* Appends foreign text for people: control characters and marks of direction as \u001b, each byte that is not UTF-8 as
 * U+FFFD. JSON stays JSON. */
void cli_append_shown(struct tc_buf *out, const char *data, size_t len);
/* Appends foreign text of several lines, each as cli_append_shown shows it. */
void cli_append_lines(struct tc_buf *out, const char *text);
/* Returns foreign text as cli_append_shown shows it, in `scratch`, whose content it replaces. Valid until `scratch`
 * changes. */
const char *cli_shown(struct tc_buf *scratch, const char *text);
/* Appends a JSON string literal: control characters as \u001b, each byte that is not UTF-8 as U+FFFD. */
void cli_json_string(struct tc_buf *out, const char *data, size_t len);
/* Appends JSON on one line, without the blanks between its parts. */
void cli_json_line(struct tc_buf *out, const char *json);
/* Appends foreign text as cli_append_shown shows it, as a quoted field of CSV (RFC 4180). */
void cli_csv_text(struct tc_buf *out, const char *text);
/* Appends foreign text as cli_append_shown shows it, for an element or an attribute of XML. */
void cli_xml_text(struct tc_buf *out, const char *text);

#endif
