package house_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns = 120
	tabColumns = 4
)

var update = flag.Bool("update", false, "wrap long lines of Markdown")

func TestLinesHaveAtMost120Columns(t *testing.T) {
	t.Parallel()
	walkFiles(t, func(path, text string) {
		if filepath.Ext(path) == ".md" {
			switch want := filled(text); {
			case want == text:
			case *update:
				if err := os.WriteFile(root+path, []byte(want), 0o644); err != nil {
					t.Error(err)
				}
			default:
				t.Errorf("%s has lines of more than %d columns: run make fix", path, maxColumns)
			}
			return
		}
		if !isSource(path) {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			if n := columns(line); n > maxColumns {
				t.Errorf("%s:%d has %d columns, want at most %d", path, i+1, n, maxColumns)
			}
		}
	})
}

func isSource(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".go" || ext == ".yml" || ext == ".yaml" || path == "Makefile" || covers(".ci/...", path)
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + strings.Count(line, "\t")*(tabColumns-1)
}

// filled returns the text of a Markdown page in which each paragraph and list item with a long line is filled anew.
// Tables, headings, HTML and code listings stay as they are.
func filled(page string) string {
	var out []string
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); {
		if strings.HasPrefix(strings.TrimSpace(lines[i]), "```") {
			end := i + 1
			for end < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[end]), "```") {
				end++
			}
			end = min(end+1, len(lines))
			out = append(out, lines[i:end]...)
			i = end
			continue
		}
		end := i + 1
		if isText(lines[i]) {
			for end < len(lines) && isText(lines[end]) && !startsItem.MatchString(lines[end]) {
				end++
			}
		}
		block := lines[i:end]
		if isText(lines[i]) && slices.ContainsFunc(block, func(l string) bool { return columns(l) > maxColumns }) {
			block = fill(block)
		}
		out = append(out, block...)
		i = end
	}
	return strings.Join(out, "\n")
}

var (
	startsItem = regexp.MustCompile(`^\s*([-*+]|\d+[.)])\s`)
	isNoText   = regexp.MustCompile(`^\s*([|#<>]|$)|^( {4}|\t)`)
	// looksMarked matches a word that would not be text at the start of a line.
	looksMarked = regexp.MustCompile(`^([-*+]|#+|=+|-+|\d+[.)])$|^[>|<]`)
)

func isText(line string) bool { return !isNoText.MatchString(line) || startsItem.MatchString(line) }

// fill returns the words of a paragraph or list item on lines of at most maxColumns.
func fill(block []string) []string {
	first := startsItem.FindString(block[0])
	indent := strings.Repeat(" ", len(first))
	if first == "" {
		indent = block[0][:len(block[0])-len(strings.TrimLeft(block[0], " "))]
		first = indent
	}
	var words []string
	for word := range strings.FieldsSeq(strings.TrimPrefix(strings.Join(block, " "), first)) {
		if len(words) > 0 && looksMarked.MatchString(word) {
			words[len(words)-1] += " " + word
		} else {
			words = append(words, word)
		}
	}
	var out []string
	line := first + words[0]
	for _, word := range words[1:] {
		if columns(line)+1+columns(word) > maxColumns {
			out = append(out, line)
			line = indent + word
		} else {
			line += " " + word
		}
	}
	return append(out, line)
}

func TestPagesAreFilledWithoutChangingWhatTheySay(t *testing.T) {
	t.Parallel()
	long := strings.TrimSpace(strings.Repeat("word ", 30))
	for _, test := range []struct{ name, page, want string }{
		{"short lines stay", "a\nb\n", "a\nb\n"},
		{"a paragraph", long + "\nmore\n", long[:119] + "\n" + long[120:] + " more\n"},
		{"an item", "- a\n- " + long + "\n", "- a\n- " + long[:114] + "\n  " + long[115:] + "\n"},
		{"a table", "| " + long + " |\n", "| " + long + " |\n"},
		{"a listing", "```\n" + long + "\n```\n", "```\n" + long + "\n```\n"},
		{"a heading", "# " + long + "\n", "# " + long + "\n"},
		{"a mark", long[:119] + " - x\n", strings.TrimSpace(long[:114]) + "\nword - x\n"},
	} {
		if got := filled(test.page); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
