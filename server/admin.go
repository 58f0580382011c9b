package server

// The HTTP server for commands of monitoring systems.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// admin serves ZooKeeper's HTTP commands, which monitoring systems use.
type admin struct {
	http *http.Server
	done chan struct{}
}

// startAdmin starts the HTTP server, if configured.
func (s *Server) startAdmin(ctx context.Context) error {
	if s.cfg.AdminListen == "" {
		return nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.AdminListen)
	if err != nil {
		return fmt.Errorf("server: cannot listen for HTTP commands on %s: %w", s.cfg.AdminListen, err)
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		s.cfg.Logger.Warn("server: HTTP commands are open to the network", "address", a.String())
	}
	a := &admin{done: make(chan struct{}), http: &http.Server{
		Handler: s.adminHandler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second,
	}}
	s.admin = a
	s.adminAddr = l.Addr()
	go func() {
		defer close(a.done)
		if err := a.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Logger.Error("server: HTTP commands stopped", "err", err)
		}
	}()
	return nil
}

func (s *Server) stopAdmin() {
	if s.admin != nil {
		_ = s.admin.http.Close()
		<-s.admin.done
	}
}

// AdminAddr returns the address of the HTTP commands, nil if they are off.
func (s *Server) AdminAddr() net.Addr { return s.adminAddr }

func (s *Server) adminHandler() http.Handler {
	mux := http.NewServeMux()
	list := strings.TrimSuffix(s.cfg.AdminPath, "/")
	index := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html;charset=utf-8")
		for _, c := range adminCommands {
			fmt.Fprintf(w, "<a href=\"%s/%s\">%s</a>\n<br/>\n", list, c.name, c.name)
		}
	}
	mux.HandleFunc(list, index)
	mux.HandleFunc(list+"/{$}", index)
	mux.HandleFunc(list+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		status, answer := s.adminCommand(r.PathValue("name"))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(answer) // fails if the client has gone
	})
	return mux
}

// adminCommand runs a command. As in ZooKeeper, the answer to an unknown one has status OK and an error inside.
func (s *Server) adminCommand(name string) (status int, answer map[string]any) {
	i := slices.IndexFunc(adminCommands, func(c adminCmd) bool {
		return c.name == name ||
			slices.Contains(c.aliases, name)
	})
	if i < 0 {
		return http.StatusOK, map[string]any{"command": name, "error": "Unknown command: " + name}
	}
	c := adminCommands[i]
	if c.run == nil {
		return http.StatusUnauthorized, map[string]any{
			"command": c.name,
			"error":   "not supported by this server: " + c.name,
		}
	}
	f, ok := s.facts(c.detail)
	if !ok {
		return http.StatusOK, map[string]any{"command": c.name, "error": notServing}
	}
	if answer = c.run(s, f); answer == nil {
		answer = make(map[string]any)
	}
	answer["command"], answer["error"] = c.name, nil
	return http.StatusOK, answer
}
