#include "base/status.h"

#include "base/buf.h"

struct tc_status tc_status_make(int code, const char *fmt, ...)
{
    struct tc_buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    struct tc_status s = {code, tc_rstr_new(b.data, b.len)};
    tc_buf_fini(&b);
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

const char *torc_strerror(int error)
{
    switch (error) {
    case TORC_OK:
        return "success";
    case TORC_EINVAL:
        return "invalid argument";
    case TORC_ENOTFOUND:
        return "not found";
    case TORC_EEXIST:
        return "exists already";
    case TORC_EAGAIN:
        return "nothing to do now";
    case TORC_ECLOSED:
        return "closed";
    case TORC_EIO:
        return "operating system error";
    case TORC_EPROTO:
        return "protocol error";
    case TORC_ELIMIT:
        return "limit exceeded";
    case TORC_EUNSUPPORTED:
        return "not supported";
    case TORC_ESTATE:
        return "not allowed in this state";
    case TORC_EDEADLK:
        return "blocking call from inside a callback";
    case TORC_EFORK:
        return "object belongs to the parent process";
    case TORC_ETIMEDOUT:
        return "timed out";
    case TORC_ECANCELED:
        return "cancelled";
    case TORC_EPARSE:
        return "malformed";
    default:
        return "unknown error";
    }
}
