package lincheck

// Asking porcupine, and showing the part that contradicts itself.

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
	shrinkLimit = 10 * time.Second // for a part of a refused history
	contextSize = 20               // holds that are shown before the contradicting ones
)

// holdOps are the operations of one hold, which make sense only together. A model that accepts a history also accepts
// it without any of its holds. So if it refuses a part, that part is the reason why it refuses the whole.
type holdOps []porcupine.Operation

// judge returns nil if the model accepts the holds. Otherwise, or if it cannot find out in time, it writes the
// relevant part of the history as a page into dir, which it creates, and returns an error with the page's name.
func judge(model porcupine.Model, what string, holds []holdOps, dir string) error {
	slices.SortStableFunc(holds, func(a, b holdOps) int { return cmp.Compare(a[0].Call, b[0].Call) })
	result := porcupine.CheckOperationsTimeout(model, slices.Concat(holds...), judgeLimit)
	if result == porcupine.Ok {
		return nil
	}
	part := holds
	if result == porcupine.Illegal {
		part = shrink(model, holds)
	}
	verdict := fmt.Errorf("lincheck: %s: history of %d holds is not that of %s", result, len(holds), what)
	return keep(verdict, dir, func(page io.Writer) error { return show(model, part, page) })
}

// keep writes a page that explains a refusal into dir, which it creates, and returns the verdict with the page's
// name.
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
		return fmt.Errorf("%w; cannot write the page: %w", verdict, err)
	}
	return fmt.Errorf("%w; see %s", verdict, name)
}

// shrink returns a refused part of a refused history, as short as can be found quickly. It ends with the first hold
// that contradicts those before it, and begins a few holds before the last one that the contradiction needs.
func shrink(model porcupine.Model, holds []holdOps) []holdOps {
	refused := func(part []holdOps) bool {
		return porcupine.CheckOperationsTimeout(model, slices.Concat(part...), shrinkLimit) == porcupine.Illegal
	}
	n := sort.Search(len(holds), func(n int) bool { return refused(holds[:n]) })
	part := holds[:n]
	if !refused(part) {
		return holds // there was no time to find out
	}
	first := sort.Search(len(part), func(i int) bool { return !refused(part[i:]) }) - 1
	return part[max(0, first-contextSize):]
}

// show writes a page that shows the holds.
func show(model porcupine.Model, holds []holdOps, page io.Writer) error {
	history := slices.Concat(holds...)
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
