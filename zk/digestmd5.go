package zk

// The SASL mechanism DIGEST-MD5.

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
)

// saslURI is the digest-uri that ZooKeeper servers expect.
const saslURI = "zookeeper/zk-sasl-md5"

// DigestMD5 is the SASL mechanism DIGEST-MD5 (RFC 2831): the user and the server prove to each other that they know the
// password. ZooKeeper 3.9.6 refuses it unless zookeeper.fips-mode is false.
type DigestMD5 struct{ User, Password string }

// Begin implements SASL.
func (d DigestMD5) Begin(context.Context, string) (SASLExchange, error) {
	return &digestExchange{user: d}, nil
}

// digestExchange is one authentication.
type digestExchange struct {
	user DigestMD5
	step int
	sent digest
}

// Next implements SASLExchange.
func (x *digestExchange) Next(token []byte) (answer []byte, done bool, err error) {
	x.step++
	switch x.step {
	case 1:
		return []byte{}, false, nil // asks for the challenge
	case 2:
		answer, err := x.respond(string(token))
		return answer, false, err
	default:
		final, err := parseChallenge(string(token))
		proof := []byte(x.sent.compute(""))
		if err != nil || subtle.ConstantTimeCompare([]byte(final["rspauth"]), proof) != 1 {
			const text = "%w: server did not prove that it knows the password of %s"
			return nil, false, fmt.Errorf(text, ErrAuthFailed, x.user.User)
		}
		return nil, true, nil
	}
}

// respond answers the server's challenge.
func (x *digestExchange) respond(challenge string) ([]byte, error) {
	params, err := parseChallenge(challenge)
	if err != nil {
		return nil, fmt.Errorf("%w: invalid challenge: %w", ErrAuthFailed, err)
	}
	x.sent = digest{
		user: x.user, realm: params["realm"], nonce: params["nonce"], cnonce: rand.Text(), uri: saslURI,
		utf8: params["charset"] == "utf-8",
	}
	if qop, ok := params["qop"]; ok && !listed(qop, "auth") {
		return nil, fmt.Errorf("%w: quality of protection must be auth: server requires %q", ErrAuthFailed, qop)
	}
	if x.sent.nonce == "" || params["algorithm"] != "md5-sess" {
		return nil, fmt.Errorf("%w: challenge is not for DIGEST-MD5", ErrAuthFailed)
	}
	return []byte(x.sent.response()), nil
}

// digest holds the input of the hashes of DIGEST-MD5.
type digest struct {
	user                      DigestMD5
	realm, nonce, cnonce, uri string
	utf8                      bool
}

// response returns the client's message.
func (d *digest) response() string {
	var b strings.Builder
	if d.utf8 {
		b.WriteString("charset=utf-8,")
	}
	fmt.Fprintf(&b, "username=%s,realm=%s,nonce=%s,nc=00000001,cnonce=%s,digest-uri=%s,response=%s,qop=auth",
		quote(d.user.User), quote(d.realm), quote(d.nonce), quote(d.cnonce), quote(d.uri), d.compute("AUTHENTICATE"))
	return b.String()
}

// compute returns the hash that proves the password: method is "AUTHENTICATE" for the client, "" for the server.
func (d *digest) compute(method string) string {
	secret := md5.Sum([]byte(d.encode(d.user.User) + ":" + d.encode(d.realm) + ":" + d.encode(d.user.Password)))
	a1 := string(secret[:]) + ":" + d.nonce + ":" + d.cnonce
	return hexMD5(hexMD5(a1) + ":" + d.nonce + ":00000001:" + d.cnonce + ":auth:" + hexMD5(method+":"+d.uri))
}

// encode follows the RFC's rule for the secret: a string that fits into ISO 8859-1 is hashed in that encoding, even if
// the exchange uses UTF-8.
func (d *digest) encode(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return s
		}
		b = append(b, byte(r))
	}
	return string(b)
}

func hexMD5(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func listed(list, want string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(item) == want {
			return true
		}
	}
	return false
}

// parseChallenge parses a list of key=value pairs, where values may be quoted. The first of equal keys counts.
func parseChallenge(s string) (map[string]string, error) {
	params := make(map[string]string)
	for s = strings.TrimLeft(s, ", \t"); s != ""; s = strings.TrimLeft(s, ", \t") {
		key, rest, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("no value after %q", s)
		}
		value, rest, err := parseValue(rest)
		if err != nil {
			return nil, err
		}
		if key = strings.ToLower(strings.TrimSpace(key)); params[key] == "" {
			params[key] = value
		}
		s = rest
	}
	return params, nil
}

func parseValue(s string) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexByte(s, ',')
		if i < 0 {
			i = len(s)
		}
		return strings.TrimSpace(s[:i]), s[i:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], nil
		case s[i] == '\\' && i+1 < len(s):
			i++
			fallthrough
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", fmt.Errorf("unterminated quote in %q", s)
}
