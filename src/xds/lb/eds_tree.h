/* The tree of endpoint lists of a cluster, made from its EDS resource or from the addresses of its DNS name: a list for
 * each priority, and in it a list for each of the priority's localities. Draining endpoints are in the root alone, for
 * xds_override_host (A55).
 *
 * An update reuses objects of the last tree: an endpoint that is equal in the last list of its locality (a draining
 * endpoint: in the last root), a locality's list with the same endpoints, a priority's list with the same name and the
 * same lists of localities, and the root if nothing changed.
 *
 * A priority keeps its name by its localities (A37, A74): a priority that shares a locality with one of the last tree
 * takes over its name, and with the name the connections, unless a priority before it has taken the name. A name that
 * left the tree is not used again until tc_eds_tree_fini. Loop thread only. */
#ifndef TC_XDS_LB_EDS_TREE_H
#define TC_XDS_LB_EDS_TREE_H

#include "lb/endpoint.h"
#include "xds/resource/endpoints.h"

/* Each pointer is a reference. */
struct tc_eds_tree_locality {
    struct tc_rstr *name;         /* {region="r", zone="z", sub_zone="s"}; and lengths, if region or zone has a quote */
    struct tc_locality *locality; /* NULL for LOGICAL_DNS: empty names */
    struct tc_endpoints *list;    /* the usable endpoints; never NULL */
};

struct tc_eds_tree_priority {
    struct tc_rstr *name;      /* "priority-7"; a reference */
    struct tc_endpoints *node; /* all usable endpoints; children: the lists of the localities; a reference */
    size_t n;                  /* localities; 0: the resource has none */
    struct tc_eds_tree_locality *localities;
};

/* Embedded; zero-initialised is empty. */
struct tc_eds_tree {
    /* Children by priority name; own endpoints: the draining ones. A reference; NULL: no update yet. */
    struct tc_endpoints *root;
    size_t n;                                /* priorities */
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
