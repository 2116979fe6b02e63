/* The server side of a state-of-the-world ADS stream (controlplane/ads.h), without a connection; resource sets that
 * documents fill (controlplane/resource_load.h); YAML (controlplane/yaml.h).
 *
 * The tests of a stream have a fixture. `request` packs a DiscoveryRequest of the node "n1" and passes it to the
 * stream. `put` makes the next resource set (kits/resource_set.h) and pushes. on_send writes each response into `last`,
 * in words; the values of resources are short texts, not messages. Versions count the changes of a type; nonces count
 * the responses of the stream, of any type. After a response nothing of its type is pushed until a request with the
 * response's nonce comes. The tests of documents and of YAML have no stream. One thread. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "controlplane/ads.h"
#include "controlplane/resource_load.h"
#include "controlplane/yaml.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"
#include "support/cmocka.h"
#include "support/kits/resource_set.h"

#define LISTENER "type.googleapis.com/envoy.config.listener.v3.Listener"
#define WRAPPER "type.googleapis.com/envoy.service.discovery.v3.Resource"
#define ENDPOINTS "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

struct fixture {
    struct kit_resource_set k;
    struct tc_ads *ads;
    struct tc_buf last; /* the last response that the stream sent, in words: "version nonce value,value" */
    int sent, requests, errors;
};

static void on_send(void *arg, struct tc_slice bytes)
{
    struct fixture *f = arg;
    Envoy__Service__Discovery__V3__DiscoveryResponse *r =
        envoy__service__discovery__v3__discovery_response__unpack(NULL, bytes.len, (const uint8_t *)bytes.data);
    assert_non_null(r);
    f->sent++;
    tc_buf_clear(&f->last);
    tc_buf_printf(&f->last, "%s %s ", r->version_info, r->nonce);
    for (size_t i = 0; i < r->n_resources; i++)
        tc_buf_printf(&f->last, "%s%.*s", i ? "," : "", (int)r->resources[i]->value.len,
                      (const char *)r->resources[i]->value.data);
    envoy__service__discovery__v3__discovery_response__free_unpacked(r, NULL);
}

