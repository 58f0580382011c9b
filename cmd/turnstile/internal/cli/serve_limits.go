package cli

// The limits of turnstile serve.

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/server"
)

// allowances are what "turnstile serve" grants its clients and its operators. Each flag takes precedence over the
// configuration file.
type allowances struct {
	requireSASL                             bool
	words, admin, metrics                   string
	names                                   command.Choice
	sessions, conns, perAddress, maxWatches int
	maxFrame, maxReply, memory              int
	sendTime                                command.Period
}

// What --zookeeper-metrics takes.
const metricNames, nextMetricNames = "3.9", "next"

func (a *allowances) flags(flags *pflag.FlagSet) {
	flags.BoolVar(&a.requireSASL, "require-sasl", false, "serve only clients logged in as one of --sasl-users")
	flags.StringVar(&a.words, "words", "",
		"four-letter `words` to answer besides srvr, separated by commas, or * for all")
	flags.StringVar(&a.admin, "admin", "", "`address` of ZooKeeper's HTTP commands, as 127.0.0.1:8080 (default: off)")
	flags.StringVar(&a.metrics, "metrics-listen", "",
		"`address` of Prometheus metrics, /livez and /readyz, as 127.0.0.1:7000 (default: off)")
	a.names = command.NewChoice(metricNames, nextMetricNames)
	flags.Var(&a.names, "zookeeper-metrics", "names of the metrics: as of ZooKeeper 3.6 to 3.9, or of the next version")
	command.MayBeEmpty(flags, "words", "admin", "metrics-listen") // none of them, whatever --config says
	flags.IntVar(&a.conns, "max-connections", 0,
		"largest `number` of connections, -1 for no limit (the defaults are in docs/limits.md)")
	flags.IntVar(&a.perAddress, "max-connections-per-address", 0, "largest `number` of connections from one address")
	flags.IntVar(&a.sessions, "max-sessions", 0, "largest `number` of sessions")
	flags.IntVar(&a.maxWatches, "max-watches", 0, "largest `number` of watches of one connection")
	flags.IntVar(&a.maxFrame, "max-frame", 0, "largest request in `bytes`, ZooKeeper's jute.maxbuffer")
	flags.IntVar(&a.maxReply, "max-reply", 0, "largest reply in `bytes`")
	flags.IntVar(&a.memory, "max-memory", 0, "`bytes` of pending requests and replies of all clients")
	flags.Var(&a.sendTime, "send-time", "how long a client may take to read a reply")
}

// apply changes the configuration by the flags that are given.
func (a *allowances) apply(cfg *server.Config, given func(flag string) bool) error {
	var errs []error
	set := func(flag string, to *int, value int) {
		if !given(flag) {
			return
		}
		if value == 0 || value < server.Unlimited {
			errs = append(errs, fmt.Errorf("--%s: want a number above 0, or -1 for no limit, not %d", flag, value))
		}
		*to = value
	}
	set("max-connections", &cfg.Limits.Conns, a.conns)
	set("max-connections-per-address", &cfg.MaxClientConns, a.perAddress)
	set("max-sessions", &cfg.Limits.Sessions, a.sessions)
	set("max-watches", &cfg.Limits.Watches, a.maxWatches)
	if given("max-frame") {
		if cfg.MaxFrame = a.maxFrame; a.maxFrame <= 0 {
			errs = append(errs, fmt.Errorf("--max-frame: want a number above 0, not %d", a.maxFrame))
		}
	}
	set("max-reply", &cfg.Limits.Reply, a.maxReply)
	set("max-memory", &cfg.Limits.Memory, a.memory)
	if given("send-time") {
		cfg.Limits.SendTime = time.Duration(a.sendTime)
	}
	if given("admin") {
		cfg.AdminListen = a.admin
	}
	if given("metrics-listen") {
		cfg.MetricsListen = a.metrics
	}
	cfg.NextMetrics = a.names.Value == nextMetricNames
	if given("words") {
		cfg.FourLetterWords = []string{} // none
		for word := range strings.SplitSeq(a.words, ",") {
			if word = strings.TrimSpace(word); word != "" && word != "*" && !server.IsFourLetterWord(word) {
				errs = append(errs, fmt.Errorf("--words: %q is not one of the server's words, such as mntr", word))
			}
			cfg.FourLetterWords = append(cfg.FourLetterWords, word)
		}
	}
	if given("require-sasl") {
		cfg.RequireSASL = a.requireSASL
	}
	if cfg.RequireSASL && a.requireSASL && len(cfg.SASLUsers) == 0 {
		errs = append(errs, errors.New("--require-sasl needs --sasl-users: no client could log in"))
	}
	return errors.Join(errs...)
}
