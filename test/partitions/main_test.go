//go:build unix

package partitions_test

import (
	"fmt"
	"os"
	"testing"
)

// partyEnv makes the test binary a party.
const partyEnv = "TURNSTILE_PARTITIONS_PARTY"

func TestMain(m *testing.M) {
	if os.Getenv(partyEnv) != "" {
		if err := contend(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "party:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if dir := os.Getenv("TURNSTILE_PARTITIONS_WRITE"); dir != "" {
		if err := results.write(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
