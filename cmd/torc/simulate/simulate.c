/* torc simulate: runs each policy in a world of its own, and shows the results. */
#include "simulate.h"

#include <errno.h>

#include "cli.h"
#include "commands.h"

static int run_all(const struct sim_opts *o, FILE *calls, struct sim_result *results)
{
    int rc = 0;
    for (size_t i = 0; i < o->policies.len && rc == 0; i++)
        rc = sim_run(o, &o->policies.data[i], calls, &results[i]);
    if (rc == 0 && !(o->svg && strcmp(o->svg, "-") == 0))
        sim_print(o, results);
    return rc == 0 && o->svg ? sim_write_svg(o, results) : rc;
}

/* Closes the file of --calls. Returns `rc`, or CLI_FAILED instead of 0 with the error printed if a write had failed. */
static int end_calls(FILE *calls, const struct sim_opts *o, int rc)
{
    bool earlier = ferror(calls);
    errno = 0;
    if ((fclose(calls) == 0 && !earlier) || rc != 0)
        return rc;
    return cli_fail(SIMULATE_COMMAND, "cannot write %s: %s", o->calls,
                    errno ? strerror(errno) : "an earlier write failed");
}

int cmd_simulate(int argc, char **argv)
{
    struct sim_opts o = {0};
    int rc = sim_parse(argc, argv, &o);
    struct sim_result *results = tc_calloc(o.policies.len + 1, sizeof(*results));
    FILE *calls = rc == 0 && o.calls ? fopen(o.calls, "w") : NULL;
    if (rc == 0 && o.calls && !calls)
        rc = cli_fail(SIMULATE_COMMAND, "cannot write %s: %s", o.calls, strerror(errno));
    if (rc == 0)
        rc = run_all(&o, calls, results);
    if (calls)
        rc = end_calls(calls, &o, rc);
    for (size_t i = 0; i < o.policies.len; i++)
        sim_result_fini(&results[i]);
    tc_free(results);
    sim_opts_fini(&o);
    return rc < 0 ? CLI_OK : rc;
}
