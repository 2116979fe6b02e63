// Backends on many ports of one process. Any unary method answers with the address that the call came in on, so that a
// client in any language learns who served it. Some ports are bound and not listened on: connecting to them is refused.
// On stdin, JSON lines {"stop":["addr"]} and {"start":["addr"]} end and restart single ones; each is answered by "ok".
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
)

// raw passes messages as they are.
type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = raw{}

func answer(_ any, stream grpc.ServerStream) error {
	var in []byte
	if err := stream.RecvMsg(&in); err != nil {
		return err
	}
	p, _ := peer.FromContext(stream.Context())
	out := []byte(p.LocalAddr.String())
	return stream.SendMsg(&out)
}

func serve(addr string) (*grpc.Server, string) {
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(answer))
	go s.Serve(lis)
	return s, lis.Addr().String()
}

// refusing binds a port and never listens on it.
func refusing() string {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		log.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		log.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		log.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", sa.(*syscall.SockaddrInet4).Port)
}

func main() {
	alive := flag.Int("n", 10, "backends that serve")
	dead := flag.Int("dead", 0, "addresses that refuse connections")
	v6 := flag.Int("v6", 0, "backends that serve on [::1]")
	flag.Parse()
	servers := map[string]*grpc.Server{}
	ready := map[string][]string{"alive": {}, "dead": {}, "v6": {}}
	for i := 0; i < *alive; i++ {
		s, addr := serve("127.0.0.1:0")
		servers[addr] = s
		ready["alive"] = append(ready["alive"], addr)
	}
	for i := 0; i < *v6; i++ {
		s, addr := serve("[::1]:0")
		servers[addr] = s
		ready["v6"] = append(ready["v6"], addr)
	}
	for i := 0; i < *dead; i++ {
		ready["dead"] = append(ready["dead"], refusing())
	}
	line, _ := json.Marshal(ready)
	fmt.Println(string(line))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var command struct{ Stop, Start []string }
		if err := json.Unmarshal(in.Bytes(), &command); err != nil {
			log.Fatal(err)
		}
		for _, addr := range command.Stop {
			servers[addr].Stop()
		}
		for _, addr := range command.Start {
			servers[addr], _ = serve(addr)
		}
		fmt.Println("ok")
	}
}
