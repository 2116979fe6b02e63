// Three servers, of which the first two have grpc-go's health service. The first line is "listening ADDR ADDR ADDR". On
// stdin, JSON lines {"server":0,"service":"orders","status":"NOT_SERVING"}, {"server":0,"shutdown":true},
// {"server":0,"resume":true}, and {"server":0}, which changes nothing; each is answered by how many connections each
// server has had, and how many RPCs of Watch: {"connections":[1,1,0],"watches":[1,1,0]}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/stats"
)

const servers = 3

type server struct {
	pb.UnimplementedTestServiceServer
	health               *health.Server
	connections, watches atomic.Int64
}

func (s *server) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) { return &pb.Empty{}, nil }

func (s *server) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (s *server) HandleConn(_ context.Context, e stats.ConnStats) {
	if _, begun := e.(*stats.ConnBegin); begun {
		s.connections.Add(1)
	}
}
func (s *server) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if info.FullMethodName == healthpb.Health_Watch_FullMethodName {
		s.watches.Add(1)
	}
	return ctx
}
func (s *server) HandleRPC(context.Context, stats.RPCStats) {}

func (s *server) start() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	g := grpc.NewServer(grpc.StatsHandler(s))
	pb.RegisterTestServiceServer(g, s)
	if s.health != nil {
		healthpb.RegisterHealthServer(g, s.health)
	}
	go func() { log.Fatal(g.Serve(listener)) }()
	return listener.Addr().String()
}

func main() {
	all := [servers]*server{{health: health.NewServer()}, {health: health.NewServer()}, {}}
	fmt.Println("listening", all[0].start(), all[1].start(), all[2].start())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var order struct {
			Server           int
			Service, Status  string
			Shutdown, Resume bool
		}
		if err := json.Unmarshal(in.Bytes(), &order); err != nil {
			log.Fatal(err)
		}
		switch s := all[order.Server]; {
		case order.Shutdown:
			s.health.Shutdown()
		case order.Resume:
			s.health.Resume()
		case order.Status != "":
			s.health.SetServingStatus(order.Service, healthpb.HealthCheckResponse_ServingStatus(healthpb.HealthCheckResponse_ServingStatus_value[order.Status]))
		}
		var seen struct {
			Connections [servers]int64 `json:"connections"`
			Watches     [servers]int64 `json:"watches"`
		}
		for i, s := range all {
			seen.Connections[i], seen.Watches[i] = s.connections.Load(), s.watches.Load()
		}
		line, _ := json.Marshal(seen)
		fmt.Println(string(line))
	}
}
