package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/server"
)

func TestFlagsOfServeGoBeforeItsConfigurationFile(t *testing.T) {
	t.Parallel()
	var a allowances
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	a.flags(flags)
	err := flags.Parse([]string{
		"--require-sasl", "--words", "ruok, mntr", "--admin", "127.0.0.1:8080", "--max-connections", "1",
		"--max-connections-per-address", "-1",
		"--max-sessions", "3", "--max-watches", "4", "--max-frame", "5", "--max-reply", "6", "--max-memory", "7",
		"--send-time", "8s",
	})
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]string{"ann": "secret"}
	got := server.Config{MaxClientConns: 60, FourLetterWords: []string{"stat"}, SASLUsers: users}
	if err := a.apply(&got, flags.Changed); err != nil {
		t.Fatal(err)
	}
	want := server.Config{
		MaxClientConns: server.Unlimited, MaxFrame: 5, FourLetterWords: []string{"ruok", "mntr"},
		AdminListen: "127.0.0.1:8080", SASLUsers: users, RequireSASL: true,
		Limits: server.Limits{Conns: 1, Sessions: 3, Watches: 4, Reply: 6, Memory: 7, SendTime: 8 * time.Second},
	}
	ignore := cmpopts.IgnoreUnexported(server.Config{}, server.Limits{})
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Error(diff)
	}
	kept := want
	if err := a.apply(&kept, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, kept, ignore); diff != "" {
		t.Errorf("without flags: %s", diff)
	}
}
