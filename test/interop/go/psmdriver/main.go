// Asks a client of gRPC's xDS interop tests what a test driver asks, by grpc-go and its generated stubs. JSON lines on
// stdin, {"method":"GetClientStats"|"GetClientAccumulatedStats"|"Configure"|"FetchClientStatus","request":{...}}, each
// answered by the response as proto3 JSON or by {"error":"..."}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	_ "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	status "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

type question struct {
	path              string
	request, response proto.Message
}

var questions = map[string]question{
	"GetClientStats": {"/grpc.testing.LoadBalancerStatsService/GetClientStats",
		&pb.LoadBalancerStatsRequest{}, &pb.LoadBalancerStatsResponse{}},
	"GetClientAccumulatedStats": {"/grpc.testing.LoadBalancerStatsService/GetClientAccumulatedStats",
		&pb.LoadBalancerAccumulatedStatsRequest{}, &pb.LoadBalancerAccumulatedStatsResponse{}},
	"Configure": {"/grpc.testing.XdsUpdateClientConfigureService/Configure",
		&pb.ClientConfigureRequest{}, &pb.ClientConfigureResponse{}},
	"FetchClientStatus": {"/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus",
		&status.ClientStatusRequest{}, &status.ClientStatusResponse{}},
}

func ask(conn *grpc.ClientConn, line []byte) ([]byte, error) {
	var order struct {
		Method  string
		Request json.RawMessage
	}
	if err := json.Unmarshal(line, &order); err != nil {
		return nil, err
	}
	q, known := questions[order.Method]
	if !known {
		return nil, fmt.Errorf("no such method: %q", order.Method)
	}
	request, response := proto.Clone(q.request), proto.Clone(q.response)
	if err := protojson.Unmarshal(order.Request, request); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := conn.Invoke(ctx, q.path, request, response); err != nil {
		return nil, err
	}
	return protojson.MarshalOptions{AllowPartial: true}.Marshal(response)
}

func main() {
	client := flag.String("client", "", "the client's stats port")
	flag.Parse()
	conn, err := grpc.NewClient(*client, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		answer, err := ask(conn, in.Bytes())
		if err != nil {
			answer, _ = json.Marshal(map[string]string{"error": err.Error()})
		}
		fmt.Println(string(answer))
	}
}
