package house_test

import (
	"regexp"
	"strings"
	"testing"
)

// Each part of a soak takes its share of the minutes: how long it lasts, or how much it tries, depends on them.
func TestEachPartOfASoakDependsOnTheMinutes(t *testing.T) {
	t.Parallel()
	script := strings.ReplaceAll(read(t, ".ci/soak"), "\\\n", " ")
	depends := map[string]bool{"minutes": true}
	names := regexp.MustCompile(`\w+`)
	set := regexp.MustCompile(`^\s*(?:mapfile -t (\w+) |(\w+)=|for (\w+) in )`)
	parts := 0
	for line := range strings.Lines(script) {
		line, _, _ = strings.Cut(line, " # ")
		line = strings.ReplaceAll(line, `-timeout "$limit"`, "") // which is only for when something hangs
		uses := false
		for _, name := range names.FindAllString(line, -1) {
			uses = uses || depends[name]
		}
		if m := set.FindStringSubmatch(line); m != nil && uses {
			depends[m[1]+m[2]+m[3]] = true
		}
		if strings.HasPrefix(strings.TrimSpace(line), "part ") {
			parts++
			if !uses {
				t.Errorf("this part takes as long for any number of minutes: %s", line)
			}
		}
	}
	if parts < 5 {
		t.Errorf("got %d parts of .ci/soak, want more", parts)
	}
}
