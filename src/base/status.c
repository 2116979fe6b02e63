/* Three forms of an error: gRPC's status codes with their names, statuses with a shared text for the inside of the
 * library, and the error objects that applications get.
 *
 * The order of code_names is that of enum torc_status_code; a code that gRPC does not have is shown as UNKNOWN, as
 * peers must treat it (PROTOCOL-HTTP2). The names are part of what the command prints and the service config reads. An
 * error is immutable and counted, so that it may go to another thread. */
#include "base/status.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/ref.h"

struct tc_status tc_status_make(int code, int layer, const char *fmt, ...)
{
    struct tc_buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    struct tc_status s = {code, layer, tc_rstr_of_buf(&b)};
    return s;
}

bool tc_status_eq(const struct tc_status *a, const struct tc_status *b)
{
    return a->code == b->code && tc_rstr_eq(a->text, b->text);
}

static const char *const code_names[] = {
    "OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
};

const char *torc_status_code_name(int code)
{
    if (code < 0 || (size_t)code >= TC_ARRAY_LEN(code_names))
        return "UNKNOWN";
    return code_names[code];
}

int torc_status_code_from_name(const char *name)
{
    for (size_t i = 0; name && i < TC_ARRAY_LEN(code_names); i++)
        if (strcmp(code_names[i], name) == 0)
            return (int)i;
    return -1;
}

/* --- errors --- */

struct torc_error {
    struct tc_ref ref;
    int code;
    int layer;
    int status; /* enum torc_status_code */
    struct tc_rstr *text;
};

/* The text and the gRPC status of each enum torc_code, at the index -code. */
static const struct code {
    const char *text;
    enum torc_status_code status;
} codes[] = {
    [-TORC_OK] = {"success", TORC_STATUS_OK},
    [-TORC_EINVAL] = {"invalid argument", TORC_STATUS_INVALID_ARGUMENT},
    [-TORC_ENOTFOUND] = {"not found", TORC_STATUS_NOT_FOUND},
    [-TORC_EEXIST] = {"exists already", TORC_STATUS_ALREADY_EXISTS},
    [-TORC_EAGAIN] = {"nothing to do now", TORC_STATUS_UNAVAILABLE},
    [-TORC_ECLOSED] = {"closed", TORC_STATUS_UNAVAILABLE},
    [-TORC_EIO] = {"operating system error", TORC_STATUS_UNAVAILABLE},
    [-TORC_EPROTO] = {"protocol error", TORC_STATUS_INTERNAL},
    [-TORC_ELIMIT] = {"limit exceeded", TORC_STATUS_RESOURCE_EXHAUSTED},
    [-TORC_EUNSUPPORTED] = {"not supported", TORC_STATUS_UNIMPLEMENTED},
    [-TORC_ESTATE] = {"not allowed in this state", TORC_STATUS_FAILED_PRECONDITION},
    [-TORC_EDEADLK] = {"blocking call from inside a callback", TORC_STATUS_FAILED_PRECONDITION},
    [-TORC_EFORK] = {"object belongs to the parent process, or the process is exiting",
                     TORC_STATUS_FAILED_PRECONDITION},
    [-TORC_ETIMEDOUT] = {"timed out", TORC_STATUS_DEADLINE_EXCEEDED},
    [-TORC_ECANCELED] = {"cancelled", TORC_STATUS_CANCELLED},
    [-TORC_EPARSE] = {"malformed", TORC_STATUS_INVALID_ARGUMENT},
    [-TORC_ESTATUS] = {"the RPC failed", TORC_STATUS_UNKNOWN},
};

static bool code_is_known(int code)
{
    return code <= 0 && code > -(int)TC_ARRAY_LEN(codes);
}

const char *torc_strerror(int code)
{
    return code_is_known(code) ? codes[-code].text : "unknown error";
}

const char *torc_layer_name(int layer)
{
    static const char *const names[] = {
        [TORC_LAYER_NONE] = "NONE",
        [TORC_LAYER_API] = "API",
        [TORC_LAYER_RESOLVER] = "RESOLVER",
        [TORC_LAYER_XDS] = "XDS",
        [TORC_LAYER_LB] = "LB",
        [TORC_LAYER_CONNECT] = "CONNECT",
        [TORC_LAYER_TLS] = "TLS",
        [TORC_LAYER_HTTP2] = "HTTP2",
        [TORC_LAYER_CREDENTIALS] = "CREDENTIALS",
        [TORC_LAYER_INTERCEPTOR] = "INTERCEPTOR",
        [TORC_LAYER_CODEC] = "CODEC",
        [TORC_LAYER_LIMIT] = "LIMIT",
        [TORC_LAYER_DEADLINE] = "DEADLINE",
        [TORC_LAYER_PEER] = "PEER",
    };
    return layer >= 0 && (size_t)layer < TC_ARRAY_LEN(names) ? names[layer] : "UNKNOWN";
}

