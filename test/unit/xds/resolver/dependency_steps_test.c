/* The dependency manager takes in changes step by step, in sequences at random. Each sequence has a new manager over a
 * new real xDS client, on a manual loop in one thread; the test plays the client's two servers. In a step a resource
 * comes, changes, is refused, deleted or restored, or a server goes down or comes back. After every step two oracles
 * are asked:
 *
 *   the model   knows no watches and no rounds. A resource that is needed has the last good value that its server sent
 *               while it was needed (A88); with fail_on_data_errors a refused or deleted resource has no value. The
 *               values decide which resources are needed. The config holds these values and nothing else.
 *   a manager   that starts now, over the same client. The manager under test must have reported what this new manager
 *               reports: the same config or error, with the same resolution notes.
 *
 * A third of the sequences has incremental ADS, a quarter fail_on_data_errors. */
#include "support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "support/kits/dependency_steps.h"
#include "support/kits/resource.h"

#include "base/mem.h"
#include "base/random.h"

enum { STEPS = 100, SEQUENCES = 200 };
enum { TOP, OF_AUTHORITY, SERVERS }; /* OF_AUTHORITY: the server of the authority "a" */

static const char *const uris[SERVERS] = {"s1", "s2"};

/* The last report of one manager. */
struct view {
    struct tc_dependency_manager *manager;
    struct tc_xds_config *config; /* NULL: the report was an error, or there was none */
    struct tc_status error;
};

struct server {
    struct fake_xds_server *fake;
    bool down;
    unsigned failed; /* the number (fake->created) of the transport that failed last; 0: none has failed since the
                        server went down */
    unsigned stream; /* on which the requests in `asked` came */
    /* For each type the names of the stream's last request that was answered. */
    char asked[TYPES][512];
    struct tc_buf due[TYPES]; /* incremental: names to answer */
};

struct world {
    struct tc_rng rng;
    struct tc_loop *loop;
    struct fake_xds *fake;
    struct server servers[SERVERS];
    struct tc_xds_client *client;
    struct view steps;
    bool fail_on_data_errors, incremental;
    int version;
    /* The listener, the routes, the clusters, the endpoints, the collections. */
    struct kit_steps_resource resources[2 + 3 * CLUSTERS];
    unsigned refusals, configs; /* NACKs; steps after which there is a config */
};

/* The sequence and the step that run, for the text of a failure. */
static struct {
    bool inside;
    unsigned sequence, step;
} now;

static void on_config(void *arg, struct tc_xds_config *config)
{
    struct view *v = arg;
    tc_xds_config_ref(config);
    tc_xds_config_unref(v->config);
    v->config = config;
    tc_status_set(&v->error, (struct tc_status){0});
}

static void on_error(void *arg, const struct tc_status *error)
{
    struct view *v = arg;
    tc_xds_config_unref(v->config);
    v->config = NULL;
    tc_status_set(&v->error, tc_status_ref(error));
}

static const struct tc_dependency_events events = {.on_config = on_config, .on_error = on_error};

static void view_open(struct view *v, struct world *w)
{
    const struct tc_dependency_opts opts = {.listener = tc_slice_str("l"), .authority = tc_slice_str("svc")};
    *v = (struct view){0};
    v->manager = tc_dependency_manager_new(w->loop, w->client, &opts, &events, v);
    tc_loop_drain(w->loop);
}

static void view_close(struct view *v)
{
    tc_dependency_manager_free(v->manager);
    tc_xds_config_unref(v->config);
    tc_status_fini(&v->error);
}

static unsigned below(struct world *w, unsigned n)
{
    return (unsigned)tc_rng_below(&w->rng, n);
}

#define LISTENER(w) (&(w)->resources[0])
#define ROUTES(w) (&(w)->resources[1])
#define CLUSTER(w, i) (&(w)->resources[2 + (i)])
#define ENDPOINTS(w, i) (&(w)->resources[2 + CLUSTERS + (i)])
#define COLLECTION(w, i) (&(w)->resources[2 + 2 * CLUSTERS + (i)])

static unsigned server_of(const struct kit_steps_resource *r)
{
    return r->number < AT_TOP ? TOP : OF_AUTHORITY;
}

/* --- the servers --- */

