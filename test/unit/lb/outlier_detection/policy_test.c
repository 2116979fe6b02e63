/* outlier_detection: which endpoints are ejected, for how long, and under changing configs (kits/outlier).
 *
 * A run of RPCs (kit_outlier_run) fails those to the addresses that it names. A sweep at the end of each interval
 * ejects endpoints by the RPCs that ended since the last sweep. Unless the config says otherwise, the interval is 10 s,
 * a first ejection lasts 30 s, and at most 10 % of the endpoints are ejected, but one always may be. An endpoint
 * returns at the first sweep after its ejection time, so with these defaults 40 s after its first ejection.
 *
 * assert_ejected and assert_in_service make RPCs that succeed, and these count. The fake owns the policy and the loop
 * with virtual time; the policy owns its subchannels. One thread. */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/outlier.h"

#include "base/hash.h"
#include "base/mem.h"

/* --- ejections --- */

static void by_success_rate(void **state)
{
    struct fake_lb *f = *state;
    kit_outlier_start(f, ALL, KEEN ", " RR);
    struct kit_outlier_counts counts = kit_outlier_run(f, 40, A);
    assert_int_equal(counts.at[0], 10);
    tc_loop_advance(f->loop, 10 * SECOND - 1);
    assert_in_service(f, A);
    tc_loop_advance(f->loop, 1);
    counts = kit_outlier_run(f, 30, "");
    assert_int_equal(counts.at[0], 0);
    assert_int_equal(counts.at[1], 10);
    assert_int_equal(counts.at[2], 10);
    assert_int_equal(counts.at[3], 10);
    /* The connection stays (A61), and no failure is reported upwards. */
    assert_int_equal(fake_lb_state(f, A), TORC_CONNECTIVITY_READY);
    assert_int_equal(fake_lb_count(f, NULL), 4);
    assert_connects(f, "");
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    tc_loop_advance(f->loop, 30 * SECOND);
    assert_ejected(f, A); /* A50: A returns at a sweep after its 30 s; this sweep is at the end of the 30 s */
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_in_service(f, A);
    assert_connects(f, "");
    assert_string_equal(tc_buf_cstr(&f->history), "CONNECTING READY ");
}

/* An ejected endpoint gets no RPC, whatever health its server reports. After the ejection the reported health
 * counts. */
static void health_below(void **state)
{
    TC_CASE(CH11);
    static const struct {
        int code;
        const char *text;
        bool used;
    } rows[] = {
        {TORC_STATUS_OK, "", true}, {TORC_STATUS_UNAVAILABLE, "not serving", false}, {TC_HEALTH_PENDING, "", false}};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct fake_lb *f = fake_lb_new("outlier_detection");
        kit_outlier_start(f, ALL, KEEN ", " RR);
        kit_outlier_run(f, 40, A);
        tc_loop_advance(f->loop, 10 * SECOND);
        assert_int_equal(kit_outlier_run(f, 30, "").at[0], 0);
        fake_lb_set_health(f, A, rows[i].code, rows[i].text);
        fake_lb_set_health(f, B, TORC_STATUS_UNAVAILABLE, "not serving");
        struct kit_outlier_counts counts = kit_outlier_run(f, 30, "");
        assert_true(counts.at[0] == 0 && counts.at[1] == 0 && counts.none == 0);
        tc_loop_advance(f->loop, 40 * SECOND);
        counts = kit_outlier_run(f, 30, "");
        assert_true(counts.at[0] == (rows[i].used ? 10 : 0) && counts.at[1] == 0 && counts.none == 0);
        fake_lb_set_health(f, A, TORC_STATUS_OK, "");
        assert_int_equal(kit_outlier_run(f, 30, "").at[0], 10);
        fake_lb_free(f);
    }
}

/* Returns the hash of the first entry that ring_hash makes for the address `key`: while that address is in service, an
 * RPC with that hash goes there. */
static uint64_t hash_of(const char *key)
{
    char *text = tc_asprintf("%s_0", key);
    uint64_t hash = tc_xxh64(text, strlen(text));
    tc_free(text);
    return hash;
}

