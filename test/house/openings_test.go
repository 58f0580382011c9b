package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

// An opening comment stands between the package clause and the first declaration, with an empty line on both sides,
// and says in one sentence what the file is about. The package comment, or the comment of a declaration, does as well.
func TestFilesSayWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	walkFiles(t, func(file, text string) {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc == nil && !hasOpening(f) && !hasDoc(f) {
			t.Errorf("%s has no opening comment: say after the package clause what the file is about", file)
		}
	})
}

func hasOpening(f *ast.File) bool {
	for _, c := range f.Comments {
		if c.Pos() > f.Name.End() && (len(f.Decls) == 0 || c.End()+1 < f.Decls[0].Pos()) {
			return true
		}
	}
	return false
}

func hasDoc(f *ast.File) bool {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc != nil {
				return true
			}
		case *ast.GenDecl:
			if d.Doc != nil {
				return true
			}
		}
	}
	return false
}
