// Command orphan leaves a process without its parent, which ends, and waits until the first process of the container
// has reaped it. It exits with 0 once that is so.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if len(os.Args) > 1 {
		if os.Args[1] == "parent" { // does not wait for its child
			child := exec.Command(self, "child")
			if err := child.Start(); err != nil {
				return err
			}
			fmt.Print(child.Process.Pid)
		}
		return nil
	}
	out, err := exec.Command(self, "parent").Output()
	if err != nil {
		return err
	}
	var orphan int
	if _, err := fmt.Sscan(string(out), &orphan); err != nil {
		return err
	}
	for limit := time.Now().Add(20 * time.Second); !errors.Is(syscall.Kill(orphan, 0), syscall.ESRCH); {
		if time.Now().After(limit) {
			return fmt.Errorf("process %d, whose parent has ended, is still a zombie", orphan)
		}
	}
	fmt.Printf("reaped below %d\n", os.Getppid())
	return nil
}
