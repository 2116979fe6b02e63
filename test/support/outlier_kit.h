/* outlier_detection over fake subchannels: RPCs that succeed or fail by address, on virtual time. JSON with ' for ". */
#ifndef TC_SUPPORT_OUTLIER_KIT_H
#define TC_SUPPORT_OUTLIER_KIT_H

#include "support/fake_lb.h"

#define A "1.1.1.1:1"
#define B "2.2.2.2:2"
#define C "3.3.3.3:3"
#define D "4.4.4.4:4"
#define ALL A " " B " " C " " D
#define RR "'childPolicy': [{'round_robin': {}}]"
/* Anyone with a rate below the mean is ejected; one failure in an interval is enough. */
#define KEEN "'successRateEjection': {'stdevFactor': 100, 'minimumHosts': 1, 'requestVolume': 1}"
#define HALF "'failurePercentageEjection': {'threshold': 50, 'minimumHosts': 1, 'requestVolume': 1}"
#define SECOND 1000
#define EJECTED "ejected by outlier detection"

extern const char *const outlier_kit_addrs[4]; /* A to D */

/* For cmocka: a fake channel with outlier_detection. */
int outlier_kit_setup(void **state);
int outlier_kit_teardown(void **state);
#define OUTLIER_TEST(name) cmocka_unit_test_setup_teardown(name, outlier_kit_setup, outlier_kit_teardown)

/* The policy's config is {fields}. */
void outlier_kit_update(struct fake_lb *f, const char *endpoints, const char *fields);
/* The same, with A to D connected. */
void outlier_kit_start(struct fake_lb *f, const char *endpoints, const char *fields);
/* The RPC of a pick is over. */
void outlier_kit_finish(struct tc_call_tracker *trackers, int code);

struct outlier_counts {
    unsigned at[4]; /* A to D */
    unsigned none;  /* no pick, or another address */
};

/* n RPCs one after the other; those of `failing` addresses fail. */
struct outlier_counts outlier_kit_run(struct fake_lb *f, unsigned n, const char *failing);
/* Of the addresses, how many have this count. */
unsigned outlier_kit_count_of(const struct outlier_counts *c, unsigned value);
/* Eight RPCs that succeed: whether the address gets any. */
bool outlier_kit_in_service(struct fake_lb *f, const char *addr);

#define assert_ejected(f, addr) assert_false(outlier_kit_in_service(f, addr))
#define assert_in_service(f, addr) assert_true(outlier_kit_in_service(f, addr))

#endif
