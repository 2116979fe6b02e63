// Holds every field of Torc's .proto files (name, number, kind, label, type, oneof) and every enum value against the
// descriptors that are compiled into go-control-plane, cncf/xds and google.golang.org/grpc. The argument is a file with
// a FileDescriptorSet of Torc's. Prints a line for each difference, and then how much was compared.
package main

import (
	"fmt"
	"log"
	"os"

	_ "github.com/cncf/xds/go/udpa/type/v1"
	_ "github.com/cncf/xds/go/xds/data/orca/v3"
	_ "github.com/cncf/xds/go/xds/service/orca/v3"
	_ "github.com/cncf/xds/go/xds/type/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/http/stateful_session/cookie/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/maglev/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/pick_first/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random_subsetting/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/http_11_proxy/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/type/http/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	_ "google.golang.org/genproto/googleapis/rpc/status"
	_ "google.golang.org/grpc/health/grpc_health_v1"
	_ "google.golang.org/grpc/interop/grpc_testing"
	_ "google.golang.org/grpc/reflection/grpc_reflection_v1"
	_ "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	_ "google.golang.org/protobuf/types/known/apipb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/sourcecontextpb"
	_ "google.golang.org/protobuf/types/known/typepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

var compared, differences int

func differ(format string, args ...any) {
	differences++
	fmt.Printf(format+"\n", args...)
}

func official(name protoreflect.FullName) protoreflect.Descriptor {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		differ("%s: no such thing in the official descriptors", name)
		return nil
	}
	return found
}

// facts of a field in one line, to be compared as text.
func facts(f protoreflect.FieldDescriptor) string {
	of, oneof := protoreflect.FullName(""), protoreflect.Name("")
	if f.Message() != nil && !f.IsMap() {
		of = f.Message().FullName()
	}
	if f.Enum() != nil {
		of = f.Enum().FullName()
	}
	if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
		oneof = o.Name()
	}
	text := fmt.Sprintf("%d %s %s %s %s", f.Number(), f.Cardinality(), f.Kind(), of, oneof)
	if f.IsMap() {
		text += fmt.Sprintf(" map of %s to %s", f.MapKey().Kind(), f.MapValue().Kind())
	}
	return text
}

func enum(ours protoreflect.EnumDescriptor) {
	theirs, ok := official(ours.FullName()).(protoreflect.EnumDescriptor)
	for i := 0; ok && i < ours.Values().Len(); i++ {
		value := ours.Values().Get(i)
		compared++
		if other := theirs.Values().ByName(value.Name()); other == nil || other.Number() != value.Number() {
			differ("%s.%s: %d is not what the official enum says", ours.FullName(), value.Name(), value.Number())
		}
	}
}

func message(ours protoreflect.MessageDescriptor) {
	if ours.IsMapEntry() {
		return
	}
	theirs, ok := official(ours.FullName()).(protoreflect.MessageDescriptor)
	for i := 0; ok && i < ours.Fields().Len(); i++ {
		field := ours.Fields().Get(i)
		compared++
		if other := theirs.Fields().ByName(field.Name()); other == nil {
			differ("%s: no such field in the official message", field.FullName())
		} else if facts(field) != facts(other) {
			differ("%s: %s; officially %s", field.FullName(), facts(field), facts(other))
		}
	}
	for i := 0; i < ours.Enums().Len(); i++ {
		enum(ours.Enums().Get(i))
	}
	for i := 0; i < ours.Messages().Len(); i++ {
		message(ours.Messages().Get(i))
	}
}

func main() {
	bytes, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(bytes, &set); err != nil {
		log.Fatal(err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		log.Fatal(err)
	}
	files.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := 0; i < file.Messages().Len(); i++ {
			message(file.Messages().Get(i))
		}
		for i := 0; i < file.Enums().Len(); i++ {
			enum(file.Enums().Get(i))
		}
		return true
	})
	fmt.Println("compared", compared)
	if differences > 0 || compared == 0 {
		os.Exit(1)
	}
}
