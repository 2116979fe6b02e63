/* Inside of mesh_kit. */
#ifndef TC_SUPPORT_MESH_KIT_IMPL_H
#define TC_SUPPORT_MESH_KIT_IMPL_H

#include <pthread.h>

#include "support/mesh_kit.h"

#define MESH_KIT_NODE "test-node"

struct mesh_kit_node {
    struct tc_server *server;
    struct tc_backend *backend; /* NULL for the control plane */
    struct tc_addr addr;
    char *text;
    uint64_t taken;
    int hole; /* listens in the backend's place and never answers; -1: none */
};

struct mesh_kit {
    pthread_t thread;
    struct tc_loop *loop;
    struct mesh_kit_node control_plane, backends[MESH_KIT_MAX];
    size_t n;
    struct tc_control_plane *cp;
    struct tc_lrs *lrs;
    struct tc_buf requests;
    bool stop;
    torc_runtime *runtime;
    char *bootstrap;
};

#endif
