// bench/rpc's client on grpc-go: a goroutine for each RPC or stream that is outstanding. Arguments and output are those
// that bench/client.h describes. With the argument "serve" it is the server of bench/server (serve.go).
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

const (
	methodEcho   = "/bench.Echo/Echo"
	methodRepeat = "/torc.test.Backend/Repeat"
	least        = 10 // RPCs, however long they take
)

// What a message is: bytes that are sent as they are, and a size of what came.
type message struct {
	send []byte
	size int
}

// The codec of messages: nothing is serialised, as with the other clients.
type raw struct{}

func (raw) Name() string { return "raw" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(*message).send)}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	v.(*message).size = data.Len()
	return nil
}

type run struct {
	args    arguments
	conn    *grpc.ClientConn
	payload []byte

	begin, end time.Time
	cpu        time.Duration // at the beginning
	once       sync.Once
	counting   atomic.Bool
	rpcs       atomic.Uint64
}

// One of those that are outstanding; its latencies are its own, so that no lock is taken for them.
type worker struct {
	*run
	latencies []time.Duration
}

func (r *run) beginNow(now time.Time) {
	r.begin, r.cpu = now, processorTime()
	r.counting.Store(true)
}

func (w *worker) done(started time.Time) time.Time {
	now := time.Now()
	if !w.counting.Load() {
		if !now.Before(w.begin) {
			w.once.Do(func() { w.beginNow(now) })
		}
		return now
	}
	w.rpcs.Add(1)
	w.latencies = append(w.latencies, now.Sub(started))
	return now
}

func (r *run) over(now time.Time) bool {
	if r.args.limit > 0 {
		return r.rpcs.Load() >= r.args.limit
	}
	return !now.Before(r.end) && r.rpcs.Load() >= least
}

func (w *worker) check(in *message, err error) error {
	if err == nil && in.size != len(w.payload) {
		return fmt.Errorf("a message of %d bytes", in.size)
	}
	return err
}

func (w *worker) unary() error {
	out, in := &message{send: w.payload}, &message{}
	for now := time.Now(); !w.over(now); now = w.done(now) {
		if err := w.check(in, w.conn.Invoke(context.Background(), methodEcho, out, in)); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) bidi() error {
	out, in := &message{send: w.payload}, &message{}
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	stream, err := w.conn.NewStream(context.Background(), desc, methodEcho)
	if err != nil {
		return err
	}
	for now := time.Now(); !w.over(now); now = w.done(now) {
		if err = stream.SendMsg(out); err == nil {
			err = w.check(in, stream.RecvMsg(in))
		}
		if err != nil {
			return err
		}
	}
	return stream.CloseSend()
}

func (w *worker) repeat() error {
	in := &message{}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, methodRepeat)
	if err == nil {
		err = stream.SendMsg(&message{send: w.payload})
	}
	if err == nil {
		err = stream.CloseSend()
	}
	for now := time.Now(); err == nil && !w.over(now); now = w.done(now) {
		err = w.check(in, stream.RecvMsg(in))
	}
	return err
}

type arguments struct {
	host, port, kind, roots string
	outstanding, bytes      int
	seconds                 float64
	limit                   uint64
}

func parse(args []string) (a arguments, err error) {
	a = arguments{kind: "unary", bytes: 64}
	if len(args) < 5 || len(args) > 8 {
		return a, fmt.Errorf("usage: %s HOST PORT OUTSTANDING SECONDS|NUMBERx [unary|bidi|repeat [BYTES [ROOTS]]]", args[0])
	}
	a.host, a.port = args[1], args[2]
	if a.outstanding, err = strconv.Atoi(args[3]); err != nil {
		return a, err
	}
	if number, ok := strings.CutSuffix(args[4], "x"); ok {
		a.limit, err = strconv.ParseUint(number, 10, 64)
	} else {
		a.seconds, err = strconv.ParseFloat(number, 64)
	}
	if err == nil && len(args) > 5 {
		a.kind = args[5]
	}
	if err == nil && len(args) > 6 {
		a.bytes, err = strconv.Atoi(args[6])
	}
	if len(args) > 7 {
		a.roots = args[7]
	}
	return a, err
}

func dial(a arguments) (*grpc.ClientConn, error) {
	security := insecure.NewCredentials()
	if a.roots != "" {
		pem, err := os.ReadFile(a.roots)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		security = credentials.NewTLS(&tls.Config{RootCAs: pool})
	}
	return grpc.NewClient("passthrough:///"+a.host+":"+a.port, grpc.WithTransportCredentials(security),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
}

func (r *run) start() error {
	kinds := map[string]func(*worker) error{"unary": (*worker).unary, "bidi": (*worker).bidi, "repeat": (*worker).repeat}
	kind, ok := kinds[r.args.kind]
	if !ok {
		return fmt.Errorf("no kind of RPC is called %q", r.args.kind)
	}
	var group sync.WaitGroup
	workers := make([]worker, r.args.outstanding)
	errors := make([]error, len(workers))
	for i := range workers {
		workers[i] = worker{run: r, latencies: make([]time.Duration, 0, 1<<20/len(workers))}
		group.Go(func() { errors[i] = kind(&workers[i]) })
	}
	group.Wait()
	seconds, cpu := time.Since(r.begin).Seconds(), (processorTime() - r.cpu).Seconds()
	var all []time.Duration
	for i := range workers {
		if errors[i] != nil {
			return errors[i]
		}
		all = append(all, workers[i].latencies...)
	}
	if len(all) == 0 {
		return fmt.Errorf("no RPC was counted")
	}
	slices.Sort(all)
	fmt.Printf("%d %.6f %.6f %.2f\n", r.rpcs.Load(), seconds, cpu, float64(all[len(all)/2].Nanoseconds())/1e3)
	return nil
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		fmt.Fprintln(os.Stderr, "bench/grpc-go:", serve())
		os.Exit(1)
	}
	err := pin()
	var r run
	if err == nil {
		r.args, err = parse(os.Args)
	}
	if err == nil {
		r.payload = make([]byte, r.args.bytes)
		r.conn, err = dial(r.args)
	}
	if err == nil {
		now := time.Now()
		r.begin = now.Add(time.Duration(r.args.seconds * 1e8))
		r.end = r.begin.Add(time.Duration(r.args.seconds * 1e9))
		if r.args.limit > 0 {
			r.beginNow(now)
		}
		err = r.start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/grpc-go:", err)
		os.Exit(1)
	}
}
