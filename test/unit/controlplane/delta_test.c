/* The server side of an incremental ADS stream (controlplane/delta.h), without a connection.
 *
 * `request` packs a DeltaDiscoveryRequest of the node "n1" and passes it to the stream. `put` makes the next resource
 * set (kits/resource_set.h) and pushes. on_send writes each response into `last`, in words; the values of resources are
 * plain texts, not messages. Nonces count the responses of the stream, of any type, from 1. After a response nothing of
 * its type is pushed until a request with the response's nonce comes (`ack`). A subscription is answered at once. One
 * thread. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "controlplane/delta.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"
#include "support/cmocka.h"
#include "support/kits/resource_set.h"

#define CLUSTER "type.googleapis.com/envoy.config.cluster.v3.Cluster"
#define ENDPOINTS "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest delta_request;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryResponse delta_response;

struct fixture {
    struct kit_resource_set k;
    struct tc_delta *delta;
    struct tc_buf last, view; /* last: the last response, "nonce +name=value -removed"; view: of expect_view */
    char version[32];         /* of the last resource sent */
    size_t last_bytes;        /* of the last response */
    int sent, errors;
};

static void on_send(void *arg, struct tc_slice bytes)
{
    struct fixture *f = arg;
    delta_response *r =
        envoy__service__discovery__v3__delta_discovery_response__unpack(NULL, bytes.len, (const uint8_t *)bytes.data);
    assert_non_null(r);
    f->sent++;
    f->last_bytes = bytes.len;
    tc_buf_clear(&f->last);
    tc_buf_append_str(&f->last, r->nonce);
    for (size_t i = 0; i < r->n_resources; i++) {
        const Google__Protobuf__Any *any = r->resources[i]->resource;
        assert_string_equal(any->type_url, r->type_url);
        tc_buf_printf(&f->last, " +%s=%.*s", r->resources[i]->name, (int)any->value.len, (const char *)any->value.data);
        snprintf(f->version, sizeof(f->version), "%s", r->resources[i]->version);
    }
    for (size_t i = 0; i < r->n_removed_resources; i++)
        tc_buf_printf(&f->last, " -%s", r->removed_resources[i]);
    envoy__service__discovery__v3__delta_discovery_response__free_unpacked(r, NULL);
}

static void on_request(void *arg, const struct tc_ads_request *request)
{
    struct fixture *f = arg;
    assert_true(request->delta);
    f->errors += request->has_error;
}

static const struct tc_resource_set *resources(void *arg, struct tc_slice node_id)
{
    struct fixture *f = arg;
    return kit_resource_set_of(&f->k, node_id);
}

static const struct tc_ads_events events = {on_send, on_request, resources};

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    kit_resource_set_init(&f->k);
    f->delta = tc_delta_new(&events, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tc_delta_free(f->delta);
    kit_resource_set_fini(&f->k);
    tc_buf_fini(&f->last);
    tc_buf_fini(&f->view);
    tc_free(f);
    return 0;
}

static void reconnect(struct fixture *f)
{
    tc_delta_free(f->delta);
    f->delta = tc_delta_new(&events, f);
}

/* Puts a resource, or removes it if the value is NULL, and pushes. */
static void put(struct fixture *f, const char *type, const char *name, const char *value)
{
    kit_resource_set_put(&f->k, type, name, value);
    tc_delta_push(f->delta);
}

/* Describes a request: names separated by commas, initial versions as name=version separated by commas, at most 4 of
 * each. NULL: none. error: the text of a NACK. */
struct ask {
    const char *type, *subscribe, *unsubscribe, *initial, *nonce, *error;
};

/* Cuts the text at its commas, in place. Stores the parts, at most `max`, in `out`, borrowed from the text. Returns how
 * many there are: 0 for an empty text. */
static size_t split(char *text, char **out, size_t max)
{
    size_t n = 0;
    for (char *at = text; at && *at;) {
        assert_true(n < max);
        out[n++] = at;
        at = strchr(at, ',');
        if (at)
            *at++ = '\0';
    }
    return n;
}

