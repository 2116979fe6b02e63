/* The tree of endpoint lists of a cluster, made from its EDS resource or from the addresses of its DNS name: a list for
 * each priority, and in it a list for each of the priority's localities. Draining endpoints are in the root alone, for
 * xds_override_host (A55).
 *
 * An update reuses objects of the last tree: an endpoint that is equal in the last list of its locality, a locality's
 * list with the same endpoints, a priority's list with the same name and the same lists of localities, and the root if
 * nothing changed.
 *
 * A priority keeps its name by its localities (A37, A74): a priority that shares a locality with one of the last tree
 * takes over its name, and with the name the connections. A name that left the tree is not used again until
 * tc_eds_tree_fini. Loop thread only. */
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
    struct tc_rstr *name;      /* "priority-7" */
    struct tc_endpoints *node; /* all usable endpoints; children: the lists of the localities */
    size_t n;
    struct tc_eds_tree_locality *localities;
};

/* Embedded; zero-initialised is empty. */
struct tc_eds_tree {
    struct tc_endpoints *root; /* children by priority name; own endpoints: the draining ones. NULL: no update yet */
    size_t n;
    struct tc_eds_tree_priority *priorities; /* in order */
    uint64_t next_number;                    /* for the next new name */
    bool http_connect; /* A86: EDS endpoints are reached through the proxies that they name; set before an update */
};

/* Updates the tree from the resource, which is not kept. NULL, or a resource without localities, counts as one priority
 * without endpoints (A37), so that the policy below fails the RPCs. */
void tc_eds_tree_update_eds(struct tc_eds_tree *tree, const struct tc_eds *eds);
/* Updates the tree for LOGICAL_DNS: one priority with one locality, whose list is `list` (takes a reference; NULL: no
 * endpoints). */
void tc_eds_tree_update_dns(struct tc_eds_tree *tree, struct tc_endpoints *list);
/* Frees what the tree holds. The tree is empty then: the next new name is "priority-0". Clears http_connect, too. */
void tc_eds_tree_fini(struct tc_eds_tree *tree);

#endif
