package zk

// The SASL mechanism DIGEST-MD5.

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// saslURI is what ZooKeeper's servers expect as digest-uri.
const saslURI = "zookeeper/zk-sasl-md5"

// authenticateSASL proves the user to the server, and the server to us, by DIGEST-MD5 (RFC 2831).
func (n *conn) authenticateSASL(user *SASL) error {
	challenge, err := n.saslStep([]byte{})
	if err != nil {
		return err
	}
	if challenge == nil {
		return fmt.Errorf("%w: the server has no SASL", ErrAuthFailed)
	}
	params, err := parseChallenge(string(challenge))
	if err != nil {
		return fmt.Errorf("%w: challenge: %w", ErrAuthFailed, err)
	}
	d := digest{user: *user, realm: params["realm"], nonce: params["nonce"], cnonce: rand.Text(), uri: saslURI, utf8: params["charset"] == "utf-8"}
	if qop, ok := params["qop"]; ok && !listed(qop, "auth") {
		return fmt.Errorf("%w: the server wants quality of protection %q, not auth", ErrAuthFailed, qop)
	}
	if d.nonce == "" || params["algorithm"] != "md5-sess" {
		return fmt.Errorf("%w: not a DIGEST-MD5 challenge", ErrAuthFailed)
	}
	verdict, err := n.saslStep([]byte(d.response()))
	if err != nil {
		return err
	}
	final, err := parseChallenge(string(verdict))
	if err != nil || subtle.ConstantTimeCompare([]byte(final["rspauth"]), []byte(d.compute(""))) != 1 {
		return fmt.Errorf("%w: the server does not prove that it knows %s's password", ErrAuthFailed, user.User)
	}
	return nil
}

func (n *conn) saslStep(token []byte) ([]byte, error) {
	s := n.sess
	s.mu.Lock()
	xid := s.takeXid()
	s.mu.Unlock()
	if _, err := n.nc.Write(wire.AppendRequest(nil, xid, wire.OpSASL, &wire.SASLToken{Token: token})); err != nil {
		return nil, err
	}
	h, d, err := n.answer(xid)
	if err != nil {
		return nil, err
	}
	if h.Err != wire.OK {
		return nil, fmt.Errorf("%w: SASL: %v", ErrAuthFailed, h.Err)
	}
	var answer wire.SASLToken
	answer.Decode(d)
	return answer.Token, d.Err()
}

// digest holds what goes into the hashes of DIGEST-MD5.
type digest struct {
	user                      SASL
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

// compute returns the hash for a direction: "AUTHENTICATE" for the client's proof, "" for the server's.
func (d *digest) compute(method string) string {
	secret := md5.Sum([]byte(d.encode(d.user.User) + ":" + d.encode(d.realm) + ":" + d.encode(d.user.Password)))
	a1 := string(secret[:]) + ":" + d.nonce + ":" + d.cnonce
	return hexMD5(hexMD5(a1) + ":" + d.nonce + ":00000001:" + d.cnonce + ":auth:" + hexMD5(method+":"+d.uri))
}

// encode applies the RFC's rule for the secret: what fits into ISO 8859-1 is hashed in it, even if the exchange is in UTF-8.
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

// parseChallenge reads a list of key=value pairs, where values may be quoted. The first of equal keys counts.
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
	return "", "", fmt.Errorf("quote without end in %q", s)
}
