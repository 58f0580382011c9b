package house_test

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Users of a package or an archive read the pages without a clone. A link in them leads to a
// file that came with them, or to an address.
func TestPackedPagesLinkToFilesThatArePacked(t *testing.T) {
	t.Parallel()
	const docs = "/usr/share/doc/turnstile"
	for _, list := range []struct {
		file string
		line *regexp.Regexp // what is packed, and if not at the same path, where
	}{
		{".goreleaser.yaml", regexp.MustCompile(`(?m)^      - "?([^":\s]+)"?$`)},
		{"ops/package/nfpm.yaml", regexp.MustCompile(`(?m)^  - \{src: (\S+), dst: ` + docs + `/([^ ,}]+)`)},
	} {
		packed := make(map[string]string) // sources, by where they lie
		for _, m := range list.line.FindAllStringSubmatch(read(t, list.file), -1) {
			matches, err := filepath.Glob(root + m[1])
			if err != nil || len(matches) == 0 {
				t.Errorf("%s packs %s, which is nothing: %v", list.file, m[1], err)
			}
			for _, match := range matches {
				source := strings.TrimPrefix(filepath.ToSlash(match), root)
				at := source
				if stars := strings.IndexByte(m[1], '*'); len(m) > 2 && stars >= 0 {
					at = path.Join(m[2], strings.TrimPrefix(source, m[1][:strings.LastIndexByte(m[1][:stars], '/')+1]))
				} else if len(m) > 2 {
					at = m[2]
				}
				packed[at] = source
			}
		}
		if packed["README.md"] == "" || packed["docs/limits.md"] == "" {
			t.Fatalf("%s: got %d files, among them no page", list.file, len(packed))
		}
		for at, source := range packed {
			if path.Ext(at) != ".md" {
				continue
			}
			for _, match := range pageLink.FindAllStringSubmatch(read(t, source), -1) {
				if target := path.Join(path.Dir(at), match[1]); match[1] != "" && packed[target] == "" {
					t.Errorf("%s links to %s, which %s does not pack", at, target, list.file)
				}
			}
		}
	}
}
