package server_test

import (
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/server"
)

func TestInvalidConfigIsRefused(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]server.Config{
		"no data directory":         {},
		"data directory in memory":  {InMemory: true, Data: "x"},
		"minimum above the maximum": {InMemory: true, MinSessionTimeout: time.Minute, MaxSessionTimeout: time.Second},
		"TLS without certificate":   {InMemory: true, TLSListen: []string{"127.0.0.1:0"}},
		"metrics without one":       {InMemory: true, MetricsTLSListen: "127.0.0.1:0"},
		"negative limit":            {InMemory: true, MaxClientConns: -2},
		"tiny frames":               {InMemory: true, MaxFrame: 10},
	} {
		if s, err := server.Start(t.Context(), cfg); err == nil {
			_ = s.Close()
			t.Errorf("%s: got a server, want an error", name)
		}
	}
}

func TestErrorsNameTheFieldAndItsValue(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]server.Config{
		"server: ContainerRate must not be negative: -1":              {InMemory: true, ContainerRate: -1},
		"server: ContainerUnused must not be negative: -1s":           {InMemory: true, ContainerUnused: -time.Second},
		"server: IdleExit must not be negative: -1m0s":                {InMemory: true, IdleExit: -time.Minute},
		"server: MaxClientConns must not be below Unlimited (-1): -2": {InMemory: true, MaxClientConns: -2},
	} {
		if s, err := server.Start(t.Context(), cfg); err == nil || err.Error() != want {
			if err == nil {
				_ = s.Close()
			}
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
