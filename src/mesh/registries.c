#include "mesh/registries.h"

#include <pthread.h>

#include "channel/builtin.h"
#include "mesh/cert_providers.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tc_lb_registry *lb;
static struct tc_xds_registries registries;

static bool lb_known(void *arg, const char *name)
{
    (void)arg;
    return tc_lb_registry_find(lb, tc_slice_str(name)) != NULL;
}

static void lb_check(void *arg, const json_t *list, struct tc_faults *faults)
{
    (void)arg;
    struct tc_lb_config *config = tc_lb_parse_list(lb, list, 0, faults);
    tc_lb_config_unref(config);
}

static void make(void)
{
    lb = tc_lb_registry_new();
    tc_lb_registry_add_standard(lb);
    tc_builtin_lb_add(lb);
    tc_xds_registries_init(&registries);
    registries.lb_known = lb_known;
    registries.lb_check = lb_check;
    registries.cert_plugin_known = tc_cert_plugin_known;
}

const struct tc_xds_registries *tc_mesh_registries(void)
{
    pthread_once(&once, make);
    return &registries;
}

const struct tc_lb_registry *tc_mesh_lb_registry(void)
{
    pthread_once(&once, make);
    return lb;
}
