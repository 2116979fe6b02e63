/* Requests by which RPCs wait for metadata (creds/call/auth_request.h): an answer, a cancel, and a loop that has ended.
 * The test is the RPC that waits and the credentials that answer, on one thread, and turns a manual loop. */
#include "base/mem.h"
#include "creds/call/auth_request.h"
#include "support/cmocka.h"

struct fixture {
    struct tc_auth_waiter waiter; /* first: on_answer casts */
    struct tc_loop *loop;
    struct tc_auth_metadata *metadata; /* the test's reference */
    int answers;
};

static void on_answer(struct tc_auth_waiter *w, struct tc_auth_metadata *metadata, const struct tc_status *error)
{
    struct fixture *f = (struct fixture *)w;
    (void)error;
    assert_ptr_equal(metadata, f->metadata);
    f->answers++;
}

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    f->waiter.fn = on_answer;
    f->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 7});
    f->metadata = tc_auth_metadata_token("Bearer", tc_slice_str("t"));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tc_loop_free(f->loop);
    tc_auth_metadata_unref(f->metadata);
    tc_free(f);
    return 0;
}

/* Returns whether a completed request is freed: before it is freed the request holds a reference to the metadata. */
static bool request_is_freed(const struct fixture *f)
{
    return f->metadata->ref.n == 1;
}

static void answer_is_delivered_by_the_loop(void **state)
{
    struct fixture *f = *state;
    struct tc_auth_request *r = tc_auth_request_new(f->loop, &f->waiter);
    tc_auth_request_complete(r, tc_auth_metadata_ref(f->metadata), NULL);
    assert_int_equal(f->answers, 0);
    tc_loop_advance(f->loop, 0);
    assert_int_equal(f->answers, 1);
    assert_null(f->waiter.request);
    assert_true(request_is_freed(f));
}

static void cancel_before_and_after_the_answer(void **state)
{
    struct fixture *f = *state;
    struct tc_auth_request *r = tc_auth_request_new(f->loop, &f->waiter);
    tc_auth_waiter_cancel(&f->waiter);
    tc_auth_request_complete(r, tc_auth_metadata_ref(f->metadata), NULL);
    assert_true(request_is_freed(f));

    r = tc_auth_request_new(f->loop, &f->waiter);
    tc_auth_request_complete(r, tc_auth_metadata_ref(f->metadata), NULL);
    tc_auth_waiter_cancel(&f->waiter);
    tc_loop_advance(f->loop, 0);
    assert_true(request_is_freed(f));
    assert_int_equal(f->answers, 0);
}

/* The loop refuses the task, so the waiter's cancel frees the request. */
static void answer_to_a_loop_that_has_ended(void **state)
{
    struct fixture *f = *state;
    struct tc_loop *ended = tc_loop_ref(f->loop);
    struct tc_auth_request *r = tc_auth_request_new(ended, &f->waiter);
    tc_loop_free(ended);
    f->loop = NULL;
    tc_auth_request_complete(r, tc_auth_metadata_ref(f->metadata), NULL);
    assert_false(request_is_freed(f));
    tc_auth_waiter_cancel(&f->waiter);
    assert_true(request_is_freed(f));
    assert_int_equal(f->answers, 0);
    tc_loop_unref(ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answer_is_delivered_by_the_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(cancel_before_and_after_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(answer_to_a_loop_that_has_ended, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
