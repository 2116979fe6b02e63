// A control plane made of go-control-plane: its snapshot cache and its ADS server (state of the world and incremental),
// and a load-reporting server on its generated stubs. Scripted by JSON lines on stdin, each answered by {"done":true}
// or {"done":false,"error":"..."}:
//
//	{"op":"set","version":"1","resources":[{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster",...}]}
//	{"op":"stop"} {"op":"start"}       ends all streams and the listener; listens again on the same address
//	{"op":"clear"}                     forgets all resources
//
// Prints JSON lines too: {"listening":...} first; {"request":...} for each discovery request (with its error_detail)
// and {"response":...} for each response of an incremental stream (with the names in it), both not with -quiet;
// {"load":...} for each load report.
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
	"sync"
	"time"

	_ "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/http/stateful_session/cookie/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/maglev/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/pick_first/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random_subsetting/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	load "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

var printing sync.Mutex

func say(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		log.Fatal(err)
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(text))
}

// everyone: all nodes see the same snapshot.
type everyone struct{}

func (everyone) ID(*core.Node) string { return "all" }

type plane struct {
	cache  cache.SnapshotCache
	addr   string
	server *grpc.Server
	quiet  bool
}

func (p *plane) told(what string, fields map[string]any) {
	if !p.quiet {
		say(map[string]any{what: fields})
	}
}

func message(fault *status.Status) any {
	if fault == nil {
		return nil
	}
	return fault.Message
}

func (p *plane) callbacks() server.Callbacks {
	return server.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
			p.told("request", map[string]any{"kind": "sotw", "node": r.Node.GetId(), "type": r.TypeUrl, "nonce": r.ResponseNonce,
				"version": r.VersionInfo, "names": r.ResourceNames, "error": message(r.ErrorDetail)})
			return nil
		},
		StreamDeltaRequestFunc: func(_ int64, r *discovery.DeltaDiscoveryRequest) error {
			p.told("request", map[string]any{"kind": "delta", "node": r.Node.GetId(), "type": r.TypeUrl, "nonce": r.ResponseNonce,
				"names": r.ResourceNamesSubscribe, "dropped": r.ResourceNamesUnsubscribe,
				"held": r.InitialResourceVersions, "error": message(r.ErrorDetail)})
			return nil
		},
		StreamDeltaResponseFunc: func(_ int64, _ *discovery.DeltaDiscoveryRequest, r *discovery.DeltaDiscoveryResponse) {
			names := []string{}
			for _, resource := range r.Resources {
				names = append(names, resource.Name)
			}
			p.told("response", map[string]any{"kind": "delta", "type": r.TypeUrl, "version": r.SystemVersionInfo, "nonce": r.Nonce,
				"names": names, "removed": r.RemovedResources})
		},
	}
}

// StreamLoadStats answers the first request with a wish for all clusters' loads twice a second, and tells each report.
func (p *plane) StreamLoadStats(stream load.LoadReportingService_StreamLoadStatsServer) error {
	for first := true; ; first = false {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		if first {
			wish := &load.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(time.Second / 2)}
			if err := stream.Send(wish); err != nil {
				return err
			}
		}
		text, err := protojson.Marshal(request)
		if err != nil {
			return err
		}
		say(map[string]any{"load": json.RawMessage(text)})
	}
}

func (p *plane) start() error {
	lis, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.addr = lis.Addr().String()
	p.server = grpc.NewServer(grpc.MaxConcurrentStreams(1000))
	discovery.RegisterAggregatedDiscoveryServiceServer(p.server, server.NewServer(context.Background(), p.cache, p.callbacks()))
	load.RegisterLoadReportingServiceServer(p.server, p)
	go p.server.Serve(lis)
	return nil
}

var kinds = map[string]string{
	"type.googleapis.com/envoy.config.listener.v3.Listener":              resource.ListenerType,
	"type.googleapis.com/envoy.config.route.v3.RouteConfiguration":       resource.RouteType,
	"type.googleapis.com/envoy.config.cluster.v3.Cluster":                resource.ClusterType,
	"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment": resource.EndpointType,
}

func (p *plane) set(version string, texts []json.RawMessage) error {
	byType := map[string][]types.Resource{}
	for _, text := range texts {
		var box anypb.Any
		if err := protojson.Unmarshal(text, &box); err != nil {
			return err
		}
		kind, known := kinds[box.TypeUrl]
		if !known {
			return fmt.Errorf("no such type: %s", box.TypeUrl)
		}
		message, err := box.UnmarshalNew()
		if err != nil {
			return err
		}
		byType[kind] = append(byType[kind], proto.Message(message))
	}
	snapshot, err := cache.NewSnapshot(version, byType)
	if err != nil {
		return err
	}
	return p.cache.SetSnapshot(context.Background(), "all", snapshot)
}

func (p *plane) obey(line []byte) error {
	var order struct {
		Op        string
		Version   string
		Resources []json.RawMessage
	}
	if err := json.Unmarshal(line, &order); err != nil {
		return err
	}
	switch order.Op {
	case "set":
		return p.set(order.Version, order.Resources)
	case "clear":
		p.cache.ClearSnapshot("all")
		return nil
	case "stop":
		p.server.Stop()
		return nil
	case "start":
		return p.start()
	}
	return fmt.Errorf("no such op: %q", order.Op)
}

func main() {
	quiet := flag.Bool("quiet", false, "do not tell requests")
	flag.Parse()
	// ads false: requests for some of a snapshot's names are answered, as clients that share a snapshot need.
	p := &plane{cache: cache.NewSnapshotCache(false, everyone{}, nil), addr: "127.0.0.1:0", quiet: *quiet}
	if err := p.start(); err != nil {
		log.Fatal(err)
	}
	say(map[string]any{"listening": p.addr})
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if err := p.obey(line); err != nil {
			say(map[string]any{"done": false, "error": err.Error()})
		} else {
			say(map[string]any{"done": true})
		}
	}
}
