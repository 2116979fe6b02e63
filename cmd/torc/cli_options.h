/* Long options as people of other tools write them, for getopt_long. */
#ifndef TORC_CLI_OPTIONS_H
#define TORC_CLI_OPTIONS_H

#include <getopt.h>

/* An option of another tool, and how to say it here. A name that ends in a dash is that of all options that begin so. A
 * table ends with a NULL name. */
struct cli_foreign {
    const char *name, *hint;
};

/* Prepares getopt_long: it starts at the first argument, and prints nothing. Rewrites argv for it, with the `letters`
 * and `options` that getopt_long gets: "-name" becomes "--name" where the table has such a long option. Unknown long
 * options, which abbreviations are too, and the options of other tools (`foreign`, may be NULL) are usage errors.
 * Values of options and everything behind "--" stay as they are. Returns 0, or CLI_USAGE with the error printed. The
 * texts that it puts into argv live as long as the process. */
int cli_long_options(const char *command, int argc, char **argv, const char *letters, const struct option *options,
                     const struct cli_foreign *foreign);

#endif
