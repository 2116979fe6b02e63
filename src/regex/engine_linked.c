#include "regex/engine.h"

tc_regex_engine_fn tc_regex_engine_find(char *why, size_t why_bytes)
{
    (void)why, (void)why_bytes;
    return torc_regex_engine;
}