/* Makes an error with one reference. Takes over the text. `code` must be an enum torc_code. */
static torc_error *error_make(int code, int layer, struct tc_rstr *text)
{
    torc_error *e = TC_NEW(torc_error);
    tc_ref_init(&e->ref);
    e->code = code;
    e->layer = layer;
    e->status = (int)codes[-code].status;
    e->text = text;
    return e;
}

torc_error *torc_error_new(int code, int layer, const char *text)
{
    if (code >= 0 || !code_is_known(code))
        code = TORC_EINVAL;
    if (layer <= TORC_LAYER_NONE || layer > TORC_LAYER_PEER)
        layer = TORC_LAYER_API;
    return error_make(code, layer, tc_rstr_str(text ? text : torc_strerror(code)));
}

bool tc_error_set(torc_error **error, enum torc_code code, enum torc_layer layer, const char *fmt, ...)
{
    if (error) {
        struct tc_buf text = {0};
        va_list ap;
        va_start(ap, fmt);
        tc_buf_vprintf(&text, fmt, ap);
        va_end(ap);
        *error = error_make(code, (int)layer, tc_rstr_of_buf(&text));
    }
    return false;
}

bool tc_error_take(torc_error **error, enum torc_code code, enum torc_layer layer, char *why)
{
    if (error)
        *error = error_make(code, (int)layer, tc_rstr_str(why ? why : torc_strerror(code)));
    tc_free(why);
    return false;
}

/* The reason that a code stands for when it is about a handle or an argument. */
static const char *code_reason(int code)
{
    switch (code) {
    case TORC_EINVAL:
        return "it is NULL";
    case TORC_ECLOSED:
        return "it has ended, or its runtime was freed";
    case TORC_EDEADLK:
        return "a wait inside a callback of its runtime would not end";
    case TORC_EFORK:
        return "it belongs to the parent process, or the process is exiting";
    default:
        return torc_strerror(code);
    }
}

bool tc_error_set_code(torc_error **error, int code, const char *what)
{
    return tc_error_set(error, (enum torc_code)code, TORC_LAYER_API, "%s: %s", what, code_reason(code));
}

/* Returns a reference to the text of a status, or to a sentence instead if the text is empty. */
static struct tc_rstr *status_sentence(const struct tc_status *s)
{
    if (s->text && s->text->len)
        return tc_rstr_ref(s->text);
    return tc_rstr_printf("%s %s without a message",
                          s->layer == TORC_LAYER_PEER ? "the server answered" : "the RPC ended with",
                          torc_status_code_name(s->code));
}

torc_error *tc_error_of_status(const struct tc_status *s)
{
    torc_error *e = error_make(TORC_ESTATUS, s->layer ? s->layer : TORC_LAYER_API, status_sentence(s));
    e->status = s->code;
    return e;
}

const torc_error *tc_error_no_memory(void)
{
    /* The first references of text and error are never given up, so neither is freed. */
    static struct tc_rstr text = {.ref = {1}, .len = 13, .data = "out of memory"};
    static torc_error no_memory = {.ref = {1},
                                   .code = TORC_ELIMIT,
                                   .layer = TORC_LAYER_LIMIT,
                                   .status = TORC_STATUS_RESOURCE_EXHAUSTED,
                                   .text = &text};
    return &no_memory;
}

int torc_error_code(const torc_error *error)
{
    return error ? error->code : TORC_OK;
}

int torc_error_status(const torc_error *error)
{
    return error ? error->status : TORC_STATUS_OK;
}

int torc_error_layer(const torc_error *error)
{
    return error ? error->layer : TORC_LAYER_NONE;
}

const char *torc_error_text(const torc_error *error)
{
    return error ? error->text->data : "";
}

torc_error *torc_error_ref(const torc_error *given)
{
    torc_error *error = (torc_error *)(uintptr_t)given;
    if (error)
        tc_ref_inc(&error->ref);
    return error;
}

void torc_error_free(torc_error *error)
{
    if (!error || !tc_ref_dec(&error->ref))
        return;
    tc_rstr_unref(error->text);
    tc_free(error);
}

void torc_error_clear(torc_error **error)
{
    if (!error)
        return;
    torc_error_free(*error);
    *error = NULL;
}
