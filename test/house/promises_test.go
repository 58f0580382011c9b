package house_test

// Which tests show the promises of docs/guarantees.md.

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A test that shows promises names them in the last line of its comment: "// Promise: 1, 2". With -v the index is
// printed.
func TestEachPromiseIsShownByTests(t *testing.T) {
	t.Parallel()
	shown := make(map[string][]string)
	comment := regexp.MustCompile(`(?m)^// Promise: (.*)\n(?://\n)?(?://nolint.*\n)?` +
		`(func ((?:Test|Fuzz|Example)\w+)\()?`)
	for _, match := range comment.FindAllStringSubmatch(allTests(t), -1) {
		if match[3] == "" {
			t.Errorf("no test follows the line \"// Promise: %s\"", match[1])
			continue
		}
		for number := range strings.SplitSeq(match[1], ", ") {
			shown[number] = append(shown[number], match[3])
		}
	}
	headings := regexp.MustCompile(`(?m)^## (\d+)\. (.*)$`).FindAllStringSubmatch(read(t, "docs/guarantees.md"), -1)
	if len(headings) == 0 {
		t.Fatal("docs/guarantees.md has no numbered promise")
	}
	for _, promise := range headings {
		tests := slices.Compact(slices.Sorted(slices.Values(shown[promise[1]])))
		if len(tests) == 0 {
			t.Errorf("no test shows promise %s, %q", promise[1], promise[2])
		}
		t.Logf("%s. %s: %s", promise[1], promise[2], strings.Join(tests, ", "))
		delete(shown, promise[1])
	}
	for number, tests := range shown {
		t.Errorf("docs/guarantees.md has no promise %s, which %s shows", number, tests[0])
	}
}
