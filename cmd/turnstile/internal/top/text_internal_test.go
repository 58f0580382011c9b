package top

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// Whatever others write, all terminals agree about how wide it is, and nothing controls them.
func FuzzClean(f *testing.F) {
	for _, s := range []string{
		"a\x1b[31m", "\u202eabc", "世界", "e\u0301", "\U0001F468\u200d\U0001F469", "🇩🇪", "❤\ufe0f", "👍🏽", "\xff",
		"각", "^`",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		again := clean(got) == got || len(s) > maxText/10
		if ansi.Strip(got) != got || ansi.StringWidth(got) != ansi.StringWidthWc(got) || !again {
			t.Errorf("%q: got %q, then %q", s, got, clean(got))
		}
		for _, columns := range []int{1, 4, 5, 9, 20} {
			for _, middle := range []bool{false, true} {
				if cell := fit(got, columns, middle, middle); ansi.StringWidth(cell) != columns {
					t.Errorf("%q in %d columns: got %q, which has %d", got, columns, cell, ansi.StringWidth(cell))
				}
			}
		}
	})
}

func TestPathsLoseTheirMiddle(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/a/b": "/a/b", "/jobs/of/many/parts/report": "/jobs/of…s/report",
		"/" + strings.Repeat("x", 40):    "/xxxxxxx…xxxxxxxx",
		"/jobs/a-last-part-that-is-long": "/jobs/…at-is-long",
	} {
		if got := cutMiddle(path, 17); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
