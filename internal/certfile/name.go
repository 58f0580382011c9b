package certfile

// Names of certificates as people write them.

import "strings"

// OddName says why no certificate has the name, which is to be a subject by RFC 2253 as ZooKeeper writes it, such as
// CN=ann,O=Acme; empty if one may have it. Other tools write names with blanks, or with slashes, and as ZooKeeper
// compares the texts such a name would match nothing. A text without an equals sign is none of these: some ZooKeepers
// are set to take another part of a certificate for its identity.
func OddName(name string) string {
	if strings.HasPrefix(name, "/") && strings.Contains(name, "=") {
		return "has slashes: write CN=ann,O=Acme, the last part of the subject first"
	}
	separator := func(i int) bool {
		return 0 <= i && i < len(name) && strings.IndexByte(",+=", name[i]) >= 0
	}
	named := strings.Contains(name, "=")
	quoted := false // by a backslash
	parted := -1    // where the last separator is; the beginning is one, too
	for i := range len(name) {
		switch {
		case quoted:
			quoted = false
		case name[i] == '\\':
			quoted = true
		case separator(i):
			parted = i
		case name[i] == ' ' && named && (parted == i-1 || separator(i+1) || i == len(name)-1):
			return "has a blank beside a comma or an equals sign: write CN=ann,O=Acme"
		}
	}
	return ""
}
