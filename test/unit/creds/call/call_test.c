/* Call credentials: by name, composed, with tokens of a source (creds/call/token.h), and with JWTs in files.
 *
 * struct source is a source of tokens whose fetches wait until the test allows them (`allow`). The credentials own the
 * source; *freed shows that they have freed it. A fetch, of a source or of a file, runs on a thread of its own. The
 * thread shares the source's members with the test under the mutex; the test sets `fail` and `lives_s` before it allows
 * the fetch.
 *
 * struct asker plays an RPC: `ask` asks the credentials, and turn_until turns the loop until answers have come, on the
 * test's thread and in real time. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "creds/call/call.h"
#include "creds/call/token.h"
#include "creds/creds.h"
#include "creds/registry.h"
#include "support/cmocka.h"
#include "support/sanitizer.h"

/* A source of tokens. A fetch waits until the test allows it, or the credentials abort it. */
struct source {
    struct tc_token_source base;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int running, begun, allowed; /* fetches: that run now; so far; that may go on */
    bool aborted, fail;
    int64_t lives_s; /* of the next token */
    bool *freed;     /* borrowed; set when the source is freed */
};

static void fetch(struct tc_token_source *base, struct tc_token *out)
{
    struct source *s = TC_CONTAINER_OF(base, struct source, base);
    pthread_mutex_lock(&s->mutex);
    s->begun++;
    s->running++;
    assert_int_equal(s->running, 1);
    pthread_cond_broadcast(&s->cond);
    while (s->allowed == 0 && !s->aborted)
        pthread_cond_wait(&s->cond, &s->mutex);
    s->allowed--;
    s->running--;
    char text[32];
    snprintf(text, sizeof(text), "t%d", s->begun);
    if (s->fail || s->aborted) {
        tc_token_fail(out, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "no token"));
    } else {
        out->metadata = tc_auth_metadata_token("Bearer", tc_slice_str(text));
        out->expires_ns = tc_system_clock.realtime_ns(NULL) + s->lives_s * (int64_t)TC_NS_PER_S;
    }
    pthread_mutex_unlock(&s->mutex);
}

static void abort_fetch(struct tc_token_source *base)
{
    struct source *s = TC_CONTAINER_OF(base, struct source, base);
    pthread_mutex_lock(&s->mutex);
    s->aborted = true;
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->mutex);
}

static void free_source(struct tc_token_source *base)
{
    struct source *s = TC_CONTAINER_OF(base, struct source, base);
    *s->freed = true;
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->cond);
    tc_free(s);
}

static const struct tc_token_source_ops source_ops = {
    .type = "test", .fetch = fetch, .abort = abort_fetch, .free = free_source};

static struct source *new_source(bool *freed)
{
    struct source *s = TC_NEW(struct source);
    s->base.ops = &source_ops;
    s->base.from = "the test";
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->cond, NULL);
    s->lives_s = 3600;
    s->freed = freed;
    return s;
}

static void allow(struct source *s, int n)
{
    pthread_mutex_lock(&s->mutex);
    s->allowed += n;
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->mutex);
}

