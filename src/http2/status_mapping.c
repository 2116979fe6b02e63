/* Both tables are those of gRPC: http-grpc-status-mapping.md, and "Errors" in PROTOCOL-HTTP2.md. */
#include "http2/status_mapping.h"

#include <nghttp2/nghttp2.h>

int tc_h2_code_from_http(unsigned http_status)
{
    switch (http_status) {
    case 400:
    case 431:
        return TORC_STATUS_INTERNAL;
    case 401:
        return TORC_STATUS_UNAUTHENTICATED;
    case 403:
        return TORC_STATUS_PERMISSION_DENIED;
    case 404:
        return TORC_STATUS_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return TORC_STATUS_UNAVAILABLE;
    default:
        return TORC_STATUS_UNKNOWN;
    }
}

struct tc_status tc_h2_status_from_rst(uint32_t h2_error)
{
    int code = TORC_STATUS_UNKNOWN;
    switch (h2_error) {
    case NGHTTP2_NO_ERROR:
    case NGHTTP2_PROTOCOL_ERROR:
    case NGHTTP2_INTERNAL_ERROR:
    case NGHTTP2_FLOW_CONTROL_ERROR:
    case NGHTTP2_SETTINGS_TIMEOUT:
    case NGHTTP2_FRAME_SIZE_ERROR:
    case NGHTTP2_COMPRESSION_ERROR:
    case NGHTTP2_CONNECT_ERROR:
        code = TORC_STATUS_INTERNAL;
        break;
    case NGHTTP2_REFUSED_STREAM:
        code = TORC_STATUS_UNAVAILABLE;
        break;
    case NGHTTP2_CANCEL:
        code = TORC_STATUS_CANCELLED;
        break;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        code = TORC_STATUS_RESOURCE_EXHAUSTED;
        break;
    case NGHTTP2_INADEQUATE_SECURITY:
        code = TORC_STATUS_PERMISSION_DENIED;
        break;
    default:
        break;
    }
    return tc_status_make(code, TORC_LAYER_HTTP2, "stream reset by the server with %s (%u)",
                          nghttp2_http2_strerror(h2_error), (unsigned)h2_error);
}
