/* The member "torc.limits" of the bootstrap. Each value must be at least 1, and at most the maximum below. A limit that
 * is not set stays 0; the code that applies the limit then takes the default. */
#include "xds/bootstrap/limits.h"

#include "base/json.h"

void tc_xds_limits_parse(const json_t *bootstrap, struct tc_xds_limits *out, struct tc_validation_errors *f)
{
    const struct {
        const char *name;
        uint64_t *value, max;
    } known[] = {
        {"ads_message_bytes", &out->ads_message_bytes, UINT64_C(1) << 30},
        {"decode_bytes", &out->decode_bytes, UINT64_C(1) << 32},
        {"held_bytes", &out->held_bytes, UINT64_C(1) << 32},
        {"resources_per_response", &out->resources_per_response, 1 << 20},
        {"eds_priorities", &out->eds_priorities, 65536},
        {"eds_localities", &out->eds_localities, 1 << 20},
        {"eds_endpoints", &out->eds_endpoints, 1 << 22},
        {"eds_drop_categories", &out->eds_drop_categories, 65536},
        {"virtual_hosts", &out->virtual_hosts, 65536},
        {"routes", &out->routes, 1 << 20},
        {"http_filters", &out->http_filters, 65536},
        {"aggregate_clusters", &out->aggregate_clusters, 65536},
        {"regex_bytes", &out->regex_bytes, 1 << 20},
        {"regex_memory_bytes", &out->regex_memory_bytes, UINT64_C(1) << 30},
        {"regexes_total_bytes", &out->regexes_total_bytes, UINT64_C(1) << 32},
    };
    const json_t *limits = NULL;
    const char *name;
    json_t *value;
    if (!tc_json_get_obj(bootstrap, "torc.limits", &limits, f))
        return;
    tc_validation_push(f, ".torc.limits");
    /* All members are Torc's own, so an unknown one is a typing error. */
    json_object_foreach((json_t *)limits, name, value)
    {
        size_t i = 0;
        while (i < TC_ARRAY_LEN(known) && strcmp(known[i].name, name) != 0)
            i++;
        if (i < TC_ARRAY_LEN(known))
            tc_validation_push(f, ".%s", name);
        else
            tc_validation_push_key(f, "", name);
        if (i == TC_ARRAY_LEN(known))
            tc_validation_add(f, "unknown limit");
        else if (!json_is_integer(value) || json_integer_value(value) < 1 ||
                 (uint64_t)json_integer_value(value) > known[i].max)
            tc_validation_add(f, "must be an integer in 1..%llu", (unsigned long long)known[i].max);
        else
            *known[i].value = (uint64_t)json_integer_value(value);
        tc_validation_pop(f);
    }
    tc_validation_pop(f);
}
