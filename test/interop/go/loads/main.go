// Two servers that report their load by grpc-go's orca package. With each RPC the first reports a tenth of the second's
// utilization, and out of band ten times as much as the second.
package main

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/orca"
)

type server struct {
	pb.UnimplementedTestServiceServer
	utilization float64
}

func (s server) EmptyCall(ctx context.Context, _ *pb.Empty) (*pb.Empty, error) {
	load := orca.CallMetricsRecorderFromContext(ctx)
	load.SetApplicationUtilization(s.utilization)
	load.SetQPS(10)
	return &pb.Empty{}, nil
}

func start(withRPCs, outOfBand float64) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	load := orca.NewServerMetricsRecorder()
	load.SetApplicationUtilization(outOfBand)
	load.SetQPS(10)
	s := grpc.NewServer(orca.CallMetricsServerOption(nil))
	if err := orca.Register(s, orca.ServiceOptions{ServerMetricsProvider: load}); err != nil {
		log.Fatal(err)
	}
	pb.RegisterTestServiceServer(s, server{utilization: withRPCs})
	go func() { log.Fatal(s.Serve(listener)) }()
	return listener.Addr().String()
}

func main() {
	fmt.Println("listening", start(0.1, 1), start(1, 0.1))
	select {}
}
