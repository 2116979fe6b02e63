package main

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// The server of bench/server: echoes unary requests as they are. Prints its port.
func serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	echo := func(_ any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in := &echoed{}
		return in, read(in)
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(echoes{}))
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "bench.Echo", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: echo}}}, nil)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	return s.Serve(listener)
}

// A message that goes back as it came.
type echoed struct{ bytes []byte }

type echoes struct{}

func (echoes) Name() string { return "echo" }

func (echoes) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(*echoed).bytes)}, nil
}

func (echoes) Unmarshal(data mem.BufferSlice, v any) error {
	v.(*echoed).bytes = data.Materialize()
	return nil
}
