/* The server's side of incremental ADS. The input is a script: requests as bytes or by fields, and changes of the
 * resources. Each response has another nonce than the last, has resources as the set has them, and removes only
 * resources that the set does not have. A second push without a change sends nothing. */
#include "base/mem.h"
#include "controlplane/delta.h"
#include "fuzz.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

static const char *const types[] = {
    "type.googleapis.com/envoy.config.listener.v3.Listener",
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
    "x/y",
};
static const char *const names[] = {"a", "b", "c", "*"};

/* Owns what it points to. */
struct fixture {
    struct tc_resource_set *set; /* the present one; `change` replaces it */
    struct tc_delta *delta;
    uint64_t sent; /* responses so far */
    char *nonce;   /* of the last response; NULL before the first */
};

static void on_send(void *arg, struct tc_slice bytes)
{
    struct fixture *f = arg;
    Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *r =
        envoy__service__discovery__v3__delta_discovery_response__unpack(NULL, bytes.len, (const uint8_t *)bytes.data);
    TC_FUZZ_CHECK(r && r->type_url[0] && r->nonce[0]);
    TC_FUZZ_CHECK(!f->nonce || strcmp(r->nonce, f->nonce) != 0);
    const struct tc_set_type *t = tc_resource_set_type(f->set, tc_slice_str(r->type_url));
    for (size_t i = 0; i < r->n_resources; i++) {
        const struct tc_set_resource *have = t ? tc_set_type_find(t, tc_slice_str(r->resources[i]->name)) : NULL;
        const Google__Protobuf__Any *any = r->resources[i]->resource;
        TC_FUZZ_CHECK(have && any && r->resources[i]->version[0]);
        TC_FUZZ_CHECK(tc_slice_eq(tc_rstr_slice(have->value), tc_slice_of(any->value.data, any->value.len)));
    }
    for (size_t i = 0; i < r->n_removed_resources; i++)
        TC_FUZZ_CHECK(!t || !tc_set_type_find(t, tc_slice_str(r->removed_resources[i])));
    tc_free(f->nonce);
    f->nonce = tc_strdup(r->nonce);
    f->sent++;
    envoy__service__discovery__v3__delta_discovery_response__free_unpacked(r, NULL);
}

static const struct tc_resource_set *resources(void *arg, struct tc_slice node_id)
{
    (void)node_id;
    return ((struct fixture *)arg)->set;
}

static void deliver(struct fixture *f, struct tc_slice bytes)
{
    struct tc_status status = tc_delta_on_message(f->delta, bytes);
    TC_FUZZ_CHECK(tc_status_ok(&status) || tc_status_text(&status)[0]);
    tc_status_fini(&status);
}

/* Stores the names that the bits of `which` choose, static texts, and returns how many they are. */
static size_t choose(char **out, unsigned which)
{
    size_t n = 0;
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++)
        if (which & (1u << i))
            out[n++] = (char *)(uintptr_t)names[i];
    return n;
}

/* Delivers a request made of two bytes: type and flags, then the names subscribed to and unsubscribed from. */
static void request(struct fixture *f, struct tc_fuzz_input *in)
{
    Envoy__Service__Discovery__V3__DeltaDiscoveryRequest r =
        ENVOY__SERVICE__DISCOVERY__V3__DELTA_DISCOVERY_REQUEST__INIT;
    Envoy__Config__Core__V3__Node node = ENVOY__CONFIG__CORE__V3__NODE__INIT;
    Google__Rpc__Status detail = GOOGLE__RPC__STATUS__INIT;
    char *more[TC_ARRAY_LEN(names)], *less[TC_ARRAY_LEN(names)];
    uint8_t flags = tc_fuzz_u8(in), which = tc_fuzz_u8(in), bytes[1024];
    r.n_resource_names_subscribe = choose(more, which & 15u);
    r.resource_names_subscribe = more;
    r.n_resource_names_unsubscribe = choose(less, which >> 4);
    r.resource_names_unsubscribe = less;
    r.type_url = (char *)(uintptr_t)types[flags % TC_ARRAY_LEN(types)];
    node.id = (char *)(uintptr_t) "n";
    if (flags & 16)
        r.node = &node;
    if (flags & 32)
        r.response_nonce = flags & 64 ? (char *)(uintptr_t) "stale" : f->nonce ? f->nonce : r.response_nonce;
    if (flags & 128)
        r.error_detail = &detail;
    size_t n = envoy__service__discovery__v3__delta_discovery_request__pack(&r, bytes);
    deliver(f, tc_slice_of(bytes, n));
}

/* Puts or removes a resource, as two bytes say, and pushes. With bit 5 of the first byte there is no push: the change
 * waits for a later push or request. */
static void change(struct fixture *f, struct tc_fuzz_input *in)
{
    uint8_t what = tc_fuzz_u8(in), value = tc_fuzz_u8(in);
    struct tc_slice type = tc_slice_str(types[what % TC_ARRAY_LEN(types)]), name = tc_slice_str(names[what >> 2 & 3]);
    struct tc_resource_set *next = tc_resource_set_copy(f->set);
    if (what & 0x10)
        tc_resource_set_remove(next, type, name);
    else
        tc_resource_set_put(next, type, name, tc_slice_of(&value, value ? 1 : 0));
    tc_resource_set_version(next, f->set);
    tc_resource_set_free(f->set);
    f->set = next;
    if (what & 0x20)
        return;
    tc_delta_push(f->delta);
    uint64_t sent = f->sent;
    tc_delta_push(f->delta);
    TC_FUZZ_CHECK(f->sent == sent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tc_ads_events events = {.send = on_send, .resources = resources};
    struct tc_fuzz_input in = {data, size};
    struct fixture f = {.set = tc_resource_set_new()};
    f.delta = tc_delta_new(&events, &f);
    while (in.len) {
        uint8_t op = tc_fuzz_u8(&in) % 4;
        if (op == 0)
            deliver(&f, tc_fuzz_short(&in));
        else if (op == 1)
            change(&f, &in);
        else
            request(&f, &in);
    }
    tc_delta_free(f.delta);
    tc_resource_set_free(f.set);
    tc_free(f.nonce);
    return 0;
}
