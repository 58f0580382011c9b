package classic_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	core "github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/queue/classic"
)

func TestErrorsAreAlsoThoseOfPackageQueue(t *testing.T) {
	t.Parallel()
	for ours, theirs := range map[error]error{
		classic.ErrEmpty:                         core.ErrEmpty,
		classic.ErrLost:                          core.ErrClaimLost,
		classic.ErrTooLarge:                      core.ErrTooLarge,
		classic.ErrUnresolved:                    core.ErrUnresolved,
		fmt.Errorf("take: %w", classic.ErrEmpty): core.ErrEmpty,
		&classic.UnresolvedError{Err: errors.New("it expired")}: core.ErrUnresolved,
	} {
		if !errors.Is(ours, theirs) {
			t.Errorf("%v is not %v", ours, theirs)
		}
		if strings.Contains(ours.Error(), "queue:") {
			t.Errorf("%v speaks of another package", ours)
		}
		if errors.Is(theirs, classic.ErrEmpty) {
			t.Errorf("%v is one of classic", theirs)
		}
	}
}
