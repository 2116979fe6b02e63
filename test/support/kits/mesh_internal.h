/* The inside of kit_mesh, which owns all that it points to. While the servers' thread runs, nodes, control plane, LRS
 * server and `requests` belong to that thread. Of a node the test's thread reads only `addr` and `text`, which change
 * only in jobs that the test's thread waits for. */
#ifndef TC_SUPPORT_KITS_MESH_INTERNAL_H
#define TC_SUPPORT_KITS_MESH_INTERNAL_H

#include <pthread.h>

#include "support/kits/echo.h"
#include "support/kits/mesh.h"

#define KIT_MESH_NODE "test-node"

struct kit_mesh_node {
    struct tc_server *server;
    struct kit_echo *backend; /* NULL for the control plane */
    struct tc_addr addr;
    char *text;     /* of addr */
    uint64_t taken; /* requests at the last kit_mesh_take */
    int port;       /* a socket that holds the port (port_hold), also while no server listens there */
    int hole;       /* a socket that listens instead of the backend and never answers; -1: none */
};

struct kit_mesh {
    pthread_t thread;     /* the servers': turns `loop` until `stop` */
    struct tc_loop *loop; /* of the servers */
    struct kit_mesh_node control_plane, backends[KIT_MESH_MAX];
    size_t n; /* backends */
    struct tc_control_plane *cp;
    struct tc_lrs *lrs;     /* on the server of the control plane */
    struct tc_buf requests; /* the lines of kit_mesh_requests that were not taken yet */
    bool stop;              /* written and read on the servers' thread */
    torc_runtime *runtime;  /* of the channels */
    char *bootstrap;
};

#endif