/* Makes a hundred RPCs with the hash of each of the four endpoints, as kit_outlier_run does. Returns the sums. */
static struct kit_outlier_counts run_keys(struct fake_lb *f, const char *failing)
{
    struct kit_outlier_counts sum = {0};
    f->args.has_hash = true;
    for (size_t k = 0; k < 4; k++) {
        f->args.hash = hash_of(kit_outlier_addrs[k]);
        struct kit_outlier_counts counts = kit_outlier_run(f, 100, failing);
        for (size_t i = 0; i < 4; i++)
            sum.at[i] += counts.at[i];
        sum.none += counts.none;
    }
    return sum;
}

#define RING "'childPolicy': [{'ring_hash_experimental': {}}]"

/* Updates the policy with the endpoints A to D and the config {fields}, whose child policy is RING. Makes all four
 * READY, and asserts that each gets a hundred of the RPCs of run_keys. */
static void start_ring(struct fake_lb *f, const char *fields)
{
    kit_outlier_update(f, ALL, fields);
    for (size_t k = 0; k < 4; k++)
        fake_lb_pick_hash(f, hash_of(kit_outlier_addrs[k]));
    for (size_t k = 0; k < 4; k++)
        fake_lb_set(f, kit_outlier_addrs[k], TORC_CONNECTIVITY_READY);
    struct kit_outlier_counts counts = run_keys(f, "");
    assert_int_equal(kit_outlier_count_of(&counts, 100), 4);
}

static void max_ejection_percent(void **state)
{
    TC_CASE(OD02);
    struct fake_lb *f = *state;
    start_ring(f, KEEN ", " RING);
    run_keys(f, A " " C);
    tc_loop_advance(f->loop, 10 * SECOND);
    struct kit_outlier_counts counts = run_keys(f, "");
    assert_int_equal(counts.none, 0);
    assert_int_equal(kit_outlier_count_of(&counts, 0), 1);
    assert_int_equal(kit_outlier_count_of(&counts, 200), 1);
    assert_int_equal(kit_outlier_count_of(&counts, 100), 2);
}

/* max_ejection_percent is compared before each ejection. */
static void max_ejection_percent_bounds(void **state)
{
    static const struct {
        unsigned percent, ejected;
    } cases[] = {{0, 1}, {25, 1}, {26, 2}, {50, 2}, {75, 3}, {76, 4}, {100, 4}};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        struct fake_lb *f = fake_lb_new("outlier_detection");
        char *fields = tc_asprintf("'maxEjectionPercent': %u, %s, %s", cases[i].percent, HALF, RR);
        kit_outlier_start(f, ALL, fields);
        kit_outlier_run(f, 40, ALL);
        tc_loop_advance(f->loop, 10 * SECOND);
        struct kit_outlier_counts counts = kit_outlier_run(f, 60, "");
        assert_int_equal(kit_outlier_count_of(&counts, 0), cases[i].ejected);
        assert_int_equal(counts.none, cases[i].ejected == 4 ? 60 : 0);
        tc_free(fields);
        fake_lb_free(f);
    }
}

/* Asserts that no endpoint is ejected under the config {fields} while the addresses in `failing` fail. Frees `f`. */
static void nobody_is_ejected(struct fake_lb *f, const char *fields, const char *failing)
{
    kit_outlier_start(f, ALL, fields);
    kit_outlier_run(f, 40, failing);
    tc_loop_advance(f->loop, 20 * SECOND);
    struct kit_outlier_counts counts = kit_outlier_run(f, 400, failing);
    assert_int_equal(kit_outlier_count_of(&counts, 100), 4);
    fake_lb_free(f);
}

static void large_stdev_factor(void **state)
{
    TC_CASE(OD03);
    (void)state;
    /* Two of four at 0: mean 0.5, deviation 0.5. The threshold is 0, and no rate is below it. */
    nobody_is_ejected(fake_lb_new("outlier_detection"),
                      "'maxEjectionPercent': 100, 'successRateEjection': {'stdevFactor': 1000, 'minimumHosts': 1, "
                      "'requestVolume': 1}, " RR,
                      A " " C);
}

