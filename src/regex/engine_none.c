#include <stdio.h>

#include "regex/engine.h"

tc_regex_engine_fn tc_regex_engine_find(char *why, size_t why_bytes)
{
    snprintf(why, why_bytes, "Torc was built without regular expressions");
    return NULL;
}
