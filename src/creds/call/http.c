/* One HTTP request by libcurl, on the thread that fetches a token.
 *
 * The transfer runs on a multi handle, so that another thread can end it: tc_http_stop_now sets `stopped` and wakes the
 * poll. Each step of libcurl runs in a foreign section (base/fork.h); the poll between steps does not, so a fork does
 * not wait for the network. A child of a fork leaves the parent's transfers alone. An exit stops every transfer.
 *
 * Only http and https are spoken, redirects are not followed, and the body of an answer has at most
 * TC_HTTP_MAX_BODY_BYTES.
 *
 * tc_http_fetch owns the objects of libcurl (struct transfer) from transfer_begin to transfer_end. A tc_http_stop is
 * its owner's, and is in `requests` while a transfer runs. */
#include "creds/call/http.h"

#include <pthread.h>

#include "base/exit.h"
#include "base/fork.h"
#include "base/mem.h"
#include "creds/call/curl.h"
#include "tls/openssl.h"

#define CONNECT_TIMEOUT_MS 5000L
/* CURLOPT_PROTOCOLS_STR, which libcurl has since 7.85: the headers, and the library that is loaded, may be older. */
#define PROTOCOLS_STR ((CURLoption)(CURLOPTTYPE_OBJECTPOINT + 318))
/* CURLOPT_QUICK_EXIT, which libcurl has since 7.87. An older libcurl refuses the option, and waits for its resolver at
 * the end. */
#define QUICK_EXIT ((CURLoption)(CURLOPTTYPE_LONG + 322))

/* Written by curl_load alone, once. */
static struct {
    bool ready;
    char why[256]; /* why libcurl cannot be used, if not `ready` */
} lib;

/* The requests that run in this process, and those that ran in its parent at the fork. The list and its entries are
 * under the process's lock of rank TC_RANK_HTTP. */
static struct tc_link requests = {&requests, &requests};

static void requests_lock(void)
{
    tc_lock_take(tc_lock_of_process(TC_RANK_HTTP));
}

static void requests_unlock(void)
{
    tc_lock_give(tc_lock_of_process(TC_RANK_HTTP));
}

/* Ends the wait of a transfer of this process; a parent's transfer is left alone. Called with the lock. */
static void request_wake(struct tc_http_stop *s)
{
    if (s->running && s->generation == tc_fork_generation() && tc_foreign_enter()) {
        tc_curl.curl_multi_wakeup(s->running);
        tc_foreign_leave();
    }
}

static void requests_stop(void)
{
    requests_lock();
    TC_LIST_FOREACH(it, &requests)
    request_wake(TC_CONTAINER_OF(it, struct tc_http_stop, link));
    requests_unlock();
}

static const struct tc_exit_ops exit_ops = {.stop = requests_stop};

void tc_http_stop_init(struct tc_http_stop *s)
{
    *s = (struct tc_http_stop){.stopped = false};
    tc_list_init(&s->link);
}

void tc_http_stop_fini(struct tc_http_stop *s)
{
    requests_lock();
    tc_list_remove(&s->link);
    requests_unlock();
}

void tc_http_stop_now(struct tc_http_stop *s)
{
    requests_lock();
    s->stopped = true;
    request_wake(s);
    requests_unlock();
}

/* Enters the request into the list, or with NULL takes it out. Returns false if it was stopped. */
static bool request_set_running(struct tc_http_stop *s, CURLM *multi)
{
    requests_lock();
    s->running = multi;
    s->generation = tc_fork_generation();
    tc_list_remove(&s->link);
    if (multi)
        tc_list_append(&requests, &s->link);
    bool stopped = s->stopped;
    requests_unlock();
    return !stopped;
}

static bool request_is_stopped(struct tc_http_stop *s)
{
    requests_lock();
    bool stopped = s->stopped || tc_exiting();
    requests_unlock();
    return stopped;
}

