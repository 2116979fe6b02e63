/* gRPC's status codes with their names, texts of TORC_E*, and statuses with a shared text. The order of code_names is
 * that of enum torc_status_code; a code that gRPC does not have is shown as UNKNOWN, as peers must treat it
 * (PROTOCOL-HTTP2). The names are part of what the command prints and the service config reads. */
#include "base/status.h"

#include "base/buf.h"

struct tc_status tc_status_make(int code, const char *fmt, ...)
{
    struct tc_buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    struct tc_status s = {code, tc_rstr_of_buf(&b)};
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

static const char *const error_texts[] = {
    [-TORC_OK] = "success",
    [-TORC_EINVAL] = "invalid argument",
    [-TORC_ENOTFOUND] = "not found",
    [-TORC_EEXIST] = "exists already",
    [-TORC_EAGAIN] = "nothing to do now",
    [-TORC_ECLOSED] = "closed",
    [-TORC_EIO] = "operating system error",
    [-TORC_EPROTO] = "protocol error",
    [-TORC_ELIMIT] = "limit exceeded",
    [-TORC_EUNSUPPORTED] = "not supported",
    [-TORC_ESTATE] = "not allowed in this state",
    [-TORC_EDEADLK] = "blocking call from inside a callback",
    [-TORC_EFORK] = "object belongs to the parent process, or the process is exiting",
    [-TORC_ETIMEDOUT] = "timed out",
    [-TORC_ECANCELED] = "cancelled",
    [-TORC_EPARSE] = "malformed",
};

const char *torc_strerror(int error)
{
    bool known = error <= 0 && error > -(int)TC_ARRAY_LEN(error_texts);
    return known ? error_texts[-error] : "unknown error";
}
