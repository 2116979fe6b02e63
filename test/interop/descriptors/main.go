// Writes a FileDescriptorSet with all files that are compiled into the packages below to standard output: what etcd,
// OpenTelemetry, grpc-proto and the rpc folder of googleapis define, and what these import.
package main

import (
	"os"
	"strings"

	_ "go.etcd.io/etcd/api/v3/etcdserverpb"
	_ "go.etcd.io/etcd/api/v3/membershippb"
	_ "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	_ "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	_ "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	_ "google.golang.org/genproto/googleapis/rpc/code"
	_ "google.golang.org/genproto/googleapis/rpc/context/attribute_context"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
	_ "google.golang.org/genproto/googleapis/rpc/http"
	_ "google.golang.org/genproto/googleapis/rpc/status"
	_ "google.golang.org/grpc/balancer/grpclb/grpc_lb_v1"
	_ "google.golang.org/grpc/balancer/rls" // registers grpc.lookup.v1
	_ "google.golang.org/grpc/binarylog/grpc_binarylog_v1"
	_ "google.golang.org/grpc/channelz/grpc_channelz_v1"
	_ "google.golang.org/grpc/credentials/alts" // registers grpc.gcp
	_ "google.golang.org/grpc/health/grpc_health_v1"
	_ "google.golang.org/grpc/interop/grpc_testing"
	_ "google.golang.org/grpc/reflection/grpc_reflection_v1"
	_ "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Files register under the path with which protoc saw them, and may import one another by a longer one.
func fullPaths() map[string]string {
	full := map[string]string{}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := 0; i < file.Imports().Len(); i++ {
			wanted := file.Imports().Get(i)
			for at := 0; wanted.IsPlaceholder() && at >= 0; {
				if _, err := protoregistry.GlobalFiles.FindFileByPath(wanted.Path()[at:]); err == nil {
					full[wanted.Path()[at:]] = wanted.Path()
				}
				next := strings.Index(wanted.Path()[at:], "/")
				if next < 0 {
					break
				}
				at += next + 1
			}
		}
		return true
	})
	return full
}

func main() {
	set, full, seen := &descriptorpb.FileDescriptorSet{}, fullPaths(), map[string]bool{}
	short := map[string]string{}
	for path, long := range full {
		short[long] = path
	}
	var add func(path string)
	add = func(path string) { // a file comes after its imports
		if registered := short[path]; registered != "" {
			path = registered
		}
		if seen[path] {
			return
		}
		seen[path] = true
		file, err := protoregistry.GlobalFiles.FindFileByPath(path)
		if err != nil {
			panic(err)
		}
		description := protodesc.ToFileDescriptorProto(file)
		for _, wanted := range description.Dependency {
			add(wanted)
		}
		if long := full[path]; long != "" {
			description.Name = proto.String(long)
		}
		set.File = append(set.File, description)
	}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		add(file.Path())
		return true
	})
	bytes, err := proto.Marshal(set)
	if err == nil {
		_, err = os.Stdout.Write(bytes)
	}
	if err != nil {
		panic(err)
	}
}