static void curl_load(void)
{
    if (!tc_curl_find(lib.why, sizeof(lib.why)))
        return;
    /* Torc initialises OpenSSL before libcurl does: an OpenSSL that both share must not free its state in an exit
     * handler. */
    tc_openssl_load();
    if (tc_foreign_enter()) {
        lib.ready = tc_curl.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
        tc_foreign_leave();
    }
    tc_exit_register(TC_EXIT_HTTP, &exit_ops);
    tc_exit_before();
    if (!lib.ready)
        snprintf(lib.why, sizeof(lib.why), "libcurl cannot be initialised");
}

static size_t transfer_on_body(char *data, size_t size, size_t n, void *arg)
{
    struct tc_buf *body = arg;
    size_t len = size * n;
    if (len > TC_HTTP_MAX_BODY_BYTES - body->len)
        return 0; /* ends the transfer */
    tc_buf_append(body, data, len);
    return len;
}

/* The header that the answer must have, borrowed from the request, and whether it was seen. */
struct mark {
    struct tc_slice name, value;
    bool seen;
};

static size_t transfer_on_header(char *data, size_t size, size_t n, void *arg)
{
    struct mark *m = arg;
    struct tc_slice line = tc_slice_of(data, size * n), name;
    bool more = true;
    if (tc_slice_starts(line, tc_slice_str("HTTP/"))) {
        m->seen = false; /* the lines before belong to an interim answer, or to the answer of a proxy */
    } else if (tc_slice_split(&line, &more, ':', &name) && more && tc_slice_ieq(name, m->name)) {
        while (line.len && (unsigned char)line.data[line.len - 1] <= ' ')
            line.len--;
        m->seen = m->seen || tc_slice_eq(tc_slice_trim(line), m->value);
    }
    return size * n;
}

static void mark_init(struct mark *m, const char *header)
{
    struct tc_slice rest = tc_slice_str(header ? header : "");
    bool more = true;
    *m = (struct mark){.seen = header == NULL};
    tc_slice_split(&rest, &more, ':', &m->name);
    m->value = tc_slice_trim(rest);
}

/* Allows http and https alone. Returns false if libcurl has neither option for that. */
static bool easy_hold_to_http(CURL *easy)
{
    return tc_curl.curl_easy_setopt(easy, PROTOCOLS_STR, "https,http") == CURLE_OK ||
           tc_curl.curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTPS | CURLPROTO_HTTP)) == CURLE_OK;
}

static void easy_set_options(CURL *easy, const struct tc_http_request *r, struct curl_slist *headers,
                             struct tc_buf *body, char *error)
{
    tc_curl.curl_easy_setopt(easy, CURLOPT_URL, r->url);
    tc_curl.curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    tc_curl.curl_easy_setopt(easy, QUICK_EXIT, 1L);
    tc_curl.curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)r->timeout_ms);
    tc_curl.curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    tc_curl.curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
    tc_curl.curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, transfer_on_body);
    tc_curl.curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
    if (headers)
        tc_curl.curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    if (r->form)
        tc_curl.curl_easy_setopt(easy, CURLOPT_POSTFIELDS, r->form);
    if (r->roots_file)
        tc_curl.curl_easy_setopt(easy, CURLOPT_CAINFO, r->roots_file);
    if (r->direct)
        tc_curl.curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

/* Runs the transfer until it is done or stopped. Returns its result; CURLE_ABORTED_BY_CALLBACK if it was stopped or the
 * process exits; or CURLE_FAILED_INIT if libcurl cannot go on. */
