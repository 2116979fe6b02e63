// The server of gRPC's interop suite: grpc-go's own implementation of the service, and the compression cases, which
// that one leaves out: a stats handler sees whether each message of a request came compressed.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// wire holds, for one RPC, whether each message received so far was compressed on the wire.
type wire struct {
	mu         sync.Mutex
	compressed []bool
}

func (w *wire) at(i int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return i < len(w.compressed) && w.compressed[i]
}

type wireKey struct{}

type watch struct{}

func (watch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, wireKey{}, &wire{})
}

func (watch) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InPayload); ok {
		w := ctx.Value(wireKey{}).(*wire)
		w.mu.Lock()
		w.compressed = append(w.compressed, in.CompressedLength != in.Length)
		w.mu.Unlock()
	}
}

func (watch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (watch) HandleConn(context.Context, stats.ConnStats)                       {}

type server struct {
	pb.TestServiceServer
}

func expect(ctx context.Context, want *pb.BoolValue, i int) error {
	if want == nil || want.Value == ctx.Value(wireKey{}).(*wire).at(i) {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "message %d: compressed is not %v", i, want.Value)
}

func (s server) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if err := expect(ctx, in.ExpectCompressed, 0); err != nil {
		return nil, err
	}
	if in.ResponseCompressed.GetValue() {
		if err := grpc.SetSendCompressor(ctx, "gzip"); err != nil {
			return nil, err
		}
	}
	return s.TestServiceServer.UnaryCall(ctx, in)
}

type checkedInput struct {
	pb.TestService_StreamingInputCallServer
	seen int
}

func (s *checkedInput) Recv() (*pb.StreamingInputCallRequest, error) {
	in, err := s.TestService_StreamingInputCallServer.Recv()
	if err != nil {
		return nil, err
	}
	s.seen++
	return in, expect(s.Context(), in.ExpectCompressed, s.seen-1)
}

func (s server) StreamingInputCall(stream pb.TestService_StreamingInputCallServer) error {
	return s.TestServiceServer.StreamingInputCall(&checkedInput{TestService_StreamingInputCallServer: stream})
}

func (s server) StreamingOutputCall(in *pb.StreamingOutputCallRequest, stream pb.TestService_StreamingOutputCallServer) error {
	for _, p := range in.ResponseParameters {
		if p.Compressed.GetValue() {
			if err := grpc.SetSendCompressor(stream.Context(), "gzip"); err != nil {
				return err
			}
		}
	}
	return s.TestServiceServer.StreamingOutputCall(in, stream)
}

func main() {
	cert := flag.String("tls-cert", "", "PEM file")
	key := flag.String("tls-key", "", "PEM file")
	flag.Parse()
	// UnimplementedService is registered nowhere, and gRPC's own interop service lacks UnimplementedCall: as wanted.
	opts := []grpc.ServerOption{grpc.StatsHandler(watch{})}
	if *cert != "" {
		creds, err := credentials.NewServerTLSFromFile(*cert, *key)
		if err != nil {
			log.Fatal(err)
		}
		opts = append(opts, grpc.Creds(creds))
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer(opts...)
	pb.RegisterTestServiceServer(s, server{interop.NewTestServer()})
	fmt.Println("version", grpc.Version)
	fmt.Println("listening", lis.Addr())
	log.Fatal(s.Serve(lis))
}
