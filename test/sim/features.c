#include <string.h>

#include "sim/workload.h"

const char *const sim_feature_names[SIM_FEATURE_ALL] = {
#define X(name, text) text,
    SIM_FEATURES(X)
#undef X
};

bool sim_features_parse(const char *list, uint64_t *bits)
{
    while (*list) {
        size_t len = strcspn(list, ",");
        int f = 0;
        while (f < SIM_FEATURE_ALL &&
               (strlen(sim_feature_names[f]) != len || strncmp(sim_feature_names[f], list, len) != 0))
            f++;
        if (f == SIM_FEATURE_ALL)
            return false;
        *bits |= UINT64_C(1) << f;
        list += len + (list[len] == ',');
    }
    return true;
}

void sim_features_print(FILE *out, const char *before, uint64_t bits)
{
    for (int f = 0; f < SIM_FEATURE_ALL; f++)
        if ((bits >> f) & 1) {
            fprintf(out, "%s%s", before, sim_feature_names[f]);
            before = ",";
        }
}
