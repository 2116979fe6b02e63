// A server with the services that grpc-go brings along: reflection, health, channelz, and gRPC's interop service.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	channelz "google.golang.org/grpc/channelz/service"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	states := health.NewServer()
	states.SetServingStatus("shop.Orders", healthpb.HealthCheckResponse_NOT_SERVING)
	healthpb.RegisterHealthServer(server, states)
	channelz.RegisterChannelzServiceToServer(server)
	pb.RegisterTestServiceServer(server, interop.NewTestServer())
	reflection.Register(server)
	go func() { // ends with its standard input
		io.Copy(io.Discard, os.Stdin)
		server.Stop()
	}()
	fmt.Println("listening", listener.Addr())
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
