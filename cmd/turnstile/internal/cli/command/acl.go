package command

// The flag --acl.

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/certfile"
	"github.com/seed-a3166700/turnstile/zk"
)

// acl is a flag's value: who may use the nodes that are created.
type acl struct {
	text string
	list []zk.ACL // nil is open to all
}

// Words for the most common lists.
const (
	aclOpen    = "open"
	aclCreator = "creator"
)

func (a *acl) Type() string   { return "list" }
func (a *acl) String() string { return a.text }

func (a *acl) Set(s string) error {
	list, err := ParseACL(s)
	if err == nil {
		a.text, a.list = word(s), list
	}
	return err
}

// word returns a word for a list as it is written here, and any other text as it is: people write Open, too.
func word(s string) string {
	for _, w := range []string{aclOpen, aclCreator} {
		if strings.EqualFold(s, w) {
			return w
		}
	}
	return s
}

// schemes are those of ZooKeeper's own providers. Servers know them in this spelling only.
var schemes = []string{"world", "auth", "digest", "ip", "sasl", "x509", "ensemble"}

// checkScheme refuses a scheme that no server knows, but for its spelling.
func checkScheme(scheme string) error {
	for _, s := range schemes {
		if scheme != s && strings.EqualFold(scheme, s) {
			return fmt.Errorf("the scheme %q must be written %s", scheme, s)
		}
	}
	return nil
}

// ParseACL reads an access control list as --acl takes it. It is nil if it is open to all.
func ParseACL(s string) ([]zk.ACL, error) {
	switch word(s) {
	case aclOpen:
		return nil, nil
	case aclCreator:
		return zk.CreatorACL(), nil
	}
	if !utf8.ValidString(s) {
		return nil, errors.New("it is not UTF-8")
	}
	var list []zk.ACL
	for {
		entry, rest, more, err := cutACL(s)
		if err != nil {
			return nil, err
		}
		if err := checkDigest(entry.ID); err != nil {
			return nil, err
		}
		list = append(list, entry)
		if !more {
			return list, nil
		}
		s = rest
	}
}

// HiddenHash is what a server shows in place of a password's hash to clients that may not administrate the node.
const HiddenHash = ":x"

// HidesHash reports whether the server has hidden the hash of an entry's password.
func HidesHash(id zk.ID) bool { return id.Scheme == "digest" && strings.HasSuffix(id.ID, HiddenHash) }

// checkDigest refuses a password, or what a server shows in its place, where the hash of one must be: it would let
// no client in, and show the password to all that may read the list.
func checkDigest(id zk.ID) error {
	if id.Scheme != "digest" {
		return nil
	}
	user, hash, _ := strings.Cut(id.ID, ":")
	if sum, err := base64.StdEncoding.DecodeString(hash); err == nil && len(sum) >= shortestHash {
		return nil
	}
	if HidesHash(id) {
		return fmt.Errorf("%q has no hash: the server shows x for it to clients that may not administrate the node",
			"digest:"+id.ID)
	}
	return fmt.Errorf("the list needs a hash of the password of %q, base64(sha1(user:password)), never the password "+
		"itself: such as digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=:cdrwa", user)
}

// shortestHash is how many bytes the shortest hash has that a server can be set to use: MD5.
const shortestHash = 16

// attributeNext reports whether text goes on within the name of a certificate: with the next attribute, as O=.
func attributeNext(text string) bool {
	keyword, _, ok := strings.Cut(strings.TrimLeft(text, " "), "=")
	return ok && isWord(keyword)
}

// isWord reports whether text can be a scheme, or the keyword of an attribute.
func isWord(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
	})
}

