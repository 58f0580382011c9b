package zk_test

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
)

// rawRecord is an encoded record.
type rawRecord []byte

func (r rawRecord) Append(b []byte) []byte { return append(b, r...) }
func (rawRecord) Decode(*jute.Decoder)     {}

func hexSum(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

var saslField = regexp.MustCompile(`(\w+)="?([^",]*)"?`)

// saslAnswer returns the server's token in a step of DIGEST-MD5, or nil if the client's proof is wrong.
func saslAnswer(step int, r request, user, password string) []byte {
	const realm, nonce, uri = "zk-sasl-md5", "abcdef", "zookeeper/zk-sasl-md5"
	token := r.record().(*wire.SASLToken).Token
	if step == 1 {
		return []byte(`realm="` + realm + `",nonce="` + nonce + `",charset=utf-8,algorithm=md5-sess`)
	}
	fields := map[string]string{}
	for _, m := range saslField.FindAllStringSubmatch(string(token), -1) {
		fields[m[1]] = m[2]
	}
	secret := md5.Sum([]byte(user + ":" + realm + ":" + password))
	a1 := hexSum(string(secret[:]) + ":" + nonce + ":" + fields["cnonce"])
	proof := func(method string) string {
		return hexSum(a1 + ":" + nonce + ":00000001:" + fields["cnonce"] + ":auth:" + hexSum(method+":"+uri))
	}
	if fields["username"] != user || fields["response"] != proof("AUTHENTICATE") {
		return nil
	}
	return []byte("rspauth=" + proof(""))
}

func TestSASLProvesBothSides(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		serve func(p *peer, r request, step int)
		want  error
	}{
		"right password": {func(p *peer, r request, step int) {
			p.answer(r, 0, wire.OK, &wire.SASLToken{Token: saslAnswer(step, r, "bob", "secret")})
		}, nil},
		"wrong password": {func(p *peer, r request, step int) {
			if token := saslAnswer(step, r, "bob", "other"); token != nil {
				p.answer(r, 0, wire.OK, &wire.SASLToken{Token: token})
			} else {
				p.answer(r, 0, wire.AuthFailed, nil)
			}
		}, zk.ErrAuthFailed},
		"a server that lets failed clients stay": {func(p *peer, r request, step int) {
			p.answer(r, 0, wire.OK, &wire.SASLToken{Token: saslAnswer(step, r, "bob", "other")})
		}, zk.ErrAuthFailed},
		"a server without the password": {func(p *peer, r request, step int) {
			token := saslAnswer(step, r, "bob", "secret")
			if step == 2 {
				token = []byte("rspauth=00000000000000000000000000000000")
			}
			p.answer(r, 0, wire.OK, &wire.SASLToken{Token: token})
		}, zk.ErrAuthFailed},
		"a server without SASL": {func(p *peer, r request, _ int) {
			p.answer(r, 0, wire.OK, &wire.SASLToken{})
		}, zk.ErrAuthFailed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, func(p *peer) {
					p.open()
					step := 0
					p.loop(func(r request) bool {
						if r.Op == wire.OpSASL {
							step++
							c.serve(p, r, step)
						}
						return r.Op == wire.OpSASL
					})
				})
				cfg := f.config()
				cfg.SASL = &zk.SASL{User: "bob", Password: "secret"}
				_, err := f.client(cfg).Session(t.Context())
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		})
	}
}
