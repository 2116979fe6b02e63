#include "runtime/process.h"

#include "runtime/runtime_internal.h"

static _Atomic(torc_runtime *) default_runtime;

bool tc_process_admit(struct torc_runtime_options *options TC_UNUSED, torc_error **error TC_UNUSED)
{
    return true;
}

bool tc_process_keeps(const torc_runtime *rt)
{
    return rt == atomic_load(&default_runtime);
}

torc_runtime *tc_process_runtime(torc_error **error)
{
    torc_runtime *have = atomic_load(&default_runtime);
    while (!have || tc_loop_forked(have->loop)) {
        torc_runtime *made = torc_runtime_new(NULL, error);
        if (!made)
            return NULL;
        if (atomic_compare_exchange_strong(&default_runtime, &have, made))
            return made;
        torc_runtime_free(made);
    }
    return have;
}

int torc_runtime_default_free(void)
{
    torc_runtime *rt = atomic_load(&default_runtime);
    if (rt && tc_loop_forked(rt->loop))
        return TORC_EFORK;
    if (rt && tc_loop_in_turn(rt->loop))
        return TORC_EDEADLK;
    return rt && atomic_compare_exchange_strong(&default_runtime, &rt, NULL) ? torc_runtime_free(rt) : 0;
}
