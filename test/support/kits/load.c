/* One thread starts calls by the clock; their callbacks, on the runtime's thread, count under the lock. The starting
 * thread measures how late it wakes, so that a stall of the machine is not taken for a stall of the channel.
 *
 * Each start and each end of a call signals `changed`, for which kit_load_wait and kit_load_free wait, and, until the
 * next call is due, the starting thread. Calls hold a pointer to the load: kit_load_free joins the thread, then waits
 * until every call has ended. */
#include "support/kits/load.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "support/cmocka.h"

#include "base/clock.h"
#include "base/mem.h"

struct kit_load {
    torc_channel *ch;
    unsigned rps, keys;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop; /* under the lock, with the members below */
    uint64_t started, done, longest_of_lap_ms;
    struct kit_load_report report;
};

/* One call. on_result frees it; start_one frees it if the call cannot be started. */
struct one {
    struct kit_load *load;
    uint64_t began_ns; /* of the monotonic clock */
};

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

/* Counts a call that has ended. `text`, of its status, is copied. */
static void count(struct kit_load *l, int code, const char *text, uint64_t took_ms)
{
    pthread_mutex_lock(&l->lock);
    l->done++;
    l->report.longest_ms = TC_MAX(l->report.longest_ms, took_ms);
    l->longest_of_lap_ms = TC_MAX(l->longest_of_lap_ms, took_ms);
    if (code != TORC_STATUS_OK && l->report.failed++ == 0)
        snprintf(l->report.first, sizeof(l->report.first), "%s: %s", torc_status_code_name(code), text);
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void on_result(const torc_result *r, void *arg)
{
    struct one *one = arg;
    count(one->load, torc_result_code(r), torc_result_text(r), (now_ns() - one->began_ns) / TC_NS_PER_MS);
    tc_free(one);
}

static void start_one(struct kit_load *l, uint64_t i)
{
    char user[32];
    struct torc_call_options o = {TORC_SIZE(torc_call_options)};
    torc_metadata *md = torc_metadata_new();
    int len = snprintf(user, sizeof(user), "u%llu", (unsigned long long)(i % l->keys));
    torc_metadata_add(md, "user", user, (size_t)len);
    o.metadata = md;
    o.timeout_ms = 60000;
    struct one *one = TC_NEW(struct one);
    *one = (struct one){l, now_ns()};
    int rc = torc_unary_async(l->ch, "/test.Service/Method", "hello", 5, &o, on_result, one, NULL, NULL);
    torc_metadata_free(md);
    if (rc != 0) {
        count(l, TORC_STATUS_INTERNAL, torc_strerror(rc), 0);
        tc_free(one);
    }
}

static void *run(void *arg)
{
    struct kit_load *l = arg;
    uint64_t begin = now_ns();
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        uint64_t due = begin + l->started * TC_NS_PER_S / l->rps;
        if (due > now_ns()) {
            const struct timespec until = {.tv_sec = (time_t)(due / TC_NS_PER_S), .tv_nsec = (long)(due % TC_NS_PER_S)};
            pthread_cond_timedwait(&l->changed, &l->lock, &until);
            uint64_t now = now_ns();
            if (now > due)
                l->report.stalled_ms = TC_MAX(l->report.stalled_ms, (now - due) / TC_NS_PER_MS);
            continue;
        }
        uint64_t i = l->started++;
        pthread_mutex_unlock(&l->lock);
        start_one(l, i);
        pthread_mutex_lock(&l->lock);
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

struct kit_load *kit_load_new(torc_channel *ch, unsigned rps, unsigned keys)
{
    struct kit_load *l = TC_NEW(struct kit_load);
    l->ch = ch;
    l->rps = rps;
    l->keys = keys;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &attr);
    pthread_condattr_destroy(&attr);
    assert_int_equal(pthread_create(&l->thread, NULL, run, l), 0);
    return l;
}

void kit_load_wait(struct kit_load *l, uint64_t calls)
{
    pthread_mutex_lock(&l->lock);
    while (l->started < calls)
        pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

void kit_load_wait_more(struct kit_load *l, uint64_t calls)
{
    pthread_mutex_lock(&l->lock);
    uint64_t until = l->started + calls;
    pthread_mutex_unlock(&l->lock);
    kit_load_wait(l, until);
}

uint64_t kit_load_lap(struct kit_load *l)
{
    pthread_mutex_lock(&l->lock);
    uint64_t longest_ms = l->longest_of_lap_ms;
    l->longest_of_lap_ms = 0;
    pthread_mutex_unlock(&l->lock);
    return longest_ms;
}

void kit_load_free(struct kit_load *l, struct kit_load_report *report)
{
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    pthread_mutex_lock(&l->lock);
    while (l->done < l->started)
        pthread_cond_wait(&l->changed, &l->lock);
    *report = l->report;
    report->calls = l->done;
    pthread_mutex_unlock(&l->lock);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    tc_free(l);
}
