package main

import (
	"testing"

	"github.com/seed-a3166700/turnstile/zktest"
)

func TestEverythingOfThePageRuns(t *testing.T) {
	t.Parallel()
	if err := all(t.Context(), zktest.Run(t).Addr()); err != nil {
		t.Error(err)
	}
}
