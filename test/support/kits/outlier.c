/* outlier_detection over fakes/lb: updates from short texts, and runs of RPCs that succeed or fail by address. */
#include "support/kits/outlier.h"

#include "support/cmocka.h"

#include "base/mem.h"

const char *const kit_outlier_addrs[4] = {A, B, C, D};

int kit_outlier_setup(void **state)
{
    *state = fake_lb_new("outlier_detection");
    return 0;
}

int kit_outlier_teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

void kit_outlier_update(struct fake_lb *f, const char *endpoints, const char *fields)
{
    char *json = tc_asprintf("{%s}", fields), *why = NULL;
    struct tc_lb_config *config = fake_lb_config(f, "outlier_detection", json, &why);
    if (!config)
        fail_msg("%s", why);
    assert_true(fake_lb_update(f, fake_lb_endpoints(endpoints), config, NULL));
    tc_free(json);
}

void kit_outlier_start(struct fake_lb *f, const char *endpoints, const char *fields)
{
    kit_outlier_update(f, endpoints, fields);
    for (size_t i = 0; i < TC_ARRAY_LEN(kit_outlier_addrs); i++)
        if (fake_lb_count(f, kit_outlier_addrs[i]))
            fake_lb_set(f, kit_outlier_addrs[i], TORC_CONNECTIVITY_READY);
    fake_lb_take_connects(f);
}

void kit_outlier_finish(struct tc_call_tracker *t, int code)
{
    struct tc_status status = tc_status_make(code, TORC_LAYER_LB, "%s", code ? "failed" : "");
    for (struct tc_call_tracker *next; t; t = next) {
        next = t->next;
        t->on_done(t, &status, NULL);
    }
    tc_status_fini(&status);
}

struct kit_outlier_counts kit_outlier_run(struct fake_lb *f, unsigned n, const char *failing)
{
    struct kit_outlier_counts counts = {0};
    for (unsigned i = 0; i < n; i++) {
        const char *text = fake_lb_pick(f);
        unsigned k = 0;
        while (k < 4 && strcmp(kit_outlier_addrs[k], text) != 0)
            k++;
        if (k == 4)
            counts.none++;
        else
            counts.at[k]++;
        kit_outlier_finish(f->pick.trackers, strstr(failing, text) ? TORC_STATUS_UNAVAILABLE : TORC_STATUS_OK);
    }
    return counts;
}

bool kit_outlier_in_service(struct fake_lb *f, const char *addr)
{
    bool found = false;
    for (unsigned i = 0; i < 8; i++) {
        found |= strcmp(fake_lb_pick(f), addr) == 0;
        kit_outlier_finish(f->pick.trackers, TORC_STATUS_OK);
    }
    return found;
}

unsigned kit_outlier_count_of(const struct kit_outlier_counts *c, unsigned value)
{
    unsigned n = 0;
    for (size_t i = 0; i < 4; i++)
        n += c->at[i] == value;
    return n;
}
