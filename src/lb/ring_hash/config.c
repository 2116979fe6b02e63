/* The configs as JSON, in camel case or in snake case. All keys may be absent. The first two lines show the defaults.
 * Without the keys of the third line the hash comes with the pick, endpoints are hashed by hash_key or address, and
 * loads do not count.
 *
 *     ring_hash  {"minRingSize": 1024, "maxRingSize": 4096, ...}    (A42)
 *     maglev     {"tableSize": 65537, "localityWeighted": false, ...}
 *     both       {"requestHashHeader": "x-key" (A76), "useHostnameForHashing": true, "hashBalanceFactor": 125} */
#include "lb/ring_hash/config.h"

#include <stdlib.h>
#include <strings.h>

#include "base/headers.h"
#include "base/json.h"
#include "base/mem.h"
#include "ring/maglev.h"

bool tc_ring_hash_header_enabled(void)
{
    const char *v = getenv("GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY");
    return !(v && strcasecmp(v, "false") == 0);
}

struct tc_ring_hash_config *tc_rh_config_new(const struct tc_lb_factory *factory, struct tc_slice request_hash_header)
{
    struct tc_ring_hash_config *c = TC_NEW(struct tc_ring_hash_config);
    tc_lb_config_init(&c->base, factory);
    c->min_ring_size = TC_RING_DEFAULT_MIN;
    c->max_ring_size = TC_RING_DEFAULT_MAX;
    if (request_hash_header.len && tc_ring_hash_header_enabled())
        c->request_hash_header = tc_rstr_new(request_hash_header.data, request_hash_header.len);
    return c;
}

void tc_rh_config_free(struct tc_lb_config *config)
{
    tc_rstr_unref(((struct tc_ring_hash_config *)config)->request_hash_header);
    tc_free(config);
}

bool tc_rh_config_same_ring(const struct tc_ring_hash_config *a, const struct tc_ring_hash_config *b)
{
    return a->min_ring_size == b->min_ring_size && a->max_ring_size == b->max_ring_size &&
           a->table_size == b->table_size && a->locality_weighted == b->locality_weighted &&
           a->use_hostname == b->use_hostname;
}

bool tc_rh_config_equal(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct tc_ring_hash_config *a = (const struct tc_ring_hash_config *)pa;
    const struct tc_ring_hash_config *b = (const struct tc_ring_hash_config *)pb;
    return tc_rh_config_same_ring(a, b) && a->balance_factor == b->balance_factor &&
           tc_rstr_eq(a->request_hash_header, b->request_hash_header);
}

static void config_parse_size(const json_t *json, const char *camel, const char *snake, uint64_t *out,
                              struct tc_validation_errors *errors)
{
    tc_json_get_u64_in(json, tc_json_key(json, camel, snake), 1, TC_RING_SIZE_MAX, out, errors);
}

/* A76: the name must be valid and not binary. Writes it in lower case to `out`. */
static void config_parse_header(const json_t *json, struct tc_buf *out, struct tc_validation_errors *errors)
{
    const char *key = tc_json_key(json, "requestHashHeader", "request_hash_header"), *name;
    if (!tc_ring_hash_header_enabled() || !tc_json_get_str(json, key, &name, errors) || !*name)
        return;
    for (const char *c = name; *c; c++)
        tc_buf_append_char(out, *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c);
    tc_validation_push(errors, ".%s", key);
    if (!tc_header_name_valid(tc_buf_slice(out)))
        tc_validation_add(errors, "is not a valid header name");
    else if (tc_header_is_binary(tc_buf_slice(out)))
        tc_validation_add(errors, "must not be a binary header");
    tc_validation_pop(errors);
}

/* Parses what both policies have, and makes the config of it. Returns NULL if there are more errors than `before`. */
static struct tc_ring_hash_config *config_parse_common(const struct tc_lb_factory *factory, const json_t *json,
                                                       size_t before, struct tc_validation_errors *errors)
{
    bool use_hostname = false;
    uint64_t factor = 0;
    struct tc_buf header = {0};
    const char *key = tc_json_key(json, "hashBalanceFactor", "hash_balance_factor");
    tc_json_get_u64_in(json, key, TC_RH_BALANCE_MIN, UINT32_MAX, &factor, errors);
    tc_json_get_bool(json, tc_json_key(json, "useHostnameForHashing", "use_hostname_for_hashing"), &use_hostname,
                     errors);
    config_parse_header(json, &header, errors);
    struct tc_ring_hash_config *c = NULL;
    if (errors->count == before) {
        c = tc_rh_config_new(factory, tc_buf_slice(&header));
        c->use_hostname = use_hostname;
        c->balance_factor = (uint32_t)factor;
    }
    tc_buf_fini(&header);
    return c;
}

struct tc_lb_config *tc_rh_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                        const struct tc_lb_registry *registry, unsigned depth,
                                        struct tc_validation_errors *errors)
{
    (void)registry, (void)depth;
    uint64_t min = TC_RING_DEFAULT_MIN, max = TC_RING_DEFAULT_MAX;
    size_t before = errors->count;
    config_parse_size(json, "minRingSize", "min_ring_size", &min, errors);
    config_parse_size(json, "maxRingSize", "max_ring_size", &max, errors);
    if (errors->count == before && max < min)
        tc_validation_add_member(errors, tc_json_key(json, "maxRingSize", "max_ring_size"), "must not be less than %s",
                                 tc_json_key(json, "minRingSize", "min_ring_size"));
    struct tc_ring_hash_config *c = config_parse_common(factory, json, before, errors);
    if (c) {
        c->min_ring_size = min;
        c->max_ring_size = max;
    }
    return (struct tc_lb_config *)c;
}

struct tc_lb_config *tc_maglev_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                            const struct tc_lb_registry *registry, unsigned depth,
                                            struct tc_validation_errors *errors)
{
    (void)registry, (void)depth;
    uint64_t size = TC_MAGLEV_SIZE_DEFAULT;
    bool locality_weighted = false;
    size_t before = errors->count;
    const char *key = tc_json_key(json, "tableSize", "table_size");
    if (tc_json_get_u64_in(json, key, 2, TC_MAGLEV_SIZE_MAX, &size, errors) && !tc_maglev_size_valid(size))
        tc_validation_add_member(errors, key, TC_MAGLEV_SIZE_REFUSED);
    tc_json_get_bool(json, tc_json_key(json, "localityWeighted", "locality_weighted"), &locality_weighted, errors);
    struct tc_ring_hash_config *c = config_parse_common(factory, json, before, errors);
    if (c) {
        c->table_size = (uint32_t)size;
        c->locality_weighted = locality_weighted;
    }
    return (struct tc_lb_config *)c;
}
