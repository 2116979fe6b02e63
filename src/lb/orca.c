/* Reads reports field by field with proto/wire, without allocating: a report may come with each RPC. Refuses bytes that
 * are cut short, groups, and names that are not UTF-8 or contain a NUL, as proto/scan does. Also writes the request for
 * reports out of band; lb/side_stream.h has the stream. */
#include "lb/orca.h"

#include <endian.h>
#include <string.h>

#include "base/parse.h"
#include "proto/wire.h"

static bool orca_field_is_named(uint64_t field)
{
    return field == TC_ORCA_REQUEST_COST || field == TC_ORCA_UTILIZATION || field == TC_ORCA_NAMED;
}

/* Reads a double of the wire, which is little endian. */
static double orca_read_double(const char *bytes)
{
    uint64_t bits;
    double value;
    memcpy(&bits, bytes, sizeof(bits));
    bits = le64toh(bits);
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Reads an entry of a map: the name is field 1, the value field 2. */
static bool orca_read_entry(struct tc_slice entry, struct tc_orca_value *out)
{
    struct tc_wire_field f;
    out->name = tc_slice_of(entry.data, 0);
    while (entry.len) {
        if (!tc_wire_next(&entry, &f))
            return false;
        if (f.number == 1 && f.is_bytes)
            out->name = f.value;
        else if (f.number == 2 && f.is_64bit)
            out->value = orca_read_double(f.value.data);
    }
    return tc_utf8_valid(out->name) && !(out->name.len && memchr(out->name.data, 0, out->name.len));
}

bool tc_orca_next(struct tc_slice *rest, struct tc_orca_value *out)
{
    struct tc_wire_field f;
    for (struct tc_slice left = *rest; left.len; *rest = left) {
        if (!tc_wire_next(&left, &f))
            return false;
        *out = (struct tc_orca_value){.field = f.number};
        if (f.is_bytes && orca_field_is_named(f.number)) {
            if (!orca_read_entry(f.value, out))
                return false;
        } else if (f.is_64bit && !orca_field_is_named(f.number)) {
            out->value = orca_read_double(f.value.data);
        } else {
            continue; /* rps, an unknown field that is not of 64 bits, or a wrong wire type */
        }
        *rest = left;
        return true;
    }
    return false;
}

struct tc_slice tc_orca_of_trailers(const struct tc_headers *trailers)
{
    struct tc_slice report = {0};
    for (size_t i = 0; trailers && i < trailers->len; i++) {
        if (!tc_slice_eq_str(trailers->data[i].name, "endpoint-load-metrics-bin"))
            continue;
        if (report.data)
            return (struct tc_slice){0};
        report = trailers->data[i].value;
    }
    return report;
}

/* OrcaLoadReportRequest {report_interval = 1: Duration {seconds = 1, nanos = 2}}. */
static void orca_append_request(const struct tc_link *watches, struct tc_buf *out)
{
    uint64_t least_ms = UINT64_MAX;
    for (const struct tc_link *it = watches->next; it != watches; it = it->next)
        least_ms = TC_MIN(least_ms, TC_CONTAINER_OF(tc_side_watch_of(it), struct tc_orca_watch, side)->interval_ms);
    struct tc_buf duration = {0};
    tc_buf_append_char(&duration, 1 << 3 | TC_WIRE_VARINT);
    tc_wire_append_varint(&duration, least_ms / 1000);
    tc_buf_append_char(&duration, 2 << 3 | TC_WIRE_VARINT);
    tc_wire_append_varint(&duration, least_ms % 1000 * 1000000);
    tc_wire_append(out, 1, tc_buf_slice(&duration));
    tc_buf_fini(&duration);
}

const struct tc_side_kind tc_orca_reports = {
    .path = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics",
    .name = "out-of-band load reports",
    .max_message_bytes = 8 << 10,
    .request = orca_append_request,
};
