package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
)

// A program with a server of its own, whose state survives a restart.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	if err := serve(ctx, dir, func(sess *zk.Session) error {
		_, err := sess.Create(ctx, "/config", []byte("blue"), zk.Persistent)
		return err
	}); err != nil {
		fmt.Println(err)
	}
	if err := serve(ctx, dir, func(sess *zk.Session) error {
		data, _, err := sess.Get(ctx, "/config")
		fmt.Printf("%s\n", data)
		return err
	}); err != nil {
		fmt.Println(err)
	}
	// Output: blue
}

// serve runs a server on a Unix socket in dir, and calls use with a session on it.
func serve(ctx context.Context, dir string, use func(*zk.Session) error) error {
	address := "unix:" + filepath.Join(dir, "sock")
	srv, err := server.Start(ctx, server.Config{Data: filepath.Join(dir, "data"), Listen: []string{address}})
	if err != nil {
		return err
	}
	defer srv.Close()
	client, err := zk.Open(ctx, zk.Config{Servers: address})
	if err != nil {
		return err
	}
	defer client.Close()
	sess, err := client.Session(ctx)
	if err != nil {
		return err
	}
	return use(sess)
}

// A server in memory, without a file or a listener of a fixed port.
func ExampleStart() {
	ctx := context.Background()
	srv, err := server.Start(ctx, server.Config{InMemory: true, Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	client, err := zk.Open(ctx, zk.Config{Servers: srv.Addrs()[0].String()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	fmt.Println("connected")
	// Output: connected
}
