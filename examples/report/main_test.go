package main

import (
	"testing"

	"github.com/seed-a3166700/turnstile/zktest"
)

func TestReportIsWrittenOnceTheLockIsHeld(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	for range 2 { // the second time shows that the first gave the lock up
		if err := open(t.Context(), srv.Addr()); err != nil {
			t.Fatal(err)
		}
	}
}
