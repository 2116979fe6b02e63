/* The server's side of state-of-the-world ADS. The input is a script: requests as bytes or by fields, and changes of
 * the resources. Each response has another nonce than the last, the set's version of its type, and resources as the set
 * has them. A second push without a change sends nothing. */
#include "base/mem.h"
#include "controlplane/ads.h"
#include "fuzz.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

static const char *const types[] = {
    "type.googleapis.com/envoy.config.listener.v3.Listener",
    "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
    "x/y",
};
static const char *const names[] = {"a", "b", "c", "d"};

/* Owns what it points to. */
struct fixture {
    struct tc_resource_set *set; /* the present one; `change` replaces it */
    struct tc_ads *ads;
    uint64_t sent; /* responses so far */
    char *nonce;   /* of the last response; NULL before the first */
    bool in_call;  /* on_send and on_request may come only while true */
};

static void on_send(void *arg, struct tc_slice bytes)
{
    struct fixture *f = arg;
    Envoy__Service__Discovery__V3__DiscoveryResponse *r =
        envoy__service__discovery__v3__discovery_response__unpack(NULL, bytes.len, (const uint8_t *)bytes.data);
    TC_FUZZ_CHECK(r && f->in_call && r->type_url[0] && r->nonce[0]);
    TC_FUZZ_CHECK(!f->nonce || strcmp(r->nonce, f->nonce) != 0);
    const struct tc_set_type *t = tc_resource_set_type(f->set, tc_slice_str(r->type_url));
    for (size_t i = 0; i < r->n_resources; i++) {
        bool found = false;
        TC_FUZZ_CHECK(strcmp(r->resources[i]->type_url, r->type_url) == 0);
        struct tc_slice value = tc_slice_of(r->resources[i]->value.data, r->resources[i]->value.len);
        for (size_t k = 0; t && k < t->resources.len; k++)
            found = found || tc_slice_eq(tc_rstr_slice(t->resources.data[k].value), value);
        TC_FUZZ_CHECK(found);
    }
    TC_FUZZ_CHECK(strcmp(r->version_info, t && t->version ? t->version->data : "0") == 0);
    tc_free(f->nonce);
    f->nonce = tc_strdup(r->nonce);
    f->sent++;
    envoy__service__discovery__v3__discovery_response__free_unpacked(r, NULL);
}

static void on_request(void *arg, const struct tc_ads_request *request)
{
    struct fixture *f = arg;
    TC_FUZZ_CHECK(f->in_call && request->type_url.len > 0);
}

static const struct tc_resource_set *resources(void *arg, struct tc_slice node_id)
{
    (void)node_id;
    return ((struct fixture *)arg)->set;
}

static void deliver(struct fixture *f, struct tc_slice bytes)
{
    f->in_call = true;
    struct tc_status status = tc_ads_on_message(f->ads, bytes);
    f->in_call = false;
    TC_FUZZ_CHECK(tc_status_ok(&status) || tc_status_text(&status)[0]);
    tc_status_fini(&status);
}

/* Delivers a request made of three bytes: the type, the names, and flags for the node, the nonce and an error. */
static void request(struct fixture *f, struct tc_fuzz_input *in)
{
    Envoy__Service__Discovery__V3__DiscoveryRequest r = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_REQUEST__INIT;
    Envoy__Config__Core__V3__Node node = ENVOY__CONFIG__CORE__V3__NODE__INIT;
    Google__Rpc__Status detail = GOOGLE__RPC__STATUS__INIT;
    char *wanted[8];
    uint8_t type = tc_fuzz_u8(in), which = tc_fuzz_u8(in), flags = tc_fuzz_u8(in), bytes[1024];
    for (size_t i = 0; i < TC_ARRAY_LEN(wanted); i++)
        if (which & (1u << i))
            wanted[r.n_resource_names++] = (char *)(uintptr_t)names[i % TC_ARRAY_LEN(names)];
    r.resource_names = wanted;
    r.type_url = (char *)(uintptr_t)types[type % TC_ARRAY_LEN(types)];
    node.id = (char *)(uintptr_t) "n";
    if (flags & 1)
        r.node = &node;
    if (flags & 2)
        r.response_nonce = flags & 4 ? (char *)(uintptr_t) "stale" : f->nonce ? f->nonce : r.response_nonce;
    detail.message = (char *)(uintptr_t) "refused";
    if (flags & 8)
        r.error_detail = &detail;
    size_t n = envoy__service__discovery__v3__discovery_request__pack(&r, bytes);
    deliver(f, tc_slice_of(bytes, n));
}

/* Puts or removes one resource and, unless 0x20 is set, pushes. Two bytes: the first has the type (bits 0, 1), the name
 * (bits 2, 3), 0x10 for a removal and 0x20; the second is the resource's value (0: an empty value). */
static void change(struct fixture *f, struct tc_fuzz_input *in)
{
    uint8_t what = tc_fuzz_u8(in), value = tc_fuzz_u8(in);
    struct tc_slice type = tc_slice_str(types[what % TC_ARRAY_LEN(types)]), name = tc_slice_str(names[(what >> 2) % 4]);
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
    f->in_call = true;
    tc_ads_push(f->ads);
    uint64_t sent = f->sent;
    tc_ads_push(f->ads);
    f->in_call = false;
    TC_FUZZ_CHECK(f->sent == sent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tc_ads_events events = {on_send, on_request, resources};
    struct tc_fuzz_input in = {data, size};
    struct fixture f = {.set = tc_resource_set_new()};
    f.ads = tc_ads_new(&events, &f);
    while (in.len) {
        uint8_t op = tc_fuzz_u8(&in) % 4;
        if (op == 0)
            deliver(&f, tc_fuzz_short(&in));
        else if (op == 1)
            change(&f, &in);
        else
            request(&f, &in);
    }
    tc_ads_free(f.ads);
    tc_resource_set_free(f.set);
    tc_free(f.nonce);
    return 0;
}
