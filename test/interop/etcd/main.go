// An etcd server with one member, in a folder of its own, for examples/etcd. Prints "listening ADDRESS", and ends when its
// input does.
package main

import (
	"fmt"
	"io"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, "etcd:", err)
	os.Exit(1)
}

func main() {
	folder, err := os.MkdirTemp("", "torc-etcd")
	if err != nil {
		fail(err)
	}
	defer os.RemoveAll(folder)
	any, _ := url.Parse("http://127.0.0.1:0")
	config := embed.NewConfig()
	config.Dir = folder
	config.LogLevel = "fatal"
	config.ListenClientUrls = []url.URL{*any}
	config.AdvertiseClientUrls = []url.URL{*any}
	config.ListenPeerUrls = []url.URL{*any}
	config.AdvertisePeerUrls = []url.URL{*any}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		fail(err)
	}
	<-server.Server.ReadyNotify()
	fmt.Println("listening", server.Clients[0].Addr())
	io.Copy(io.Discard, os.Stdin)
	server.Close()
}
