package dashboard

// What an issuer says of a user.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// claims are what an issuer says of a user.
type claims map[string]any

// readClaims reads those of a token, or of a user info.
func readClaims(from interface{ Claims(v any) error }) (c claims, err error) {
	var raw json.RawMessage
	if err = from.Claims(&raw); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a float64 would be written in another way
	err = dec.Decode(&c)
	return c, err
}

// name is who the user is, in the record of changes: an address that the issuer has verified, or else with the subject,
// which users cannot choose for themselves.
func (c claims) name() string {
	text := func(name string) string { s, _ := c[name].(string); return s }
	if c.have(Claim{"email", text("email")}) {
		return head(text("email"), maxForwarded)
	}
	who := cmp.Or(text("preferred_username"), text("name"), "user")
	return head(who, maxForwarded/2) + " (" + head(text("sub"), maxForwarded) + ")"
}

func (c claims) haveOne(of []Claim) bool { return slices.ContainsFunc(of, c.have) }

// have reports whether a user has a claim. An address counts only if the issuer has verified it.
func (c claims) have(want Claim) bool {
	if want.Name == "email" && c["email_verified"] != true {
		return false
	}
	is := func(v any) bool {
		switch v := v.(type) {
		case string:
			return v == want.Value
		case bool, json.Number:
			return fmt.Sprint(v) == want.Value
		default:
			return false
		}
	}
	if list, ok := c[want.Name].([]any); ok {
		return slices.ContainsFunc(list, is)
	}
	return is(c[want.Name])
}
