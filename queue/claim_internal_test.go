package queue

import (
	"slices"
	"testing"
)

func FuzzClaim(f *testing.F) {
	items := itemRange{First: 1, Last: 5, Delivered: 2, Tries: 1, Except: []int{3}}
	f.Add(claimName(place{-5, 7, 100}, "0123456789abcdef", "1"), items.encode())
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if c, ok := parseClaim("/dir", name); ok && c.path != "/dir/"+name {
			t.Fatal(c)
		}
		if s, ok := parseRange(data); ok {
			tried, rest := s.split()
			for _, n := range append(tried.items(), rest.items()...) {
				if n < s.First || n > s.Last {
					t.Fatalf("%+v was split into %+v and %+v", s, tried, rest)
				}
			}
			var cut []int
			for _, part := range s.cut(max(3, s.size()/5)) {
				if len(part.items()) == 0 || part.Delivered >= part.First {
					t.Fatalf("%+v has the part %+v", s, part)
				}
				cut = append(cut, part.items()...)
			}
			if want := s.items(); !slices.Equal(cut, want) {
				t.Fatalf("the parts of %+v hold %v, want %v", s, cut, want)
			}
		}
	})
}
