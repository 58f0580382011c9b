//go:build unix

package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// puppet is the command that tests run under a lock: "puppet" prints "ready PID", then every signal that it gets, and
// ends with code 3 at SIGTERM. "puppet all" also prints SIGCONT. "puppet mortal" dies of signals. "puppet stubborn"
// goes on after SIGTERM. "puppet parent" has a stubborn child in its group, and ends at SIGTERM itself. All of them
// end when their standard output has no reader any more: with the test that reads it.
func puppet() {
	ch := make(chan os.Signal, 64)
	mode := strings.Join(os.Args[1:], " ")
	if mode != "mortal" {
		signal.Notify(ch)
	}
	if mode == "parent" {
		child := exec.Command("puppet", "stubborn")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
	}
	go endWithReader()
	fmt.Println("ready", os.Getpid())
	for sig := range ch {
		switch sig {
		case syscall.SIGURG, syscall.SIGCHLD:
			continue
		case syscall.SIGCONT: // goes with SIGTERM, before or after it
			if mode != "all" {
				continue
			}
		}
		fmt.Println("got", int(sig.(syscall.Signal)))
		if sig == syscall.SIGTERM && mode != "stubborn" {
			os.Exit(3)
		}
	}
}

// endWithReader ends the process when the pipe that is its standard output has no reader. No test leaves a process
// behind so, however it ends.
func endWithReader() {
	fds := []unix.PollFd{{Fd: 1}} // asks for nothing, and hears of errors
	for {
		if n, err := unix.Poll(fds, -1); n > 0 && err == nil {
			os.Exit(9)
		}
	}
}

// firstLine returns the first line that r gives.
func firstLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}
