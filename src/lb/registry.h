/* The registry of policy factories by name, and the parsing of configs that name policies. api/builtin.c lists the
 * built-in factories. Filled by one thread, then read by any. */
#ifndef TC_LB_REGISTRY_H
#define TC_LB_REGISTRY_H

#include "base/vec.h"
#include "lb/policy.h"

/* A list, since policies are few. It may be constant memory, to which nothing is added. */
struct tc_lb_registry {
    TC_VEC(const struct tc_lb_factory *) factories;
};

/* Returns an empty registry, which the caller frees with tc_lb_registry_free. */
struct tc_lb_registry *tc_lb_registry_new(void);
/* NULL is allowed. The list must not be constant memory. */
void tc_lb_registry_free(struct tc_lb_registry *r);
/* Returns 0, or TORC_EEXIST when the name or alias is taken. The factory must outlive the registry. */
int tc_lb_registry_add(struct tc_lb_registry *r, const struct tc_lb_factory *factory);
/* Returns the factory of a name or alias; NULL when unknown. */
const struct tc_lb_factory *tc_lb_registry_find(const struct tc_lb_registry *r, struct tc_slice name);

/* Parses a loadBalancingConfig list [{"name": {config}}, ...] and returns the config of the first policy that is known,
 * with one reference. A config of null stands for {}. `depth` counts the policies around the list, 0 for the outermost.
 * Adds errors and returns NULL when the list is malformed up to that policy, no policy is known, that config is bad, or
 * depth exceeds 16. */
struct tc_lb_config *tc_lb_parse_list(const struct tc_lb_registry *r, const json_t *list, unsigned depth,
                                      struct tc_validation_errors *errors);
/* Parses the member `key` of the object by tc_lb_parse_list, for the child of a policy at `depth`. A member that is
 * missing or null is an error. */
struct tc_lb_config *tc_lb_parse_child(const struct tc_lb_registry *r, const json_t *object, const char *key,
                                       unsigned depth, struct tc_validation_errors *errors);
/* Returns the config that the policy makes of {}, with one reference. Returns NULL if the policy is unknown or refuses
 * {}. */
struct tc_lb_config *tc_lb_default_config(const struct tc_lb_registry *r, const char *name);

#endif
