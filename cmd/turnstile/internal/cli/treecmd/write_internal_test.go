package treecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/zk"
)

// Only a write that was sent may have been done without a reply.
func TestOnlyAWriteThatWasSentIsReportedAsUnknown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err     error
		unknown bool
	}{
		{&zk.Error{Op: "setData", Err: zk.ErrConnectionLost}, true},
		{fmt.Errorf("stopped: %w", &zk.Error{Op: "delete", Err: zk.ErrConnectionLost}), true},
		{&zk.Error{Op: "setData", Err: zk.ErrClosed, Outcome: zk.NotSent}, false},
		{&zk.Error{Op: "create", Err: zk.NoAuth, Outcome: zk.Refused}, false},
		{&zk.Error{Op: "getChildren", Err: zk.ErrConnectionLost}, false},
		{&zk.Error{Op: "exists", Err: zk.ErrExpired}, false},
		{fmt.Errorf("zk: no session: %w", context.DeadlineExceeded), false},
		{zk.ErrAuthFailed, false},
		{nil, false},
	} {
		got := notWritten(test.err, "/x", 0)
		if !errors.Is(got, test.err) {
			t.Errorf("%v: got %v, which is another error", test.err, got)
		}
		if unknown := got != nil && strings.Contains(got.Error(), "not known whether"); unknown != test.unknown {
			t.Errorf("%v: got %v, want unknown %t", test.err, got, test.unknown)
		}
	}
}
