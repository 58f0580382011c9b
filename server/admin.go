package server

// The HTTP servers for monitoring systems: ZooKeeper's commands, and the metrics.

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// web is an HTTP server for monitoring systems.
type web struct {
	http *http.Server
	done chan struct{}
}

// startWeb starts the HTTP servers that are configured.
func (s *Server) startWeb(ctx context.Context) error {
	var err error
	if s.cfg.AdminListen != "" {
		s.adminAddr, err = s.serveWeb(ctx, "HTTP commands", s.cfg.AdminListen, s.adminHandler(), nil)
	}
	if s.cfg.MetricsListen != "" && err == nil {
		s.metrAddr, err = s.serveWeb(ctx, "metrics", s.cfg.MetricsListen, s.metricsHandler(), nil)
	}
	if s.cfg.MetricsTLSListen != "" && err == nil {
		s.metrTLSAddr, err = s.serveWeb(ctx, "metrics", s.cfg.MetricsTLSListen, s.metricsHandler(),
			s.cfg.MetricsTLS.Clone())
	}
	return err
}

// serveWeb starts an HTTP server for what is called so, with TLS if secure is not nil.
func (s *Server) serveWeb(ctx context.Context, what, address string, handler http.Handler, secure *tls.Config,
) (net.Addr, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("server: cannot listen for %s on %s: %w", what, address, err)
	}
	closed := secure != nil && secure.ClientAuth == tls.RequireAndVerifyClientCert
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() && !closed {
		s.cfg.Logger.Warn("server: a port for monitoring is open to the network", "for", what, "address", a.String())
	}
	w := &web{done: make(chan struct{}), http: &http.Server{
		Handler: handler, MaxHeaderBytes: adminHeader,
		ReadTimeout: s.cfg.HandshakeTimeout, WriteTimeout: surveyTime, IdleTimeout: s.cfg.HandshakeTimeout,
		ErrorLog: slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}}
	s.web = append(s.web, w)
	addr := l.Addr()
	l = adminListener{l, s}
	if secure != nil {
		l = tls.NewListener(l, secure) // the timeouts of requests are those of handshakes, too
	}
	go func() {
		defer close(w.done)
		if err := w.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Logger.Error("server: a port for monitoring was closed", "for", what, "err", err)
		}
	}()
	return addr, nil
}

// adminHeader is the size of a request for an HTTP command. Requests have no body, and none is read.
const adminHeader = 8 << 10

// adminListener counts connections for HTTP commands as those of other clients.
type adminListener struct {
	net.Listener
	s *Server
}

// Accept returns the next connection that is within the limits, and closes the others.
func (l adminListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &adminConn{Conn: nc, s: l.s, from: addressKey(remoteIP(nc))}
		if l.s.admitAdmin(c) {
			return c, nil
		}
		_ = nc.Close()
	}
}

// adminConn is a connection for HTTP commands. It counts until it is closed.
type adminConn struct {
	net.Conn
	s    *Server
	from string
	once sync.Once
}

// Close closes the connection.
func (c *adminConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.s.adminGone(c) })
	return err
}

func (s *Server) stopWeb() {
	for _, w := range s.web {
		_ = w.http.Close()
		<-w.done
	}
}

// AdminAddr returns the address of the HTTP commands, nil if they are off.
func (s *Server) AdminAddr() net.Addr { return s.adminAddr }

// MetricsAddr returns the address of the metrics, nil if Config.MetricsListen is empty.
func (s *Server) MetricsAddr() net.Addr { return s.metrAddr }

// MetricsTLSAddr returns the address of the metrics with TLS, nil if Config.MetricsTLSListen is empty.
func (s *Server) MetricsTLSAddr() net.Addr { return s.metrTLSAddr }

// adminHandler serves the commands below the configured path. It compares paths itself: to http.ServeMux some of them
// would be patterns.
func (s *Server) adminHandler() http.Handler {
	list := strings.TrimSuffix(s.cfg.AdminPath, "/")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, below := strings.CutPrefix(r.URL.Path, list+"/")
		switch {
		case r.URL.Path == list, below && name == "":
			w.Header().Set("Content-Type", "text/html;charset=utf-8")
			for _, c := range adminCommands {
				href := html.EscapeString((&url.URL{Path: list + "/" + c.name}).EscapedPath())
				fmt.Fprintf(w, "<a href=\"%s\">%s</a>\n<br/>\n", href, c.name)
			}
		case s.serveMetrics(w, r):
		case below && !strings.Contains(name, "/"):
			s.adminCommand(w, r, name)
		default:
			http.NotFound(w, r)
		}
	})
}

