package line

import (
	"context"
	"errors"
	"math"
	"slices"
)

// ErrWrap says that the numbers of the line are near their wrap from 2147483647 to -2147483648, or past it, and that contenders of
// others stand in it. We compare numbers, across the wrap; Curator and kazoo compare the text, in which a negative number comes before
// every other and the later of two negative ones before the earlier. There is no order that all of us see.
var ErrWrap = errors.New("line: the numbers of the nodes are near 2147483647 or past it, where Curator's and kazoo's contenders see another order than we do; " +
	"let all contenders leave and delete the path, so that it begins at 0 again")

// nearWrap is how far before the wrap a line is said to be near it: more than ever stand in a line at once.
const nearWrap = 1 << 20

// vouch returns ErrWrap if the order of the line is not the same for all who stand in it. It asks the server for nothing as long as
// the numbers are far from the wrap.
//
// It is for the moment at which we join the line. Who joins it later sees us, and it is for them to refuse.
func (p *Place) vouch(ctx context.Context) error {
	if p.seat.Seq >= 0 && p.seat.Seq < math.MaxInt32-nearWrap {
		return nil
	}
	names, err := p.list(ctx, nil)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(Seats(names, p.line.Markers), func(s Seat) bool { return !ours(s.Name) }) {
		return ErrWrap
	}
	return nil
}
