package lincheck

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	judgeLimit  = 2 * time.Minute  // for a whole history
	shrinkLimit = 10 * time.Second // for a part of one that was refused
	contextSize = 20               // holds that are shown before the ones that contradict each other
)

// story is what one hold contributes to a history: operations that make sense only together. Of a history that a model accepts it also
// accepts what is left when whole stories are taken out, so a part that is refused is the reason why the whole is.
type story []porcupine.Operation

// judge returns nil if the stories can be those of the model. Otherwise, and if it cannot find out in time, it writes the part of the
// history that matters as a page into dir, which it makes, and returns an error that names it.
func judge(model porcupine.Model, what string, stories []story, dir string) error {
	slices.SortStableFunc(stories, func(a, b story) int { return cmp.Compare(a[0].Call, b[0].Call) })
	result := porcupine.CheckOperationsTimeout(model, slices.Concat(stories...), judgeLimit)
	if result == porcupine.Ok {
		return nil
	}
	part := stories
	if result == porcupine.Illegal {
		part = shrink(model, stories)
	}
	verdict := fmt.Errorf("lincheck: %s: the history of %d holds is not %s's", result, len(stories), what)
	return keep(verdict, dir, func(page io.Writer) error { return show(model, part, page) })
}

// keep writes a page that shows why a history was refused into dir, which it makes, and returns the verdict with the page's name.
func keep(verdict error, dir string, show func(page io.Writer) error) error {
	name := filepath.Join(dir, "history.html")
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		var page *os.File
		if page, err = os.Create(name); err == nil {
			err = errors.Join(show(page), page.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("%w; it cannot be kept: %w", verdict, err)
	}
	return fmt.Errorf("%w; see %s", verdict, name)
}

// shrink returns a part of a history that is refused, as short as can be found quickly: it ends with the first story that contradicts
// those before it, and begins a few stories before the last one that this needs.
func shrink(model porcupine.Model, stories []story) []story {
	refused := func(part []story) bool {
		return porcupine.CheckOperationsTimeout(model, slices.Concat(part...), shrinkLimit) == porcupine.Illegal
	}
	n := sort.Search(len(stories), func(n int) bool { return refused(stories[:n]) })
	part := stories[:n]
	if !refused(part) {
		return stories // there was no time to find out
	}
	first := sort.Search(len(part), func(i int) bool { return !refused(part[i:]) }) - 1
	return part[max(0, first-contextSize):]
}

// show writes a page that shows the stories.
func show(model porcupine.Model, stories []story, page io.Writer) error {
	history := slices.Concat(stories...)
	rows := make(map[int]int) // the page has a row for every number up to the largest
	for i, op := range history {
		row, known := rows[op.ClientId]
		if !known {
			row = len(rows)
			rows[op.ClientId] = row
		}
		history[i].ClientId = row
	}
	_, info := porcupine.CheckOperationsVerbose(model, history, shrinkLimit)
	return porcupine.Visualize(model, info, page)
}
