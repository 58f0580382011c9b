package queue

import (
	"slices"
	"testing"
)

func FuzzClaim(f *testing.F) {
	items := itemRange{First: 1, Last: 5, Delivered: 2, Tries: 1, Except: []int{3}}
	f.Add(claimName(place{-5, 7, 100}, "0123456789abcdef", "1"), items.encode())
	f.Add("", []byte(`{"first":1,"last":2,"handed":9223372036854775807,"except":[1,1,-5,7,9223372036854775807]}`))
	f.Add("", []byte(`{"first":9223372036854775800,"last":9223372036854775807}`))
	f.Add("", []byte(`{"first":0,"last":1048575}`))
	f.Add("", []byte(`{"first":0,"last":1,"handed":1,"tries":9223372036854775807}`))
	f.Add("", []byte(`{"first":0,"last":1,"handed":1,"tries":2147483646}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if c, ok := parseClaim("/dir", name); ok && c.path != "/dir/"+name {
			t.Fatal(c)
		}
		if s, ok := parseRange(data); ok {
			tried, rest := s.split()
			if !slices.Equal(append(tried.items(), rest.items()...), s.items()) || s.size() > maxRange {
				t.Fatalf("%+v was split into %+v and %+v", s, tried, rest)
			}
			if _, ok := parseRange(tried.encode()); !ok && !tried.empty() {
				t.Fatalf("%+v cannot be read", tried)
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
