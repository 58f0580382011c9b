package claims_test

import (
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
)

func FuzzRange(f *testing.F) {
	f.Add(claims.Range{First: 1, Last: 5, Delivered: 2, Tries: 1, Except: []int{3}}.Encode())
	f.Add([]byte(`{"first":1,"last":2,"handed":9223372036854775807,"except":[1,1,-5,7,9223372036854775807]}`))
	f.Add([]byte(`{"first":9223372036854775800,"last":9223372036854775807}`))
	f.Add([]byte(`{"first":0,"last":1048575}`))
	f.Add([]byte(`{"first":0,"last":1,"handed":1,"tries":9223372036854775807}`))
	f.Add([]byte(`{"first":0,"last":1,"handed":1,"tries":2147483646}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, ok := claims.ParseRange(data)
		if !ok {
			return
		}
		tried, rest := s.Split()
		if !slices.Equal(append(tried.Items(), rest.Items()...), s.Items()) || s.Size() > 1<<14 {
			t.Fatalf("%+v was split into %+v and %+v", s, tried, rest)
		}
		if _, ok := claims.ParseRange(tried.Encode()); !ok && !tried.Empty() {
			t.Fatalf("%+v cannot be read", tried)
		}
		var cut []int
		for _, part := range s.Cut(max(3, s.Size()/5)) {
			if len(part.Items()) == 0 || part.Delivered >= part.First {
				t.Fatalf("%+v has the part %+v", s, part)
			}
			cut = append(cut, part.Items()...)
		}
		if want := s.Items(); !slices.Equal(cut, want) {
			t.Fatalf("the parts of %+v hold %v, want %v", s, cut, want)
		}
	})
}
