/* The process as a world has it, instead of src/runtime/process.c. The world drives every runtime, that of an xDS
 * domain and the default one included, so the mode of each becomes TORC_RUNTIME_CALLER. */
#include "runtime/process.h"

#include "base/status.h"
#include "testing/process.h"
#include "testing/world.h"

static torc_runtime *default_runtime;
static bool ending; /* inside tc_process_end */

bool tc_process_admit(struct torc_runtime_options *options, torc_error **error)
{
    if (!tc_world_begun() || ending)
        return tc_error_set(error, TORC_ESTATE, TORC_LAYER_API,
                            ending ? "the world is ending"
                                   : "there is no world: with libtorc-testing, torc_testing_new comes first");
    options->mode = TORC_RUNTIME_CALLER;
    return true;
}

bool tc_process_keeps(const torc_runtime *rt)
{
    return rt == default_runtime;
}

torc_runtime *tc_process_runtime(torc_error **error)
{
    if (!default_runtime)
        default_runtime = torc_runtime_new(NULL, error);
    return default_runtime;
}

int torc_runtime_default_free(void)
{
    torc_runtime *rt = default_runtime;
    default_runtime = NULL;
    int rc = torc_runtime_free(rt);
    if (rc != 0)
        default_runtime = rt;
    return rc;
}

void tc_process_end(void)
{
    ending = true;
    torc_runtime_default_free();
    ending = false;
}

bool tc_process_has_default(void)
{
    return default_runtime != NULL;
}
