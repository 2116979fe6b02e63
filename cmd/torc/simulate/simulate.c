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
    if (calls && ((ferror(calls) | fclose(calls)) != 0) && rc == 0)
        rc = cli_fail(SIMULATE_COMMAND, "cannot write %s: %s", o.calls, strerror(errno));
    for (size_t i = 0; i < o.policies.len; i++)
        sim_result_fini(&results[i]);
    tc_free(results);
    sim_opts_fini(&o);
    return rc < 0 ? CLI_OK : rc;
}