static void wait_begun(struct source *s, int n)
{
    pthread_mutex_lock(&s->mutex);
    while (s->begun < n)
        pthread_cond_wait(&s->cond, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

struct asker {
    struct tc_auth_waiter waiter;
    int answers;
    char token[64], text[256];
    int code;
};

static void on_answer(struct tc_auth_waiter *w, struct tc_auth_metadata *m, const struct tc_status *error)
{
    struct asker *a = TC_CONTAINER_OF(w, struct asker, waiter);
    a->answers++;
    a->code = m ? 0 : error->code;
    if (m)
        snprintf(a->token, sizeof(a->token), "%s", m->fields[0].value->data);
    else
        snprintf(a->text, sizeof(a->text), "%s", tc_status_text(error));
}

/* Returns what `get` returned: 0 with the token in a->token; TORC_EAGAIN, and *a must stay in place until its answer or
 * a cancel; or another error with the status's code in a->code. */
static int ask(torc_call_credentials *c, struct tc_loop *loop, struct asker *a)
{
    static const struct tc_auth_context context = {.service_url = "https://a/b", .method = "m"};
    struct tc_auth_metadata *m = NULL;
    struct tc_status error = {0};
    *a = (struct asker){.waiter.fn = on_answer};
    int rc = c->ops->get(c, loop, &context, &a->waiter, &m, &error);
    if (rc == 0)
        snprintf(a->token, sizeof(a->token), "%s", m->fields[0].value->data);
    a->code = error.code;
    tc_auth_metadata_unref(m);
    tc_status_fini(&error);
    return rc;
}

static void turn_until(struct tc_loop *loop, const int *n, int wanted)
{
    while (*n < wanted)
        tc_loop_turn(loop, 1000);
}

/* Asks during the backoff after a failure: the error comes at once. If this thread was held up, the backoff may have
 * ended. Then another fetch fails, and a longer backoff begins. */
static void ask_in_backoff(torc_call_credentials *c, struct tc_loop *loop, struct asker *a)
{
    while (ask(c, loop, a) == TORC_EAGAIN)
        turn_until(loop, &a->answers, 1);
    assert_int_equal(a->answers, 0);
    assert_int_equal(a->code, TORC_STATUS_UNAVAILABLE);
}

static void test_one_fetch_at_a_time(void **state)
{
    (void)state;
    bool freed = false;
    struct tc_loop *loop = tc_loop_new(NULL), *other = tc_loop_new(NULL);
    struct source *s = new_source(&freed);
    torc_call_credentials *c = tc_token_creds_new(&s->base, &tc_system_clock);
    struct asker a, b, gone, elsewhere;
    assert_int_equal(ask(c, loop, &a), TORC_EAGAIN);
    assert_int_equal(ask(c, loop, &b), TORC_EAGAIN);
    assert_int_equal(ask(c, loop, &gone), TORC_EAGAIN);
    assert_int_equal(ask(c, other, &elsewhere), TORC_EAGAIN);
    tc_auth_waiter_cancel(&gone.waiter);
    tc_auth_waiter_cancel(&gone.waiter);
    s->lives_s = 80; /* less than 90 s: the next RPC fetches early */
    allow(s, 1);
    turn_until(loop, &b.answers, 1);
    turn_until(other, &elsewhere.answers, 1);
    assert_int_equal(a.answers, 1);
    assert_string_equal(a.token, "Bearer t1");
    assert_string_equal(b.token, "Bearer t1");
    assert_string_equal(elsewhere.token, "Bearer t1");
    assert_int_equal(gone.answers, 0);
    assert_int_equal(s->begun, 1);
    /* The next token is fetched early, while RPCs use the present one. */
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ask(c, loop, &a), 0);
        assert_string_equal(a.token, "Bearer t1");
    }
    wait_begun(s, 2);
    s->lives_s = 3600;
    allow(s, 1);
    do
        assert_int_equal(ask(c, loop, &a), 0);
    while (strcmp(a.token, "Bearer t2") != 0);
    assert_int_equal(s->begun, 2);
    torc_call_credentials_unref(c);
    assert_true(freed);
    tc_loop_free(loop);
    tc_loop_free(other);
}

/* Sanitizers do not support threads in a child (e2e/process_test says why). */
#if !SANITIZER_THREAD && !SANITIZER_ADDRESS
#define FORKS
#endif

#ifdef FORKS
/* A fork while the next token is fetched early. The child has the token, but not the fetch, and begins a fetch of its
 * own. */