static void enforcement_zero(void **state)
{
    TC_CASE(OD04);
    (void)state;
    nobody_is_ejected(fake_lb_new("outlier_detection"),
                      "'successRateEjection': {'stdevFactor': 100, 'minimumHosts': 1, 'requestVolume': 1, "
                      "'enforcementPercentage': 0}, " RR,
                      A);
    nobody_is_ejected(fake_lb_new("outlier_detection"),
                      "'failurePercentageEjection': {'threshold': 1, 'minimumHosts': 1, 'requestVolume': 1, "
                      "'enforcementPercentage': 0}, " RR,
                      A);
}

static void too_few(void **state)
{
    TC_CASE(OD05);
    (void)state;
    static const char *const algorithms[] = {"'successRateEjection': {'stdevFactor': 100",
                                             "'failurePercentageEjection': {'threshold': 1"};
    for (size_t i = 0; i < TC_ARRAY_LEN(algorithms); i++) {
        char *hosts = tc_asprintf("%s, 'minimumHosts': 5, 'requestVolume': 1}, " RR, algorithms[i]);
        char *volume = tc_asprintf("%s, 'minimumHosts': 1, 'requestVolume': 101}, " RR, algorithms[i]);
        nobody_is_ejected(fake_lb_new("outlier_detection"), hosts, A);
        nobody_is_ejected(fake_lb_new("outlier_detection"), volume, A);
        tc_free(hosts);
        tc_free(volume);
        struct fake_lb *f = fake_lb_new("outlier_detection");
        char *enough = tc_asprintf("%s, 'minimumHosts': 4, 'requestVolume': 100}, " RR, algorithms[i]);
        kit_outlier_start(f, ALL, enough);
        kit_outlier_run(f, 400, A);
        tc_loop_advance(f->loop, 10 * SECOND);
        assert_ejected(f, A);
        tc_free(enough);
        fake_lb_free(f);
    }
}

static void by_failure_percentage(void **state)
{
    TC_CASE(OD06);
    struct fake_lb *f = *state;
    kit_outlier_start(f, A " " B, "'maxEjectionPercent': 100, " HALF ", " RR);
    kit_outlier_run(f, 20, A); /* A: 10 of 10 */
    kit_outlier_run(f, 20, "");
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_in_service(f, A); /* 50 % is not more than 50 % */
    tc_loop_advance(f->loop, 10 * SECOND);
    kit_outlier_run(f, 22, A);
    kit_outlier_run(f, 20, "");
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_ejected(f, A); /* 11 of 21 is more than 50 % */
    assert_in_service(f, B);
}

/* A50: every code but OK counts as a failure. */
static void cancelled_is_a_failure(void **state)
{
    TC_CASE(OD13);
    struct fake_lb *f = *state;
    kit_outlier_start(f, A " " B, HALF ", " RR);
    for (unsigned i = 0; i < 20; i++) {
        bool a = strcmp(fake_lb_pick(f), A) == 0;
        kit_outlier_finish(f->pick.trackers, a ? TORC_STATUS_CANCELLED : TORC_STATUS_OK);
    }
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_ejected(f, A);
}

/* --- configs that change --- */

static void off_and_on(void **state)
{
    TC_CASE(OD07);
    struct fake_lb *f = *state;
    kit_outlier_start(f, ALL, "'maxEjectionPercent': 100, " KEEN ", " HALF ", " RR);
    kit_outlier_run(f, 40, A);
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_ejected(f, A);
    /* With both algorithms off A returns at once, there is no timer, and nothing is counted. */
    unsigned reports = f->reports;
    kit_outlier_update(f, ALL, RR);
    assert_true(f->reports > reports);
    assert_in_service(f, A);
    assert_int_equal(tc_loop_timeout_ms(f->loop), -1);
    fake_lb_pick(f);
    assert_null(f->pick.trackers);
    /* When an algorithm is on again, the multiplier is 0, so the first ejection lasts 30 s, and the interval begins
     * now. */
    tc_loop_advance(f->loop, 7 * SECOND);
    kit_outlier_update(f, ALL, KEEN ", " RR);
    kit_outlier_run(f, 40, A);
    tc_loop_advance(f->loop, 10 * SECOND - 1);
    assert_in_service(f, A);
    tc_loop_advance(f->loop, 1);
    assert_ejected(f, A);
    tc_loop_advance(f->loop, 30 * SECOND);
    assert_ejected(f, A);
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_in_service(f, A);
    assert_connects(f, "");
}