static CURLcode transfer_run(CURLM *multi, struct tc_http_stop *stop)
{
    int running = 1, left;
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    while (running && !request_is_stopped(stop)) {
        if (!tc_foreign_enter())
            return CURLE_ABORTED_BY_CALLBACK;
        bool good = tc_curl.curl_multi_perform(multi, &running) == CURLM_OK;
        const CURLMsg *m = good && !running ? tc_curl.curl_multi_info_read(multi, &left) : NULL;
        if (m)
            result = m->data.result;
        tc_foreign_leave();
        if (!good)
            return CURLE_FAILED_INIT;
        if (running)
            tc_curl.curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    return result;
}

/* The objects of libcurl for one request. */
struct transfer {
    CURL *easy;
    CURLM *multi;
    struct curl_slist *headers;
    struct mark mark;
    char error[CURL_ERROR_SIZE];
};

/* Returns the reason why the transfer cannot begin, a static text, or NULL. transfer_end follows in either case, unless
 * the process exits. Called in a foreign section. */
static const char *transfer_begin(struct transfer *t, const struct tc_http_request *r, struct tc_buf *body)
{
    t->easy = tc_curl.curl_easy_init();
    t->multi = tc_curl.curl_multi_init();
    if (!t->easy || !t->multi)
        return "libcurl is out of memory";
    if (!easy_hold_to_http(t->easy))
        return "libcurl cannot be held to http and https";
    t->headers = r->header ? tc_curl.curl_slist_append(NULL, r->header) : NULL;
    mark_init(&t->mark, r->marked);
    easy_set_options(t->easy, r, t->headers, body, t->error);
    if (r->marked) {
        tc_curl.curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, transfer_on_header);
        tc_curl.curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, &t->mark);
    }
    return tc_curl.curl_multi_add_handle(t->multi, t->easy) == CURLM_OK ? NULL : "libcurl is out of memory";
}

/* Called in a foreign section. */
static void transfer_end(struct transfer *t)
{
    if (t->easy && t->multi)
        tc_curl.curl_multi_remove_handle(t->multi, t->easy);
    if (t->multi)
        tc_curl.curl_multi_cleanup(t->multi);
    if (t->easy)
        tc_curl.curl_easy_cleanup(t->easy);
    tc_curl.curl_slist_free_all(t->headers);
}

static int transfer_outcome(const struct transfer *t, CURLcode rc, long code, const struct tc_http_request *r,
                            int *status, char **why)
{
    if (rc == CURLE_OK && code == 200 && !t->mark.seen) {
        *why = tc_asprintf("its answer has no header \"%s\"", r->marked);
        return TORC_EPARSE;
    }
    if (rc == CURLE_OK)
        *status = (int)code;
    else if (rc == CURLE_WRITE_ERROR)
        *why = tc_asprintf("its answer has more than %d bytes", TC_HTTP_MAX_BODY_BYTES);
    else
        *why = tc_asprintf("%s", t->error[0] ? t->error : tc_curl.curl_easy_strerror(rc));
    return rc == CURLE_OK ? 0 : TORC_EIO;
}

int tc_http_fetch(const struct tc_http_request *r, struct tc_http_stop *stop, int *status, struct tc_buf *body,
                  char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct transfer t = {0};
    long code = 0;
    pthread_once(&once, curl_load);
    if (!lib.ready || !tc_foreign_enter()) {
        *why = tc_strdup(lib.ready ? "the process is exiting" : lib.why);
        return TORC_EIO;
    }
    const char *error = transfer_begin(&t, r, body);
    tc_foreign_leave();
    CURLcode rc = CURLE_ABORTED_BY_CALLBACK;
    if (!error && request_set_running(stop, t.multi))
        rc = transfer_run(t.multi, stop);
    request_set_running(stop, NULL);
    if (tc_foreign_enter()) {
        if (rc == CURLE_OK)
            tc_curl.curl_easy_getinfo(t.easy, CURLINFO_RESPONSE_CODE, &code);
        transfer_end(&t);
        tc_foreign_leave();
    } else {
        rc = CURLE_ABORTED_BY_CALLBACK; /* the process exits: the status code is out of reach */
    }
    if (error) {
        *why = tc_strdup(error);
        return TORC_EIO;
    }
    return transfer_outcome(&t, rc, code, r, status, why);
}
