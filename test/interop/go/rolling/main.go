// RPCs at a steady rate through round_robin, while the servers are restarted: the calls of gRPC's interop service, of
// which every fourth takes 50 ms.
//
// usage: rolling -targets ADDR,ADDR,... -rate CALLS_PER_SECOND
// For each line of standard input, an address, prints "reached ADDR" when twenty more RPCs to it have succeeded. At the
// end of its input makes no more RPCs, waits for the last, and prints {"calls":N,"failed":N,"first":"why"}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

const reached = 20

type counts struct {
	mu     sync.Mutex
	calls  int
	failed int
	first  string
	served map[string]int
	more   *sync.Cond
}

func (c *counts) took(from *peer.Peer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.failed++; c.failed == 1 {
			c.first = err.Error()
		}
		return
	}
	c.served[from.Addr.String()]++
	c.more.Broadcast()
}

func (c *counts) await(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for until := c.served[address] + reached; c.served[address] < until; {
		c.more.Wait()
	}
}

func call(tc pb.TestServiceClient, number int) (*peer.Peer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var from peer.Peer
	if number%4 != 0 {
		_, err := tc.EmptyCall(ctx, &pb.Empty{}, grpc.Peer(&from))
		return &from, err
	}
	slow := &pb.StreamingOutputCallRequest{ResponseParameters: []*pb.ResponseParameters{{Size: 1, IntervalUs: 50000}}}
	stream, err := tc.StreamingOutputCall(ctx, slow, grpc.Peer(&from))
	for n := 0; err == nil; n++ {
		if _, err = stream.Recv(); err != nil && err.Error() == "EOF" && n == 1 {
			return &from, nil
		}
	}
	return &from, err
}

func main() {
	targets := flag.String("targets", "", "")
	rate := flag.Int("rate", 2000, "")
	flag.Parse()
	r := manual.NewBuilderWithScheme("rolling")
	state := resolver.State{}
	for _, address := range strings.Split(*targets, ",") {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: address})
	}
	r.InitialState(state)
	wait := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 200 * time.Millisecond}
	cc, err := grpc.NewClient("rolling:///servers", grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: wait, MinConnectTimeout: 20 * time.Second}))
	if err != nil {
		log.Fatal(err)
	}
	c := &counts{served: map[string]int{}}
	c.more = sync.NewCond(&c.mu)
	done := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			c.await(lines.Text())
			fmt.Println("reached", lines.Text())
		}
		close(done)
	}()
	var running sync.WaitGroup
	tc, begin, ticks := pb.NewTestServiceClient(cc), time.Now(), time.NewTicker(time.Millisecond)
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-ticks.C:
		}
		for due := int(time.Since(begin).Seconds() * float64(*rate)); c.calls < due; c.calls++ {
			running.Add(1)
			go func(number int) {
				defer running.Done()
				c.took(call(tc, number))
			}(c.calls)
		}
	}
	running.Wait()
	cc.Close()
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"calls": c.calls, "failed": c.failed, "first": c.first}); err != nil {
		log.Fatal(err)
	}
}
