/* Call credentials as such: counted, composed, by name. */
#include "creds/call.h"

#include "base/json.h"
#include "base/mem.h"
#include "creds/jwt_file.h"

struct composite {
    torc_call_credentials base;
    size_t n;
    torc_call_credentials *parts[]; /* none of them a composite */
};

void tc_call_creds_init(torc_call_credentials *c, const struct tc_call_creds_ops *ops)
{
    tc_ref_init(&c->ref);
    c->ops = ops;
}

torc_call_credentials *torc_call_credentials_ref(torc_call_credentials *c)
{
    if (c)
        tc_ref_inc(&c->ref);
    return c;
}

void torc_call_credentials_unref(torc_call_credentials *c)
{
    if (!c || !tc_ref_dec(&c->ref))
        return;
    if (c->ops) {
        c->ops->free(c);
        return;
    }
    struct composite *all = TC_CONTAINER_OF(c, struct composite, base);
    for (size_t i = 0; i < all->n; i++)
        torc_call_credentials_unref(all->parts[i]);
    tc_free(all);
}

size_t tc_call_creds_count(const torc_call_credentials *c)
{
    return c->ops ? 1 : TC_CONTAINER_OF((torc_call_credentials *)(uintptr_t)c, struct composite, base)->n;
}

torc_call_credentials *tc_call_creds_at(torc_call_credentials *c, size_t i)
{
    return c->ops ? c : TC_CONTAINER_OF(c, struct composite, base)->parts[i];
}

torc_call_credentials *torc_call_credentials_composite(torc_call_credentials *first, torc_call_credentials *second)
{
    size_t a = tc_call_creds_count(first), b = tc_call_creds_count(second);
    struct composite *c = tc_calloc(1, sizeof(*c) + (a + b) * sizeof(c->parts[0]));
    tc_call_creds_init(&c->base, NULL);
    c->n = a + b;
    for (size_t i = 0; i < c->n; i++)
        c->parts[i] = torc_call_credentials_ref(i < a ? tc_call_creds_at(first, i) : tc_call_creds_at(second, i - a));
    return &c->base;
}

/* A97 */
static torc_call_credentials *make_jwt_file(const json_t *config, struct tc_faults *faults)
{
    const char *path = NULL;
    if (!tc_json_get_str(config, "jwt_token_file", &path, faults) || !path[0]) {
        if (!tc_faults_any(faults))
            tc_faults_add(faults, "jwt_token_file must name a file");
        return NULL;
    }
    return tc_call_creds_jwt_file(path);
}

bool tc_call_creds_type_supported(const char *type)
{
    return strcmp(type, "jwt_token_file") == 0;
}

torc_call_credentials *tc_call_creds_from_config(const char *type, const char *config_json, char **why)
{
    torc_call_credentials *c = NULL;
    char *reason = NULL;
    struct tc_faults faults;
    tc_faults_init(&faults);
    json_t *config = config_json ? tc_json_parse(tc_slice_str(config_json), &reason) : json_object();
    tc_faults_push(&faults, "config");
    if (!json_is_object(config))
        tc_faults_add(&faults, "%s", reason ? reason : "must be an object");
    else if (!tc_call_creds_type_supported(type))
        tc_faults_add(&faults, "unknown type");
    else
        c = make_jwt_file(config, &faults);
    if (!c && why)
        *why = tc_asprintf("call credentials \"%s\": %s", type, tc_faults_text(&faults));
    tc_faults_fini(&faults);
    tc_free(reason);
    json_decref(config);
    return c;
}
