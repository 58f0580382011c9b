package main

import (
	"testing"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestReportIsWrittenOnceTheLockIsHeld(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client, err := zk.Open(t.Context(), zk.Config{Servers: srv.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 2 { // the second time shows that the first gave the lock up
		if err := run(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
}
