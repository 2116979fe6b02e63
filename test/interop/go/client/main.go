// The client side of gRPC's interop suite: grpc-go's own cases, and the compression cases, which that one leaves out: a
// stats handler sees whether each message of the server came compressed.
//
// usage: client -list | -target ADDR -case NAME [-ca FILE -authority NAME]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"sort"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// arrivals has one entry for each message of the server: whether it was compressed on the wire.
type arrivals struct {
	mu         sync.Mutex
	compressed []bool
}

func (a *arrivals) take() []bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.compressed
	a.compressed = nil
	return seen
}

func (a *arrivals) HandleRPC(_ context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InPayload); ok {
		a.mu.Lock()
		a.compressed = append(a.compressed, in.CompressedLength != in.Length)
		a.mu.Unlock()
	}
}

func (a *arrivals) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (a *arrivals) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (a *arrivals) HandleConn(context.Context, stats.ConnStats)                       {}

type world struct {
	cc   *grpc.ClientConn
	tc   pb.TestServiceClient
	seen *arrivals
}

var gzip = grpc.UseCompressor("gzip")

func zeros(n int) *pb.Payload { return &pb.Payload{Body: make([]byte, n)} }

func must(what string, err error) {
	if err != nil {
		log.Fatalf("%s: %v", what, err)
	}
}

func mustCode(what string, err error, want codes.Code) {
	if status.Code(err) != want {
		log.Fatalf("%s: %v, wanted %v", what, err, want)
	}
}

func (w *world) mustSee(what string, want ...bool) {
	if seen := w.seen.take(); fmt.Sprint(seen) != fmt.Sprint(want) {
		log.Fatalf("%s: compressed: %v, wanted %v", what, seen, want)
	}
}

func (w *world) unary(what string, in *pb.SimpleRequest, opts ...grpc.CallOption) {
	out, err := w.tc.UnaryCall(context.Background(), in, opts...)
	must(what, err)
	if len(out.GetPayload().GetBody()) != 314159 {
		log.Fatalf("%s: %d bytes", what, len(out.GetPayload().GetBody()))
	}
}

func clientCompressedUnary(_ context.Context, w *world) {
	in := &pb.SimpleRequest{ResponseSize: 314159, Payload: zeros(271828), ExpectCompressed: &pb.BoolValue{Value: true}}
	_, err := w.tc.UnaryCall(context.Background(), in)
	mustCode("the probe", err, codes.InvalidArgument)
	w.unary("compressed", in, gzip)
	in.ExpectCompressed.Value = false
	w.unary("plain", in)
}

func serverCompressedUnary(_ context.Context, w *world) {
	for _, wanted := range []bool{true, false} {
		w.seen.take()
		w.unary("server_compressed_unary", &pb.SimpleRequest{ResponseSize: 314159, Payload: zeros(271828),
			ResponseCompressed: &pb.BoolValue{Value: wanted}})
		w.mustSee("server_compressed_unary", wanted)
	}
}

// input sends messages of these sizes as the options say; grpc-go compresses all messages of a stream, or none.
func (w *world) input(expect bool, sizes []int, opts ...grpc.CallOption) (*pb.StreamingInputCallResponse, error) {
	stream, err := w.tc.StreamingInputCall(context.Background(), opts...)
	must("StreamingInputCall", err)
	for _, size := range sizes {
		in := &pb.StreamingInputCallRequest{Payload: zeros(size), ExpectCompressed: &pb.BoolValue{Value: expect}}
		if err := stream.Send(in); err != nil && err != io.EOF {
			log.Fatalf("send: %v", err)
		}
	}
	return stream.CloseAndRecv()
}

func clientCompressedStreaming(_ context.Context, w *world) {
	_, err := w.input(true, []int{27182})
	mustCode("the probe", err, codes.InvalidArgument)
	out, err := w.input(true, []int{27182, 45904}, gzip)
	must("compressed", err)
	if out.AggregatedPayloadSize != 73086 {
		log.Fatalf("%d bytes", out.AggregatedPayloadSize)
	}
	_, err = w.input(false, []int{45904})
	must("plain", err)
}

