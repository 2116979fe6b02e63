// The OpenTelemetry collector's OTLP receiver, for examples/otlp. Prints "listening unix:PATH", a line for each span and each
// data point that comes, and ends when its input does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.uber.org/zap"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "otlp:", err)
		os.Exit(1)
	}
}

func service(resource pcommon.Resource) string {
	name, _ := resource.Attributes().Get("service.name")
	return name.AsString()
}

func onTraces(_ context.Context, traces ptrace.Traces) error {
	for _, r := range traces.ResourceSpans().All() {
		for _, scope := range r.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				fmt.Println("span", service(r.Resource()), span.Name(), span.Kind(), len(span.TraceID().String()), len(span.SpanID().String()),
					span.StartTimestamp() > 0 && span.StartTimestamp() <= span.EndTimestamp())
			}
		}
	}
	return nil
}

func onMetrics(_ context.Context, metrics pmetric.Metrics) error {
	for _, r := range metrics.ResourceMetrics().All() {
		for _, scope := range r.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				for _, point := range metric.Sum().DataPoints().All() {
					fmt.Println("metric", service(r.Resource()), metric.Name(), metric.Unit(), metric.Sum().AggregationTemporality(),
						metric.Sum().IsMonotonic(), point.IntValue(), point.StartTimestamp() > 0 && point.StartTimestamp() <= point.Timestamp())
				}
			}
		}
	}
	return nil
}

func main() {
	folder, err := os.MkdirTemp("", "torc-otlp")
	must(err)
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "socket")
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.GRPC.GetOrInsertDefault().NetAddr = confignet.AddrConfig{Endpoint: path, Transport: confignet.TransportTypeUnix}
	settings := receiver.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	settings.Logger = zap.NewNop()
	traceSink, err := consumer.NewTraces(onTraces)
	must(err)
	metricSink, err := consumer.NewMetrics(onMetrics)
	must(err)
	traces, err := factory.CreateTraces(context.Background(), settings, config, traceSink)
	must(err)
	metrics, err := factory.CreateMetrics(context.Background(), settings, config, metricSink)
	must(err)
	must(traces.Start(context.Background(), componenttest.NewNopHost()))
	must(metrics.Start(context.Background(), componenttest.NewNopHost()))
	fmt.Println("listening", "unix:"+path)
	io.Copy(io.Discard, os.Stdin)
	must(traces.Shutdown(context.Background()))
	must(metrics.Shutdown(context.Background()))
}
