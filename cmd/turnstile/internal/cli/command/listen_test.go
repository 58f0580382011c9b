package command_test

import (
	"net"
	"testing"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

// Connections that are too many are closed, and those that end make room.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := command.Limited(inner, 2)
	accepted := make(chan net.Conn, 10)
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	dial()
	dial()
	first := <-accepted
	<-accepted
	if _, err := dial().Read(make([]byte, 1)); err == nil { // it waits until it is closed
		t.Error("a third connection stays")
	}
	_ = first.Close()
	_ = first.Close() // gives one place back
	dial()
	<-accepted
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("a third connection stays")
	}
	_ = inner.Close()
	<-accepted
}