static void send_json(struct world *w, unsigned server, const char *message, struct tc_buf *json)
{
    struct tc_buf bytes = kit_resource_message(message, tc_buf_cstr(json));
    fake_xds_send(w->servers[server].fake, tc_buf_slice(&bytes));
    tc_buf_fini(&bytes);
    w->version++;
}

/* State of the world: sends all resources of the type that the server has. */
static void respond(struct world *w, unsigned server, unsigned type)
{
    struct tc_buf b = {0};
    const char *comma = "";
    tc_buf_printf(&b, "{'versionInfo': '%d', 'nonce': '%d', 'typeUrl': '%s', 'resources': [", w->version, w->version,
                  kit_steps_types[type]);
    for (unsigned i = 0; i < TC_ARRAY_LEN(w->resources); i++) {
        const struct kit_steps_resource *r = &w->resources[i];
        if (r->type != type || server_of(r) != server || r->deleted)
            continue;
        tc_buf_append_str(&b, comma);
        if (type == LEDS) /* a collection does not contain its name */
            tc_buf_printf(&b,
                          "{'@type': 'type.googleapis.com/envoy.service.discovery.v3.Resource', 'name': '%s', "
                          "'resource': ",
                          kit_steps_name(r));
        kit_steps_put(&b, r);
        tc_buf_append_str(&b, type == LEDS ? "}" : "");
        comma = ", ";
    }
    tc_buf_append_str(&b, "]}");
    send_json(w, server, "envoy.service.discovery.v3.DiscoveryResponse", &b);
    tc_buf_fini(&b);
}