static void request(struct fixture *f, struct ask ask)
{
    delta_request r = ENVOY__SERVICE__DISCOVERY__V3__DELTA_DISCOVERY_REQUEST__INIT;
    Envoy__Config__Core__V3__Node node = ENVOY__CONFIG__CORE__V3__NODE__INIT;
    Google__Rpc__Status detail = GOOGLE__RPC__STATUS__INIT;
    Envoy__Service__Discovery__V3__DeltaDiscoveryRequest__InitialResourceVersionsEntry entries[4], *list[4];
    char *add[4], *drop[4], *initial[4];
    char *text[] = {tc_strdup(ask.subscribe ? ask.subscribe : ""), tc_strdup(ask.unsubscribe ? ask.unsubscribe : ""),
                    tc_strdup(ask.initial ? ask.initial : "")};
    uint8_t bytes[1024];
    node.id = (char *)(uintptr_t) "n1";
    r.node = &node;
    r.type_url = (char *)(uintptr_t)ask.type;
    r.response_nonce = (char *)(uintptr_t)(ask.nonce ? ask.nonce : "");
    r.n_resource_names_subscribe = split(text[0], add, 4);
    r.resource_names_subscribe = add;
    r.n_resource_names_unsubscribe = split(text[1], drop, 4);
    r.resource_names_unsubscribe = drop;
    r.n_initial_resource_versions = split(text[2], initial, 4);
    r.initial_resource_versions = list;
    for (size_t i = 0; i < r.n_initial_resource_versions; i++) {
        envoy__service__discovery__v3__delta_discovery_request__initial_resource_versions_entry__init(&entries[i]);
        entries[i].key = initial[i];
        entries[i].value = strchr(initial[i], '=') + 1;
        entries[i].value[-1] = '\0';
        list[i] = &entries[i];
    }
    if (ask.error) {
        detail.code = 3;
        detail.message = (char *)(uintptr_t)ask.error;
        r.error_detail = &detail;
    }
    size_t n = envoy__service__discovery__v3__delta_discovery_request__pack(&r, bytes);
    struct tc_status s = tc_delta_on_message(f->delta, tc_slice_of(bytes, n));
    assert_true(tc_status_ok(&s));
    for (size_t i = 0; i < TC_ARRAY_LEN(text); i++)
        tc_free(text[i]);
}

static void ack(struct fixture *f, const char *type, const char *nonce)
{
    request(f, (struct ask){type, .nonce = nonce});
}

/* Expects that `sent` responses were sent since the start of the test, the last of them with this text. */
static void expect(struct fixture *f, int sent, const char *text)
{
    assert_int_equal(f->sent, sent);
    assert_string_equal(tc_buf_cstr(&f->last), text);
}

static void on_served(void *arg, const struct tc_served *s)
{
    static const char *const states[] = {"", "asked", "sent", "acked", "nacked", "absent"};
    struct fixture *f = arg;
    tc_buf_printf(&f->view, "%.*s:%s%.*s ", (int)s->name.len, s->name.data, states[s->state], (int)s->error.len,
                  s->error.data ? s->error.data : "");
}

/* Expects this state of the stream's resources: "NAME:STATE" for each, behind it the text of a NACK, then a space. */
static void expect_view(struct fixture *f, const char *text)
{
    tc_buf_clear(&f->view);
    tc_delta_view(f->delta, on_served, f);
    assert_string_equal(tc_buf_cstr(&f->view), text);
}

static void test_only_what_changed(void **state)
{
    struct fixture *f = *state;
    put(f, ENDPOINTS, "a", "A1");
    put(f, ENDPOINTS, "b", "B1");
    put(f, ENDPOINTS, "c", "C1");
    assert_int_equal(f->sent, 0);
    request(f, (struct ask){ENDPOINTS, .subscribe = "a,b"});
    expect(f, 1, "1 +a=A1 +b=B1");
    expect_view(f, "a:sent b:sent ");
    request(f, (struct ask){ENDPOINTS, .nonce = "1"});
    expect(f, 1, "1 +a=A1 +b=B1");
    expect_view(f, "a:acked b:acked ");
    put(f, ENDPOINTS, "c", "C2");
    put(f, ENDPOINTS, "b", "B1");
    assert_int_equal(f->sent, 1);
    put(f, ENDPOINTS, "b", "B2");
    expect(f, 2, "2 +b=B2");
    request(f, (struct ask){ENDPOINTS, .nonce = "2", .error = ": bad"});
    assert_int_equal(f->sent, 2); /* the version that got a NACK is not sent again */
    assert_int_equal(f->errors, 1);
    expect_view(f, "a:acked b:nacked: bad ");
    put(f, ENDPOINTS, "b", "B3");
    expect(f, 3, "3 +b=B3");
    request(f, (struct ask){ENDPOINTS, .nonce = "1"}); /* late: it does not concern b, which was sent again */
    expect_view(f, "a:acked b:sent ");
}

