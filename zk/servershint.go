package zk

// What to write instead of a connect string that is none.

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
)

// What other programs put before addresses, as zk://user:password@. They are compiled when they are needed: most
// processes never do.
var (
	urlPrefix     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9+.-]*://`) })
	passwordOfURL = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^/@]*@`) })
)

// A slip is one that people make in connect strings.
type slip struct {
	what  string
	mends func(list string) string
}

// slips are in the order in which they are mended.
var slips = []slip{
	{"it has quotes", func(list string) string { return strings.NewReplacer(`"`, "", "'", "").Replace(list) }},
	{"a user and a password are given apart", func(list string) string {
		return passwordOfURL().ReplaceAllString(list, "://")
	}},
	{"it is a URL", func(list string) string { return urlPrefix().ReplaceAllString(list, "") }},
	{"commas separate servers", func(list string) string {
		if !strings.ContainsFunc(list, func(r rune) bool { return r != ',' && isSeparator(r) }) {
			return list
		}
		return strings.Join(strings.FieldsFunc(list, isSeparator), ",")
	}},
	{"there is an empty entry between commas", func(list string) string {
		return strings.Join(strings.FieldsFunc(list, func(r rune) bool { return r == ',' }), ",")
	}},
	{"the chroot stands once, behind the last server", func(list string) string {
		entries := strings.Split(list, ",")
		_, root, ok := strings.Cut(entries[len(entries)-1], "/")
		for i, entry := range entries {
			host, other, has := strings.Cut(entry, "/")
			if has && (!ok || other != root) {
				return list
			}
			entries[i] = host
		}
		if !ok {
			return list
		}
		return strings.Join(entries, ",") + "/" + root
	}},
	{"an IPv6 address needs brackets", func(list string) string {
		hosts, root, _ := strings.Cut(list, "/")
		entries := strings.Split(hosts, ",")
		for i, entry := range entries {
			entries[i] = bracketed(entry)
		}
		return strings.Join(entries, ",") + list[len(hosts):len(list)-len(root)] + root
	}},
	{"a chroot does not end with a slash", func(list string) string { return strings.TrimRight(list, "/") }},
}

// isSeparator reports whether r is what some people and programs put between servers.
func isSeparator(r rune) bool { return strings.ContainsRune(",; \t\r\n", r) }

// bracketed puts an IPv6 address into brackets. If it can be read with a port and without, the port is meant: nobody
// leaves out the brackets on purpose, and most write a port.
func bracketed(entry string) string {
	if i := strings.LastIndexByte(entry, ':'); i > 0 && strings.Count(entry, ":") > 1 {
		if host, port := entry[:i], entry[i+1:]; net.ParseIP(host) != nil && validPort(port) {
			return net.JoinHostPort(host, port)
		}
		if net.ParseIP(entry) != nil {
			return net.JoinHostPort(entry, defaultPort)
		}
	}
	return entry
}

// toWrite stands before what to write.
const toWrite = ": write "

// instead says what is wrong with a connect string that is refused, and what to write, if that can be guessed. good
// says that the part before the chroot is not wrong.
func instead(list string, good bool) (hint string, ok bool) {
	if strings.Contains(list, "unix:") {
		return "", false
	}
	mended, reasons := strings.TrimSpace(list), []string(nil)
	for _, s := range slips {
		if next := s.mends(mended); next != mended {
			mended, reasons = next, append(reasons, s.what)
		}
	}
	if len(reasons) == 0 || mended == "" {
		return "", false
	}
	why := strings.Join(reasons, ", and ")
	switch _, _, err := splitServers(mended); {
	case err != nil && good:
		return "", false
	case err != nil: // the rest is wrong, too
		return fmt.Sprintf("%s: in %s, %v", why, mended, err), true
	}
	return why + toWrite + mended, true
}

// withoutPassword hides the user and password of a URL, which do not belong into logs.
func withoutPassword(list string) string {
	return passwordOfURL().ReplaceAllString(list, "://…@")
}
