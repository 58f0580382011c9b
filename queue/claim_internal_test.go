package queue

import (
	"testing"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
)

func FuzzClaimName(f *testing.F) {
	f.Add(claimName(claims.Place{Priority: -5, Segment: 7, Item: 100}, "0123456789abcdef", "1"))
	f.Add("")
	f.Fuzz(func(t *testing.T, name string) {
		if c, ok := parseClaim("/dir", name); ok && c.path != "/dir/"+name {
			t.Fatal(c)
		}
	})
}