static void test_a_fork_during_an_early_fetch(void **state)
{
    (void)state;
    bool freed = false;
    struct tc_loop *loop = tc_loop_new(NULL);
    struct source *s = new_source(&freed);
    torc_call_credentials *c = tc_token_creds_new(&s->base, &tc_system_clock);
    struct asker a;
    s->lives_s = 80;
    assert_int_equal(ask(c, loop, &a), TORC_EAGAIN);
    allow(s, 1);
    turn_until(loop, &a.answers, 1);
    assert_int_equal(ask(c, loop, &a), 0);
    wait_begun(s, 2); /* the fetch now waits on s->cond, and the mutex is free */
    pthread_mutex_lock(&s->mutex);
    pid_t child = fork();
    pthread_mutex_unlock(&s->mutex);
    if (child == 0) {
        pthread_cond_init(&s->cond, NULL); /* the parent's has a waiter */
        s->running = 0;
        alarm(30);
        if (ask(c, loop, &a) != 0)
            _exit(1);
        wait_begun(s, 3);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    torc_call_credentials_unref(c);
    assert_true(freed);
    tc_loop_free(loop);
}
#endif

static void test_failure_and_end(void **state)
{
    (void)state;
    bool freed = false;
    struct tc_loop *loop = tc_loop_new(NULL);
    struct source *s = new_source(&freed);
    torc_call_credentials *c = tc_token_creds_new(&s->base, &tc_system_clock);
    struct asker a;
    s->fail = true;
    allow(s, 100);
    assert_int_equal(ask(c, loop, &a), TORC_EAGAIN);
    turn_until(loop, &a.answers, 1);
    assert_int_equal(a.code, TORC_STATUS_UNAVAILABLE);
    ask_in_backoff(c, loop, &a);
    torc_call_credentials_unref(c);
    assert_true(freed);

    /* The credentials are freed while a fetch hangs: abort ends the fetch. */
    freed = false;
    s = new_source(&freed);
    c = tc_token_creds_new(&s->base, &tc_system_clock);
    assert_int_equal(ask(c, loop, &a), TORC_EAGAIN);
    wait_begun(s, 1);
    tc_auth_waiter_cancel(&a.waiter);
    torc_call_credentials_unref(c);
    assert_true(freed);
    assert_int_equal(a.answers, 0);
    tc_loop_free(loop);
}

static void test_jwt_files_that_are_none(void **state)
{
    (void)state;
    char path[] = "/tmp/torc-jwt-XXXXXX";
    struct tc_loop *loop = tc_loop_new(NULL);
    int fd = mkstemp(path);
    assert_int_equal(ftruncate(fd, 65537), 0);
    close(fd);
    for (int i = 0; i < 2; i++) {
        torc_call_credentials *c = torc_call_credentials_jwt_token_file(path, NULL);
        struct asker a;
        assert_int_equal(ask(c, loop, &a), TORC_EAGAIN);
        turn_until(loop, &a.answers, 1);
        assert_int_equal(a.code, TORC_STATUS_UNAVAILABLE);
        assert_non_null(strstr(a.text, path));
        assert_non_null(strstr(a.text, i == 0 ? "larger than 65536 bytes" : "it is a FIFO, not a regular file"));
        torc_call_credentials_unref(c);
        unlink(path);
        assert_int_equal(mkfifo(path, 0600), 0);
    }
    unlink(path);
    tc_loop_free(loop);
}

static void expect_refused(const char *type, const char *config, const char *text)
{
    char *why = NULL;
    assert_null(tc_call_creds_from_config(type, config, &why));
    assert_non_null(strstr(why, type));
    assert_non_null(strstr(why, text));
    tc_free(why);
    assert_null(tc_call_creds_from_config(type, config, NULL));
}

static void test_by_name(void **state)
{
    (void)state;
    assert_true(tc_call_creds_type_supported("jwt_token_file"));
    assert_false(tc_call_creds_type_supported("tls"));
    expect_refused("other", "{}", "unknown type");
    expect_refused("jwt_token_file", NULL, "must name a file");
    expect_refused("jwt_token_file", "{}", "must name a file");
    expect_refused("jwt_token_file", "{\"jwt_token_file\":\"\"}", "must name a file");
    expect_refused("jwt_token_file", "{\"jwt_token_file\":7}", "jwt_token_file");
    expect_refused("jwt_token_file", "[]", "must be an object");
    expect_refused("jwt_token_file", "{", "line 1");
    torc_call_credentials *c = tc_call_creds_from_config("jwt_token_file", "{\"jwt_token_file\":\"/x\"}", NULL);
    assert_non_null(c);
    torc_call_credentials_unref(c);
    torc_error *error = NULL;
    assert_null(torc_call_credentials_jwt_token_file("", &error));
    assert_non_null(error);
    torc_error_clear(&error);
    torc_call_credentials_unref(NULL);
}

static void test_composites(void **state)
{
    (void)state;
    torc_call_credentials *a = torc_call_credentials_jwt_token_file("/a", NULL);
    torc_call_credentials *b = torc_call_credentials_jwt_token_file("/b", NULL);
    torc_call_credentials *ab = torc_call_credentials_composite(a, b, NULL),
                          *aba = torc_call_credentials_composite(ab, a, NULL);
    assert_int_equal(tc_call_creds_count(a), 1);
    assert_ptr_equal(tc_call_creds_at(a, 0), a);
    assert_int_equal(tc_call_creds_count(aba), 3);
    assert_ptr_equal(tc_call_creds_at(aba, 0), a);
    assert_ptr_equal(tc_call_creds_at(aba, 1), b);
    assert_ptr_equal(tc_call_creds_at(aba, 2), a);

    torc_credentials *tls = torc_credentials_tls(NULL, NULL);
    torc_credentials *one = torc_credentials_composite(tls, a, NULL), *two = torc_credentials_composite(one, b, NULL);
    assert_ptr_equal(tc_creds_channel(tls), tls);
    assert_ptr_equal(tc_creds_channel(two), tls);
    assert_string_equal(two->scheme, "https");
    /* Connections do not depend on call credentials. */
    assert_true(tc_rstr_eq(two->key, tls->key));
    assert_int_equal(tc_call_creds_count(two->call), 2);
    assert_ptr_equal(tc_call_creds_at(two->call, 0), a);
    assert_ptr_equal(tc_call_creds_at(two->call, 1), b);
    torc_credentials_unref(two);
    torc_credentials_unref(one);
    torc_credentials_unref(tls);
    torc_call_credentials_unref(aba);
    torc_call_credentials_unref(ab);
    torc_call_credentials_unref(a);
    torc_call_credentials_unref(b);
}

static void test_files(void **state)
{
    (void)state;
    struct tc_loop *loop = tc_loop_new(NULL);
    struct asker a;
    torc_call_credentials *c = torc_call_credentials_jwt_token_file("/nothing/here", NULL);
    assert_int_equal(ask(c, loop, &a), TORC_EAGAIN);
    turn_until(loop, &a.answers, 1);
    assert_int_equal(a.code, TORC_STATUS_UNAVAILABLE);
    torc_call_credentials_unref(c);

    char path[] = "/tmp/torc-jwt-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "e30.eyJleHAiOjk5OTk5OTk5OTl9.c2ln\n", 34), 34);
    close(fd);
    c = torc_call_credentials_jwt_token_file(path, NULL);
    assert_int_equal(ask(c, loop, &a), TORC_EAGAIN);
    turn_until(loop, &a.answers, 1);
    assert_string_equal(a.token, "Bearer e30.eyJleHAiOjk5OTk5OTk5OTl9.c2ln");
    unlink(path);
    assert_int_equal(ask(c, loop, &a), 0); /* the file is not read while the token is valid */
    torc_call_credentials_unref(c);

    /* The file was not rewritten in time: an expired token counts as absent, and RPCs fail, also in the backoff. */
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "e30.eyJleHAiOjF9.c2ln\n", 22), 22); /* {"exp":1} */
    close(fd);
    c = torc_call_credentials_jwt_token_file(path, NULL);
    assert_int_equal(ask(c, loop, &a), TORC_EAGAIN);
    turn_until(loop, &a.answers, 1);
    assert_int_equal(a.code, TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(a.text, path));
    assert_non_null(strstr(a.text, "it expired"));
    assert_string_equal(a.token, "");
    ask_in_backoff(c, loop, &a);
    torc_call_credentials_unref(c);
    unlink(path);
    tc_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_fetch_at_a_time),
#ifdef FORKS
        cmocka_unit_test(test_a_fork_during_an_early_fetch),
#endif
        cmocka_unit_test(test_failure_and_end),
        cmocka_unit_test(test_jwt_files_that_are_none),
        cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_composites),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