static void test_subscribe_and_unsubscribe(void **state)
{
    struct fixture *f = *state;
    put(f, ENDPOINTS, "a", "A1");
    request(f, (struct ask){ENDPOINTS, .subscribe = "a"});
    request(f, (struct ask){ENDPOINTS, .subscribe = "b", .nonce = "1"});
    expect(f, 2, "2 -b"); /* the client learns at once that b does not exist */
    ack(f, ENDPOINTS, "2");
    put(f, ENDPOINTS, "b", "B1");
    expect(f, 3, "3 +b=B1");
    request(f, (struct ask){ENDPOINTS, .subscribe = "a"}); /* the client may have dropped a */
    expect(f, 4, "4 +a=A1");
    ack(f, ENDPOINTS, "4");
    request(f, (struct ask){ENDPOINTS, .unsubscribe = "a"});
    put(f, ENDPOINTS, "a", "A2");
    assert_int_equal(f->sent, 4);
    request(f, (struct ask){ENDPOINTS, .subscribe = "a", .nonce = "77"});
    expect(f, 5, "5 +a=A2");
    ack(f, ENDPOINTS, "5");
    put(f, ENDPOINTS, "a", NULL);
    expect(f, 6, "6 -a");
    expect_view(f, "b:sent a:absent ");
    ack(f, ENDPOINTS, "6");
    put(f, ENDPOINTS, "c", "C1");
    assert_int_equal(f->sent, 6);
    put(f, ENDPOINTS, "a", "A3");
    expect(f, 7, "7 +a=A3");
}

/* Changes that are made before the client answers come in one response, the newest of each resource. */
static void test_changes_wait_for_the_answer(void **state)
{
    struct fixture *f = *state;
    put(f, ENDPOINTS, "a", "A1");
    request(f, (struct ask){ENDPOINTS, .subscribe = "a,b"});
    expect(f, 1, "1 +a=A1 -b");
    put(f, ENDPOINTS, "a", "A2");
    put(f, ENDPOINTS, "b", "B1");
    put(f, ENDPOINTS, "b", "B2");
    expect(f, 1, "1 +a=A1 -b");
    request(f, (struct ask){ENDPOINTS, .nonce = "1", .error = "bad"}); /* a NACK is an answer, too */
    expect(f, 2, "2 +a=A2 +b=B2");
    ack(f, ENDPOINTS, "2");
    expect(f, 2, "2 +a=A2 +b=B2");
}

static void test_initial_versions(void **state)
{
    struct fixture *f = *state;
    char initial[128];
    put(f, ENDPOINTS, "a", "A1");
    put(f, ENDPOINTS, "b", "B1");
    request(f, (struct ask){ENDPOINTS, .subscribe = "a"});
    assert_int_equal(f->sent, 1);
    snprintf(initial, sizeof(initial), "a=%s,b=old,gone=old", f->version);
    reconnect(f);
    request(f, (struct ask){ENDPOINTS, .subscribe = "a,b,gone", .initial = initial});
    expect(f, 2, "1 +b=B1 -gone"); /* a is not sent again */
    expect_view(f, "a:acked b:sent gone:absent ");
    ack(f, ENDPOINTS, "1");
    put(f, ENDPOINTS, "a", "A2");
    expect(f, 3, "2 +a=A2");
}

static void test_wildcard(void **state)
{
    struct fixture *f = *state;
    request(f, (struct ask){.type = CLUSTER});
    expect(f, 1, "1"); /* empty: the set has no cluster */
    ack(f, CLUSTER, "1");
    put(f, CLUSTER, "x", "X1");
    ack(f, CLUSTER, "2");
    put(f, CLUSTER, "y", "Y1");
    expect(f, 3, "3 +y=Y1");
    ack(f, CLUSTER, "3");
    put(f, CLUSTER, "y", NULL);
    expect(f, 4, "4 -y");
    expect_view(f, "x:acked ");
    ack(f, CLUSTER, "4");
    put(f, CLUSTER, "y", "Y1");
    expect(f, 5, "5 +y=Y1");
    request(f, (struct ask){CLUSTER, .subscribe = "y"});
    assert_int_equal(f->sent, 6);
    request(f, (struct ask){CLUSTER, .unsubscribe = "y"}); /* the wildcard still brings y */
    expect(f, 7, "7 +y=Y1");
    request(f, (struct ask){CLUSTER, .subscribe = "x", .unsubscribe = "*"});
    expect(f, 8, "8 +x=X1");
    ack(f, CLUSTER, "8");
    put(f, CLUSTER, "y", "Y2");
    assert_int_equal(f->sent, 8);
    expect_view(f, "x:acked ");
}

