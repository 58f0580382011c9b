package server

import (
	"encoding/asn1"
	"math/rand/v2"
	"testing"
)

// What tests of the external package compare with Java, whose helper package imports this one.

// SubjectName is subjectName.
func SubjectName(der []byte) (string, error) { return subjectName(der) }

// Subjects returns names, those of TestSubjectIsWhatJavaCallsIt and others, with all kinds of strings and bytes.
func Subjects(t *testing.T) (list [][]byte) {
	t.Helper()
	for _, der := range subjects(t) {
		list = append(list, der)
	}
	dice := rand.New(rand.NewPCG(1, 2))
	oids := []string{
		oidCN, oidSN, oidC, oidO, oidOU, oidTitle, oidGN, oidStreet, oidDC, oidUID, oidEmail, "1.3.6.1.4.1.5",
	}
	tags := []int{
		asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagIA5String, asn1.TagT61String, asn1.TagBMPString,
		tagGeneralString, asn1.TagNumericString, asn1.TagUTF8String,
	}
	const signs = " \r\n\t\x00,=+<>#;\"\\aZ0é\u00a0\U0001f600"
	for range 400 {
		var sets []subjectSET
		for range 1 + dice.IntN(3) {
			var set subjectSET
			for range 1 + dice.IntN(2) {
				value := make([]byte, dice.IntN(8))
				for i := range value {
					value[i] = signs[dice.IntN(len(signs))]
					if dice.IntN(4) == 0 {
						value[i] = byte(0x80 + dice.IntN(0x80))
					}
				}
				set = append(set, part(t, oids[dice.IntN(len(oids))], tags[dice.IntN(len(tags))], string(value)))
			}
			sets = append(sets, set)
		}
		list = append(list, nameOf(t, sets...))
	}
	return list
}

// ShortDir is shortDir.
func ShortDir(t *testing.T) string {
	t.Helper()
	return shortDir(t)
}