static void on_request(void *arg, const struct tc_ads_request *request)
{
    struct fixture *f = arg;
    f->requests++;
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
    f->ads = tc_ads_new(&events, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tc_ads_free(f->ads);
    kit_resource_set_fini(&f->k);
    tc_buf_fini(&f->last);
    tc_free(f);
    return 0;
}

/* Puts a resource, or removes it if the value is NULL, and pushes. */
static void put(struct fixture *f, const char *type, const char *name, const char *value)
{
    kit_resource_set_put(&f->k, type, name, value);
    tc_ads_push(f->ads);
}

/* Sends a request. nonce: of the response that the request answers; "": none. error: the text of a NACK; NULL: none.
 * `a` and `b`: the names; NULL: fewer names, or none. */
static void request(struct fixture *f, const char *type, const char *nonce, const char *error, const char *a,
                    const char *b)
{
    Envoy__Service__Discovery__V3__DiscoveryRequest r = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_REQUEST__INIT;
    Envoy__Config__Core__V3__Node node = ENVOY__CONFIG__CORE__V3__NODE__INIT;
    Google__Rpc__Status detail = GOOGLE__RPC__STATUS__INIT;
    char *names[2] = {(char *)(uintptr_t)a, (char *)(uintptr_t)b};
    uint8_t bytes[512];
    node.id = (char *)(uintptr_t) "n1";
    r.node = &node;
    r.type_url = (char *)(uintptr_t)type;
    r.response_nonce = (char *)(uintptr_t)nonce;
    r.n_resource_names = a ? (b ? 2 : 1) : 0;
    r.resource_names = names;
    if (error) {
        detail.code = 3;
        detail.message = (char *)(uintptr_t)error;
        r.error_detail = &detail;
    }
    size_t n = envoy__service__discovery__v3__discovery_request__pack(&r, bytes);
    struct tc_status s = tc_ads_on_message(f->ads, tc_slice_of(bytes, n));
    assert_true(tc_status_ok(&s));
}

static void on_served(void *arg, const struct tc_served *s)
{
    static const char *const states[] = {"", "asked", "sent", "acked", "nacked", "absent"};
    tc_buf_printf(arg, "%.*s:%s ", (int)s->name.len, s->name.data, states[s->state]);
}

/* Expects this state of the stream's resources: "NAME:STATE " for each. */
static void expect_view(struct fixture *f, const char *text)
{
    struct tc_buf b = {0};
    tc_ads_view(f->ads, on_served, &b);
    assert_string_equal(tc_buf_cstr(&b), text);
    tc_buf_fini(&b);
}

static void test_subscribe_ack_push(void **state)
{
    struct fixture *f = *state;
    put(f, ENDPOINTS, "a", "A1");
    put(f, ENDPOINTS, "b", "B1");
    request(f, ENDPOINTS, "", NULL, "b", NULL);
    assert_string_equal(tc_buf_cstr(&f->last), "2 1 B1");
    request(f, ENDPOINTS, "1", NULL, "b", NULL); /* ACK: nothing new */
    assert_int_equal(f->sent, 1);
    put(f, ENDPOINTS, "a", "A2"); /* not subscribed */
    assert_int_equal(f->sent, 1);
    put(f, ENDPOINTS, "b", "B2");
    assert_string_equal(tc_buf_cstr(&f->last), "4 2 B2");
    request(f, ENDPOINTS, "1", NULL, "a", "b"); /* stale */
    assert_int_equal(f->sent, 2);
    request(f, ENDPOINTS, "2", NULL, "b", "a");
    assert_string_equal(tc_buf_cstr(&f->last), "4 3 A2,B2");
    request(f, ENDPOINTS, "3", "bad", "a", "b"); /* NACK: not sent again */
    assert_int_equal(f->sent, 3);
    assert_int_equal(f->errors, 1);
    put(f, ENDPOINTS, "a", "A2"); /* unchanged */
    assert_int_equal(f->sent, 3);
    request(f, ENDPOINTS, "3", NULL, "b", NULL);
    request(f, ENDPOINTS, "3", NULL, "b", "a"); /* forgotten and wanted again */
    assert_string_equal(tc_buf_cstr(&f->last), "4 4 A2,B2");
}

/* A name that a request gives twice is one subscription. */
static void test_names_given_twice(void **state)
{
    struct fixture *f = *state;
    put(f, ENDPOINTS, "a", "A1");
    put(f, LISTENER, "x", "X1");
    request(f, ENDPOINTS, "", NULL, "a", "a");
    assert_string_equal(tc_buf_cstr(&f->last), "1 1 A1");
    expect_view(f, "a:sent ");
    request(f, LISTENER, "", NULL, "x", "x");
    assert_string_equal(tc_buf_cstr(&f->last), "1 2 X1");
    request(f, LISTENER, "2", NULL, "x", NULL); /* nothing new */
    assert_int_equal(f->sent, 2);
}

static void test_listeners_are_whole(void **state)
{
    struct fixture *f = *state;
    request(f, LISTENER, "", NULL, "x", NULL);
    assert_string_equal(tc_buf_cstr(&f->last), "0 1 "); /* empty: the set has no Listener */
    request(f, LISTENER, "1", NULL, "x", NULL);
    put(f, LISTENER, "x", "X1");
    assert_string_equal(tc_buf_cstr(&f->last), "1 2 X1");
    request(f, LISTENER, "2", NULL, "x", NULL);
    put(f, LISTENER, "x", NULL);
    assert_string_equal(tc_buf_cstr(&f->last), "2 3 ");
    put(f, ENDPOINTS, "e", "E1");
    request(f, ENDPOINTS, "", NULL, "e", NULL);
    assert_string_equal(tc_buf_cstr(&f->last), "1 4 E1");
    request(f, ENDPOINTS, "4", NULL, "e", NULL); /* ACK: a change would be sent at once */
    int sent = f->sent;
    put(f, ENDPOINTS, "e", NULL); /* a response cannot delete endpoints: nothing to send */
    assert_int_equal(f->sent, sent);
}

/* Changes that are made before the client answers come in one response, the newest of each resource. */
static void test_changes_wait_for_the_answer(void **state)
{
    struct fixture *f = *state;
    put(f, ENDPOINTS, "a", "A1");
    request(f, ENDPOINTS, "", NULL, "a", "b");
    put(f, ENDPOINTS, "a", "A2");
    put(f, ENDPOINTS, "b", "B1");
    put(f, ENDPOINTS, "b", "B2");
    assert_int_equal(f->sent, 1);
    put(f, LISTENER, "x", "X1");
    request(f, LISTENER, "", NULL, "x", NULL); /* another type does not wait */
    assert_string_equal(tc_buf_cstr(&f->last), "1 2 X1");
    request(f, ENDPOINTS, "1", "bad", "a", "b"); /* a NACK is an answer, too */
    assert_string_equal(tc_buf_cstr(&f->last), "4 3 A2,B2");
    assert_int_equal(f->sent, 3);
    request(f, ENDPOINTS, "3", NULL, "a", "b");
    assert_int_equal(f->sent, 3);
}

static void test_wildcard(void **state)
{
    struct fixture *f = *state;
    put(f, LISTENER, "y", "Y");
    put(f, LISTENER, "x", "X");
    request(f, LISTENER, "", NULL, NULL, NULL);
    assert_string_equal(tc_buf_cstr(&f->last), "2 1 X,Y");
    request(f, LISTENER, "1", NULL, NULL, NULL); /* no names: still everything */
    put(f, LISTENER, "z", "Z");
    assert_string_equal(tc_buf_cstr(&f->last), "3 2 X,Y,Z");
    request(f, LISTENER, "2", NULL, "y", NULL);
    expect_view(f, "y:acked ");
}

/* The name "*" subscribes to everything, alone or beside other names, until a request lacks it. */
static void test_wildcard_by_name(void **state)
{
    struct fixture *f = *state;
    put(f, LISTENER, "y", "Y");
    put(f, LISTENER, "x", "X");
    request(f, LISTENER, "", NULL, "*", NULL);
    assert_string_equal(tc_buf_cstr(&f->last), "2 1 X,Y");
    request(f, LISTENER, "1", NULL, "*", "w");
    expect_view(f, "x:acked y:acked w:absent ");
    put(f, LISTENER, "w", "W");
    assert_string_equal(tc_buf_cstr(&f->last), "3 2 W,X,Y");
    request(f, LISTENER, "2", NULL, "*", "w");
    expect_view(f, "w:acked x:acked y:acked ");
    request(f, LISTENER, "2", NULL, NULL, NULL); /* neither names nor "*" any longer: nothing */
    expect_view(f, "");
    request(f, ENDPOINTS, "", NULL, "*", NULL);
    put(f, ENDPOINTS, "a", "A");
    assert_string_equal(tc_buf_cstr(&f->last), "1 3 A");
}

/* While the node has no set, responses wait. The first push with a set sends them, an empty first response too. */
static void test_nothing_lost_while_mute(void **state)
{
    struct fixture *f = *state;
    put(f, ENDPOINTS, "e", "E1");
    f->k.mute = true;
    request(f, LISTENER, "", NULL, "x", NULL);
    request(f, ENDPOINTS, "", NULL, "e", NULL);
    assert_int_equal(f->sent, 0);
    f->k.mute = false;
    tc_ads_push(f->ads);
    assert_int_equal(f->sent, 2);
    assert_string_equal(tc_buf_cstr(&f->last), "1 2 E1");
    tc_ads_push(f->ads);
    assert_int_equal(f->sent, 2);
}

static void test_view(void **state)
{
    struct fixture *f = *state;
    put(f, LISTENER, "x", "X");
    request(f, LISTENER, "", NULL, "x", "y");
    request(f, ENDPOINTS, "", NULL, "e", NULL);
    expect_view(f, "x:sent y:absent e:asked ");
    request(f, LISTENER, "1", "bad", "x", "y");
    expect_view(f, "x:nacked y:absent e:asked ");
    put(f, LISTENER, "x", "X2");
    expect_view(f, "x:sent y:absent e:asked ");
    request(f, LISTENER, "2", NULL, "x", "y");
    expect_view(f, "x:acked y:absent e:asked ");
}

static void test_malformed(void **state)
{
    struct fixture *f = *state;
    struct tc_status s = tc_ads_on_message(f->ads, tc_slice_of("\xff\xff\xff", 3));
    assert_int_equal(s.code, TORC_STATUS_INVALID_ARGUMENT);
    tc_status_fini(&s);
    s = tc_ads_on_message(f->ads, tc_slice_of("", 0));
    assert_int_equal(s.code, TORC_STATUS_INVALID_ARGUMENT);
    assert_string_equal(tc_status_text(&s), "type_url is empty");
    tc_status_fini(&s);
}

/* When the content changes, the file's version_info becomes the type's version, with a suffix if the old version began
 * with that version_info. Equal content keeps its version. */
static void test_versions_from_files(void **state)
{
    (void)state;
    static const char *const docs[] = {
        "version_info: \"7\"\nresources:\n- {\"@type\": " ENDPOINTS ", cluster_name: c}\n",
        "version_info: \"7\"\nresources:\n- {\"@type\": " ENDPOINTS ", cluster_name: d}\n",
        "version_info: \"8\"\nresources:\n- {\"@type\": " ENDPOINTS ", cluster_name: d}\n",
        "version_info: \"8\"\nresources:\n- {\"@type\": " ENDPOINTS ", cluster_name: e}\n"};
    static const char *const versions[] = {"7", "7.2", "7.2", "8"};
    struct tc_resource_set *before = NULL;
    for (size_t i = 0; i < TC_ARRAY_LEN(docs); i++) {
        struct tc_resource_set *s = tc_resource_set_new();
        struct tc_validation_errors errors = {0};
        char *why = NULL;
        json_t *doc = tc_yaml_parse(tc_slice_str(docs[i]), &why);
        assert_non_null(doc);
        tc_resource_set_add_json(s, doc, &errors);
        assert_string_equal(tc_validation_text(&errors), "");
        tc_resource_set_version(s, before);
        assert_string_equal(tc_resource_set_type(s, tc_slice_str(ENDPOINTS))->version->data, versions[i]);
        tc_validation_fini(&errors);
        json_decref(doc);
        tc_resource_set_free(before);
        before = s;
    }
    tc_resource_set_free(before);
}

/* Resources are put one after the other, as by tc_control_plane_put. No two contents get the same version, whether
 * their documents have a version_info or not. */
static void test_versions_of_puts(void **state)
{
    (void)state;
    static const char *const hints[][5] = {{"version_info: \"2\"", "", "", "version_info: \"3\"", ""},
                                           {"", "", "version_info: \"1\"", "", "version_info: \"4\""}};
    static const char *const versions[][5] = {{"2", "2.2", "2.3", "3", "3.5"}, {"1", "2", "1.3", "1.4", "4"}};
    for (size_t row = 0; row < TC_ARRAY_LEN(hints); row++) {
        struct tc_resource_set *before = NULL;
        for (int i = 0; i < 5; i++) {
            struct tc_resource_set *s = tc_resource_set_copy(before);
            struct tc_validation_errors errors = {0};
            char *why = NULL;
            char *text =
                tc_asprintf("%s\nresources:\n- {\"@type\": " ENDPOINTS ", cluster_name: c%d}\n", hints[row][i], i);
            json_t *doc = tc_yaml_parse(tc_slice_str(text), &why);
            assert_non_null(doc);
            tc_resource_set_add_json(s, doc, &errors);
            assert_string_equal(tc_validation_text(&errors), "");
            tc_resource_set_version(s, before);
            assert_string_equal(tc_resource_set_type(s, tc_slice_str(ENDPOINTS))->version->data, versions[row][i]);
            tc_validation_fini(&errors);
            json_decref(doc);
            tc_free(text);
            tc_resource_set_free(before);
            before = s;
        }
        tc_resource_set_free(before);
    }
}

/* The version_infos of several files are joined, each of them once. */
static void test_versions_of_several_files(void **state)
{
    (void)state;
    static const char *const docs[] = {
        "version_info: \"1\"\nresources:\n- {\"@type\": " ENDPOINTS ", cluster_name: a}\n",
        "version_info: \"2\"\nresources:\n- {\"@type\": " ENDPOINTS ", cluster_name: b}\n"
        "- {\"@type\": " ENDPOINTS ", cluster_name: c}\n- {\"@type\": " LISTENER ", name: x}\n",
        "version_info: \"1\"\nresources:\n- {\"@type\": " ENDPOINTS ", cluster_name: d}\n",
        "version_info: \"12\"\nresources:\n- {\"@type\": " ENDPOINTS ", cluster_name: e}\n",
        "version_info: \"2\"\nresources:\n- {\"@type\": " ENDPOINTS ", cluster_name: f}\n"};
    static const char *const versions[] = {"1", "1+2", "1+2", "1+2+12", "1+2+12"};
    struct tc_resource_set *s = tc_resource_set_new();
    for (size_t i = 0; i < TC_ARRAY_LEN(docs); i++) {
        struct tc_validation_errors errors = {0};
        char *why = NULL;
        json_t *doc = tc_yaml_parse(tc_slice_str(docs[i]), &why);
        assert_non_null(doc);
        tc_resource_set_add_json(s, doc, &errors);
        assert_string_equal(tc_validation_text(&errors), "");
        assert_string_equal(tc_resource_set_type(s, tc_slice_str(ENDPOINTS))->version_hint->data, versions[i]);
        tc_validation_fini(&errors);
        json_decref(doc);
    }
    assert_string_equal(tc_resource_set_type(s, tc_slice_str(LISTENER))->version_hint->data, "2");
    tc_resource_set_free(s);
}

static void refuse_b(void *arg, struct tc_slice type_url, struct tc_slice name, struct tc_slice value,
                     struct tc_validation_errors *errors)
{
    assert_true(arg == errors && tc_slice_eq_str(type_url, ENDPOINTS) && value.len > 0);
    if (tc_slice_eq_str(name, "b"))
        tc_validation_add(errors, "not b");
}

/* A wrapped resource is known by the wrapper's name if the wrapper has one. A check rejects resources one by one. */
static void test_wrapped_and_checked(void **state)
{
    struct tc_resource_set *s = tc_resource_set_new();
    struct tc_validation_errors errors = {0};
    char *why = NULL;
    json_t *doc = tc_yaml_parse(
        tc_slice_str("version_info: \"5\"\nresources:\n"
                     "- {\"@type\": " WRAPPER ", name: a, resource: {\"@type\": " ENDPOINTS ", cluster_name: x}}\n"
                     "- {\"@type\": " WRAPPER ", resource: {\"@type\": " ENDPOINTS ", cluster_name: b}}\n"
                     "- {\"@type\": " ENDPOINTS ", cluster_name: c}\n"),
        &why);
    (void)state;
    assert_non_null(doc);
    s->check = refuse_b;
    s->check_arg = &errors;
    tc_resource_set_add_json(s, doc, &errors);
    assert_string_equal(tc_validation_text(&errors), "field resources[1].resource: not b");
    tc_resource_set_version(s, NULL);
    const struct tc_set_type *t = tc_resource_set_type(s, tc_slice_str(ENDPOINTS));
    assert_string_equal(t->version->data, "5");
    assert_int_equal(t->resources.len, 2);
    assert_non_null(tc_set_type_find(t, tc_slice_str("a")));
    assert_non_null(tc_set_type_find(t, tc_slice_str("c")));
    tc_validation_fini(&errors);
    json_decref(doc);
    tc_resource_set_free(s);
}

static void test_bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *fault;
    } bad[] = {
        {"{}", "field resources: must be a list of resources"},
        {"resources: [3]", "field resources[0]: must be an object with an @type"},
        {"resources: [{\"@type\": " LISTENER "}]", "field resources[0]: has no name (or cluster_name)"},
        {"resources: [{\"@type\": " WRAPPER ", name: a}]",
         "field resources[0].resource: must be an object with an @type"},
        {"resources: [{\"@type\": " WRAPPER ", resource: {\"@type\": " WRAPPER "}}]",
         "field resources[0].resource: must not be a wrapper itself"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        struct tc_resource_set *s = tc_resource_set_new();
        struct tc_validation_errors errors = {0};
        char *why = NULL;
        json_t *doc = tc_yaml_parse(tc_slice_str(bad[i].text), &why);
        assert_non_null(doc);
        tc_resource_set_add_json(s, doc, &errors);
        assert_string_equal(tc_validation_text(&errors), bad[i].fault);
        tc_validation_fini(&errors);
        json_decref(doc);
        tc_resource_set_free(s);
    }
}