static void test_wildcard_by_name_with_initial_versions(void **state)
{
    struct fixture *f = *state;
    put(f, CLUSTER, "x", "X1");
    request(f, (struct ask){CLUSTER, .subscribe = "*", .initial = "x=old,gone=old"});
    assert_int_equal(f->sent, 1);
    assert_non_null(strstr(tc_buf_cstr(&f->last), "+x=X1"));
    assert_non_null(strstr(tc_buf_cstr(&f->last), "-gone"));
}

/* Responses that became due while the node had no set come with the first push after that. */
static void test_nothing_lost_while_mute(void **state)
{
    struct fixture *f = *state;
    put(f, CLUSTER, "x", "X1");
    f->k.mute = true;
    request(f, (struct ask){.type = CLUSTER});
    request(f, (struct ask){ENDPOINTS, .subscribe = "e"});
    assert_int_equal(f->sent, 0);
    f->k.mute = false;
    tc_delta_push(f->delta);
    expect(f, 2, "2 -e");
    tc_delta_push(f->delta);
    assert_int_equal(f->sent, 2);
}

/* One of a thousand endpoint resources changes: only that resource is sent. */
static void test_bytes_of_a_change(void **state)
{
    struct fixture *f = *state;
    struct tc_resource_set *big = tc_resource_set_new();
    char value[512];
    memset(value, 'v', sizeof(value));
    for (int i = 0; i < 1000; i++) {
        char name[32];
        snprintf(name, sizeof(name), "cluster-%03d", i);
        tc_resource_set_put(big, tc_slice_str(ENDPOINTS), tc_slice_str(name), tc_slice_of(value, sizeof(value)));
    }
    tc_resource_set_version(big, f->k.set);
    tc_resource_set_free(f->k.set);
    f->k.set = big;
    request(f, (struct ask){ENDPOINTS, .subscribe = "*"});
    assert_true(f->last_bytes > 500000);
    ack(f, ENDPOINTS, "1");
    put(f, ENDPOINTS, "cluster-500", "short");
    expect(f, 2, "2 +cluster-500=short");
    assert_true(f->last_bytes < 512);
}

static void test_scripted(void **state)
{
    struct fixture *f = *state;
    struct tc_delta_resource one = {tc_slice_str("s"), tc_slice_str("v9"), tc_slice_str("S")};
    struct tc_slice gone = tc_slice_str("r");
    request(f, (struct ask){ENDPOINTS, .subscribe = "s,r"});
    expect(f, 1, "1 -s -r");
    tc_delta_send(f->delta, tc_slice_str(ENDPOINTS), tc_slice_str("1"), &one, 1, &gone, 1);
    expect(f, 2, "2 +s=S -r");
    assert_string_equal(f->version, "v9");
    ack(f, ENDPOINTS, "2");
    expect(f, 3, "3 -s"); /* the set does not have s */
}

/* No response has the nonce 0: a request with that nonce answers nothing. */
static void test_a_nonce_of_zero(void **state)
{
    struct fixture *f = *state;
    f->k.mute = true;
    request(f, (struct ask){ENDPOINTS, .subscribe = "a"});
    expect_view(f, "a:asked ");
    request(f, (struct ask){ENDPOINTS, .nonce = "0"});
    expect_view(f, "a:asked ");
}

static void test_malformed(void **state)
{
    struct fixture *f = *state;
    struct tc_status s = tc_delta_on_message(f->delta, tc_slice_of("\xff\xff\xff", 3));
    assert_int_equal(s.code, TORC_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(tc_status_text(&s), "malformed DeltaDiscoveryRequest"));
    tc_status_fini(&s);
    s = tc_delta_on_message(f->delta, tc_slice_of("", 0));
    assert_int_equal(s.code, TORC_STATUS_INVALID_ARGUMENT);
    assert_string_equal(tc_status_text(&s), "type_url is empty");
    tc_status_fini(&s);
    assert_int_equal(f->sent, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_what_changed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_subscribe_and_unsubscribe, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changes_wait_for_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_initial_versions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wildcard, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wildcard_by_name_with_initial_versions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_lost_while_mute, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bytes_of_a_change, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scripted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_nonce_of_zero, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
