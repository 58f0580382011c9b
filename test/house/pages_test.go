package house_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the path of the repository from a test of this package.
const root = "../../"

func TestGoOfThePagesIsInAnExampleThatIsTested(t *testing.T) {
	t.Parallel()
	ours := allOf(t, "examples/*/*.go") + read(t, "fence/sqlite/example_test.go") + read(t, "otel/example_test.go")
	others := allOf(t, "test/bench/migrating/*.go")
	for _, page := range []string{
		"README.md", "docs/library.md", "docs/queues.md", "docs/fencing.md", "docs/migrating.md",
		"docs/migrating-curator.md", "docs/migrating-curator-data.md", "docs/migrating-kazoo.md",
		"docs/migrating-others.md", "docs/tracing.md",
	} {
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, page), -1)
		if len(blocks) == 0 {
			t.Errorf("%s has no block of Go", page)
		}
		for _, block := range blocks {
			peers := page == "docs/migrating-others.md" && strings.Contains(others, block[1])
			if !peers && !strings.Contains(ours, block[1]) {
				t.Errorf("this block of %s is in no program of examples, nor in the Examples of fence/sqlite and "+
					"otel, nor, for other projects' code, in test/bench/migrating:\n%s", page, block[1])
			}
		}
	}
}

func TestJavaAndPythonOfThePagesIsInAProgramThatIsTested(t *testing.T) {
	t.Parallel()
	indent := regexp.MustCompile(`(?m)^[ \t]+`)
	for _, of := range []struct{ page, language, program string }{
		{"docs/migrating-curator.md", "java", "test/interop/testdata/java/Migrating.java"},
		{"docs/migrating-curator-data.md", "java", "test/interop/testdata/java/Migrating.java"},
		{"docs/migrating-kazoo.md", "python", "test/interop/testdata/migrating.py"},
	} {
		program := indent.ReplaceAllString(read(t, of.program), "")
		blocks := regexp.MustCompile("(?s)```"+of.language+"\n(.*?)```").FindAllStringSubmatch(read(t, of.page), -1)
		if len(blocks) == 0 {
			t.Errorf("%s has no block of %s", of.page, of.language)
		}
		for _, block := range blocks {
			if !strings.Contains(program, indent.ReplaceAllString(block[1], "")) {
				t.Errorf("%s does not have this block of %s:\n%s", of.program, of.page, block[1])
			}
		}
	}
}

func TestExamplesEndWellWhenTheyAreStopped(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(root + "examples/*/main.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		text := read(t, strings.TrimPrefix(path, root))
		for _, want := range []string{
			"signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)", "defer client.Close()",
			"if err != nil && !errors.Is(err, context.Cause(ctx)) {",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s", path, want)
			}
		}
	}
}

// allOf returns the text of the files that match pattern, of which there must be one.
func allOf(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(root + pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	var all strings.Builder
	for _, path := range paths {
		all.WriteString(read(t, strings.TrimPrefix(path, root)))
	}
	return all.String()
}

// pageLink is a link to a file or a heading. One to an address has a colon.
var pageLink = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^):]*))?\)`)

func TestPagesLinkToFilesThatExist(t *testing.T) {
	t.Parallel()
	walkFiles(t, func(page, text string) {
		if filepath.Ext(page) != ".md" || covers("test/bench/text/...", page) { // those are parts of pages
			return
		}
		for _, match := range pageLink.FindAllStringSubmatch(text, -1) {
			target := page // of a heading alone
			if match[1] != "" {
				target = path.Join(path.Dir(page), match[1])
			}
			if _, err := os.Stat(root + target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, target)
			} else if match[2] != "" && !slices.Contains(anchors(read(t, target)), match[2]) {
				t.Errorf("%s links to %s#%s, but the page has no such heading", page, target, match[2])
			}
		}
	})
}

// maxDocs is how many bytes of Markdown a reader is expected to find the way in.
const maxDocs = 250_000

func TestDocsAreSmall(t *testing.T) {
	t.Parallel()
	sum := 0
	walkFiles(t, func(path, text string) {
		if covers("docs/...", path) && filepath.Ext(path) == ".md" {
			sum += len(text)
		}
	})
	if sum > maxDocs {
		t.Errorf("docs has %d bytes of Markdown, want at most %d", sum, maxDocs)
	}
}

// maxPage is how many lines a page may have, unless a program writes it.
const maxPage = 300

var generated = []string{"docs/partitions.md"}

func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	walkFiles(t, func(path, text string) {
		if filepath.Ext(path) != ".md" || slices.Contains(generated, path) || covers("test/bench/...", path) {
			return
		}
		if n := strings.Count(text, "\n"); n > maxPage {
			t.Errorf("%s has %d lines, want at most %d", path, n, maxPage)
		}
	})
}

// anchors returns the fragment identifiers that GitHub gives to a page's headings.
func anchors(page string) []string {
	var all []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

func TestPagesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	all := allTests(t)
	for _, page := range []string{"docs/bugs.md", "test/bugs-found.md", "docs/interop.md"} {
		names := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`").FindAllStringSubmatch(read(t, page), -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", page)
		}
		for _, name := range names {
			if !strings.Contains(all, "func "+name[1]+"(") {
				t.Errorf("%s names %s, which does not exist", page, name[1])
			}
		}
	}
}

func TestSleepsOutsideBubblesSayWhy(t *testing.T) {
	t.Parallel()
	sleep := regexp.MustCompile(`(?m)^.*time\.Sleep\([^/\n]*$`)
	walkTests(t, func(path, text string) {
		if strings.Contains(text, `"testing/synctest"`) || strings.Contains(text, "zktest.Bubble(") {
			return
		}
		for _, line := range sleep.FindAllString(text, -1) {
			t.Errorf("%s sleeps outside a synctest bubble without a comment on the line that says why: %s",
				path, strings.TrimSpace(line))
		}
	})
}

// allTests returns the text of every test file.
func allTests(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	walkTests(t, func(_, text string) { all.WriteString(text) })
	return all.String()
}

// walkTests calls visit with every test file's path and text.
func walkTests(t *testing.T, visit func(path, text string)) {
	t.Helper()
	walkFiles(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") {
			visit(path, text)
		}
	})
}

// walkFiles calls visit with the path and text of every file of the repository, testdata and build output excepted.
func walkFiles(t *testing.T, visit func(path, text string)) {
	t.Helper()
	skip := []string{".git", "testdata", "bin", "dist", "artifacts", "turnstile"}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains(skip, e.Name()) && path != filepath.Clean(root)+"/cmd/turnstile":
			return filepath.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		visit(filepath.ToSlash(strings.TrimPrefix(path, root)), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(root + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