/* Returns whether the list "a,b,c" has the name. */
static bool listed(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += len)
        if ((at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

/* Incremental: sends the resources of the list, and removes those that are deleted. */
static void respond_delta(struct world *w, unsigned server, unsigned type, const char *names)
{
    struct tc_buf b = {0}, removed = {0};
    const char *comma = "";
    tc_buf_printf(&b, "{'nonce': '%d', 'typeUrl': '%s', 'resources': [", w->version, kit_steps_types[type]);
    for (unsigned i = 0; i < TC_ARRAY_LEN(w->resources); i++) {
        const struct kit_steps_resource *r = &w->resources[i];
        if (r->type != type || server_of(r) != server || !listed(names, kit_steps_name(r)))
            continue;
        if (r->deleted) {
            tc_buf_printf(&removed, "%s'%s'", removed.len ? ", " : "", kit_steps_name(r));
            continue;
        }
        tc_buf_printf(&b, "%s{'name': '%s', 'version': '%d', 'resource': ", comma, kit_steps_name(r), w->version);
        kit_steps_put(&b, r);
        tc_buf_append_str(&b, "}");
        comma = ", ";
    }
    tc_buf_printf(&b, "], 'removedResources': [%s]}", tc_buf_cstr(&removed));
    send_json(w, server, "envoy.service.discovery.v3.DeltaDiscoveryResponse", &b);
    tc_buf_fini(&b);
    tc_buf_fini(&removed);
}

static unsigned type_of(const char *url)
{
    unsigned t = 0;
    while (strcmp(kit_steps_types[t], url) != 0)
        t++;
    return t;
}

/* Answers a request on the open stream whose names differ from those of the stream's last request for the type. An
 * incremental request has only new names, which are noted for respond_due. Returns true if the request was answered or
 * its names were noted. */
static bool answer_request(struct world *w, unsigned server, const struct fake_xds_request *r)
{
    struct server *s = &w->servers[server];
    unsigned type = type_of(r->type_url);
    assert_int_equal(r->delta, w->incremental);
    w->refusals += r->error_code != 0;
    if (r->stream > s->stream) {
        s->stream = r->stream;
        memset(s->asked, 0, sizeof(s->asked));
    }
    bool anew = r->delta ? *r->names != '\0' : strcmp(s->asked[type], r->names) != 0;
    if (!anew || r->stream != s->fake->streams || !fake_xds_streaming(s->fake))
        return false;
    snprintf(s->asked[type], sizeof(s->asked[type]), "%s", r->names);
    if (r->delta)
        tc_buf_printf(&s->due[type], "%s,", r->names);
    else
        respond(w, server, type);
    return true;
}

/* Incremental: for each type, sends one response with all resources that were asked for, since resources of two
 * responses may take effect one after the other. */
static void respond_due(struct world *w, unsigned server)
{
    for (unsigned type = 0; type < TYPES; type++) {
        struct tc_buf *due = &w->servers[server].due[type];
        if (due->len)
            respond_delta(w, server, type, tc_buf_cstr(due));
        tc_buf_fini(due);
        *due = (struct tc_buf){0};
    }
}

/* Answers the new requests. While the server is down, fails the client's transport instead, once for each transport.
 * Returns true if anything was answered or failed. */
static bool answer(struct world *w, unsigned server)
{
    struct server *s = &w->servers[server];
    struct fake_xds_request *r;
    bool answered = false;
    if (s->down) {
        if (s->fake->open && s->failed != s->fake->created) {
            s->failed = s->fake->created;
            fake_xds_fail(s->fake, "connection refused");
            return true;
        }
        return false;
    }
    while ((r = fake_xds_take(s->fake))) {
        answered |= answer_request(w, server, r);
        fake_xds_request_free(r);
    }
    respond_due(w, server);
    return answered;
}

/* Runs until all requests are answered and absent resources have timed out. */
static void settle(struct world *w)
{
    for (unsigned i = 0; i < 3; i++) {
        bool more = true;
        while (more) {
            tc_loop_drain(w->loop);
            more = answer(w, TOP);
            more |= answer(w, OF_AUTHORITY);
        }
        tc_loop_advance(w->loop, 16000);
    }
}

static void push(struct world *w, const struct kit_steps_resource *r)
{
    const struct server *s = &w->servers[server_of(r)];
    if (s->down || !s->asked[r->type][0] || !fake_xds_streaming(s->fake))
        return;
    if (w->incremental)
        respond_delta(w, server_of(r), r->type, kit_steps_name(r));
    else
        respond(w, server_of(r), r->type);
}

static void go_down(struct server *s)
{
    s->down = true;
    s->fake->connected = false;
    if (fake_xds_streaming(s->fake))
        fake_xds_break(s->fake, TORC_STATUS_UNAVAILABLE, "connection reset");
    s->failed = 0;
}

static void come_up(struct server *s)
{
    s->down = false;
    fake_xds_connect(s->fake);
}

/* --- steps --- */

static void change_cluster(struct world *w, struct kit_steps_resource *r)
{
    unsigned i = r->number, above = CLUSTERS - 1 - i; /* aggregates name later clusters only: no cycles */
    struct kit_steps_value *v = &r->served;
    unsigned what = below(w, 10);
    v->requests = 1 + below(w, 1000);
    if (what < 3)
        v->kind = BY_EDS;
    else if (what == 3)
        v->kind = BY_DNS;
    else if (what < 7 && above)
        v->kind = AGGREGATE;
    if (below(w, 4) == 0)
        v->eds = i < AT_TOP ? below(w, AT_TOP) : AT_TOP + below(w, CLUSTERS - AT_TOP);
    if (what < 7 && above) {
        v->n_children = 1 + below(w, MAX_CHILDREN);
        for (unsigned k = 0; k < v->n_children; k++)
            v->children[k] = i + 1 + below(w, above);
    }
}

/* Gives a resource of endpoints, or a collection, another endpoint or none. A resource of endpoints may get other
 * collections, too. */
static void change_endpoints(struct world *w, struct kit_steps_resource *r)
{
    struct kit_steps_value *v = &r->served;
    v->port = below(w, 6) ? 1 + below(w, 60000) : 0;
    if (r->type != EDS || below(w, 2))
        return;
    v->n_collections = below(w, MAX_CHILDREN + 1);
    for (unsigned k = 0; k < v->n_collections; k++)
        v->collections[k] = below(w, CLUSTERS);
}

/* Gives the resource a new form, a refused form, or the last good one again, or deletes it. */
static void change(struct world *w, struct kit_steps_resource *r)
{
    unsigned what = below(w, 8);
    bool may_be_deleted = r->type == LDS || r->type == CDS; /* their absence from a response means deletion */
    if (what == 0 && may_be_deleted) {
        r->deleted = true;
    } else if (what <= 2) {
        r->refused = true;
        r->deleted = false;
    } else if ((what == 3 || r->type == LDS) && (r->deleted || r->refused)) {
        r->deleted = r->refused = false;
    } else {
        r->deleted = r->refused = false;
        if (r->type == CDS)
            change_cluster(w, r);
        else if (r->type == EDS || r->type == LEDS)
            change_endpoints(w, r);
        else if (r->type == RDS)
            r->served.roots = below(w, 12) ? 1 + below(w, (1U << CLUSTERS) - 1) : 0;
    }
    push(w, r);
}

/* Makes one change at random: to a resource, or a server goes down or comes back. Routes do not change while their
 * server is down: when the server is back, new routes would come before new clusters, and the manager would drop
 * resources that are needed again once both are there. The model takes all changes at once, and would keep the values
 * of these resources. */
static void step(struct world *w)
{
    unsigned what = below(w, 40);
    struct server *s = &w->servers[below(w, SERVERS)];
    if (what == 0)
        change(w, LISTENER(w));
    else if (what <= 2 && !w->servers[TOP].down)
        change(w, ROUTES(w));
    else if (what <= 6 && s->down)
        come_up(s);
    else if (what <= 4)
        go_down(s);
    else if (what < 26)
        change(w, CLUSTER(w, below(w, CLUSTERS)));
    else if (what < 33)
        change(w, ENDPOINTS(w, below(w, CLUSTERS)));
    else
        change(w, COLLECTION(w, below(w, CLUSTERS)));
}

/* --- the model --- */

/* Takes in what the server has of the resource now. A server that is down changes nothing. */
static void receive(struct world *w, struct kit_steps_resource *r)
{
    if (w->servers[server_of(r)].down)
        return;
    if (!r->deleted && !r->refused) {
        r->good = true;
        r->held = r->served;
    } else if (w->fail_on_data_errors) {
        r->good = false;
    }
}

/* Marks the resource and all resources that its value needs. A resource that was not needed before is requested, and
 * received. */
static void mark(struct world *w, struct kit_steps_resource *r)
{
    if (r->marked)
        return;
    r->marked = true;
    if (!r->needed) {
        r->needed = true;
        receive(w, r);
    }
    if (!r->good)
        return;
    if (r->type == LDS)
        mark(w, ROUTES(w));
    for (unsigned i = 0; r->type == RDS && i < CLUSTERS; i++)
        if (r->held.roots & 1U << i)
            mark(w, CLUSTER(w, i));
    if (r->type == CDS && r->held.kind == BY_EDS)
        mark(w, ENDPOINTS(w, r->held.eds));
    for (unsigned i = 0; r->type == EDS && i < r->held.n_collections; i++)
        mark(w, COLLECTION(w, r->held.collections[i]));
    for (unsigned i = 0; r->type == CDS && r->held.kind == AGGREGATE && i < r->held.n_children; i++)
        mark(w, CLUSTER(w, r->held.children[i]));
}

static void model_step(struct world *w)
{
    for (unsigned i = 0; i < TC_ARRAY_LEN(w->resources); i++) {
        w->resources[i].marked = false;
        if (w->resources[i].needed)
            receive(w, &w->resources[i]);
    }
    mark(w, LISTENER(w));
    for (unsigned i = 0; i < TC_ARRAY_LEN(w->resources); i++)
        if (!w->resources[i].marked)
            w->resources[i].needed = w->resources[i].good = false;
}

static void model_leaves(struct world *w, unsigned i, unsigned *seen, struct tc_buf *out)
{
    const struct kit_steps_resource *r = CLUSTER(w, i);
    if (*seen & 1U << i)
        return;
    *seen |= 1U << i;
    if (!r->good || r->held.kind != AGGREGATE)
        tc_buf_printf(out, "%s ", kit_steps_clusters[i]);
    for (unsigned k = 0; r->good && r->held.kind == AGGREGATE && k < r->held.n_children; k++)
        model_leaves(w, r->held.children[k], seen, out);
}

static void assert_leaves(struct world *w, unsigned i, const struct tc_cluster_config *c)
{
    struct tc_buf want = {0}, got = {0};
    unsigned seen = 0;
    model_leaves(w, i, &seen, &want);
    for (size_t k = 0; k < c->n_leaf_clusters; k++)
        tc_buf_printf(&got, "%s ", c->leaf_clusters[k]->data);
    assert_string_equal(tc_buf_cstr(&got), tc_buf_cstr(&want));
    tc_buf_fini(&want);
    tc_buf_fini(&got);
}

/* Asserts the localities: "r" of the resource itself, if it has an endpoint, then "s0" and so on, of collections. */
static void assert_endpoints(struct world *w, const struct kit_steps_value *held, const struct tc_eds *eds)
{
    const struct tc_eds_locality *l = eds->n_priorities ? eds->priorities[0].localities : NULL;
    size_t n = (held->port != 0) + held->n_collections;
    assert_int_equal(eds->n_priorities, n != 0);
    assert_int_equal(eds->n_priorities ? eds->priorities[0].n : 0, n);
    if (held->port) {
        assert_int_equal(l->n, 1);
        assert_int_equal(ntohs(l->endpoints[0].addrs[0].sa.in.sin_port), held->port);
        l++;
    }
    for (unsigned i = 0; i < held->n_collections; i++, l++) {
        const struct kit_steps_resource *c = COLLECTION(w, held->collections[i]);
        unsigned port = c->good ? c->held.port : 0;
        assert_int_equal(l->n, port != 0);
        if (port)
            assert_int_equal(ntohs(l->endpoints[0].addrs[0].sa.in.sin_port), port);
    }
}

static void assert_cluster(struct world *w, unsigned i)
{
    const struct kit_steps_resource *r = CLUSTER(w, i);
    const struct tc_cluster_config *c = tc_xds_config_cluster(w->steps.config, tc_slice_str(kit_steps_clusters[i]));
    assert_non_null(c);
    assert_int_equal(c->status.code, r->good ? TORC_STATUS_OK : TORC_STATUS_UNAVAILABLE);
    if (!r->good) {
        assert_null(c->cluster);
        return;
    }
    if (r->held.kind == AGGREGATE) {
        assert_int_equal(c->cluster->kind, TC_CLUSTER_AGGREGATE);
        if (ROUTES(w)->held.roots & 1U << i)
            assert_leaves(w, i, c);
        return;
    }
    assert_int_equal(c->cluster->kind, r->held.kind == BY_EDS ? TC_CLUSTER_EDS : TC_CLUSTER_LOGICAL_DNS);
    assert_int_equal(c->cluster->max_concurrent_requests, r->held.requests);
    const struct kit_steps_resource *e = ENDPOINTS(w, r->held.eds);
    if (r->held.kind != BY_EDS || !e->good) {
        assert_null(c->eds);
        return;
    }
    assert_non_null(c->eds);
    assert_endpoints(w, &e->held, c->eds);
}

static void assert_model(struct world *w)
{
    size_t clusters = 0;
    assert_false(LISTENER(w)->needed && LISTENER(w)->good && !ROUTES(w)->needed);
    if (!LISTENER(w)->good || !ROUTES(w)->good || !ROUTES(w)->held.roots) {
        assert_null(w->steps.config);
        assert_int_equal(w->steps.error.code, TORC_STATUS_UNAVAILABLE);
        return;
    }
    assert_non_null(w->steps.config);
    w->configs++;
    for (unsigned i = 0; i < CLUSTERS; i++) {
        clusters += CLUSTER(w, i)->needed;
        if (CLUSTER(w, i)->needed)
            assert_cluster(w, i);
    }
    assert_int_equal(w->steps.config->n_clusters, clusters);
}

/* --- the new manager --- */

/* Each manager makes its own copy of an EDS resource that has collections. The copies must share the endpoints. */
static void assert_same_cluster(const struct tc_cluster_config *a, const struct tc_cluster_config *b)
{
    const struct tc_eds *x = a->eds, *y = b->eds;
    struct tc_cluster_config other = *b;
    if (x && y && x->n_collections) {
        assert_int_equal(x->n_priorities, y->n_priorities);
        assert_int_equal(x->priorities[0].n, y->priorities[0].n);
        for (size_t i = 0; i < x->priorities[0].n; i++)
            assert_ptr_equal(x->priorities[0].localities[i].endpoints, y->priorities[0].localities[i].endpoints);
        other.eds = x;
    }
    assert_true(tc_cluster_config_eq(a, &other));
}

static void assert_same(const struct view *a, const struct view *b)
{
    struct tc_buf pending = {0};
    tc_dependency_manager_pending(a->manager, &pending);
    assert_string_equal(tc_buf_cstr(&pending), "");
    tc_buf_fini(&pending);
    assert_int_equal(a->error.code, b->error.code);
    assert_string_equal(tc_status_text(&a->error), tc_status_text(&b->error));
    assert_int_equal(a->config == NULL, b->config == NULL);
    if (!b->config)
        return;
    assert_true(tc_xds_config_same_routing(a->config, b->config));
    assert_int_equal(a->config->n_clusters, b->config->n_clusters);
    for (size_t i = 0; i < a->config->n_clusters; i++)
        assert_same_cluster(a->config->clusters[i], b->config->clusters[i]);
}

/* --- sequences --- */

static void world_resources(struct world *w)
{
    LISTENER(w)->type = LDS;
    ROUTES(w)->type = RDS;
    ROUTES(w)->served.roots = 1;
    for (unsigned i = 0; i < CLUSTERS; i++) {
        *CLUSTER(w, i) = (struct kit_steps_resource){.type = CDS, .number = i, .served = {.eds = i, .requests = 1}};
        *ENDPOINTS(w, i) = (struct kit_steps_resource){.type = EDS, .number = i, .served = {.port = 1 + i}};
        *COLLECTION(w, i) = (struct kit_steps_resource){.type = LEDS, .number = i, .served = {.port = 101 + i}};
    }
}

static void world_open(struct world *w, unsigned seed)
{
    *w = (struct world){.version = 1, .fail_on_data_errors = seed % 4 == 3, .incremental = seed % 3 == 1};
    tc_rng_init_seed(&w->rng, seed);
    w->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    w->fake = fake_xds_new(w->loop);
    for (unsigned i = 0; i < SERVERS; i++)
        w->servers[i].fake = fake_xds_server(w->fake, uris[i]);
#define SERVER(uri) "{\"server_uri\": \"" uri "\", \"channel_creds\": [{\"type\": \"insecure\"}]%s}"
    char *features = tc_asprintf(", \"server_features\": [\"xds_v3\"%s%s]",
                                 w->fail_on_data_errors ? ", \"fail_on_data_errors\"" : "",
                                 w->incremental ? ", \"torc.incremental_ads\"" : "");
    char *bootstrap =
        tc_asprintf("{\"xds_servers\": [" SERVER("s1") "], \"authorities\": {\"a\": {\"xds_servers\": "
                                                       "[" SERVER("s2") "]}}, \"node\": {\"id\": \"n1\"}}",
                    features, features);
    w->client = kit_dependency_client(w->loop, w->fake, bootstrap);
    tc_free(bootstrap);
    tc_free(features);
    world_resources(w);
    view_open(&w->steps, w);
}

static void world_close(struct world *w)
{
    view_close(&w->steps);
    tc_xds_client_unref(w->client);
    tc_loop_drain(w->loop);
    fake_xds_free(w->fake);
    tc_loop_free(w->loop);
}

static void any_steps(void **state)
{
    (void)state;
    unsigned configs = 0, refusals = 0;
    now.inside = true;
    for (now.sequence = 0; now.sequence < SEQUENCES; now.sequence++) {
        struct world w;
        world_open(&w, now.sequence);
        for (now.step = 0; now.step < STEPS; now.step++) {
            struct view whole;
            if (now.step)
                step(&w);
            settle(&w);
            model_step(&w);
            assert_model(&w);
            view_open(&whole, &w);
            assert_same(&w.steps, &whole);
            view_close(&whole);
            tc_loop_drain(w.loop);
        }
        configs += w.configs;
        refusals += w.refusals;
        world_close(&w);
    }
    now.inside = false;
    assert_true(configs > STEPS * SEQUENCES / 2);
    assert_true(refusals > STEPS * SEQUENCES / 8);
}

static int say_where(void **state)
{
    (void)state;
    if (now.inside)
        print_message("sequence %u, step %u\n", now.sequence, now.step);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(any_steps, say_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
