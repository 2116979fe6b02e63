#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include "creds/http.h"

#include <curl/curl.h>

#include "base/library.h"
#include "base/mem.h"

#define CONNECT_TIMEOUT_MS 5000L
/* Since 7.85, which the library that is loaded may be older than, as may the header that this was compiled with. */
#define PROTOCOLS_STR ((CURLoption)(CURLOPTTYPE_OBJECTPOINT + 318))

#define FUNCTIONS(X)                                                                                                   \
    X(curl_global_init)                                                                                                \
    X(curl_easy_init)                                                                                                  \
    X(curl_easy_setopt)                                                                                                \
    X(curl_easy_getinfo)                                                                                               \
    X(curl_easy_strerror)                                                                                              \
    X(curl_easy_cleanup)                                                                                               \
    X(curl_slist_append)                                                                                               \
    X(curl_slist_free_all)                                                                                             \
    X(curl_multi_init)                                                                                                 \
    X(curl_multi_add_handle)                                                                                           \
    X(curl_multi_remove_handle)                                                                                        \
    X(curl_multi_perform)                                                                                              \
    X(curl_multi_poll)                                                                                                 \
    X(curl_multi_wakeup)                                                                                               \
    X(curl_multi_info_read)                                                                                            \
    X(curl_multi_cleanup)

#define MEMBER(name) __typeof__(name) *name;
static struct {
    bool ready;
    char why[256];
    struct {
        FUNCTIONS(MEMBER)
    } functions;
} lib;
#undef MEMBER

/* Never unloaded: OpenSSL underneath would not survive it. */
static void load(void)
{
#define NAME(name) #name,
    static const char *const files[] = {"libcurl.so.4", "libcurl-gnutls.so.4", NULL}, *const names[] = {FUNCTIONS(NAME)
                                                                                                            NULL};
#undef NAME
    _Static_assert(sizeof(names) == sizeof(lib.functions) + sizeof(names[0]), "a name for each function");
    if (tc_library_load("libcurl", files, names, (void **)&lib.functions, lib.why, sizeof(lib.why)) != 0)
        return;
    lib.ready = lib.functions.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (!lib.ready)
        snprintf(lib.why, sizeof(lib.why), "libcurl cannot be initialised");
}

void tc_http_stop_init(struct tc_http_stop *s)
{
    *s = (struct tc_http_stop){.stopped = false};
    pthread_mutex_init(&s->mutex, NULL);
}

void tc_http_stop_fini(struct tc_http_stop *s)
{
    pthread_mutex_destroy(&s->mutex);
}

void tc_http_stop_now(struct tc_http_stop *s)
{
    pthread_mutex_lock(&s->mutex);
    s->stopped = true;
    if (s->running)
        lib.functions.curl_multi_wakeup(s->running);
    pthread_mutex_unlock(&s->mutex);
}

static bool set_running(struct tc_http_stop *s, CURLM *multi)
{
    pthread_mutex_lock(&s->mutex);
    s->running = multi;
    bool stopped = s->stopped;
    pthread_mutex_unlock(&s->mutex);
    return !stopped;
}

static bool is_stopped(struct tc_http_stop *s)
{
    pthread_mutex_lock(&s->mutex);
    bool stopped = s->stopped;
    pthread_mutex_unlock(&s->mutex);
    return stopped;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct tc_buf *body = arg;
    size_t len = size * n;
    if (len > TC_HTTP_MAX_BODY_BYTES - body->len)
        return 0; /* ends the transfer */
    tc_buf_append(body, data, len);
    return len;
}

/* Whether the header that the answer must have was there. */
struct mark {
    struct tc_slice name, value;
    bool seen;
};

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
    struct mark *m = arg;
    struct tc_slice line = tc_slice_of(data, size * n), name;
    bool more = true;
    if (tc_slice_starts(line, tc_slice_str("HTTP/"))) {
        m->seen = false; /* what came before was an answer on the way to this one */
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

/* False: it would speak other protocols too. */
static bool hold_to_http(CURL *easy)
{
    return lib.functions.curl_easy_setopt(easy, PROTOCOLS_STR, "https,http") == CURLE_OK ||
           lib.functions.curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTPS | CURLPROTO_HTTP)) ==
               CURLE_OK;
}

