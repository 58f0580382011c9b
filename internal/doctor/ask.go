package doctor

// Asking servers: four-letter words and HTTP commands.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-a3166700/turnstile/internal/words"
)

const (
	askTime   = 10 * time.Second // for all questions to a server but the two long ones
	maxAnswer = 1 << 20
	maxList   = 64 << 20 // of cons and dump
)

// askAll asks all servers.
func askAll(ctx context.Context, names []string, cfg Config) []server {
	list := make([]server, len(names))
	var group errgroup.Group
	group.SetLimit(workers)
	for i, name := range names {
		group.Go(func() error {
			list[i] = ask(ctx, name, cfg)
			return nil
		})
	}
	_ = group.Wait() // each server has its own errors
	return list
}

// ask finds out about one server.
func ask(ctx context.Context, name string, cfg Config) server {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	s := server{name: name}
	host := hostOf(name)
	if host != "" && net.ParseIP(host) == nil {
		found, err := cfg.Lookup(ctx, host)
		if err != nil {
			s.lookup = clip(err.Error())
			s.down = s.lookup
			s.nothing("its name cannot be looked up")
			return s
		}
		for _, address := range found {
			s.addresses = append(s.addresses, net.JoinHostPort(address, strings.TrimPrefix(name, host+":")))
		}
	}
	srvr, err := cfg.Word(ctx, name, "srvr", maxAnswer)
	text := words.Stats(srvr)
	switch version, ok := text["Zookeeper version"]; {
	case err == nil && ok:
		s.version, s.mode = known(clip(version)), text["Mode"]
	case err == nil && strings.HasPrefix(srvr, "This ZooKeeper instance is not currently serving"):
		s.down = "it is not serving requests: has it a quorum?"
	case err == nil:
		s.down = fmt.Sprintf("it does not answer as a ZooKeeper server: %q", clip(srvr))
	case !refusesWord(err):
		s.down = clip(err.Error())
	default:
		s.version = unknown[string]("%v", err)
	}
	if s.down != "" {
		s.nothing("it does not serve")
		return s
	}
	s.embedded = strings.Contains(s.version.value, "-turnstile")
	s.askWords(ctx, cfg)
	if host != "" && cfg.AdminPort > 0 {
		s.askAdmin(ctx, "http://"+net.JoinHostPort(host, strconv.Itoa(cfg.AdminPort))+"/commands/")
	} else {
		s.largest = unknown[int64]("its HTTP commands were not asked")
	}
	s.askCallers(ctx, cfg)
	return s
}

// hostOf returns the host of a server; empty if that is a unix socket.
func hostOf(name string) string {
	if strings.HasPrefix(name, "unix:") {
		return ""
	}
	host, _, err := net.SplitHostPort(name)
	if err != nil {
		return name
	}
	return host
}

// refusesWord reports whether a server serves, but does not answer a word.
func refusesWord(err error) bool {
	return err != nil && strings.Contains(err.Error(), " is not executed")
}

// nothing notes that nothing is known of a server.
func (s *server) nothing(why string) {
	s.version, s.largest = unknown[string]("%s", why), unknown[int64]("%s", why)
	s.settings, s.gauges = unknown[map[string]string]("%s", why), unknown[map[string]string]("%s", why)
	s.callers = unknown[map[string]int]("%s", why)
}

// askWords asks the other words.
func (s *server) askWords(ctx context.Context, cfg Config) {
	word := func(word string, parse func(string) map[string]string, want string) fact[map[string]string] {
		text, err := cfg.Word(ctx, s.name, word, maxAnswer)
		if err == nil {
			if values := parse(text); values[want] != "" {
				return known(values)
			}
			err = fmt.Errorf("the answer to %s makes no sense: %q", word, clip(text))
		}
		s.silent = append(s.silent, clip(err.Error()))
		return unknown[map[string]string]("%v", err)
	}
	s.settings = word("conf", words.Settings, "tickTime")
	s.gauges = word("mntr", words.Gauges, "num_alive_connections")
	switch text, err := cfg.Word(ctx, s.name, "ruok", maxAnswer); {
	case refusesWord(err): // no harm: it has answered others
	case err != nil:
		s.unwell = clip(err.Error())
	case text != "imok":
		s.unwell = fmt.Sprintf("%q", clip(text))
	}
}

