/* The resources of dependency_steps_test: which parts of them it distinguishes, and how they look in proto3 JSON. */
#ifndef TC_SUPPORT_KITS_DEPENDENCY_STEPS_H
#define TC_SUPPORT_KITS_DEPENDENCY_STEPS_H

#include "support/kits/dependency.h"

/* There are a Listener and a RouteConfiguration, and CLUSTERS resources of each other type: clusters, endpoints, and
 * collections (LEDS: the endpoints of one locality). The top-level server has the resources with a number below AT_TOP;
 * the server of authority "a" has the rest. An aggregate cluster names MAX_CHILDREN clusters at most, an endpoints
 * resource MAX_CHILDREN collections at most. */
enum { CLUSTERS = 7, AT_TOP = 5, MAX_CHILDREN = 3 };
enum { LDS, RDS, CDS, EDS, LEDS, TYPES };

/* The parts of a resource that the test distinguishes. */
struct kit_steps_value {
    unsigned roots; /* routes: a bit for each cluster that they name; 0: no virtual host matches the authority */
    enum { BY_EDS, BY_DNS, AGGREGATE } kind;
    unsigned eds, requests;                      /* clusters: which endpoints resource (BY_EDS), the limit of RPCs */
    unsigned n_children, children[MAX_CHILDREN]; /* AGGREGATE: numbers of clusters */
    unsigned port;                               /* endpoints and collections: of the address; 0: no address */
    unsigned n_collections, collections[MAX_CHILDREN]; /* endpoints: which collection, for each further locality */
};

struct kit_steps_resource {
    unsigned type, number; /* LDS to LEDS; from 0 in each type */
    /* The server's side. */
    bool deleted, refused; /* refused: the client refuses the form that is served */
    struct kit_steps_value served;
    /* The model's side, which the test's head describes. needed: values lead from the Listener to the resource; good:
     * the client should hold the value `held`; marked: the present walk has reached the resource. */
    bool needed, good, marked;
    struct kit_steps_value held;
};

extern const char *const kit_steps_types[TYPES]; /* type URLs */
extern const char *const kit_steps_clusters[CLUSTERS];

/* Returns the resource's name, a literal. */
const char *kit_steps_name(const struct kit_steps_resource *r);
/* Appends the JSON of the resource as the server has it: `served`, or an invalid form if `refused`. */
void kit_steps_put(struct tc_buf *b, const struct kit_steps_resource *r);

#endif
