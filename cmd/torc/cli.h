/* What the subcommands share: wrong usage in one line, values of options, text for people. */
#ifndef TORC_CLI_H
#define TORC_CLI_H

#include <stdint.h>

#include "base/buf.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* Prints "torc COMMAND: message (try torc COMMAND --help)" on stderr, of a long message its beginning and end, as
 * cli_append_shown; returns CLI_USAGE. */
int cli_usage(const char *command, const char *fmt, ...) TC_PRINTF(2, 3);
/* Prints "torc COMMAND: message" on stderr, as cli_append_shown; returns CLI_FAILED. */
int cli_fail(const char *command, const char *fmt, ...) TC_PRINTF(2, 3);
/* What getopt_long's '?' and ':' mean, in one line; returns CLI_USAGE. `option` is argv[optind - 1]. */
int cli_bad_option(const char *command, int code, char **argv);

/* The value of an option that names a file: CLI_USAGE with the error printed when it is empty. */
int cli_path(const char *command, const char *option, const char *path);
/* Values of options: 0, or the usage error printed and CLI_USAGE. */
int cli_u64(const char *command, const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);
int cli_size(const char *command, const char *option, const char *text, uint64_t *out);
int cli_duration_ms(const char *command, const char *option, const char *text, uint64_t *out);
/* So many a second: bounded, so that times are computed of it without overflow. */
int cli_rate(const char *command, const char *option, const char *text, double *out);
/* -o text|json. */
int cli_output(const char *command, const char *text, bool *json);
/* A whole file ("-": standard input) of at most 64 MiB; the error is printed. It may be a FIFO, which is waited for:
 * what a shell makes of another command's output is one. */
int cli_read_file(const char *command, const char *path, struct tc_buf *out);
/* The same of a regular file alone ("-": standard input): nothing else under the name is waited for. */
int cli_read_regular(const char *command, const char *option, const char *path, struct tc_buf *out);
/* The same for PEM texts of a kind, "CERTIFICATE" or "PRIVATE KEY": a file without one is an error that names the
 * option and the file. */
int cli_read_pem(const char *command, const char *option, const char *kind, const char *path, struct tc_buf *out);

/* Writes out what was printed to standard output. False with errno when it could not be; cli_end_output says so later.
 */
bool cli_flush(void);
/* Could something not be written? Then there is nobody to work for. */
bool cli_output_lost(void);
/* The command's end: its status, or CLI_FAILED, with a line that says why, when output was lost on the way. `command`
 * may be NULL. */
int cli_end_output(const char *command, int status);
/* Standard descriptors that are closed take no place among the sockets: what is written there fails, as it should. A
 * file that may not grow is an error like a full disk. */
void cli_guard_output(void);

/* The end of a time that begins then, and the wait until a time in ms, rounded up; neither overflows. */
uint64_t cli_end_ns(uint64_t begin_ns, uint64_t duration_ms);
int cli_wait_ms(uint64_t now_ns, uint64_t until_ns);

/* Processor time of this process so far, its threads included. */
double cli_cpu_seconds(void);

/* -v: info, -vv: debug, on stderr. */
void cli_verbose(int level);
/* Colour on standard output: a terminal, and NO_COLOR is not set. */
bool cli_colour(void);
/* "412 us", "1.3 ms", "2.0 s" */
void cli_format_us(struct tc_buf *out, uint64_t us);
/* Text of others for people: control characters as \u001b, bytes that are no UTF-8 as U+FFFD each. What is JSON already
 * stays it. */
void cli_append_shown(struct tc_buf *out, const char *data, size_t len);
/* The same in `scratch`, in place of what it held; valid until that changes. */
const char *cli_shown(struct tc_buf *scratch, const char *text);
/* A JSON string literal; control characters and bytes that are no UTF-8 as above. */
void cli_json_string(struct tc_buf *out, const char *data, size_t len);

#endif
