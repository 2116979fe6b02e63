/* Prepares argv for getopt_long: gives long options their second dash, and rejects unknown ones and those of other
 * tools. */
#include "cli_options.h"

#include <string.h>

#include "cli.h"

static const struct option *find_option(const struct option *options, struct tc_slice name)
{
    for (; options->name; options++)
        if (tc_slice_eq_str(name, options->name))
            return options;
    return NULL;
}

/* Returns true if a cluster of letters, such as "vd" of "-vd", takes the next argument as a value. */
static bool cluster_takes_next(const char *cluster, const char *letters)
{
    for (; *cluster; cluster++) {
        const char *at = *cluster == ':' ? NULL : strchr(letters, *cluster);
        if (at && at[1] == ':')
            return !cluster[1];
    }
    return false;
}

/* Returns true if `text`, an option without its dashes, is the option `foreign`. The names are equal, or `foreign` ends
 * in a dash and `text` starts with it, or a number follows the letter `foreign`, as in "-t2". */
static bool is_foreign(const char *foreign, const char *text, bool is_long)
{
    size_t len = strlen(foreign), name_len = strcspn(text, "=");
    if (strncmp(text, foreign, len) != 0)
        return false;
    if (foreign[len - 1] == '-' || name_len == len)
        return true;
    return !is_long && len == 1 && text[1] >= '0' && text[1] <= '9';
}

/* Prints that there is no such option, and the nearest known one, of this command or of another tool. For an option of
 * another tool, its hint follows. Returns CLI_USAGE. */
static int unknown(const char *command, const char *argument, struct tc_slice name, const struct option *options,
                   const struct cli_foreign *foreign)
{
    struct cli_nearest near = {.text = name};
    const char *hint = NULL;
    for (; options->name; options++)
        cli_nearest_try(&near, options->name);
    for (; foreign && foreign->name; foreign++) {
        const char *own = near.name;
        if (strlen(foreign->name) > 2 && foreign->name[strlen(foreign->name) - 1] != '-')
            cli_nearest_try(&near, foreign->name);
        if (near.name != own)
            hint = foreign->hint;
    }
    if (!near.name)
        return cli_usage(command, "unknown option '%s'", argument);
    return cli_usage(command, "unknown option '%s': did you mean --%s?%s%s", argument, near.name, hint ? " " : "",
                     hint ? hint : "");
}

int cli_long_options(const char *command, int argc, char **argv, const char *letters, const struct option *options,
                     const struct cli_foreign *foreign)
{
    opterr = 0;
    optind = 1;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool is_long = strncmp(argv[i], "--", 2) == 0;
        if (argv[i][0] != '-' || !argv[i][1])
            continue;
        const char *text = argv[i] + (is_long ? 2 : 1);
        struct tc_slice name = tc_slice_of(text, strcspn(text, "="));
        const struct option *option = is_long || name.len > 1 ? find_option(options, name) : NULL;
        for (const struct cli_foreign *f = foreign; f && f->name && !option; f++)
            if (is_foreign(f->name, text, is_long))
                return cli_usage(command, "option '%s': %s", argv[i], f->hint);
        if (!option && is_long)
            return unknown(command, argv[i], name, options, foreign);
        if (option && !is_long)
            argv[i] = tc_asprintf("-%s", argv[i]);
        i += option ? option->has_arg == required_argument && !text[name.len] : cluster_takes_next(text, letters);
    }
    return 0;
}
