/* outlier_detection over fake subchannels: RPCs that succeed or fail by address, on virtual time. In the JSON of
 * configs, ' stands for ". */
#ifndef TC_SUPPORT_KITS_OUTLIER_H
#define TC_SUPPORT_KITS_OUTLIER_H

#include "support/fakes/lb.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"
#define C "3.3.3.3:3"
#define D "4.4.4.4:4"
#define ALL A " " B " " C " " D
#define RR "'childPolicy': [{'round_robin': {}}]"
/* KEEN ejects endpoints whose success rate is more than a tenth of a standard deviation below the mean: one failure in
 * an interval suffices, if the other endpoints have RPCs without a failure. HALF ejects endpoints of which more than
 * 50 % of the RPCs in an interval failed. */
#define KEEN "'successRateEjection': {'stdevFactor': 100, 'minimumHosts': 1, 'requestVolume': 1}"
#define HALF "'failurePercentageEjection': {'threshold': 50, 'minimumHosts': 1, 'requestVolume': 1}"
#define SECOND 1000                            /* ms */
#define EJECTED "ejected by outlier detection" /* in the text of an ejected endpoint's status */

extern const char *const kit_outlier_addrs[4]; /* A to D */

/* Fixtures for cmocka: *state is a struct fake_lb with the policy outlier_detection. */
int kit_outlier_setup(void **state);
int kit_outlier_teardown(void **state);
#define OUTLIER_TEST(name) cmocka_unit_test_setup_teardown(name, kit_outlier_setup, kit_outlier_teardown)

/* Updates the policy with the endpoints of this text (fake_lb_endpoints) and the config {fields}. Fails the test if the
 * config is invalid or the policy rejects the update. */
void kit_outlier_update(struct fake_lb *f, const char *endpoints, const char *fields);
/* Updates the policy as kit_outlier_update does, sets those of A to D that are among the endpoints to READY, and drops
 * the connection attempts recorded so far. */
void kit_outlier_start(struct fake_lb *f, const char *endpoints, const char *fields);
/* Ends the RPC of a pick with this status code: tells each of the pick's trackers (NULL: none), which must not be used
 * again. */
void kit_outlier_finish(struct tc_call_tracker *trackers, int code);

struct kit_outlier_counts {
    unsigned at[4]; /* A to D */
    unsigned none;  /* queued or failed picks, or other addresses */
};

/* Makes n RPCs one after another. Those to addresses that the text `failing` names fail with UNAVAILABLE. */
struct kit_outlier_counts kit_outlier_run(struct fake_lb *f, unsigned n, const char *failing);
/* Returns how many of A to D have this count. */
unsigned kit_outlier_count_of(const struct kit_outlier_counts *c, unsigned value);
/* Makes eight successful RPCs. Returns true if the address gets at least one of them. */
bool kit_outlier_in_service(struct fake_lb *f, const char *addr);

#define assert_ejected(f, addr) assert_false(kit_outlier_in_service(f, addr))
#define assert_in_service(f, addr) assert_true(kit_outlier_in_service(f, addr))

#endif
