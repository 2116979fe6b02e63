// The server of gRPC's HTTP/2 negative cases (doc/http2-interop-test-descriptions.md): one listener for each case, on
// which well-formed answers come with the frames that the case is about. What the server itself can see of the client's
// behaviour (which connection a call comes on, streams that run at once, PING acknowledgements) decides how it
// answers.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"sync/atomic"
	"syscall"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"
)

var cases = []string{"goaway", "rst_after_header", "rst_during_data", "rst_after_data", "ping", "max_streams"}

const pings = 3

// conn is one connection; all of it is done by its reading goroutine.
type conn struct {
	kind     string
	number   int32
	framer   *http2.Framer
	requests map[uint32]*bytes.Buffer
	acks     int
	pinged   uint32 // the stream that waits for acknowledgements
	held     uint32 // the stream that is answered when all that the client has sent by now was seen
	violated string
}

func (c *conn) headers(stream uint32, end bool, fields ...string) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(),
		EndStream: end, EndHeaders: true})
}

func (c *conn) trailers(stream uint32) error {
	code, text := "0", ""
	if c.violated != "" {
		code, text = "13", c.violated
	}
	return c.headers(stream, true, "grpc-status", code, "grpc-message", text)
}

// response is the prefixed message that the request asks for.
func response(request []byte) ([]byte, error) {
	var in pb.SimpleRequest
	if len(request) < 5 {
		return nil, errors.New("a request without a message")
	}
	if err := proto.Unmarshal(request[5:], &in); err != nil {
		return nil, err
	}
	out, err := proto.Marshal(&pb.SimpleResponse{Payload: &pb.Payload{Body: make([]byte, in.ResponseSize)}})
	if err != nil {
		return nil, err
	}
	prefix := make([]byte, 5)
	binary.BigEndian.PutUint32(prefix[1:], uint32(len(out)))
	return append(prefix, out...), nil
}

func (c *conn) ping(n byte) error {
	return c.framer.WritePing(false, [8]byte{'t', 'e', 's', 't', n})
}

func (c *conn) answer(stream uint32, request []byte) error {
	body, err := response(request)
	if err != nil {
		return err
	}
	if c.kind == "ping" {
		c.ping(1)
	}
	if err := c.headers(stream, false, ":status", "200", "content-type", "application/grpc"); err != nil {
		return err
	}
	switch c.kind {
	case "rst_after_header":
		return c.framer.WriteRSTStream(stream, http2.ErrCodeNo)
	case "rst_during_data":
		c.framer.WriteData(stream, false, body[:len(body)/2])
		return c.framer.WriteRSTStream(stream, http2.ErrCodeNo)
	case "rst_after_data":
		c.framer.WriteData(stream, false, body)
		return c.framer.WriteRSTStream(stream, http2.ErrCodeNo)
	case "ping":
		c.ping(2)
		c.framer.WriteData(stream, false, body)
		c.pinged = stream
		return c.ping(pings)
	}
	c.framer.WriteData(stream, false, body)
	if err := c.trailers(stream); err != nil {
		return err
	}
	if c.kind == "goaway" && c.number == 1 {
		return c.framer.WriteGoAway(stream, http2.ErrCodeNo, nil)
	}
	return nil
}

func (c *conn) begin(f *http2.HeadersFrame) {
	c.requests[f.StreamID] = &bytes.Buffer{}
	if c.kind == "max_streams" && len(c.requests) > 1 {
		c.violated = "streams beyond MAX_CONCURRENT_STREAMS"
	}
	if c.kind == "goaway" && c.number == 1 && f.StreamID > 1 {
		c.violated = "a stream after GOAWAY"
	}
}

func (c *conn) frame(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return c.framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.framer.WritePing(true, f.Data)
		}
		if c.held != 0 {
			stream, request := c.held, c.requests[c.held]
			delete(c.requests, stream)
			c.held = 0
			return c.answer(stream, request.Bytes())
		}
		c.acks++
		if c.acks == pings && c.pinged != 0 {
			c.acks = 0
			return c.trailers(c.pinged)
		}
	case *http2.HeadersFrame:
		c.begin(f)
	case *http2.DataFrame:
		request := c.requests[f.StreamID]
		if request == nil {
			return errors.New("DATA on a stream that is not open")
		}
		request.Write(f.Data())
		if f.StreamEnded() && c.kind == "max_streams" {
			c.held = f.StreamID
			return c.ping(0)
		}
		if f.StreamEnded() {
			delete(c.requests, f.StreamID)
			return c.answer(f.StreamID, request.Bytes())
		}
	}
	return nil
}

func (c *conn) run(socket net.Conn) error {
	preface := make([]byte, len(http2.ClientPreface))
	reader := bufio.NewReader(socket)
	if _, err := io.ReadFull(reader, preface); err != nil {
		return err
	}
	c.framer = http2.NewFramer(socket, reader)
	limit := uint32(100)
	if c.kind == "max_streams" {
		limit = 1
	}
	if err := c.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: limit}); err != nil {
		return err
	}
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			return err
		}
		if err := c.frame(f); err != nil {
			return err
		}
	}
}

func serve(kind string, lis net.Listener) {
	var connections atomic.Int32
	for {
		socket, err := lis.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer socket.Close()
			c := &conn{kind: kind, number: connections.Add(1), requests: map[uint32]*bytes.Buffer{}}
			if err := c.run(socket); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				log.Printf("%s, connection %s: %v", kind, fmt.Sprint(c.number), err)
			}
		}()
	}
}

func main() {
	fmt.Println("version", grpc.Version)
	for _, kind := range cases {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(kind, lis.Addr())
		go serve(kind, lis)
	}
	select {}
}
