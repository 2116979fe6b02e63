/* The config of ring_hash as JSON (A42, A76):
 *
 * {"minRingSize": 1024, "maxRingSize": 4096, "requestHashHeader": "x-key"}, in camel case or in snake case. All keys
 * may be absent; the sizes here are the defaults. */
#include "lb/ring_hash/config.h"

#include <stdlib.h>
#include <strings.h>

#include "base/headers.h"
#include "base/json.h"
#include "base/mem.h"
#include "ring/ring.h"

bool tc_ring_hash_header_enabled(void)
{
    const char *v = getenv("GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY");
    return !(v && strcasecmp(v, "false") == 0);
}

struct tc_lb_config *tc_rh_config_new(const struct tc_lb_factory *factory, uint64_t min_ring_size,
                                      uint64_t max_ring_size, struct tc_slice request_hash_header)
{
    struct tc_ring_hash_config *c = TC_NEW(struct tc_ring_hash_config);
    tc_lb_config_init(&c->base, factory);
    c->min_ring_size = min_ring_size;
    c->max_ring_size = max_ring_size;
    if (request_hash_header.len && tc_ring_hash_header_enabled())
        c->request_hash_header = tc_rstr_new(request_hash_header.data, request_hash_header.len);
    return &c->base;
}

void tc_rh_config_free(struct tc_lb_config *config)
{
    tc_rstr_unref(((struct tc_ring_hash_config *)config)->request_hash_header);
    tc_free(config);
}

bool tc_rh_config_equal(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct tc_ring_hash_config *a = (const struct tc_ring_hash_config *)pa;
    const struct tc_ring_hash_config *b = (const struct tc_ring_hash_config *)pb;
    return a->min_ring_size == b->min_ring_size && a->max_ring_size == b->max_ring_size &&
           tc_rstr_eq(a->request_hash_header, b->request_hash_header);
}

/* Returns which spelling the JSON has: service configs in use have grpc-go's and gRPC C-core's. */
static const char *config_key(const json_t *json, const char *camel, const char *snake)
{
    return json_object_get(json, camel) || !json_object_get(json, snake) ? camel : snake;
}

static void config_parse_size(const json_t *json, const char *camel, const char *snake, uint64_t *out,
                              struct tc_validation_errors *errors)
{
    const char *key = config_key(json, camel, snake);
    uint64_t v;
    if (!tc_json_get_u64(json, key, UINT64_MAX, &v, errors))
        return;
    if (v < 1 || v > TC_RING_SIZE_MAX) {
        tc_validation_push(errors, ".%s", key);
        tc_validation_add(errors, "must be in the range [1, %u]", TC_RING_SIZE_MAX);
        tc_validation_pop(errors);
        return;
    }
    *out = v;
}

/* A76: the name must be valid and not binary. Writes it in lower case to `out`. */
static void config_parse_header(const json_t *json, struct tc_buf *out, struct tc_validation_errors *errors)
{
    const char *key = config_key(json, "requestHashHeader", "request_hash_header"), *name;
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

struct tc_lb_config *tc_rh_config_parse(const struct tc_lb_factory *factory, const json_t *json,
                                        const struct tc_lb_registry *registry, unsigned depth,
                                        struct tc_validation_errors *errors)
{
    (void)registry, (void)depth;
    uint64_t min = TC_RING_DEFAULT_MIN, max = TC_RING_DEFAULT_MAX;
    size_t before = errors->count;
    struct tc_buf header = {0};
    config_parse_size(json, "minRingSize", "min_ring_size", &min, errors);
    config_parse_size(json, "maxRingSize", "max_ring_size", &max, errors);
    if (errors->count == before && max < min)
        tc_validation_add_at(errors, ".maxRingSize", "must not be less than minRingSize");
    config_parse_header(json, &header, errors);
    struct tc_lb_config *config = NULL;
    if (errors->count == before)
        config = tc_rh_config_new(factory, min, max, tc_buf_slice(&header));
    tc_buf_fini(&header);
    return config;
}