// askAdmin asks for what words have not told, and for what they cannot tell.
func (s *server) askAdmin(ctx context.Context, base string) {
	if properties, err := command(ctx, base+"system_properties"); err != nil {
		s.largest = unknown[int64]("%v", err)
	} else if text, ok := properties["jute.maxbuffer"]; !ok {
		s.largest = unknown[int64]("it is not set, as far as the HTTP commands tell")
	} else if n, err := strconv.ParseInt(text, 0, 32); err != nil || n <= 0 {
		s.largest = unknown[int64]("it is %q", clip(text))
	} else {
		s.largest = known(n)
	}
	if s.settings.unknown != "" {
		if answer, err := command(ctx, base+"configuration"); err == nil && answer["tick_time"] != "" {
			s.settings = known(renamed(answer))
		}
	}
	if s.gauges.unknown != "" {
		if answer, err := command(ctx, base+"monitor"); err == nil && answer["num_alive_connections"] != "" {
			s.gauges = known(answer)
		}
	}
	if s.version.unknown != "" {
		if answer, err := command(ctx, base+"server_stats"); err == nil && answer["version"] != "" {
			s.version = known(clip(answer["version"]))
		}
	}
}

// settingNames are the names of a zoo.cfg for those that HTTP commands use.
var settingNames = map[string]string{
	"tick_time": "tickTime", "min_session_timeout": "minSessionTimeout", "max_session_timeout": "maxSessionTimeout",
	"max_client_cnxns": "maxClientCnxns", "sync_limit": "syncLimit",
}

// renamed returns settings by the names of a zoo.cfg.
func renamed(answer map[string]string) map[string]string {
	m := make(map[string]string, len(settingNames))
	for from, to := range settingNames {
		if value, ok := answer[from]; ok {
			m[to] = value
		}
	}
	return m
}

// askCallers finds out how many connections each address has, if they may be too many.
func (s *server) askCallers(ctx context.Context, cfg Config) {
	most, limited := s.setting("maxClientCnxns")
	all, ok := s.gauge("num_alive_connections")
	switch {
	case s.settings.unknown != "" || s.gauges.unknown != "" || !limited || !ok:
		s.callers = unknown[map[string]int]("neither limit nor number is known")
		return
	case most <= 0 || !near(all, most):
		s.callers = known(map[string]int{})
		return
	}
	text, err := cfg.Word(ctx, s.name, "cons", maxList)
	if err != nil {
		s.callers = unknown[map[string]int]("it has %d connections, and which addresses have how many is unknown: %v",
			all, err)
		return
	}
	counts := make(map[string]int)
	for address := range words.Connections(text) {
		if host, _, err := net.SplitHostPort(address); err == nil {
			counts[host]++
		}
	}
	s.callers = known(counts)
}

// near reports whether a number is near a limit, or above it.
func near(n, limit int64) bool { return n >= limit-limit/5 }

// ephemerals asks how many bytes the paths of each session's ephemeral nodes have, if they may be many.
func ephemerals(ctx context.Context, servers []server, cfg Config) fact[map[int64]int64] {
	whole := fact[map[int64]int64]{unknown: "no server has told it"}
	for i := range servers {
		s := &servers[i]
		switch bytes, ok := s.gauge("approximate_data_size"); {
		case s.down != "":
			continue
		case s.embedded, ok && bytes < manyEphemerals:
			return known(map[int64]int64{}) // the sum of all paths and data
		}
	}
	for i := range servers {
		if servers[i].down != "" {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, askTime)
		text, err := cfg.Word(limited, servers[i].name, "dump", maxList)
		cancel()
		nodes, listed := words.Ephemerals(text)
		switch {
		case err == nil && listed:
			sums := make(map[int64]int64) // as the transaction has them that ends the session
			for session, path := range nodes {
				sums[session] += 4 + int64(len(path))
			}
			return known(sums)
		case err != nil:
			whole.unknown = clip(fmt.Sprintf("%s: %v", servers[i].name, err))
		}
	}
	return whole
}

// web asks HTTP commands. It obeys no redirection and no proxy.
var web = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
}

// command asks an HTTP command, and returns its texts and numbers.
func command(ctx context.Context, address string) (map[string]string, error) {
	fail := func(err error) (map[string]string, error) {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fail(err)
	}
	resp, err := web.Do(req)
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fail(err)
	case resp.StatusCode != http.StatusOK:
		return fail(fmt.Errorf("status %d", resp.StatusCode))
	case len(body) > maxAnswer:
		return fail(errors.New("the answer is too long"))
	}
	answer, err := parseCommand(body)
	if err != nil {
		return fail(err)
	}
	return answer, nil
}

// parseCommand returns the texts and numbers of an HTTP command's answer.
func parseCommand(body []byte) (map[string]string, error) {
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, errors.New("the answer is no JSON object")
	}
	values := make(map[string]string, len(answer))
	for key, raw := range answer {
		var text string
		var n json.Number
		if json.Unmarshal(raw, &text) == nil {
			values[key] = text
		} else if json.Unmarshal(raw, &n) == nil {
			values[key] = n.String()
		}
	}
	if why := values["error"]; why != "" {
		return nil, errors.New(clip(why))
	}
	if _, ok := answer["command"]; !ok {
		return nil, errors.New("the answer is not one of ZooKeeper")
	}
	return values, nil
}
