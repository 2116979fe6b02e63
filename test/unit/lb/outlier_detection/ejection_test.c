/* The algorithms of outlier_detection on numbers alone: tc_outlier_sweep without a policy, subchannels or a loop.
 *
 * Each test counts RPCs of some endpoints (`count`), lets a sweep decide (`sweep`), and reads which are ejected. Counts
 * last for one sweep. Every sweep is at the same time, 1000 ms, so an endpoint stays ejected until the test resets
 * `ejected`; only logs_each_change also sweeps later. Both algorithms are off at first: a test turns on what it tests.
 * max_ejection_percent and the least numbers of hosts and RPCs never prevent an ejection. The random numbers have a
 * fixed seed. The comments call an endpoint a host. */
#include "lb/outlier_detection/ejection.h"

#include "support/cmocka.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"

enum { MAX = 64 };

struct world {
    struct tc_outlier outliers[MAX];
    struct tc_outlier *all[MAX];  /* all[i] is &outliers[i] */
    struct tc_endpoint *endpoint; /* a reference; all outliers borrow it */
    struct tc_outlier_settings settings;
    struct tc_rng rng;
};

static int setup(void **state)
{
    struct world *w = TC_NEW(struct world);
    struct tc_addr addr;
    assert_int_equal(tc_addr_parse(&addr, tc_slice_str("1.1.1.1:1")), 0);
    w->endpoint = tc_endpoint_new(&addr, 1);
    for (size_t i = 0; i < MAX; i++) {
        w->outliers[i].endpoint = w->endpoint;
        w->all[i] = &w->outliers[i];
    }
    w->settings = tc_outlier_defaults;
    w->settings.max_ejection_percent = 100;
    w->settings.success_rate.minimum_hosts = w->settings.failure_percentage.minimum_hosts = 0;
    w->settings.success_rate.request_volume = w->settings.failure_percentage.request_volume = 0;
    tc_rng_init_seed(&w->rng, 1);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    tc_endpoint_unref(w->endpoint);
    tc_free(w);
    return 0;
}

/* Sets the RPCs that ended at host i since the last sweep. */
static void count(struct world *w, size_t i, uint64_t successes, uint64_t failures)
{
    w->outliers[i].now = (struct tc_outlier_count){successes, failures};
}

/* Sweeps the first n endpoints at 1000 ms. Returns how many of them are ejected afterwards. */
static size_t sweep(struct world *w, size_t n)
{
    size_t ejected = 0;
    tc_outlier_sweep(w->all, n, &w->settings, 1000, &w->rng, tc_slice_str("target"));
    for (size_t i = 0; i < n; i++)
        ejected += w->outliers[i].ejected;
    return ejected;
}

/* The mean is 0.8 and the deviation 0.4, so a host at 0 is ejected by factors below 2. stdev_factor counts
 * thousandths. */
static void success_rate_threshold(void **state)
{
    struct world *w = *state;
    static const struct {
        uint32_t factor;
        size_t ejected;
    } cases[] = {{0, 1}, {1000, 1}, {1999, 1}, {2000, 0}, {2001, 0}, {UINT32_MAX, 0}};
    w->settings.success_rate.on = true;
    for (size_t c = 0; c < TC_ARRAY_LEN(cases); c++) {
        w->settings.stdev_factor = cases[c].factor;
        for (size_t i = 0; i < 5; i++)
            count(w, i, i ? 10 : 0, i ? 0 : 10);
        assert_int_equal(sweep(w, 5), cases[c].ejected);
        assert_int_equal(w->outliers[0].ejected, cases[c].ejected);
        w->outliers[0].ejected = false;
    }
}

/* Hosts without RPCs have no rate: they do not count in the mean, and are not ejected. */
static void hosts_without_rpcs(void **state)
{
    struct world *w = *state;
    w->settings.success_rate.on = w->settings.failure_percentage.on = true;
    assert_int_equal(sweep(w, 5), 0);
    count(w, 0, 9, 1);
    assert_int_equal(sweep(w, 5), 0);
    count(w, 0, 10, 0);
    count(w, 1, 0, 10);
    w->settings.failure_percentage.on = false;
    w->settings.stdev_factor = 900;
    assert_int_equal(sweep(w, 5), 1);
    assert_true(w->outliers[1].ejected);
}

/* Hosts with equal rates are not outliers, whatever their sum rounds to. */
static void equal_hosts(void **state)
{
    struct world *w = *state;
    w->settings.success_rate.on = true;
    w->settings.stdev_factor = 0;
    for (size_t n = 1; n <= MAX; n++)
        for (uint64_t failures = 0; failures <= 50; failures++) {
            for (size_t i = 0; i < n; i++)
                count(w, i, 50 * (i % 3 + 1) - failures * (i % 3 + 1), failures * (i % 3 + 1));
            assert_int_equal(sweep(w, n), 0);
        }
}

/* A host that an algorithm finds is ejected with a chance of enforcement_percent. */
static void enforcement(void **state)
{
    struct world *w = *state;
    size_t ejected = 0;
    w->settings.failure_percentage.on = true;
    w->settings.failure_percentage.enforcement_percent = 30;
    for (unsigned round = 0; round < 200; round++) {
        for (size_t i = 0; i < 50; i++) {
            count(w, i, 0, 10);
            w->outliers[i].ejected = false;
        }
        ejected += sweep(w, 50);
    }
    assert_in_range(ejected, 2800, 3200);
}

/* A host that both algorithms find is ejected once. */
static void ejected_by_both(void **state)
{
    struct world *w = *state;
    w->settings.success_rate.on = w->settings.failure_percentage.on = true;
    w->settings.stdev_factor = 100;
    for (size_t i = 0; i < 5; i++)
        count(w, i, i ? 10 : 0, i ? 0 : 10);
    assert_int_equal(sweep(w, 5), 1);
    assert_int_equal(w->outliers[0].multiplier, 1);
}

/* A log sink. arg: the struct tc_buf to append the line to. */
static void add_line(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    assert_string_equal(module, "lb");
    assert_int_equal(level, TORC_LOG_INFO);
    tc_buf_printf(arg, "%s\n", message);
}

/* Each change has one line; a sweep without a change has none. */
static void logs_each_change(void **state)
{
    struct world *w = *state;
    struct tc_buf lines = {0};
    w->settings.failure_percentage.on = true;
    assert_int_equal(torc_log_set_levels("lb=info"), 0);
    torc_log_set_sink(add_line, &lines);
    count(w, 0, 1, 9);
    count(w, 1, 9, 1);
    assert_int_equal(sweep(w, 2), 1);
    assert_int_equal(sweep(w, 2), 1);
    assert_true(tc_outlier_sweep(w->all, 2, &w->settings, 32000, &w->rng, tc_slice_str("target")));
    torc_log_set_sink(NULL, NULL);
    assert_int_equal(torc_log_set_levels("warn"), 0);
    assert_string_equal(
        tc_buf_cstr(&lines),
        "target: outlier_detection ejects 1.1.1.1:1 for 30000 ms by failure percentage: 9 of 10 RPCs of "
        "the last interval failed\n"
        "target: outlier_detection returns 1.1.1.1:1 to service after 31000 ms\n");
    tc_buf_fini(&lines);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(success_rate_threshold), TEST(hosts_without_rpcs), TEST(equal_hosts), TEST(enforcement),
        TEST(ejected_by_both),        TEST(logs_each_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
