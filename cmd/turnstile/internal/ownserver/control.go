package ownserver

// Whether it runs, and stopping it.

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Running reports whether the server runs, and its process id; 0 if that is not known. It returns a ForeignError if
// another server has its socket.
func (s *Server) Running(ctx context.Context) (pid int, runs bool, err error) {
	conn, pid, err := s.connect(ctx)
	if err != nil {
		if _, foreign := errors.AsType[*ForeignError](err); foreign {
			return 0, false, err
		}
		return 0, false, nil
	}
	return max(0, pid), true, conn.Close() // it was only to see whether the server answers
}

// Stop ends the server if it runs, and returns when its process has ended. Another one may have been started meanwhile.
// It signals no process but the one that listens on the server's socket and has locked its data.
func (s *Server) Stop(ctx context.Context) error {
	conn, pid, err := s.connect(ctx)
	if err != nil {
		if _, foreign := errors.AsType[*ForeignError](err); foreign {
			return err
		}
		return nil // no server answers
	}
	defer conn.Close()
	if pid <= 0 {
		return errors.New("this user's own server answers, but its process is not to be seen: stop it in its container")
	}
	proc, err := os.FindProcess(pid)
	if err == nil {
		if again, err := s.prove(conn); err != nil || again != pid {
			return nil // it has ended; if another process has its id, proc may be that one
		}
		err = proc.Signal(terminateSignal)
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop this user's own server, pid %d: %w", pid, err)
	}
	return poll(ctx, func() (bool, error) {
		if !alive(proc) {
			return true, nil
		}
		// A process that its parent does not wait for stays for ever, but has let go of its files.
		holder, held, err := s.holder()
		return !held || holder > 0 && holder != pid, err
	})
}
