/* The embedded control plane on a loop of its own. The bootstrap of the world names its address. */
#include "testing/resources.h"

#include "base/mem.h"
#include "base/status.h"
#include "controlplane/control_plane.h"
#include "controlplane/lrs.h"

struct tc_resources {
    struct tc_loop *loop;
    struct tc_server *server;
    struct tc_control_plane *plane;
    struct tc_lrs *lrs; /* load reports are taken and dropped */
};

struct tc_resources *tc_resources_new(void)
{
    struct tc_resources *r = TC_NEW(struct tc_resources);
    struct tc_server_opts opts;
    struct tc_addr addr;
    struct tc_status error = {0};
    tc_server_opts_init(&opts);
    r->loop = tc_loop_new(NULL);
    r->server = tc_server_new(r->loop, &opts);
    r->plane = tc_control_plane_new(r->server);
    r->lrs = tc_lrs_new(r->server);
    tc_addr_parse(&addr, tc_slice_str(TC_RESOURCES_ADDRESS));
    /* Fails if a server of the test listens there: that server is the control plane then. */
    tc_server_listen(r->server, &addr, NULL, &error);
    tc_status_fini(&error);
    tc_addr_fini(&addr);
    return r;
}

void tc_resources_free(struct tc_resources *r)
{
    if (!r)
        return;
    tc_server_free(r->server);
    tc_control_plane_free(r->plane);
    tc_lrs_free(r->lrs);
    tc_loop_free(r->loop);
    tc_free(r);
}

size_t tc_resources_loops(const struct tc_resources *r)
{
    return r ? 1 : 0;
}

int tc_resources_put(struct tc_resources *r, const char *text, torc_error **error)
{
    char *why = NULL;
    int rc = tc_control_plane_put(r->plane, text, &why);
    if (rc != 0)
        tc_error_set(error, rc, TORC_LAYER_API, "resources: %s", why);
    tc_free(why);
    return rc;
}

int tc_resources_remove(struct tc_resources *r, const char *type_url, const char *name)
{
    return tc_control_plane_remove(r->plane, type_url, name);
}

const char *tc_resources_bootstrap(void)
{
    return "{\"xds_servers\": [{\"server_uri\": \"" TC_RESOURCES_ADDRESS
           "\", \"channel_creds\": [{\"type\": \"insecure\"}], \"server_features\": [\"xds_v3\"]}], "
           "\"node\": {\"id\": \"torc-testing\"}}";
}
