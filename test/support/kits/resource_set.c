#include "support/kits/resource_set.h"

#include "support/cmocka.h"

void kit_resource_set_init(struct kit_resource_set *k)
{
    *k = (struct kit_resource_set){.set = tc_resource_set_new()};
}

void kit_resource_set_fini(struct kit_resource_set *k)
{
    tc_resource_set_free(k->set);
}

void kit_resource_set_put(struct kit_resource_set *k, const char *type, const char *name, const char *value)
{
    struct tc_resource_set *next = tc_resource_set_copy(k->set);
    if (value)
        tc_resource_set_put(next, tc_slice_str(type), tc_slice_str(name), tc_slice_str(value));
    else
        assert_true(tc_resource_set_remove(next, tc_slice_str(type), tc_slice_str(name)));
    tc_resource_set_version(next, k->set);
    tc_resource_set_free(k->set);
    k->set = next;
}

const struct tc_resource_set *kit_resource_set_of(const struct kit_resource_set *k, struct tc_slice node_id)
{
    assert_true(tc_slice_eq_str(node_id, "n1"));
    return k->mute ? NULL : k->set;
}