static void test_yaml(void **state)
{
    (void)state;
    char *why = NULL;
    json_t *v = tc_yaml_parse(
        tc_slice_str("a: 1\nb: '1'\nc: [true, ~, 1.5, 1.2.3, +4, -4, +-4, ++4, -]\nd: &x {e: f}\ng: *x\nport: 0x10\n"),
        &why);
    assert_non_null(v);
    char *text = tc_json_text(v, false);
    assert_string_equal(text, "{\"a\":1,\"b\":\"1\",\"c\":[true,null,1.5,\"1.2.3\",4,-4,\"+-4\",\"++4\",\"-\"],"
                              "\"d\":{\"e\":\"f\"},\"g\":{\"e\":\"f\"},\"port\":\"0x10\"}");
    tc_free(text);
    json_decref(v);
    static const char *const bad[] = {"", "a: 1\na: 2\n", "a: [1", "{a: b: c}", "? [x]\n: y\n"};
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        why = NULL;
        assert_null(tc_yaml_parse(tc_slice_str(bad[i]), &why));
        assert_non_null(why);
        tc_free(why);
    }
    why = NULL;
    assert_null(tc_yaml_parse(tc_slice_str("{\"a\\0b\": 1, \"a\\0c\": 2}"), &why));
    assert_non_null(strstr(why, "a key has a NUL"));
    tc_free(why);
    struct tc_buf deep = {0};
    for (int i = 0; i < 200; i++)
        tc_buf_append_char(&deep, '[');
    for (int i = 0; i < 200; i++)
        tc_buf_append_char(&deep, ']');
    assert_null(tc_yaml_parse(tc_buf_slice(&deep), &why));
    assert_non_null(strstr(why, "nested deeper than 100"));
    tc_free(why);
    tc_buf_clear(&deep);
    tc_buf_append_str(&deep, "a: &a [x,x,x,x,x,x,x,x,x,x]\n");
    for (char c = 'b'; c < 'h'; c++)
        tc_buf_printf(&deep, "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c - 1, c - 1, c - 1, c - 1,
                      c - 1, c - 1, c - 1, c - 1, c - 1, c - 1);
    assert_null(tc_yaml_parse(tc_buf_slice(&deep), &why));
    assert_non_null(strstr(why, "aliases make too many values"));
    tc_free(why);
    tc_buf_fini(&deep);
}

