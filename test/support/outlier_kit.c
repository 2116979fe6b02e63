#include "support/outlier_kit.h"

#include "support/cmocka.h"

#include "base/mem.h"

const char *const outlier_kit_addrs[4] = {A, B, C, D};

int outlier_kit_setup(void **state)
{
    *state = fake_lb_new("outlier_detection");
    return 0;
}

int outlier_kit_teardown(void **state)
{
    fake_lb_free(*state);
    return 0;
}

void outlier_kit_update(struct fake_lb *f, const char *endpoints, const char *fields)
{
    char *json = tc_asprintf("{%s}", fields), *why = NULL;
    struct tc_lb_config *config = fake_config(f, "outlier_detection", json, &why);
    if (!config)
        fail_msg("%s", why);
    assert_true(fake_update(f, fake_endpoints(endpoints), config, NULL));
    tc_free(json);
}

void outlier_kit_start(struct fake_lb *f, const char *endpoints, const char *fields)
{
    outlier_kit_update(f, endpoints, fields);
    for (size_t i = 0; i < TC_ARRAY_LEN(outlier_kit_addrs); i++)
        if (fake_count(f, outlier_kit_addrs[i]))
            fake_set(f, outlier_kit_addrs[i], TORC_READY);
    fake_take_connects(f);
}

void outlier_kit_finish(struct tc_call_tracker *t, int code)
{
    struct tc_status status = tc_status_make(code, "%s", code ? "failed" : "");
    for (struct tc_call_tracker *next; t; t = next) {
        next = t->next;
        t->on_done(t, &status, NULL);
    }
    tc_status_fini(&status);
}

struct outlier_counts outlier_kit_run(struct fake_lb *f, unsigned n, const char *failing)
{
    struct outlier_counts counts = {0};
    for (unsigned i = 0; i < n; i++) {
        const char *text = fake_pick(f);
        unsigned k = 0;
        while (k < 4 && strcmp(outlier_kit_addrs[k], text) != 0)
            k++;
        if (k == 4)
            counts.none++;
        else
            counts.at[k]++;
        outlier_kit_finish(f->pick.trackers, strstr(failing, text) ? TORC_STATUS_UNAVAILABLE : TORC_STATUS_OK);
    }
    return counts;
}

bool outlier_kit_in_service(struct fake_lb *f, const char *addr)
{
    bool found = false;
    for (unsigned i = 0; i < 8; i++) {
        found |= strcmp(fake_pick(f), addr) == 0;
        outlier_kit_finish(f->pick.trackers, TORC_STATUS_OK);
    }
    return found;
}

unsigned outlier_kit_count_of(const struct outlier_counts *c, unsigned value)
{
    unsigned n = 0;
    for (size_t i = 0; i < 4; i++)
        n += c->at[i] == value;
    return n;
}
