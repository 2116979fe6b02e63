/* Makes the tree of endpoint lists of a cluster from its EDS resource, or from the addresses of its DNS name: a list
 * for each priority, and in it a list for each of the priority's localities. Draining endpoints stand in the root
 * alone, for xds_override_host (A55).
 *
 * What an update finds equal in the tree before it (endpoints in the list of their locality, lists of localities, lists
 * of priorities of one name) is the same object in the new tree.
 *
 * A priority keeps its name by its localities (A37, A74): a priority that shares a locality with one of the last tree
 * takes over the name, and with it the connections. Until tc_eds_tree_fini no other priority gets the name again. Loop
 * thread only. */
#ifndef TC_XDS_LB_EDS_TREE_H
#define TC_XDS_LB_EDS_TREE_H

#include "lb/endpoint.h"
#include "xds/resource/endpoints.h"

struct tc_eds_tree_locality {
    struct tc_rstr *name;         /* {region="r", zone="z", sub_zone="s"} */
    struct tc_locality *locality; /* NULL for LOGICAL_DNS */
    struct tc_endpoints *list;
};

struct tc_eds_tree_priority {
    struct tc_rstr *name; /* "priority-7" */
    struct tc_endpoints *node;
    size_t n;
    struct tc_eds_tree_locality *localities;
};

/* Embedded; zero-initialised is empty. */
struct tc_eds_tree {
    struct tc_endpoints *root; /* children by priority name; own endpoints: the draining ones. NULL before an update */
    size_t n;
    struct tc_eds_tree_priority *priorities; /* in order */
    uint64_t next_number;                    /* of the next name */
    bool http_connect; /* A86: endpoints are reached through the proxies that they name; set before an update */
};

/* Takes a new resource. NULL, and a resource without localities, count as one priority without endpoints (A37), whose
 * child fails RPCs in its own words. */
void tc_eds_tree_update_eds(struct tc_eds_tree *tree, const struct tc_eds *eds);
/* For LOGICAL_DNS: one priority with one locality, whose list is `list` (takes a reference; NULL: no endpoints). */
void tc_eds_tree_update_dns(struct tc_eds_tree *tree, struct tc_endpoints *list);
/* Frees what the tree holds; it is empty then, and names begin again. */
void tc_eds_tree_fini(struct tc_eds_tree *tree);

#endif