/* Returns `head` and behind it n times `part`. The caller owns the buffer. */
static struct tc_buf repeated(const char *head, const char *part, size_t n)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, head);
    for (size_t i = 0; i < n; i++)
        tc_buf_append_str(&b, part);
    return b;
}

/* Expects that the text is rejected with this part of a reason. Frees the text. */
static void expect_refused(struct tc_buf text, const char *reason)
{
    char *why = NULL;
    assert_null(tc_yaml_parse(tc_buf_slice(&text), &why));
    assert_non_null(why);
    assert_non_null(strstr(why, reason));
    tc_free(why);
    tc_buf_fini(&text);
}

/* libyaml would take very long to load these documents. So a document is rejected where it passes a limit, and the
 * error names the place. */
static void test_yaml_that_is_too_deep_is_not_loaded(void **state)
{
    (void)state;
    expect_refused(repeated("resources: ", "[", 1000000), "line 1, column 112: nested deeper than 100");
    expect_refused(repeated("", "{a: ", 1000000), "line 1, column 405: nested deeper than 100");
    expect_refused(repeated("", "- ", 1000000), "line 1, column 203: nested deeper than 100");
    struct tc_buf anchors = {0};
    for (int i = 0; i < 200000; i++)
        tc_buf_printf(&anchors, "- &a%d x\n", i);
    expect_refused(anchors, "line 10001, column 3: more than 10000 anchors");
}