func serverCompressedStreaming(_ context.Context, w *world) {
	stream, err := w.tc.StreamingOutputCall(context.Background(), &pb.StreamingOutputCallRequest{
		ResponseParameters: []*pb.ResponseParameters{
			{Size: 31415, Compressed: &pb.BoolValue{Value: true}}, {Size: 92653, Compressed: &pb.BoolValue{Value: false}}}})
	must("StreamingOutputCall", err)
	for _, size := range []int{31415, 92653} {
		out, err := stream.Recv()
		must("receive", err)
		if len(out.GetPayload().GetBody()) != size {
			log.Fatalf("%d bytes, wanted %d", len(out.GetPayload().GetBody()), size)
		}
	}
	if _, err := stream.Recv(); err != io.EOF {
		log.Fatalf("the end: %v", err)
	}
	w.mustSee("server_compressed_streaming", true, false)
}

func of(run func(context.Context, pb.TestServiceClient, ...grpc.CallOption)) func(context.Context, *world) {
	return func(ctx context.Context, w *world) { run(ctx, w.tc) }
}

var cases = map[string]func(context.Context, *world){
	"empty_unary":                 of(interop.DoEmptyUnaryCall),
	"large_unary":                 of(interop.DoLargeUnaryCall),
	"client_compressed_unary":     clientCompressedUnary,
	"server_compressed_unary":     serverCompressedUnary,
	"client_streaming":            of(interop.DoClientStreaming),
	"client_compressed_streaming": clientCompressedStreaming,
	"server_streaming":            of(interop.DoServerStreaming),
	"server_compressed_streaming": serverCompressedStreaming,
	"ping_pong":                   of(interop.DoPingPong),
	"empty_stream":                of(interop.DoEmptyStream),
	"timeout_on_sleeping_server":  of(interop.DoTimeoutOnSleepingServer),
	"cancel_after_begin":          of(interop.DoCancelAfterBegin),
	"cancel_after_first_response": of(interop.DoCancelAfterFirstResponse),
	"status_code_and_message":     of(interop.DoStatusCodeAndMessage),
	"special_status_message":      of(interop.DoSpecialStatusMessage),
	"custom_metadata":             of(interop.DoCustomMetadata),
	"unimplemented_method":        func(ctx context.Context, w *world) { interop.DoUnimplementedMethod(ctx, w.cc) },
	"orca_per_rpc":         func(ctx context.Context, w *world) { interop.DoORCAPerRPCTest(ctx, w.tc) },
	"orca_oob":             func(ctx context.Context, w *world) { interop.DoORCAOOBTest(ctx, w.tc) },
	"unimplemented_service": func(ctx context.Context, w *world) {
		interop.DoUnimplementedService(ctx, pb.NewUnimplementedServiceClient(w.cc))
	},
}

func main() {
	list := flag.Bool("list", false, "name the cases")
	target := flag.String("target", "", "host:port")
	name := flag.String("case", "", "a case")
	ca := flag.String("ca", "", "PEM file")
	authority := flag.String("authority", "", "the server's name")
	flag.Parse()
	if *list {
		names := make([]string, 0, len(cases))
		for name := range cases {
			names = append(names, name)
		}
		sort.Strings(names)
		fmt.Println("version", grpc.Version)
		for _, name := range names {
			fmt.Println(name)
		}
		return
	}
	run := cases[*name]
	if run == nil || *target == "" {
		log.Fatal("-target and -case, or -list")
	}
	creds := insecure.NewCredentials()
	if *ca != "" {
		var err error
		creds, err = credentials.NewClientTLSFromFile(*ca, *authority)
		must(*ca, err)
	}
	w := &world{seen: &arrivals{}}
	opts := []grpc.DialOption{grpc.WithTransportCredentials(creds), grpc.WithStatsHandler(w.seen)}
	if strings.HasPrefix(*name, "orca_") { // the policy of grpc-go's interop package that takes reports
		opts = append(opts, grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"test_backend_metrics_load_balancer":{}}]}`))
	}
	cc, err := grpc.NewClient("passthrough:///"+*target, opts...)
	must(*target, err)
	defer cc.Close()
	w.cc, w.tc = cc, pb.NewTestServiceClient(cc)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run(ctx, w)
}
