/* Prepares argv for getopt_long: long options with one dash, and options of other tools. */
#ifndef TORC_CLI_OPTIONS_H
#define TORC_CLI_OPTIONS_H

#include <getopt.h>

/* An option of another tool, and what to use instead. A name that ends in a dash stands for all options that start with
 * it. A table ends with a NULL name. */
struct cli_foreign {
    const char *name, *hint;
};

/* Call it before getopt_long, with the same `letters` and `options`. It resets optind and makes getopt_long print
 * nothing. It changes "-name" in argv to "--name" if `options` has the long option; the new text is never freed.
 * Unknown and abbreviated long options are usage errors. So is an option in `foreign` (may be NULL), unless `options`
 * has a long option of that name. Values of options and everything after "--" stay unchanged. Returns 0, or CLI_USAGE
 * with the error printed. */
int cli_long_options(const char *command, int argc, char **argv, const char *letters, const struct option *options,
                     const struct cli_foreign *foreign);

#endif
