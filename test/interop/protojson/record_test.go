// Records the cases of protojson's own tests, as JSON lines, for suite_json.py: build_peers.py puts this file beside those
// tests, in a copy of their module, and calls torcRead and torcWrite from them.
package protojson_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

type torcCase struct {
	Kind, Desc, Type, Text, Wire                     string
	Fails, Partial, Unknown, Names, Numbers, Default bool
}

func torcWire(m proto.Message) string {
	b, err := proto.MarshalOptions{AllowPartial: true, Deterministic: true}.Marshal(m)
	if err != nil {
		return "none"
	}
	return hex.EncodeToString(b)
}

func torcPut(c torcCase) {
	f, err := os.OpenFile(os.Getenv("TORC_CASES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	b, _ := json.Marshal(c)
	fmt.Fprintf(f, "%s\n", b)
}

func torcRead(desc string, o protojson.UnmarshalOptions, m proto.Message, text string, want proto.Message, wantErr string) {
	if o.Resolver != nil || o.RecursionLimit != 0 {
		return
	}
	c := torcCase{Kind: "read", Desc: desc, Type: string(m.ProtoReflect().Descriptor().FullName()), Text: hex.EncodeToString([]byte(text)),
		Fails: wantErr != "", Partial: o.AllowPartial, Unknown: o.DiscardUnknown}
	if want != nil {
		c.Wire = torcWire(want)
	}
	torcPut(c)
}

func torcWrite(desc string, o protojson.MarshalOptions, m proto.Message, want string, wantErr bool) {
	if o.Resolver != nil || m == nil || o.EmitUnpopulated {
		return
	}
	torcPut(torcCase{Kind: "write", Desc: desc, Type: string(m.ProtoReflect().Descriptor().FullName()), Wire: torcWire(m),
		Text: hex.EncodeToString([]byte(want)), Fails: wantErr, Partial: o.AllowPartial, Names: o.UseProtoNames, Numbers: o.UseEnumNumbers,
		Default: o.EmitDefaultValues})
}

func TestTorcSet(t *testing.T) {
	set := &descriptorpb.FileDescriptorSet{}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
		return true
	})
	b, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(os.Getenv("TORC_SET"), b, 0o644); err != nil {
		t.Fatal(err)
	}
}
