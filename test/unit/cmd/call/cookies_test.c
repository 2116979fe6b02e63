/* The cookie jar of torc call (call/cookies.h): what a full jar drops. No clock is read: `now_ns` is the time. */
#include "call/cookies.h"

#include "base/clock.h"
#include "base/mem.h"
#include "support/cmocka.h"

enum { MOST = 50 }; /* cookies of a full jar */

static void take(struct cookie_jar *jar, const char *field, uint64_t now_ns)
{
    torc_metadata *md = torc_metadata_new();
    assert_int_equal(torc_metadata_add_string(md, "set-cookie", field), 0);
    cookie_jar_take(jar, md, "/a.B/C", now_ns);
    torc_metadata_free(md);
}

/* Checks that the jar's cookies are those with the numbers from `first` to `last`. */
static void expect(struct cookie_jar *jar, int first, int last, uint64_t now_ns)
{
    struct tc_buf sent = {0}, wanted = {0};
    for (int i = first; i <= last; i++)
        tc_buf_printf(&wanted, "%sc%d=v", i > first ? "; " : "", i);
    cookie_jar_give(jar, "/a.B/C", false, now_ns, &sent);
    assert_string_equal(tc_buf_cstr(&sent), tc_buf_cstr(&wanted));
    tc_buf_fini(&sent);
    tc_buf_fini(&wanted);
}

static void fill(struct cookie_jar *jar, const char *attributes)
{
    for (int i = 0; i < MOST; i++) {
        char *field = tc_asprintf("c%d=v%s", i, attributes);
        take(jar, field, 0);
        tc_free(field);
    }
}

static void test_the_oldest_goes(void **state)
{
    struct cookie_jar jar = {0};
    (void)state;
    fill(&jar, "");
    take(&jar, "c50=v", 0);
    expect(&jar, 1, MOST, 0);
    cookie_jar_fini(&jar);
}

/* A cookie that has expired takes no place in a full jar, and removes the cookie of its name. */
static void test_expired_cookies_take_no_place(void **state)
{
    struct cookie_jar jar = {0};
    (void)state;
    fill(&jar, "");
    take(&jar, "other=v; Max-Age=0", 0);
    expect(&jar, 0, MOST - 1, 0);
    take(&jar, "c0=w; Max-Age=0", 0);
    take(&jar, "c49=w; Max-Age=-1", 0);
    expect(&jar, 1, MOST - 2, 0);
    cookie_jar_fini(&jar);
}

/* Cookies that have expired make room before a living one must go. */
static void test_expired_cookies_go_first(void **state)
{
    struct cookie_jar jar = {0};
    (void)state;
    take(&jar, "c0=v", 0);
    fill(&jar, "; Max-Age=1");
    take(&jar, "c0=v", 0);
    take(&jar, "other=v", TC_NS_PER_S);
    take(&jar, "other=v; Max-Age=0", TC_NS_PER_S);
    expect(&jar, 0, 0, TC_NS_PER_S);
    cookie_jar_fini(&jar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_oldest_goes),
        cmocka_unit_test(test_expired_cookies_take_no_place),
        cmocka_unit_test(test_expired_cookies_go_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
