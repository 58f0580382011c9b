package gssapi

// One authentication (RFC 4121, RFC 4752).

import (
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/seed-a3166700/turnstile/zk"
)

// exchange is the client's side of one authentication. The messages are: the request with the ticket; the server's
// proof that it could read that; an empty token; the server's offer of security layers; the choice of none.
type exchange struct {
	grant  grant
	server string
	step   int

	auth   types.Authenticator
	key    types.EncryptionKey // for the offer and the choice
	subkey bool                // it is the server's
	seq    uint64              // of the server's first token
}

// Next implements zk.SASLExchange.
func (x *exchange) Next(token []byte) (answer []byte, done bool, err error) {
	x.step++
	switch x.step {
	case 1:
		answer, err = x.request()
	case 2:
		answer, err = []byte{}, x.check(token)
	case 3:
		answer, err = x.choose(token)
	default:
		if len(token) > 0 {
			err = errors.New("the server goes on after the end")
		}
		done = err == nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: Kerberos, %s: %w", zk.ErrAuthFailed, x.server, err)
	}
	return answer, done, nil
}

// The kinds of messages within a token.
const (
	kindRequest = 0x0100
	kindReply   = 0x0200
	kindError   = 0x0300
)

// request returns the token with the ticket. It asks the server to authenticate itself, too.
func (x *exchange) request() ([]byte, error) {
	var err error
	if x.auth, err = types.NewAuthenticator(x.grant.who.Domain(), x.grant.who.CName()); err != nil {
		return nil, err
	}
	sum := make([]byte, 24) // no channel bindings
	binary.LittleEndian.PutUint32(sum, 16)
	const wanted = gssapi.ContextFlagMutual | gssapi.ContextFlagReplay | gssapi.ContextFlagSequence |
		gssapi.ContextFlagInteg
	binary.LittleEndian.PutUint32(sum[20:], wanted)
	x.auth.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: sum}
	req, err := messages.NewAPReq(x.grant.ticket, x.grant.key, x.auth)
	if err != nil {
		return nil, err
	}
	types.SetFlag(&req.APOptions, flags.APOptionMutualRequired)
	body, err := req.Marshal()
	if err != nil {
		return nil, err
	}
	head, err := asn1.Marshal(gssapi.OIDKRB5.OID())
	if err != nil {
		return nil, err
	}
	head = binary.BigEndian.AppendUint16(head, kindRequest)
	return asn1tools.AddASNAppTag(append(head, body...), 0), nil
}

// check checks the server's proof that it knows the key of its principal: it has read the time in the request.
func (x *exchange) check(token []byte) error {
	var oid asn1.ObjectIdentifier
	body, err := asn1.UnmarshalWithParams(token, &oid, "application,explicit,tag:0")
	if err != nil || !oid.Equal(gssapi.OIDKRB5.OID()) || len(body) < 2 {
		return errors.New("the server's answer is not a Kerberos token")
	}
	switch kind := binary.BigEndian.Uint16(body); kind {
	case kindReply:
	case kindError:
		var refusal messages.KRBError
		if err := refusal.Unmarshal(body[2:]); err != nil {
			return err
		}
		return fmt.Errorf("the server refuses: %w", refusal)
	default:
		return fmt.Errorf("the server's token is of kind %04x", kind)
	}
	var reply messages.APRep
	if err := reply.Unmarshal(body[2:]); err != nil {
		return err
	}
	text, err := crypto.DecryptEncPart(reply.EncPart, x.grant.key, keyusage.AP_REP_ENCPART)
	if err != nil {
		return fmt.Errorf("the server did not prove who it is: %w", err)
	}
	var proof messages.EncAPRepPart
	if err := proof.Unmarshal(text); err != nil {
		return err
	}
	if proof.CTime.Unix() != x.auth.CTime.Unix() || proof.Cusec != x.auth.Cusec {
		return errors.New("the server did not prove who it is: its answer is to another request")
	}
	x.key, x.seq = x.grant.key, uint64(proof.SequenceNumber)
	if proof.Subkey.KeyType != 0 {
		x.key, x.subkey = proof.Subkey, true
	}
	return nil
}

// Flags of a token with a checksum (RFC 4121, section 4.2.2).
const (
	fromServer   = 1
	sealed       = 2
	serverSubkey = 4
)

const (
	wrapHeader  = 16
	noLayer     = 1 // authentication only
	wrapTokenID = 0x0504
)

// choose reads which security layers the server offers, and chooses none.
func (x *exchange) choose(token []byte) ([]byte, error) {
	offer, err := x.unwrap(token)
	if err != nil {
		return nil, fmt.Errorf("the server's offer of security layers: %w", err)
	}
	if len(offer) != 4 || offer[0]&noLayer == 0 {
		const text = "the server requires a security layer: it offers %x, want authentication only (auth)"
		return nil, fmt.Errorf(text, offer)
	}
	return x.wrap([]byte{noLayer, 0, 0, 0})
}

// unwrap returns the payload of the server's token after it has checked it.
func (x *exchange) unwrap(token []byte) ([]byte, error) {
	if len(token) < wrapHeader || binary.BigEndian.Uint16(token) != wrapTokenID || token[3] != 0xff {
		return nil, errors.New("not a token of RFC 4121; is the key of an old kind, other than AES?")
	}
	attr := token[2]
	extra, rotated := int(binary.BigEndian.Uint16(token[4:])), int(binary.BigEndian.Uint16(token[6:]))
	if attr&fromServer == 0 || attr&sealed != 0 || (attr&serverSubkey != 0) != x.subkey {
		return nil, fmt.Errorf("unexpected flags %x", attr)
	}
	if seq := binary.BigEndian.Uint64(token[8:]); seq != x.seq {
		return nil, fmt.Errorf("sequence number %d, want %d", seq, x.seq)
	}
	body := slices.Clone(token[wrapHeader:])
	if extra > len(body) || len(body) == 0 {
		return nil, errors.New("truncated")
	}
	rotated %= len(body)
	body = slices.Concat(body[rotated:], body[:rotated])
	payload, sum := body[:len(body)-extra], body[len(body)-extra:]
	want, err := x.checksum(payload, token[:wrapHeader], keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(sum, want) {
		return nil, errors.New("wrong checksum")
	}
	return payload, nil
}

// wrap returns a token with the payload and a checksum.
func (x *exchange) wrap(payload []byte) ([]byte, error) {
	header := make([]byte, wrapHeader)
	binary.BigEndian.PutUint16(header, wrapTokenID)
	if x.subkey {
		header[2] = serverSubkey
	}
	header[3] = 0xff
	binary.BigEndian.PutUint64(header[8:], uint64(x.auth.SeqNumber))
	sum, err := x.checksum(payload, header, keyusage.GSSAPI_INITIATOR_SEAL)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(header[4:], uint16(len(sum)))
	return slices.Concat(header, payload, sum), nil
}

// checksum returns the checksum of the payload and the header, whose counts are zero in it.
func (x *exchange) checksum(payload, header []byte, usage uint32) ([]byte, error) {
	kind, err := crypto.GetEtype(x.key.KeyType)
	if err != nil {
		return nil, err
	}
	text := slices.Concat(payload, header)
	clear(text[len(payload)+4 : len(payload)+8])
	return kind.GetChecksumHash(x.key.KeyValue, text, usage)
}
