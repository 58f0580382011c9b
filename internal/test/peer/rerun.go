package peer

// The test's own program as a server to kill.

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
)

// serving is the line that a server started by Rerun prints when it serves.
const serving = "serving"

// Serving tells Rerun, from the program that it has started, that the server serves, or why it does not.
func Serving(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println(serving)
}

// Rerun starts the test's own program again with an additional environment variable, NAME=value, at which its TestMain
// must run a server and call Serving. Rerun returns when it has done so. The caller kills the process and waits for it.
func Rerun(t T, variable string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), variable)
	cmd.SysProcAttr = dieWithParent()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("peer: start the test's program again: %v", err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != serving+"\n" {
		t.Fatalf("peer: got %q, %v from the server, want %q", line, err, serving)
	}
	return cmd
}
