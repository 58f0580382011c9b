package command

import (
	"strings"
	"testing"
)

func TestSizesAreBytesOrHaveAUnit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		bytes Size
		text  string
	}{
		"1024": {1 << 10, "1KiB"}, "64MiB": {64 << 20, "64MiB"}, "64M": {64 << 20, "64MiB"}, "1GiB": {1 << 30, "1GiB"},
		"1G": {1 << 30, "1GiB"}, "1536": {1536, "1536"}, "3K": {3 << 10, "3KiB"},
		"2147483647": {1<<31 - 1, "2147483647"},
	} {
		var s Size
		if err := s.Set(text); err != nil || s != want.bytes || s.String() != want.text {
			t.Errorf("%q: got %d %q %v, want %d %q", text, s, s.String(), err, want.bytes, want.text)
		}
	}
	for text, want := range map[string]string{
		"": "is not a size", "MiB": "is not a size", "-1": "is not a size", "1.5MiB": "is not a size",
		"64mb": "is not a size", "64 MiB": "is not a size",
		"99999999999": "out of range", "9999999999999999999G": "out of range",
		"0": "out of range", "1023": "out of range", "2GiB": "out of range", "4294967295GiB": "out of range",
	} {
		s := Size(5)
		if err := s.Set(text); err == nil || !strings.Contains(err.Error(), want) || s != 5 {
			t.Errorf("%q: got %v and %d, want %q and no change", text, err, s, want)
		}
	}
}
