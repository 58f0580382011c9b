package cli

import "testing"

// The column of top has eight letters.
func TestLatencyIsShort(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"0/0.5142/7": "0.51 ms", "1/99.0/99": "99.00 ms", "0/101.6666/300": "102 ms", "9/12345.6/99999": "12346 ms",
		"unknown": "unknown",
	} {
		if got := serverOf(map[string]string{"Latency min/avg/max": said}).Latency; got != want || len(got) > 8 {
			t.Errorf("%s: got %q, want %q", said, got, want)
		}
	}
}
