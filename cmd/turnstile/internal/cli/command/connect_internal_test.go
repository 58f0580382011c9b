package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
)

func TestLogOfTheOwnServerIsNamedOnce(t *testing.T) {
	t.Parallel()
	own, err := ownserver.Find(map[string]string{"XDG_STATE_HOME": t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var c Connection
	c.Flags(pflag.NewFlagSet("", pflag.ContinueOnError))
	c.own = own
	for _, why := range []error{nil, fmt.Errorf("it ended at once; its log is %s", own.Log())} {
		if got := c.NoServer(why).Error(); strings.Count(got, own.Log()) != 1 {
			t.Errorf("%v: got %q, want the log once", why, got)
		}
	}
}
