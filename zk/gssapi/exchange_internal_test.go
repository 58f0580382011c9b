package gssapi

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// offering makes a token of the server's.
type offering func(flags byte, seq uint64, payload []byte) []byte

// established returns an exchange whose server has proved who it is, and a function that makes the server's tokens.
func established(tb testing.TB, subkey bool) (x *exchange, offer offering) {
	tb.Helper()
	kind, err := crypto.GetEtype(etypeID.AES256_CTS_HMAC_SHA1_96)
	if err != nil {
		tb.Fatal(err)
	}
	key, err := types.GenerateEncryptionKey(kind)
	if err != nil {
		tb.Fatal(err)
	}
	x = &exchange{step: 2, key: key, subkey: subkey, seq: 77}
	return x, func(flags byte, seq uint64, payload []byte) []byte {
		header := make([]byte, wrapHeader)
		binary.BigEndian.PutUint16(header, wrapTokenID)
		header[2], header[3] = flags, 0xff
		binary.BigEndian.PutUint64(header[8:], seq)
		sum, err := x.checksum(payload, header, keyusage.GSSAPI_ACCEPTOR_SEAL)
		if err != nil {
			tb.Fatal(err)
		}
		binary.BigEndian.PutUint16(header[4:], uint16(len(sum)))
		return slices.Concat(header, payload, sum)
	}
}

// rotate rotates the body of a token, as some servers do.
func rotate(token []byte, n int) []byte {
	body := token[wrapHeader:]
	at := len(body) - n
	rotated := slices.Concat(token[:wrapHeader], body[at:], body[:at])
	binary.BigEndian.PutUint16(rotated[6:], uint16(n))
	return rotated
}

// Promise: 18
func TestOfferOfAuthenticationOnlyIsChosenAndOthersAreRefused(t *testing.T) {
	t.Parallel()
	all := []byte{7, 0, 0xff, 0xff}
	for name, row := range map[string]struct {
		subkey bool
		token  func(offering) []byte
		ok     bool
	}{
		"all layers":          {ok: true, token: func(o offering) []byte { return o(1, 77, all) }},
		"rotated":             {ok: true, token: func(o offering) []byte { return rotate(o(1, 77, all), 12) }},
		"the server's subkey": {ok: true, subkey: true, token: func(o offering) []byte { return o(5, 77, all) }},
		"integrity required":  {token: func(o offering) []byte { return o(1, 77, []byte{6, 0, 1, 0}) }},
		"a long offer":        {token: func(o offering) []byte { return o(1, 77, make([]byte, 9)) }},
		"from a client":       {token: func(o offering) []byte { return o(0, 77, all) }},
		"sealed":              {token: func(o offering) []byte { return o(3, 77, all) }},
		"a replay":            {token: func(o offering) []byte { return o(1, 76, all) }},
		"another key":         {subkey: true, token: func(o offering) []byte { return o(1, 77, all) }},
		"truncated":           {token: func(o offering) []byte { return o(1, 77, all)[:20] }},
		"nothing":             {token: func(offering) []byte { return nil }},
		"changed": {token: func(o offering) []byte {
			token := o(1, 77, all)
			token[wrapHeader] = 1
			return token
		}},
	} {
		x, offer := established(t, row.subkey)
		answer, done, err := x.Next(row.token(offer))
		if (err == nil) != row.ok || done {
			t.Errorf("%s: got %x, %v, %v; want success: %v", name, answer, done, err, row.ok)
		}
		if row.ok && !bytes.Equal(answer[wrapHeader:wrapHeader+4], []byte{1, 0, 0, 0}) {
			t.Errorf("%s: got %x, want the choice of no layer", name, answer)
		}
		if !row.ok {
			continue
		}
		if _, done, err := x.Next(nil); !done || err != nil {
			t.Errorf("%s: the end: %v, %v", name, done, err)
		}
	}
}

func FuzzServerToken(f *testing.F) {
	_, offer := established(f, false)
	f.Add(3, offer(1, 77, []byte{1, 0, 0, 0}))
	f.Add(2, []byte("\x60\x0f\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x02\x00junk"))
	f.Fuzz(func(t *testing.T, step int, token []byte) {
		x, _ := established(t, false)
		if x.step = 1; step > 2 {
			x.step = 2
		}
		if _, _, err := x.Next(token); err == nil {
			t.Errorf("step %d accepts %x", step, token)
		}
	})
}
