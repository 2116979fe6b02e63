/* From an EDS resource to the endpoint tree of the cds policy: a list for each priority, each with a list for each of
 * its localities below it.
 *
 * What did not change between two resources is the same object in both trees: endpoints, localities' lists, priorities.
 * Endpoints that drain are in none of them, but stand in the root itself, for xds_override_host (A55).
 *
 * Priorities keep their names by the localities in them (A37, A74), so that a locality that moves between priorities
 * takes its connections along; a name is never used again for anything else. */
#ifndef TC_MESH_CDS_TREE_H
#define TC_MESH_CDS_TREE_H

#include "lb/endpoint.h"
#include "resource/endpoints.h"

struct tc_cds_locality {
    struct tc_rstr *name; /* {region="r", zone="z", sub_zone="s"} */
    struct tc_locality *locality;
    struct tc_endpoints *list;
};

struct tc_cds_priority {
    struct tc_rstr *name; /* "priority-7" */
    struct tc_endpoints *node;
    size_t n;
    struct tc_cds_locality *localities;
};

/* Embedded; zero-initialised is empty. */
struct tc_cds_tree {
    struct tc_endpoints *root; /* children by priority name; its own endpoints: those that drain */
    size_t n;
    struct tc_cds_priority *priorities; /* in order */
    uint64_t next_number;
    bool http_connect; /* A86: endpoints are reached by the proxies that they name; set before an update */
};

/* Takes in a new resource. NULL, and one without localities, count as one priority without endpoints (A37): its child
 * then fails RPCs in its own words. */
void tc_cds_tree_update_eds(struct tc_cds_tree *tree, const struct tc_eds *eds);
/* LOGICAL_DNS: one priority with one locality; NULL: without endpoints. */
void tc_cds_tree_update_dns(struct tc_cds_tree *tree, struct tc_endpoints *list);
void tc_cds_tree_fini(struct tc_cds_tree *tree);

#endif
