package peer

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
)

// serving is what a server that Rerun has started says when it serves.
const serving = "serving"

// Serving tells Rerun, from within the program that it has started, that the server is there, or why it is not.
func Serving(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println(serving)
}

// Rerun starts the test's own program again, with one more variable in its environment, NAME=value: its TestMain is to be a server then, to be
// killed, and to call Serving. Rerun returns when it has. Whoever called it kills the process and waits for it.
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
		t.Fatalf("peer: the server says %q %v", line, err)
	}
	return cmd
}
