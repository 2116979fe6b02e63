/* The config of ring_hash: from JSON, and from those who build it in code. */
#include <stdlib.h>
#include <strings.h>

#include "base/headers.h"
#include "base/json.h"
#include "base/mem.h"
#include "lb/ring.h"
#include "lb/ring_hash_set.h"

bool tc_ring_hash_header_enabled(void)
{
    const char *v = getenv("GRPC_EXPERIMENTAL_RING_HASH_SET_REQUEST_HASH_KEY");
    return !(v && strcasecmp(v, "false") == 0);
}

struct tc_lb_config *tc_ring_hash_config_new(uint64_t min_ring_size, uint64_t max_ring_size,
                                             struct tc_slice request_hash_header)
{
    struct tc_ring_hash_config *c = TC_NEW(struct tc_ring_hash_config);
    c->base.cls = &tc_ring_hash_class;
    tc_ref_init(&c->base.ref);
    c->min_ring_size = min_ring_size;
    c->max_ring_size = max_ring_size;
    if (request_hash_header.len && tc_ring_hash_header_enabled())
        c->request_hash_header = tc_rstr_new(request_hash_header.data, request_hash_header.len);
    return &c->base;
}

void tc_ring_hash_config_free(struct tc_lb_config *config)
{
    tc_rstr_unref(((struct tc_ring_hash_config *)config)->request_hash_header);
    tc_free(config);
}

bool tc_ring_hash_config_equal(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct tc_ring_hash_config *a = (const struct tc_ring_hash_config *)pa;
    const struct tc_ring_hash_config *b = (const struct tc_ring_hash_config *)pb;
    return a->min_ring_size == b->min_ring_size && a->max_ring_size == b->max_ring_size &&
           tc_rstr_eq(a->request_hash_header, b->request_hash_header);
}

/* Service configs in the field have both spellings: grpc-go's and gRPC C-core's. */
static const char *spelling(const json_t *json, const char *camel, const char *snake)
{
    return json_object_get(json, camel) || !json_object_get(json, snake) ? camel : snake;
}

static void parse_size(const json_t *json, const char *camel, const char *snake, uint64_t *out,
                       struct tc_faults *faults)
{
    const char *key = spelling(json, camel, snake);
    uint64_t v;
    if (!tc_json_get_u64(json, key, UINT64_MAX, &v, faults))
        return;
    if (v < 1 || v > TC_RING_SIZE_MAX) {
        tc_faults_push(faults, ".%s", key);
        tc_faults_add(faults, "must be in the range [1, %u]", TC_RING_SIZE_MAX);
        tc_faults_pop(faults);
        return;
    }
    *out = v;
}

/* A76: a valid name, not binary. Lower case into `out`. */
static void parse_header(const json_t *json, struct tc_buf *out, struct tc_faults *faults)
{
    const char *key = spelling(json, "requestHashHeader", "request_hash_header"), *name;
    if (!tc_ring_hash_header_enabled() || !tc_json_get_str(json, key, &name, faults) || !*name)
        return;
    for (const char *c = name; *c; c++)
        tc_buf_append_char(out, *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c);
    tc_faults_push(faults, ".%s", key);
    if (!tc_header_name_valid(tc_buf_slice(out)))
        tc_faults_add(faults, "is no valid header name");
    else if (tc_header_is_binary(tc_buf_slice(out)))
        tc_faults_add(faults, "must not be a binary header");
    tc_faults_pop(faults);
}

struct tc_lb_config *tc_ring_hash_config_parse(const struct tc_lb_class *cls, const json_t *json,
                                               const struct tc_lb_registry *registry, unsigned depth,
                                               struct tc_faults *faults)
{
    (void)cls, (void)registry, (void)depth;
    uint64_t min = TC_RING_DEFAULT_MIN, max = TC_RING_DEFAULT_MAX;
    size_t before = faults->count;
    struct tc_buf header = {0};
    parse_size(json, "minRingSize", "min_ring_size", &min, faults);
    parse_size(json, "maxRingSize", "max_ring_size", &max, faults);
    if (faults->count == before && max < min)
        tc_faults_add_at(faults, ".maxRingSize", "must not be less than minRingSize");
    parse_header(json, &header, faults);
    struct tc_lb_config *config = NULL;
    if (faults->count == before)
        config = tc_ring_hash_config_new(min, max, tc_buf_slice(&header));
    tc_buf_fini(&header);
    return config;
}
