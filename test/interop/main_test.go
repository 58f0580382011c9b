package interop_test

import (
	"fmt"
	"os"
	"testing"
)

// workerEnv makes the test binary one of our workers.
const workerEnv = "TURNSTILE_INTEROP_WORKER"

// programs are those of workers other than the contenders of a lock, by their first argument.
var programs = map[string]func(args []string) error{
	shareWorker: workShares, holdingWorker: holdItems, countingWorker: count,
}

var (
	suiteDir   string // for all tests together
	gozkBinary string // set once it is built
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		program, args := work, os.Args[1:]
		if other, ok := programs[args[0]]; ok {
			program, args = other, args[1:]
		}
		if err := program(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(withDir(m))
}

func withDir(m *testing.M) int {
	dir, err := os.MkdirTemp("", "turnstile-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	defer common.Close()
	suiteDir = dir
	return m.Run()
}
