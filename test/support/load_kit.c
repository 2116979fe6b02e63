#include "support/load_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "support/cmocka.h"

#include "base/clock.h"
#include "base/mem.h"

struct load_kit {
    torc_channel *ch;
    unsigned rps, keys;
    pthread_t thread;
    atomic_bool stop;
    uint64_t started; /* the thread's, until it is joined */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    uint64_t done; /* under the lock, with the report */
    struct load_report report;
};

struct one {
    struct load_kit *load;
    uint64_t began_ns;
};

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

static void count(struct load_kit *l, int code, const char *text, uint64_t took_ms)
{
    pthread_mutex_lock(&l->lock);
    l->done++;
    l->report.longest_ms = TC_MAX(l->report.longest_ms, took_ms);
    if (code != TORC_STATUS_OK && l->report.failed++ == 0)
        snprintf(l->report.first, sizeof(l->report.first), "%s: %s", torc_status_code_name(code), text);
    pthread_cond_signal(&l->ended);
    pthread_mutex_unlock(&l->lock);
}

static void on_result(const struct torc_result *r, void *arg)
{
    struct one *one = arg;
    count(one->load, r->code, r->message, (now_ns() - one->began_ns) / TC_NS_PER_MS);
    tc_free(one);
}

static void start_one(struct load_kit *l)
{
    struct torc_call_options o;
    char user[32];
    torc_call_options_init(&o);
    torc_metadata *md = torc_metadata_new();
    int len = snprintf(user, sizeof(user), "u%llu", (unsigned long long)(l->started % l->keys));
    torc_metadata_add(md, "user", user, (size_t)len);
    o.metadata = md;
    o.timeout_ms = 10000;
    struct one *one = TC_NEW(struct one);
    *one = (struct one){l, now_ns()};
    l->started++;
    int rc = torc_call_unary_async(l->ch, "/test.Service/Method", "hello", 5, &o, on_result, one, NULL);
    torc_metadata_free(md);
    if (rc != 0) {
        count(l, TORC_STATUS_INTERNAL, torc_strerror(rc), 0);
        tc_free(one);
    }
}

static void *run(void *arg)
{
    struct load_kit *l = arg;
    uint64_t begin = now_ns();
    while (!atomic_load(&l->stop)) {
        uint64_t due = begin + l->started * TC_NS_PER_S / l->rps, now = now_ns();
        if (due <= now) {
            start_one(l);
            continue;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)TC_MIN(due - now, 2 * TC_NS_PER_MS)}, NULL);
    }
    return NULL;
}

struct load_kit *load_kit_new(torc_channel *ch, unsigned rps, unsigned keys)
{
    struct load_kit *l = TC_NEW(struct load_kit);
    l->ch = ch;
    l->rps = rps;
    l->keys = keys;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->ended, NULL);
    assert_int_equal(pthread_create(&l->thread, NULL, run, l), 0);
    return l;
}

uint64_t load_kit_done(struct load_kit *l)
{
    pthread_mutex_lock(&l->lock);
    uint64_t done = l->done;
    pthread_mutex_unlock(&l->lock);
    return done;
}

void load_kit_free(struct load_kit *l, struct load_report *report)
{
    atomic_store(&l->stop, true);
    pthread_join(l->thread, NULL);
    pthread_mutex_lock(&l->lock);
    while (l->done < l->started)
        pthread_cond_wait(&l->ended, &l->lock);
    *report = l->report;
    report->calls = l->done;
    pthread_mutex_unlock(&l->lock);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->ended);
    tc_free(l);
}