// cutACL reads the first entry of a list, and returns what follows its comma.
//
// A name of a certificate, such as CN=ann,O=Acme\, Inc., can stand as it is: a comma behind a backslash, or before an
// attribute, does not end an entry. Any other identity that has a comma, or what oddID refuses, is in double quotes, as
// strconv.Quote writes.
func cutACL(s string) (entry zk.ACL, rest string, more bool, err error) {
	from := 0
	scheme, after, _ := strings.Cut(s, ":")
	quoted, quoteErr := strconv.QuotedPrefix(after)
	if quoteErr == nil && after[0] == '"' && !strings.Contains(scheme, ",") {
		from = len(scheme) + 1 + len(quoted)
	}
	text := s
	for i := from; i < len(s); i++ {
		if s[i] == '\\' {
			i++ // what it escapes
		} else if s[i] == ',' && !attributeNext(s[i+1:]) {
			text, rest, more = s[:i], s[i+1:], true
			break
		}
	}
	text = strings.TrimSpace(text)
	scheme, after, _ = strings.Cut(text, ":")
	// The identity may contain colons, as those of digest and of IPv6 do.
	i := strings.LastIndexByte(after, ':')
	if !isWord(scheme) || i < 0 {
		return entry, "", false, fmt.Errorf("%q must be %s, %s, or scheme:id:rights such as sasl:ann:cdrwa (several "+
			"separated by commas; an id that has a comma in double quotes)", text, aclOpen, aclCreator)
	}
	if err := checkScheme(scheme); err != nil {
		return entry, "", false, err
	}
	id := after[:i]
	if from > 0 {
		if id, err = strconv.Unquote(id); err != nil {
			return entry, "", false, fmt.Errorf("%q: want a colon and rights behind the id in quotes", text)
		}
	} else if odd := oddID(scheme, id); odd != "" {
		return entry, "", false, fmt.Errorf("%q: the id %s: separate entries by commas, and put an id that is meant "+
			"so in double quotes", text, odd)
	}
	perms, err := ParsePerms(after[i+1:])
	if err != nil {
		return entry, "", false, fmt.Errorf("%q: %w", text, err)
	}
	return zk.ACL{Perms: perms, ID: zk.ID{Scheme: scheme, ID: id}}, rest, more, nil
}

// oddID says what is wrong with an id that is not in quotes, most likely with the rest of the list in it; empty if
// nothing is.
func oddID(scheme, id string) string {
	switch {
	case strings.HasPrefix(id, `"`):
		return "begins with a double quote that does not end"
	case id == "" && scheme != "auth": // the servers put in the identities of the connection
		return "is empty"
	case strings.Contains(id, ";"):
		return "has a semicolon"
	case scheme == "x509":
		return certfile.OddName(id)
	case strings.ContainsFunc(id, unicode.IsSpace):
		return "has a blank"
	}
	return ""
}

// A right is what an entry may grant, with its letter.
type right struct {
	letter rune
	perm   zk.Perms
}

var rights = []right{
	{'c', zk.PermCreate}, {'d', zk.PermDelete}, {'r', zk.PermRead}, {'w', zk.PermWrite}, {'a', zk.PermAdmin},
}

// FormatACL writes an access control list as ParseACL reads it, one or several such joined by commas. It is printable.
func FormatACL(list []zk.ACL) string {
	entries := make([]string, len(list))
	for i, entry := range list {
		scheme, id, rights := entry.ID.Scheme+":", entry.ID.ID, ":"+FormatPerms(entry.Perms)
		entries[i] = scheme + id + rights
		again, _, more, err := cutACL(entries[i])
		if err != nil || more || again != entry || !plainText(id) {
			entries[i] = scheme + strconv.QuoteToGraphic(id) + rights
		}
	}
	return strings.Join(entries, ",")
}

// allRights are those that have a letter.
const allRights = zk.PermCreate | zk.PermDelete | zk.PermRead | zk.PermWrite | zk.PermAdmin

// FormatPerms writes rights as letters, as ZooKeeper's own command line does. No rights, and those without a letter,
// which servers store, too, are # and a number.
func FormatPerms(perms zk.Perms) string {
	if perms == 0 || perms&^allRights != 0 {
		return "#" + strconv.Itoa(int(perms))
	}
	var b strings.Builder
	for _, r := range rights {
		if perms&r.perm != 0 {
			b.WriteRune(r.letter)
		}
	}
	return b.String()
}

// ParsePerms reads rights as FormatPerms writes them.
func ParsePerms(s string) (zk.Perms, error) {
	if number, ok := strings.CutPrefix(s, "#"); ok {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%q is not the number of rights", s)
		}
		return zk.Perms(n), nil
	}
	var perms zk.Perms
	for _, letter := range s {
		i := slices.IndexFunc(rights, func(r right) bool { return r.letter == letter })
		if i < 0 {
			const want = "c, d, r, w and a for create, delete, read, write and admin"
			return 0, fmt.Errorf("%q is not a right: use %s", letter, want)
		}
		perms |= rights[i].perm
	}
	if perms == 0 {
		return 0, errors.New("it grants no rights")
	}
	return perms, nil
}