/* An RPC that begins under a config that counts and ends under one that does not is not counted. */
static void off_and_on_under_rpcs(void **state)
{
    struct fake_lb *f = *state;
    kit_outlier_start(f, A " " B, HALF ", " RR);
    fake_lb_pick(f);
    struct tc_call_tracker *first = f->pick.trackers;
    assert_non_null(first);
    kit_outlier_update(f, A " " B, RR);
    kit_outlier_finish(first, TORC_STATUS_UNAVAILABLE);
    kit_outlier_update(f, A " " B, HALF ", " RR);
    tc_loop_advance(f->loop, 10 * SECOND);
    assert_in_service(f, A);
    assert_in_service(f, B);
}

static void interval_changes(void **state)
{
    TC_CASE(OD10);
    struct fake_lb *f = *state;
    kit_outlier_start(f, ALL, "'interval': '10s', " KEEN ", " RR);
    kit_outlier_run(f, 40, A);
    tc_loop_advance(f->loop, 4 * SECOND);
    kit_outlier_update(f, ALL, "'interval': '6s', " KEEN ", " RR);
    tc_loop_advance(f->loop, 2 * SECOND - 1);
    assert_in_service(f, A);
    tc_loop_advance(f->loop, 1); /* at 6 s */
    assert_ejected(f, A);
    /* A longer interval, from the last sweep on: the next sweep is at 26 s. */
    tc_loop_advance(f->loop, 3 * SECOND);
    kit_outlier_update(f, ALL, "'interval': '20s', 'baseEjectionTime': '19s', " KEEN ", " RR);
    tc_loop_advance(f->loop, 17 * SECOND - 1);
    assert_ejected(f, A);
    tc_loop_advance(f->loop, 1);
    assert_in_service(f, A);
    /* More than the new interval has passed, so the sweep is due at once. */
    kit_outlier_run(f, 40, B);
    tc_loop_advance(f->loop, 10 * SECOND);
    kit_outlier_update(f, ALL, "'interval': '5s', " KEEN ", " RR);
    tc_loop_advance(f->loop, 0);
    assert_ejected(f, B);
}

/* An update without a new interval does not move the next sweep. */
static void interval_keeps_its_phase(void **state)
{
    struct fake_lb *f = *state;
    kit_outlier_start(f, ALL, KEEN ", " RR);
    kit_outlier_run(f, 40, A);
    for (unsigned i = 0; i < 9; i++) {
        tc_loop_advance(f->loop, SECOND);
        kit_outlier_update(f, ALL, KEEN ", " RR);
    }
    assert_in_service(f, A);
    tc_loop_advance(f->loop, SECOND);
    assert_ejected(f, A);
}

/* --- how long --- */

/* Makes RPCs to A fail in one interval, which must be 1 s, and asserts that its sweep ejects A. Returns after how many
 * seconds from then on A is in service again. */
static unsigned eject_once(struct fake_lb *f)
{
    unsigned seconds = 0;
    kit_outlier_run(f, 40, A);
    tc_loop_advance(f->loop, SECOND);
    assert_ejected(f, A);
    while (!kit_outlier_in_service(f, A)) {
        tc_loop_advance(f->loop, SECOND);
        seconds++;
        assert_true(seconds < 100);
    }
    return seconds;
}

#define EACH_SECOND "'interval': '1s', 'baseEjectionTime': '5s', "

