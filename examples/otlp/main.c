/* Sends one span and one metric to an OpenTelemetry receiver by generated code. usage: otlp [TARGET] */
#include "metrics_service.torc.h"
#include "trace_service.torc.h"
#include <err.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

/* Returns nanoseconds since 1970. */
static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Fills `bytes` with n random bytes. Returns a field that borrows `bytes`. Exits if getrandom fails. */
static ProtobufCBinaryData random_id(uint8_t *bytes, size_t n)
{
    if (getrandom(bytes, n, 0) != (ssize_t)n)
        err(1, "getrandom");
    return (ProtobufCBinaryData){n, bytes};
}

/* Returns the resource that the telemetry is about: the service's name as an attribute. Static memory. */
static Otlp__Resource *resource(void)
{
    static Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;
    static Otlp__KeyValue name = OTLP__KEY_VALUE__INIT, *attributes = &name;
    static Otlp__Resource resource = OTLP__RESOURCE__INIT;
    value.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE, value.string_value = (char *)"example";
    name.key = (char *)"service.name", name.value = &value;
    resource.n_attributes = 1, resource.attributes = &attributes;
    return &resource;
}

/* Returns 0; or 1, with the reason printed, if the RPC failed or the receiver rejected the span. */
static int export_span(torc_channel *channel, uint64_t begin, uint64_t end)
{
    uint8_t trace_id[16], span_id[8];
    Otlp__Span span = OTLP__SPAN__INIT, *spans = &span;
    Otlp__ScopeSpans scope = OTLP__SCOPE_SPANS__INIT, *scopes = &scope;
    Otlp__ResourceSpans of_resource = OTLP__RESOURCE_SPANS__INIT, *of_resources = &of_resource;
    Otlp__ExportTraceServiceRequest request = OTLP__EXPORT_TRACE_SERVICE_REQUEST__INIT;
    span.trace_id = random_id(trace_id, sizeof(trace_id)), span.span_id = random_id(span_id, sizeof(span_id));
    span.name = (char *)"work", span.kind = OTLP__SPAN__SPAN_KIND__SPAN_KIND_INTERNAL;
    span.start_time_unix_nano = begin, span.end_time_unix_nano = end;
    scope.n_spans = 1, scope.spans = &spans;
    of_resource.resource = resource(), of_resource.n_scope_spans = 1, of_resource.scope_spans = &scopes;
    request.n_resource_spans = 1, request.resource_spans = &of_resources;

    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 10000};
    torc_result *result = otlp__trace_service__export__call(channel, &request, &options);
    const Otlp__ExportTraceServiceResponse *response = otlp__trace_service__export__response(result);
    int failed = !response || (response->partial_success && response->partial_success->rejected_spans);
    if (failed)
        warnx("span: %s",
              response ? response->partial_success->error_message : torc_error_text(torc_result_error(result)));
    torc_result_free(result);
    return failed;
}

/* Returns 0; or 1, with the reason printed, if the RPC failed or the receiver rejected the metric. */
static int export_metric(torc_channel *channel, uint64_t begin, uint64_t end)
{
    Otlp__NumberDataPoint point = OTLP__NUMBER_DATA_POINT__INIT, *points = &point;
    Otlp__Sum sum = OTLP__SUM__INIT;
    Otlp__Metric metric = OTLP__METRIC__INIT, *metrics = &metric;
    Otlp__ScopeMetrics scope = OTLP__SCOPE_METRICS__INIT, *scopes = &scope;
    Otlp__ResourceMetrics of_resource = OTLP__RESOURCE_METRICS__INIT, *of_resources = &of_resource;
    Otlp__ExportMetricsServiceRequest request = OTLP__EXPORT_METRICS_SERVICE_REQUEST__INIT;
    point.value_case = OTLP__NUMBER_DATA_POINT__VALUE_AS_INT, point.as_int = 1;
    point.start_time_unix_nano = begin, point.time_unix_nano = end;
    sum.n_data_points = 1, sum.data_points = &points, sum.is_monotonic = 1;
    sum.aggregation_temporality = OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE;
    metric.name = (char *)"jobs", metric.unit = (char *)"1";
    metric.data_case = OTLP__METRIC__DATA_SUM, metric.sum = &sum;
    scope.n_metrics = 1, scope.metrics = &metrics;
    of_resource.resource = resource(), of_resource.n_scope_metrics = 1, of_resource.scope_metrics = &scopes;
    request.n_resource_metrics = 1, request.resource_metrics = &of_resources;

    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = 10000};
    torc_result *result = otlp__metrics_service__export__call(channel, &request, &options);
    const Otlp__ExportMetricsServiceResponse *response = otlp__metrics_service__export__response(result);
    int failed = !response || (response->partial_success && response->partial_success->rejected_data_points);
    if (failed)
        warnx("metric: %s",
              response ? response->partial_success->error_message : torc_error_text(torc_result_error(result)));
    torc_result_free(result);
    return failed;
}

int main(int argc, char **argv)
{
    torc_error *error = NULL;
    torc_channel *channel = torc_channel_new(NULL, argc > 1 ? argv[1] : "localhost:4317", NULL, &error);
    if (!channel)
        errx(1, "%s", torc_error_text(error));
    uint64_t begin = now();
    int failed = export_span(channel, begin, now());
    failed |= export_metric(channel, begin, now());
    torc_channel_free(channel);
    return failed;
}
