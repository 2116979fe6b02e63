// grpc-go as one of the clients that must send the same key to the same backend. Prints {"version":"..."} first. Each
// line of stdin is {"target":"xds:///m1","calls":[[["name","value"],...],...]}; each is answered by
// {"peers":["127.0.0.1:1",...]}, in which a failed call is "!CODE message". The channel is kept for a next line with
// the same target. "service_config" goes with targets other than xds.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
	_ "google.golang.org/grpc/xds"
)

const width = 32

type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// literals resolves "ipv4:A,B", which other clients have built in.
type literals struct{}

func (literals) Scheme() string { return "ipv4" }
func (literals) Build(target resolver.Target, conn resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	var state resolver.State
	for _, address := range strings.Split(target.Endpoint(), ",") {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
	}
	return literals{}, conn.UpdateState(state)
}
func (literals) ResolveNow(resolver.ResolveNowOptions) {}
func (literals) Close()                                {}

func call(conn *grpc.ClientConn, headers [][2]string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, h := range headers {
		ctx = metadata.AppendToOutgoingContext(ctx, h[0], h[1])
	}
	in, out := []byte{}, []byte{}
	if err := conn.Invoke(ctx, "/torc.test.Backend/Who", &in, &out, grpc.ForceCodecV2(raw{})); err != nil {
		return fmt.Sprintf("!%v %v", status.Code(err), status.Convert(err).Message())
	}
	return string(out)
}

func main() {
	fmt.Printf("{\"version\":%q}\n", grpc.Version)
	in := bufio.NewReader(os.Stdin)
	target, conn := "", (*grpc.ClientConn)(nil)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var order struct {
			Target        string
			ServiceConfig string `json:"service_config"`
			Calls         [][][2]string
		}
		if err := json.Unmarshal(line, &order); err != nil {
			log.Fatal(err)
		}
		if order.Target != target {
			if conn != nil {
				conn.Close()
			}
			options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
			if order.ServiceConfig != "" {
				options = append(options, grpc.WithDefaultServiceConfig(order.ServiceConfig), grpc.WithResolvers(literals{}))
			}
			conn, err = grpc.NewClient(order.Target, options...)
			if err != nil {
				log.Fatal(err)
			}
			target = order.Target
		}
		peers := make([]string, len(order.Calls))
		var group sync.WaitGroup
		for w := 0; w < width; w++ {
			group.Add(1)
			go func() {
				defer group.Done()
				for i := w; i < len(peers); i += width {
					peers[i] = call(conn, order.Calls[i])
				}
			}()
		}
		group.Wait()
		answer, _ := json.Marshal(map[string]any{"peers": peers})
		fmt.Println(string(answer))
	}
}