static void multiplier(void **state)
{
    TC_CASE(OD08);
    struct fake_lb *f = *state;
    kit_outlier_start(f, ALL, EACH_SECOND "'maxEjectionTime': '12s', " KEEN ", " RR);
    /* An endpoint returns at the first sweep after its ejection time: one second later. That sweep does not lower the
     * multiplier. */
    assert_int_equal(eject_once(f), 6);
    assert_int_equal(eject_once(f), 11);
    assert_int_equal(eject_once(f), 13); /* 15 s, limited to 12 s */
    assert_int_equal(eject_once(f), 13);
    /* The multiplier is 4 by now. Each interval without an ejection lowers it by one. */
    tc_loop_advance(f->loop, 3 * SECOND);
    assert_int_equal(eject_once(f), 11);
    tc_loop_advance(f->loop, 100 * SECOND);
    assert_int_equal(eject_once(f), 6);
}

static void base_above_max(void **state)
{
    struct fake_lb *f = *state;
    kit_outlier_start(f, ALL, EACH_SECOND "'maxEjectionTime': '2s', " KEEN ", " RR);
    assert_int_equal(eject_once(f), 6);
    assert_int_equal(eject_once(f), 6);
}

/* RPCs that fail after their endpoint was ejected do not prolong the ejection. */
static void late_failures(void **state)
{
    struct fake_lb *f = *state;
    kit_outlier_start(f, A " " B, EACH_SECOND HALF ", " RR);
    struct tc_call_tracker *late[4];
    unsigned n = 0;
    while (n < 4) {
        bool a = strcmp(fake_lb_pick(f), A) == 0;
        if (a)
            late[n++] = f->pick.trackers;
        else
            kit_outlier_finish(f->pick.trackers, TORC_STATUS_OK);
    }
    kit_outlier_finish(late[0], TORC_STATUS_INTERNAL);
    tc_loop_advance(f->loop, SECOND);
    assert_ejected(f, A);
    for (unsigned i = 1; i < 4; i++) {
        kit_outlier_finish(late[i], TORC_STATUS_INTERNAL);
        tc_loop_advance(f->loop, SECOND);
    }
    tc_loop_advance(f->loop, 2 * SECOND);
    assert_ejected(f, A);
    tc_loop_advance(f->loop, SECOND);
    assert_in_service(f, A);
}

/* No valid config keeps the loop busy or overflows. */
static void extremes(void **state)
{
    struct fake_lb *f = *state;
    kit_outlier_start(f, ALL,
                      "'interval': '0s', 'baseEjectionTime': '315576000000s', 'maxEjectionTime': '315576000000s', "
                      "'successRateEjection': {'stdevFactor': 0, 'minimumHosts': 0, 'requestVolume': 0}, "
                      "'failurePercentageEjection': {'threshold': 0, 'minimumHosts': 0, 'requestVolume': 0}, " RR);
    tc_loop_advance(f->loop, 100);
    assert_in_service(f, A);
    kit_outlier_run(f, 40, A);
    tc_loop_advance(f->loop, 9); /* 0 counts as 10 ms */
    assert_in_service(f, A);
    tc_loop_advance(f->loop, 1);
    assert_ejected(f, A);
    tc_loop_advance(f->loop, 100000);
    assert_ejected(f, A);
    kit_outlier_update(f, ALL, "'interval': '315576000000s', " KEEN ", " RR);
    tc_loop_advance(f->loop, 100000);
    assert_ejected(f, A);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        OUTLIER_TEST(by_success_rate),
        OUTLIER_TEST(health_below),
        OUTLIER_TEST(max_ejection_percent),
        cmocka_unit_test(max_ejection_percent_bounds),
        cmocka_unit_test(large_stdev_factor),
        cmocka_unit_test(enforcement_zero),
        cmocka_unit_test(too_few),
        OUTLIER_TEST(by_failure_percentage),
        OUTLIER_TEST(cancelled_is_a_failure),
        OUTLIER_TEST(off_and_on),
        OUTLIER_TEST(off_and_on_under_rpcs),
        OUTLIER_TEST(interval_changes),
        OUTLIER_TEST(interval_keeps_its_phase),
        OUTLIER_TEST(multiplier),
        OUTLIER_TEST(base_above_max),
        OUTLIER_TEST(late_failures),
        OUTLIER_TEST(extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
