package ownserver

// Whether it runs, and stopping it.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Running reports whether the server runs, and its process id; 0 if that is not known.
func (s *Server) Running(ctx context.Context) (pid int, ok bool) {
	conn, err := s.connect(ctx)
	if err != nil {
		return 0, false
	}
	_ = conn.Close() // it was only to see whether the server answers
	return s.pid(), true
}

// pid returns the process id of the server, 0 if it is not known. The process that has locked the data writes it there.
func (s *Server) pid() int {
	text, err := os.ReadFile(filepath.Join(s.Data(), "pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text))) // 0 if it is something else
	return pid
}

// Stop ends the server if it runs, and returns when its process has ended. Another one may have been started meanwhile.
func (s *Server) Stop(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil // no server answers
	}
	defer conn.Close()
	pid := s.pid()
	if pid == 0 {
		return fmt.Errorf("this user's own server answers, and its process is not known: no process id in %s", s.Data())
	}
	proc, err := os.FindProcess(pid)
	if err == nil {
		err = proc.Signal(terminateSignal)
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop this user's own server, pid %d: %w", pid, err)
	}
	return poll(ctx, func() (bool, error) { return !alive(proc), nil })
}
