// Backends of gRPC's xDS interop tests on many ports of one process: TestService with EmptyCall and UnaryCall that say who
// answered ("hostname" in the initial metadata and in the response) and that behave as the request's metadata
// "rpc-behavior" asks: sleep-N, keep-open, error-code-N, succeed-on-retry-attempt-N, each for all or, with
// "hostname=NAME " before it, for one host.
// The first line says {"NAME":"addr",...}. On stdin, JSON lines {"stop":["NAME"]}, {"start":["NAME"]} and {"load":{"NAME":0.5}}, the
// utilization that the host reports (ORCA) with each RPC and out of band, at 10 RPCs a second; each is answered by "ok".
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/orca"
	"google.golang.org/grpc/status"
)

type host struct {
	pb.UnimplementedTestServiceServer
	name, addr string
	server     *grpc.Server
	load       orca.ServerMetricsRecorder
}

func attempts(md metadata.MD) int {
	before := 0
	if v := md.Get("grpc-previous-rpc-attempts"); len(v) > 0 {
		before, _ = strconv.Atoi(v[0])
	}
	return before + 1
}

// obey returns true when a behaviour ended the matter.
func (h *host) obey(ctx context.Context, md metadata.MD, wish string) (bool, error) {
	if rest, found := strings.CutPrefix(wish, "hostname="); found {
		name, what, _ := strings.Cut(rest, " ")
		if name != h.name {
			return false, nil
		}
		wish = what
	}
	n := -1
	if i := strings.LastIndexByte(wish, '-'); i >= 0 {
		if number, err := strconv.Atoi(wish[i+1:]); err == nil {
			n, wish = number, wish[:i]
		}
	}
	switch {
	case wish == "keep-open":
		<-ctx.Done()
		return true, status.FromContextError(ctx.Err()).Err()
	case wish == "sleep" && n >= 0:
		select {
		case <-time.After(time.Duration(n) * time.Second):
		case <-ctx.Done():
			return true, status.FromContextError(ctx.Err()).Err()
		}
		return false, nil
	case wish == "error-code" && n >= 0:
		return true, status.Errorf(codes.Code(n), "as rpc-behavior asks of %s", h.name)
	case wish == "succeed-on-retry-attempt" && n >= 0:
		return attempts(md) >= n, nil
	}
	return true, status.Errorf(codes.InvalidArgument, "unknown rpc-behavior %q", wish)
}

func (h *host) behave(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	if load := h.load.ServerMetrics(); load.AppUtilization > 0 {
		recorder := orca.CallMetricsRecorderFromContext(ctx)
		recorder.SetApplicationUtilization(load.AppUtilization)
		recorder.SetQPS(load.QPS)
	}
	wishes := strings.Split(strings.Join(md.Get("rpc-behavior"), ","), ",")
	for _, wish := range wishes {
		if wish == "" {
			continue
		}
		over, err := h.obey(ctx, md, wish)
		if err != nil {
			return err // without initial metadata, which would commit the client to this attempt
		}
		if over {
			break
		}
	}
	return grpc.SetHeader(ctx, metadata.Pairs("hostname", h.name))
}

func (h *host) EmptyCall(ctx context.Context, _ *pb.Empty) (*pb.Empty, error) {
	return &pb.Empty{}, h.behave(ctx)
}

func (h *host) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{ServerId: h.name, Hostname: h.name}, h.behave(ctx)
}

func (h *host) start() {
	lis, err := net.Listen("tcp", h.addr)
	if err != nil {
		log.Fatal(err)
	}
	h.addr = lis.Addr().String()
	h.server = grpc.NewServer(orca.CallMetricsServerOption(nil))
	if err := orca.Register(h.server, orca.ServiceOptions{ServerMetricsProvider: h.load}); err != nil {
		log.Fatal(err)
	}
	pb.RegisterTestServiceServer(h.server, h)
	go h.server.Serve(lis)
}

func main() {
	n := flag.Int("n", 8, "backends, b0 and so on")
	flag.Parse()
	hosts := map[string]*host{}
	places := map[string]string{}
	for i := 0; i < *n; i++ {
		h := &host{name: fmt.Sprintf("b%d", i), addr: "127.0.0.1:0", load: orca.NewServerMetricsRecorder()}
		h.start()
		hosts[h.name], places[h.name] = h, h.addr
	}
	text, _ := json.Marshal(places)
	fmt.Println(string(text))
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var order struct {
			Stop, Start []string
			Load        map[string]float64
		}
		if err := json.Unmarshal(in.Bytes(), &order); err != nil {
			log.Fatal(err)
		}
		for _, name := range order.Stop {
			hosts[name].server.Stop()
		}
		for _, name := range order.Start {
			hosts[name].start()
		}
		for name, utilization := range order.Load {
			hosts[name].load.SetApplicationUtilization(utilization)
			hosts[name].load.SetQPS(10)
		}
		fmt.Println("ok")
	}
}