/* The error names the place of a byte that is not UTF-8, and of a control character. */
static void test_yaml_that_is_not_text(void **state)
{
    (void)state;
    expect_refused(repeated("a: 1\nb: 2\n\xc3\xa4: \xff\n", "", 0), "line 3, column 4: invalid leading UTF-8 octet");
    expect_refused(repeated("a: 1\nb: \x01\n", "", 0), "line 2, column 4: control characters are not allowed");
    expect_refused(repeated("\xff", "", 0), "line 1, column 1: ");
    expect_refused(repeated("a: 1\nb: [\n", "", 0), "line 3, column 1: ");
}

/* The deepest document that is allowed. */
static void test_yaml_at_the_limit_of_depth(void **state)
{
    (void)state;
    char *why = NULL;
    struct tc_buf b = repeated("", "[", 101);
    for (int i = 0; i < 101; i++)
        tc_buf_append_char(&b, ']');
    json_t *v = tc_yaml_parse(tc_buf_slice(&b), &why);
    assert_non_null(v);
    json_decref(v);
    tc_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_subscribe_ack_push, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_given_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_listeners_are_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changes_wait_for_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wildcard, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wildcard_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_lost_while_mute, setup, teardown),
        cmocka_unit_test_setup_teardown(test_view, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed, setup, teardown),
        cmocka_unit_test(test_versions_from_files),
        cmocka_unit_test(test_versions_of_puts),
        cmocka_unit_test(test_versions_of_several_files),
        cmocka_unit_test(test_wrapped_and_checked),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_yaml),
        cmocka_unit_test(test_yaml_that_is_too_deep_is_not_loaded),
        cmocka_unit_test(test_yaml_that_is_not_text),
        cmocka_unit_test(test_yaml_at_the_limit_of_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
