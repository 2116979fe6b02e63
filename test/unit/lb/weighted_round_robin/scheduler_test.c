/* The static stride scheduler: sequences that other clients produce too, the limits on weights, and shares.
 *
 * The caller of the scheduler has the number of the sequence, which a pick advances. A place is the index of a weight.
 * Weights are scaled so that the largest, after the cut to ten times the mean, is 65535: in 65535 rounds of n numbers
 * a place comes as often as its scaled weight says. A test frees its scheduler with tc_free. One thread. */
#include "lb/weighted_round_robin/scheduler.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"
#include "support/case.h"
#include "support/cmocka.h"

/* The CRC-32 of zlib and of Ethernet. */
static uint32_t crc32_of(const char *text, size_t len)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < len; i++) {
        crc ^= (uint8_t)text[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

#define ONES 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1

/* C-core's sequences from 0 on, computed by a program that shares no code with the scheduler. scaled: the first weights
 * of the scheduler, at most 5; 0 ends them. picks: the first 40 picks; NULL: not compared. crc: the CRC-32 of the first
 * 10,000 picks, joined by commas. */
static const struct {
    float weights[20];
    size_t n;
    uint16_t scaled[5];
    const char *picks;
    uint32_t crc;
} sequences[] = {
    {{1, 2, 3}, 3, {21845, 43690, 65535}, "1220121220121220121220121220121220121220", 0x49d9882a},
    {{3, 0, 1}, 3, {65535, 43690, 21845}, "0120010120010120010120010120010120010120", 0xcebee099},
    {{2, 3, 6}, 3, {21845, 32768, 65535}, "1220122120212201221202122012212021220122", 0xbeacf536},
    {{10, 100, 20, 200}, 4, {3277, 32767, 6553, 65535}, "2313313313313313231331331331330132313313", 0x3ed56838},
    {{81, ONES}, 20, {65535, 1311, 1311}, NULL, 0xfaf35975},
    {{100, 1e-10f}, 2, {65535, 328}, NULL, 0x8d156914},
    {{.3f, .3f, .9f, 0, 7.5f},
     5,
     {2621, 2621, 7864, 19661, 65535},
     "2434443444423444341443442443444344434024",
     0x0799decf},
};

static void the_sequences_of_c_core(void **state)
{
    TC_CASE(WR18);
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(sequences); i++) {
        struct tc_wrr_scheduler *s = tc_wrr_scheduler_new(sequences[i].weights, sequences[i].n);
        struct tc_buf text = {0};
        char digits[41] = "";
        uint32_t sequence = 0;
        for (unsigned k = 0; k < 10000; k++) {
            uint32_t place = tc_wrr_scheduler_pick(s, &sequence);
            tc_buf_printf(&text, k ? ",%u" : "%u", place);
            if (k < 40)
                digits[k] = (char)('0' + place);
        }
        for (size_t k = 0; k < 5 && sequences[i].scaled[k]; k++)
            assert_int_equal(s->weights[k], sequences[i].scaled[k]);
        if (sequences[i].picks)
            assert_string_equal(digits, sequences[i].picks);
        assert_int_equal(crc32_of(text.data, text.len), sequences[i].crc);
        tc_buf_fini(&text);
        tc_free(s);
    }
}

static void nothing_to_weigh(void **state)
{
    TC_CASE(WR01);
    (void)state;
    const float none[4] = {0}, one[] = {1}, unknown[] = {-3.1f, -0.0f, 0};
    assert_null(tc_wrr_scheduler_new(NULL, 0));
    assert_null(tc_wrr_scheduler_new(none, 1));
    assert_null(tc_wrr_scheduler_new(none, 4));
    assert_null(tc_wrr_scheduler_new(one, 1));
    assert_null(tc_wrr_scheduler_new(unknown, 3));
}

/* Equal weights, whatever they are, give plain round robin. */
static void equal_weights(void **state)
{
    TC_CASE(PD03);
    (void)state;
    static const float each[] = {1e-30f, 1, 3, 65535, 1e30f};
    for (size_t i = 0; i < TC_ARRAY_LEN(each); i++) {
        const float weights[5] = {each[i], each[i], each[i], each[i], each[i]};
        struct tc_wrr_scheduler *s = tc_wrr_scheduler_new(weights, 5);
        uint32_t sequence = 0;
        assert_non_null(s);
        for (unsigned k = 0; k < 1000; k++)
            assert_int_equal(tc_wrr_scheduler_pick(s, &sequence), k % 5);
        tc_free(s);
    }
}

/* Asserts that each place i of n, at most 20, comes counts[i] times in the `picks` picks from this number of the
 * sequence on. */
static void assert_counts(const float *weights, size_t n, uint32_t sequence, unsigned picks, const unsigned *counts)
{
    struct tc_wrr_scheduler *s = tc_wrr_scheduler_new(weights, n);
    unsigned got[20] = {0};
    for (unsigned i = 0; i < picks; i++)
        got[tc_wrr_scheduler_pick(s, &sequence)]++;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(got[i], counts[i]);
    tc_free(s);
}

static void counts_of_picks(void **state)
{
    TC_CASE(WR02);
    TC_CASE(WR03);
    TC_CASE(WR04);
    TC_CASE(PD04);
    (void)state;
    assert_counts((float[]){1, 2, 3}, 3, 0, 6, (unsigned[]){1, 2, 3});
    assert_counts((float[]){3, 0, 1}, 3, 0, 6, (unsigned[]){3, 2, 1});
    assert_counts((float[]){300, 300, 0}, 3, 0, 3, (unsigned[]){1, 1, 1});
    assert_counts((float[]){300, 300, 0}, 3, 0, 3000, (unsigned[]){1000, 1000, 1000});
    assert_counts((float[]){1, 2, 3}, 3, 0, 131070, (unsigned[]){21845, 43690, 65535});
    assert_counts((float[]){81, ONES}, 20, 0, 69, (unsigned[]){50, ONES});
    assert_counts((float[]){100, 1e-10f}, 2, 0, 201, (unsigned[]){200, 1});
}

/* A weight of -1 counts as unknown, as 0 does. */
static void unknown_weights_are_the_mean(void **state)
{
    TC_CASE(WR06);
    (void)state;
    assert_counts((float[]){3, -1, 1}, 3, 0, 6, (unsigned[]){3, 2, 1});
}

static void the_sequence_wraps(void **state)
{
    TC_CASE(WR05);
    (void)state;
    const uint32_t picks[] = {1, 2, 2, 0, 1, 2};
    struct tc_wrr_scheduler *s = tc_wrr_scheduler_new((float[]){2, 3, 6}, 3);
    uint32_t sequence = UINT32_MAX;
    for (size_t i = 0; i < TC_ARRAY_LEN(picks); i++)
        assert_int_equal(tc_wrr_scheduler_pick(s, &sequence), picks[i]);
    assert_int_equal(sequence, 9);
    tc_free(s);
}

/* Unknown weights, ordinary weights, and weights at the ends of what a report can give, in every mix of three. */
static void extreme_weights(void **state)
{
    (void)state;
    const float all[] = {0, -1, (float)TC_WRR_WEIGHT_MIN, 1e-10f, 1, 65535, 1e10f, 1e38f, FLT_MAX};
    enum { N = TC_ARRAY_LEN(all) };
    for (size_t i = 0; i < N * N * N; i++) {
        const float weights[] = {all[i % N], all[i / N % N], all[i / N / N]};
        struct tc_wrr_scheduler *s = tc_wrr_scheduler_new(weights, 3);
        if (!s) {
            assert_true(i % N < 2 && i / N % N < 2 && i / N / N < 2);
            continue;
        }
        uint32_t sequence = 0;
        unsigned counts[3] = {0};
        for (unsigned k = 0; k < 5000; k++)
            counts[tc_wrr_scheduler_pick(s, &sequence)]++;
        for (size_t k = 0; k < 3; k++) {
            assert_true(s->weights[k] >= 1);
            assert_true(counts[k] > 0);
        }
        tc_free(s);
    }
}

/* 10,000 endpoints, a tenth of them with an unknown weight. After 300 rounds each endpoint has its share of the picks,
 * within 1.5 picks. */
static void shares_of_many_endpoints(void **state)
{
    TC_CASE(PD04);
    (void)state;
    enum { MANY = 10000, ROUNDS = 300 };
    static float weights[MANY];
    static unsigned counts[MANY];
    struct tc_rng rng;
    tc_rng_init_seed(&rng, 58);
    for (size_t i = 0; i < MANY; i++)
        weights[i] = i % 10 ? (float)(1 + tc_rng_below(&rng, 1000)) : 0;
    struct tc_wrr_scheduler *s = tc_wrr_scheduler_new(weights, MANY);
    uint32_t sequence = 0;
    unsigned long picks = 0;
    while (sequence < MANY * ROUNDS) {
        counts[tc_wrr_scheduler_pick(s, &sequence)]++;
        picks++;
    }
    for (size_t i = 0; i < MANY; i++) {
        double share = ROUNDS * (double)s->weights[i] / 65535;
        assert_true(counts[i] > share - 1.5 && counts[i] < share + 1.5);
    }
    assert_true(picks > MANY * ROUNDS / 10); /* a pick takes at most ten numbers of the sequence on average */
    tc_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sequences_of_c_core),
        cmocka_unit_test(nothing_to_weigh),
        cmocka_unit_test(equal_weights),
        cmocka_unit_test(counts_of_picks),
        cmocka_unit_test(unknown_weights_are_the_mean),
        cmocka_unit_test(the_sequence_wraps),
        cmocka_unit_test(extreme_weights),
        cmocka_unit_test(shares_of_many_endpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