// adminCommand runs a command. As in ZooKeeper, the answer to an unknown one has status OK and an error inside.
func (s *Server) adminCommand(w http.ResponseWriter, r *http.Request, name string) {
	refuse := func(status int, name, why string) {
		writeJSON(w, status, map[string]any{"command": name, "error": why})
	}
	i := slices.IndexFunc(adminCommands, func(c adminCmd) bool {
		return c.name == name || slices.Contains(c.aliases, name)
	})
	if i < 0 {
		refuse(http.StatusOK, name, "Unknown command: "+name)
		return
	}
	switch c := adminCommands[i]; {
	case c.run == nil && c.list == nil:
		refuse(http.StatusUnauthorized, c.name, "not supported by this server: "+c.name)
	case c.access == private && s.cfg.RequireSASL:
		refuse(http.StatusUnauthorized, c.name, lockedText)
	case c.list != nil:
		s.adminList(w, r, c)
	default:
		f, ok := s.facts()
		if !ok {
			refuse(http.StatusOK, c.name, notServing)
			return
		}
		answer := c.run(s, f)
		if answer == nil {
			answer = make(map[string]any)
		}
		answer["command"], answer["error"] = c.name, nil
		writeJSON(w, http.StatusOK, answer)
	}
}

func writeJSON(w http.ResponseWriter, status int, answer map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(answer) // fails if the client has gone
}

// adminList writes a long answer in pieces.
func (s *Server) adminList(w http.ResponseWriter, r *http.Request, c adminCmd) {
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	done, ok := s.mayList(addressKey(from))
	if !ok {
		s.hit(limitLists, r.RemoteAddr)
		writeJSON(w, http.StatusServiceUnavailable, map[string]any{"command": c.name, "error": busyText})
		return
	}
	defer done()
	w.Header().Set("Content-Type", "application/json")
	rc, end := http.NewResponseController(w), time.Now().Add(surveyTime)
	j := &jsonSurvey{survey: newSurvey(s.timedWriter(w, rc.SetWriteDeadline, end))}
	fmt.Fprint(j, "{")
	j.entry("command", c.name)
	if c.list(s, j) {
		j.entry("error", nil)
	} else {
		j.entry("error", notServing)
	}
	fmt.Fprint(j, "\n}\n")
	_ = j.Flush() // fails if the client has gone
}

// jsonSurvey is a survey in JSON. The client reads it while it is made.
type jsonSurvey struct {
	*survey
	more bool // there is an entry before the next one
}

// next begins an item or an entry.
func (j *jsonSurvey) next() {
	if j.more {
		fmt.Fprint(j, ",")
	}
	fmt.Fprint(j, "\n")
	j.more = true
}

func (j *jsonSurvey) value(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte("null")
	}
	_, _ = j.Write(b)
}

// item writes an item of a list.
func (j *jsonSurvey) item(v any) {
	j.next()
	j.value(v)
}

// entry writes an entry of an object.
func (j *jsonSurvey) entry(key string, v any) {
	j.item(key)
	fmt.Fprint(j, ": ")
	j.value(v)
}

// list writes an entry that is a list of strings.
func (j *jsonSurvey) list(key string, items []string) {
	j.begin(key, '[')
	for _, item := range items {
		j.item(item)
	}
	j.end(']')
}

// entries writes all entries of an object.
func (j *jsonSurvey) entries(m map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		j.entry(key, m[key])
	}
}

// begin begins a list or an object, which is an entry of the outer object.
func (j *jsonSurvey) begin(key string, bracket byte) {
	j.item(key)
	fmt.Fprintf(j, ": %c", bracket)
	j.more = false
}

// end ends a list or an object.
func (j *jsonSurvey) end(bracket byte) {
	fmt.Fprintf(j, "\n%c", bracket)
	j.more = true
}
