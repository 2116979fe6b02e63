/* An LB policy of the application's own, "fewest": draws two connected endpoints at random for each RPC (perhaps the
 * same one twice), and sends the RPC to the one with fewer RPCs under way. An endpoint that stays in an update keeps
 * its count. `childPolicy` in the config names the policy of each endpoint. The policy needs no lock: its functions run
 * on the thread of the default runtime, except check_config, which uses no state.
 *
 * usage: lb_policy TARGET (ipv4:127.0.0.1:50051,127.0.0.1:50052, say) */
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

enum { MOST = 64 };

static struct fewest {
    torc_lb_helper *helper;
    struct place { /* an endpoint's; free again when the endpoint is gone and its RPCs have ended */
        char address[128];
        torc_lb_child *child; /* NULL: free, or the endpoint is gone */
        int active;           /* RPCs under way */
    } at[MOST], *ready[MOST];
    size_t n_ready;
} only; /* the program has one channel, which has one policy at a time */

static void *create(torc_lb_helper *helper, void *arg)
{
    *(struct fewest *)arg = (struct fewest){.helper = helper};
    return arg;
}

static void publish(struct fewest *f, const char *why)
{
    f->n_ready = 0;
    for (struct place *p = f->at; p < f->at + MOST; p++)
        if (p->child && torc_lb_child_state(p->child) == TORC_CONNECTIVITY_READY)
            f->ready[f->n_ready++] = p;
    torc_lb_update_state_of_children(f->helper, why);
}

/* Returns the place of an address: its own, or else a free one, which gets the address. NULL: all are taken. */
static struct place *place_of(struct fewest *f, const char *address)
{
    for (struct place *p = f->at; p < f->at + MOST; p++)
        if (strcmp(p->address, address) == 0)
            return p;
    for (struct place *p = f->at; p < f->at + MOST; p++)
        if (!p->child && p->active == 0)
            return snprintf(p->address, sizeof(p->address), "%s", address), p;
    return NULL;
}

static void update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
{
    struct fewest *f = state;
    bool stays[MOST] = {0};
    for (size_t i = 0; i < n; i++) {
        struct place *p = place_of(f, torc_lb_endpoint_address(endpoints[i], 0));
        if (!p)
            continue; /* all MOST places are taken: the endpoint gets no RPCs */
        stays[p - f->at] = true;
        if (!p->child)
            p->child = torc_lb_child_create(f->helper, NULL, NULL);
        torc_lb_child_set_config(p->child, config_json, "childPolicy", NULL); /* check_config found it good */
        torc_lb_child_set_endpoints(p->child, &endpoints[i], 1);
    }
    for (struct place *p = f->at; p < f->at + MOST; p++)
        if (!stays[p - f->at])
            torc_lb_child_destroy(p->child), p->child = NULL;
    publish(f, "there are no endpoints");
}

static void on_child_state(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity now)
{
    (void)child_arg, (void)now;
    torc_lb_child_connect(child); /* connects again if the child became idle; otherwise does nothing */
    publish(state, torc_lb_child_text(child));
}

static torc_lb_child *pick(void *state, torc_lb_pick *pick)
{
    struct fewest *f = state;
    if (f->n_ready == 0)
        return NULL; /* the RPC waits; while the policy is in TRANSIENT_FAILURE it fails with the reason */
    struct place *a = f->ready[(torc_lb_pick_random(pick) & UINT32_MAX) % f->n_ready];
    struct place *b = f->ready[(torc_lb_pick_random(pick) >> 32) % f->n_ready];
    struct place *p = b->active < a->active ? b : a;
    torc_lb_pick_watch(pick, p);
    p->active += !torc_lb_pick_explains(pick);
    return p->child;
}

static void on_call_end(void *state, void *call_arg, torc_lb_call_end *end)
{
    (void)state, (void)end;
    ((struct place *)call_arg)->active--;
}

static void check_config(torc_lb_check *check, const char *config_json, void *arg)
{
    (void)config_json, (void)arg;
    torc_lb_check_child(check, "childPolicy");
}

int main(int argc, char **argv)
{
    static const struct torc_lb_factory fewest = {TORC_SIZE(torc_lb_factory),
                                                  .name = "fewest",
                                                  .create = create,
                                                  .update = update,
                                                  .arg = &only,
                                                  .on_child_state = on_child_state,
                                                  .pick = pick,
                                                  .on_call_end = on_call_end,
                                                  .check_config = check_config};
    static const struct torc_lb_factory *const policies[] = {&fewest, NULL};
    struct torc_channel_options o = {
        TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(), .lb_policies = policies,
        .service_config_json = "{\"loadBalancingConfig\":[{\"fewest\":{\"childPolicy\":[{\"pick_first\":{}}]}}]}"};
    torc_error *error = NULL;
    torc_channel *channel = argc == 2 ? torc_channel_new(NULL, argv[1], &o, &error) : NULL;
    if (!channel)
        return fprintf(stderr, "%s\n", argc == 2 ? torc_error_text(error) : "usage: lb_policy TARGET"), 1;
    int failed = 0;
    for (int i = 0; i < 8; i++) {
        struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 5000};
        torc_result *r = torc_unary(channel, "echo.Echo/Say", "", 0, &options);
        printf("%s %s\n", torc_result_peer(r), torc_error_text(torc_result_error(r)));
        failed += torc_result_code(r) != 0;
        torc_result_free(r);
    }
    torc_channel_free(channel);
    return failed;
}
