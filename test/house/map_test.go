package house_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "wrap long lines of Markdown, and write the file map")

const mapHeading = "## File map\n"

// An opening comment stands between the package clause and the first declaration, with an empty line on both sides,
// and says in one sentence what the file is about. The map quotes it, or else the comment of the file's first type,
// function or other declaration.
func TestFileMapQuotesTheOpeningCommentOfEachFile(t *testing.T) {
	t.Parallel()
	const name = "docs/architecture.md"
	page := read(t, name)
	before, rest, found := strings.Cut(page, mapHeading)
	if !found {
		t.Fatalf("%s has no %q", name, mapHeading)
	}
	_, after, more := strings.Cut(rest, "\n## ")
	if more {
		after = "\n## " + after
	}
	want := before + mapHeading + fileMap(t) + after
	if want == page {
		return
	}
	if !*update {
		t.Errorf("the file map of %s differs from the files' opening comments: run make fix", name)
		return
	}
	if err := os.WriteFile(root+name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func fileMap(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("\n`make fix` writes this list from the opening comments of the files. Most tests are left out.\n")
	for _, dir := range packageDirs(t) {
		text.WriteString(packageMap(t, dir))
	}
	return text.String()
}

// packageDirs returns the directories of the module's packages, in the order of their names.
func packageDirs(t *testing.T) []string {
	t.Helper()
	var dirs, nested []string
	walkFiles(t, func(file, _ string) {
		if path.Base(file) == "go.mod" && path.Dir(file) != "." {
			nested = append(nested, path.Dir(file)) // a module of its own
		}
	})
	walkFiles(t, func(file, _ string) {
		dir := path.Dir(file)
		foreign := slices.ContainsFunc(nested, func(m string) bool { return covers(m+"/...", dir) })
		if path.Ext(file) == ".go" && !foreign && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	})
	slices.Sort(dirs)
	return dirs
}

// packageMap returns a package's part: the first sentence of its documentation, and a line for each of its files. Test
// files without an opening comment are left out.
func packageMap(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(root + dir)
	if err != nil {
		t.Fatal(err)
	}
	synopsis, rows := "", ""
	for _, e := range entries {
		name := e.Name()
		if path.Ext(name) != ".go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), root+dir+"/"+name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		opening := openingOf(f)
		if opening == "" && !strings.HasSuffix(name, "_test.go") {
			opening = declarationOf(f)
		}
		if f.Doc != nil {
			synopsis = new(doc.Package).Synopsis(f.Doc.Text())
		}
		switch {
		case opening != "":
			rows += fmt.Sprintf("- `%s`: %s\n", name, opening)
		case strings.HasSuffix(name, "_test.go"):
		case f.Doc != nil:
			rows += fmt.Sprintf("- `%s`: The package comment.\n", name)
		default:
			t.Errorf("%s/%s has no opening comment: say after the package clause what the file is about", dir, name)
		}
	}
	if _, said, ok := strings.Cut(synopsis, " "+path.Base(dir)+" "); ok {
		synopsis = said
	} else {
		t.Errorf("the documentation of %s does not begin with its name", dir)
	}
	return filled(fmt.Sprintf("\n**`%s`** %s\n\n%s", dir, synopsis, rows))
}

func openingOf(f *ast.File) string {
	for _, c := range f.Comments {
		if c.Pos() > f.Name.End() && (len(f.Decls) == 0 || c.End()+1 < f.Decls[0].Pos()) {
			return strings.Join(strings.Fields(c.Text()), " ")
		}
	}
	return ""
}

// declarationOf returns the first sentence of the comment of a file's first type, or else function, or else of
// whatever has a comment.
func declarationOf(f *ast.File) string {
	var comments [3]string
	for _, d := range f.Decls {
		kind, c := 1, (*ast.CommentGroup)(nil)
		switch d := d.(type) {
		case *ast.FuncDecl:
			c = d.Doc
		case *ast.GenDecl:
			c, kind = d.Doc, 2
			if d.Tok == token.TYPE {
				kind = 0
			}
		}
		if comments[kind] == "" {
			comments[kind] = new(doc.Package).Synopsis(c.Text())
		}
	}
	return cmp.Or(comments[:]...)
}