static void set_options(CURL *easy, const struct tc_http_request *r, struct curl_slist *headers, struct tc_buf *body,
                        char *error)
{
    lib.functions.curl_easy_setopt(easy, CURLOPT_URL, r->url);
    lib.functions.curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    lib.functions.curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    lib.functions.curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)r->timeout_ms);
    lib.functions.curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    lib.functions.curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
    lib.functions.curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    lib.functions.curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
    if (headers)
        lib.functions.curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    if (r->form)
        lib.functions.curl_easy_setopt(easy, CURLOPT_POSTFIELDS, r->form);
    if (r->roots_file)
        lib.functions.curl_easy_setopt(easy, CURLOPT_CAINFO, r->roots_file);
    if (r->direct)
        lib.functions.curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

/* Until it is done or stopped. */
static CURLcode run(CURLM *multi, struct tc_http_stop *stop)
{
    int running = 1, left;
    while (running && !is_stopped(stop)) {
        if (lib.functions.curl_multi_perform(multi, &running) != CURLM_OK)
            return CURLE_FAILED_INIT;
        if (running)
            lib.functions.curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    const CURLMsg *m = running ? NULL : lib.functions.curl_multi_info_read(multi, &left);
    return m ? m->data.result : CURLE_ABORTED_BY_CALLBACK;
}

static int transfer(CURL *easy, CURLM *multi, const struct tc_http_request *r, struct tc_http_stop *stop, int *status,
                    struct tc_buf *body, char **why)
{
    char error[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = r->header ? lib.functions.curl_slist_append(NULL, r->header) : NULL;
    struct mark mark;
    long code = 0;
    mark_init(&mark, r->marked);
    set_options(easy, r, headers, body, error);
    if (r->marked) {
        lib.functions.curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
        lib.functions.curl_easy_setopt(easy, CURLOPT_HEADERDATA, &mark);
    }
    CURLcode rc = CURLE_ABORTED_BY_CALLBACK;
    if (set_running(stop, multi) && lib.functions.curl_multi_add_handle(multi, easy) == CURLM_OK) {
        rc = run(multi, stop);
        if (rc == CURLE_OK)
            lib.functions.curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
        lib.functions.curl_multi_remove_handle(multi, easy);
    }
    set_running(stop, NULL);
    lib.functions.curl_slist_free_all(headers);
    if (rc == CURLE_OK && code == 200 && !mark.seen) {
        *why = tc_asprintf("its answer has no header \"%s\"", r->marked);
        return TORC_EPARSE;
    }
    if (rc == CURLE_OK)
        *status = (int)code;
    else if (rc == CURLE_WRITE_ERROR)
        *why = tc_asprintf("its answer has more than %d bytes", TC_HTTP_MAX_BODY_BYTES);
    else
        *why = tc_asprintf("%s", error[0] ? error : lib.functions.curl_easy_strerror(rc));
    return rc == CURLE_OK ? 0 : TORC_EIO;
}

int tc_http_fetch(const struct tc_http_request *r, struct tc_http_stop *stop, int *status, struct tc_buf *body,
                  char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!lib.ready) {
        *why = tc_strdup(lib.why);
        return TORC_EIO;
    }
    CURL *easy = lib.functions.curl_easy_init();
    CURLM *multi = lib.functions.curl_multi_init();
    int rc = TORC_EIO;
    if (easy && multi && !hold_to_http(easy))
        *why = tc_strdup("libcurl cannot be held to http and https");
    else if (easy && multi)
        rc = transfer(easy, multi, r, stop, status, body, why);
    else
        *why = tc_strdup("libcurl is out of memory");
    if (multi)
        lib.functions.curl_multi_cleanup(multi);
    if (easy)
        lib.functions.curl_easy_cleanup(easy);
    return rc;
}
