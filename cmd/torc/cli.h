/* Functions that the subcommands share: errors, values of options, files, standard output, text for people
 * (cli_text.c), the nearest known name (cli_nearest.c). Main thread only. */
#ifndef TORC_CLI_H
#define TORC_CLI_H

#include <stdint.h>

#include <torc/error.h>

#include "base/buf.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* Prints "torc COMMAND: message (try 'torc COMMAND --help')" on stderr and returns CLI_USAGE. The message is escaped by
 * cli_append_shown. Of a long message, only the beginning and the end are printed. */
int cli_usage(const char *command, const char *fmt, ...) TC_PRINTF(2, 3);
/* Prints "torc COMMAND: message" on stderr, escaped by cli_append_shown. Returns CLI_FAILED. */
int cli_fail(const char *command, const char *fmt, ...) TC_PRINTF(2, 3);
/* cli_fail with the text of an error, which it frees. */
int cli_fail_error(const char *command, torc_error *error);
/* The `warn` callback of a tc_resource_set: prints which fields of the file were left out. arg: the command's name.
 * `file` is not NULL. */
void cli_left_out(void *arg, const char *file, const char *text);
/* Prints the usage error behind a '?' or ':' (`code`) of getopt_long. Called right after getopt_long: it reads optind
 * and optopt. Returns CLI_USAGE. */
int cli_bad_option(const char *command, int code, char **argv);

/* Finds the known name nearest to an unknown one (`text`). The caller sets `text`, calls cli_nearest_try for each known
 * name, and reads `name`: NULL if none is near. */
struct cli_nearest {
    struct tc_slice text; /* borrowed */
    const char *name;     /* borrowed */
    size_t distance;      /* how many edits make `name` of `text`; 1 if `name` begins with `text` */
};
void cli_nearest_try(struct cli_nearest *n, const char *name);

/* Checks the value of an option that names a file. Returns 0, or CLI_USAGE with the error printed if it is empty. */
int cli_path(const char *command, const char *option, const char *path);
/* Parse values of options. Return 0, or CLI_USAGE with the error printed and *out unchanged. cli_u64 accepts `min` and
 * `max`. cli_duration_ms rounds up. */
int cli_u64(const char *command, const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);
int cli_size(const char *command, const char *option, const char *text, uint64_t *out);
int cli_duration_ns(const char *command, const char *option, const char *text, uint64_t *out);
int cli_duration_ms(const char *command, const char *option, const char *text, uint64_t *out);
/* Reads a duration as cli_duration_ms does, or a bare number of seconds. */
int cli_seconds_ms(const char *command, const char *option, const char *text, uint64_t *out);
/* Reads a rate in calls per second, from 0.001 to 1000000. */
int cli_rate(const char *command, const char *option, const char *text, double *out);
/* Parses the value of -o, "text" or "json". */
int cli_output(const char *command, const char *text, bool *json);

/* The functions cli_read_... append a whole file ("-": standard input) of at most 64 MiB to *out. They return 0, or an
 * exit status with the error printed; *out may then have a part of the file. */

/* Reads a file of any kind, even a FIFO: a shell's <(command) is one. */
int cli_read_file(const char *command, const char *path, struct tc_buf *out);
/* Reads a regular file. Any other kind of file is an error, since reading it could wait for ever. */
int cli_read_regular(const char *command, const char *option, const char *path, struct tc_buf *out);
/* Does cli_read_regular, but replaces the content of *out. The file must contain PEM of this kind, "CERTIFICATE" or
 * "PRIVATE KEY". */
int cli_read_pem(const char *command, const char *option, const char *kind, const char *path, struct tc_buf *out);
/* Writes a file ("-": standard output). Returns 0, or CLI_FAILED. Prints the error of a file; cli_end_output prints
 * that of standard output. */
int cli_write_file(const char *command, const char *path, struct tc_slice text);

/* Prints the text of --help. Returns -1: the parser of options returns it, and its caller ends with CLI_OK. */
int cli_help(const char *text);
/* Writes to standard output, and flushes it. Returns false with errno set if that failed; cli_end_output prints the
 * error. */
bool cli_write(struct tc_slice text);
/* Does cli_write without a text. */
bool cli_flush(void);
/* Returns true if a write to standard output has failed: a long command stops then. */
bool cli_output_lost(void);
/* Flushes standard output and returns the exit status of a command: `status`, or CLI_FAILED instead of CLI_OK if output
 * was lost. Prints why output was lost, unless the reader of a pipe has closed it. `command` may be NULL. */
int cli_end_output(const char *command, int status);
/* Opens standard descriptors that are closed, so that no socket gets their numbers; reads and writes on them still
 * fail. Exits if it cannot. Ignores SIGPIPE and SIGXFSZ, so that a closed pipe and a file that may not grow are errors
 * of write. Ends an inherited ignoring of SIGCHLD, so that waitpid tells how a child ended. */
void cli_guard_output(void);

/* Returns when a duration ends; UINT64_MAX if that overflows. */
uint64_t cli_end_ns(uint64_t begin_ns, uint64_t duration_ms);
/* Returns the milliseconds until a time, rounded up; 0 if it has passed, at most INT_MAX. */
int cli_wait_ms(uint64_t now_ns, uint64_t until_ns);

/* Returns the CPU time of all threads of this process, in seconds. */
double cli_cpu_seconds(void);

/* Sets the log level by the number of -v: 1 info, 2 debug, more trace; 0 changes nothing. */
void cli_verbose(int level);
/* Returns true if standard output is a terminal and NO_COLOR is unset or empty. */
bool cli_colour(void);
/* Appends a time as "412 us", "1.3 ms" or "2.00 s". */
void cli_format_us(struct tc_buf *out, uint64_t us);
/* Appends foreign text for people. Control characters, line separators and marks of direction become escapes such as
 * \u001b; each byte that is not UTF-8 becomes U+FFFD. JSON without tabs and line ends between its parts stays JSON. */
void cli_append_shown(struct tc_buf *out, const char *data, size_t len);
/* Appends foreign text of several lines, each escaped by cli_append_shown. */
void cli_append_lines(struct tc_buf *out, const char *text);
/* Returns foreign text escaped by cli_append_shown. The result replaces the content of `scratch` and is valid until
 * `scratch` changes. */
const char *cli_shown(struct tc_buf *scratch, const char *text);
/* Appends foreign text as a JSON string literal, escaped as cli_append_shown does. */
void cli_json_string(struct tc_buf *out, const char *data, size_t len);
/* Appends JSON on one line: without the blanks between its parts, and escaped by cli_append_shown. */
void cli_json_line(struct tc_buf *out, const char *json);
/* Appends foreign text, escaped by cli_append_shown, as a quoted CSV field (RFC 4180). */
void cli_csv_text(struct tc_buf *out, const char *text);
/* Appends foreign text, escaped by cli_append_shown, for an XML element or an attribute in double quotes. Drops U+FFFE
 * and U+FFFF. */
void cli_xml_text(struct tc_buf *out, const char *text);

#endif
