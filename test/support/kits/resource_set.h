/* The resources that a control plane has, for tests of one ADS stream: each change makes the next set, as
 * controlplane/control_plane.h does. The test owns the stream, and pushes after a change. */
#ifndef TC_SUPPORT_KITS_RESOURCE_SET_H
#define TC_SUPPORT_KITS_RESOURCE_SET_H

#include "controlplane/resource_set.h"

struct kit_resource_set {
    struct tc_resource_set *set; /* the present set; owned */
    bool mute;                   /* set by the test: the node has no set */
};

void kit_resource_set_init(struct kit_resource_set *k);
void kit_resource_set_fini(struct kit_resource_set *k);
/* Adds or replaces a resource. type: a type URL. `value` (copied) stands for the serialised message; NULL: removes the
 * resource, and fails the test if the set does not have it. */
void kit_resource_set_put(struct kit_resource_set *k, const char *type, const char *name, const char *value);
/* Answers a stream that asks for its node's set. The node must be "n1". Returns the present set, borrowed until the
 * next kit_resource_set_put or kit_resource_set_fini; NULL while mute. */
const struct tc_resource_set *kit_resource_set_of(const struct kit_resource_set *k, struct tc_slice node_id);

#endif
